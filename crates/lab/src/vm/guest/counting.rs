//! Room: what makes the same call take the same way through the kernel each time, for a guest whose clock counts
//! instructions.
//! Not here: that such a guest has one CPU and no ASLR of the kernel's (`vm`, `job`), who tells of it where this could not
//! be done (the doctor's `counting`).
//! Facts: `sched(7)`; `kernel/sched/features.h` (WAKEUP_PREEMPTION, DELAY_DEQUEUE since 6.12) and the file `sched/features`
//! of debugfs, `sched_features` before 5.13.
//!
//! On one CPU two choices of the fair scheduler decide what a round trip costs, and both follow from who had how much of the
//! CPU by then, which no two processes have in common. A reply wakes the client: if that preempts the service at once, the
//! service does not sleep between two calls, and the next call need not wake it, a tenth fewer instructions. A thread that
//! sleeps with less than its share left may stay on the scheduler's list for a while, and waking it is cheaper then, by
//! 1.5 % of a round trip. A process keeps to either way for hundreds of calls, so even medians had two values.

use sys::sched::{self, Policy};

const FEATURES: [&str; 2] = ["/sys/kernel/debug/sched/features", "/sys/kernel/debug/sched_features"];

/// Takes both choices from the scheduler, as far as the kernel lets itself be told.
pub(super) fn take_one_way() -> Result<(), String> {
    // A kernel that does not know it does not do it; one without debugfs is found by the doctor.
    switch("NO_DELAY_DEQUEUE");
    if switch("NO_WAKEUP_PREEMPTION") {
        return Ok(());
    }
    // Inherited by the command. It does the same, and is seen by tests that look at policies.
    sched::set_policy(0, Policy::Batch)
        .map_err(|error| format!("becoming SCHED_BATCH: {}", sys::errno::describe(&error)))
}

/// Switches a feature of the scheduler.
fn switch(word: &str) -> bool {
    FEATURES.iter().any(|file| std::fs::write(file, word).is_ok())
}
