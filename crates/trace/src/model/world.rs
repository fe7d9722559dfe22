//! Room: what every thread and every CPU was doing, for as far back as an open transaction needs it.
//! Not here: transactions (`calls`), what the waiting was for (`cause`).
//! Facts: `kernel/sched/core.c` `try_to_wake_up`, Linux 7.2: `sched_waking` comes while the task may still be
//! on its way off a CPU; `sched_wakeup` once it is on a queue.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::calls::Served;
use super::timeline::Timeline;
use crate::event::{Irq, LockSort, Name, Place, Prio, Softirq, State, Task};

/// The most threads that are followed; only a forged trace has more.
const MOST_THREADS: usize = 1 << 18;
/// The most CPUs; more than Linux supports.
const MOST_CPUS: u32 = 8192;
/// The most steps of all timelines together, some 200 MB. Beyond that the past is cut short.
const MOST_STEPS: usize = 1 << 22;

/// What a thread does as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Run {
    /// Events are missing.
    Unknown,
    /// It has a CPU.
    Running { cpu: u32 },
    /// It waits in a CPU's queue, woken by a thread (-1: from an interrupt) or preempted (0). While not yet
    /// `queued` the wake-up is on its way.
    Runnable { cpu: u32, prio: Option<Prio>, waker: i32, queued: bool },
    /// It waits for something else.
    Sleeping { state: State, place: Place, slept: Slept },
}

/// What a sleep was for, by the function that it was in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    Unsaid,
    Io,
    Futex,
    KernelLock,
    Reclaim,
    Frozen,
}

impl Slept {
    /// Fact: symbols of Linux 7.2 and of Android's kernels, in which `sched_blocked_reason` is.
    pub(crate) fn in_function(symbol: &str, io_wait: bool) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| symbol.contains(word));
        if symbol.contains("futex") {
            Self::Futex
        } else if has(&["refrigerator", "freezer"]) {
            Self::Frozen
        } else if has(&["reclaim", "shrink", "congestion_wait", "throttle_vm"]) {
            Self::Reclaim
        } else if has(&["mutex", "rwsem", "down_read", "down_write", "rt_lock", "rtlock"]) {
            Self::KernelLock
        } else if io_wait {
            Self::Io
        } else {
            Self::Unsaid
        }
    }
}

/// What a thread says of itself, whatever the scheduler says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    KernelReclaim,
    UserReclaim,
    Monitor,
    ArtLock,
    Mutex,
    KernelLock(LockSort),
}

impl Over {
    /// Whether this is what a thread does that is seen so: freeing memory takes computing, too, while who waits
    /// for a lock sleeps, interruptibly, or where nobody knows. Locks of the kernel are computed for, too.
    /// Fact: as in Perfetto's `_binder_reason`, where locks count only in state `S`.
    pub(crate) fn counts_in(self, run: Option<Run>) -> bool {
        let always = matches!(self, Self::KernelReclaim | Self::UserReclaim | Self::KernelLock(_));
        match run {
            Some(Run::Running { .. }) => always,
            Some(Run::Sleeping { state, .. }) => always || state == State::Sleeping,
            _ => true,
        }
    }
}

/// What interrupted a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Hard(Irq, Name),
    Soft(Softirq),
}

/// Who has a CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Occupant {
    /// 0 is the idle task, -1 nobody knows.
    pub(crate) tid: i32,
    pub(crate) comm: Name,
    pub(crate) prio: Option<Prio>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    pub(crate) comm: Name,
    pub(crate) tgid: Option<i32>,
    pub(crate) prio: Option<Prio>,
    pub(crate) run: Timeline<Run>,
    pub(crate) over: Timeline<Option<Over>>,
    /// Whether it is in an ioctl of the driver, where the trace says so.
    pub(crate) in_driver: Timeline<bool>,
    /// Slices that it is in, of which only some matter.
    pub(crate) slices: Vec<Option<Over>>,
    /// The lock of the kernel that it waits for.
    pub(crate) lock: Option<LockSort>,
    /// Woken, by whom, before it had left its CPU.
    pub(crate) early_waker: Option<i32>,
    /// Calls that it waits for, the innermost last.
    pub(crate) calling: Vec<usize>,
    /// Calls that it serves, the innermost last.
    pub(crate) serving: Vec<Served>,
    /// Since when it has had nothing to serve, as far as the trace shows.
    pub(crate) free_since: Option<u64>,
    /// It was seen serving: a `None` above then means busy.
    pub(crate) has_served: bool,
    /// What a mark of binderperf's said of its next call, and when.
    pub(crate) label: Option<(u64, Box<str>)>,
    /// A call with such a mark whose reply it has: place and serial number.
    pub(crate) returning: Option<(usize, u64)>,
    /// The call that it took last.
    pub(crate) last_taken: Option<i32>,
    /// What it sent last: place and serial number of the call, and whether that was the reply.
    pub(crate) sent: Option<(usize, u64, bool)>,
    /// The call whose reply it has, while still in the ioctl that brought it.
    pub(crate) ending: Option<usize>,
}

impl Thread {
    /// What it says of itself now, the innermost first.
    pub(crate) fn is_over(&self) -> Option<Over> {
        let slice = || self.slices.iter().rev().find_map(|slice| *slice);
        self.lock.map(Over::KernelLock).or_else(slice)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cpu {
    pub(crate) occupant: Timeline<Occupant>,
    pub(crate) interrupt: Timeline<Option<Interrupt>>,
    pub(crate) interrupts: Vec<Interrupt>,
    pub(crate) idle: Timeline<Option<u32>>,
    pub(crate) khz: Timeline<u32>,
    pub(crate) highest_khz: u32,
    pub(crate) last_event: Option<u64>,
}

/// Numbers of threads spread well enough by a multiplication.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_i32(&mut self, number: i32) {
        self.write_u64(u64::from(number.cast_unsigned()));
    }
    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

pub(crate) type Spreading = BuildHasherDefault<Spread>;

/// All threads and CPUs.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    threads: HashMap<i32, Thread, Spreading>,
    cpus: Vec<Cpu>,
    steps: usize,
    /// What was before this is forgotten.
    horizon: u64,
}

impl World {
    /// How many steps of timelines are kept.
    #[cfg(test)]
    pub(crate) fn steps(&self) -> usize {
        self.steps
    }

    /// A thread that was met.
    pub(crate) fn thread(&self, tid: i32) -> Option<&Thread> {
        self.threads.get(&tid)
    }

    /// A thread, new if it was never met; `None` for what is no thread, and beyond the most.
    pub(crate) fn thread_mut(&mut self, tid: i32) -> Option<&mut Thread> {
        if tid <= 0 || (self.threads.len() >= MOST_THREADS && !self.threads.contains_key(&tid)) {
            return None;
        }
        Some(self.threads.entry(tid).or_default())
    }

    pub(crate) fn cpu(&self, cpu: u32) -> Option<&Cpu> {
        self.cpus.get(cpu as usize)
    }

    pub(crate) fn cpu_mut(&mut self, cpu: u32) -> Option<&mut Cpu> {
        if cpu >= MOST_CPUS {
            return None;
        }
        let index = cpu as usize;
        if self.cpus.len() <= index {
            self.cpus.resize_with(index + 1, Cpu::default);
        }
        self.cpus.get_mut(index)
    }

    /// Changes a timeline of a thread and keeps the books.
    pub(crate) fn of_thread(&mut self, tid: i32, change: impl FnOnce(&mut Thread) -> usize) {
        let horizon = self.horizon;
        let Some(thread) = self.thread_mut(tid) else { return };
        let grown = change(thread);
        let gone =
            thread.run.forget(horizon) + thread.over.forget(horizon) + thread.in_driver.forget(horizon);
        self.steps = (self.steps + grown).saturating_sub(gone);
    }

    /// The same of a CPU.
    pub(crate) fn of_cpu(&mut self, cpu: u32, change: impl FnOnce(&mut Cpu) -> usize) {
        let horizon = self.horizon;
        let Some(cpu) = self.cpu_mut(cpu) else { return };
        let grown = change(cpu);
        let gone = cpu.forget(horizon);
        self.steps = (self.steps + grown).saturating_sub(gone);
    }

    /// Nobody will ask for what was before `oldest`. Where too much is kept all the same, the older half of
    /// it is forgotten, and what somebody asks of that time is unknown.
    pub(crate) fn settle(&mut self, oldest: u64, now: u64) {
        self.horizon = self.horizon.max(oldest);
        if self.steps <= MOST_STEPS {
            return;
        }
        self.horizon += (now.saturating_sub(self.horizon)).div_ceil(2);
        let horizon = self.horizon;
        let mut gone = 0;
        for thread in self.threads.values_mut() {
            gone += thread.run.forget(horizon);
            gone += thread.over.forget(horizon) + thread.in_driver.forget(horizon);
        }
        gone += self.cpus.iter_mut().map(|cpu| cpu.forget(horizon)).sum::<usize>();
        self.steps = self.steps.saturating_sub(gone);
    }

    /// An event of a thread tells that it has this CPU. Where nobody is known to have it, or the idle task, its switch is
    /// missing in the trace, and came after the CPU's event before.
    /// Fact: seen on Linux 6.18, where a task that an interrupt woke on an idle CPU ran without one.
    pub(crate) fn seen(&mut self, ts: u64, cpu: u32, tid: i32) {
        let Some(there) = self.cpu(cpu).filter(|_| tid > 0) else { return };
        if there.occupant.last().is_some_and(|who| who.tid > 0) {
            return;
        }
        let since = there.last_event.unwrap_or(ts).min(ts);
        let (comm, prio) = self.thread(tid).map_or((Name::NONE, None), |thread| (thread.comm, thread.prio));
        self.of_cpu(cpu, |cpu| cpu.occupant.push(since, Occupant { tid, comm, prio }));
        self.of_thread(tid, |thread| thread.run.push(since, Run::Running { cpu }));
    }

    /// `next` has the CPU that `prev` left.
    pub(crate) fn switch(&mut self, ts: u64, cpu: u32, prev: Task, state: State, next: Task) {
        let who = Occupant { tid: next.tid, comm: next.comm, prio: Some(next.prio) };
        self.of_cpu(cpu, |cpu| cpu.occupant.push(ts, who));
        self.of_thread(prev.tid, |thread| {
            thread.prio = Some(prev.prio);
            thread.comm = prev.comm;
            let run = if state.is_runnable() {
                Run::Runnable { cpu, prio: Some(prev.prio), waker: 0, queued: true }
            } else {
                Run::Sleeping { state, place: Place::default(), slept: Slept::Unsaid }
            };
            thread.run.push(ts, run)
        });
        self.of_thread(next.tid, |thread| {
            thread.prio = Some(next.prio);
            thread.comm = next.comm;
            thread.early_waker = None;
            thread.run.push(ts, Run::Running { cpu })
        });
    }

    /// Somebody begins to wake a task.
    pub(crate) fn waking(&mut self, ts: u64, waker: i32, task: Task, cpu: u32) {
        self.of_thread(task.tid, |thread| {
            thread.prio = Some(task.prio);
            thread.comm = task.comm;
            match thread.run.last() {
                Some(Run::Running { .. } | Run::Runnable { .. }) => {
                    thread.early_waker = Some(waker);
                    0
                }
                _ => {
                    let prio = Some(task.prio);
                    thread.run.push(ts, Run::Runnable { cpu, prio, waker, queued: false })
                }
            }
        });
    }

    /// A task is in the queue of `cpu`.
    pub(crate) fn wakeup(&mut self, ts: u64, waker: i32, task: Task, cpu: u32) {
        self.of_thread(task.tid, |thread| {
            thread.prio = Some(task.prio);
            thread.comm = task.comm;
            let waker = thread.early_waker.take().unwrap_or(waker);
            match thread.run.last() {
                Some(Run::Running { .. }) => 0,
                Some(Run::Runnable { waker, .. }) => {
                    thread.run.push(ts, Run::Runnable { cpu, prio: Some(task.prio), waker, queued: true })
                }
                _ => thread.run.push(ts, Run::Runnable { cpu, prio: Some(task.prio), waker, queued: true }),
            }
        });
    }

    /// A task goes to another queue.
    pub(crate) fn migrate(&mut self, ts: u64, tid: i32, to_cpu: u32) {
        self.of_thread(tid, |thread| match thread.run.last() {
            Some(Run::Runnable { prio, waker, queued, .. }) => {
                thread.run.push(ts, Run::Runnable { cpu: to_cpu, prio, waker, queued })
            }
            _ => 0,
        });
    }

    /// A task has another priority.
    pub(crate) fn reprioritise(&mut self, ts: u64, tid: i32, new: Prio) {
        self.of_thread(tid, |thread| {
            thread.prio = Some(new);
            match thread.run.last() {
                Some(Run::Runnable { cpu, waker, queued, .. }) => {
                    thread.run.push(ts, Run::Runnable { cpu, prio: Some(new), waker, queued })
                }
                _ => 0,
            }
        });
    }

    /// What a task has slept in until now. It may be in a queue already when this is said.
    pub(crate) fn blocked(&mut self, tid: i32, sort: Slept, caller: Place) {
        let Some(thread) = self.thread_mut(tid) else { return };
        thread.run.amend_last_two(|run| {
            if let Run::Sleeping { place, slept, .. } = run {
                (*place, *slept) = (caller, sort);
                return true;
            }
            false
        });
    }

    /// Events are missing, perhaps those that tell that somebody waits for a lock no more.
    pub(crate) fn forget_locks(&mut self, ts: u64) {
        for thread in self.threads.values_mut().filter(|thread| thread.lock.is_some()) {
            thread.lock = None;
            let over = thread.is_over();
            self.steps += thread.over.push(ts, over);
        }
    }

    /// Nobody knows what happened on a CPU since its last event.
    pub(crate) fn blind(&mut self, cpu: u32, from: u64) {
        let mut ran = None;
        self.of_cpu(cpu, |cpu| {
            ran = cpu.occupant.last().map(|who| who.tid);
            cpu.interrupts.clear();
            let who = Occupant { tid: -1, comm: Name::NONE, prio: None };
            cpu.occupant.push(from, who) + cpu.interrupt.push(from, None) + cpu.idle.push(from, None)
        });
        if let Some(tid) = ran {
            self.of_thread(tid, |thread| match thread.run.last() {
                Some(Run::Running { .. }) => thread.run.push(from, Run::Unknown),
                _ => 0,
            });
        }
    }
}

impl Cpu {
    fn forget(&mut self, before: u64) -> usize {
        self.occupant.forget(before)
            + self.interrupt.forget(before)
            + self.idle.forget(before)
            + self.khz.forget(before)
    }

    /// A handler begins.
    pub(crate) fn enter(&mut self, ts: u64, what: Interrupt) -> usize {
        // Handlers nest a few deep; an exit that was lost must not pile them up.
        if self.interrupts.len() >= 8 {
            self.interrupts.clear();
        }
        self.interrupts.push(what);
        self.interrupt.push(ts, Some(what))
    }

    /// It ends, and what it interrupted goes on.
    pub(crate) fn leave(&mut self, ts: u64, is_it: impl Fn(Interrupt) -> bool) -> usize {
        match self.interrupts.iter().rposition(|what| is_it(*what)) {
            Some(at) => self.interrupts.truncate(at),
            None => return 0,
        }
        self.interrupt.push(ts, self.interrupts.last().copied())
    }
}
