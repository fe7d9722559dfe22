//! How urgent the calling thread may make itself.
//! Not here: doing it (`sched`), the limits themselves (`limits`).
//! Facts: `setpriority(2)`, `sched(7)`, `user_namespaces(7)`: the kernel wants `CAP_SYS_NICE` of the initial user
//! namespace. In any other one the capability shows in `capget(2)`, but does not count, so it has to be tried.

use std::sync::OnceLock;

use crate::sched::{self, Policy};
use crate::{capability, limits, title};

/// What `CAP_SYS_NICE` is worth here.
#[derive(Clone, Copy, Default)]
struct Worth {
    nice: bool,
    realtime: bool,
}

/// Tries the capability, once per process, in a thread of its own.
fn worth() -> Worth {
    static FOUND: OnceLock<Worth> = OnceLock::new();
    let attempt = || Worth {
        nice: sched::set_nice(0, 19).is_ok() && sched::set_nice(0, -20).is_ok(),
        realtime: sched::set_policy(0, Policy::Fifo(1)).is_ok(),
    };
    let found = || title::thread("rights", attempt).ok().and_then(|thread| thread.join().ok());
    *FOUND.get_or_init(|| found().unwrap_or_default())
}

/// The most urgent nice that the calling thread may give itself: -20 with a `CAP_SYS_NICE` that counts, else what
/// `RLIMIT_NICE` says; 20 if that allows none.
#[must_use]
pub fn most_urgent_nice() -> i32 {
    match capability::has_sys_nice() && worth().nice {
        true => -20,
        false => 20 - limits::nice(),
    }
}

/// The highest real-time priority that the calling thread may give itself: 99 with a `CAP_SYS_NICE` that counts, else
/// `RLIMIT_RTPRIO`; 0 if none.
#[must_use]
pub fn highest_priority() -> u32 {
    match capability::has_sys_nice() && worth().realtime {
        true => 99,
        false => limits::realtime_priority(),
    }
}

/// Says why the calling thread may not become more urgent than [`most_urgent_nice`].
#[must_use]
pub fn what_is_missing() -> String {
    let limit = limits::nice();
    match capability::has_sys_nice() {
        true => format!(
            "CAP_SYS_NICE does not count here, as in a user namespace or under a filter of system calls; RLIMIT_NICE \
             {limit}"
        ),
        false => format!("no CAP_SYS_NICE, RLIMIT_NICE {limit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs in a thread of its own, so that no other test finds itself nicer.
    fn aside<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
        title::thread("aside", job).expect("a thread").join().expect("no panic")
    }

    #[test]
    fn the_most_urgent_nice_can_be_taken_and_a_more_urgent_one_cannot() {
        aside(|| {
            sched::set_nice(0, 19).expect("less urgent is always allowed");
            let floor = most_urgent_nice();
            sched::set_nice(0, floor.min(19)).expect("it may");
            assert_eq!(sched::nice_of(0).expect("own nice"), floor.min(19));
            let more = (floor - 1).min(18);
            assert!(floor == -20 || sched::set_nice(0, more).is_err(), "{floor}");
        });
    }

    #[test]
    fn the_highest_priority_can_be_taken_and_a_higher_one_cannot() {
        aside(|| {
            let most = highest_priority() as u8;
            assert!(most == 0 || sched::set_policy(0, Policy::Fifo(most)).is_ok(), "{most}");
            assert!(most >= 99 || sched::set_policy(0, Policy::Fifo(most + 1)).is_err(), "{most}");
        });
    }

    #[test]
    fn without_the_capability_the_limits_count() {
        // Another test of this process sets the limit on nice meanwhile.
        let before = 20 - limits::nice();
        let found =
            capability::without_sys_nice(|| (most_urgent_nice(), highest_priority(), what_is_missing()));
        let (nice, priority, missing) = found.expect("put aside");
        assert!([before, 20 - limits::nice()].contains(&nice), "{nice}");
        assert_eq!(priority, limits::realtime_priority());
        assert!(missing.starts_with("no CAP_SYS_NICE"), "{missing}");
    }
}
