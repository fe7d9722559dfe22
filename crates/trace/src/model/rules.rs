//! Rules by which what a trace shows of a thread becomes a cause: its scheduler state, the slices and events by which it
//! declares a wait, the function that it slept in, who has its CPU, who woke it, and its role in the call.
//! Not here: cutting time where any of these changes (`divide`), what is known of each cause (`cause`).

use super::calls::OpenCall;
use super::history::{History, Interrupt, Occupant};
use super::thread::{SchedState, SleepReason, Thread};
use super::watch::Silence;
use crate::cause::{Cause, CpuHolder, KernelLock, Segment, Waker};
use crate::event::{CodeLocation, Kind, Mark, Name, Names, State};

/// Programs and threads whose own running disturbs what they record. A number may follow.
const TRACERS: [&str; 6] = ["trace-cmd", "atrace", "traced", "traced_probes", "perfetto", "trace reader"];

/// Begin or end of a wait, or of a slice that declares none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Declares<'e> {
    /// It begins, with the slice's name; empty for an event.
    Begin(Option<Cause>, &'e str),
    /// The innermost one ends.
    End,
}

/// What an event declares of its thread.
pub(super) fn declared(kind: &Kind) -> Option<Declares<'_>> {
    match kind {
        Kind::ReclaimBegin { .. } => Some(Declares::Begin(Some(Cause::KernelReclaim), "")),
        Kind::ReclaimEnd { .. } => Some(Declares::End),
        Kind::Print(text) => match Mark::parse(text)? {
            Mark::Begin { name, .. } => Some(Declares::Begin(of_slice(name), name)),
            Mark::End => Some(Declares::End),
            _ => None,
        },
        _ => None,
    }
}

/// Wait that a slice of ART or bionic declares.
/// Fact: the names in `_binder_reason` of Perfetto's `android/binder_breakdown.sql`, in its order;
/// `WaitForGcToComplete` is the older runtimes' name of the same wait.
fn of_slice(name: &str) -> Option<Cause> {
    let begins = |with: &str| name.starts_with(with);
    if begins("GC: Wait For") || begins("WaitForGcToComplete") {
        Some(Cause::UserReclaim)
    } else if begins("monitor contention") || begins("Lock contention on a monitor lock") {
        Some(Cause::Monitor)
    } else if begins("Lock contention") {
        Some(Cause::ArtLock)
    } else if name == "Contending for pthread mutex" {
        Some(Cause::Mutex)
    } else {
        None
    }
}

/// Whether a declared wait is for a lock of a process, whose slice may name the owner.
pub(super) fn is_user_lock(declared: Cause) -> bool {
    matches!(declared, Cause::Monitor | Cause::ArtLock | Cause::Mutex)
}

/// Whether a declared wait explains this scheduler state. A wait for a lock of a process is an interruptible or unknown
/// sleep; the others also run: reclaim works, kernel locks spin.
/// Fact: as in Perfetto's `_binder_reason`, which counts locks only in state `S`.
pub(super) fn explains(declared: Cause, run: Option<SchedState>) -> bool {
    match run {
        Some(SchedState::Running { .. }) => !is_user_lock(declared),
        Some(SchedState::Sleeping { state, .. }) => !is_user_lock(declared) || state == State::Sleeping,
        _ => true,
    }
}

/// Reason of a sleep in this kernel function.
/// Fact: symbols of Linux 7.2 and of Android kernels, which have `sched_blocked_reason`.
pub(super) fn slept_in(symbol: &str, io_wait: bool) -> SleepReason {
    let has = |words: &[&str]| words.iter().any(|word| symbol.contains(word));
    if symbol.contains("futex") {
        SleepReason::Futex
    } else if has(&["refrigerator", "freezer"]) {
        SleepReason::Frozen
    } else if has(&["reclaim", "shrink", "congestion_wait", "throttle_vm"]) {
        SleepReason::Reclaim
    } else if has(&["mutex", "rwsem", "down_read", "down_write", "rt_lock", "rtlock"]) {
        SleepReason::KernelLock
    } else if io_wait {
        SleepReason::Io
    } else {
        SleepReason::Unsaid
    }
}

/// Cause of a sleep that began at `ts`. With `handed` the thread had been handed work.
pub(super) fn asleep(
    history: &History,
    (sleeper, ts): (&Thread, u64),
    (state, place, slept): (State, CodeLocation, SleepReason),
    handed: bool,
) -> Cause {
    match (slept, state) {
        (SleepReason::Io, _) => Cause::Io(place),
        (SleepReason::Futex, _) => Cause::Mutex,
        (SleepReason::KernelLock, _) => Cause::KernelLock(KernelLock::Function(place)),
        (SleepReason::Reclaim, _) => Cause::KernelReclaim,
        (SleepReason::Frozen, _) => Cause::Frozen,
        (SleepReason::Unsaid, State::Stopped) => Cause::Stopped,
        (SleepReason::Unsaid, State::Uninterruptible) => Cause::Uninterruptible(place),
        // A thread that was handed the work and still sleeps waits for a wake-up that the trace lacks.
        (SleepReason::Unsaid, State::Sleeping) if handed => Cause::NotShown,
        // An idle kernel thread waits for work.
        (SleepReason::Unsaid, State::Sleeping | State::Idle) => woken(history, (sleeper, ts), place),
        (SleepReason::Unsaid, _) => Cause::NotShown,
    }
}

/// Cause of a sleep that only its end explains: the thread that woke the sleeper.
fn woken(history: &History, (sleeper, ts): (&Thread, u64), place: CodeLocation) -> Cause {
    let Some((woken, SchedState::Runnable { waker, on, .. })) = sleeper.run.after(ts).next() else {
        return Cause::Sleeping { place, waker: None };
    };
    if waker < 0 {
        return Cause::Sleeping { place, waker: Some(history.interrupt_on(on, woken)) };
    }
    let other = history.thread(waker);
    let comm = history.name_on(waker, Some(on), woken);
    if sleeper.tgid.is_some() && other.is_some_and(|other| sleeper.tgid == other.tgid) {
        Cause::ThreadWait { waker, comm }
    } else {
        Cause::Sleeping { place, waker: Some(Waker::Thread(waker, comm)) }
    }
}

/// Cause of a stretch in which a thread ran. Where the trace does not show whether it was in the driver, it was if it handed a
/// call over.
pub(super) fn running(in_driver: Option<bool>, handing: bool) -> Cause {
    if in_driver.unwrap_or(handing) { Cause::Driver } else { Cause::Running }
}

/// Cause of a stretch in which a handler had the CPU.
pub(super) fn interrupted(by: Interrupt) -> Cause {
    match by {
        Interrupt::Hard(irq, name) => Cause::Interrupt { irq, name },
        Interrupt::Soft(softirq) => Cause::SoftInterrupt(softirq),
    }
}

/// Cause of a CPU's silence while a thread had it.
pub(super) fn silent(silence: Silence) -> Cause {
    match silence {
        Silence::Stolen => Cause::Stolen,
        Silence::Unclear => Cause::Silent,
    }
}

/// Cause of a wait of a thread in a CPU's queue: who had that CPU, its idle state, and the CPU that the thread ran on later,
/// if that was idle meanwhile.
pub(super) fn queued(tid: i32, who: Option<Occupant>, idle: Option<u32>, idle_cpu: Option<u32>) -> Cause {
    match (who, idle, idle_cpu) {
        (Some(who), Some(state), _) if who.tid == 0 => Cause::IdleExit { state },
        (Some(who), ..) if who.tid == 0 || who.tid == tid => Cause::WakeLatency,
        (Some(who), _, Some(idle_cpu)) if who.tid > 0 => Cause::WrongCpu { behind: who.into(), idle_cpu },
        (Some(who), ..) if who.tid > 0 => Cause::Runnable(who.into()),
        // Nobody is shown to have had the CPU, not even that the thread itself had not.
        _ => Cause::NotShown,
    }
}

/// Cause of a wait between wake-up and enqueueing. The task on the target CPU is not in the way, unless it is the waker.
pub(super) fn on_the_way(waker: i32, who: Option<Occupant>, idle: Option<u32>) -> Cause {
    match (who, idle) {
        (Some(who), Some(state)) if who.tid == 0 => Cause::IdleExit { state },
        (Some(who), None) if who.tid == 0 => Cause::WakeLatency,
        (Some(who), _) if who.tid == waker => Cause::Runnable(who.into()),
        _ => Cause::WakeInterrupt,
    }
}

/// Cause of a call's wait for a server thread.
pub(super) fn untaken(call: &OpenCall) -> Cause {
    if call.frozen {
        Cause::Frozen
    } else if call.sent.is_oneway() {
        Cause::OnewayQueue
    } else {
        Cause::NoFreeThread { busy_with: call.busy_with }
    }
}

/// Cause of a segment as part of a whole call: who runs is its caller or a server; behind whom a thread waits may be the other
/// side, which has not left the CPU yet, or the recording itself.
pub(super) fn in_call(part: &Segment, call: &OpenCall, names: &Names) -> Cause {
    let plain =
        |comm: Name| names.text(comm).trim_end_matches(|last: char| last == ' ' || last.is_ascii_digit());
    match (part.cause, part.cause.behind()) {
        (Cause::Running, _) if part.tid == call.client => Cause::ClientRunning,
        (Cause::Running, _) => Cause::ServerRunning,
        (_, Some(behind))
            if part.depth == 0 && (behind.tid == call.client || Some(behind.tid) == call.server) =>
        {
            Cause::Handover(behind)
        }
        (_, Some(behind)) if TRACERS.contains(&plain(behind.comm)) => Cause::Tracing(behind),
        (cause, _) => cause,
    }
}

impl From<Occupant> for CpuHolder {
    fn from(Occupant { tid, comm, prio }: Occupant) -> Self {
        Self { tid, comm, prio }
    }
}
