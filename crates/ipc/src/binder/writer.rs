//! Writing AIDL values.
//! Not here: reading them (`reader`), headers (`header`, `status`).
//! Facts: `Parcel.cpp` of Android 8 to 16. Everything is padded to 4 bytes and nothing aligned to 8.

#[cfg(test)]
mod tests;

use std::os::fd::{AsRawFd, OwnedFd};

use abi::codes::{flat, object};
use abi::layout::{FdObject, FlatBinderObject};
use zerocopy::{Immutable, IntoBytes};

use crate::binder::parcel::{Held, Parcel};
use crate::binder::stability::Stability;
use crate::release::Release;
use crate::runtime::target::{Binder, null_object};

/// The length of a null array or string.
const NULL: i32 = -1;
/// Minimum priority that libbinder writes into every object: nice 19.
const LIBBINDER_PRIORITY: u32 = 19;

/// The length word of an array. Longer ones than this do not fit any receiving area.
fn length(elements: usize) -> i32 {
    i32::try_from(elements).unwrap_or(i32::MAX)
}

/// One word each.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident($ty:ty) as $wire:ty;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self, value: $ty) {
            self.bytes_mut().extend_from_slice(&<$wire>::from(value).to_le_bytes());
        }
    )*};
}

impl Parcel {
    words! {
        /// A 32-bit integer.
        write_i32(i32) as i32;
        /// An unsigned 32-bit integer.
        write_u32(u32) as u32;
        /// A 64-bit integer.
        write_i64(i64) as i64;
        /// An unsigned 64-bit integer.
        write_u64(u64) as u64;
        /// A float.
        write_f32(f32) as f32;
        /// A double.
        write_f64(f64) as f64;
        /// A bool, as one word.
        write_bool(bool) as i32;
        /// A byte, sign-extended to a word.
        write_i8(i8) as i32;
        /// A UTF-16 unit, as one word.
        write_char(u16) as i32;
    }

    fn pad(&mut self) {
        let bytes = self.bytes_mut();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }

    /// An array of numbers that stand as they are, such as `int[]`.
    #[inline]
    pub fn write_packed<T: IntoBytes + Immutable>(&mut self, values: &[T]) {
        self.write_length(values.len());
        self.bytes_mut().extend_from_slice(values.as_bytes());
        self.pad();
    }

    /// [`Self::write_packed`] of what an iterator yields.
    pub fn write_packed_from<T: IntoBytes + Immutable>(&mut self, values: impl ExactSizeIterator<Item = T>) {
        self.write_length(values.len());
        for value in values {
            self.bytes_mut().extend_from_slice(value.as_bytes());
        }
        self.pad();
    }

    /// `byte[]`
    #[inline]
    pub fn write_byte_slice(&mut self, values: &[u8]) {
        self.write_packed(values);
    }

    /// The length of an array, whose elements follow.
    #[inline]
    pub fn write_length(&mut self, elements: usize) {
        self.write_i32(length(elements));
    }

    /// A null array, string or `byte[]`.
    pub fn write_null(&mut self) {
        self.write_i32(NULL);
    }

    /// A nullable `byte[]`.
    pub fn write_nullable_byte_slice(&mut self, values: Option<&[u8]>) {
        match values {
            Some(values) => self.write_byte_slice(values),
            None => self.write_null(),
        }
    }

    /// An array of anything: the length, then one element after the other.
    pub fn write_slice<T>(&mut self, values: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.write_length(values.len());
        for value in values {
            write(self, value);
        }
    }

    /// `String[]`
    pub fn write_str_slice<S: AsRef<str>>(&mut self, values: &[S]) {
        self.write_slice(values, |parcel, value| parcel.write_str(value.as_ref()));
    }

    /// A `String`: UTF-16 with its length in units and a NUL.
    #[inline]
    pub fn write_str(&mut self, value: &str) {
        if value.is_ascii() {
            self.write_i32(length(value.len()));
            let bytes = self.bytes_mut();
            let start = bytes.len();
            bytes.resize((start + 2 * value.len() + 2).next_multiple_of(4), 0);
            for (unit, byte) in bytes[start..].as_chunks_mut::<2>().0.iter_mut().zip(value.bytes()) {
                *unit = u16::from(byte).to_le_bytes();
            }
        } else {
            self.write_i32(length(value.encode_utf16().count()));
            self.bytes_mut().extend(value.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
            self.pad();
        }
    }

    /// A nullable `String`.
    pub fn write_nullable_str(&mut self, value: Option<&str>) {
        match value {
            Some(value) => self.write_str(value),
            None => self.write_null(),
        }
    }

    /// libbinder's `String8`: bytes with their length and a NUL.
    pub fn write_string8(&mut self, value: Option<&str>) {
        let Some(value) = value else { return self.write_null() };
        self.write_i32(length(value.len()));
        self.bytes_mut().extend_from_slice(value.as_bytes());
        self.bytes_mut().push(0);
        self.pad();
    }

    /// The body of a structured parcelable: its size, itself counted, then its fields.
    pub fn write_sized<T>(&mut self, fields: impl FnOnce(&mut Self) -> T) -> T {
        let start = self.data().len();
        self.write_i32(0);
        let written = fields(self);
        let size = length(self.data().len() - start);
        if let Some(word) = self.bytes_mut().get_mut(start..start + 4) {
            word.copy_from_slice(&size.to_le_bytes());
        }
        written
    }

    /// A binder; the parcel keeps it alive until the driver has it.
    pub fn write_binder(&mut self, binder: &Binder) {
        self.write_nullable_binder_as(Some(binder), Stability::System);
    }

    /// A nullable binder.
    pub fn write_nullable_binder(&mut self, binder: Option<&Binder>) {
        self.write_nullable_binder_as(binder, Stability::System);
    }

    /// A nullable binder with a given stability, for passing on one that was received.
    pub fn write_nullable_binder_as(&mut self, binder: Option<&Binder>, stability: Stability) {
        let stability = match binder {
            None => {
                self.bytes_mut().extend_from_slice(null_object(LIBBINDER_PRIORITY).as_bytes());
                Stability::Undeclared
            }
            Some(binder) => {
                // Drivers ignore a handle's flags; libbinder dropped one of them in 13.
                let accepts = if self.release() < Release::Android13 { flat::ACCEPTS_FDS } else { 0 };
                let flat = binder.flat(LIBBINDER_PRIORITY | accepts);
                self.push_object(flat.as_bytes(), Held::Binder(binder.clone()));
                stability
            }
        };
        if let Some(word) = stability.word(self.release().generation()) {
            self.write_i32(word);
        }
    }

    /// A binder as a weak object, without a stability: its receiver cannot call it, and [`crate::binder::Reader`] does not
    /// read it. The parcel keeps it alive until the driver has it.
    pub fn write_weak_binder(&mut self, binder: &Binder) {
        let flat = binder.flat(LIBBINDER_PRIORITY);
        let own = flat.kind == object::BINDER;
        let kind = if own { object::WEAK_BINDER } else { object::WEAK_HANDLE };
        self.push_object(FlatBinderObject { kind, ..flat }.as_bytes(), Held::Binder(binder.clone()));
    }

    /// A file descriptor, which the parcel closes when the driver has its file.
    pub fn write_fd(&mut self, fd: impl Into<OwnedFd>) {
        let fd = fd.into();
        // A valid descriptor is not negative. The cookie is libbinder's mark of an owned one.
        let object = FdObject {
            kind: object::FD,
            pad_flags: 0,
            fd: u64::from(fd.as_raw_fd().unsigned_abs()),
            cookie: 1,
        };
        self.push_object(object.as_bytes(), Held::Fd(fd));
    }
}
