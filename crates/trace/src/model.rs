//! Room: transactions rebuilt from a trace's events, in one pass.
//! Not here: reading events, sentences about transactions (`verdict`).
//!
//! Events are taken in the order of their times. What threads and CPUs did is kept only as long as a
//! transaction is open that may ask for it, and never beyond a limit.

pub(crate) mod calls;
mod timeline;
mod transaction;
pub(crate) mod world;

use std::collections::HashMap;

use crate::cause::{Asked, Nested, Part, divide};
use crate::event::{Binder, Event, Flavour, Kind, LockSort, Mark, Name, Names, State, Wake};
use calls::{Calls, Open};
pub use transaction::{Gap, Outcome, Peer, SlowClock, Transaction};
use world::{Interrupt, Over, Slept, World};

/// Rebuilds transactions.
#[derive(Clone, Debug, Default)]
pub struct Model {
    world: World,
    calls: Calls,
    now: u64,
    first: Option<u64>,
    gap: Option<Gap>,
    /// Threads whose mark says that a call comes, and since when, until that has ended.
    announced: HashMap<i32, u64>,
    held: Option<u64>,
}

/// The most threads for which the past is kept before their call comes.
const MOST_ANNOUNCED: usize = 1024;

impl Model {
    /// One that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event; `ended` gets the transactions that end with it. `names` are the reader's.
    pub fn take(&mut self, event: &Event, names: &Names, ended: &mut impl FnMut(Transaction)) {
        self.now = self.now.max(event.ts);
        self.first.get_or_insert(event.ts);
        if let Kind::Lost { .. } = event.kind {
            self.lose(event);
        } else {
            self.world.seen(event.ts, event.cpu, event.tid);
            self.schedule(event, names);
            if let Some(cpu) = self.world.cpu_mut(event.cpu) {
                cpu.last_event = Some(event.ts);
            }
        }
        self.settle(ended);
    }

    /// The trace has ended, and with it what is open.
    pub fn finish(&mut self, ended: &mut impl FnMut(Transaction)) {
        for slot in self.calls.slots() {
            let end = self.calls.get(slot).and_then(|open| open.reply_received);
            let outcome = if end.is_some() { Outcome::Replied } else { Outcome::Cut };
            self.calls.ended.push((slot, end.unwrap_or(self.now), outcome));
        }
        // Inner calls end before those that they were made for.
        let calls = &self.calls;
        let mut last: Vec<_> = self.calls.ended.clone();
        last.sort_by_key(|(slot, ..)| std::cmp::Reverse(calls.get(*slot).map(|open| open.serial)));
        self.calls.ended = last;
        self.settle(ended);
    }

    /// The last time for which events are missing. Transactions that ended in it, as events of other CPUs
    /// show, may lack some of their own.
    #[must_use]
    pub fn last_gap(&self) -> Option<Gap> {
        self.gap
    }

    /// Keeps what threads and CPUs did since this time, whether or not a transaction asks for it, within the
    /// model's limit; `None` ends that.
    pub(crate) fn hold(&mut self, since: Option<u64>) {
        self.held = since;
    }

    /// What threads and CPUs did, for as far back as it is kept.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// The name that a thread had last.
    #[must_use]
    pub fn name_of(&self, tid: i32) -> Name {
        self.world.thread(tid).map_or(Name::NONE, |thread| thread.comm)
    }

    /// The time of the first event and that of the last.
    #[must_use]
    pub fn span(&self) -> Option<(u64, u64)> {
        self.first.map(|first| (first, self.now.max(first)))
    }

    fn settle(&mut self, ended: &mut impl FnMut(Transaction)) {
        if self.calls.ended.is_empty() {
            // Walking the queue for each event would cost more than it saves.
            if self.now.is_multiple_of(64) {
                self.forget();
            }
            return;
        }
        for (slot, end, outcome) in std::mem::take(&mut self.calls.ended) {
            if let Some(open) = self.calls.take(slot) {
                // Unless it says already that the next one comes.
                if open.announced.is_some() && self.announced.get(&open.client).copied() == open.announced {
                    self.announced.remove(&open.client);
                }
                ended(self.conclude(open, end, outcome));
            }
        }
        self.forget();
    }

    /// Lets go of what nobody will ask for.
    fn forget(&mut self) {
        let oldest = self.calls.oldest().unwrap_or(self.now);
        let oldest = self.announced.values().copied().fold(oldest, u64::min);
        let oldest = self.held.map_or(oldest, |held| held.min(oldest));
        self.world.settle(oldest, self.now);
    }

    fn conclude(&mut self, open: Open, end: u64, outcome: Outcome) -> Transaction {
        let end = end.max(open.begin);
        let begin = open.announced.map_or(open.begin, |said| said.min(open.begin));
        let parts = divide(
            &self.world,
            &Asked {
                from: begin,
                begin: open.begin,
                sent: open.sending_done,
                received: open.received,
                replied: open.replied,
                reply_sent: open.reply_done,
                end: open.returned.map_or(end, |returned| returned.clamp(open.begin, end)),
                to: end,
                client: open.client,
                server: open.server,
                server_free: open.server_free,
                busy_with: open.busy_with,
                oneway: open.sent.is_oneway(),
                frozen: open.frozen,
                nested: &open.nested,
            },
        );
        if open.parent.is_some() {
            self.calls.nest(open.parent, Nested { begin, end, parts: parts.clone() });
        }
        let client = self.world.thread(open.client);
        let server = open.server.map(|tid| {
            let thread = self.world.thread(tid);
            Peer {
                tid,
                tgid: Some(open.sent.to_proc),
                comm: thread.map_or(Name::NONE, |thread| thread.comm),
                prio: open.server_prio.or(thread.and_then(|thread| thread.prio)),
            }
        });
        Transaction {
            debug_id: open.sent.debug_id,
            flavour: open.flavour,
            node: open.sent.target_node,
            code: open.sent.code,
            oneway: open.sent.is_oneway(),
            client: Peer {
                tid: open.client,
                tgid: open.client_tgid,
                comm: client.map_or(Name::NONE, |thread| thread.comm),
                prio: open.client_prio.or(client.and_then(|thread| thread.prio)),
            },
            to_proc: open.sent.to_proc,
            server,
            begin,
            sent: open.begin,
            received: open.received,
            replied: open.replied,
            end,
            client_cpu: open.client_cpu,
            server_cpu: open.server_cpu,
            outcome,
            doubtful: open.doubtful,
            label: open.label,
            nested: open.parent.is_some(),
            slow_clock: self.slow_clock(&parts),
            parts,
        }
    }

    /// How much of these parts ran on a CPU below its highest frequency.
    fn slow_clock(&self, parts: &[Part]) -> Option<SlowClock> {
        use crate::cause::Cause::{ClientRunning, Driver, ServerRunning};
        let mut slow: Option<SlowClock> = None;
        for part in parts.iter().filter(|part| matches!(part.cause, ClientRunning | ServerRunning | Driver)) {
            let Some(cpu) = part.cpu.and_then(|cpu| self.world.cpu(cpu)) else { continue };
            for (begin, end, khz) in cpu.khz.slices(part.begin, part.end) {
                let Some(khz) = khz.filter(|khz| *khz < cpu.highest_khz) else { continue };
                let found = slow.get_or_insert(SlowClock { ns: 0, khz, highest_khz: cpu.highest_khz });
                found.ns += end - begin;
                if khz < found.khz {
                    (found.khz, found.highest_khz) = (khz, cpu.highest_khz);
                }
            }
        }
        slow
    }

    /// Events of this CPU are missing, from its last one until now.
    fn lose(&mut self, event: &Event) {
        let begin = self.world.cpu(event.cpu).and_then(|cpu| cpu.last_event);
        let begin = begin.or(self.first).unwrap_or(event.ts).min(event.ts);
        self.gap = Some(Gap { cpu: event.cpu, begin, end: event.ts });
        self.world.blind(event.cpu, begin);
        self.world.forget_locks(event.ts);
        for open in self.calls.all_mut() {
            open.doubtful = true;
        }
    }

    fn schedule(&mut self, event: &Event, names: &Names) {
        let (ts, world) = (event.ts, &mut self.world);
        let waker = if event.context.in_interrupt() || event.tid <= 0 { -1 } else { event.tid };
        match &event.kind {
            Kind::Switch { prev, state, next } => {
                world.switch(ts, event.cpu, *prev, *state, *next);
                if *state == State::Dead {
                    self.announced.remove(&prev.tid);
                    self.calls.died(world, prev.tid, ts);
                }
            }
            Kind::Waking(Wake { task, target_cpu }) => {
                if let (Some(_), Some(thread)) = (event.tgid, world.thread_mut(waker)) {
                    thread.tgid = event.tgid;
                }
                world.waking(ts, waker, *task, *target_cpu);
            }
            Kind::Wakeup(Wake { task, target_cpu }) | Kind::WakeupNew(Wake { task, target_cpu }) => {
                world.wakeup(ts, waker, *task, *target_cpu);
            }
            Kind::BlockedReason { tid, io_wait, caller } => {
                world.blocked(*tid, Slept::in_function(names.text(caller.symbol), *io_wait), *caller);
            }
            Kind::PiSetprio { task, new_prio } => world.reprioritise(ts, task.tid, *new_prio),
            Kind::Migrate { task, to_cpu, .. } => world.migrate(ts, task.tid, *to_cpu),
            Kind::Binder(flavour, binder) => self.binder(event, *flavour, binder),
            Kind::ReclaimBegin { .. } => self.slice(event, Some(Some(Over::KernelReclaim))),
            Kind::ReclaimEnd { .. } => self.slice(event, None),
            Kind::ContentionBegin(sort) => self.contention(event, Some(*sort)),
            Kind::ContentionEnd => self.contention(event, None),
            Kind::Print(text) => self.mark(event, text),
            _ => self.interrupt(event),
        }
    }

    fn interrupt(&mut self, event: &Event) {
        let (ts, cpu, world) = (event.ts, event.cpu, &mut self.world);
        match event.kind {
            Kind::IrqEntry { irq, name } => {
                world.of_cpu(cpu, |cpu| cpu.enter(ts, Interrupt::Hard(irq, name)));
            }
            Kind::IrqExit { irq, .. } => world.of_cpu(cpu, |cpu| {
                cpu.leave(ts, |what| matches!(what, Interrupt::Hard(entered, _) if entered == irq))
            }),
            Kind::SoftirqEntry(softirq) => {
                world.of_cpu(cpu, |cpu| cpu.enter(ts, Interrupt::Soft(softirq)));
            }
            Kind::SoftirqExit(softirq) => {
                world.of_cpu(cpu, |cpu| cpu.leave(ts, |what| what == Interrupt::Soft(softirq)));
            }
            Kind::CpuIdle { cpu, state } => world.of_cpu(cpu, |cpu| cpu.idle.push(ts, state)),
            Kind::CpuFrequency { cpu, khz } => world.of_cpu(cpu, |cpu| {
                cpu.highest_khz = cpu.highest_khz.max(khz);
                cpu.khz.push(ts, khz)
            }),
            _ => {}
        }
    }

    fn binder(&mut self, event: &Event, flavour: Flavour, binder: &Binder) {
        let (ts, tid, calls, world) = (event.ts, event.tid, &mut self.calls, &mut self.world);
        match *binder {
            Binder::Transaction(sent) if sent.reply => calls.replied(world, event, flavour, sent),
            Binder::Transaction(sent) => calls.sent(world, event, flavour, sent),
            Binder::Received { debug_id } => {
                calls.handed_over(world, tid, ts);
                calls.received(world, event, flavour, debug_id);
            }
            Binder::WaitForWork { proc_work, .. } => {
                calls.handed_over(world, tid, ts);
                if proc_work {
                    calls.waits_for_any(world, tid, ts);
                }
            }
            Binder::WriteDone { .. } => calls.handed_over(world, tid, ts),
            Binder::Ioctl { .. } => world.of_thread(tid, |thread| thread.in_driver.push(ts, true)),
            Binder::IoctlDone { .. } => {
                world.of_thread(tid, |thread| thread.in_driver.push(ts, false));
                calls.handed_over(world, tid, ts);
                calls.ioctl_done(world, tid, ts);
            }
            Binder::Return { cmd } => calls.returned(world, tid, ts, cmd),
            Binder::SetPriority { thread, new, .. } => world.reprioritise(ts, thread, new),
            _ => {}
        }
    }

    fn mark(&mut self, event: &Event, text: &str) {
        match Mark::parse(text) {
            Some(Mark::Begin { name, .. }) => self.slice(event, Some(meaning(name))),
            Some(Mark::End) => self.slice(event, None),
            Some(Mark::Own { verb: "call", rest }) => {
                self.calls.said_over(&mut self.world, event.tid, None);
                if let Some(thread) = self.world.thread_mut(event.tid) {
                    thread.label = Some((event.ts, rest.into()));
                    if self.announced.len() < MOST_ANNOUNCED {
                        self.announced.insert(event.tid, event.ts);
                    }
                }
            }
            Some(Mark::Own { verb: "done" | "miss", .. }) => {
                self.calls.said_over(&mut self.world, event.tid, Some(event.ts));
            }
            _ => {}
        }
    }

    /// A slice of a thread begins or, with `None`, its innermost ends.
    fn slice(&mut self, event: &Event, begins: Option<Option<Over>>) {
        self.world.of_thread(event.tid, |thread| {
            match begins {
                Some(_) if thread.slices.len() >= 256 => thread.slices.clear(),
                Some(what) => thread.slices.push(what),
                None => {
                    thread.slices.pop();
                }
            }
            thread.over.push(event.ts, thread.is_over())
        });
    }

    /// A thread waits for a lock of the kernel, or does not any more. What an interrupt waits for is the interrupt's.
    fn contention(&mut self, event: &Event, lock: Option<LockSort>) {
        if event.context.in_interrupt() {
            return;
        }
        self.world.of_thread(event.tid, |thread| {
            thread.lock = lock;
            thread.over.push(event.ts, thread.is_over())
        });
    }
}

/// Slices that the Android runtime and its C library put around their waits.
/// Fact: the names that `_binder_reason` of Perfetto's `android/binder_breakdown.sql` looks for, in its order;
/// `WaitForGcToComplete` is what older runtimes call the same wait.
fn meaning(name: &str) -> Option<Over> {
    let begins = |with: &str| name.starts_with(with);
    if begins("GC: Wait For") || begins("WaitForGcToComplete") {
        Some(Over::UserReclaim)
    } else if begins("monitor contention") || begins("Lock contention on a monitor lock") {
        Some(Over::Monitor)
    } else if begins("Lock contention") {
        Some(Over::ArtLock)
    } else if name == "Contending for pthread mutex" {
        Some(Over::Mutex)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
