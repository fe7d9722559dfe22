//! The table of causes: name in results, meaning, the events that prove it, and what the same time is called where fewer
//! events are recorded.
//! Not here: the causes with their data (`cause`), sentences (`verdict::text`), fills (`picture::paint`).
//! Facts: a cause that Perfetto's `android/binder_breakdown.sql` names has that name here: `kernel_memory_reclaim`,
//! `userspace_memory_reclaim`, `monitor_contention`, `art_lock_contention`, `binder`, `mutex_contention`, `io`.

use super::evidence::Evidence::{
    self, Calls, Enqueues, IdleStates, Interrupts, Ioctls, LockWaits, Reclaims, Returns, SleepReasons,
    Slices, Softirqs, Switches, Wakeups,
};
use super::evidence::Shown;

/// Alternatives: each is a set of events that proves a cause.
type Proof = &'static [&'static [Evidence]];

/// What a thread's sleep is called whose reason is not shown.
const SLEEPS: &[Label] = &[Label::ThreadWait, Label::Sleep, Label::UninterruptibleSleep];
/// What a wait for a CPU is called if less is shown of it.
const WAITS: &[Label] = &[
    Label::RunnableWait,
    Label::WakeupLatency,
    Label::Monitor,
    Label::ArtLock,
    Label::UserReclaim,
    Label::Mutex,
    Label::LockWait,
    Label::KernelReclaim,
];
/// Waits that a slice or an event declares: where no wake-up is shown, they last until the thread runs.
const DECLARED: &[Label] = &[
    Label::Monitor,
    Label::ArtLock,
    Label::UserReclaim,
    Label::Mutex,
    Label::LockWait,
    Label::KernelReclaim,
];
/// A thread that has a CPU, or is on its way to one, where interrupts and silences are not shown.
const ACTS: &[Label] = &[
    Label::ClientRunning,
    Label::ServerRunning,
    Label::Driver,
    Label::RunnableWait,
    Label::Handover,
    Label::WakeupLatency,
    Label::WakeupInterrupt,
    Label::IdleExit,
    Label::Silent,
];
const SLEEP: &[Evidence] = &[Switches, Wakeups];
const SLEEP_OF_REASON: &[Evidence] = &[Switches, Wakeups, SleepReasons];

macro_rules! causes {
    ($($label:ident $name:literal $doc:literal, proof $proof:expr, else $coarser:expr, followed $followed:literal;)*) => {
        /// Kind of cause: a [`super::Cause`] without its data.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Label {
            $(#[doc = $doc] $label,)*
        }

        impl Label {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$label),*];

            /// Name in results.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$label => $name,)* }
            }

            /// What it means.
            #[must_use]
            pub fn doc(self) -> &'static str {
                match self { $(Self::$label => $doc,)* }
            }

            /// Events that prove it, in alternatives.
            #[must_use]
            pub fn proof(self) -> Proof {
                match self { $(Self::$label => $proof,)* }
            }

            /// What the same time may be called, truly but with less detail, in a trace without some of these events.
            #[must_use]
            pub fn coarser(self) -> &'static [Self] {
                match self { $(Self::$label => $coarser,)* }
            }

            /// Whether it may be a wait for another thread, which can be followed.
            #[must_use]
            pub fn is_followed(self) -> bool {
                match self { $(Self::$label => $followed,)* }
            }
        }
    };
}

causes! {
    ClientRunning "client_running" "The calling thread ran, outside the driver where the trace shows that.",
        proof &[&[Switches]], else &[], followed false;
    ServerRunning "server_running" "The serving thread ran, outside the driver where the trace shows that.",
        proof &[&[Switches]], else &[], followed false;
    Driver "driver" "Work of the driver, in either thread or in the broker.",
        proof &[&[Switches, Ioctls], &[Switches, Wakeups]], else &[Self::ClientRunning, Self::ServerRunning], followed false;
    RunnableWait "runnable_wait" "Runnable, while another task had the CPU.",
        proof &[&[Switches]], else DECLARED, followed false;
    WrongCpu "wrong_cpu" "Runnable behind another task, while the CPU that it later ran on was idle.",
        proof &[&[Switches, Enqueues]], else WAITS, followed false;
    Tracing "tracing" "Runnable behind the recording itself.",
        proof &[&[Switches]], else &[], followed false;
    Handover "handover" "Runnable behind the other side of the call, which has not left the CPU yet.",
        proof &[&[Switches]], else &[], followed false;
    WakeupLatency "wakeup_latency" "Woken; the CPU was idle and awake, or its idle state is not shown.",
        proof &[&[Switches, Wakeups]], else DECLARED, followed false;
    WakeupInterrupt "wakeup_interrupt" "Woken from another CPU; the interrupt that enqueues the thread had not arrived.",
        proof &[&[Switches, Enqueues]], else WAITS, followed false;
    IdleExit "idle_exit" "Woken; the CPU was still in an idle state. Includes the interrupt's latency and the exit latency.",
        proof &[&[Switches, Wakeups, IdleStates]], else WAITS, followed false;
    Irq "irq" "An interrupt handler had the CPU.",
        proof &[&[Switches, Interrupts]], else ACTS, followed false;
    Softirq "softirq" "A softirq had the CPU.",
        proof &[&[Switches, Softirqs]], else ACTS, followed false;
    NoFreeThread "no_free_thread" "Sent, but no server thread was free.",
        proof &[&[Calls]], else &[], followed true;
    OnewayQueue "oneway_queue" "Oneway call queued behind others, or without a free thread.",
        proof &[&[Calls]], else &[], followed false;
    Frozen "frozen" "The receiver was frozen.",
        proof &[&[Returns], SLEEP_OF_REASON], else SLEEPS, followed false;
    KernelReclaim "kernel_memory_reclaim" "Direct reclaim: the thread had to free memory.",
        proof &[&[Reclaims], SLEEP_OF_REASON], else SLEEPS, followed true;
    UserReclaim "userspace_memory_reclaim" "Waited for the runtime's garbage collector.",
        proof &[&[Slices]], else SLEEPS, followed true;
    Monitor "monitor_contention" "Waited for a Java monitor.",
        proof &[&[Slices]], else SLEEPS, followed true;
    ArtLock "art_lock_contention" "Waited for a lock of ART.",
        proof &[&[Slices]], else SLEEPS, followed true;
    Mutex "mutex_contention" "Slept in a futex.",
        proof &[&[Slices], SLEEP_OF_REASON], else SLEEPS, followed true;
    Io "io" "Slept for I/O.",
        proof &[SLEEP_OF_REASON], else SLEEPS, followed true;
    LockWait "lock_wait" "Waited for a lock of the kernel, spinning or asleep.",
        proof &[&[LockWaits], SLEEP_OF_REASON], else SLEEPS, followed true;
    Nested "binder" "Nested call whose parts are not shown.",
        proof &[&[Calls]], else &[], followed false;
    UninterruptibleSleep "uninterruptible_sleep" "Uninterruptible sleep of a reason that is not shown.",
        proof &[SLEEP], else &[], followed true;
    ThreadWait "thread_wait" "Slept until a thread of its own process woke it: a lock or a condition variable.",
        proof &[SLEEP], else &[Self::Sleep], followed true;
    Sleep "sleep" "Sleep of a reason that is not shown.",
        proof &[SLEEP], else &[], followed true;
    Stopped "stopped" "Stopped or traced.",
        proof &[SLEEP], else &[], followed false;
    Stolen "cpu_stolen" "The CPU executed nothing of its own past a due interrupt: a hypervisor or the firmware had it, or the kernel kept interrupts off.",
        proof &[&[Switches, Interrupts]], else ACTS, followed false;
    Silent "cpu_silent" "No event, and the trace cannot tell whether the task ran or its CPU was taken.",
        proof &[&[Switches, Interrupts]], else ACTS, followed false;
    NotShown "not_shown" "The trace does not show it.",
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
