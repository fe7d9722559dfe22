//! Reading buffers, embedded structures, handles and interfaces from a payload.
//! Not here: scalars (`reader`), who owns what was delivered (`runtime::received`).
//! Facts: libhwbinder's `verifyBufferObject`, libgbinder's reader, contract OBJ-15 to OBJ-20.
//!
//! Only an object that its sender listed was looked at by the driver; its address is the driver's.
//! Everything else about it is the sender's claim and compared with what must stand there.

use abi::codes::object;
use abi::layout::{BufferObject, FdArrayObject, FlatBinderObject};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::{Read, Reader, Source};
use crate::hwbinder::hw_binder::HwBinder;
use crate::hwbinder::parcel::NativeHandle;
use crate::hwbinder::writer::{COUNT, NATIVE_HANDLE, VEC};
use crate::runtime::target::{Binder, is_null};
use crate::status_code::StatusCode;

/// Bytes of a vector's two objects.
const PAIR: usize = 2 * size_of::<BufferObject>();

/// A structure, or an array of them, where the driver put it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'t> {
    bytes: &'t [u8],
    /// Its index among the objects; [`NO_OBJECT`] for an empty one that was not listed.
    object: u64,
}

/// No object's index. A sender may claim it, but there is no pointer in what has no bytes.
const NO_OBJECT: u64 = u64::MAX;

impl<'t> Seen<'t> {
    /// Its bytes. Pointers in them are the driver's and say nothing.
    #[must_use]
    pub fn bytes(&self) -> &'t [u8] {
        self.bytes
    }

    /// A field.
    ///
    /// # Errors
    /// `BAD_INDEX`: beyond the end.
    pub fn field<T: FromBytes>(&self, offset: usize) -> Read<T> {
        let bytes = self.bytes.get(offset..).and_then(|rest| rest.get(..size_of::<T>()));
        T::read_from_bytes(bytes.ok_or(StatusCode::BAD_INDEX)?).map_err(|_| StatusCode::BAD_INDEX)
    }
}

impl<'t> Reader<'t> {
    /// The position of an object, as its sender listed it.
    #[inline]
    fn offset(&self, index: usize) -> Option<u64> {
        let at = index.checked_mul(8)?;
        self.offsets.get(at..)?.first_chunk().map(|chunk| u64::from_ne_bytes(*chunk))
    }

    /// The index of the object here; `None` if none is listed.
    #[inline]
    fn listed_here(&self) -> Option<usize> {
        let at = self.at as u64;
        if self.offset(self.next) == Some(at) {
            return Some(self.next);
        }
        self.find_listed(at)
    }

    /// For what is read out of order, or when something was passed over. The driver saw to it that
    /// offsets ascend.
    #[cold]
    fn find_listed(&self, at: u64) -> Option<usize> {
        let (mut low, mut high) = (0, self.offsets.len() / 8);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.offset(middle)?.cmp(&at) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    #[inline]
    fn peek<T: FromBytes>(&self) -> Read<T> {
        let bytes = self.data[self.at..].get(..size_of::<T>()).ok_or(StatusCode::NOT_ENOUGH_DATA)?;
        T::read_from_bytes(bytes).map_err(|_| StatusCode::NOT_ENOUGH_DATA)
    }

    /// Takes the listed object that stands here.
    #[inline]
    fn take_listed<T: FromBytes>(&mut self) -> Read<(usize, T)> {
        let value = self.peek()?;
        let index = self.listed_here().ok_or(StatusCode::BAD_TYPE)?;
        self.at += size_of::<T>();
        self.next = index + 1;
        Ok((index, value))
    }

    /// The bytes that a listed PTR object describes.
    #[inline]
    fn described(&self, index: usize, ptr: &BufferObject) -> Read<&'t [u8]> {
        if ptr.length == 0 {
            return Ok(&[]);
        }
        let bytes = match self.source {
            Source::Received(runtime) => runtime.lent(ptr.buffer, ptr.length),
            Source::Parcel(parcel) => parcel.described(index),
            Source::Image { area, base } => {
                let start = ptr.buffer.checked_sub(base).and_then(|start| usize::try_from(start).ok());
                let rest = start.and_then(|start| area.get(start..));
                usize::try_from(ptr.length).ok().and_then(|len| rest?.get(..len))
            }
        };
        bytes.filter(|bytes| bytes.len() as u64 == ptr.length).ok_or(StatusCode::BAD_VALUE)
    }

    /// Takes a PTR object that must describe `len` bytes.
    #[inline]
    fn take_ptr(&mut self, len: u64, check: impl FnOnce(&BufferObject) -> bool) -> Read<Seen<'t>> {
        let (index, ptr) = self.take_listed::<BufferObject>()?;
        if ptr.kind != object::PTR {
            return Err(StatusCode::BAD_TYPE);
        }
        if ptr.length != len || !check(&ptr) {
            return Err(StatusCode::BAD_VALUE);
        }
        Ok(Seen { bytes: self.described(index, &ptr)?, object: index as u64 })
    }

    /// Takes one that nothing points to.
    #[inline]
    fn take_top(&mut self, len: u64) -> Read<Seen<'t>> {
        self.take_ptr(len, |ptr| ptr.flags == 0)
    }

    /// Takes one that a pointer in another points to.
    #[inline]
    fn take_child(&mut self, len: u64, parent: Seen<'t>, offset: usize) -> Read<Seen<'t>> {
        let pointer: u64 = parent.field(offset)?;
        self.take_ptr(len, |ptr| {
            ptr.flags == object::BUFFER_FLAG_HAS_PARENT
                && ptr.parent == parent.object
                && ptr.parent_offset == offset as u64
                && ptr.buffer == pointer
        })
    }

    /// Takes the PTR object that libhidl writes for nothing: no address, no bytes, not listed.
    fn take_unlisted_null(&mut self) -> bool {
        let null = |ptr: BufferObject| ptr.kind == object::PTR && ptr.buffer == 0 && ptr.length == 0;
        let found = self.peek().is_ok_and(null) && self.listed_here().is_none();
        if found {
            self.at += size_of::<BufferObject>();
        }
        found
    }

    /// The bytes that an embedded vector or string points to.
    #[inline]
    fn take_elements(&mut self, parent: Seen<'t>, offset: usize, size: usize, nul: bool) -> Read<Seen<'t>> {
        let count: u32 = parent.field(offset.checked_add(COUNT).ok_or(StatusCode::BAD_INDEX)?)?;
        if count == 0 && self.take_unlisted_null() {
            return Ok(Seen { bytes: &[], object: NO_OBJECT });
        }
        let len = u64::from(count).checked_mul(size as u64).ok_or(StatusCode::BAD_VALUE)?;
        self.take_child(len + u64::from(nul), parent, offset)
    }

    /// A structure of this many bytes.
    ///
    /// # Errors
    /// `BAD_TYPE`: no buffer stands here. `BAD_VALUE`: it is another one. `NOT_ENOUGH_DATA`.
    #[inline]
    pub fn read_struct(&mut self, len: usize) -> Read<Seen<'t>> {
        self.attempt(|reader| reader.take_top(len as u64))
    }

    /// `vec<uint8_t>`, in place.
    ///
    /// # Errors
    /// See [`Self::read_struct`].
    #[inline]
    pub fn read_bytes(&mut self) -> Read<&'t [u8]> {
        Ok(self.read_structs(1)?.bytes)
    }

    /// `vec<T>` of plain elements, in place.
    ///
    /// # Errors
    /// See [`Self::read_struct`].
    pub fn read_vec<T: FromBytes + KnownLayout + Immutable>(&mut self) -> Read<&'t [T]> {
        let bytes = self.read_structs(size_of::<T>())?.bytes;
        if bytes.is_empty() {
            return Ok(&[]);
        }
        // The driver puts buffers on 8-byte boundaries.
        <[T]>::ref_from_bytes(bytes).map_err(|_| StatusCode::BAD_VALUE)
    }

    /// `vec<T>` of structures of this size.
    ///
    /// # Errors
    /// See [`Self::read_struct`].
    #[inline]
    pub fn read_structs(&mut self, size: usize) -> Read<Seen<'t>> {
        if let Some(elements) = self.take_vec(size) {
            return Ok(elements);
        }
        self.attempt(|reader| {
            let vec = reader.take_top(VEC as u64)?;
            reader.take_elements(vec, 0, size, false)
        })
    }

    /// The elements of a vector as every sender writes it, both objects looked at at once: what most
    /// calls carry. `None`, and nothing taken, for any other, which the steps one by one accept or refuse.
    #[inline]
    fn take_vec(&mut self, size: usize) -> Option<Seen<'t>> {
        let [at, index] = [self.at as u64, self.next as u64];
        let [vec, elements]: [BufferObject; 2] =
            zerocopy::transmute!(*self.data[self.at..].first_chunk::<PAIR>()?);
        let listed: [u64; 2] = zerocopy::transmute!(*self.offsets.get(8 * self.next..)?.first_chunk::<16>()?);
        let is_vec = (vec.kind, vec.flags, vec.length) == (object::PTR, 0, VEC as u64);
        let is_child = (elements.kind, elements.flags) == (object::PTR, object::BUFFER_FLAG_HAS_PARENT)
            && (elements.parent, elements.parent_offset) == (index, 0);
        let is_behind = vec.buffer.checked_add(VEC as u64) == Some(elements.buffer);
        if listed != [at, at + (PAIR / 2) as u64] || !is_vec || !is_child || !is_behind {
            return None;
        }
        let both = BufferObject { length: elements.length.checked_add(VEC as u64)?, ..vec };
        let (structure, bytes) = self.described(self.next, &both).ok()?.split_first_chunk::<VEC>()?;
        let [pointer, count]: [u64; 2] = zerocopy::transmute!(*structure);
        let len = u64::from(count as u32).checked_mul(size as u64)?;
        if pointer != elements.buffer || elements.length != len {
            return None;
        }
        self.at += PAIR;
        self.next += 2;
        Some(Seen { bytes, object: index + 1 })
    }

    /// `string`, in place.
    ///
    /// # Errors
    /// See [`Self::read_struct`]; `BAD_VALUE` also for one without its NUL, or that is no text.
    pub fn read_str(&mut self) -> Read<&'t str> {
        self.attempt(|reader| {
            let string = reader.take_top(VEC as u64)?;
            reader.embedded_str(string, 0)
        })
    }

    /// `vec<string>`
    ///
    /// # Errors
    /// See [`Self::read_str`].
    pub fn read_str_vec(&mut self) -> Read<Vec<&'t str>> {
        self.attempt(|reader| {
            let vec = reader.take_top(VEC as u64)?;
            reader.embedded_str_vec(vec, 0)
        })
    }

    /// The elements of the `hidl_vec` at an offset of a structure. What is embedded must be read in
    /// the order of its pointers.
    ///
    /// # Errors
    /// See [`Self::read_struct`]; `BAD_INDEX`: there is no such offset.
    pub fn embedded_structs(&mut self, parent: Seen<'t>, offset: usize, size: usize) -> Read<Seen<'t>> {
        self.attempt(|reader| reader.take_elements(parent, offset, size, false))
    }

    /// The `hidl_string` at an offset of a structure.
    ///
    /// # Errors
    /// See [`Self::read_str`] and [`Self::embedded_structs`].
    pub fn embedded_str(&mut self, parent: Seen<'t>, offset: usize) -> Read<&'t str> {
        self.attempt(|reader| {
            let bytes = match reader.take_elements(parent, offset, 1, true)?.bytes.split_last() {
                Some((0, bytes)) => bytes,
                Some(_) => return Err(StatusCode::BAD_VALUE),
                None => &[],
            };
            str::from_utf8(bytes).map_err(|_| StatusCode::BAD_VALUE)
        })
    }

    /// The `hidl_vec<hidl_string>` at an offset of a structure.
    ///
    /// # Errors
    /// See [`Self::embedded_str`].
    pub fn embedded_str_vec(&mut self, parent: Seen<'t>, offset: usize) -> Read<Vec<&'t str>> {
        self.attempt(|reader| {
            let array = reader.take_elements(parent, offset, VEC, false)?;
            // The count is bounded by the bytes present; each element has an object of its own still to come.
            (0..array.bytes.len() / VEC).map(|index| reader.embedded_str(array, VEC * index)).collect()
        })
    }

    /// `handle`; the descriptors are duplicates, the reader's own.
    ///
    /// # Errors
    /// See [`Self::read_struct`]; `NO_MEMORY`: no descriptor is free.
    pub fn read_handle(&mut self) -> Read<Option<NativeHandle>> {
        self.attempt(|reader| reader.take_handle(None))
    }

    /// The `hidl_handle` at an offset of a structure.
    ///
    /// # Errors
    /// See [`Self::read_handle`] and [`Self::embedded_structs`].
    pub fn embedded_handle(&mut self, parent: Seen<'t>, offset: usize) -> Read<Option<NativeHandle>> {
        self.attempt(|reader| reader.take_handle(Some((parent, offset))))
    }

    fn take_handle(&mut self, parent: Option<(Seen<'t>, usize)>) -> Read<Option<NativeHandle>> {
        let size = self.read_u64()?;
        if size == 0 {
            return Ok(None);
        }
        let seen = match parent {
            None => self.take_top(size)?,
            Some((parent, offset)) => self.take_child(size, parent, offset)?,
        };
        let (version, fds, ints): (u32, u32, u32) = (seen.field(0)?, seen.field(4)?, seen.field(8)?);
        let numbers = u64::from(fds) + u64::from(ints);
        if version != NATIVE_HANDLE as u32 || size != NATIVE_HANDLE as u64 + 4 * numbers {
            return Err(StatusCode::BAD_VALUE);
        }
        // Without its object the numbers are the sender's, and name anything of this process.
        let (_, array) = self.take_listed::<FdArrayObject>()?;
        if array.kind != object::FDA {
            return Err(StatusCode::BAD_TYPE);
        }
        if array.parent != seen.object
            || array.parent_offset != NATIVE_HANDLE as u64
            || array.num_fds != u64::from(fds)
        {
            return Err(StatusCode::BAD_VALUE);
        }
        let words = seen.bytes[NATIVE_HANDLE..].as_chunks::<4>().0;
        let (fds, ints) = words.split_at_checked(fds as usize).ok_or(StatusCode::BAD_VALUE)?;
        let fds = fds.iter().map(|fd| self.duplicate(i32::from_le_bytes(*fd))).collect::<Read<_>>()?;
        Ok(Some(NativeHandle { fds, ints: ints.iter().map(|int| i32::from_le_bytes(*int)).collect() }))
    }

    /// A descriptor that the driver made for this buffer, and closes with it (contract OBJ-13).
    fn duplicate(&self, number: i32) -> Read<std::os::fd::OwnedFd> {
        if matches!(self.source, Source::Image { .. }) {
            return Err(StatusCode::BAD_TYPE);
        }
        driver::duplicate_descriptor(number).map_err(|_| StatusCode::NO_MEMORY)
    }

    /// An interface.
    ///
    /// # Errors
    /// `BAD_TYPE`: none stands here. `UNEXPECTED_NULL`. `NOT_ENOUGH_DATA`.
    pub fn read_binder(&mut self) -> Read<HwBinder> {
        self.attempt(|reader| reader.read_nullable_binder()?.ok_or(StatusCode::UNEXPECTED_NULL))
    }

    /// A nullable interface.
    ///
    /// # Errors
    /// See [`Self::read_binder`].
    pub fn read_nullable_binder(&mut self) -> Read<Option<HwBinder>> {
        self.attempt(|reader| {
            let flat: FlatBinderObject = reader.peek()?;
            if reader.listed_here().is_none() {
                reader.at += size_of::<FlatBinderObject>();
                return if is_null(&flat) { Ok(None) } else { Err(StatusCode::BAD_TYPE) };
            }
            let at = reader.at as u64;
            let (_, flat) = reader.take_listed::<FlatBinderObject>()?;
            let binder = match reader.source {
                Source::Received(runtime) => Binder::delivered(runtime, &flat)?,
                Source::Parcel(parcel) => parcel.held_binder(at).cloned().ok_or(StatusCode::BAD_TYPE)?,
                Source::Image { .. } => return Err(StatusCode::BAD_TYPE),
            };
            Ok(Some(HwBinder::from(binder)))
        })
    }
}
