//! The table of causes: everything that is known of a cause before a trace is read.
//! Not here: what a trace shows of one (`rules` of `model`), kinds of events (`evidence`), the language of phrases (`phrase`).
//! Facts: a cause that Perfetto's `android/binder_breakdown.sql` names has that name here: `kernel_memory_reclaim`,
//! `userspace_memory_reclaim`, `monitor_contention`, `art_lock_contention`, `binder`, `mutex_contention`, `io`.

use serde::{Deserialize, Serialize};

use super::evidence::Evidence::{
    self, Calls, Enqueues, IdleStates, Interrupts, Ioctls, LockWaits, Reclaims, Returns, SleepReasons,
    Slices, Softirqs, Switches, Wakeups,
};
use super::evidence::Shown;
use super::paint::Paint;
use super::{CpuHolder, KernelLock, Waker};
use crate::event::{CodeLocation, Irq, Name, Softirq};

/// Alternatives: each is a set of events that proves a cause.
type Proof = &'static [&'static [Evidence]];

/// Whether a cause leads to another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// It does not.
    Ends,
    /// It may be a wait for another thread, which its phrase names.
    Leads,
    /// It may be a wait for another thread, and what for: behind "waited TIME", before "until THREAD woke it".
    For(&'static str),
}
use Chain::{Ends, For, Leads};

/// The coarser names of a sleep whose reason the trace does not show.
const SLEEPS: &[Label] = &[Label::ThreadWait, Label::Sleeping, Label::Uninterruptible];
/// The coarser names of a wait during which the thread may also run, as in reclaim or spinning for a lock.
const SLEEPS_OR_RUNS: &[Label] = &[
    Label::ThreadWait,
    Label::Sleeping,
    Label::Uninterruptible,
    Label::Running,
    Label::ClientRunning,
    Label::ServerRunning,
    Label::Driver,
];
/// What a wait for a CPU is called if less is shown of it.
const WAITS: &[Label] = &[
    Label::Runnable,
    Label::Tracing,
    Label::Handover,
    Label::WakeLatency,
    Label::Monitor,
    Label::ArtLock,
    Label::UserReclaim,
    Label::Mutex,
    Label::KernelLock,
    Label::KernelReclaim,
];
/// Waits that a slice or an event declares: where no wake-up is shown, they last until the thread runs.
const DECLARED: &[Label] = &[
    Label::Monitor,
    Label::ArtLock,
    Label::UserReclaim,
    Label::Mutex,
    Label::KernelLock,
    Label::KernelReclaim,
];
/// A thread that has a CPU, or is on its way to one, where interrupts and silences are not shown.
const ACTS: &[Label] = &[
    Label::ClientRunning,
    Label::ServerRunning,
    Label::Driver,
    Label::Runnable,
    Label::Handover,
    Label::WakeLatency,
    Label::WakeInterrupt,
    Label::IdleExit,
    Label::Silent,
];
const SLEEP: &[Evidence] = &[Switches, Wakeups];
const SLEEP_OF_REASON: &[Evidence] = &[Switches, Wakeups, SleepReasons];

macro_rules! causes {
    ($($cause:ident $(($($tuple:tt)*))? $({$($fields:tt)*})? $name:literal $doc:literal
        proof $proof:expr, else $coarser:expr, chain $chain:expr, paint $paint:ident,
        phrase $phrase:expr,
        advice $advice:literal;)*) => {
        /// Cause of one time segment of a transaction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Cause {
            $(#[doc = $doc] $cause $(($($tuple)*))? $({$($fields)*})?,)*
        }

        impl Cause {
            /// The cause without its data.
            #[must_use]
            pub fn label(&self) -> Label {
                match self { $(Self::$cause { .. } => Label::$cause,)* }
            }
        }

        /// Kind of cause: a [`Cause`] without its data. Results have its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Label {
            $(#[doc = $doc] #[serde(rename = $name)] $cause,)*
        }

        impl Label {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$cause),*];

            /// Name in results.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$cause => $name,)* }
            }

            /// What it means.
            #[must_use]
            pub fn doc(self) -> &'static str {
                match self { $(Self::$cause => $doc,)* }
            }

            /// Events that prove it, in alternatives.
            #[must_use]
            pub fn proof(self) -> Proof {
                match self { $(Self::$cause => $proof,)* }
            }

            /// What the same time may be called, truly but with less detail, in a trace without some of these events.
            #[must_use]
            pub fn coarser(self) -> &'static [Self] {
                match self { $(Self::$cause => $coarser,)* }
            }

            /// Whether it leads to another thread.
            #[must_use]
            pub fn chain(self) -> Chain {
                match self { $(Self::$cause => $chain,)* }
            }

            /// Fill of it in a picture.
            pub(crate) fn paint(self) -> Paint {
                match self { $(Self::$cause => Paint::$paint,)* }
            }

            /// Clause about a thread, in the language of [`super::phrase`].
            pub(crate) fn phrase(self) -> &'static str {
                match self { $(Self::$cause => $phrase,)* }
            }

            /// What to do next.
            #[must_use]
            pub fn advice(self) -> &'static str {
                match self { $(Self::$cause => $advice,)* }
            }
        }
    };
}

/// Phrase of causes that their names describe.
const WAITED: &str = "[{who} ]waited {time}: {name}[, {detail}]{until}";

causes! {
    ClientRunning "client_running" "The calling thread ran, outside the driver where the trace shows that."
        proof &[&[Switches]], else &[], chain Ends, paint Caller,
        phrase "{who} ran for {time}|ran {time}",
        advice "Profile the caller: the time is its own.";
    ServerRunning "server_running" "The serving thread ran, outside the driver where the trace shows that."
        proof &[&[Switches]], else &[], chain Ends, paint Server,
        phrase "{who} ran for {time}|ran {time}",
        advice "Profile the server; `trace compare` shows whether it became slower.";
    Running "running" "A thread ran that was waited for. Only in chains of waits."
        proof &[&[Switches]], else &[], chain Ends, paint Further,
        phrase "{who} ran for {time}|ran {time}[: {detail}]",
        advice "Profile that thread.";
    Driver "driver" "Work of the driver, in either thread or in the broker."
        proof &[&[Switches, Ioctls], &[Switches, Wakeups]], else &[Self::Running, Self::ClientRunning, Self::ServerRunning],
        chain Ends, paint Driver,
        phrase "the driver took {time} in {who}|worked {time} in the driver",
        advice "Compare with `binderperf latency` on that kernel; send less data, fewer objects and descriptors.";
    Runnable(CpuHolder) "runnable_wait" "Runnable, while another task had the CPU."
        proof &[&[Switches]], else DECLARED, chain Ends, paint Waits,
        phrase "{who} was runnable {time} on {cpus} behind {behind}|was runnable {time}[ behind {detail}]",
        advice "See who had the CPU: raise the thread's priority, or keep that task off its CPU.";
    WrongCpu {
        /// Task that had the CPU whose queue the thread was in.
        behind: CpuHolder,
        /// CPU on which the thread could have run.
        idle_cpu: u32,
    } "wrong_cpu" "Runnable behind another task, while the CPU that it later ran on was idle."
        proof &[&[Switches, Enqueues]], else WAITS, chain Ends, paint Waits,
        phrase "{who} was runnable {time} on {cpus} behind {behind} while {detail} was idle\
                |was runnable {time}[ behind {detail}]",
        advice "Look at affinities and cpusets, and at where the scheduler puts woken tasks.";
    Tracing(CpuHolder) "tracing" "Runnable behind the recording itself."
        proof &[&[Switches]], else &[], chain Ends, paint Waits,
        phrase "{who} waited {time} on {cpus} for the recording itself: {behind}|waited {time}: {name}[, {detail}]",
        advice "Record fewer events; without the recording this time is not there.";
    Handover(CpuHolder) "handover" "Runnable behind the other side of the call, which has not left the CPU yet."
        proof &[&[Switches]], else &[], chain Ends, paint Waits,
        phrase "{who} waited {time} until the other side left {cpus}|waited {time}: {name}[, {detail}]",
        advice "Usually nothing: both sides share a CPU. If it takes long, see what keeps the other side from sleeping.";
    WakeLatency "wakeup_latency" "Woken; the CPU was idle and awake, or its idle state is not shown."
        proof &[&[Switches, Wakeups]], else DECLARED, chain Ends, paint Wakes,
        phrase "{who} was woken {time} before it ran|waited {time}: {name}",
        advice "Run `binderperf doctor`; look at the kernel's preemption model, and at a hypervisor that wakes CPUs late.";
    WakeInterrupt "wakeup_interrupt"
        "Woken from another CPU; the interrupt that enqueues the thread had not arrived."
        proof &[&[Switches, Enqueues]], else WAITS, chain Ends, paint Wakes,
        phrase "{who} was woken, and the interrupt took {time} to reach {cpus}|waited {time}: {name}",
        advice "Look for code that keeps interrupts off on that CPU, and for a hypervisor that delivers them late.";
    IdleExit {
        /// Index of the idle state.
        state: u32,
    } "idle_exit"
        "Woken; the CPU was still in an idle state. Includes the interrupt's latency and the exit latency."
        proof &[&[Switches, Wakeups, IdleStates]], else WAITS, chain Ends, paint Wakes,
        phrase "{who} waited {time} for {cpus} to leave idle state {detail}|waited {time}: {name}[, {detail}]",
        advice "Forbid deep idle states (`/dev/cpu_dma_latency`) while latency matters.";
    Interrupt {
        /// The interrupt.
        irq: Irq,
        /// Its name, if the trace has it.
        name: Name,
    } "irq" "An interrupt handler had the CPU."
        proof &[&[Switches, Interrupts]], else ACTS, chain Ends, paint Interrupt,
        phrase "interrupt {detail} took {time} of {cpus} from {who}|lost its CPU for {time} to interrupt[ {detail}]",
        advice "Move that interrupt to another CPU (`/proc/irq/N/smp_affinity`).";
    SoftInterrupt(Softirq) "softirq" "A softirq had the CPU."
        proof &[&[Switches, Softirqs]], else ACTS, chain Ends, paint Interrupt,
        phrase "softirq {detail} took {time} of {cpus} from {who}|lost its CPU for {time} to interrupt[ {detail}]",
        advice "Find what raises it (timers, network, disks), and move that to another CPU.";
    NoFreeThread {
        /// `debug_id` of the call that occupied the thread which finally took this one.
        busy_with: Option<i32>,
    } "no_free_thread" "Sent, but no server thread was free."
        proof &[&[Calls]], else &[], chain Leads, paint Queued,
        phrase "no thread was free for {time}; {who} was busy with call {detail}|no thread was free for {time}",
        advice "See what its threads were busy with: shorten those calls, or give the server more threads.";
    OnewayQueue "oneway_queue" "Oneway call queued behind others, or without a free thread."
        proof &[&[Calls]], else &[], chain Ends, paint Queued,
        phrase "it was queued for {time}",
        advice "Send fewer oneway calls to that node: it takes them one after the other.";
    Frozen "frozen" "The receiver was frozen."
        proof &[&[Returns], SLEEP_OF_REASON], else SLEEPS, chain Ends, paint Blocked,
        phrase "the receiver was frozen for {time}|waited {time}: {name}{until}",
        advice "Do not call a frozen process, or unfreeze it before.";
    KernelReclaim "kernel_memory_reclaim" "Direct reclaim: the thread had to free memory."
        proof &[&[Reclaims], SLEEP_OF_REASON], else SLEEPS_OR_RUNS, chain Leads, paint Blocked,
        phrase WAITED,
        advice "Find who uses up the memory (`/proc/pressure/memory`).";
    UserReclaim "userspace_memory_reclaim" "Waited for the runtime's garbage collector."
        proof &[&[Slices]], else SLEEPS_OR_RUNS, chain Leads, paint Blocked,
        phrase WAITED,
        advice "Allocate less in that process, or give it a larger heap.";
    Monitor "monitor_contention" "Waited for a Java monitor."
        proof &[&[Slices]], else SLEEPS, chain For("for a monitor"), paint Blocked,
        phrase WAITED,
        advice "See what its owner did meanwhile: the chain of waits shows it. Hold the monitor for less.";
    ArtLock "art_lock_contention" "Waited for a lock of ART."
        proof &[&[Slices]], else SLEEPS, chain For("for a lock of the runtime"), paint Blocked,
        phrase WAITED,
        advice "See what its owner did meanwhile, such as loading classes or collecting garbage.";
    Mutex "mutex_contention" "Slept in a futex."
        proof &[&[Slices], SLEEP_OF_REASON], else SLEEPS, chain For("in a futex"), paint Blocked,
        phrase "{who} waited {time}: {name}|waited {time} in a futex{until}",
        advice "See what the thread that woke it did meanwhile: it had the lock, or the message.";
    Io(CodeLocation) "io" "Slept for I/O."
        proof &[SLEEP_OF_REASON], else SLEEPS, chain For("for I/O"), paint Blocked,
        phrase "[{who} ]waited {time} for I/O[ in {detail}]{until}",
        advice "Do no I/O in the call, or find what keeps the disk busy (`/proc/pressure/io`).";
    KernelLock(KernelLock) "lock_wait" "Waited for a lock of the kernel, spinning or asleep."
        proof &[&[LockWaits], SLEEP_OF_REASON], else SLEEPS_OR_RUNS, chain For("for a lock of the kernel"), paint Blocked,
        phrase "[{who} ]waited {time} for a lock of the kernel[: {detail}]{until}",
        advice "See who woke it, which had the lock; `mmap` and faults of one process share `mmap_lock`.";
    Nested "binder" "Nested call whose parts are not shown."
        proof &[&[Calls]], else &[], chain Ends, paint Unknown,
        phrase WAITED,
        advice "Look at the nested call itself.";
    Uninterruptible(CodeLocation) "uninterruptible_sleep" "Uninterruptible sleep of a reason that is not shown."
        proof &[SLEEP], else &[], chain For(""), paint Blocked,
        phrase "[{who} ]waited {time} for I/O[ in {detail}], until {disk} woke it\
                |{who} slept uninterruptibly {time}[ in {detail}] until {ended} woke it\
                |{who} slept uninterruptibly {time} in {detail}\
                |{who} slept uninterruptibly {time}, the trace does not say why\
                |slept uninterruptibly {time}[ in {detail}]{until}",
        advice "See who woke it; Android's kernels name the function (`sched_blocked_reason`).";
    ThreadWait {
        /// Thread that woke it.
        waker: i32,
        /// Name of the waker.
        comm: Name,
    } "thread_wait" "Slept until a thread of its own process woke it: a lock or a condition variable."
        proof &[SLEEP], else &[Self::Sleeping], chain Leads, paint Blocked,
        phrase "{who} slept {time} until {detail} of its own process woke it, as for a lock or a condition\
                |waited {time}: {name}[, {detail}]{until}",
        advice "See what that thread did meanwhile: the chain of waits shows it.";
    Sleeping {
        /// Kernel function that it slept in, if known.
        place: CodeLocation,
        /// Who ended it: a thread of another process or of an unknown one, or an interrupt.
        waker: Option<Waker>,
    } "sleep" "Sleep of a reason that is not shown."
        proof &[SLEEP], else &[], chain Leads, paint Blocked,
        phrase "{who} slept {time} {detail}|{who} slept {time}, the trace does not say why\
                |slept {time}[ in {detail}]{until}",
        advice "See who woke it. A call that always sleeps waits by design.";
    Stopped "stopped" "Stopped or traced."
        proof &[SLEEP], else &[], chain Ends, paint Blocked,
        phrase WAITED,
        advice "Look for a debugger, or for the process that sends SIGSTOP.";
    Stolen "cpu_stolen"
        "The CPU executed nothing of its own past a due interrupt: a hypervisor or the firmware had it, or the kernel kept interrupts off."
        proof &[&[Switches, Interrupts]], else ACTS, chain Ends, paint Blocked,
        phrase "{who} had no CPU for {time}: no event on {cpus} past a due interrupt, so the host or the firmware had \
                taken it (or the kernel kept interrupts off)|waited {time}: {name}",
        advice "Look at the load of the host, or at the firmware (SMI).";
    Silent "cpu_silent" "No event, and the trace cannot tell whether the task ran or its CPU was taken."
        proof &[&[Switches, Interrupts]], else ACTS, chain Ends, paint Unknown,
        phrase "no event on {cpus} for {time}: {who} computed, or the CPU was taken from it; the trace cannot tell\
                |waited {time}: {name}",
        advice "Record by `binderperf trace record`, whose ticks tell the one from the other.";
    NotShown "not_shown" "The trace does not show it."
        proof &[&[]], else &[], chain Ends, paint Unknown,
        phrase "the trace does not show {acts} for {time}|waited {time}: {name}{until}",
        advice "Record the events that a warning names.";
}

impl Label {
    /// The one of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|label| label.name() == name)
    }

    /// The name in words.
    #[must_use]
    pub fn words(self) -> String {
        self.name().replace('_', " ")
    }

    /// Whether events of these kinds prove it.
    #[must_use]
    pub fn is_proven_by(self, shown: Shown) -> bool {
        self.proof().iter().any(|all| all.iter().all(|one| shown.has(*one)))
    }

    /// Whether it may be a wait for another thread, which can be followed.
    #[must_use]
    pub fn is_followed(self) -> bool {
        self.chain() != Ends
    }
}
