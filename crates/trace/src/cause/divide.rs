//! Room: dividing a transaction's time: which thread had to move, phase by phase, and what it did.
//! Not here: what the causes mean (`cause`).
//!
//! The phases follow the work: the sender until it wakes the receiver, the receiver until it has the call,
//! its serving (with the calls it makes itself in their place), the server until it wakes the caller, the
//! caller until it has the reply. Each phase is cut along one thread's history, so that the parts cover
//! the whole, whatever is missing in the trace.

use super::{Behind, Cause, Part};
use crate::event::{Name, Place, State};
use crate::model::world::{Interrupt, Over, Run, Slept, Thread, World};

/// A call that a server made while it served.
#[derive(Clone, Debug)]
pub(crate) struct Nested {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) parts: Vec<Part>,
}

/// What is known of a transaction whose time is to be divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// When the caller began with it, which may be before it was sent.
    pub(crate) from: u64,
    /// When it was sent.
    pub(crate) begin: u64,
    /// When the sender was done with it, where an event says so.
    pub(crate) sent: Option<u64>,
    pub(crate) received: Option<u64>,
    pub(crate) replied: Option<u64>,
    pub(crate) reply_sent: Option<u64>,
    /// When the driver was done with it.
    pub(crate) end: u64,
    /// When the caller was, which may be later.
    pub(crate) to: u64,
    pub(crate) client: i32,
    pub(crate) server: Option<i32>,
    /// When the server had nothing else to do any more; `None` if it never had anything else.
    pub(crate) server_free: Option<u64>,
    /// What it was busy with until then.
    pub(crate) busy_with: Option<i32>,
    pub(crate) oneway: bool,
    pub(crate) frozen: bool,
    pub(crate) nested: &'a [Nested],
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// On the way from one thread to the other.
    Handing,
    /// The server at work.
    Serving,
}

/// The parts of a transaction; they begin and end with it and leave nothing out.
pub(crate) fn divide(world: &World, asked: &Asked<'_>) -> Vec<Part> {
    let mut cut = Cut { world, client: asked.client, parts: Vec::new() };
    // Outside the driver the caller does whatever it does, as a server that serves.
    cut.walk(asked.client, asked.from, asked.begin, Role::Serving);
    cut.inside(asked);
    cut.walk(asked.client, asked.end, asked.to, Role::Serving);
    cut.parts
}

/// Why a call waits that nobody has taken.
fn waiting(asked: &Asked<'_>) -> Cause {
    match asked {
        Asked { frozen: true, .. } => Cause::Frozen,
        Asked { oneway: true, .. } => Cause::OnewayQueue,
        _ => Cause::NoFreeThread { busy_with: asked.busy_with },
    }
}

fn nobody() -> Part {
    Part { begin: 0, end: 0, cause: Cause::Unknown, tid: 0, prio: None, cpu: None, depth: 0 }
}

struct Cut<'w> {
    world: &'w World,
    client: i32,
    parts: Vec<Part>,
}

impl Cut<'_> {
    /// From the sending until the caller has the reply.
    fn inside(&mut self, asked: &Asked<'_>) {
        let Asked { begin, end, client, .. } = *asked;
        let (Some(received), Some(server)) = (asked.received, asked.server) else {
            let handed = self.leaves(client, begin, asked.sent, end);
            self.walk(client, begin, handed, Role::Handing);
            self.put(handed, end, Part { cause: waiting(asked), ..nobody() });
            return;
        };
        let received = received.clamp(begin, end);
        self.request(asked, server, received);
        let replied = asked.replied.unwrap_or(end).clamp(received, end);
        let mut at = received;
        for nested in asked.nested {
            let (from, to) = (nested.begin.clamp(at, replied), nested.end.clamp(at, replied));
            self.walk(server, at, from, Role::Serving);
            self.adopt(nested, from, to);
            at = to;
        }
        self.walk(server, at, replied, Role::Serving);
        self.hand_over(server, client, (replied, end), asked.reply_sent);
    }

    /// From the sending to the receiving.
    fn request(&mut self, asked: &Asked<'_>, server: i32, received: u64) {
        let (client, begin) = (asked.client, asked.begin);
        let free = asked.server_free.map_or(begin, |free| free.min(received));
        let woken = self.wake_of(server, begin, received, Some(client));
        if woken.is_none() && (free > begin || asked.frozen || self.queued(asked, server, received)) {
            // A free thread would have been woken, so there was none.
            let handed = self.leaves(client, begin, asked.sent, received);
            self.walk(client, begin, handed, Role::Handing);
            let taken = if free > handed { free } else { self.stirs(server, handed, received) };
            self.put(handed, taken, Part { cause: waiting(asked), tid: server, ..nobody() });
            self.walk(server, taken, received, Role::Handing);
            return;
        }
        if free <= begin {
            self.hand_over(client, server, (begin, received), asked.sent);
            return;
        }
        // Chosen and woken, but it took something else first.
        let woken = woken.unwrap_or(begin);
        self.walk(client, begin, woken, Role::Handing);
        self.put(woken, free.max(woken), Part { cause: waiting(asked), tid: server, ..nobody() });
        self.walk(server, free.max(woken), received, Role::Handing);
    }

    /// A oneway call that is not brought to a sleeping thread at once waits in its node's queue.
    fn queued(&self, asked: &Asked<'_>, server: i32, received: u64) -> bool {
        asked.oneway
            && asked.server_free.is_some()
            && self.wake_of(server, asked.begin, received, None).is_none()
            && self.leaves(asked.client, asked.begin, asked.sent, received) < received
    }

    /// When a thread that took a call from a queue began to move for it.
    fn stirs(&self, tid: i32, from: u64, to: u64) -> u64 {
        let Some(thread) = self.world.thread(tid) else { return to };
        if !matches!(thread.run.at(from), Some(Run::Sleeping { .. })) {
            return to;
        }
        thread.run.after(from).map(|(ts, _)| ts).find(|ts| *ts < to).unwrap_or(to)
    }

    /// The work goes from one thread to the other: the first works until it wakes the second, or, if that
    /// need not be woken, until it leaves its CPU or the driver; then the second comes.
    fn hand_over(&mut self, from: i32, to: i32, (begin, end): (u64, u64), done: Option<u64>) {
        let handed = match self.wake_of(to, begin, end, Some(from)) {
            Some(woken) => woken,
            None => {
                let left = self.leaves(from, begin, done, end);
                // Somebody else brings it: the embedded driver's broker.
                match self.waker_of(to, left, end) {
                    Some((waker, woken)) if waker > 0 => {
                        self.walk(from, begin, left, Role::Handing);
                        self.walk(waker, left, woken, Role::Handing);
                        self.walk(to, woken, end, Role::Handing);
                        return;
                    }
                    _ => left,
                }
            }
        };
        self.walk(from, begin, handed, Role::Handing);
        self.walk(to, handed, end, Role::Handing);
    }

    /// When a thread is first woken in `begin..=end`, by this one or by anybody.
    fn wake_of(&self, tid: i32, begin: u64, end: u64, by: Option<i32>) -> Option<u64> {
        self.wakes(tid, begin, end).find(|(waker, _)| by.is_none_or(|by| *waker == by)).map(|wake| wake.1)
    }

    fn waker_of(&self, tid: i32, begin: u64, end: u64) -> Option<(i32, u64)> {
        self.wakes(tid, begin, end).next()
    }

    fn wakes(&self, tid: i32, begin: u64, end: u64) -> impl Iterator<Item = (i32, u64)> + '_ {
        let steps = self.world.thread(tid).map(|thread| thread.run.after(begin.saturating_sub(1)));
        steps.into_iter().flatten().take_while(move |(ts, _)| *ts <= end).filter_map(|(ts, run)| match run {
            Run::Runnable { waker, .. } if waker != 0 => Some((waker, ts)),
            _ => None,
        })
    }

    /// When a thread has handed its work over: it said so, or left its CPU to sleep.
    fn leaves(&self, tid: i32, from: u64, done: Option<u64>, to: u64) -> u64 {
        let asleep = self.world.thread(tid).and_then(|thread| {
            let mut steps = thread.run.after(from);
            steps.find(|(_, run)| matches!(run, Run::Sleeping { .. })).map(|(ts, _)| ts)
        });
        done.into_iter().chain(asleep).min().unwrap_or(to).clamp(from, to)
    }

    /// Cuts `from..to` along what a thread did.
    fn walk(&mut self, tid: i32, from: u64, to: u64, role: Role) {
        if from >= to {
            return;
        }
        let world = self.world;
        let Some(thread) = world.thread(tid) else {
            self.put(from, to, Part { tid, ..nobody() });
            return;
        };
        for (begin, end, run) in thread.run.slices(from, to) {
            for (begin, end, over) in thread.over.slices(begin, end) {
                match (run, over.flatten().filter(|over| over.counts_in(run))) {
                    (Some(Run::Runnable { cpu, prio, waker, queued }), _) => {
                        let part = Part { tid, prio, cpu: Some(cpu), ..nobody() };
                        let queue = if queued { None } else { queue_after(thread, begin) };
                        match queue {
                            Some(cpu) => self.on_the_way(waker, cpu, (begin, end), part),
                            None => self.runnable(thread, cpu, (begin, end), part),
                        }
                    }
                    (_, Some(over)) => {
                        self.put(begin, end, Part { cause: over.into(), tid, ..nobody() });
                    }
                    (Some(Run::Running { cpu }), None) => self.running(tid, thread, cpu, (begin, end), role),
                    (Some(Run::Sleeping { state, place, slept }), None) => {
                        let woken = || self.woken_by_its_own(thread, begin);
                        let cause = match asleep(state, place, slept, role) {
                            Cause::Sleeping(place) => woken().unwrap_or(Cause::Sleeping(place)),
                            cause => cause,
                        };
                        self.put(begin, end, Part { cause, tid, ..nobody() });
                    }
                    (Some(Run::Unknown) | None, None) => {
                        self.put(begin, end, Part { tid, ..nobody() });
                    }
                }
            }
        }
    }

    fn running(&mut self, tid: i32, thread: &Thread, cpu: u32, (from, to): (u64, u64), role: Role) {
        let part = Part { tid, cpu: Some(cpu), ..nobody() };
        let own = if tid == self.client { Cause::ClientRunning } else { Cause::ServerRunning };
        self.uninterrupted(cpu, from, to, part, |cut, begin, end| {
            for (begin, end, inside) in thread.in_driver.slices(begin, end) {
                let cause = match (inside, role) {
                    (Some(true), _) | (None, Role::Handing) => Cause::Driver,
                    (Some(false), _) | (None, Role::Serving) => own,
                };
                cut.put(begin, end, Part { cause, ..part });
            }
        });
    }

    /// A sleep that ends when another thread of the same process wakes the sleeper.
    fn woken_by_its_own(&self, sleeper: &Thread, ts: u64) -> Option<Cause> {
        let woken = sleeper.run.after(ts).next();
        let Some((_, Run::Runnable { waker, .. })) = woken else { return None };
        let other = self.world.thread(waker)?;
        let same = sleeper.tgid.is_some() && sleeper.tgid == other.tgid;
        same.then_some(Cause::Thread { waker, comm: other.comm })
    }

    /// Who had the CPU that a thread waited for?
    fn runnable(&mut self, thread: &Thread, cpu: u32, (from, to): (u64, u64), part: Part) {
        let Some(there) = self.world.cpu(cpu) else {
            self.put(from, to, part);
            return;
        };
        let ran_on = thread.run.after(to.saturating_sub(1)).find_map(|(_, run)| match run {
            Run::Running { cpu } => Some(cpu),
            _ => None,
        });
        let elsewhere = ran_on.filter(|ran_on| *ran_on != cpu);
        self.uninterrupted(cpu, from, to, part, |cut, from, to| {
            for (begin, end, who) in there.occupant.slices(from, to) {
                match who {
                    Some(who) if who.tid == 0 || who.tid == part.tid => {
                        for (begin, end, state) in there.idle.slices(begin, end) {
                            let state = state.flatten().filter(|_| who.tid == 0);
                            let cause = state.map_or(Cause::WakeLatency, |state| Cause::IdleExit { state });
                            cut.put(begin, end, Part { cause, ..part });
                        }
                    }
                    who => {
                        let behind = who.map_or(Behind { tid: -1, comm: Name::NONE, prio: None }, |who| {
                            Behind { tid: who.tid, comm: who.comm, prio: who.prio }
                        });
                        cut.behind(behind, elsewhere, (begin, end), part);
                    }
                }
            }
        });
    }

    /// Woken, but in no queue yet. Who runs on the CPU that will have it is not in its way, unless that is
    /// the waker.
    fn on_the_way(&mut self, waker: i32, cpu: u32, (from, to): (u64, u64), part: Part) {
        let Some(there) = self.world.cpu(cpu) else { return self.put(from, to, part) };
        let part = Part { cpu: Some(cpu), ..part };
        for (begin, end, who) in there.occupant.slices(from, to) {
            for (begin, end, state) in there.idle.slices(begin, end) {
                let cause = match (who, state.flatten()) {
                    (Some(who), Some(state)) if who.tid == 0 => Cause::IdleExit { state },
                    (Some(who), None) if who.tid == 0 => Cause::WakeLatency,
                    (Some(who), _) if who.tid == waker => {
                        Cause::Runnable(Behind { tid: who.tid, comm: who.comm, prio: who.prio })
                    }
                    _ => Cause::WakeInterrupt,
                };
                self.put(begin, end, Part { cause, ..part });
            }
        }
    }

    /// Waiting behind a task, perhaps while the CPU that it went to in the end was idle.
    fn behind(&mut self, behind: Behind, elsewhere: Option<u32>, (from, to): (u64, u64), part: Part) {
        let waits = Part { cause: Cause::Runnable(behind), ..part };
        let Some((idle_cpu, there)) = elsewhere.and_then(|cpu| Some((cpu, self.world.cpu(cpu)?))) else {
            self.put(from, to, waits);
            return;
        };
        for (begin, end, who) in there.occupant.slices(from, to) {
            let idle = who.is_some_and(|who| who.tid == 0);
            let part =
                if idle { Part { cause: Cause::WrongCpu { behind, idle_cpu }, ..part } } else { waits };
            self.put(begin, end, part);
        }
    }

    /// Puts what interrupts took of a CPU's time, and gives the rest away.
    fn uninterrupted(
        &mut self,
        cpu: u32,
        from: u64,
        to: u64,
        part: Part,
        mut rest: impl FnMut(&mut Self, u64, u64),
    ) {
        let Some(there) = self.world.cpu(cpu) else { return rest(self, from, to) };
        for (begin, end, interrupt) in there.interrupt.slices(from, to) {
            let cause = match interrupt.flatten() {
                Some(Interrupt::Hard(irq, name)) => Cause::Interrupt { irq, name },
                Some(Interrupt::Soft(softirq)) => Cause::SoftInterrupt(softirq),
                None => {
                    rest(self, begin, end);
                    continue;
                }
            };
            self.put(begin, end, Part { cause, ..part });
        }
    }

    /// A nested call's parts take their place in the call that it was made for.
    fn adopt(&mut self, nested: &Nested, from: u64, to: u64) {
        let mut at = from;
        for part in &nested.parts {
            let (begin, end) = (part.begin.clamp(at, to), part.end.clamp(at, to));
            self.put(at, begin, Part { cause: Cause::Nested, ..nobody() });
            self.put(begin, end, Part { depth: part.depth.saturating_add(1), ..*part });
            at = end;
        }
        self.put(at, to, Part { cause: Cause::Nested, ..nobody() });
    }

    fn put(&mut self, begin: u64, end: u64, part: Part) {
        if begin >= end {
            return;
        }
        let part = Part { begin, end, ..part };
        if let Some(last) = self.parts.last_mut()
            && (Part { begin: 0, end: 0, ..*last }) == (Part { begin: 0, end: 0, ..part })
        {
            last.end = end;
            return;
        }
        self.parts.push(part);
    }
}

/// The queue that a thread is put into next, if the trace shows that.
fn queue_after(thread: &Thread, ts: u64) -> Option<u32> {
    match thread.run.after(ts).next() {
        Some((_, Run::Runnable { cpu, queued: true, .. })) => Some(cpu),
        _ => None,
    }
}

fn asleep(state: State, place: Place, slept: Slept, role: Role) -> Cause {
    match (slept, state) {
        (Slept::Io, _) => Cause::Io,
        (Slept::Futex, _) => Cause::Mutex,
        (Slept::KernelLock, _) => Cause::KernelLock(place),
        (Slept::Reclaim, _) => Cause::KernelReclaim,
        (Slept::Frozen, _) => Cause::Frozen,
        (Slept::Unsaid, State::Stopped) => Cause::Stopped,
        (Slept::Unsaid, State::Uninterruptible) => Cause::Uninterruptible(place),
        // Whoever has been handed the work and still sleeps waits for a wake-up that the trace lacks.
        (Slept::Unsaid, State::Sleeping) if role == Role::Handing => Cause::WakeLatency,
        (Slept::Unsaid, State::Sleeping) => Cause::Sleeping(place),
        (Slept::Unsaid, _) => Cause::Unknown,
    }
}

impl From<Over> for Cause {
    fn from(over: Over) -> Self {
        match over {
            Over::KernelReclaim => Self::KernelReclaim,
            Over::UserReclaim => Self::UserReclaim,
            Over::Monitor => Self::Monitor,
            Over::ArtLock => Self::ArtLock,
            Over::Mutex => Self::Mutex,
            Over::KernelLock(sort) => Self::Contention(sort),
        }
    }
}
