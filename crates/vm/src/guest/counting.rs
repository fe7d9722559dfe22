//! Scheduler settings that make instruction counts repeatable.
//! Not here: one CPU and no kernel ASLR (`vm`, `job`), reporting where this was not possible (the doctor's
//! `counting`).
//! Facts: `sched(7)`; `kernel/sched/features.h` (WAKEUP_PREEMPTION, DELAY_DEQUEUE since 6.12) and the file `sched/features`
//! of debugfs, `sched_features` before 5.13.
//!
//! On one CPU two decisions of the fair scheduler change the cost of a round trip, and both depend on earlier CPU
//! use, which differs between processes. A reply wakes the client: if that preempts the service at once, the service
//! does not sleep between calls, and the next call need not wake it (10 % fewer instructions). A thread that sleeps
//! with part of its share left may stay queued for a while, and waking it is then 1.5 % cheaper. A process keeps to
//! one path for hundreds of calls, so that even medians had two values.

use sys::sched::{self, Policy};

const FEATURES: [&str; 2] = ["/sys/kernel/debug/sched/features", "/sys/kernel/debug/sched_features"];

/// Disables both decisions as far as the kernel permits.
pub(super) fn take_one_way() -> Result<(), String> {
    // A kernel without the feature does not need it; the doctor reports one without debugfs.
    switch("NO_DELAY_DEQUEUE");
    if switch("NO_WAKEUP_PREEMPTION") {
        return Ok(());
    }
    // Inherited by the command. SCHED_BATCH would do the same, but tests that look at policies would see it.
    sched::set_policy(0, Policy::Batch)
        .map_err(|error| format!("becoming SCHED_BATCH: {}", sys::errno::describe(&error)))
}

/// Disables a scheduler feature.
fn switch(word: &str) -> bool {
    FEATURES.iter().any(|file| std::fs::write(file, word).is_ok())
}
