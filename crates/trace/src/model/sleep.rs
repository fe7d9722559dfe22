//! Reasons of sleeps, by the kernel function that a thread slept in.
//! Not here: sleeps whose end alone explains them (`divide`).

/// Reason of a sleep, from the kernel function that it was in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SleepReason {
    Unsaid,
    Io,
    Futex,
    KernelLock,
    Reclaim,
    Frozen,
}

impl SleepReason {
    /// Fact: symbols of Linux 7.2 and of Android kernels, which have `sched_blocked_reason`.
    pub(crate) fn in_function(symbol: &str, io_wait: bool) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| symbol.contains(word));
        if symbol.contains("futex") {
            Self::Futex
        } else if has(&["refrigerator", "freezer"]) {
            Self::Frozen
        } else if has(&["reclaim", "shrink", "congestion_wait", "throttle_vm"]) {
            Self::Reclaim
        } else if has(&["mutex", "rwsem", "down_read", "down_write", "rt_lock", "rtlock"]) {
            Self::KernelLock
        } else if io_wait {
            Self::Io
        } else {
            Self::Unsaid
        }
    }
}
