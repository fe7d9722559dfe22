//! Sets of descriptors that are asked without a lock.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Descriptors from this number on cannot name a device.
pub const LIMIT: RawFd = 1 << 16;

/// A bit for each descriptor.
pub(crate) struct Members([AtomicU64; LIMIT as usize / 64]);

impl Members {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; LIMIT as usize / 64])
    }

    fn bit(&self, fd: RawFd) -> Option<(&AtomicU64, u64)> {
        let fd = usize::try_from(fd).ok()?;
        Some((self.0.get(fd / 64)?, 1 << (fd % 64)))
    }

    pub(crate) fn has(&self, fd: RawFd) -> bool {
        self.bit(fd).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
    }

    pub(crate) fn set(&self, fd: RawFd, on: bool) {
        match self.bit(fd) {
            Some((word, bit)) if on => drop(word.fetch_or(bit, Ordering::AcqRel)),
            Some((word, bit)) => drop(word.fetch_and(!bit, Ordering::AcqRel)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_descriptor_has_a_bit() {
        let members = Members::new();
        for fd in [0, 63, 64, LIMIT - 1] {
            assert!(!members.has(fd));
            members.set(fd, true);
            assert!(members.has(fd) && !members.has(fd + 1), "{fd}");
            members.set(fd, false);
            assert!(!members.has(fd));
        }
        for outside in [-1, i32::MIN, LIMIT, i32::MAX] {
            members.set(outside, true);
            assert!(!members.has(outside), "{outside}");
        }
    }
}
