//! Room: making a thread real-time, being sure that it is, and saying why it cannot be.
//! Not here: how long such threads may run (`sys::rt_limit`), what becomes of their calls (`inheritance`).
//! Facts: `sched(7)`, `setrlimit(2)`; the refusals of `__sched_setscheduler` in `kernel/sched/syscalls.c`:
//! no `CAP_SYS_NICE` in the first user namespace and beyond `RLIMIT_RTPRIO`, or, with
//! `CONFIG_RT_GROUP_SCHED`, a control group without real-time budget, which stops root, too. A thread
//! attribute without explicit scheduling fails silently, so every result is read back.

use std::fmt;
use std::io;

use driver::kernel_config::KernelConfig;
use record::Sched;
use sys::sched::{self, Own, Policy};

use crate::host::Root;

/// The most urgent real-time priority of Linux.
pub const HIGHEST: u8 = 99;

/// Why a thread did not become real-time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealtimeProblem {
    /// The priority asked for.
    pub priority: u8,
    /// What the kernel answered; `None` when it claimed success.
    pub answer: Option<String>,
    /// Why, as far as it can be told.
    pub cause: Cause,
    /// What holds for real-time threads of this machine, for the reader's information.
    pub throttling: Option<Throttling>,
}

/// What is in the way of a real-time policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Neither the capability nor the limit allows it.
    NotAllowed {
        /// `RLIMIT_RTPRIO`; `None` if it cannot be read.
        limit: Option<u64>,
    },
    /// The capability is there, but counts in a user namespace only.
    UserNamespace {
        /// `RLIMIT_RTPRIO`; `None` if it cannot be read.
        limit: Option<u64>,
    },
    /// The thread's control group has no real-time budget.
    NoGroupBudget {
        /// The file that says so.
        file: String,
    },
    /// The kernel gives budgets to control groups, and this one seems to have none.
    GroupScheduling,
    /// The kernel refuses it to a thread that may, e.g. by a filter of system calls.
    Refused,
    /// No such priority.
    NoPriority,
    /// The kernel took it, and the thread runs otherwise.
    NotKept(Sched),
}

/// How much of the time real-time threads may run; the kernel stops them for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttling {
    /// In each period; negative for no limit.
    pub runtime_us: i64,
    /// The period.
    pub period_us: i64,
}

impl fmt::Display for Throttling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runtime_us, period_us } = self;
        match runtime_us {
            ..0 => f.write_str("RT throttling is off"),
            _ => {
                write!(f, "RT throttling lets real-time threads run {runtime_us} us of every {period_us} us")
            }
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |limit: &Option<u64>| limit.map_or("unknown".to_owned(), |limit| limit.to_string());
        match self {
            Self::NotAllowed { limit } => write!(
                f,
                "the process lacks CAP_SYS_NICE and its RLIMIT_RTPRIO is {}; run it as root, or raise the limit (ulimit -r)",
                of(limit)
            ),
            Self::UserNamespace { limit } => write!(
                f,
                "CAP_SYS_NICE counts in this user namespace only and RLIMIT_RTPRIO is {}; run it outside of the \
                 container, or raise the limit (ulimit -r)",
                of(limit)
            ),
            Self::NoGroupBudget { file } => write!(
                f,
                "RT group scheduling: this control group has no real-time budget; write one into {file}, or run it in the \
                 root group"
            ),
            Self::GroupScheduling => f.write_str(
                "the kernel has RT group scheduling (CONFIG_RT_GROUP_SCHED), and this control group has no real-time \
                 budget; run it in the root group",
            ),
            Self::Refused => f.write_str(
                "CAP_SYS_NICE or RLIMIT_RTPRIO would allow it; look for a filter of system calls (seccomp) or another \
                 security policy",
            ),
            Self::NoPriority => write!(f, "real-time priorities are 1 to {HIGHEST}"),
            Self::NotKept(sched) => write!(
                f,
                "the kernel took it, yet the thread is {} {}",
                sched.policy_name().unwrap_or("of an unknown policy"),
                sched.priority
            ),
        }
    }
}

impl fmt::Display for RealtimeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a thread cannot be made SCHED_FIFO {}", self.priority)?;
        if let Some(answer) = &self.answer {
            write!(f, ": {answer}")?;
        }
        write!(f, ": {}", self.cause)?;
        match self.throttling {
            Some(throttling) => write!(f, " ({throttling})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for RealtimeProblem {}

/// Makes the calling thread `SCHED_FIFO` of this priority, and returns how it then really is scheduled.
/// It stays so until it ends or is changed again; give its process a limit (`sys::rt_limit::limit_realtime_us`) first, and never
/// let it spin.
///
/// # Errors
/// It is not what was asked for, and why.
pub fn become_fifo(priority: u8) -> Result<Sched, RealtimeProblem> {
    let problem =
        |answer: Option<String>, cause| RealtimeProblem { priority, answer, cause, throttling: throttling() };
    if let Err(error) = sched::set_policy(0, Policy::Fifo(priority)) {
        let cause = explain(&Root::of_this_machine(), priority, &error);
        return Err(problem(Some(sys::errno::describe(&error)), cause));
    }
    let own = own();
    if own.policy == Sched::fifo(0).policy && own.priority == u32::from(priority) {
        Ok(own)
    } else {
        Err(problem(None, Cause::NotKept(own)))
    }
}

/// How the calling thread is scheduled, asked anew.
#[must_use]
pub fn own() -> Sched {
    of_own(sched::own_now())
}

/// How a thread is scheduled, by its kernel number in any process.
///
/// # Errors
/// `ESRCH`: no such thread.
pub fn of_thread(thread: i32) -> io::Result<Sched> {
    Ok(of_own(Own { policy: sched::policy_of(thread)?, nice: sched::nice_of(thread)? }))
}

/// In the document's words.
#[must_use]
pub fn of_own(own: Own) -> Sched {
    let (policy, priority) = match own.policy {
        Policy::Fifo(priority) => (1, priority),
        Policy::Rr(priority) => (2, priority),
        Policy::Batch => (3, 0),
        Policy::Idle => (5, 0),
        Policy::Deadline => (6, 0),
        Policy::Unknown(number) => (u32::try_from(number).unwrap_or(u32::MAX), 0),
        _ => (0, 0),
    };
    Sched { policy, priority: priority.into(), nice: own.nice }
}

/// What the kernel allows real-time threads in all; `None` where it has no such setting.
#[must_use]
pub fn throttling() -> Option<Throttling> {
    throttling_of(&Root::of_this_machine())
}

fn throttling_of(root: &Root) -> Option<Throttling> {
    let number = |file: &str| root.text(format!("proc/sys/kernel/{file}"))?.parse().ok();
    Some(Throttling { runtime_us: number("sched_rt_runtime_us")?, period_us: number("sched_rt_period_us")? })
}

/// Why this was refused to the calling thread.
fn explain(root: &Root, priority: u8, error: &io::Error) -> Cause {
    if !(1..=HIGHEST).contains(&priority) {
        return Cause::NoPriority;
    }
    if error.kind() != io::ErrorKind::PermissionDenied {
        return Cause::Refused;
    }
    let limit = limit(root);
    let by_limit = limit.is_some_and(|limit| limit >= priority.into());
    if !has_sys_nice(root) && !by_limit {
        return Cause::NotAllowed { limit };
    }
    if !is_first_namespace(root) && !by_limit {
        return Cause::UserNamespace { limit };
    }
    group(root).unwrap_or(Cause::Refused)
}

/// `RLIMIT_RTPRIO`, the soft one; `u64::MAX` when there is none.
fn limit(root: &Root) -> Option<u64> {
    let text = root.text("proc/self/limits")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max realtime priority"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// Whether the calling thread has the capability, wherever that counts.
fn has_sys_nice(root: &Root) -> bool {
    const SYS_NICE: u32 = 23;
    let text = root.text("proc/thread-self/status").unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 << SYS_NICE != 0)
}

/// Whether the machine's own user namespace is this process's; only there users map to themselves, all of
/// them.
fn is_first_namespace(root: &Root) -> bool {
    root.text("proc/self/uid_map").is_none_or(|map| map.split_whitespace().eq(["0", "0", "4294967295"]))
}

/// Whether the thread's control group keeps it from running in real time.
fn group(root: &Root) -> Option<Cause> {
    let groups = root.text("proc/thread-self/cgroup").unwrap_or_default();
    let of_cpu = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        controllers.split(',').any(|controller| controller == "cpu").then_some(path)
    });
    if let Some(path) = of_cpu {
        // The group as the machine sees it, or, in a container, as the root of what is mounted there.
        for place in [path, ""] {
            for mount in ["cpu", "cpu,cpuacct"] {
                let file = format!("sys/fs/cgroup/{mount}{}/cpu.rt_runtime_us", place.trim_end_matches('/'));
                if let Some(budget) = root.text(&file) {
                    return (budget == "0").then(|| Cause::NoGroupBudget { file: format!("/{file}") });
                }
            }
        }
    }
    KernelConfig::find(&root.path(""))?.is_on("RT_GROUP_SCHED").then_some(Cause::GroupScheduling)
}

#[cfg(test)]
mod tests;
