//! Room: how the core says no: a `BR_*` word with an errno, and errno by number.
//! Not here: when it does.
//! Facts: contract TX-20, TX-21; errno values of every Linux this runs on.

use abi::codes::br;
use abi::layout::ExtendedError;

pub(super) const EPERM: i32 = 1;
pub(super) const ESRCH: i32 = 3;
pub(super) const EBADF: i32 = 9;
pub(super) const EAGAIN: i32 = 11;
pub(super) const ENOMEM: i32 = 12;
pub(super) const EFAULT: i32 = 14;
pub(super) const EBUSY: i32 = 16;
pub(super) const EINVAL: i32 = 22;
pub(super) const EMFILE: i32 = 24;
pub(super) const ENOSPC: i32 = 28;
pub(super) const EOPNOTSUPP: i32 = 95;

/// Largest errno there is.
const ERRNO_MAX: i32 = 4095;

/// A transaction that is not carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// `FAILED_REPLY`, `DEAD_REPLY` or `FROZEN_REPLY`.
    pub(super) outcome: u32,
    /// Positive, 0 for none.
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

    /// What the thread that hears of it gets to see.
    pub(super) const fn error(self, transaction: u32) -> ExtendedError {
        ExtendedError { id: transaction, command: self.outcome, param: -self.errno }
    }
}

/// The record of a thread whose transaction `id` went well.
pub(super) const fn no_error(id: u32) -> ExtendedError {
    ExtendedError { id, command: br::OK, param: 0 }
}

/// An errno that a client reports, which may be any number.
pub(super) fn reported(errno: i32) -> i32 {
    if (1..=ERRNO_MAX).contains(&errno) { errno } else { EFAULT }
}
