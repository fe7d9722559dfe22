//! Errors of a transaction, grouped by who must act.
//! Not here: the callee's answer (`status_code`, `status`).

use std::fmt;
use std::io;

use abi::{DecodeError, Handle, ReturnWord};

/// The driver's reason for refusing a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `BR_DEAD_REPLY`: the callee's process is gone, or there is no context manager.
    Dead,
    /// `BR_FAILED_REPLY`, with the errno (positive) of the driver's extended error where it keeps one.
    Failed(Option<i32>),
    /// `BR_FROZEN_REPLY`: the callee's process is frozen.
    Frozen,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dead => f.write_str("BR_DEAD_REPLY: its process is gone"),
            Self::Failed(None) => f.write_str("BR_FAILED_REPLY, without a reason; see the kernel's log"),
            Self::Failed(Some(errno)) => {
                let reason = io::Error::from_raw_os_error(*errno);
                write!(f, "BR_FAILED_REPLY: {}", sys::errno::describe(&reason))
            }
            Self::Frozen => f.write_str("BR_FROZEN_REPLY: its process is frozen"),
        }
    }
}

/// A violation of the protocol: a bug of the driver or of this runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A return that the state of the call does not allow.
    Unexpected {
        /// The state.
        state: &'static str,
        /// The return.
        got: ReturnWord,
    },
    /// A return stream that cannot be decoded.
    Undecodable(DecodeError),
    /// A delivery outside the receiving area.
    OutsideMap {
        /// The address of its data.
        address: u64,
        /// Its length in bytes.
        len: u64,
    },
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected { state, got } => write!(f, "a call that is {state} got {got}"),
            Self::Undecodable(error) => error.fmt(f),
            Self::OutsideMap { address, len } => {
                write!(f, "a delivery of {len} bytes at {address:#x} is outside the receiving area")
            }
        }
    }
}

/// An error of a transaction.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransactError {
    /// The driver said no. An outcome to count, not a fault.
    Refused {
        /// The callee's handle.
        target: Handle,
        /// The method called.
        code: u32,
        /// The driver's reason.
        by: Refusal,
    },
    /// Forbidden here by the protocol: a driver bug or ours.
    Protocol(ProtocolError),
    /// A system call failed.
    Os {
        /// The call.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
}

impl TransactError {
    /// How the driver refused, if it did.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused { by, .. } => Some(*by),
            Self::Protocol(_) | Self::Os { .. } => None,
        }
    }
}

impl fmt::Display for TransactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { target, code, by } => {
                write!(f, "transaction {code:#x} to handle {target} was refused: {by}")
            }
            Self::Protocol(error) => write!(f, "the driver broke the protocol: {error}"),
            Self::Os { call, source } => write!(f, "{call} failed: {source}"),
        }
    }
}

impl std::error::Error for TransactError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Os { source, .. } => Some(source),
            Self::Refused { .. } | Self::Protocol(_) => None,
        }
    }
}

impl From<ProtocolError> for TransactError {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

impl From<DecodeError> for TransactError {
    fn from(error: DecodeError) -> Self {
        Self::Protocol(ProtocolError::Undecodable(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_its_errno_by_name() {
        let by = Refusal::Failed(Some(28));
        let error = TransactError::Refused { target: Handle(1), code: 1, by };
        assert_eq!(
            error.to_string(),
            "transaction 0x1 to handle 1 was refused: BR_FAILED_REPLY: ENOSPC (No space left on device)"
        );
    }
}
