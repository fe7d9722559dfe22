//! Error of a call, or of finding whom to call: of a system call, of binder, or of the reply.
//! Not here: what a run makes of it (`servers`).

use std::fmt;
use std::io;

/// Error of a round trip.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum CallError {
    /// A system call failed.
    Os {
        /// Name of the operation.
        call: &'static str,
        /// Cause.
        source: io::Error,
    },
    /// The peer has ended.
    Closed,
    /// Binder's runtime or driver refused the call.
    Refused(String),
    /// The reply differs from the request.
    Corrupt {
        /// Bytes sent.
        sent: usize,
        /// Bytes received.
        received: usize,
        /// Index of the first byte that differs.
        at: usize,
    },
}

impl CallError {
    pub(crate) fn os(call: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Os { call, source },
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os { call, source } => write!(f, "{call} failed: {}", sys::errno::describe(source)),
            Self::Closed => f.write_str("the server is gone"),
            Self::Refused(why) => f.write_str(why),
            Self::Corrupt { sent, received, at } => write!(
                f,
                "the reply is not what was sent: {sent} bytes went out, {received} came back, byte {at} is the \
                 first that differs"
            ),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Os { source, .. } => Some(source),
            Self::Closed | Self::Refused(_) | Self::Corrupt { .. } => None,
        }
    }
}

/// Creates the error of a refused call.
pub(crate) fn refused(why: impl fmt::Display) -> CallError {
    CallError::Refused(why.to_string())
}
