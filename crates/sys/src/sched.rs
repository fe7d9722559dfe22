//! Scheduling of threads: affinity, policy, nice value.
//! Not here: deciding on them.
//! Facts: `sched_setscheduler(2)`, `getpriority(2)` with its notes on the raw system call,
//! `sched_getaffinity(2)`, `CPU_SET(3)`. musl's `sched_getscheduler` and `sched_setscheduler` only
//! return `ENOSYS`, so these go to the kernel directly.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::errno::check;

const SET_SIZE: usize = size_of::<libc::cpu_set_t>();

fn empty_set() -> libc::cpu_set_t {
    // SAFETY: a cpu_set_t is an array of integers, for which all-zero bytes are a value.
    unsafe { std::mem::zeroed() }
}

/// The CPUs that the calling thread may run on, ascending.
///
/// # Errors
/// `EINVAL`: the kernel has more CPUs than the C library's set holds (1024).
pub fn affinity() -> io::Result<Vec<u32>> {
    let mut set = empty_set();
    // SAFETY: `set` is live and of the size given; 0 is the calling thread.
    check(unsafe { libc::sched_getaffinity(0, SET_SIZE, &raw mut set) })?;
    // SAFETY: CPU_ISSET reads `set` only, and every number is below the set's size in bits.
    let is_set = |cpu: &u32| unsafe { libc::CPU_ISSET(*cpu as usize, &set) };
    Ok((0..SET_SIZE as u32 * 8).filter(is_set).collect())
}

/// Lets the calling thread, and threads and processes that it starts from now on, run on these CPUs
/// only.
///
/// # Errors
/// `EINVAL`: none of them may be used, or a number is beyond the C library's set.
pub fn set_affinity(cpus: &[u32]) -> io::Result<()> {
    let mut set = empty_set();
    for &cpu in cpus {
        if cpu as usize >= SET_SIZE * 8 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: stores into `set`, and the number is below the set's size in bits.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    }
    // SAFETY: `set` is live and of the size given; 0 is the calling thread.
    check(unsafe { libc::sched_setaffinity(0, SET_SIZE, &raw const set) })
}

/// How many CPUs the machine runs on, whether or not this thread may use them; at least 1.
#[must_use]
pub fn online_cpus() -> u32 {
    // SAFETY: takes an integer.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(count).unwrap_or(1).max(1)
}

/// How many CPUs the calling thread may run on; at least 1.
#[must_use]
pub fn usable_cpus() -> u32 {
    match affinity() {
        Ok(cpus) => (cpus.len() as u32).max(1),
        Err(_) => std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
    }
}

/// The CPU that the calling thread runs on, as a hint: it may have moved when this returns. No system
/// call where the C library can help it.
#[must_use]
#[inline]
pub fn current_cpu() -> u32 {
    // SAFETY: takes nothing, touches no memory of ours.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).unwrap_or(u32::MAX)
}

/// By which rule the kernel runs a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// `SCHED_OTHER`: shares the CPU by its nice.
    Other,
    /// `SCHED_FIFO` with this priority, 1 (least urgent) to 99: runs until it sleeps.
    Fifo(u8),
    /// `SCHED_RR` with this priority, 1 to 99: as FIFO, in turns with its equals.
    Rr(u8),
    /// `SCHED_BATCH`: shares the CPU, never preempts on waking.
    Batch,
    /// `SCHED_IDLE`: runs when nothing else wants to.
    Idle,
    /// `SCHED_DEADLINE`. Can be found, not set: its parameters do not fit here.
    Deadline,
    /// A policy newer than this list, by the kernel's number.
    Unknown(i32),
}

const DEADLINE: libc::c_int = 6;

impl Policy {
    /// Whether it goes before every thread that shares the CPU by nice.
    #[must_use]
    pub fn is_realtime(self) -> bool {
        matches!(self, Self::Fifo(_) | Self::Rr(_) | Self::Deadline)
    }

    /// The kernel's number of the policy, and the priority within it.
    #[must_use]
    pub fn numbers(self) -> (i32, u8) {
        match self {
            Self::Other => (libc::SCHED_OTHER, 0),
            Self::Fifo(priority) => (libc::SCHED_FIFO, priority),
            Self::Rr(priority) => (libc::SCHED_RR, priority),
            Self::Batch => (libc::SCHED_BATCH, 0),
            Self::Idle => (libc::SCHED_IDLE, 0),
            Self::Deadline => (DEADLINE, 0),
            Self::Unknown(number) => (number, 0),
        }
    }
}

fn checked(result: libc::c_long) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// `sched_param` as the kernel has it; musl's is longer, and only this much is copied.
fn parameter(priority: libc::c_int) -> [libc::c_int; 1] {
    [priority]
}

/// The policy of a thread, by its kernel number in any process; 0 is the caller.
///
/// # Errors
/// `ESRCH`: no such thread.
pub fn policy_of(thread: i32) -> io::Result<Policy> {
    // SAFETY: takes an integer.
    let number = checked(unsafe { libc::syscall(libc::SYS_sched_getscheduler, thread) })?;
    let mut priority = parameter(0);
    // SAFETY: the kernel stores one int, for which `priority` is live and large enough.
    checked(unsafe { libc::syscall(libc::SYS_sched_getparam, thread, priority.as_mut_ptr()) })?;
    // The kernel's range is 0..=99.
    let priority = priority[0] as u8;
    const RESET_ON_FORK: libc::c_int = 0x4000_0000;
    Ok(known_policy(number & !RESET_ON_FORK, priority))
}

fn known_policy(number: libc::c_int, priority: u8) -> Policy {
    match number {
        libc::SCHED_OTHER => Policy::Other,
        libc::SCHED_FIFO => Policy::Fifo(priority),
        libc::SCHED_RR => Policy::Rr(priority),
        libc::SCHED_BATCH => Policy::Batch,
        libc::SCHED_IDLE => Policy::Idle,
        DEADLINE => Policy::Deadline,
        other => Policy::Unknown(other),
    }
}

/// Changes the policy of a thread, by its kernel number in any process; 0 is the caller. Its nice
/// stays and counts again under the policies that know one.
///
/// # Errors
/// `EPERM`: not allowed (a real-time policy needs `CAP_SYS_NICE` or `RLIMIT_RTPRIO`, or another
/// user's thread). `EINVAL`: a priority out of range, or a policy that cannot be set here. `ESRCH`:
/// no such thread.
pub fn set_policy(thread: i32, policy: Policy) -> io::Result<()> {
    let (number, priority) = policy.numbers();
    let priority = parameter(priority.into());
    // SAFETY: the kernel reads one int from `priority`, which is live; the others are integers.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread, number, priority.as_ptr()) };
    CHANGES.fetch_add(1, Ordering::Relaxed);
    checked(result).map(drop)
}

/// The kernel's `PRIO_PROCESS`, which means one *thread*, unlike in POSIX. (The C libraries
/// disagree about its type.)
const ONE_THREAD: libc::c_int = 0;

/// The nice of a thread, by its kernel number in any process: -20 (most urgent) to 19; 0 is the
/// caller. A thread with a real-time policy has one too, which does not count meanwhile.
///
/// # Errors
/// `ESRCH`: no such thread.
pub fn nice_of(thread: i32) -> io::Result<i32> {
    // SAFETY: takes integers.
    let raw = checked(unsafe { libc::syscall(libc::SYS_getpriority, ONE_THREAD, thread) })?;
    // The raw call returns 40 to 1, so that no nice looks like an error.
    Ok(20 - raw)
}

/// Changes the nice of a thread, by its kernel number in any process; 0 is the caller. A nice
/// beyond -20..=19 counts as the nearest in it.
///
/// # Errors
/// `EACCES`: more urgent than now, without `CAP_SYS_NICE` and beyond `RLIMIT_NICE`. `EPERM`: another
/// user's thread. `ESRCH`: no such thread.
pub fn set_nice(thread: i32, nice: i32) -> io::Result<()> {
    // SAFETY: takes integers.
    let result = unsafe { libc::syscall(libc::SYS_setpriority, ONE_THREAD, thread, nice) };
    CHANGES.fetch_add(1, Ordering::Relaxed);
    checked(result).map(drop)
}

/// `struct sched_attr` with the clamps of utilization.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    util_min: u32,
    util_max: u32,
}

const ATTRIBUTES_SIZE: usize = size_of::<Attributes>();

/// The attributes of the calling thread; an older kernel leaves the fields that it does not know 0.
fn own_attributes() -> io::Result<Attributes> {
    let mut found = Attributes::default();
    // SAFETY: the kernel stores at most the given size into `found`, which is live; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut found, ATTRIBUTES_SIZE, 0) };
    checked(result).map(|_| found)
}

/// How the calling thread is scheduled, in one system call (`sched_getattr(2)`): under a real-time policy
/// the nice, which does not count then, is 0.
#[must_use]
pub fn attributes() -> Own {
    // A sandbox may lack this call.
    let Ok(found) = own_attributes() else { return own_now() };
    let priority = found.priority as u8;
    Own { policy: known_policy(found.policy.cast_signed(), priority), nice: found.nice }
}

/// The least and the most utilization that the scheduler assumes of the calling thread, in 1/1024 of the fastest CPU.
///
/// # Errors
/// A sandbox refuses the question.
pub fn utilization() -> io::Result<[u32; 2]> {
    own_attributes().map(|found| [found.util_min, found.util_max])
}

/// Clamps the utilization that the scheduler assumes of the calling thread, and of threads and processes that it starts
/// from now on: at least `min` and at most `max`, in 1/1024 of the fastest CPU.
///
/// # Errors
/// `EOPNOTSUPP`: the kernel is without `CONFIG_UCLAMP_TASK`. `EINVAL`: a value above 1024, or `min` above `max`. `EPERM`:
/// not allowed, as in a sandbox.
pub fn clamp_utilization([min, max]: [u32; 2]) -> io::Result<()> {
    /// `SCHED_FLAG_KEEP_ALL` and `SCHED_FLAG_UTIL_CLAMP`: nothing else changes.
    const CLAMP_ONLY: u64 = 0x78;
    let size = ATTRIBUTES_SIZE as u32;
    let wanted =
        Attributes { size, flags: CLAMP_ONLY, util_min: min, util_max: max, ..Attributes::default() };
    // SAFETY: the kernel reads `size` bytes of `wanted`, which is live; 0 is the calling thread.
    checked(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) }).map(drop)
}

/// How the calling thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// Its policy.
    pub policy: Policy,
    /// Its nice, which counts under policies that know one.
    pub nice: i32,
}

/// Counts the changes that this process made.
static CHANGES: AtomicU32 = AtomicU32::new(0);

/// What was last seen.
struct Seen {
    own: Cell<Own>,
    /// When, on the coarse clock; 0 for never.
    when: Cell<u64>,
    /// After how many changes.
    after: Cell<u32>,
}

thread_local! {
    static SEEN: Seen = const {
        let own = Cell::new(Own { policy: Policy::Other, nice: 0 });
        Seen { own, when: Cell::new(0), after: Cell::new(0) }
    };
}

/// How the calling thread is scheduled, without a system call most of the time: changes made through
/// this module are seen at once, others within a tick of the coarse clock (1 to 10 ms).
#[must_use]
#[inline]
pub fn own_lately() -> Own {
    let (now, changes) = (crate::clock::coarse_ns(), CHANGES.load(Ordering::Relaxed));
    SEEN.with(|seen| {
        if seen.when.get() != now || seen.after.get() != changes {
            look_anew(seen, now, changes);
        }
        seen.own.get()
    })
}

#[cold]
fn look_anew(seen: &Seen, now: u64, changes: u32) {
    seen.own.set(own_now());
    seen.when.set(now);
    seen.after.set(changes);
}

/// Tells that a thread's scheduling was changed by other means than this module, so that [`own_lately`] asks anew.
pub fn was_changed() {
    CHANGES.fetch_add(1, Ordering::Relaxed);
}

/// How the calling thread is scheduled, asked anew.
#[must_use]
pub fn own_now() -> Own {
    // Asking about oneself cannot fail.
    Own { policy: policy_of(0).unwrap_or(Policy::Other), nice: nice_of(0).unwrap_or(0) }
}

/// Whether the calling thread has a real-time policy (FIFO, RR or DEADLINE).
#[must_use]
pub fn is_realtime() -> bool {
    policy_of(0).is_ok_and(Policy::is_realtime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_goes_where_it_is_told() {
        let all = affinity().expect("affinity");
        let last = *all.last().expect("a CPU");
        set_affinity(&[last]).expect("one of ours");
        assert_eq!(affinity().expect("affinity"), [last]);
        assert_eq!(current_cpu(), last);
        set_affinity(&all).expect("all of ours");
        assert_eq!(usable_cpus() as usize, all.len());
        assert!(set_affinity(&[]).is_err());
        assert!(set_affinity(&[1 << 20]).is_err());
    }

    #[test]
    fn a_plain_thread_has_cpus_and_no_real_time_policy() {
        assert!(usable_cpus() >= 1);
        assert!(!is_realtime());
    }

    /// In a thread of its own, so that no other test finds itself nicer.
    fn aside<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(job).join().expect("no panic")
    }

    #[test]
    fn a_thread_becomes_nicer_alone() {
        let before = nice_of(0).expect("own nice");
        let (inside, by_number) = aside(move || {
            set_nice(0, before + 1).expect("nicer is always allowed");
            let number = crate::interrupt::ThreadId::current().number();
            (nice_of(0).expect("own nice"), nice_of(number).expect("by number"))
        });
        assert_eq!((inside, by_number), ((before + 1).min(19), (before + 1).min(19)));
        assert_eq!(nice_of(0).expect("own nice"), before);
        assert_eq!(nice_of(i32::MAX).expect_err("no thread").raw_os_error(), Some(libc::ESRCH));
        assert_eq!(set_nice(i32::MAX, 0).expect_err("no thread").raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn utilization_is_clamped_where_the_kernel_can() {
        // Without such clamps, before Linux 5.3, and under a filter of system calls.
        let is_unable = |error: &io::Error| {
            let number = error.raw_os_error();
            matches!(number, Some(libc::EOPNOTSUPP | libc::EINVAL | libc::E2BIG | libc::EPERM | libc::ENOSYS))
        };
        let clamped = aside(|| (clamp_utilization([100, 200]), utilization()));
        match clamped {
            (Ok(()), found) => assert_eq!(found.expect("as it could be set"), [100, 200]),
            (Err(error), _) => assert!(is_unable(&error), "{error}"),
        }
        let refused = aside(|| clamp_utilization([300, 200])).expect_err("least above most");
        assert!(is_unable(&refused), "{refused}");
    }

    #[test]
    fn one_question_answers_as_three() {
        let (fair, real) = aside(|| {
            set_nice(0, 7).expect("nicer is always allowed");
            let fair = (attributes(), own_now());
            (fair, set_policy(0, Policy::Fifo(3)).is_ok().then(|| attributes().policy))
        });
        assert_eq!(fair.0, fair.1);
        assert!(real.is_none_or(|policy| policy == Policy::Fifo(3)));
    }

    #[test]
    fn a_policy_is_found_as_it_was_set() {
        let kept = |policy| {
            aside(move || match set_policy(0, policy) {
                Ok(()) => Some(policy_of(0).expect("own policy")),
                // Real-time policies are for the privileged.
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{policy:?}");
                    None
                }
            })
        };
        assert_eq!(kept(Policy::Batch), Some(Policy::Batch));
        assert_eq!(kept(Policy::Idle), Some(Policy::Idle));
        for policy in [Policy::Fifo(3), Policy::Rr(99)] {
            assert!(kept(policy).is_none_or(|found| found == policy && found.is_realtime()));
        }
        for refused in [Policy::Deadline, Policy::Unknown(99), Policy::Fifo(0), Policy::Fifo(100)] {
            let error = set_policy(0, refused).expect_err("cannot be set");
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{refused:?}");
        }
        assert!(!Policy::Batch.is_realtime());
    }
}
