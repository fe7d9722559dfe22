//! The table of causes: name in results, meaning, data, the events that prove it, and what the same time is called where fewer
//! events are recorded.
//! Not here: what a trace shows of one (`rules` of `model`), sentences (`verdict::text`), fills (`picture::paint`).
//! Facts: a cause that Perfetto's `android/binder_breakdown.sql` names has that name here: `kernel_memory_reclaim`,
//! `userspace_memory_reclaim`, `monitor_contention`, `art_lock_contention`, `binder`, `mutex_contention`, `io`.

use super::evidence::Evidence::{
    self, Calls, Enqueues, IdleStates, Interrupts, Ioctls, LockWaits, Reclaims, Returns, SleepReasons,
    Slices, Softirqs, Switches, Wakeups,
};
use super::evidence::Shown;
use super::{CpuHolder, KernelLock, Waker};
use crate::event::{CodeLocation, Irq, Name, Softirq};

/// Alternatives: each is a set of events that proves a cause.
type Proof = &'static [&'static [Evidence]];

/// What a thread's sleep is called whose reason is not shown.
const SLEEPS: &[Label] = &[Label::ThreadWait, Label::Sleeping, Label::Uninterruptible];
/// What a wait is called that may also run, as reclaim does and who spins for a lock, whose reason is not shown.
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
        proof $proof:expr, else $coarser:expr, followed $followed:literal;)*) => {
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
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Label {
            $(#[doc = $doc] $cause,)*
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

            /// Whether it may be a wait for another thread, which can be followed.
            #[must_use]
            pub fn is_followed(self) -> bool {
                match self { $(Self::$cause => $followed,)* }
            }
        }
    };
}

causes! {
    ClientRunning "client_running" "The calling thread ran, outside the driver where the trace shows that."
        proof &[&[Switches]], else &[], followed false;
    ServerRunning "server_running" "The serving thread ran, outside the driver where the trace shows that."
        proof &[&[Switches]], else &[], followed false;
    Running "running" "A thread ran that was waited for. Only in chains of waits."
        proof &[&[Switches]], else &[], followed false;
    Driver "driver" "Work of the driver, in either thread or in the broker."
        proof &[&[Switches, Ioctls], &[Switches, Wakeups]], else &[Self::Running, Self::ClientRunning, Self::ServerRunning],
        followed false;
    Runnable(CpuHolder) "runnable_wait" "Runnable, while another task had the CPU."
        proof &[&[Switches]], else DECLARED, followed false;
    WrongCpu {
        /// Task that had the CPU whose queue the thread was in.
        behind: CpuHolder,
        /// CPU on which the thread could have run.
        idle_cpu: u32,
    } "wrong_cpu" "Runnable behind another task, while the CPU that it later ran on was idle."
        proof &[&[Switches, Enqueues]], else WAITS, followed false;
    Tracing(CpuHolder) "tracing" "Runnable behind the recording itself."
        proof &[&[Switches]], else &[], followed false;
    Handover(CpuHolder) "handover" "Runnable behind the other side of the call, which has not left the CPU yet."
        proof &[&[Switches]], else &[], followed false;
    WakeLatency "wakeup_latency" "Woken; the CPU was idle and awake, or its idle state is not shown."
        proof &[&[Switches, Wakeups]], else DECLARED, followed false;
    WakeInterrupt "wakeup_interrupt"
        "Woken from another CPU; the interrupt that enqueues the thread had not arrived."
        proof &[&[Switches, Enqueues]], else WAITS, followed false;
    IdleExit {
        /// Index of the idle state.
        state: u32,
    } "idle_exit"
        "Woken; the CPU was still in an idle state. Includes the interrupt's latency and the exit latency."
        proof &[&[Switches, Wakeups, IdleStates]], else WAITS, followed false;
    Interrupt {
        /// The interrupt.
        irq: Irq,
        /// Its name, if the trace has it.
        name: Name,
    } "irq" "An interrupt handler had the CPU."
        proof &[&[Switches, Interrupts]], else ACTS, followed false;
    SoftInterrupt(Softirq) "softirq" "A softirq had the CPU."
        proof &[&[Switches, Softirqs]], else ACTS, followed false;
    NoFreeThread {
        /// `debug_id` of the call that occupied the thread which finally took this one.
        busy_with: Option<i32>,
    } "no_free_thread" "Sent, but no server thread was free."
        proof &[&[Calls]], else &[], followed true;
    OnewayQueue "oneway_queue" "Oneway call queued behind others, or without a free thread."
        proof &[&[Calls]], else &[], followed false;
    Frozen "frozen" "The receiver was frozen."
        proof &[&[Returns], SLEEP_OF_REASON], else SLEEPS, followed false;
    KernelReclaim "kernel_memory_reclaim" "Direct reclaim: the thread had to free memory."
        proof &[&[Reclaims], SLEEP_OF_REASON], else SLEEPS_OR_RUNS, followed true;
    UserReclaim "userspace_memory_reclaim" "Waited for the runtime's garbage collector."
        proof &[&[Slices]], else SLEEPS_OR_RUNS, followed true;
    Monitor "monitor_contention" "Waited for a Java monitor."
        proof &[&[Slices]], else SLEEPS, followed true;
    ArtLock "art_lock_contention" "Waited for a lock of ART."
        proof &[&[Slices]], else SLEEPS, followed true;
    Mutex "mutex_contention" "Slept in a futex."
        proof &[&[Slices], SLEEP_OF_REASON], else SLEEPS, followed true;
    Io(CodeLocation) "io" "Slept for I/O."
        proof &[SLEEP_OF_REASON], else SLEEPS, followed true;
    KernelLock(KernelLock) "lock_wait" "Waited for a lock of the kernel, spinning or asleep."
        proof &[&[LockWaits], SLEEP_OF_REASON], else SLEEPS_OR_RUNS, followed true;
    Nested "binder" "Nested call whose parts are not shown."
        proof &[&[Calls]], else &[], followed false;
    Uninterruptible(CodeLocation) "uninterruptible_sleep" "Uninterruptible sleep of a reason that is not shown."
        proof &[SLEEP], else &[], followed true;
    ThreadWait {
        /// Thread that woke it.
        waker: i32,
        /// Name of the waker.
        comm: Name,
    } "thread_wait" "Slept until a thread of its own process woke it: a lock or a condition variable."
        proof &[SLEEP], else &[Self::Sleeping], followed true;
    Sleeping {
        /// Kernel function that it slept in, if known.
        place: CodeLocation,
        /// Who ended it: a thread of another process or of an unknown one, or an interrupt.
        waker: Option<Waker>,
    } "sleep" "Sleep of a reason that is not shown."
        proof &[SLEEP], else &[], followed true;
    Stopped "stopped" "Stopped or traced."
        proof &[SLEEP], else &[], followed false;
    Stolen "cpu_stolen"
        "The CPU executed nothing of its own past a due interrupt: a hypervisor or the firmware had it, or the kernel kept interrupts off."
        proof &[&[Switches, Interrupts]], else ACTS, followed false;
    Silent "cpu_silent" "No event, and the trace cannot tell whether the task ran or its CPU was taken."
        proof &[&[Switches, Interrupts]], else ACTS, followed false;
    NotShown "not_shown" "The trace does not show it."
        proof &[&[]], else &[], followed false;
}

impl Label {
    /// The one of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|label| label.name() == name)
    }

    /// Whether events of these kinds prove it.
    #[must_use]
    pub fn is_proven_by(self, shown: Shown) -> bool {
        self.proof().iter().any(|all| all.iter().all(|one| shown.has(*one)))
    }
}
