//! Watches one CPU for silences: no event while a task ran, although an interrupt was due.
//! Not here: which calls a silence delayed (`divide`).
//!
//! A busy CPU takes a timer interrupt at least once per tick, and an interrupt that another CPU sends within
//! microseconds. If neither shows as an event, the CPU did not execute its own code: a hypervisor or the firmware had
//! it, or the kernel kept interrupts off. When it is back, what was due comes at once. A silence that ends before anything
//! was due, or without it, proves nothing.
//! Facts: `kernel/time/tick-sched.c` (only `nohz_full` stops the tick of a busy CPU) and `kernel/sched/core.c`
//! (`ipi_send_cpu` is traced only if the interrupt is really sent), Linux 7.2; no kernel ticks below 100 Hz.

use crate::event::{Event, Irq, Kind, Names};

/// Lateness of an interrupt that proves nothing, in nanoseconds: longer than kernels keep interrupts off.
const LATE: u64 = 250_000;
/// Longest tick of any kernel, in nanoseconds.
const LONGEST_TICK: u64 = 10_000_000;
/// Timer interrupts on time that show that the trace has this CPU's tick.
const ENOUGH: u8 = 3;

/// Meaning of a silence, or of a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// The CPU was taken from its task.
    Stolen,
    /// The task ran, or the CPU was taken from it: the trace cannot tell.
    Unclear,
}

/// A silence that is over: its begin, when the interrupt was due, its end, and whether it proves a theft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Silent {
    pub(super) begin: u64,
    pub(super) due: u64,
    pub(super) end: u64,
    pub(super) proven: bool,
}

/// Interrupts and running task of one CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    /// The CPU's tick, by the recorder's word.
    tick: Option<u64>,
    /// Running task; 0 if the CPU is idle or its task is unknown.
    running: i32,
    last: u64,
    /// Last timer interrupt, or when the CPU left idle.
    timer: u64,
    /// Timer interrupts seen while a task ran, up to [`ENOUGH`].
    timers: u8,
    /// When another CPU sent an interrupt that did not arrive yet.
    sent: Option<u64>,
    /// Silence that ended in something else than an interrupt; the late one must follow.
    waiting: Option<Silent>,
    /// Whether interrupts from other CPUs are recorded where they arrive.
    shows_sent: bool,
}

impl Watch {
    /// Sets the longest time between two timer interrupts of this CPU while it is busy.
    pub(super) fn ticks_every(&mut self, ns: u64) {
        self.tick = Some(ns).filter(|ns| (1..=LONGEST_TICK).contains(ns));
    }

    /// Events of this CPU are missing.
    pub(super) fn lose(&mut self) {
        *self = Self { tick: self.tick, shows_sent: self.shows_sent, ..Self::default() };
    }

    /// Another CPU sends an interrupt to this one.
    pub(super) fn send(&mut self, ts: u64) {
        if self.running > 0 {
            self.sent.get_or_insert(ts);
        }
    }

    /// Takes the CPU's next event; returns the silence before it, if something was due in it.
    pub(super) fn hear(&mut self, event: &Event, names: &Names) -> Option<Silent> {
        let ts = event.ts;
        if self.waiting.take_if(|silent| ts > silent.end.saturating_add(LATE)).is_some() {
            // What was due does not come at all.
            (self.timers, self.sent) = (0, None);
        }
        let found = if self.running > 0 && event.tid == self.running { self.judge(ts) } else { None };
        let silent = match event.kind {
            Kind::IrqEntry { .. } => found.or(self.waiting).inspect(|_| self.waiting = None),
            _ => {
                self.waiting = self.waiting.or(found);
                None
            }
        };
        // What is late on a CPU that works does not come at all.
        if self.waiting.is_none() && self.sent.is_some_and(|sent| ts > sent.saturating_add(LATE)) {
            self.sent = None;
        }
        if found.is_none()
            && self.waiting.is_none()
            && self.running > 0
            && ts > self.tick_due().saturating_add(LATE)
        {
            self.timers = 0;
        }
        match &event.kind {
            Kind::Switch { next, .. } => {
                // Stopper threads keep interrupts off.
                let counts = next.tid > 0 && !names.text(next.comm).starts_with("migration/");
                if self.running <= 0 || !counts {
                    (self.timer, self.sent) = (ts, None);
                }
                self.running = if counts { next.tid } else { 0 };
            }
            Kind::CpuIdle { cpu, state: Some(_) } if *cpu == event.cpu => self.running = 0,
            Kind::IrqEntry { name, .. } if names.text(*name).contains("timer") => {
                self.timers = ENOUGH.min(self.timers + u8::from(self.running > 0));
                self.timer = ts;
            }
            Kind::IrqEntry { irq: Irq::Vector(_) | Irq::Ipi, .. } => {
                (self.sent, self.shows_sent) = (None, true)
            }
            _ => {}
        }
        self.last = ts;
        silent
    }

    fn tick_due(&self) -> u64 {
        self.timer.saturating_add(self.tick.unwrap_or(LONGEST_TICK))
    }

    fn judge(&self, ts: u64) -> Option<Silent> {
        let tick = Some(self.tick_due()).filter(|_| self.timers >= ENOUGH);
        let sent = self.sent.filter(|_| self.shows_sent);
        let due = tick.into_iter().chain(sent).min()?.max(self.last);
        // Without the recorder's word, the tick may be stopped or the recording have paused.
        let proven = self.tick.is_some();
        (ts > due.saturating_add(LATE)).then_some(Silent { begin: self.last, due, end: ts, proven })
    }
}
