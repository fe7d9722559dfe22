//! History of every thread and CPU, as far back as an open transaction needs it.
//! Not here: transactions (`calls`), causes of waits (`cause`).
//! Facts: `kernel/sched/core.c` `try_to_wake_up`, Linux 7.2: `sched_waking` comes while the task may still be leaving
//! its CPU; `sched_wakeup` comes once it is enqueued.

use std::collections::{HashMap, HashSet, VecDeque};

use super::thread::{MadeCall, SchedState, SleepReason, Thread};
use super::timeline::Timeline;
use super::watch::{Silence, Silent, Watch};
use crate::cause::{Shown, Waker};
use crate::event::{CodeLocation, Event, Irq, Kind, Name, Names, Prio, Softirq, State, Task};
use crate::hash::FastHash;

/// Maximum number of threads; only a forged trace has more.
const MOST_THREADS: usize = 1 << 18;
/// Threads above which those that are engaged in nothing are forgotten, in a trace without an end: about 8 MB.
const MANY_THREADS: usize = 1 << 14;
/// Maximum number of gaps that are kept; more are only in a trace of which little can be told.
const MOST_GAPS: usize = 1024;
/// Maximum number of ended calls that are kept for each thread.
const MOST_MADE: usize = 1024;
/// Maximum number of CPUs; more than Linux supports.
const MOST_CPUS: u32 = 8192;
/// Maximum steps of all timelines together, about 200 MB. Beyond it, old history is dropped.
const MOST_STEPS: usize = 1 << 22;

/// Interrupt that occupies a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Hard(Irq, Name),
    Soft(Softirq),
}

/// Task that has a CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Occupant {
    /// Thread ID; 0 is the idle task, -1 is unknown.
    pub(crate) tid: i32,
    pub(crate) comm: Name,
    pub(crate) prio: Option<Prio>,
}

impl Occupant {
    pub(crate) const UNKNOWN: Self = Self { tid: -1, comm: Name::NONE, prio: None };
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
    /// Thread of its last event.
    last_tid: i32,
    /// Whether a switch of this CPU was seen: from then on the trace shows who has it.
    switched: bool,
    /// Silences while a task ran.
    pub(crate) silence: Timeline<Option<Silence>>,
    pub(super) watch: Watch,
}

/// All threads and CPUs.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    threads: HashMap<i32, Box<Thread>, FastHash>,
    cpus: Vec<Cpu>,
    steps: usize,
    /// Maximum steps of a trace without an end.
    pub(super) most_steps: Option<usize>,
    /// Number of threads above which some are forgotten, if it is more than [`MANY_THREADS`].
    many_threads: usize,
    /// History before this time was dropped.
    horizon: u64,
    /// Intervals without the events of some CPU, apart from each other, latest last.
    gaps: VecDeque<(u64, u64)>,
    /// Kinds of events that the trace has shown so far.
    pub(crate) shown: Shown,
    /// Threads that may wait for a kernel lock or be in a method's slice.
    unsettled: HashSet<i32, FastHash>,
}

impl History {
    /// Number of timeline steps kept, and of threads.
    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.steps, self.threads.len())
    }

    /// A known thread.
    pub(crate) fn thread(&self, tid: i32) -> Option<&Thread> {
        self.threads.get(&tid).map(AsRef::as_ref)
    }

    /// A thread, created if unknown; `None` for an invalid ID, and beyond the maximum.
    pub(crate) fn thread_mut(&mut self, tid: i32) -> Option<&mut Thread> {
        if tid <= 0 || (self.threads.len() >= MOST_THREADS && !self.threads.contains_key(&tid)) {
            return None;
        }
        Some(self.threads.entry(tid).or_default())
    }

    /// Wake-ups of a thread in `begin..=end`: the waker and the time.
    pub(crate) fn wakes(&self, tid: i32, begin: u64, end: u64) -> impl Iterator<Item = (i32, u64)> + '_ {
        let steps = self.thread(tid).map(|thread| thread.run.after(begin.saturating_sub(1)));
        steps.into_iter().flatten().take_while(move |(ts, _)| *ts <= end).filter_map(|(ts, run)| match run {
            SchedState::Runnable { waker, .. } if waker != 0 => Some((waker, ts)),
            _ => None,
        })
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

    /// Changes a thread's timelines and counts the steps.
    pub(crate) fn of_thread(&mut self, tid: i32, change: impl FnOnce(&mut Thread) -> usize) {
        let horizon = self.horizon;
        let Some(thread) = self.thread_mut(tid) else { return };
        let grown = change(thread);
        let gone = thread.forget(horizon);
        self.steps = (self.steps + grown).saturating_sub(gone);
    }

    /// Changes a CPU's timelines and counts the steps.
    pub(crate) fn of_cpu(&mut self, cpu: u32, change: impl FnOnce(&mut Cpu) -> usize) {
        let horizon = self.horizon;
        let Some(cpu) = self.cpu_mut(cpu) else { return };
        let grown = change(cpu);
        let gone = cpu.forget(horizon);
        self.steps = (self.steps + grown).saturating_sub(gone);
    }

    /// Drops the history before `oldest`. If too many steps remain, drops the older half of them too; queries about
    /// that time return unknown.
    pub(crate) fn settle(&mut self, oldest: u64, now: u64) {
        self.horizon = self.horizon.max(oldest);
        self.forget_threads();
        if self.steps <= self.most_steps.unwrap_or(MOST_STEPS) {
            return;
        }
        self.horizon += (now.saturating_sub(self.horizon)).div_ceil(2);
        let horizon = self.horizon;
        let gone = self.threads.values_mut().map(|thread| thread.forget(horizon)).sum::<usize>()
            + self.cpus.iter_mut().map(|cpu| cpu.forget(horizon)).sum::<usize>();
        self.steps = self.steps.saturating_sub(gone);
    }

    /// Forgets, in a trace without an end, the threads that are engaged in nothing, when they have become many.
    fn forget_threads(&mut self) {
        if self.most_steps.is_none() || self.threads.len() <= self.many_threads.max(MANY_THREADS) {
            return;
        }
        let mut gone = 0;
        self.threads.retain(|_, thread| {
            let stays = thread.is_engaged();
            gone += if stays { 0 } else { thread.steps() };
            stays
        });
        self.steps = self.steps.saturating_sub(gone);
        self.unsettled.retain(|tid| self.threads.contains_key(tid));
        // Those that stay are not looked at for each further one.
        self.many_threads = 2 * self.threads.len();
    }

    /// Notes an event of a CPU, and the silence before it.
    pub(crate) fn hear(&mut self, event: &Event, names: &Names) {
        if let Kind::IpiSend { to_cpu: Some(to), .. } = event.kind
            && to != event.cpu
            && let Some(there) = self.cpus.get_mut(to as usize)
        {
            there.watch.send(event.ts);
        }
        let silent = self.cpu_mut(event.cpu).and_then(|cpu| cpu.watch.hear(event, names));
        let Some(Silent { begin, due, end, proven }) = silent else { return };
        let past_due = if proven { Silence::Stolen } else { Silence::Unclear };
        self.of_cpu(event.cpu, |cpu| {
            cpu.silence.push(begin, Some(Silence::Unclear))
                + cpu.silence.push(due, Some(past_due))
                + cpu.silence.push(end, None)
        });
    }

    /// Notes that a thread runs on this CPU, as an event shows. If the CPU's task was unknown or the idle task, a
    /// switch event is missing, after the CPU's previous event. Where the trace shows no switches, nothing would show when
    /// the thread leaves the CPU.
    /// Fact: seen on Linux 6.18, where a task that an interrupt woke on an idle CPU ran without a switch event.
    pub(crate) fn seen(&mut self, ts: u64, cpu: u32, tid: i32) {
        let Some(there) = self.cpu(cpu).filter(|there| tid > 0 && there.switched) else { return };
        if there.occupant.last().is_some_and(|who| who.tid > 0) {
            return;
        }
        let since = there.last_event.unwrap_or(ts).min(ts);
        let (comm, prio) = self.thread(tid).map_or((Name::NONE, None), |thread| (thread.comm, thread.prio));
        self.of_cpu(cpu, |cpu| cpu.occupant.push(since, Occupant { tid, comm, prio }));
        self.of_thread(tid, |thread| thread.run.push(since, SchedState::Running { cpu }));
    }

    /// Takes a thread's process and name from one of its events, unless an event of the scheduler gave the name. A thread's
    /// further events in a row on a CPU add nothing.
    pub(crate) fn introduce(&mut self, event: &Event) {
        let Some(cpu) = self.cpu_mut(event.cpu) else { return };
        if std::mem::replace(&mut cpu.last_tid, event.tid) == event.tid {
            return;
        }
        let Some(thread) = self.thread_mut(event.tid) else { return };
        thread.tgid = event.tgid.or(thread.tgid);
        if !thread.comm.is_some() {
            thread.comm = event.comm;
        }
    }

    /// `sched_switch`: `next` gets the CPU that `prev` left.
    pub(crate) fn switch(&mut self, ts: u64, cpu: u32, prev: Task, state: State, next: Task) {
        let who = Occupant { tid: next.tid, comm: next.comm, prio: Some(next.prio) };
        self.of_cpu(cpu, |cpu| {
            cpu.switched = true;
            cpu.occupant.push(ts, who)
        });
        self.of_thread(prev.tid, |thread| {
            thread.meet(prev);
            let run = if state.is_runnable() {
                SchedState::Runnable { cpu, prio: Some(prev.prio), waker: 0, on: cpu, queued: true }
            } else {
                SchedState::Sleeping { state, place: CodeLocation::default(), slept: SleepReason::Unsaid }
            };
            thread.run.push(ts, run)
        });
        self.of_thread(next.tid, |thread| {
            thread.meet(next);
            thread.early_waker = None;
            thread.run.push(ts, SchedState::Running { cpu })
        });
    }

    /// `sched_waking`: a wake-up of a task begins.
    pub(crate) fn waking(&mut self, ts: u64, (waker, on): (i32, u32), task: Task, cpu: u32) {
        self.of_thread(task.tid, |thread| {
            thread.meet(task);
            match thread.run.last() {
                Some(SchedState::Running { .. } | SchedState::Runnable { .. }) => {
                    thread.early_waker = Some((waker, on));
                    0
                }
                _ => {
                    let prio = Some(task.prio);
                    thread.run.push(ts, SchedState::Runnable { cpu, prio, waker, on, queued: false })
                }
            }
        });
    }

    /// `sched_wakeup`: a task is in the run queue of `cpu`.
    pub(crate) fn wakeup(&mut self, ts: u64, waker: (i32, u32), task: Task, cpu: u32) {
        self.of_thread(task.tid, |thread| {
            thread.meet(task);
            let early_waker = thread.early_waker.take();
            let (waker, on) = match thread.run.last() {
                Some(SchedState::Running { .. }) => return 0,
                Some(SchedState::Runnable { waker, on, .. }) => (waker, on),
                _ => early_waker.unwrap_or(waker),
            };
            thread.run.push(ts, SchedState::Runnable { cpu, prio: Some(task.prio), waker, on, queued: true })
        });
    }

    /// A task moves to another run queue.
    pub(crate) fn migrate(&mut self, ts: u64, tid: i32, to_cpu: u32) {
        self.of_thread(tid, |thread| match thread.run.last() {
            Some(SchedState::Runnable { prio, waker, on, queued, .. }) => {
                thread.run.push(ts, SchedState::Runnable { cpu: to_cpu, prio, waker, on, queued })
            }
            _ => 0,
        });
    }

    /// A task's priority changes.
    pub(crate) fn reprioritise(&mut self, ts: u64, tid: i32, new: Prio) {
        self.of_thread(tid, |thread| {
            thread.prio = Some(new);
            match thread.run.last() {
                Some(SchedState::Runnable { cpu, waker, on, queued, .. }) => {
                    thread.run.push(ts, SchedState::Runnable { cpu, prio: Some(new), waker, on, queued })
                }
                _ => 0,
            }
        });
    }

    /// A thread's name, if no event of its own has told it.
    pub(crate) fn mention(&mut self, task: Task) {
        if let Some(thread) = self.thread_mut(task.tid).filter(|thread| !thread.comm.is_some()) {
            thread.comm = task.comm;
        }
    }

    /// Sets the reason of the sleep that just ended. The task may be enqueued already.
    pub(crate) fn blocked(&mut self, tid: i32, reason: SleepReason, caller: CodeLocation) {
        let Some(thread) = self.thread_mut(tid) else { return };
        thread.run.amend_last_two(|run| {
            if let SchedState::Sleeping { place, slept, .. } = run {
                (*place, *slept) = (caller, reason);
                return true;
            }
            false
        });
    }

    /// A kernel worker begins a work item, or ends it: no function.
    pub(crate) fn works(&mut self, ts: u64, tid: i32, function: CodeLocation) {
        self.of_thread(tid, |thread| thread.work.push(ts, function));
    }

    /// Events of a CPU are missing in this interval.
    pub(crate) fn miss(&mut self, begin: u64, end: u64) {
        if let Some(last) = self.gaps.back_mut().filter(|last| begin <= last.1) {
            (last.0, last.1) = (last.0.min(begin), last.1.max(end));
            return;
        }
        if self.gaps.len() >= MOST_GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back((begin, end));
    }

    /// Whether events are missing anywhere between these times.
    pub(crate) fn has_gap(&self, begin: u64, end: u64) -> bool {
        let after = self.gaps.partition_point(|gap| gap.1 <= begin);
        self.gaps.get(after).is_some_and(|gap| gap.0 < end)
    }

    /// Notes a call that has ended.
    pub(crate) fn made(&mut self, tid: i32, call: MadeCall) {
        let horizon = self.horizon;
        let Some(thread) = self.thread_mut(tid) else { return };
        while thread.made.len() >= MOST_MADE || thread.made.front().is_some_and(|made| made.end < horizon) {
            thread.made.pop_front();
        }
        thread.made.push_back(call);
    }

    /// What an interrupt handler on this CPU is called that woke a thread.
    pub(crate) fn interrupt_on(&self, cpu: u32, ts: u64) -> Waker {
        // In a trace of microseconds the handler may begin, wake and end within one.
        let handler = self.cpu(cpu).and_then(|cpu| {
            let then = || cpu.interrupt.after(ts.saturating_sub(1)).take_while(|(at, _)| *at == ts);
            let before = || cpu.interrupt.at(ts.saturating_sub(1)).flatten();
            cpu.interrupt.at(ts).flatten().or_else(|| then().find_map(|(_, what)| what)).or_else(before)
        });
        match handler {
            Some(Interrupt::Hard(irq, name)) => Waker::Interrupt(irq, name),
            Some(Interrupt::Soft(softirq)) => Waker::SoftInterrupt(softirq),
            None => Waker::Unnamed,
        }
    }

    /// Name of a thread when it had this CPU; otherwise its last one.
    pub(crate) fn name_on(&self, tid: i32, cpu: Option<u32>, ts: u64) -> Name {
        let there = cpu.and_then(|cpu| self.cpu(cpu)?.occupant.at(ts));
        let then = there.filter(|who| who.tid == tid && who.comm.is_some()).map(|who| who.comm);
        then.or_else(|| self.thread(tid).map(|thread| thread.comm)).unwrap_or_default()
    }

    /// A thread begins to wait for a kernel lock, or a slice that names a method.
    pub(crate) fn note_open(&mut self, tid: i32) {
        self.unsettled.insert(tid);
    }

    /// Events are missing, perhaps ends of lock waits and of methods: forget all of them.
    pub(crate) fn forget_open(&mut self, ts: u64) {
        for tid in self.unsettled.drain() {
            let Some(thread) = self.threads.get_mut(&tid) else { continue };
            thread.methods.clear();
            if thread.lock.take().is_some() {
                let over = thread.declared_wait();
                self.steps += thread.over.push(ts, over);
            }
        }
    }

    /// A CPU's history since its last event is unknown.
    pub(crate) fn blind(&mut self, cpu: u32, from: u64) {
        let mut ran = None;
        self.of_cpu(cpu, |cpu| {
            ran = cpu.occupant.last().map(|who| who.tid);
            cpu.interrupts.clear();
            cpu.watch.lose();
            cpu.occupant.push(from, Occupant::UNKNOWN)
                + cpu.interrupt.push(from, None)
                + cpu.idle.push(from, None)
        });
        if let Some(tid) = ran {
            self.of_thread(tid, |thread| match thread.run.last() {
                Some(SchedState::Running { .. }) => thread.run.push(from, SchedState::Unknown),
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
            + self.silence.forget(before)
    }

    /// A handler begins.
    pub(crate) fn enter(&mut self, ts: u64, what: Interrupt) -> usize {
        // Handlers nest a few deep; lost exit events must not pile them up.
        if self.interrupts.len() >= 8 {
            self.interrupts.clear();
        }
        self.interrupts.push(what);
        self.interrupt.push(ts, Some(what))
    }

    /// A handler ends; the interrupted one continues.
    pub(crate) fn leave(&mut self, ts: u64, is_it: impl Fn(Interrupt) -> bool) -> usize {
        match self.interrupts.iter().rposition(|what| is_it(*what)) {
            Some(at) => self.interrupts.truncate(at),
            None => return 0,
        }
        self.interrupt.push(ts, self.interrupts.last().copied())
    }
}
