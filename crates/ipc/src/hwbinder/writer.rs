//! Writing HIDL values: bytes, objects and structures.
//! Not here: reading them (`reader`), the status word (`status`).
//! Facts: libhwbinder's `Parcel.cpp`, libhidl's `HidlBinderSupport.cpp` and the sizes of its types.
//! Scalars keep their own size and are padded to 4; everything else is a PTR object, and what it
//! points to follows it, depth first.

#[cfg(test)]
mod tests;

use std::os::fd::AsRawFd;

use abi::codes::{flat, object};
use abi::layout::FdArrayObject;
use zerocopy::{Immutable, IntoBytes};

use crate::hwbinder::hw_binder::HwBinder;
use crate::hwbinder::parcel::{Held, HwParcel, NativeHandle, Part};
use crate::runtime::target::null_object;

/// Bytes of `hidl_vec` and `hidl_string`: pointer, count, ownership.
pub(crate) const VEC: usize = 16;
/// Where the count stands in them.
pub(crate) const COUNT: usize = 8;
/// The ownership mark behind it; it means nothing to a receiver.
const OWNS: [u8; 4] = [1, 0, 0, 0];
/// Where the mark stands in `hidl_handle`.
const HANDLE_OWNS: usize = 8;
/// Bytes of a `native_handle` in front of its numbers, and what its first word says.
pub(crate) const NATIVE_HANDLE: usize = 12;

/// A count of elements. More than this do not fit any receiving area.
fn count(elements: usize) -> u32 {
    u32::try_from(elements).unwrap_or(u32::MAX)
}

/// The second word of `hidl_vec` and `hidl_string`: count and ownership.
#[inline]
fn count_word(elements: usize) -> u64 {
    let [a, b, c, d] = count(elements).to_le_bytes();
    let [e, f, g, h] = OWNS;
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// The bytes of a text before its first NUL.
#[inline]
fn until_nul(text: &str) -> &[u8] {
    let bytes = text.as_bytes();
    match bytes.contains(&0) {
        false => bytes,
        true => bytes.split(|byte| *byte == 0).next().unwrap_or_default(),
    }
}

/// Scalars: their own bytes, padded to 4.
macro_rules! scalars {
    ($($(#[$doc:meta])* $name:ident($ty:ty);)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self, value: $ty) {
            self.write_padded(&value.to_le_bytes());
        }
    )*};
}

impl<'a> HwParcel<'a> {
    scalars! {
        /// `int8_t`
        write_i8(i8);
        /// `uint8_t`
        write_u8(u8);
        /// `int16_t`
        write_i16(i16);
        /// `uint16_t`
        write_u16(u16);
        /// `int32_t`
        write_i32(i32);
        /// `uint32_t`
        write_u32(u32);
        /// `int64_t`
        write_i64(i64);
        /// `uint64_t`
        write_u64(u64);
        /// `float`
        write_f32(f32);
        /// `double`
        write_f64(f64);
    }

    /// `bool`
    pub fn write_bool(&mut self, value: bool) {
        self.write_u8(value.into());
    }

    /// Appends one or more bytes and zeros up to a multiple of 4.
    #[inline]
    fn write_padded(&mut self, bytes: &[u8]) {
        let data = self.bytes_mut();
        data.extend_from_slice(bytes);
        data.extend_from_slice(&[0; 3][..bytes.len().wrapping_neg() % 4]);
    }

    /// A C string: bytes and a NUL, no length. A NUL inside ends it.
    #[inline]
    pub fn write_c_str(&mut self, value: &str) {
        let value = until_nul(value);
        let data = self.bytes_mut();
        data.extend_from_slice(value);
        // The NUL is the first of them.
        data.extend_from_slice(&[0; 4][data.len() % 4..]);
    }

    /// The header of a request: the name of the interface that declares the method.
    #[inline]
    pub fn write_header(&mut self, descriptor: &str) {
        self.write_c_str(descriptor);
    }

    /// UTF-16 with its length in units and a NUL, which HIDL uses for messages of failures alone.
    pub fn write_string16(&mut self, value: &str) {
        self.write_u32(count(value.encode_utf16().count()));
        let data = self.bytes_mut();
        data.extend(value.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        data.resize(data.len().next_multiple_of(4), 0);
    }

    /// `vec<T>` of plain elements, which stay where they are until the driver has them.
    #[inline]
    pub fn write_vec<T: IntoBytes + Immutable>(&mut self, values: &'a [T]) {
        self.push_vec(count_word(values.len()), values.as_bytes());
    }

    /// `string`
    pub fn write_str(&mut self, value: &str) {
        let string = self.push_own(VEC, None);
        self.embed_str(string, 0, value);
    }

    /// `vec<string>`
    pub fn write_str_vec<S: AsRef<str>>(&mut self, values: &[S]) {
        let vec = self.push_own(VEC, None);
        self.embed_str_vec(vec, 0, values);
    }

    /// `vec<T>` of elements that others are embedded in: as many zeros, to be filled in.
    pub fn write_structs(&mut self, elements: usize, size: usize) -> Part {
        let vec = self.push_own(VEC, None);
        self.embed_structs(vec, 0, elements, size)
    }

    /// A structure: a copy of its bytes, with anything where it has pointers. What it points to must
    /// follow, in the order of the pointers, before anything else is written.
    pub fn write_struct(&mut self, bytes: &[u8]) -> Part {
        let part = self.push_own(bytes.len(), None);
        self.put_own(part, 0, bytes);
        part
    }

    /// A structure without pointers, which stays where it is until the driver has it.
    pub fn write_plain_struct<T: IntoBytes + Immutable>(&mut self, value: &'a T) {
        self.push_lent(value.as_bytes(), None);
    }

    /// Sets bytes of a structure of this parcel; what would be outside it is ignored.
    pub fn set(&mut self, part: Part, offset: usize, bytes: &[u8]) {
        self.put_own(part, offset, bytes);
    }

    /// A `hidl_vec` at an offset of a structure, of plain elements that stay where they are. An empty
    /// one has an object all the same, with an address and no bytes: every reader takes that.
    #[inline]
    pub fn embed_vec<T: IntoBytes + Immutable>(&mut self, parent: Part, offset: usize, values: &'a [T]) {
        self.put_vec(parent, offset, values.len());
        self.push_lent(values.as_bytes(), Some((parent, offset)));
    }

    /// A `hidl_vec` at an offset of a structure, of elements to be filled in.
    pub fn embed_structs(&mut self, parent: Part, offset: usize, elements: usize, size: usize) -> Part {
        self.put_vec(parent, offset, elements);
        self.push_own(elements.saturating_mul(size), Some((parent, offset)))
    }

    /// A `hidl_string` at an offset of a structure. A NUL inside ends it.
    pub fn embed_str(&mut self, parent: Part, offset: usize, value: &str) {
        let value = until_nul(value);
        self.put_vec(parent, offset, value.len());
        let bytes = self.push_own(value.len() + 1, Some((parent, offset)));
        self.put_own(bytes, 0, value);
    }

    /// A `hidl_vec<hidl_string>` at an offset of a structure.
    pub fn embed_str_vec<S: AsRef<str>>(&mut self, parent: Part, offset: usize, values: &[S]) {
        let array = self.embed_structs(parent, offset, values.len(), VEC);
        for (index, value) in values.iter().enumerate() {
            self.embed_str(array, VEC * index, value.as_ref());
        }
    }

    #[inline]
    fn put_vec(&mut self, parent: Part, offset: usize, elements: usize) {
        self.put_own(parent, offset.saturating_add(COUNT), &count_word(elements).to_ne_bytes());
    }

    /// `handle`; the parcel closes its descriptors when the driver has their files.
    pub fn write_handle(&mut self, handle: Option<NativeHandle>) {
        self.push_handle(handle, None);
    }

    /// A `hidl_handle` at an offset of a structure.
    pub fn embed_handle(&mut self, parent: Part, offset: usize, handle: Option<NativeHandle>) {
        if handle.is_some() {
            self.put_own(parent, offset.saturating_add(HANDLE_OWNS), &OWNS);
        }
        self.push_handle(handle, Some((parent, offset)));
    }

    fn push_handle(&mut self, handle: Option<NativeHandle>, parent: Option<(Part, usize)>) {
        let Some(NativeHandle { fds, ints }) = handle else { return self.write_u64(0) };
        let size = NATIVE_HANDLE + 4 * (fds.len() + ints.len());
        self.write_u64(size as u64);
        let part = self.push_own(size, parent);
        let head = [NATIVE_HANDLE as u32, count(fds.len()), count(ints.len())];
        let numbers = fds.iter().map(|fd| fd.as_raw_fd()).chain(ints);
        let words = head.into_iter().map(u32::cast_signed).chain(numbers);
        for (index, word) in words.enumerate() {
            self.put_own(part, 4 * index, &word.to_le_bytes());
        }
        let array = FdArrayObject {
            kind: object::FDA,
            pad: 0,
            num_fds: fds.len() as u64,
            parent: part.object() as u64,
            parent_offset: NATIVE_HANDLE as u64,
        };
        self.push_object(array.as_bytes());
        for fd in fds {
            self.hold(Held::Fd { _open: fd });
        }
    }

    /// An interface; the parcel keeps it alive until the driver has it.
    pub fn write_binder(&mut self, binder: &HwBinder) {
        let flat = binder.as_binder().flat(flat::ACCEPTS_FDS);
        self.push_object(flat.as_bytes());
        self.hold(Held::Binder(binder.as_binder().clone()));
    }

    /// A nullable interface.
    pub fn write_nullable_binder(&mut self, binder: Option<&HwBinder>) {
        match binder {
            Some(binder) => self.write_binder(binder),
            None => self.bytes_mut().extend_from_slice(null_object(0).as_bytes()),
        }
    }
}
