//! Exceptions and status codes that an object answers instead of results, and the error of a call.
//! Not here: how each flavour encodes it (`binder::status`, `hwbinder::status`), refusals of the driver (`error`).
//! Facts: Android's `Status.cpp` and `Parcel.java`, releases 8 to 16; HIDL has the same kinds of exception.

use std::fmt;
use std::time::Duration;

use crate::error::{Refusal, TransactError};
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
    pub(crate) const HAS_REPLY_HEADER: Self = Self(-128);
    /// Skipped: another exception word follows.
    pub(crate) const HAS_NOTED_OPS: Self = Self(-127);

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
    /// The kind.
    pub kind: ExceptionKind,
    /// Its message.
    pub message: Option<String>,
    /// The service's own number; 0 unless the kind is `SERVICE_SPECIFIC`.
    pub code: i32,
}

/// The answer of a service instead of results.
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

/// An exception without a message.
impl From<ExceptionKind> for Status {
    fn from(kind: ExceptionKind) -> Self {
        Self::Exception(Box::new(Exception { kind, message: None, code: 0 }))
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

/// An error of a call.
#[non_exhaustive]
pub enum CallError {
    /// The driver did not deliver the call or the reply.
    Transact(TransactError),
    /// The object answered no results, or results that cannot be read.
    Status(Status),
    /// The context has no service manager.
    NoManager {
        /// The context.
        context: String,
        /// The command that starts a manager there.
        remedy: String,
    },
    /// Nobody registered a service.
    NoService {
        /// Its name; for HIDL "interface/instance".
        name: String,
        /// How long was waited for it.
        waited: Duration,
        /// The command that lists the names there are.
        remedy: String,
    },
}

impl CallError {
    /// Whether the object's process is gone, or the service manager's.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        match self {
            Self::Transact(error) => error.refusal() == Some(Refusal::Dead),
            Self::NoManager { .. } => true,
            Self::Status(_) | Self::NoService { .. } => false,
        }
    }

    /// The error number of the service's own in its answer (`EX_SERVICE_SPECIFIC`).
    #[must_use]
    pub fn service_specific(&self) -> Option<i32> {
        match self {
            Self::Status(Status::Exception(thrown)) if thrown.kind == ExceptionKind::SERVICE_SPECIFIC => {
                Some(thrown.code)
            }
            _ => None,
        }
    }
}

impl fmt::Debug for CallError {
    /// The text for people: a program's `main` shows its error so.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transact(error) => error.fmt(f),
            Self::Status(status) => write!(f, "the object answered {status}"),
            Self::NoManager { context, remedy } => {
                write!(f, "no service manager in {context}: start one with `{remedy}`")
            }
            Self::NoService { name, waited, remedy } => write!(
                f,
                "nobody serves {name}: not registered within {waited:?}; start the service, or see `{remedy}`"
            ),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Transact(error) => Some(error),
            Self::Status(status) => Some(status),
            Self::NoManager { .. } | Self::NoService { .. } => None,
        }
    }
}

impl From<TransactError> for CallError {
    fn from(error: TransactError) -> Self {
        Self::Transact(error)
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<StatusCode> for CallError {
    fn from(code: StatusCode) -> Self {
        Self::Status(Status::Code(code))
    }
}

impl From<CallError> for Status {
    /// For an object that calls another while it serves: its own caller gets the same answer.
    fn from(error: CallError) -> Self {
        match error {
            CallError::Transact(error) => Self::Code(StatusCode::from(&error)),
            CallError::Status(status) => status,
            CallError::NoManager { .. } => StatusCode::DEAD_OBJECT.into(),
            CallError::NoService { .. } => StatusCode::NAME_NOT_FOUND.into(),
        }
    }
}
