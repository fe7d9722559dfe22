//! Room: buffers, what is embedded in them, handles and interfaces out of a payload.
//! Not here: scalars (`reader`), who owns what was delivered (`crate::received`).
//! Facts: libhwbinder's `verifyBufferObject`, libgbinder's reader, contract OBJ-15 to OBJ-20.
//!
//! Only an object that its sender listed was looked at by the driver; its address is the driver's.
//! Everything else about it is the sender's claim and compared with what must stand there.

use abi::codes::object;
use abi::layout::{BufferObject, FdArrayObject, FlatBinderObject};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{PAIR, Read, Reader, Source};
use crate::hwbinder::client::HwBinder;
use crate::hwbinder::parcel::NativeHandle;
use crate::hwbinder::writer::{COUNT, NATIVE_HANDLE, VEC};
use crate::received::translated;
use crate::status_code::StatusCode;

/// A structure, or an array of them, where the driver put it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'t> {
    pub(super) bytes: &'t [u8],
    /// Its index among the objects; [`NO_OBJECT`] for an empty one that was not listed.
    pub(super) object: u64,
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

/// A string's text.
fn text(seen: Seen<'_>) -> Read<&str> {
    let bytes = match seen.bytes.split_last() {
        Some((0, bytes)) => bytes,
        Some(_) => return Err(StatusCode::BAD_VALUE),
        None => &[],
    };
    str::from_utf8(bytes).map_err(|_| StatusCode::BAD_VALUE)
}

impl<'t> Reader<'t> {
    /// The position of an object, as its sender listed it.
    #[inline]
    fn offset(&self, index: usize) -> Option<u64> {
        if !self.vector.is_empty() {
            return (index < 2).then(|| (self.data.len() + index * (PAIR / 2)) as u64);
        }
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
        let (mut low, mut high) = (0, if self.vector.is_empty() { self.offsets.len() / 8 } else { 2 });
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
    pub(super) fn peek<T: FromBytes + IntoBytes>(&self) -> Read<T> {
        match self.rest().get(..size_of::<T>()) {
            Some(bytes) => T::read_from_bytes(bytes).map_err(|_| StatusCode::NOT_ENOUGH_DATA),
            None => {
                let mut value = T::new_zeroed();
                self.left_out(value.as_mut_bytes())?;
                Ok(value)
            }
        }
    }

    /// Takes the listed object that stands here.
    #[inline]
    fn take_listed<T: FromBytes + IntoBytes>(&mut self) -> Read<(usize, T)> {
        let value = self.peek()?;
        let index = self.listed_here().ok_or(StatusCode::BAD_TYPE)?;
        self.at += size_of::<T>();
        self.next = index + 1;
        Ok((index, value))
    }

    /// The bytes that a listed PTR object describes.
    #[inline]
    pub(super) fn described(&self, index: usize, ptr: &BufferObject) -> Read<&'t [u8]> {
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
    pub(super) fn take_top(&mut self, len: u64) -> Read<Seen<'t>> {
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

    /// What an embedded vector or string points to.
    #[inline]
    pub(super) fn take_elements(
        &mut self,
        parent: Seen<'t>,
        offset: usize,
        size: usize,
        nul: bool,
    ) -> Read<Seen<'t>> {
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
    /// As [`Self::read_struct`].
    #[inline]
    pub fn read_bytes(&mut self) -> Read<&'t [u8]> {
        Ok(self.read_structs(1)?.bytes)
    }

    /// `vec<T>` of plain elements, in place.
    ///
    /// # Errors
    /// As [`Self::read_struct`].
    pub fn read_vec<T: FromBytes + KnownLayout + Immutable>(&mut self) -> Read<&'t [T]> {
        let bytes = self.read_structs(size_of::<T>())?.bytes;
        if bytes.is_empty() {
            return Ok(&[]);
        }
        // The driver puts buffers on 8-byte boundaries.
        <[T]>::ref_from_bytes(bytes).map_err(|_| StatusCode::BAD_VALUE)
    }

    /// `string`, in place.
    ///
    /// # Errors
    /// As [`Self::read_struct`]; `BAD_VALUE` also for one without its NUL, or that is no text.
    pub fn read_str(&mut self) -> Read<&'t str> {
        self.attempt(|reader| match reader.take_left_out(1, true) {
            Some(seen) => text(seen),
            None => {
                let string = reader.take_top(VEC as u64)?;
                reader.embedded_str(string, 0)
            }
        })
    }

    /// `vec<string>`
    ///
    /// # Errors
    /// As [`Self::read_str`].
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
    /// As [`Self::read_struct`]; `BAD_INDEX`: there is no such offset.
    pub fn embedded_structs(&mut self, parent: Seen<'t>, offset: usize, size: usize) -> Read<Seen<'t>> {
        self.attempt(|reader| reader.take_elements(parent, offset, size, false))
    }

    /// The `hidl_string` at an offset of a structure.
    ///
    /// # Errors
    /// As [`Self::read_str`] and [`Self::embedded_structs`].
    pub fn embedded_str(&mut self, parent: Seen<'t>, offset: usize) -> Read<&'t str> {
        self.attempt(|reader| text(reader.take_elements(parent, offset, 1, true)?))
    }

    /// The `hidl_vec<hidl_string>` at an offset of a structure.
    ///
    /// # Errors
    /// As [`Self::embedded_str`].
    pub fn embedded_str_vec(&mut self, parent: Seen<'t>, offset: usize) -> Read<Vec<&'t str>> {
        self.attempt(|reader| {
            let array = reader.take_elements(parent, offset, VEC, false)?;
            // As many as lie there; each has an object of its own still to come.
            (0..array.bytes.len() / VEC).map(|index| reader.embedded_str(array, VEC * index)).collect()
        })
    }

    /// `handle`; the descriptors are duplicates, the reader's own.
    ///
    /// # Errors
    /// As [`Self::read_struct`]; `NO_MEMORY`: no descriptor is free.
    pub fn read_handle(&mut self) -> Read<Option<NativeHandle>> {
        self.attempt(|reader| reader.take_handle(None))
    }

    /// The `hidl_handle` at an offset of a structure.
    ///
    /// # Errors
    /// As [`Self::read_handle`] and [`Self::embedded_structs`].
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
    /// As [`Self::read_binder`].
    pub fn read_nullable_binder(&mut self) -> Read<Option<HwBinder>> {
        self.attempt(|reader| {
            let flat: FlatBinderObject = reader.peek()?;
            if reader.listed_here().is_none() {
                let null = flat.kind == object::BINDER && flat.binder == 0 && flat.cookie == 0;
                reader.at += size_of::<FlatBinderObject>();
                return if null { Ok(None) } else { Err(StatusCode::BAD_TYPE) };
            }
            let at = reader.at as u64;
            let (_, flat) = reader.take_listed::<FlatBinderObject>()?;
            let binder = match reader.source {
                Source::Received(runtime) => translated(runtime, &flat)?,
                Source::Parcel(parcel) => parcel.held_binder(at).cloned().ok_or(StatusCode::BAD_TYPE)?,
                Source::Image { .. } => return Err(StatusCode::BAD_TYPE),
            };
            Ok(Some(HwBinder::from(binder)))
        })
    }
}
