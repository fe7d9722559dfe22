//! Service of a pair, the same behind either flavour and without IPC: it reports its thread, CPU and
//! scheduling, and commits the requested faults.
//! Not here: transport of the request (`endpoint`).
//! Facts: Android's `IScheduleTest::send` and `schd-dbg`'s service compare these with their caller and return
//! one bit; here the caller gets all of it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sys::clock::{monotonic_ns, sleep_until, thread_cpu_ns};

use sys::interrupt::ThreadId;
use sys::sched;

use super::blockers::{self, Disk, Monitor, Synced};
use super::fault::Injected;
use super::sample::{SPARED, ServerFacts};
use crate::scheduling::pack;
use fastrand::Rng;
use host::realtime::of_own;

/// Number of the call that triggers single faults: some calls before it can be measured.
const FATAL_CALL: u32 = 12;

/// Returns the calling thread's facts.
pub(super) fn look() -> ServerFacts {
    ServerFacts {
        tid: ThreadId::current().number().unsigned_abs(),
        cpu: sched::current_cpu(),
        sched: pack(of_own(sched::attributes())),
        cpu_ns: thread_cpu_ns(),
    }
}

#[derive(Debug, Default)]
pub(super) struct Service {
    /// Empty except in a run with a fault.
    faults: Vec<Injected>,
    served: AtomicU32,
    rng: Option<Mutex<Rng>>,
    /// Objects that the faults make it wait for.
    lock: Option<Arc<Mutex<()>>>,
    monitor: Option<Arc<Monitor>>,
    disk: Option<Disk>,
}

impl Service {
    /// Creates a service with these faults.
    pub(super) fn with(faults: &[Injected], seed: u64) -> Self {
        let chance = faults.iter().any(|fault| matches!(fault, Injected::Delay { .. }));
        let rng = chance.then(|| Mutex::new(Rng::with_seed(seed)));
        let lock = faults.iter().find_map(|fault| match *fault {
            Injected::LockServer { us } => Some(blockers::held_lock(us)),
            Injected::ChainServer { us } => Some(blockers::chain(us)),
            _ => None,
        });
        let monitor = faults.iter().find_map(|fault| match *fault {
            Injected::MonitorServer { us } => Some(Monitor::held(us)),
            _ => None,
        });
        // Without the file there is no wait, which shows.
        let disk = faults.contains(&Injected::SyncServer).then(Disk::new).and_then(Result::ok);
        Self { faults: faults.to_vec(), served: AtomicU32::new(0), rng, lock, monitor, disk }
    }

    pub(super) fn serve(&self) -> ServerFacts {
        let spared = if self.faults.is_empty() { 0 } else { self.go_wrong() };
        // Last, so that it covers all that this thread did.
        let seen = look();
        ServerFacts { sched: seen.sched | spared, ..seen }
    }

    /// Commits the faults; returns [`SPARED`] or 0.
    fn go_wrong(&self) -> u64 {
        let mut spared = 0;
        let served = self.served.fetch_add(1, Ordering::Relaxed) + 1;
        for fault in &self.faults {
            match *fault {
                Injected::Delay { us, share } if self.chance(share) => compute(us),
                Injected::StallServer { us } => stall(us),
                Injected::MonitorServer { .. } => self.monitor.iter().for_each(|monitor| monitor.enter()),
                Injected::PollServer { us } => blockers::poll(us),
                Injected::SyncServer => {
                    let slow = self.disk.as_ref().and_then(|disk| disk.sync().ok());
                    spared = if slow.is_some_and(Synced::is_wait) { 0 } else { SPARED };
                }
                Injected::LockServer { .. } | Injected::ChainServer { .. } => {
                    // The lock guards no data; only the wait matters.
                    drop(self.lock.as_ref().map(|lock| lock.lock().unwrap_or_else(PoisonError::into_inner)));
                }
                Injected::LoseReply if served == FATAL_CALL => loop {
                    std::thread::park();
                },
                Injected::KillServer if served == FATAL_CALL => std::process::abort(),
                _ => {}
            }
        }
        spared
    }

    fn chance(&self, share: f64) -> bool {
        let Some(rng) = &self.rng else { return false };
        let word = rng.lock().unwrap_or_else(PoisonError::into_inner).u64(..);
        // The upper 53 bits give a uniform number from 0 to 1.
        ((word >> 11) as f64) < share * (1u64 << 53) as f64
    }
}

/// Sleeps for `us`, exact to the microsecond: a sleep always ends late, so the last part is a spin.
fn stall(us: u64) {
    /// Upper bound of nearly all sleeps' lateness.
    const LATE_US: u64 = 300;
    let start = monotonic_ns();
    sleep_until(start + (us - LATE_US.min(us / 4)) * 1000);
    compute_until(start + us * 1000);
}

/// Computes for `us`.
fn compute(us: u64) {
    compute_until(monotonic_ns() + us * 1000);
}

fn compute_until(end: u64) {
    while monotonic_ns() < end {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_tells_of_the_thread_that_serves() {
        let service = Service::default();
        let here = service.serve();
        assert_eq!(here.tid, ThreadId::current().number().unsigned_abs());
        let there = std::thread::spawn(move || service.serve()).join().expect("no panic");
        assert_ne!(here.tid, there.tid);
        assert_eq!(here.sched, pack(of_own(sched::own_now())));
    }

    #[test]
    fn a_delay_is_spent_running_and_a_stall_is_not() {
        let spent = |fault| {
            let service = Service::with(&[fault], 1);
            let (start, cpu) = (monotonic_ns(), thread_cpu_ns());
            service.serve();
            (monotonic_ns() - start, thread_cpu_ns() - cpu)
        };
        let (wall, cpu) = spent(Injected::Delay { us: 3000, share: 1.0 });
        assert!(wall >= 3_000_000 && cpu > 0);
        let (wall, idle_cpu) = spent(Injected::StallServer { us: 3000 });
        assert!(wall >= 3_000_000 && idle_cpu < wall / 2, "{idle_cpu} of {wall} ns");
        let (wall, _) = spent(Injected::Delay { us: 10_000_000, share: 0.0 });
        assert!(wall < 10_000_000_000, "a delay that never comes");
    }

    #[test]
    fn chances_are_about_as_asked_for() {
        let service = Service::with(&[Injected::Delay { us: 0, share: 0.25 }], 7);
        let hits = (0..4000).filter(|_| service.chance(0.25)).count();
        assert!((800..1200).contains(&hits), "{hits} of 4000");
    }
}
