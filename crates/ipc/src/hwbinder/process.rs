//! Room: how a process of this flavour sets itself up.
//! Not here: opening and serving (`crate::process`).
//! Facts: libhwbinder's `ProcessState.cpp` and `IPCThreadState.cpp`: no pool threads unless asked
//! for, spam detection where the driver knows it, threads named `HwBinder:<pid>_<n>`.

use crate::process::ProcessOptions;

impl ProcessOptions {
    /// As libhwbinder: the driver may ask for no threads; the rest is as in [`Self::default`].
    #[must_use]
    pub fn hwbinder() -> Self {
        Self { max_threads: 0, thread_prefix: "HwBinder".to_owned(), ..Self::default() }
    }

    /// libhwbinder's `setThreadPoolConfiguration`: as many threads in all, of which one is the pool's
    /// first and, if `caller_joins`, one the caller's; the driver may ask for the others.
    #[must_use]
    pub fn hwbinder_pool(threads: u32, caller_joins: bool) -> Self {
        let max_threads = threads.saturating_sub(1 + u32::from(caller_joins));
        Self { max_threads, ..Self::hwbinder() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Floods of oneway calls are reported to who makes them, in either flavour.
    #[test]
    fn spam_detection_is_on() {
        assert!(ProcessOptions::hwbinder().spam_detection);
        assert!(ProcessOptions::hwbinder_pool(4, true).spam_detection);
    }

    #[test]
    fn the_driver_may_ask_for_what_is_left_of_the_pool() {
        assert_eq!(ProcessOptions::hwbinder().max_threads, 0);
        for (threads, joins, want) in [(0, false, 0), (1, true, 0), (1, false, 0), (2, true, 0), (4, true, 2)]
        {
            assert_eq!(ProcessOptions::hwbinder_pool(threads, joins).max_threads, want, "{threads} {joins}");
        }
    }
}
