//! Reading HIDL values in place from untrusted bytes.
//! Not here: buffers, structures and objects (`objects`), writing (`writer`), the status (`status`).
//! Facts: libhwbinder's `Parcel.cpp`: what it checks of each object.
//!
//! A vector is a slice of the receiving area: nothing is copied. Invalid data is an error and
//! leaves the position unchanged; nothing panics. Addresses are looked up in the receiving area, never followed.

mod objects;
#[cfg(test)]
mod tests;

use zerocopy::IntoBytes;

use crate::hwbinder::parcel::HwParcel;
use crate::runtime::Runtime;
use crate::runtime::received::Lent;
use crate::status_code::StatusCode;

pub use objects::Seen;

type Read<T> = Result<T, StatusCode>;

/// Where the objects and what they describe come from.
#[derive(Clone, Copy)]
enum Source<'t> {
    Received(&'t dyn Runtime),
    /// A parcel of this process that was never sent.
    Parcel(&'t HwParcel<'t>),
    Image {
        area: &'t [u8],
        base: u64,
    },
}

/// A payload without a driver: what a receiver would see, for tests and tools.
#[derive(Clone, Copy, Debug)]
pub struct Image<'t> {
    /// The payload.
    pub data: &'t [u8],
    /// The offsets, 8 bytes each.
    pub offsets: &'t [u8],
    /// The area that its objects' addresses lie in.
    pub area: &'t [u8],
    /// The address of the area's first byte.
    pub base: u64,
}

/// A position in a payload.
#[derive(Clone, Copy)]
pub struct Reader<'t> {
    data: &'t [u8],
    at: usize,
    /// Where each object stands, 8 bytes each.
    offsets: &'t [u8],
    /// The object that is expected next.
    next: usize,
    source: Source<'t>,
}

/// Scalars, which keep their size and are padded to 4.
macro_rules! scalars {
    ($($(#[$doc:meta])* $name:ident() -> $ty:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// `NOT_ENOUGH_DATA`
        #[inline]
        pub fn $name(&mut self) -> Read<$ty> {
            Ok(<$ty>::from_le_bytes(self.take_chunk()?))
        }
    )*};
}

impl HwParcel<'_> {
    /// Reads it from its beginning, as its receiver in this process will.
    pub(crate) fn sealed_reader(&self) -> Reader<'_> {
        Reader::of_parcel(self)
    }
}

impl<'t> Reader<'t> {
    /// Reads a payload without a driver. It has no binders and no descriptors.
    #[must_use]
    pub fn of_image(image: Image<'t>) -> Self {
        let Image { data, offsets, area, base } = image;
        Self { data, at: 0, offsets, next: 0, source: Source::Image { area, base } }
    }

    pub(crate) fn of_parcel(parcel: &'t HwParcel<'t>) -> Self {
        let (data, offsets) = (parcel.data(), parcel.offsets().as_bytes());
        Self { data, at: 0, offsets, next: 0, source: Source::Parcel(parcel) }
    }

    #[inline]
    pub(crate) fn of_received(lent: Lent<'t>) -> Self {
        let Lent { runtime, data, offsets } = lent;
        Self { data, at: 0, offsets, next: 0, source: Source::Received(runtime) }
    }

    /// Bytes from the beginning.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes that are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.data.len() - self.at
    }

    /// The next bytes and their padding; the last item of a payload may lack its padding.
    #[inline]
    fn take(&mut self, len: usize) -> Read<&'t [u8]> {
        let bytes = self.data[self.at..].get(..len).ok_or(StatusCode::NOT_ENOUGH_DATA)?;
        self.at = (self.at + len.next_multiple_of(4)).min(self.data.len());
        Ok(bytes)
    }

    #[inline]
    fn take_chunk<const N: usize>(&mut self) -> Read<[u8; N]> {
        let chunk = *self.data[self.at..].first_chunk().ok_or(StatusCode::NOT_ENOUGH_DATA)?;
        self.at = (self.at + const { N.next_multiple_of(4) }).min(self.data.len());
        Ok(chunk)
    }

    /// All of a read or nothing.
    #[inline]
    fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        let (at, next) = (self.at, self.next);
        let result = read(self);
        if result.is_err() {
            (self.at, self.next) = (at, next);
        }
        result
    }

    scalars! {
        /// `int8_t`
        read_i8() -> i8;
        /// `uint8_t`
        read_u8() -> u8;
        /// `int16_t`
        read_i16() -> i16;
        /// `uint16_t`
        read_u16() -> u16;
        /// `int32_t`
        read_i32() -> i32;
        /// `uint32_t`
        read_u32() -> u32;
        /// `int64_t`
        read_i64() -> i64;
        /// `uint64_t`
        read_u64() -> u64;
        /// `float`
        read_f32() -> f32;
        /// `double`
        read_f64() -> f64;
    }

    /// `bool`: anything but 0 is true.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`
    pub fn read_bool(&mut self) -> Read<bool> {
        Ok(self.read_u8()? != 0)
    }

    /// A C string.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`: it does not end. `BAD_VALUE`: it is no text.
    pub fn read_c_str(&mut self) -> Read<&'t str> {
        self.attempt(|reader| {
            let rest = &reader.data[reader.at..];
            let len = rest.iter().position(|byte| *byte == 0).ok_or(StatusCode::NOT_ENOUGH_DATA)?;
            let text = str::from_utf8(&rest[..len]).map_err(|_| StatusCode::BAD_VALUE)?;
            reader.take(len + 1)?;
            Ok(text)
        })
    }

    /// The header of a call to an object of these interfaces: which one the method belongs to.
    ///
    /// # Errors
    /// `BAD_TYPE`: the call is for another interface, or there is no header.
    #[inline]
    pub fn read_header<'i>(&mut self, interfaces: &[&'i str]) -> Read<&'i str> {
        let rest = &self.data[self.at..];
        let named =
            |name: &&&str| rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0));
        let name = interfaces.iter().find(named).ok_or(StatusCode::BAD_TYPE)?;
        self.take(name.len() + 1)?;
        Ok(name)
    }

    /// UTF-16 with its length in units and a NUL.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`. `BAD_VALUE`: it is no text.
    pub fn read_string16(&mut self) -> Read<String> {
        self.attempt(|reader| {
            let units = usize::try_from(reader.read_u32()?).map_err(|_| StatusCode::NOT_ENOUGH_DATA)?;
            let bytes = units.checked_add(1).and_then(|units| units.checked_mul(2));
            let bytes = reader.take(bytes.ok_or(StatusCode::NOT_ENOUGH_DATA)?)?;
            let text = bytes[..2 * units].as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
            char::decode_utf16(text).collect::<Result<_, _>>().map_err(|_| StatusCode::BAD_VALUE)
        })
    }
}
