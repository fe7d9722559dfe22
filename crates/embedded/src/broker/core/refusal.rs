//! Refusals of the core: a `BR_*` word with an errno.
//! Facts: contract TX-20, TX-21.

use abi::codes::br;
use abi::layout::ExtendedError;
use sys::errno::EFAULT;

/// Largest errno of Linux.
const ERRNO_MAX: i32 = 4095;

/// Refusal of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// `FAILED_REPLY`, `DEAD_REPLY` or `FROZEN_REPLY`.
    pub(super) outcome: u32,
    /// Positive errno, 0 for none.
    pub(super) errno: i32,
}

impl Refusal {
    pub(super) const fn failed(errno: i32) -> Self {
        Self { outcome: br::FAILED_REPLY, errno }
    }

    pub(super) const fn dead(errno: i32) -> Self {
        Self { outcome: br::DEAD_REPLY, errno }
    }

    pub(super) const FROZEN: Self = Self { outcome: br::FROZEN_REPLY, errno: 0 };

    /// Extended error of the thread that receives the refusal.
    pub(super) const fn error(self, transaction: u32) -> ExtendedError {
        ExtendedError { id: transaction, command: self.outcome, param: -self.errno }
    }
}

/// Extended error of a thread whose transaction `id` succeeded.
pub(super) const fn no_error(id: u32) -> ExtendedError {
    ExtendedError { id, command: br::OK, param: 0 }
}

/// Errno that a client reports; an invalid number becomes `EFAULT`.
pub(super) fn reported(errno: i32) -> i32 {
    if (1..=ERRNO_MAX).contains(&errno) { errno } else { EFAULT }
}
