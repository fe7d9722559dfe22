//! Room: what others do beside a pair on purpose: hold its service's lock, keep its server's looper, have timers expire.
//! Not here: what was asked for (`fault`), what the service does itself (`service`).

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use sys::clock::monotonic_ns;
use sys::clock_sleep;
use sys::timer_fd::TimerFd;

use super::scene::Callee;

/// Time to arm a timer, in ns, with some to spare; and how long before they expire the call is made.
const TO_ARM_ONE: u64 = 1_500;
const AHEAD: u64 = 40_000;
/// Arming is tried so often, each time with twice the time for it: together 15 times the first, which is far below what
/// a real-time thread may run without sleeping.
const TRIES: u32 = 4;
/// Timers that are not to disturb the call expire so long after it, or never, as the next call arms them anew.
const LATE: u64 = 10_000_000_000;

/// A lock that a thread of this process holds for so long, and then leaves alone for a quarter of that, until the
/// process ends.
pub(super) fn held_lock(us: u64) -> Arc<Mutex<()>> {
    let lock = Arc::new(Mutex::new(()));
    let held = Arc::clone(&lock);
    let work = move || loop {
        let guard = held.lock().unwrap_or_else(PoisonError::into_inner);
        rest(us);
        drop(guard);
        rest(us / 4);
    };
    // Without it the lock is free, which whoever looks for waiting sees.
    let _ = std::thread::Builder::new().name("lock-holder".to_owned()).spawn(work);
    lock
}

/// Calls a service, each of whose calls takes so long, and pauses for a quarter of that, until the process ends.
pub(super) fn occupy<C: Callee>(callee: C, us: u64) -> Result<(), String> {
    let work = move || {
        while callee.call().is_ok() {
            rest(us / 4);
        }
    };
    let thread = std::thread::Builder::new().name("other-client".to_owned()).spawn(work);
    thread.map(drop).map_err(|error| format!("starting the other client: {error}"))
}

fn rest(us: u64) {
    clock_sleep::until(monotonic_ns() + us * 1000);
}

/// Timers that expire all at once.
#[derive(Debug, Default)]
pub(super) struct Timers {
    all: Vec<TimerFd>,
    late: bool,
}

impl Timers {
    /// So many, none of them armed. `late` ones cost the caller the same, and expire when its call is over.
    ///
    /// # Errors
    /// There are not so many descriptors.
    pub(super) fn new(count: u32, late: bool) -> io::Result<Self> {
        if count > 0 {
            sys::open_files::allow(u64::from(count) + 256)?;
        }
        Ok(Self { all: (0..count).map(|_| TimerFd::new()).collect::<io::Result<_>>()?, late })
    }

    /// Has them expire shortly after this returns, on this CPU; the moment, if there are any.
    #[inline]
    pub(super) fn arm(&self) -> Option<u64> {
        (!self.all.is_empty()).then(|| self.arm_all())
    }

    /// Arming may take longer than was allowed for, and whoever waits for the moment may lose the CPU; then the first
    /// ones expire before the call is made. So it is tried again. The moment tells the caller whether that helped.
    #[cold]
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

    /// Waits until the call may be made; whether it is not too late for that.
    fn is_near(&self, moment: u64) -> bool {
        while !self.late && monotonic_ns() + AHEAD < moment {
            std::hint::spin_loop();
        }
        monotonic_ns() + AHEAD / 2 < moment
    }

    fn arm_for(&self, moment: u64) -> u64 {
        for timer in &self.all {
            // It is armed, or one fewer expires.
            let _ = timer.arm(moment);
        }
        moment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_waited_for_and_let_go() {
        let lock = held_lock(20_000);
        // Once it is held.
        while lock.try_lock().is_ok() {
            std::thread::yield_now();
        }
        drop(lock.lock().expect("nobody panics with it"));
    }

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
