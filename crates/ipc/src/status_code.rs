//! `status_t`, the status word of libbinder and libhwbinder.
//! Not here: exceptions with a message (`status`).
//! Facts: `utils/Errors.h` of the Android platform.

use std::fmt;

/// A `status_t`: 0 or a negative errno or one of a few own values.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatusCode(pub i32);

/// Declares the values together with their names.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:expr;)*) => {
        impl StatusCode {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// The symbolic name, `None` for a value that has none here.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self { $(Self::$name => Some(stringify!($name)),)* _ => None }
            }
        }
    };
}

codes! {
    /// Success.
    OK = 0;
    /// An unspecified failure.
    UNKNOWN_ERROR = i32::MIN;
    /// A value of another type, or an object that is none.
    BAD_TYPE = i32::MIN + 1;
    /// The driver refused the transaction.
    FAILED_TRANSACTION = i32::MIN + 2;
    /// The receiver takes no file descriptors.
    FDS_NOT_ALLOWED = i32::MIN + 7;
    /// Null where it is not allowed.
    UNEXPECTED_NULL = i32::MIN + 8;
    /// Not allowed.
    PERMISSION_DENIED = -1;
    /// No such name.
    NAME_NOT_FOUND = -2;
    /// The call would block.
    WOULD_BLOCK = -11;
    /// Out of memory, or a length beyond reason.
    NO_MEMORY = -12;
    /// Exists already.
    ALREADY_EXISTS = -17;
    /// Not set up.
    NO_INIT = -19;
    /// An invalid value.
    BAD_VALUE = -22;
    /// The object's process is gone.
    DEAD_OBJECT = -32;
    /// Not possible on this object.
    INVALID_OPERATION = -38;
    /// The parcel ends too early.
    NOT_ENOUGH_DATA = -61;
    /// The object has no such method.
    UNKNOWN_TRANSACTION = -74;
    /// Beyond the end.
    BAD_INDEX = -75;
    /// Took too long.
    TIMED_OUT = -110;
}

impl StatusCode {
    /// The status in a reply of one word (`TF_STATUS_CODE`).
    pub(crate) fn of_reply(data: &[u8]) -> Self {
        match data.first_chunk() {
            Some(word) => match Self(i32::from_le_bytes(*word)) {
                // A failure that claims success.
                Self::OK => Self::UNKNOWN_ERROR,
                status => status,
            },
            None => Self::NOT_ENOUGH_DATA,
        }
    }
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "status {}", self.0),
        }
    }
}

impl fmt::Debug for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for StatusCode {}
