//! Deliberate interference with a pair: an occupied looper of its server, expiring timers.
//! Not here: the requested faults (`fault`), what the service itself waits for (`blockers`).

use std::io;

use sys::clock::{TimerFd, monotonic_ns};

use super::blockers::rest;
use super::endpoint::Callee;

/// Time to arm a timer, in ns, with a margin; also the lead of the call before their expiry.
const TO_ARM_ONE: u64 = 1_500;
const AHEAD: u64 = 40_000;
/// Attempts to arm, each with twice the time of the one before: together 15 times the first, far below the
/// run time limit of a real-time thread.
const TRIES: u32 = 4;
/// Expiry of timers that must not disturb the call, in ns after it; the next call arms them anew before.
const LATE: u64 = 10_000_000_000;

/// Calls a service repeatedly, for `us` each, with pauses of a quarter of that, until the process ends.
pub(super) fn occupy<C: Callee>(callee: C, us: u64) -> Result<(), String> {
    let work = move || {
        while callee.call().is_ok() {
            rest(us / 4);
        }
    };
    let thread = sys::title::thread("other-client", work);
    thread.map(drop).map_err(|error| format!("starting the other client: {error}"))
}

/// Timers that expire simultaneously.
#[derive(Debug, Default)]
pub(super) struct Timers {
    all: Vec<TimerFd>,
    late: bool,
}

impl Timers {
    /// Creates `count` unarmed timers. `late` ones cost the caller the same, and expire after its call.
    ///
    /// # Errors
    /// The limit on descriptors is reached.
    pub(super) fn new(count: u32, late: bool) -> io::Result<Self> {
        if count > 0 {
            sys::limits::raise_open_files(u64::from(count) + 256)?;
        }
        Ok(Self { all: (0..count).map(|_| TimerFd::new()).collect::<io::Result<_>>()?, late })
    }

    /// Arms the timers to expire on this CPU shortly after the return; returns the expiry time, if there are
    /// any.
    pub(super) fn arm(&self) -> Option<u64> {
        (!self.all.is_empty()).then(|| self.arm_all())
    }

    /// Arms all timers. Arming may take longer than planned, and the thread may lose the CPU while it waits;
    /// then the first timers expire before the call, so it is tried again. The returned time tells the caller
    /// whether that helped.
    fn arm_all(&self) -> u64 {
        let mut allowed = if self.late { LATE } else { self.all.len() as u64 * TO_ARM_ONE };
        let mut moment = self.arm_for(monotonic_ns() + allowed + AHEAD);
        for _ in 1..TRIES {
            if self.is_near(moment) {
                break;
            }
            allowed *= 2;
            moment = self.arm_for(monotonic_ns() + allowed + AHEAD);
        }
        moment
    }

    /// Waits until the call may start; returns false if it is too late.
    fn is_near(&self, moment: u64) -> bool {
        while !self.late && monotonic_ns() + AHEAD < moment {
            std::hint::spin_loop();
        }
        monotonic_ns() + AHEAD / 2 < moment
    }

    fn arm_for(&self, moment: u64) -> u64 {
        for timer in &self.all {
            // On an error one timer fewer expires.
            let _ = timer.arm(moment);
        }
        moment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_expire_after_the_call_has_begun() {
        let timers = Timers::new(10, false).expect("descriptors");
        let before = monotonic_ns();
        let moment = timers.arm().expect("ten");
        assert!(monotonic_ns() - before >= 10 * TO_ARM_ONE);
        assert!(moment - before >= 10 * TO_ARM_ONE + AHEAD);
        assert_eq!(Timers::default().arm(), None);
    }

    #[test]
    fn late_timers_expire_long_after_the_call_and_nobody_waits_for_them() {
        let timers = Timers::new(10, true).expect("descriptors");
        let before = monotonic_ns();
        assert!(timers.arm().expect("ten") >= before + LATE);
        assert!(monotonic_ns() - before < LATE, "it did not spin until then");
    }
}
