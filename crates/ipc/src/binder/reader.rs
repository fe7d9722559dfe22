//! Reading AIDL values from untrusted bytes.
//! Not here: binders and descriptors (`objects`), headers (`header`, `status`), writing (`writer`).
//! Facts: `Parcel.cpp` of Android 8 to 16 and what libgbinder and rsbinder really send.
//!
//! Every length is checked against what is there before anything is allocated for it. Invalid data is
//! an error and leaves the position unchanged; nothing panics.

mod objects;
#[cfg(test)]
mod tests;

use zerocopy::FromBytes;

use crate::binder::parcel::Parcel;
use crate::release::Release;
use crate::runtime::received::Received;
use crate::status_code::StatusCode;

type Read<T> = Result<T, StatusCode>;

/// Values of up to 1 KiB that may be within each other, and fewer of larger ones: more would end the reader's stack.
const DEEPEST: usize = 64;

/// Largest array that is read element by element, in bytes of memory. Null elements are small in a parcel only.
const LARGEST: usize = 16 << 20;

/// Where the objects come from.
#[derive(Clone, Copy)]
enum Source<'t> {
    Received(&'t Received<'t>),
    Parcel(&'t Parcel),
    Nothing,
}

/// A position in a payload.
#[derive(Clone, Copy)]
pub struct Reader<'t> {
    data: &'t [u8],
    at: usize,
    source: Source<'t>,
    release: Release,
    depth: usize,
}

/// One word each.
macro_rules! words {
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

impl Parcel {
    /// Reads it from its beginning, as its receiver will.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader::of_parcel(self)
    }
}

impl<'t> Reader<'t> {
    /// Reads bytes that carry no objects.
    #[must_use]
    pub fn of_bytes(data: &'t [u8]) -> Self {
        Self { data, at: 0, source: Source::Nothing, release: Release::default(), depth: 0 }
    }

    pub(crate) fn of_parcel(parcel: &'t Parcel) -> Self {
        Self {
            data: parcel.data(),
            at: 0,
            source: Source::Parcel(parcel),
            release: parcel.release(),
            depth: 0,
        }
    }

    #[inline]
    pub(crate) fn of_received(received: &'t Received<'t>, release: Release) -> Self {
        Self { data: received.data(), at: 0, source: Source::Received(received), release, depth: 0 }
    }

    /// Bytes from the beginning.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Goes to a byte position.
    ///
    /// # Errors
    /// `BAD_INDEX`: beyond the end.
    #[inline]
    pub fn seek(&mut self, position: usize) -> Read<()> {
        if position > self.data.len() {
            return Err(StatusCode::BAD_INDEX);
        }
        self.at = position;
        Ok(())
    }

    /// Reads the rest in another release's dialect.
    pub(crate) fn set_release(&mut self, release: Release) {
        self.release = release;
    }

    /// Bytes that are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.data.len() - self.at
    }

    /// The release whose dialect it is read in.
    #[must_use]
    pub fn release(&self) -> Release {
        self.release
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
        self.at += N;
        Ok(chunk)
    }

    words! {
        /// A 32-bit integer.
        read_i32() -> i32;
        /// An unsigned 32-bit integer.
        read_u32() -> u32;
        /// A 64-bit integer.
        read_i64() -> i64;
        /// An unsigned 64-bit integer.
        read_u64() -> u64;
        /// A float.
        read_f32() -> f32;
        /// A double.
        read_f64() -> f64;
    }

    /// An array of numbers that stand as they are, such as `int[]`; `None` for null.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`
    pub fn read_packed_vec<T: FromBytes>(&mut self) -> Read<Option<Vec<T>>> {
        let Some(bytes) = self.read_packed(size_of::<T>())? else { return Ok(None) };
        let elements = bytes.chunks_exact(size_of::<T>());
        Ok(Some(elements.filter_map(|element| T::read_from_bytes(element).ok()).collect()))
    }

    /// `int[]`, and enums of four bytes.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`, `UNEXPECTED_NULL`
    pub fn read_i32_vec(&mut self) -> Read<Vec<i32>> {
        self.read_packed_vec()?.ok_or(StatusCode::UNEXPECTED_NULL)
    }

    /// A bool: any word but 0.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`
    pub fn read_bool(&mut self) -> Read<bool> {
        Ok(self.read_i32()? != 0)
    }

    /// A byte: the low one of a word.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`
    pub fn read_i8(&mut self) -> Read<i8> {
        Ok(self.read_i32()? as i8)
    }

    /// A UTF-16 unit: the low half of a word.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`
    pub fn read_char(&mut self) -> Read<u16> {
        Ok(self.read_i32()? as u16)
    }

    /// The length of an array whose elements take `element` bytes at least; `None` for null. A
    /// length that cannot be is an error here, before anything is allocated for it.
    fn read_length(&mut self, element: usize) -> Read<Option<usize>> {
        let start = self.at;
        let length = self.read_i32()?;
        let Ok(length) = usize::try_from(length) else {
            return if length == -1 { Ok(None) } else { self.fail(start, StatusCode::BAD_VALUE) };
        };
        match length.checked_mul(element) {
            Some(bytes) if bytes <= self.remaining() => Ok(Some(length)),
            _ => self.fail(start, StatusCode::NOT_ENOUGH_DATA),
        }
    }

    fn fail<T>(&mut self, back_to: usize, status: StatusCode) -> Read<T> {
        self.at = back_to;
        Err(status)
    }

    fn read_packed(&mut self, element: usize) -> Read<Option<&'t [u8]>> {
        match self.read_length(element)? {
            Some(length) => self.take(length * element).map(Some),
            None => Ok(None),
        }
    }

    /// `byte[]`, in place. Null is read as empty: libgbinder writes an empty array so.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`
    #[inline]
    pub fn read_byte_slice(&mut self) -> Read<&'t [u8]> {
        Ok(self.read_nullable_byte_slice()?.unwrap_or_default())
    }

    /// A nullable `byte[]`, in place.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`
    #[inline]
    pub fn read_nullable_byte_slice(&mut self) -> Read<Option<&'t [u8]>> {
        self.read_packed(1)
    }

    /// An array of anything, element by element; each takes a word at least.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`, `UNEXPECTED_NULL`, and what `read` says. `NO_MEMORY`: it would take more than 16 MiB.
    pub fn read_vec<T>(&mut self, read: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        self.read_nullable_vec(read)?.ok_or(StatusCode::UNEXPECTED_NULL)
    }

    /// [`Self::read_vec`] where the array may be null.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`, and what `read` says.
    pub fn read_nullable_vec<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Read<T>,
    ) -> Read<Option<Vec<T>>> {
        let Some(length) = self.read_length(4)? else { return Ok(None) };
        if length.saturating_mul(size_of::<T>()) > LARGEST {
            return Err(StatusCode::NO_MEMORY);
        }
        (0..length).map(|_| read(self)).collect::<Read<Vec<T>>>().map(Some)
    }

    /// `String[]`
    ///
    /// # Errors
    /// See [`Self::read_vec`].
    pub fn read_str_vec(&mut self) -> Read<Vec<String>> {
        self.read_vec(Self::read_str)
    }

    /// A `String`.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`, `UNEXPECTED_NULL`
    pub fn read_str(&mut self) -> Read<String> {
        self.read_nullable_str()?.ok_or(StatusCode::UNEXPECTED_NULL)
    }

    /// A nullable `String`. Unpaired surrogates, which Java allows, come out as U+FFFD.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`
    pub fn read_nullable_str(&mut self) -> Read<Option<String>> {
        let start = self.at;
        let Some(length) = self.read_length(2)? else { return Ok(None) };
        let Ok(bytes) = self.take(2 * (length + 1)) else {
            return self.fail(start, StatusCode::NOT_ENOUGH_DATA);
        };
        let units = bytes[..2 * length].chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        let text = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        Ok(Some(text))
    }

    /// Steps over a `String` if it is exactly this one.
    #[inline]
    pub(crate) fn eat_str(&mut self, text: &str) -> bool {
        let start = self.at;
        let same = match self.read_length(2) {
            Ok(Some(length)) => match self.take(2 * (length + 1)) {
                Ok(bytes) => same_text(&bytes[..2 * length], text),
                Err(_) => false,
            },
            _ => false,
        };
        if !same {
            self.at = start;
        }
        same
    }

    /// libbinder's `String8`; bytes that are no UTF-8 come out as U+FFFD.
    ///
    /// # Errors
    /// `NOT_ENOUGH_DATA`
    pub fn read_string8(&mut self) -> Read<Option<String>> {
        let start = self.at;
        let Some(length) = self.read_length(1)? else { return Ok(None) };
        match self.take(length + 1) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes[..length]).into_owned())),
            Err(status) => self.fail(start, status),
        }
    }

    /// Reads a value that may hold others of its own kind.
    ///
    /// # Errors
    /// `BAD_VALUE`: more than 64 of them are within each other, or fewer large ones. What `read` says.
    pub fn read_within<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        let outer = self.depth;
        self.depth += 1 + size_of::<T>() / 1024;
        let fits = outer == 0 || self.depth <= DEEPEST;
        let value = if fits { read(self) } else { Err(StatusCode::BAD_VALUE) };
        self.depth = outer;
        value
    }

    /// The body of a structured parcelable. `fields` sees just the body and may find it shorter than
    /// it expects (an older sender: leave the rest at its default) or longer (skipped).
    ///
    /// # Errors
    /// `BAD_VALUE`: a size that cannot be. `NOT_ENOUGH_DATA`. What `fields` says.
    pub fn read_sized<T>(&mut self, fields: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        let start = self.at;
        let size = usize::try_from(self.read_i32()?).ok().and_then(|size| size.checked_sub(4));
        let Some(size) = size else { return self.fail(start, StatusCode::BAD_VALUE) };
        let Some(end) = self.at.checked_add(size).filter(|end| *end <= self.data.len()) else {
            return self.fail(start, StatusCode::NOT_ENOUGH_DATA);
        };
        let mut body = Self { data: &self.data[..end], ..*self };
        let value = fields(&mut body)?;
        self.at = end;
        Ok(value)
    }
}

/// Whether UTF-16 bytes spell a text.
#[inline]
fn same_text(units: &[u8], text: &str) -> bool {
    let units = units.as_chunks::<2>().0;
    if units.len() == text.len() {
        // No early end, so that the compiler can take many at a time; ASCII is what names are.
        let differing = units.iter().zip(text.bytes()).fold(0, |differing, (unit, byte)| {
            let not_ascii = u16::from(byte & 0x80);
            differing | (u16::from_le_bytes(*unit) ^ u16::from(byte)) | not_ascii
        });
        if differing == 0 {
            return true;
        }
    }
    units.iter().map(|unit| u16::from_le_bytes(*unit)).eq(text.encode_utf16())
}
