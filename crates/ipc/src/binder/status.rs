//! Room: what precedes the results of an AIDL call: success or an exception.
//! Not here: refusals of the driver (`crate::error`).
//! Facts: Android's `Status.cpp` and `Parcel.java`, releases 8 to 16.

use std::fmt;

use crate::binder::parcel::Parcel;
use crate::binder::reader::Reader;
use crate::error::{Refusal, TransactError};
use crate::release::Release;
use crate::status_code::StatusCode;

/// Kinds of exception, as they stand on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExceptionKind(pub i32);

impl ExceptionKind {
    /// The caller may not.
    pub const SECURITY: Self = Self(-1);
    /// The arguments cannot be unpacked.
    pub const BAD_PARCELABLE: Self = Self(-2);
    /// An argument cannot be.
    pub const ILLEGAL_ARGUMENT: Self = Self(-3);
    /// Null where it is not allowed.
    pub const NULL_POINTER: Self = Self(-4);
    /// Not now.
    pub const ILLEGAL_STATE: Self = Self(-5);
    /// Network access on a main thread (Java).
    pub const NETWORK_MAIN_THREAD: Self = Self(-6);
    /// Not at all.
    pub const UNSUPPORTED_OPERATION: Self = Self(-7);
    /// A number that the service defines.
    pub const SERVICE_SPECIFIC: Self = Self(-8);
    /// An exception with an object of its own (Java).
    pub const PARCELABLE: Self = Self(-9);

    /// Skipped: results follow.
    const HAS_REPLY_HEADER: Self = Self(-128);
    /// Skipped: another exception word follows.
    const HAS_NOTED_OPS: Self = Self(-127);

    fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 9] = [
            "SECURITY",
            "BAD_PARCELABLE",
            "ILLEGAL_ARGUMENT",
            "NULL_POINTER",
            "ILLEGAL_STATE",
            "NETWORK_MAIN_THREAD",
            "UNSUPPORTED_OPERATION",
            "SERVICE_SPECIFIC",
            "PARCELABLE",
        ];
        NAMES.get(usize::try_from(-1 - i64::from(self.0)).ok()?).copied()
    }
}

impl fmt::Debug for ExceptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "exception {}", self.0),
        }
    }
}

/// An exception that a service answers instead of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// Its kind.
    pub kind: ExceptionKind,
    /// What it says.
    pub message: Option<String>,
    /// The service's own number; 0 unless the kind is `SERVICE_SPECIFIC`.
    pub code: i32,
}

/// Why a service gives no results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The object threw.
    Exception(Box<Exception>),
    /// The call never got to the object's method, or not back.
    Code(StatusCode),
}

impl Status {
    /// An exception with a message.
    #[must_use]
    pub fn exception(kind: ExceptionKind, message: impl Into<String>) -> Self {
        Self::Exception(Box::new(Exception { kind, message: Some(message.into()), code: 0 }))
    }

    /// `EX_ILLEGAL_ARGUMENT`
    #[must_use]
    pub fn illegal_argument(message: impl Into<String>) -> Self {
        Self::exception(ExceptionKind::ILLEGAL_ARGUMENT, message)
    }

    /// `EX_SERVICE_SPECIFIC`: an error number that the service defines.
    #[must_use]
    pub fn service_specific(code: i32, message: impl Into<String>) -> Self {
        let kind = ExceptionKind::SERVICE_SPECIFIC;
        Self::Exception(Box::new(Exception { kind, message: Some(message.into()), code }))
    }

    /// The answer to a method number that the object does not have.
    pub const UNKNOWN_TRANSACTION: Self = Self::Code(StatusCode::UNKNOWN_TRANSACTION);
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => code.fmt(f),
            Self::Exception(exception) => {
                write!(f, "{:?}", exception.kind)?;
                if exception.kind == ExceptionKind::SERVICE_SPECIFIC {
                    write!(f, " {}", exception.code)?;
                }
                match &exception.message {
                    Some(message) => write!(f, ": {message}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for Status {}

impl From<StatusCode> for Status {
    fn from(code: StatusCode) -> Self {
        Self::Code(code)
    }
}

impl From<&TransactError> for StatusCode {
    fn from(error: &TransactError) -> Self {
        match error.refusal() {
            Some(Refusal::Dead) => Self::DEAD_OBJECT,
            Some(Refusal::Failed(_) | Refusal::Frozen) => Self::FAILED_TRANSACTION,
            None => Self::UNKNOWN_ERROR,
        }
    }
}

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
            self.read_frame(4, |_| Ok(()))?;
            kind = ExceptionKind(self.read_i32()?);
        }
        if kind == ExceptionKind::HAS_REPLY_HEADER {
            return Ok(self.read_frame(4, |_| Ok(()))?);
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
        self.read_frame(4, |_| Ok(()))
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
