//! Divides a transaction's time into segments: which thread had to act in each phase, and what it did.
//! Not here: which cause a stretch of a thread has (`rules`).
//!
//! Phases: the sender until it wakes the receiver; the receiver until it has the call; serving, with nested calls in
//! place; the server until it wakes the caller; the caller until it has the reply. Each phase is cut along the
//! history of one thread, so the segments cover the whole transaction even if events are missing.

use super::calls::{Nested, OpenCall};
use super::effort::{Effort, MOST_NESTED};
use super::free::Free;
use super::history::History;
use super::rules;
use super::thread::{Declared, SchedState, Thread};
use super::timeline::Timeline;
use crate::cause::{Cause, Segment, SliceName};

/// Maximum number of slices that are compared for the one that a thread was in longest.
const MOST_COMPARED: usize = 64;
/// Maximum number of a thread's steps that are looked at for one that answers a question.
const MOST_LOOKED: usize = 1024;

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    /// Handover from one thread to the other.
    Handover,
    /// The server works.
    Serving,
}

/// Divides a call into segments that cover `from..to` without gap or overlap. `from` is when the caller began it, which
/// may be before it was sent, and `to` when the caller had finished with it.
pub(super) fn divide(
    (history, effort): (&History, &Effort),
    call: &OpenCall,
    from: u64,
    to: u64,
) -> Vec<Segment> {
    let mut cut = Divider { history, effort, call, parts: Vec::new(), most: usize::MAX };
    let end = call.returned.map_or(to, |returned| returned.clamp(call.begin, to));
    // Outside the driver, the caller is treated like a serving thread.
    cut.walk(call.client, from, call.begin, Phase::Serving);
    cut.inside(end);
    cut.walk(call.client, end, to, Phase::Serving);
    cut.parts
}

/// What one thread did in `from..to`, in segments without gap or overlap: about `most`, and one for the rest.
pub(super) fn divide_thread(
    (history, effort): (&History, &Effort),
    call: &OpenCall,
    tid: i32,
    (from, to): (u64, u64),
    most: usize,
) -> Vec<Segment> {
    let mut cut = Divider { history, effort, call, parts: Vec::new(), most };
    cut.walk(tid, from, to, Phase::Serving);
    cut.parts
}

fn nobody() -> Segment {
    Segment {
        begin: 0,
        end: 0,
        cause: Cause::NotShown,
        tid: 0,
        prio: None,
        cpu: None,
        depth: 0,
        slice: SliceName::NONE,
    }
}

struct Divider<'w> {
    history: &'w History,
    effort: &'w Effort,
    call: &'w OpenCall,
    parts: Vec<Segment>,
    /// Number of segments at which a walk ends.
    most: usize,
}

impl Divider<'_> {
    /// Divides the time from sending until the caller has the reply.
    fn inside(&mut self, end: u64) {
        let OpenCall { begin, client, .. } = *self.call;
        let (Some(received), Some(server)) = (self.call.received, self.call.server) else {
            let handed = self.leaves(client, begin, self.call.sending_done, end);
            self.walk(client, begin, handed, Phase::Handover);
            // Nobody took it, and nothing shows which thread should have.
            let cause = if self.call.frozen { Cause::Frozen } else { Cause::NotShown };
            self.put(handed, end, Segment { cause, ..nobody() });
            return;
        };
        let received = received.clamp(begin, end);
        self.request(server, received);
        let replied = self.call.replied.unwrap_or(end).clamp(received, end);
        let mut at = received;
        for nested in &self.call.nested {
            let (from, to) = (nested.begin.clamp(at, replied), nested.end.clamp(at, replied));
            self.walk(server, at, from, Phase::Serving);
            self.adopt(nested, from, to);
            at = to;
        }
        self.walk(server, at, replied, Phase::Serving);
        self.hand_over(server, client, (replied, end), self.call.reply_done);
    }

    /// Divides the time from sending to receiving.
    fn request(&mut self, server: i32, received: u64) {
        let OpenCall { begin, client, sending_done, .. } = *self.call;
        let waits = Segment { cause: rules::untaken(self.call), tid: server, ..nobody() };
        let woken = self.wake_of(server, begin, received, Some(client));
        let free = self.free(server, woken, received);
        if free > begin {
            // A free thread would have been woken, so no thread was free. What the sender did meanwhile delayed nothing,
            // unless it was at it even then.
            let handed = woken.or_else(|| self.left(client, begin, sending_done));
            let handed = handed.map_or(begin, |handed| handed.min(received));
            if handed > free {
                self.walk(client, begin, handed, Phase::Handover);
                self.walk(server, handed, received, Phase::Handover);
            } else {
                self.put(begin, free, waits);
                self.walk(server, free, received, Phase::Serving);
            }
            return;
        }
        if woken.is_none() && (self.call.frozen || self.queued(server, received)) {
            let taken = self.first_activity(server, begin, received);
            self.put(begin, taken, waits);
            self.walk(server, taken, received, Phase::Serving);
            return;
        }
        self.hand_over(client, server, (begin, received), sending_done);
    }

    /// When the server was free for the call, from its begin on.
    fn free(&self, server: i32, woken: Option<u64>, received: u64) -> u64 {
        let begin = self.call.begin;
        // A thread that waits for work is woken for it, by the sender or by another's hand.
        let awake = || {
            woken.is_none()
                && self.history.shown.schedules()
                && self.wake_of(server, begin, received, None).is_none()
        };
        let free = match self.call.server_free {
            Free::Always => begin,
            Free::Replied(free) => free,
            Free::Waited(free) if free <= begin => free,
            Free::Waited(_) | Free::Unseen if awake() => received,
            Free::Waited(free) => free,
            Free::Unseen => begin,
        };
        free.clamp(begin, received)
    }

    /// Whether the call waited in its node's queue: a oneway call that was not handed to a sleeping thread.
    fn queued(&self, server: i32, received: u64) -> bool {
        let OpenCall { begin, client, sending_done, .. } = *self.call;
        self.history.shown.schedules()
            && self.call.sent.is_oneway()
            && self.call.server_free != Free::Always
            && self.wake_of(server, begin, received, None).is_none()
            && self.leaves(client, begin, sending_done, received) < received
    }

    /// When a thread that took a call from a queue began to act on it.
    fn first_activity(&self, tid: i32, from: u64, to: u64) -> u64 {
        let Some(thread) = self.history.thread(tid) else { return to };
        if !matches!(thread.run.at(from), Some(SchedState::Sleeping { .. })) {
            return to;
        }
        thread.run.after(from).map(|(ts, _)| ts).next().filter(|ts| *ts < to).unwrap_or(to)
    }

    /// Divides a handover: `from` works until it wakes `to`, which then gets ready. What a `to` did that needed no wake-up is
    /// why it took so long.
    fn hand_over(&mut self, from: i32, to: i32, (begin, end): (u64, u64), done: Option<u64>) {
        if !self.history.shown.schedules() {
            // Nothing shows when the work passed from one to the other.
            return self.put(begin, end, nobody());
        }
        if let Some(woken) = self.wake_of(to, begin, end, Some(from)) {
            self.walk(from, begin, woken, Phase::Handover);
            self.walk(to, woken, end, Phase::Handover);
            return;
        }
        // Another thread delivers it: the embedded driver's broker.
        let left = self.leaves(from, begin, done, end);
        if let Some((waker, woken)) = self.history.wakes(to, left, end).next().filter(|wake| wake.0 > 0) {
            self.walk(from, begin, left, Phase::Handover);
            self.walk(waker, left, woken, Phase::Handover);
            self.walk(to, woken, end, Phase::Handover);
            return;
        }
        // It was awake, and took it when it came to it.
        self.walk(to, begin, end, Phase::Serving);
    }

    /// First wake-up of a thread in `begin..=end`, by thread `by` or by any.
    fn wake_of(&self, tid: i32, begin: u64, end: u64, by: Option<i32>) -> Option<u64> {
        self.history
            .wakes(tid, begin, end)
            .take(MOST_LOOKED)
            .find(|(waker, _)| by.is_none_or(|by| *waker == by))
            .map(|wake| wake.1)
    }

    /// When a thread handed its work over: an event says so, or it left its CPU to sleep. At the latest `to`.
    fn leaves(&self, tid: i32, from: u64, done: Option<u64>, to: u64) -> u64 {
        self.left(tid, from, done).unwrap_or(to).clamp(from, to)
    }

    /// When a thread handed its work over, if the trace shows it.
    fn left(&self, tid: i32, from: u64, done: Option<u64>) -> Option<u64> {
        let asleep = self.history.thread(tid).and_then(|thread| {
            let mut steps = thread.run.after(from).take(MOST_LOOKED);
            steps.find(|(_, run)| matches!(run, SchedState::Sleeping { .. })).map(|(ts, _)| ts)
        });
        done.into_iter().chain(asleep).min()
    }

    /// Divides `from..to` along the history of one thread.
    fn walk(&mut self, tid: i32, from: u64, to: u64, phase: Phase) {
        if from >= to {
            return;
        }
        let history = self.history;
        let Some(thread) = history.thread(tid) else {
            self.put(from, to, Segment { tid, ..nobody() });
            return;
        };
        for (begin, end, run) in along(self.effort, &thread.run, from, to) {
            if self.parts.len() >= self.most {
                return self.put(begin, to, Segment { tid, ..nobody() });
            }
            for (begin, end, over) in along(self.effort, &thread.over, begin, end) {
                let slice = longest_slice(thread, begin, end);
                match (run, over.flatten().filter(|over| rules::explains(over.cause, run))) {
                    (Some(SchedState::Runnable { cpu, prio, waker, queued, .. }), _) => {
                        let part = Segment { tid, prio, cpu: Some(cpu), slice, ..nobody() };
                        let queue = if queued { None } else { queue_after(thread, begin) };
                        match queue {
                            Some(cpu) => self.on_the_way(waker, cpu, (begin, end), part),
                            None => self.runnable(thread, cpu, (begin, end), part),
                        }
                    }
                    (_, Some(Declared { cause, slice: by })) => {
                        let slice = if by.is_some() { by } else { slice };
                        self.put(begin, end, Segment { cause, tid, slice, ..nobody() });
                    }
                    (Some(SchedState::Running { cpu }), None) => {
                        let part = Segment { tid, cpu: Some(cpu), slice, ..nobody() };
                        self.running(thread, (begin, end), part, phase);
                    }
                    (Some(SchedState::Sleeping { state, place, slept }), None) => {
                        let slept = (state, place, slept);
                        let cause = rules::asleep(history, (thread, begin), slept, phase == Phase::Handover);
                        self.put(begin, end, Segment { cause, tid, slice, ..nobody() });
                    }
                    (Some(SchedState::Unknown) | None, None) => {
                        self.put(begin, end, Segment { tid, ..nobody() });
                    }
                }
            }
        }
    }

    fn running(&mut self, thread: &Thread, (from, to): (u64, u64), part: Segment, phase: Phase) {
        let Some(cpu) = part.cpu else { return };
        self.heard(cpu, from, to, part, |cut, begin, end| {
            for (begin, end, inside) in along(cut.effort, &thread.in_driver, begin, end) {
                let cause = rules::running(inside, phase == Phase::Handover);
                cut.put(begin, end, Segment { cause, ..part });
            }
        });
    }

    /// Divides a wait for a CPU by the tasks that had the CPU.
    fn runnable(&mut self, thread: &Thread, cpu: u32, (from, to): (u64, u64), part: Segment) {
        let Some(there) = self.history.cpu(cpu) else {
            self.put(from, to, part);
            return;
        };
        let ran_on =
            thread.run.after(to.saturating_sub(1)).take(MOST_COMPARED).find_map(|(_, run)| match run {
                SchedState::Running { cpu } => Some(cpu),
                _ => None,
            });
        let later = ran_on.filter(|ran_on| *ran_on != cpu);
        let later = later.and_then(|cpu| Some((cpu, &self.history.cpu(cpu)?.occupant)));
        self.uninterrupted(cpu, from, to, part, |cut, from, to| {
            for (begin, end, who) in along(cut.effort, &there.occupant, from, to) {
                for (begin, end, idle) in along(cut.effort, &there.idle, begin, end) {
                    let cause = |elsewhere| rules::queued(part.tid, who, idle.flatten(), elsewhere);
                    let Some((later, occupant)) = later else {
                        cut.put(begin, end, Segment { cause: cause(None), ..part });
                        continue;
                    };
                    for (begin, end, who) in along(cut.effort, occupant, begin, end) {
                        let elsewhere = who.filter(|who| who.tid == 0).map(|_| later);
                        cut.put(begin, end, Segment { cause: cause(elsewhere), ..part });
                    }
                }
            }
        });
    }

    /// Divides the time between wake-up and enqueueing.
    fn on_the_way(&mut self, waker: i32, cpu: u32, (from, to): (u64, u64), part: Segment) {
        let Some(there) = self.history.cpu(cpu) else { return self.put(from, to, part) };
        let part = Segment { cpu: Some(cpu), ..part };
        for (begin, end, who) in along(self.effort, &there.occupant, from, to) {
            for (begin, end, state) in along(self.effort, &there.idle, begin, end) {
                let cause = rules::on_the_way(waker, who, state.flatten());
                self.put(begin, end, Segment { cause, ..part });
            }
        }
    }

    /// Adds segments for the interrupts of a CPU, and passes the remaining time to `rest`.
    fn uninterrupted(
        &mut self,
        cpu: u32,
        from: u64,
        to: u64,
        part: Segment,
        mut rest: impl FnMut(&mut Self, u64, u64),
    ) {
        let Some(there) = self.history.cpu(cpu) else { return rest(self, from, to) };
        for (begin, end, interrupt) in along(self.effort, &there.interrupt, from, to) {
            match interrupt.flatten() {
                Some(by) => self.put(begin, end, Segment { cause: rules::interrupted(by), ..part }),
                None => rest(self, begin, end),
            }
        }
    }

    /// Adds segments for a CPU's interrupts and for its silences past a due interrupt, and passes the remaining time to
    /// `rest`.
    fn heard(
        &mut self,
        cpu: u32,
        from: u64,
        to: u64,
        part: Segment,
        mut rest: impl FnMut(&mut Self, u64, u64),
    ) {
        let silences = self.history.cpu(cpu).map(|there| &there.silence);
        self.uninterrupted(cpu, from, to, part, |cut, from, to| {
            let Some(silences) = silences else { return rest(cut, from, to) };
            for (begin, end, silence) in along(cut.effort, silences, from, to) {
                match silence.flatten() {
                    Some(silence) => cut.put(begin, end, Segment { cause: rules::silent(silence), ..part }),
                    None => rest(cut, begin, end),
                }
            }
        });
    }

    /// Inserts a nested call's segments into the call that it was made for.
    fn adopt(&mut self, nested: &Nested, from: u64, to: u64) {
        let mut at = from;
        for part in &nested.parts {
            if self.effort.is_spent() {
                break;
            }
            let (begin, end) = (part.begin.clamp(at, to), part.end.clamp(at, to));
            self.put(at, begin, Segment { cause: Cause::Nested, ..nobody() });
            let part = if part.depth < MOST_NESTED {
                Segment { depth: part.depth + 1, ..*part }
            } else {
                Segment { cause: Cause::Nested, depth: MOST_NESTED, ..nobody() }
            };
            self.put(begin, end, part);
            at = end;
        }
        self.put(at, to, Segment { cause: Cause::Nested, ..nobody() });
    }

    /// Adds a segment; a part of unknown cause, if there is no effort left for more.
    fn put(&mut self, begin: u64, end: u64, part: Segment) {
        if begin >= end {
            return;
        }
        let proven = part.cause.label().is_proven_by(self.history.shown);
        let cause = if proven { part.cause } else { Cause::NotShown };
        let part = if self.effort.is_spent() { nobody() } else { Segment { cause, ..part } };
        if self.extend(end, &part) || (!self.effort.segment() && self.extend(end, &nobody())) {
            return;
        }
        self.parts.push(Segment { begin, end, ..part });
    }

    /// Makes the last segment longer, if it is one of these.
    fn extend(&mut self, end: u64, part: &Segment) -> bool {
        let alike = |last: &Segment| {
            (Segment { begin: 0, end: 0, ..*last }) == (Segment { begin: 0, end: 0, ..*part })
        };
        let Some(last) = self.parts.last_mut().filter(|last| alike(last)) else { return false };
        last.end = end;
        true
    }
}

/// Cuts `from..to` where the value changes, as [`Timeline::slices`]; when no effort is left, the rest is one slice.
fn along<'t, T: Copy + PartialEq>(
    effort: &'t Effort,
    line: &'t Timeline<T>,
    from: u64,
    to: u64,
) -> impl Iterator<Item = (u64, u64, Option<T>)> + 't {
    let mut slices = line.slices(from, to).fuse();
    std::iter::from_fn(move || {
        let (begin, end, value) = slices.next()?;
        if effort.step() {
            return Some((begin, end, value));
        }
        slices = line.slices(to, to).fuse();
        Some((begin, to, None))
    })
}

/// The innermost slice that a thread was in for longest.
fn longest_slice(thread: &Thread, from: u64, to: u64) -> SliceName {
    let mut longest = (0, SliceName::NONE);
    for (begin, end, name) in thread.doing.slices(from, to).take(MOST_COMPARED) {
        if end - begin > longest.0 {
            longest = (end - begin, name.unwrap_or_default());
        }
    }
    longest.1
}

/// The CPU whose queue the thread enters next, if the trace shows it.
fn queue_after(thread: &Thread, ts: u64) -> Option<u32> {
    match thread.run.after(ts).next() {
        Some((_, SchedState::Runnable { cpu, queued: true, .. })) => Some(cpu),
        _ => None,
    }
}
