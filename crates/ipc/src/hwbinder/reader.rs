//! Room: HIDL values out of bytes that a stranger wrote, where the driver put them.
//! Not here: buffers, structures and objects (`objects`), writing (`writer`), the status (`status`).
//! Facts: libhwbinder's `Parcel.cpp`: what it checks of each object.
//!
//! A vector is a slice of the receiving area: nothing is copied. What cannot be is an error and
//! leaves the position where it was found; nothing panics, and no address is followed: the driver's
//! receiving area is asked for it.

mod objects;
#[cfg(test)]
mod tests;
mod vector;

use abi::layout::BufferObject;
use zerocopy::IntoBytes;

use crate::hwbinder::parcel::HwParcel;
use crate::received::{Lent, objects_of};
use crate::runtime::Runtime;
use crate::status_code::StatusCode;

pub use objects::Seen;

type Read<T> = Result<T, StatusCode>;

/// Bytes of a vector's two objects.
const PAIR: usize = 2 * size_of::<BufferObject>();

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
    /// Of a vector whose objects, the only ones, were left out behind the data: structure and elements. Else
    /// nothing. Positions count as if they stood there.
    vector: &'t [u8],
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

impl<'t> Reader<'t> {
    /// Reads a payload without a driver. It has no binders and no descriptors.
    #[must_use]
    pub fn of_image(image: Image<'t>) -> Self {
        let Image { data, offsets, area, base } = image;
        Self { data, at: 0, offsets, next: 0, vector: &[], source: Source::Image { area, base } }
    }

    /// Reads data that ends with a vector whose objects were left out, without a driver. `vector`: structure,
    /// which points behind itself, and elements.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) fn of_bare(data: &'t [u8], vector: &'t [u8]) -> Self {
        let source = Source::Image { area: vector, base: vector.as_ptr() as u64 };
        Self { data, at: 0, offsets: &[], next: 0, vector, source }
    }

    pub(crate) fn of_parcel(parcel: &'t HwParcel<'t>) -> Self {
        let (data, offsets) = (parcel.data(), parcel.offsets().as_bytes());
        Self { data, at: 0, offsets, next: 0, vector: &[], source: Source::Parcel(parcel) }
    }

    #[inline]
    pub(crate) fn of_received(lent: Lent<'t>) -> Self {
        let Lent { runtime, data, offsets, vector } = lent;
        Self { data, at: 0, offsets, next: 0, vector, source: Source::Received(runtime) }
    }

    /// Bytes from the beginning.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes that are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.len() - self.at
    }

    /// Bytes of the payload.
    #[inline]
    fn len(&self) -> usize {
        self.data.len() + if self.vector.is_empty() { 0 } else { PAIR }
    }

    /// What is left of the bytes that are there.
    #[inline]
    fn rest(&self) -> &'t [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    /// The next bytes and their padding; the last item of a payload may lack its padding.
    #[inline]
    fn take(&mut self, len: usize) -> Read<&'t [u8]> {
        let bytes = self.rest().get(..len).ok_or(StatusCode::NOT_ENOUGH_DATA)?;
        self.at = (self.at + len.next_multiple_of(4)).min(self.len());
        Ok(bytes)
    }

    #[inline]
    fn take_chunk<const N: usize>(&mut self) -> Read<[u8; N]> {
        let chunk = match self.rest().first_chunk() {
            Some(chunk) => *chunk,
            None => {
                let mut chunk = [0; N];
                self.left_out(&mut chunk)?;
                chunk
            }
        };
        self.at = (self.at + const { N.next_multiple_of(4) }).min(self.len());
        Ok(chunk)
    }

    /// Fills in what comes next, as far as it is in objects that were left out.
    #[cold]
    fn left_out(&self, into: &mut [u8]) -> Read<()> {
        if self.remaining() < into.len() {
            return Err(StatusCode::NOT_ENOUGH_DATA);
        }
        let objects = objects_of(self.vector);
        let behind = self.at.saturating_sub(self.data.len());
        let bytes = self.rest().iter().chain(objects.as_bytes().iter().skip(behind));
        into.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        Ok(())
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
            let rest = reader.rest();
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
        let rest = self.rest();
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
