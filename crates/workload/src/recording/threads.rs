//! When the threads of a trace ran, waited for a CPU, and slept.
//! Not here: why (`trace::cause`).

use std::collections::HashMap;

use trace::event::{Event, Kind, State};

/// Longest time between a wake-up and the switch that it came too early for.
const EARLY_NS: u64 = 20_000;

/// State of a thread from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Runs,
    /// It left its CPU and would have gone on.
    Preempted,
    Sleeps,
    /// It waits for a CPU after a sleep.
    Woken {
        by_interrupt: bool,
    },
}

/// Use that a thread made of a slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// It had a CPU.
    Runs,
    /// It waited for one.
    Queues,
    /// It waited for something else, until another thread woke it, or an interrupt.
    Sleeps { by_interrupt: bool },
    /// The trace does not say.
    Unknown,
}

/// A slice of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) does: Does,
}

impl Slice {
    pub(crate) fn ns(&self) -> u64 {
        self.end - self.begin
    }
}

#[derive(Clone, Debug, Default)]
struct Thread {
    steps: Vec<(u64, Step)>,
    /// A wake-up that came while it ran, and whether by an interrupt.
    early: Option<(u64, bool)>,
}

/// The history of all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Threads {
    of: HashMap<i32, Thread>,
    steps: usize,
    /// Whether the trace has `sched_waking`, which says who woke; `sched_wakeup` may come from an interrupt on another CPU.
    has_waking: bool,
    has_switches: bool,
    has_wakes: bool,
}

impl Threads {
    /// Number of steps kept.
    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    pub(super) fn take(&mut self, event: &Event) {
        let ts = event.ts;
        match event.kind {
            Kind::Switch { prev, state, next } => {
                self.has_switches = true;
                let step = if state.is_runnable() { Step::Preempted } else { Step::Sleeps };
                let early = self.push(prev.tid, ts, step);
                if let Some((_, by_interrupt)) =
                    early.filter(|(woken, _)| step == Step::Sleeps && ts.saturating_sub(*woken) <= EARLY_NS)
                    && state != State::Dead
                {
                    self.push(prev.tid, ts, Step::Woken { by_interrupt });
                }
                self.push(next.tid, ts, Step::Runs);
            }
            Kind::Waking(wake) => {
                self.has_waking = true;
                self.wake(wake.task.tid, ts, event.context.in_interrupt() || event.tid == 0);
            }
            Kind::Wakeup(wake) | Kind::WakeupNew(wake) => {
                let by_interrupt = event.context.in_interrupt() && !self.has_waking && event.tid == 0;
                self.wake(wake.task.tid, ts, by_interrupt);
            }
            _ => {}
        }
    }

    /// Adds a step, unless it says nothing new; returns the early wake-up, which is over.
    fn push(&mut self, tid: i32, ts: u64, step: Step) -> Option<(u64, bool)> {
        if tid <= 0 {
            return None;
        }
        let thread = self.of.entry(tid).or_default();
        let ts = thread.steps.last().map_or(ts, |(last, _)| ts.max(*last));
        if thread.steps.last().is_none_or(|(_, last)| *last != step) {
            thread.steps.push((ts, step));
            self.steps += 1;
        }
        thread.early.take()
    }

    fn wake(&mut self, tid: i32, ts: u64, by_interrupt: bool) {
        self.has_wakes = true;
        if tid <= 0 {
            return;
        }
        match self.of.get(&tid).and_then(|thread| thread.steps.last()) {
            None | Some((_, Step::Sleeps)) => {
                self.push(tid, ts, Step::Woken { by_interrupt });
            }
            Some((_, Step::Runs)) => {
                if let Some(thread) = self.of.get_mut(&tid) {
                    thread.early = thread.early.or(Some((ts, by_interrupt)));
                }
            }
            Some((_, Step::Preempted | Step::Woken { .. })) => {}
        }
    }

    /// Slices of a thread between these times, without a gap.
    pub(crate) fn slices(&self, tid: i32, from: u64, to: u64) -> Vec<Slice> {
        let mut slices: Vec<Slice> = Vec::new();
        let mut add = |begin: u64, end: u64, does: Does| {
            if begin >= end {
                return;
            }
            match slices.last_mut().filter(|last| last.does == does) {
                Some(last) => last.end = end,
                None => slices.push(Slice { begin, end, does }),
            }
        };
        if !self.has_switches {
            add(from, to, Does::Unknown);
            return slices;
        }
        let steps = self.of.get(&tid).map_or(&[][..], |thread| &thread.steps);
        let after = steps.partition_point(|(ts, _)| *ts <= from);
        let mut at = from;
        for index in after..=steps.len() {
            let next = steps.get(index);
            let end = next.map_or(to, |(ts, _)| (*ts).min(to));
            let now = index.checked_sub(1).and_then(|now| steps.get(now)).map(|(_, step)| *step);
            add(at, end, does(now, next.map(|(_, step)| *step), self.has_wakes));
            at = at.max(end);
            if at >= to {
                break;
            }
        }
        slices
    }

    /// Number of times that a thread left its CPU after `from` and until `to`, and that it was woken.
    pub(crate) fn counts(&self, tid: i32, from: u64, to: u64) -> (u64, u64) {
        let steps = self.of.get(&tid).map_or(&[][..], |thread| &thread.steps);
        let after = steps.partition_point(|(ts, _)| *ts < from);
        let within = steps[after..].iter().take_while(|(ts, _)| *ts <= to);
        within.fold((0, 0), |(left, woken), (_, step)| match step {
            Step::Preempted | Step::Sleeps => (left + 1, woken),
            Step::Woken { .. } => (left, woken + 1),
            Step::Runs => (left, woken),
        })
    }

    /// When a thread sleeps for the first time from this time on, other than in one of these waits, which are in order; `None` if the trace
    /// does not show it.
    pub(super) fn sleeps_after(&self, tid: i32, from: u64, waits: &[(u64, u64)]) -> Option<u64> {
        let steps = self.of.get(&tid).map_or(&[][..], |thread| &thread.steps);
        let after = steps.partition_point(|(ts, _)| *ts < from);
        let waits_at = |ts: u64| {
            let begun = waits.partition_point(|(begin, _)| *begin <= ts);
            waits[..begun].last().is_some_and(|(_, end)| ts < *end)
        };
        let mut steps = steps[after..].iter();
        steps.find(|(ts, step)| *step == Step::Sleeps && !waits_at(*ts)).map(|(ts, _)| *ts)
    }
}

/// Use that a thread makes of the time between two steps; before its first one, the one that leads to it.
fn does(now: Option<Step>, next: Option<Step>, has_wakes: bool) -> Does {
    let woken = |next| matches!(next, Some(Step::Woken { by_interrupt: true }));
    match (now, next) {
        (Some(Step::Runs), _) => Does::Runs,
        (Some(Step::Preempted | Step::Woken { .. }), _) => Does::Queues,
        (Some(Step::Sleeps), next) => Does::Sleeps { by_interrupt: woken(next) },
        // A thread that nobody is seen to wake was awake, unless the trace shows no wake-ups.
        (None, Some(Step::Runs)) if has_wakes => Does::Queues,
        (None, Some(Step::Runs)) => Does::Sleeps { by_interrupt: false },
        (None, Some(Step::Woken { .. })) => Does::Sleeps { by_interrupt: woken(next) },
        // It had a CPU all the time.
        (None, Some(Step::Preempted | Step::Sleeps) | None) => Does::Runs,
    }
}
