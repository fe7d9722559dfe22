//! The word before the results of an AIDL call, "no exception", or the exception in their place.
//! Facts: Android's `Status.cpp` and `Parcel.java`, releases 8 to 16.

use crate::binder::parcel::Parcel;
use crate::binder::reader::Reader;
use crate::release::Release;
use crate::status::{Exception, ExceptionKind, Status};
use crate::status_code::StatusCode;

impl Parcel {
    /// "No exception": results follow.
    #[inline]
    pub fn write_no_exception(&mut self) {
        self.write_i32(0);
    }

    /// An exception in place of results.
    pub fn write_exception(&mut self, exception: &Exception) {
        self.write_i32(exception.kind.0);
        self.write_nullable_str(exception.message.as_deref());
        if self.release() >= Release::Android9 {
            // No stack trace.
            self.write_i32(0);
        }
        match exception.kind {
            ExceptionKind::SERVICE_SPECIFIC => self.write_i32(exception.code),
            ExceptionKind::PARCELABLE => self.write_i32(0),
            _ => {}
        }
    }
}

impl Reader<'_> {
    /// Reads the status word and stops at the results.
    ///
    /// # Errors
    /// The exception that stands there; `NOT_ENOUGH_DATA`, `BAD_VALUE`.
    #[inline]
    pub fn read_status(&mut self) -> Result<(), Status> {
        match self.read_i32()? {
            0 => Ok(()),
            word => self.read_unusual_status(ExceptionKind(word)),
        }
    }

    #[cold]
    fn read_unusual_status(&mut self, mut kind: ExceptionKind) -> Result<(), Status> {
        // Java servers put up to two headers before the word that counts.
        if kind == ExceptionKind::HAS_NOTED_OPS {
            self.read_sized(|_| Ok(()))?;
            kind = ExceptionKind(self.read_i32()?);
        }
        if kind == ExceptionKind::HAS_REPLY_HEADER {
            return Ok(self.read_sized(|_| Ok(()))?);
        }
        if kind.0 == 0 {
            return Ok(());
        }
        let message = self.read_nullable_str()?;
        if self.release() >= Release::Android9 {
            self.skip_trace()?;
        }
        let code = if kind == ExceptionKind::SERVICE_SPECIFIC { self.read_i32()? } else { 0 };
        Err(Status::Exception(Box::new(Exception { kind, message, code })))
    }

    /// A stack trace: 0, or a size that counts itself.
    fn skip_trace(&mut self) -> Result<(), StatusCode> {
        let start = self.position();
        if self.read_i32()? == 0 {
            return Ok(());
        }
        self.seek(start)?;
        self.read_sized(|_| Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[i32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn exceptions_read_back_in_every_release() {
        let thrown =
            Exception { kind: ExceptionKind::SERVICE_SPECIFIC, message: Some("näh".to_owned()), code: 42 };
        for release in Release::ALL {
            let mut parcel = Parcel::for_release(release);
            parcel.write_exception(&thrown);
            let status = parcel.reader().read_status().expect_err("an exception");
            assert_eq!(status, Status::Exception(Box::new(thrown.clone())), "{release}");
        }
    }

    #[test]
    fn fat_headers_are_skipped() {
        for (why, words) in [
            ("plain", &[0, 7][..]),
            ("reply header", &[-128, 12, 1, 2, 7]),
            ("noted ops, then success", &[-127, 8, 1, 0, 7]),
            ("noted ops, then a reply header", &[-127, 4, -128, 8, 9, 7]),
        ] {
            let bytes = bytes(words);
            let mut reader = Reader::of_bytes(&bytes);
            assert_eq!(reader.read_status(), Ok(()), "{why}");
            assert_eq!(reader.read_i32(), Ok(7), "{why}");
        }
    }

    #[test]
    fn an_exception_may_carry_a_trace_and_no_message() {
        let words = bytes(&[-5, -1, 12, 1, 2]);
        let Err(Status::Exception(exception)) = Reader::of_bytes(&words).read_status() else {
            panic!("no exception");
        };
        assert_eq!((exception.kind, &exception.message), (ExceptionKind::ILLEGAL_STATE, &None));
        let noted = bytes(&[-127, 4, -3, -1, 0]);
        let Err(Status::Exception(exception)) = Reader::of_bytes(&noted).read_status() else {
            panic!("no exception");
        };
        assert_eq!(exception.kind, ExceptionKind::ILLEGAL_ARGUMENT);
    }

    #[test]
    fn broken_headers_are_errors() {
        for words in [&[][..], &[-128], &[-128, 3], &[-127, 4], &[-128, 100], &[-3, 1000], &[-8, -1, 0]] {
            let words = bytes(words);
            let Err(Status::Code(_)) = Reader::of_bytes(&words).read_status() else {
                panic!("{words:?} is no status");
            };
        }
    }
}
