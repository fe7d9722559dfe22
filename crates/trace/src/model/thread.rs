//! What is known of one thread: its scheduler states over time, what it waits for, calls and serves.
//! Not here: all threads (`history`), calls (`calls`).

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use super::free::Free;
use super::method::{NamedSlice, Side};
use super::timeline::Timeline;
use crate::cause::{Cause, KernelLock, SliceName};
use crate::event::{CodeLocation, LockKind, Name, Prio, State, Task, Transaction as Sent};

/// Scheduler state of a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SchedState {
    /// Events are missing.
    Unknown,
    /// It has a CPU.
    Running { cpu: u32 },
    /// It waits in a CPU's run queue, woken by a thread (-1: from an interrupt) on CPU `on`, or preempted (0). Until
    /// `queued`, the wake-up is under way.
    Runnable { cpu: u32, prio: Option<Prio>, waker: i32, on: u32, queued: bool },
    /// It waits for something else.
    Sleeping { state: State, place: CodeLocation, slept: SleepReason },
}

/// Reason of a sleep, from the kernel function that it was in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SleepReason {
    Unsaid,
    Io,
    Futex,
    KernelLock,
    Reclaim,
    Frozen,
}

/// Call that a thread serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    /// Its slot; `None` if it was sent before the trace began.
    pub(crate) slot: Option<usize>,
    /// Number of calls that the thread itself waited for when it took this one.
    pub(crate) base: usize,
}

/// Maximum number of open slices of a thread that are kept; deeper ones are only counted.
const MOST_SLICES: usize = 256;

/// A thread. Most threads of a trace only run and sleep, and a trace may have hundreds of thousands of them; what the others
/// have besides is [`Acts`], made when it is first written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    pub(crate) comm: Name,
    pub(crate) tgid: Option<i32>,
    pub(crate) prio: Option<Prio>,
    /// Waker, and its CPU, of a wake-up that came before the task had left its CPU.
    pub(crate) early_waker: Option<(i32, u32)>,
    /// Whether a thread of this ID has exited: later ones are others.
    pub(crate) exited: bool,
    pub(crate) run: Timeline<SchedState>,
    acts: Option<Box<Acts>>,
}

/// What a thread has that takes part in calls or says what it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acts {
    /// Wait that it declares by a slice or event, independent of its scheduler state.
    pub(crate) over: Timeline<Option<Declared>>,
    /// Innermost slice that it is in.
    pub(crate) doing: Timeline<SliceName>,
    /// Work item that it executes, if it is a kernel worker.
    pub(crate) work: Timeline<CodeLocation>,
    /// Whether it is in a driver ioctl, if the trace shows that.
    pub(crate) in_driver: Timeline<bool>,
    /// Open slices.
    pub(crate) slices: Vec<OpenSlice>,
    /// Open slices beyond those.
    deeper: usize,
    /// Those of them that name a method.
    pub(crate) methods: Vec<NamedSlice>,
    /// Kernel lock that it waits for.
    pub(crate) lock: Option<LockKind>,
    /// Calls that it waits for, innermost last.
    pub(crate) calling: Vec<usize>,
    /// Calls that it serves, innermost last.
    pub(crate) serving: Vec<Served>,
    /// Since when it has had nothing to serve.
    pub(crate) free: Free,
    /// Time and text of a binderperf mark about its next call.
    pub(crate) label: Option<(u64, Box<str>)>,
    /// Whether its mark says that it plays an inheritance scene.
    pub(crate) scene: bool,
    /// Marked call whose reply it has: slot and serial number.
    pub(crate) returning: Option<(usize, u64)>,
    /// `debug_id` of the call that it took last.
    pub(crate) last_taken: Option<i32>,
    /// Last transaction that it sent: slot and serial number of the call, and whether it was the reply.
    pub(crate) sent: Option<(usize, u64, bool)>,
    /// When it gave the driver a call that the driver has not sent yet.
    pub(crate) commanded: Option<u64>,
    /// Its last transaction, if that was a oneway call.
    pub(crate) last_oneway: Option<Sent>,
    /// Call whose reply it has, while it is still in the ioctl that brought it.
    pub(crate) ending: Option<usize>,
    /// Calls that it made and that have ended, as far back as the history goes.
    pub(crate) made: VecDeque<MadeCall>,
}

/// What a thread has that does nothing but run and sleep.
static NO_ACTS: LazyLock<Acts> = LazyLock::new(Acts::default);

impl Deref for Thread {
    type Target = Acts;

    fn deref(&self) -> &Acts {
        self.acts.as_deref().unwrap_or(&NO_ACTS)
    }
}

impl DerefMut for Thread {
    fn deref_mut(&mut self) -> &mut Acts {
        self.acts.get_or_insert_default()
    }
}

/// Wait that a thread declares, and the slice by which it does; [`SliceName::NONE`] for an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Declared {
    pub(crate) cause: Cause,
    pub(crate) slice: SliceName,
}

/// Slice that has not ended: the wait that it declares, if any, and its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OpenSlice {
    pub(crate) cause: Option<Cause>,
    pub(crate) name: SliceName,
}

/// Call that a thread made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MadeCall {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) debug_id: i32,
    pub(crate) server: Option<i32>,
}

impl Thread {
    /// Innermost wait that it declares now.
    pub(crate) fn declared_wait(&self) -> Option<Declared> {
        let lock = self.lock.map(|lock| Declared {
            cause: Cause::KernelLock(KernelLock::Kind(lock)),
            slice: SliceName::NONE,
        });
        let slice = |open: &OpenSlice| open.cause.map(|cause| Declared { cause, slice: open.name });
        lock.or_else(|| self.slices.iter().rev().find_map(slice))
    }

    /// Notes what it declares and does after a change of its slices. Returns the number of steps added.
    pub(crate) fn note_slices(&mut self, ts: u64) -> usize {
        if !self.acts() {
            return 0;
        }
        let innermost = self.slices.iter().rev().map(|open| open.name).find(|name| name.is_some());
        let over = self.declared_wait();
        self.over.push(ts, over) + self.doing.push(ts, innermost.unwrap_or_default())
    }

    pub(crate) fn open_slice(&mut self, open: OpenSlice) {
        if self.slices.len() < MOST_SLICES {
            self.slices.push(open);
        } else {
            self.deeper = self.deeper.saturating_add(1);
        }
    }

    pub(crate) fn close_slice(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        self.slices.pop();
        let open = self.slices.len();
        self.methods.pop_if(|named| named.depth > open);
    }

    /// Whether its innermost open slice is only counted.
    pub(crate) fn is_deep(&self) -> bool {
        self.deeper > 0
    }

    /// Forgets its open slices.
    pub(crate) fn forget_slices(&mut self) {
        self.slices.clear();
        self.methods.clear();
        self.deeper = 0;
    }

    /// Method of a call that the thread makes now: that of its own innermost proxy since it serves what it serves.
    pub(crate) fn calling_method(&self) -> Option<&NamedSlice> {
        let proxy = |named: &&NamedSlice| named.side == Side::Client && named.serving == self.serving.len();
        self.methods.last().filter(proxy)
    }

    /// Whether it ever took part in a call or said what it does.
    pub(crate) fn acts(&self) -> bool {
        self.acts.is_some()
    }

    /// Its marked call whose reply it has, which ends now.
    pub(crate) fn no_longer_returns(&mut self) -> Option<(usize, u64)> {
        self.returning?;
        self.returning.take()
    }

    /// It no longer waits for this call.
    pub(crate) fn no_longer_calls(&mut self, slot: usize) {
        if let Some(at) = self.calling.iter().rposition(|calling| *calling == slot) {
            self.calling.remove(at);
        }
    }

    /// Takes over the name and priority that an event shows.
    pub(super) fn meet(&mut self, task: Task) {
        (self.comm, self.prio) = (task.comm, Some(task.prio));
    }

    /// True if it runs or is to run, takes part in a call, or is within a slice or a lock's wait.
    pub(super) fn is_engaged(&self) -> bool {
        let runs = matches!(self.run.last(), Some(SchedState::Running { .. } | SchedState::Runnable { .. }));
        let calls = !self.calling.is_empty() || !self.serving.is_empty() || self.returning.is_some();
        let says = !self.slices.is_empty() || self.lock.is_some() || self.label.is_some();
        runs || calls || says || self.ending.is_some() || self.commanded.is_some()
    }

    /// Number of steps of its timelines.
    pub(super) fn steps(&self) -> usize {
        let of_acts =
            |acts: &Acts| acts.over.len() + acts.doing.len() + acts.work.len() + acts.in_driver.len();
        self.run.len() + self.acts.as_deref().map_or(0, of_acts)
    }

    pub(super) fn forget(&mut self, before: u64) -> usize {
        let of_run = self.run.forget(before);
        let Some(acts) = &mut self.acts else { return of_run };
        while acts.made.front().is_some_and(|made| made.end < before) {
            acts.made.pop_front();
        }
        of_run
            + acts.over.forget(before)
            + acts.doing.forget(before)
            + acts.work.forget(before)
            + acts.in_driver.forget(before)
    }
}
