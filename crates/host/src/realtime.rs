//! Makes a thread real-time, verifies the result, and explains a refusal.
//! Not here: CPU time limits of such threads (`sys::limits`), priority inheritance of calls (`inheritance`).
//! Facts: `sched(7)`, `setrlimit(2)`; `__sched_setscheduler` in `kernel/sched/syscalls.c` refuses without
//! `CAP_SYS_NICE` in the initial user namespace and above `RLIMIT_RTPRIO`; with `CONFIG_RT_GROUP_SCHED` also (even
//! root) in a control group without real-time budget. A thread attribute without explicit scheduling fails silently,
//! so every result is read back.

use std::fmt;
use std::io;

use driver::Root;
use driver::kernel_config::KernelConfig;
use record::Sched;
use sys::sched::{self, Own, Policy};

use crate::parse;

/// Highest real-time priority of Linux.
pub const HIGHEST: u8 = 99;

/// Why a thread did not become real-time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealtimeProblem {
    /// The requested priority.
    pub priority: u8,
    /// The kernel's error; `None` if it reported success.
    pub answer: Option<String>,
    /// The cause, as far as it can be determined.
    pub cause: Cause,
    /// The machine's limit on real-time threads, for information.
    pub throttling: Option<Throttling>,
}

/// Obstacle to a real-time policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Neither the capability nor the limit permits it.
    NotAllowed {
        /// `RLIMIT_RTPRIO`; `None` if unreadable.
        limit: Option<u64>,
    },
    /// The capability is valid in a nested user namespace only.
    UserNamespace {
        /// `RLIMIT_RTPRIO`; `None` if unreadable.
        limit: Option<u64>,
    },
    /// The thread's control group has no real-time budget.
    NoGroupBudget {
        /// The file that shows it.
        file: String,
    },
    /// The kernel has budgets per control group, and this group probably has none.
    GroupScheduling,
    /// The kernel refuses despite sufficient rights, for example because of a seccomp filter.
    Refused,
    /// The priority is out of range.
    NoPriority,
    /// The kernel reported success, but the thread has another policy.
    NotKept(Sched),
}

/// Real-time throttling: the share of time that real-time threads may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttling {
    /// Run time per period; negative: unlimited.
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

/// Makes the calling thread `SCHED_FIFO` with this priority; returns its actual scheduling. Set a limit for the
/// process first (`sys::limits::set_realtime_us`), and never let the thread spin.
///
/// # Errors
/// The policy differs from the requested one; the cause.
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

/// The calling thread's current scheduling.
#[must_use]
pub fn own() -> Sched {
    of_own(sched::own_now())
}

/// A thread's scheduling, by its kernel thread ID in any process.
///
/// # Errors
/// `ESRCH`: no such thread.
pub fn of_thread(thread: i32) -> io::Result<Sched> {
    Ok(of_own(Own { policy: sched::policy_of(thread)?, nice: sched::nice_of(thread)? }))
}

/// Converts to the record's type.
#[must_use]
pub fn of_own(own: Own) -> Sched {
    let (policy, priority) = own.policy.numbers();
    Sched { policy: u32::try_from(policy).unwrap_or(u32::MAX), priority: priority.into(), nice: own.nice }
}

/// The kernel's real-time throttling; `None` if it has no such setting.
#[must_use]
pub fn throttling() -> Option<Throttling> {
    throttling_of(&Root::of_this_machine())
}

fn throttling_of(root: &Root) -> Option<Throttling> {
    let number = |file: &str| root.text(format!("proc/sys/kernel/{file}"))?.parse().ok();
    Some(Throttling { runtime_us: number("sched_rt_runtime_us")?, period_us: number("sched_rt_period_us")? })
}

/// Determines why the calling thread was refused.
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

/// The soft `RLIMIT_RTPRIO`; `u64::MAX` if unlimited.
fn limit(root: &Root) -> Option<u64> {
    parse::limit(&root.text("proc/self/limits")?, "Max realtime priority")
}

/// Whether the calling thread has `CAP_SYS_NICE`, in whichever user namespace.
fn has_sys_nice(root: &Root) -> bool {
    let status = root.text("proc/thread-self/status").unwrap_or_default();
    parse::has_capability(&status, parse::CAP_SYS_NICE).unwrap_or(false)
}

/// Whether this is the initial user namespace: only there all user IDs map to themselves.
fn is_first_namespace(root: &Root) -> bool {
    root.text("proc/self/uid_map").is_none_or(|map| map.split_whitespace().eq(["0", "0", "4294967295"]))
}

/// Whether the thread's control group prevents real-time policies.
fn group(root: &Root) -> Option<Cause> {
    let groups = root.text("proc/thread-self/cgroup").unwrap_or_default();
    let of_cpu = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        controllers.split(',').any(|controller| controller == "cpu").then_some(path)
    });
    if let Some(path) = of_cpu {
        // The group's path on the host, or, in a container, the root of its mount.
        for place in [path, ""] {
            for mount in ["cpu", "cpu,cpuacct"] {
                let file = format!("sys/fs/cgroup/{mount}{}/cpu.rt_runtime_us", place.trim_end_matches('/'));
                if let Some(budget) = root.text(&file) {
                    return (budget == "0").then(|| Cause::NoGroupBudget { file: format!("/{file}") });
                }
            }
        }
    }
    KernelConfig::find(root)?.is_on("RT_GROUP_SCHED").then_some(Cause::GroupScheduling)
}

#[cfg(test)]
mod tests;
