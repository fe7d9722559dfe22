//! Injectable causes of slowness: how each is injected, and the verdicts that name it.
//! Not here: injecting them and counting (`super`).

use std::fmt;

use trace::cause::Label;
use trace::verdict::{Reason, SlowCall};

use crate::latency::blockers::has_slow_disk;

/// Priority of the hog that is more urgent than the server, as requested and as the kernel counts it.
const HOG: u8 = 50;
const HOG_PRIO: i32 = 49;
/// Hogs that are less urgent than the caller.
const HOGS: &str = "cpu:2";
/// Duration of holding a lock or occupying a looper, in us.
const HELD_US: u64 = 4000;
/// Number of timers that expire simultaneously.
const TIMERS: u32 = 4000;
/// Work of the service in calls that a cause is to interrupt, in us.
const WORK_US: u64 = 300;
/// The same for a short cause, in us.
const LITTLE_WORK_US: u64 = 100;
/// The same for a cause that comes and goes by itself, in us: less than the excess of an affected call, or
/// such a call could have spent most of its time at work.
const MORE_WORK_US: u64 = 600;
/// Longest time that a call computes at a stretch, in ns, with a margin: work is timed by the clock, and ends whatever
/// delays it.
pub(super) const LONGEST_WORK_NS: u64 = (MORE_WORK_US + 400) * 1000;
/// Share of calls with this work: at random, because otherwise a periodic cause would always meet the same
/// calls.
const SHARE: f64 = 0.8;

/// A cause of slow calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A real-time task on the server's CPU, more urgent than caller and server.
    RtHog,
    /// Ordinary tasks on the server's CPU, with a real-time caller and an ordinary server.
    Inversion,
    /// A lock that another thread of the server holds.
    Lock,
    /// A server whose only looper serves other clients.
    Busy,
    /// Caller and server on two CPUs.
    Apart,
    /// Timers that expire while the call is served.
    Timers,
    /// A monitor that a third thread owns, as its waiter says.
    Monitor,
    /// A lock whose holder waits for the lock of a third thread.
    Chain,
    /// A write that waits for a disk.
    Io,
    /// A wait by design: for an event that does not come.
    Poll,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 10] = [
        Self::RtHog,
        Self::Inversion,
        Self::Lock,
        Self::Busy,
        Self::Apart,
        Self::Timers,
        Self::Monitor,
        Self::Chain,
        Self::Io,
        Self::Poll,
    ];

    /// Returns its name, as typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RtHog => "rt-hog",
            Self::Inversion => "inversion",
            Self::Lock => "lock",
            Self::Busy => "busy",
            Self::Apart => "apart",
            Self::Timers => "timers",
            Self::Monitor => "monitor",
            Self::Chain => "chain",
            Self::Io => "io",
            Self::Poll => "poll",
        }
    }

    /// Describes its effect on the calls.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::RtHog => "a SCHED_FIFO 50 hog on the server's CPU, caller SCHED_FIFO 10",
            Self::Inversion => "two SCHED_OTHER hogs on the CPU, caller SCHED_FIFO 99, server not boosted",
            Self::Lock => "another thread of the server holds a lock for 4 ms",
            Self::Busy => "the only looper serves somebody else's call of 4 ms",
            Self::Apart => "caller and server on two CPUs",
            Self::Timers => "4000 timers expire at once while the call is served",
            Self::Monitor => "a third thread owns a monitor for 4 ms",
            Self::Chain => "a lock whose holder waits for a lock that a third thread holds for 4 ms",
            Self::Io => "the server writes, and waits for the disk, for 2 ms in all",
            Self::Poll => "the server waits 4 ms for an event that does not come",
        }
    }

    /// Returns what it needs and this machine with so many usable CPUs lacks, if anything.
    pub(super) fn lacks(self, usable_cpus: usize) -> Option<&'static str> {
        match self {
            Self::Apart if usable_cpus < 2 => Some("it takes two CPUs"),
            Self::Io if !has_slow_disk() => {
                Some("writes to the folder for temporary files (TMPDIR) do not wait for a disk")
            }
            _ => None,
        }
    }

    /// Arguments of the latency test: those for both variants, and those that inject the cause.
    pub(super) fn words(self, embedded: bool, [first, second]: [u32; 2]) -> (String, String) {
        let same = format!("--cpus {second},{second}");
        match self {
            Self::RtHog => (
                format!("--cpus {first},{second} --priority 10 --inject delay={WORK_US}:{SHARE}"),
                format!("--load cpu:1:fifo{HOG} --load-cpu {second}"),
            ),
            // The embedded driver boosts servers unless configured otherwise, so both variants have the hogs.
            Self::Inversion if embedded => (
                format!("{same} --inject delay={WORK_US}:{SHARE} --load {HOGS} --load-cpu {second}"),
                "--inject drop-inheritance".to_owned(),
            ),
            Self::Inversion => (
                format!("{same} --inject delay={WORK_US}:{SHARE}"),
                format!("--load {HOGS} --load-cpu {second}"),
            ),
            Self::Lock => (
                format!("{same} --inject delay={MORE_WORK_US}:{SHARE}"),
                format!("--inject lock-server={HELD_US}"),
            ),
            Self::Busy => (
                format!("{same} --inject delay={MORE_WORK_US}:{SHARE}"),
                format!("--inject busy-loopers={HELD_US}"),
            ),
            Self::Io => {
                (format!("{same} --inject delay={MORE_WORK_US}:{SHARE}"), "--inject sync-server".to_owned())
            }
            Self::Monitor | Self::Chain | Self::Poll => (
                format!("{same} --inject delay={MORE_WORK_US}:{SHARE}"),
                match self {
                    Self::Monitor => format!("--inject monitor-server={HELD_US}"),
                    Self::Chain => format!("--inject chain-server={HELD_US}"),
                    _ => format!("--inject poll-server={HELD_US}"),
                },
            ),
            Self::Apart => (String::new(), String::new()),
            Self::Timers => (format!("{same} --inject delay={LITTLE_WORK_US}:1"), String::new()),
        }
    }

    /// Arguments that differ between the two variants: the CPUs of [`Cause::Apart`], the expiry of
    /// [`Cause::Timers`], which both variants arm, or the calls without them would be faster by the cache
    /// effect of arming.
    pub(super) fn either(self, with: bool, [first, second]: [u32; 2]) -> String {
        match (self, with) {
            (Self::Apart, true) => format!("--cpus {first},{second}"),
            (Self::Apart, false) => format!("--cpus {second},{second}"),
            (Self::Timers, true) => format!("--inject timers={TIMERS}"),
            (Self::Timers, false) => format!("--inject timers={TIMERS}:late"),
            _ => String::new(),
        }
    }

    /// Minimum excess over the normal duration of an affected call, in ns; `None` if every call is affected,
    /// whatever its duration.
    pub(super) fn excess_ns(self) -> Option<u64> {
        match self {
            Self::Apart => None,
            Self::Timers => Some(150_000),
            _ => Some(1_000_000),
        }
    }

    /// Returns true if a verdict names this cause. With `strictly` it must be the injected one, not just one
    /// of its kind.
    pub(super) fn is_claimed(self, call: &SlowCall, strictly: bool) -> bool {
        let Some(first) = call.reasons.first() else { return false };
        let behind =
            |is_it: &dyn Fn(i32) -> bool| first.behind.first().and_then(|task| task.prio).is_some_and(is_it);
        match self {
            Self::RtHog => {
                is_of(first, &[Label::Runnable, Label::WrongCpu])
                    && behind(&|prio| if strictly { prio == HOG_PRIO } else { (0..100).contains(&prio) })
            }
            // Any task that delays a server that is not boosted: on a busy machine that need not be the hogs.
            Self::Inversion => call.inversion.is_some(),
            Self::Lock => {
                let holder = first.detail.as_deref().is_some_and(|detail| detail.starts_with("lock-holder"));
                is_of(first, &[Label::Mutex, Label::KernelLock])
                    || is_of(first, &[Label::ThreadWait]) && (!strictly || holder)
            }
            Self::Monitor => is_behind(first, &["monitor-owner"]) || !strictly && is_behind(first, &[""]),
            Self::Chain => {
                is_behind(first, &["chain-middle", "chain-end"]) || !strictly && is_behind(first, &["", ""])
            }
            Self::Io => is_of(first, &[Label::Io, Label::Uninterruptible]),
            // Nobody is blamed.
            Self::Poll => {
                is_of(first, &[Label::Sleeping])
                    && first.chain.is_empty()
                    && first.detail.as_deref().is_some_and(|detail| detail.contains("until "))
            }
            Self::Busy => is_of(first, &[Label::NoFreeThread]),
            Self::Apart => call.crossed.is_some(),
            Self::Timers => {
                let detail = first.detail.as_deref().unwrap_or_default().to_lowercase();
                is_of(first, &[Label::Interrupt, Label::SoftInterrupt])
                    && (!strictly || detail.contains("timer"))
            }
        }
    }
}

/// Whether a wait was for threads with these names, one behind the other; the empty name is anybody's.
fn is_behind(reason: &Reason, names: &[&str]) -> bool {
    reason.chain.len() >= names.len()
        && reason.chain.iter().zip(names).all(|(link, name)| link.who.comm.starts_with(name))
}

fn is_of(reason: &Reason, causes: &[Label]) -> bool {
    causes.contains(&reason.cause)
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
