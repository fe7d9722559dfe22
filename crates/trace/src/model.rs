//! Rebuilds transactions from trace events in one pass.
//! Not here: reading events, sentences about transactions (`verdict`).
//!
//! Events are taken in time order. The history of threads and CPUs is kept only while an open transaction may need
//! it, and within a fixed limit.

mod calls;
pub mod chain;
mod divide;
mod effort;
mod failure;
mod follow;
mod free;
pub(crate) mod history;
mod method;
mod rules;
mod slices;
pub(crate) mod thread;
mod timeline;
mod transaction;
mod watch;

use std::collections::HashMap;

use crate::cause::{Cause, Segment, Shown, SliceName};
use crate::event::{
    Binder, CodeLocation, Event, Flavour, Kind, LockKind, Mark, Name, Names, Prio, State,
    Transaction as Sent, Wake,
};
use calls::{Calls, Nested, OpenCall};
use chain::Link;
use divide::divide;
pub use effort::LeftOut;
use effort::{Effort, MOST_NESTED};
use failure::{Data, Failed};
pub use failure::{Failure, Why, Word};
use follow::follow;
use history::{History, Interrupt};
pub use method::Method;
pub(crate) use method::method_of;
use method::{Methods, NamedSlice, Side};
use rules::Declares;
pub(crate) use slices::Owner;
use slices::SliceNames;
use thread::{MadeCall, OpenSlice};
pub use transaction::{Gap, OpenTransaction, Outcome, Peer, SlowClock, Transaction};

/// Rebuilds transactions from events.
#[derive(Clone, Debug, Default)]
pub struct Model {
    history: History,
    calls: Calls,
    methods: Methods,
    slices: SliceNames,
    effort: Effort,
    left_out: LeftOut,
    now: u64,
    first: Option<u64>,
    gap: Option<Gap>,
    /// Threads whose mark announces a call, and since when, until that call has ended.
    announced: HashMap<i32, u64>,
    held: Option<u64>,
    /// Slots of the calls that are open at the end of the trace, the one that began last behind.
    last: Option<Vec<usize>>,
    /// True if transactions are not divided, so that no history is needed.
    calls_only: bool,
}

/// Maximum number of threads whose history is kept before an announced call.
const MOST_ANNOUNCED: usize = 1024;

impl Model {
    /// Creates a model without history.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a model for events without an end. It keeps at most this many steps of threads and CPUs, of about 50 bytes each;
    /// of a call that is open for longer, what is older is unknown.
    #[must_use]
    pub fn bounded(steps: usize) -> Self {
        let mut model = Self::default();
        model.history.most_steps = Some(steps);
        model
    }

    /// Creates a model for the events of calls, without an end. Its transactions have no segments, no links and no
    /// reasons of failures.
    #[must_use]
    pub fn of_calls(steps: usize) -> Self {
        Self { calls_only: true, ..Self::bounded(steps) }
    }

    /// Takes the next event; passes each transaction that ends with it to `ended`. `names` are the reader's.
    pub fn take(&mut self, event: &Event, names: &Names, ended: &mut impl FnMut(Transaction)) {
        self.effort.event();
        self.now = self.now.max(event.ts);
        self.first.get_or_insert(event.ts);
        if let Kind::Lost { .. } = event.kind {
            self.lose(event);
        } else if let Kind::Tick { period } = event.kind {
            if let Some(cpu) = self.history.cpu_mut(event.cpu) {
                cpu.watch.ticks_every(period);
            }
        } else {
            self.history.introduce(event);
            if !self.calls_only {
                self.history.shown.see(event);
                self.history.hear(event, names);
                self.history.seen(event.ts, event.cpu, event.tid);
            }
            self.schedule(event, names);
            if let Some(declares) = rules::declared(&event.kind) {
                self.declare(event, declares);
            }
            if let Some(cpu) = self.history.cpu_mut(event.cpu) {
                cpu.last_event = Some(event.ts);
            }
        }
        self.settle(names, ended);
    }

    /// Ends the trace and all open transactions.
    pub fn finish(&mut self, names: &Names, ended: &mut impl FnMut(Transaction)) {
        while let Some(call) = self.end_next(names) {
            ended(call);
        }
    }

    /// Ends the trace, and of the open transactions the one that began last; `None` if none is left. A trace may have many of
    /// them, so they are made one at a time.
    pub fn end_next(&mut self, names: &Names) -> Option<Transaction> {
        // Nested calls end before the calls that they were made for.
        let calls = &mut self.calls;
        self.last.get_or_insert_with(|| {
            calls.note_busy();
            calls.slots()
        });
        let open = loop {
            let slot = self.last.as_mut()?.pop()?;
            if let Some(open) = self.calls.take(slot) {
                break open;
            }
        };
        let (end, outcome) =
            open.reply_received.map_or((self.now, Outcome::Cut), |end| (end, Outcome::Replied));
        Some(self.conclude(open, (end, outcome), names))
    }

    /// Calls that have not ended, in no order.
    pub fn open_calls(&self) -> impl Iterator<Item = OpenTransaction> + '_ {
        self.calls.all().map(|open| OpenTransaction {
            debug_id: open.sent.debug_id,
            node: open.sent.target_node,
            code: open.sent.code,
            oneway: open.sent.is_oneway(),
            client: open.client,
            client_tgid: open.client_tgid,
            to_proc: open.sent.to_proc,
            server: open.server,
            begin: open.begin,
            received: open.received,
            doubtful: self.calls.is_doubtful(open),
        })
    }

    /// Last interval with missing events. Transactions that ended in it, as seen on other CPUs, may lack events.
    #[must_use]
    pub fn last_gap(&self) -> Option<Gap> {
        self.gap
    }

    /// Keeps thread and CPU history since this time even if no transaction needs it, within the model's limit; `None`
    /// ends that.
    pub(crate) fn hold(&mut self, since: Option<u64>) {
        self.held = since;
    }

    /// History of threads and CPUs, as far back as it is kept.
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// Kinds of events that the trace has shown so far.
    #[must_use]
    pub fn shown(&self) -> Shown {
        self.history.shown
    }

    /// The last transaction of a thread, if it was a oneway call.
    #[must_use]
    pub fn last_oneway(&self, tid: i32) -> Option<Sent> {
        self.history.thread(tid).and_then(|thread| thread.last_oneway)
    }

    /// What was not followed to its end because a trace may cost only in proportion to its length.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Last known name of a thread.
    #[must_use]
    pub fn name_of(&self, tid: i32) -> Name {
        self.history.thread(tid).map_or(Name::NONE, |thread| thread.comm)
    }

    /// Name of a thread that a slice names as the owner of a lock.
    pub(crate) fn owner_name(&self, tid: i32) -> Option<&str> {
        self.slices.owner(tid)
    }

    /// Name of a slice; empty for none.
    #[must_use]
    pub fn slice_text(&self, name: SliceName) -> &str {
        self.slices.text(name)
    }

    /// Times of the first and the last event.
    #[must_use]
    pub fn span(&self) -> Option<(u64, u64)> {
        self.first.map(|first| (first, self.now.max(first)))
    }

    fn settle(&mut self, names: &Names, ended: &mut impl FnMut(Transaction)) {
        if self.calls.ended.is_empty() {
            // Walking the queue for each event would cost more than it saves.
            if self.now.is_multiple_of(64) {
                self.forget();
            }
            return;
        }
        let mut ending = std::mem::take(&mut self.calls.ended);
        for (slot, end, outcome) in ending.drain(..) {
            if let Some(open) = self.calls.take(slot) {
                // Unless the thread already announced its next call.
                if open.announced.is_some() && self.announced.get(&open.client).copied() == open.announced {
                    self.announced.remove(&open.client);
                }
                ended(self.conclude(open, (end, outcome), names));
            }
        }
        // Its room is for the next ones.
        self.calls.ended = ending;
        self.forget();
    }

    /// Drops history that no open transaction needs.
    fn forget(&mut self) {
        let oldest = self.calls.oldest().unwrap_or(self.now);
        let oldest = self.announced.values().copied().fold(oldest, u64::min);
        let oldest = self.held.map_or(oldest, |held| held.min(oldest));
        self.history.settle(oldest, self.now);
    }

    fn conclude(&mut self, open: OpenCall, (end, outcome): (u64, Outcome), names: &Names) -> Transaction {
        let end = end.max(open.begin);
        let begin = open.announced.map_or(open.begin, |said| said.min(open.begin));
        let doubtful = self.calls.is_doubtful(&open);
        let (parts, links, slow_clock) = match self.calls_only {
            true => (Vec::new(), Vec::new(), None),
            false => self.divided(&open, begin, end, names),
        };
        let failed = !self.calls_only && matches!(outcome, Outcome::Failed | Outcome::Dead | Outcome::Frozen);
        let failure = failed.then(|| {
            let OpenCall { flavour, client, server, fate, sent, replied, .. } = open;
            let Sent { debug_id, to_proc, .. } = sent;
            let replied = replied.is_some();
            Failure::of(
                &self.history,
                &Failed { flavour, debug_id, client, server, to_proc, replied, fate, end },
            )
        });
        let peer = |tid, tgid, prio: Option<Prio>| {
            let thread = self.history.thread(tid);
            let comm = thread.map_or(Name::NONE, |thread| thread.comm);
            Peer { tid, tgid, comm, prio: prio.or(thread.and_then(|thread| thread.prio)) }
        };
        Transaction {
            debug_id: open.sent.debug_id,
            flavour: open.flavour,
            node: open.sent.target_node,
            code: open.sent.code,
            method: open.method,
            oneway: open.sent.is_oneway(),
            client: peer(open.client, open.client_tgid, open.client_prio),
            to_proc: open.sent.to_proc,
            server: open.server.map(|tid| peer(tid, Some(open.sent.to_proc), open.server_prio)),
            begin,
            sent: open.begin,
            received: open.received,
            replied: open.replied,
            end,
            client_cpu: open.client_cpu,
            server_cpu: open.server_cpu,
            outcome,
            failure,
            request: open.request,
            reply: open.reply,
            behind: open.behind,
            doubtful,
            label: open.label,
            scene: open.scene,
            nested: open.parent.is_some(),
            slow_clock,
            parts,
            links,
        }
    }

    /// Segments of an ended call, the chains of its waits, and its time at a low frequency.
    fn divided(
        &mut self,
        open: &OpenCall,
        begin: u64,
        end: u64,
        names: &Names,
    ) -> (Vec<Segment>, Vec<Link>, Option<SlowClock>) {
        let history = (&self.history, &self.effort);
        let mut parts = divide(history, open, begin, end);
        let links = follow(history, (&self.calls, &self.slices), open, &parts);
        let slow_clock = self.slow_clock(&parts);
        self.left_out.calls += u64::from(self.effort.was_refused());
        let deep = |part: &Segment| part.depth >= MOST_NESTED && part.cause == Cause::Nested;
        self.left_out.deep += u64::from(parts.iter().any(deep));
        if !open.sent.is_oneway() {
            let made = MadeCall { begin, end, debug_id: open.sent.debug_id, server: open.server };
            self.history.made(open.client, made);
        }
        if open.parent.is_some() {
            self.calls.nest(open.parent, Nested { begin, end, parts: parts.clone() });
        }
        parts.iter_mut().for_each(|part| part.cause = rules::in_call(part, open, names));
        (parts, links, slow_clock)
    }

    /// Time of these segments that ran below the CPU's highest frequency.
    fn slow_clock(&self, parts: &[Segment]) -> Option<SlowClock> {
        let mut slow: Option<SlowClock> = None;
        let runs = |part: &&Segment| matches!(part.cause, Cause::Running | Cause::Driver);
        for part in parts.iter().filter(runs) {
            let Some(cpu) = part.cpu.and_then(|cpu| self.history.cpu(cpu)) else { continue };
            for (begin, end, khz) in cpu.khz.slices(part.begin, part.end) {
                if !self.effort.step() {
                    return slow;
                }
                let Some(khz) = khz.filter(|khz| *khz < cpu.highest_khz) else { continue };
                let found = slow.get_or_insert(SlowClock { ns: 0, khz });
                found.ns += end - begin;
                found.khz = found.khz.min(khz);
            }
        }
        slow
    }

    /// Marks the events of this CPU as missing, from its last one until now.
    fn lose(&mut self, event: &Event) {
        let begin = self.history.cpu(event.cpu).and_then(|cpu| cpu.last_event);
        let begin = begin.or(self.first).unwrap_or(event.ts).min(event.ts);
        self.gap = Some(Gap { begin, end: event.ts });
        self.history.miss(begin, event.ts);
        self.history.blind(event.cpu, begin);
        self.history.forget_open(event.ts);
        self.calls.lose();
        if let Some(cpu) = self.history.cpu_mut(event.cpu) {
            cpu.last_event = Some(event.ts);
        }
    }

    fn schedule(&mut self, event: &Event, names: &Names) {
        let (ts, history) = (event.ts, &mut self.history);
        let waker = if event.context.in_interrupt() || event.tid <= 0 { -1 } else { event.tid };
        let by = (waker, event.cpu);
        match &event.kind {
            Kind::Switch { prev, state, next } => {
                history.switch(ts, event.cpu, *prev, *state, *next);
                if *state == State::Dead {
                    self.announced.remove(&prev.tid);
                    self.calls.died(history, prev.tid, ts);
                    history.of_thread(prev.tid, |thread| thread.note_slices(ts));
                }
            }
            Kind::Waking(Wake { task, target_cpu }) => {
                history.waking(ts, by, *task, *target_cpu);
            }
            Kind::Wakeup(Wake { task, target_cpu }) | Kind::WakeupNew(Wake { task, target_cpu }) => {
                history.wakeup(ts, by, *task, *target_cpu);
            }
            Kind::BlockedReason { tid, io_wait, caller } => {
                history.blocked(*tid, rules::slept_in(names.text(caller.symbol), *io_wait), *caller);
            }
            Kind::PiSetprio { task, new_prio } => {
                history.mention(*task);
                history.reprioritise(ts, task.tid, *new_prio);
            }
            Kind::Migrate { task, to_cpu, .. } => {
                history.mention(*task);
                history.migrate(ts, task.tid, *to_cpu);
            }
            Kind::Rename(task) | Kind::Exit(task) if task.comm.is_some() => {
                history.of_thread(task.tid, |thread| {
                    thread.comm = task.comm;
                    0
                })
            }
            Kind::Binder(flavour, binder) => self.binder(event, *flavour, binder),
            Kind::WorkStart { function, .. } => history.works(ts, event.tid, *function),
            Kind::WorkEnd { .. } => history.works(ts, event.tid, CodeLocation::default()),
            Kind::ContentionBegin(kind) => self.contention(event, Some(*kind)),
            Kind::ContentionEnd => self.contention(event, None),
            Kind::Print(text) => self.own_mark(event, text),
            _ => self.interrupt(event),
        }
    }

    fn interrupt(&mut self, event: &Event) {
        let (ts, cpu, history) = (event.ts, event.cpu, &mut self.history);
        match event.kind {
            Kind::IrqEntry { irq, name } => {
                history.of_cpu(cpu, |cpu| cpu.enter(ts, Interrupt::Hard(irq, name)));
            }
            Kind::IrqExit { irq, .. } => history.of_cpu(cpu, |cpu| {
                cpu.leave(ts, |what| matches!(what, Interrupt::Hard(entered, _) if entered == irq))
            }),
            Kind::SoftirqEntry(softirq) => {
                history.of_cpu(cpu, |cpu| cpu.enter(ts, Interrupt::Soft(softirq)));
            }
            Kind::SoftirqExit(softirq) => {
                history.of_cpu(cpu, |cpu| cpu.leave(ts, |what| what == Interrupt::Soft(softirq)));
            }
            Kind::CpuIdle { cpu, state } => history.of_cpu(cpu, |cpu| cpu.idle.push(ts, state)),
            Kind::CpuFrequency { cpu, khz } => history.of_cpu(cpu, |cpu| {
                cpu.highest_khz = cpu.highest_khz.max(khz);
                cpu.khz.push(ts, khz)
            }),
            _ => {}
        }
    }

    fn binder(&mut self, event: &Event, flavour: Flavour, binder: &Binder) {
        let (ts, tid, calls, history) = (event.ts, event.tid, &mut self.calls, &mut self.history);
        match *binder {
            Binder::Transaction(sent) if sent.reply => calls.replied(history, event, flavour, sent),
            Binder::Transaction(sent) => calls.sent(history, event, flavour, sent),
            Binder::Received { debug_id } => {
                calls.handed_over(history, tid, ts);
                calls.received(history, event, flavour, debug_id);
            }
            Binder::WaitForWork { proc_work, .. } => {
                calls.handed_over(history, tid, ts);
                if proc_work {
                    calls.waits_for_any(history, tid, ts);
                }
            }
            Binder::WriteDone { .. } => calls.handed_over(history, tid, ts),
            Binder::Ioctl { .. } => history.of_thread(tid, |thread| thread.in_driver.push(ts, true)),
            Binder::IoctlDone { .. } => {
                history.of_thread(tid, |thread| thread.in_driver.push(ts, false));
                calls.handed_over(history, tid, ts);
                calls.ioctl_done(history, tid, ts);
            }
            Binder::Return { cmd } => calls.returned(history, event, flavour, cmd),
            // `BC_TRANSACTION` or `BC_TRANSACTION_SG` of either size.
            Binder::Command { cmd } if matches!(cmd & 0xffff, 0x6300 | 0x6311) => {
                history.of_thread(tid, |thread| {
                    thread.commanded = Some(ts);
                    0
                });
            }
            Binder::AllocBuf(buffer) => calls.buffer(flavour, buffer, Data::Allocated),
            Binder::FailedBufferRelease(buffer) => calls.buffer(flavour, buffer, Data::Undone),
            Binder::SetPriority { thread, new, .. } => history.reprioritise(ts, thread, new),
            _ => {}
        }
    }

    /// A mark of binderperf itself.
    fn own_mark(&mut self, event: &Event, text: &str) {
        match Mark::parse(text) {
            Some(Mark::Own { verb: "call", rest }) => {
                self.calls.said_over(&mut self.history, event.tid, None);
                if let Some(thread) = self.history.thread_mut(event.tid) {
                    thread.label = Some((event.ts, rest.into()));
                    if self.announced.len() < MOST_ANNOUNCED {
                        self.announced.insert(event.tid, event.ts);
                    }
                }
            }
            Some(Mark::Own { verb: "scene", .. }) => {
                if let Some(thread) = self.history.thread_mut(event.tid) {
                    thread.scene = true;
                }
            }
            Some(Mark::Own { verb: "done" | "miss", .. }) => {
                self.calls.said_over(&mut self.history, event.tid, Some(event.ts));
            }
            _ => {}
        }
    }

    /// A thread declares that it waits, begins a slice, or ends either.
    fn declare(&mut self, event: &Event, declares: Declares<'_>) {
        let slices = &mut self.slices;
        self.history.of_thread(event.tid, |thread| {
            match declares {
                Declares::Begin(cause, name) => {
                    thread.open_slice(OpenSlice { cause, name: slices.intern(name) });
                }
                Declares::End => thread.close_slice(),
            }
            thread.note_slices(event.ts)
        });
        if let Declares::Begin(_, name) = declares {
            self.name_calls(event.tid, name);
        }
    }

    /// A slice that names a method began: the thread's next calls are of it, or the one that it serves is.
    fn name_calls(&mut self, tid: i32, slice: &str) {
        let Some((method, side)) = self.methods.of(slice) else { return };
        let Some(thread) = self.history.thread_mut(tid).filter(|thread| !thread.is_deep()) else { return };
        let serving = thread.serving.last().and_then(|served| served.slot);
        if let (Side::Server, Some(open)) = (side, serving.and_then(|slot| self.calls.get_mut(slot))) {
            open.method.get_or_insert_with(|| method.clone());
        }
        let (depth, serving) = (thread.slices.len(), thread.serving.len());
        thread.methods.push(NamedSlice { method, side, depth, serving });
        self.history.note_open(tid);
    }

    /// A thread begins or ends to wait for a kernel lock. Waits in interrupt context are not the thread's.
    fn contention(&mut self, event: &Event, lock: Option<LockKind>) {
        if event.context.in_interrupt() {
            return;
        }
        if lock.is_some() {
            self.history.note_open(event.tid);
        }
        self.history.of_thread(event.tid, |thread| {
            thread.lock = lock;
            let over = thread.declared_wait();
            thread.over.push(event.ts, over)
        });
    }
}

#[cfg(test)]
pub(crate) mod tests;
