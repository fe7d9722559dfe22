//! Messages in which the kernel reports a fault of itself.
//! Not here: reading the log (`klog`).
//! Facts: `lib/bug.c`, `mm/slub.c`, `mm/kasan/report.c`, `mm/kfence/report.c`, `mm/kmemleak.c`, `lib/ubsan.c`,
//! `kernel/hung_task.c`, `kernel/locking/lockdep.c`, `kernel/panic.c`. Reports of stalls (`soft lockup`, `rcu_sched
//! detected stalls`) are no alarms: a busy host starves the CPUs of a guest for as long. A test that hangs reaches its
//! own limit.

/// Text anywhere in an alarm.
const ANYWHERE: [&str; 14] = [
    "BUG: ",
    "WARNING: ",
    "Oops",
    "kernel BUG at",
    "Poison overwritten",
    "KASAN: ",
    "KFENCE: ",
    "KCSAN: ",
    "UBSAN: ",
    "general protection fault",
    "refcount_t: ",
    "Kernel panic",
    "Unable to handle kernel",
    "INFO: trying to register non-static key",
];
/// Stalls: not alarms, although their text has one of the above.
const STALLS: [&str; 2] = ["BUG: soft lockup", "BUG: workqueue lockup"];

/// Whether a message reports a fault of the kernel itself.
pub(super) fn is_alarm(text: &str) -> bool {
    let start = text.trim_start();
    let slub = start.starts_with("BUG ");
    let leak = start.starts_with("kmemleak: ") && start.contains("suspected memory leaks");
    let hung = start.starts_with("INFO: task ") && start.contains(" blocked for more than ");
    let stall = STALLS.iter().any(|words| text.contains(words));
    !stall && (slub || leak || hung || ANYWHERE.iter().any(|words| text.contains(words)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_each_checker_is_an_alarm() {
        for text in [
            "BUG: kernel NULL pointer dereference, address: 0000000000000008",
            "BUG kmalloc-128 (Tainted: G            E): Poison overwritten",
            "BUG: KASAN: slab-use-after-free in binder_release_work+0x51/0x2a0",
            "BUG: KFENCE: use-after-free read in binder_thread_read+0x1/0x2",
            "BUG: sleeping function called from invalid context at mm/slab.h:321",
            "WARNING: drivers/android/binder.c:2201 at binder_x+0x1/0x2, CPU#1: server/71",
            "WARNING: possible circular locking dependency detected",
            "Oops: general protection fault, probably for non-canonical address 0x6b6b6b6b6b6b6b6b: 0000 [#1] SMP",
            "refcount_t: underflow; use-after-free.",
            "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
            "INFO: task kworker/0:1:12 blocked for more than 120 seconds.",
            "UBSAN: array-index-out-of-bounds in drivers/android/binder.c:1:2",
            "Unable to handle kernel paging request at virtual address dead000000000108",
        ] {
            assert!(is_alarm(text), "{text}");
        }
    }

    #[test]
    fn what_a_sound_kernel_says_is_none() {
        for text in [
            "binder: 71:72 transaction call to 0:0 failed 5/29201/-22, code 1 size 0-0 line 3170",
            "binder_alloc: 71: binder_alloc_buf, no vma",
            "x: loading out-of-tree module taints kernel.",
            "x: module verification failed: signature and/or required key missing - tainting kernel",
            "kmemleak: Kernel memory leak detector initialized (mem pool available: 15679)",
            "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [server:71]",
            "rcu: INFO: rcu_preempt self-detected stall on CPU",
            "Debugging is on",
        ] {
            assert!(!is_alarm(text), "{text}");
        }
    }
}
