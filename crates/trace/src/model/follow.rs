//! Follows the waits of an ended call: who held the lock, served the call or woke the sleeper, and whom that one waited for.
//! Not here: dividing one thread's time (`divide`), the chain as data (`chain`).
//!
//! Each thread is looked at only while its waiter waits for it, so the windows never grow and the links of one depth divide
//! the time of the one above. Work and memory of a call have limits; the longest waits are followed first.

use super::calls::{Calls, OpenCall};
use super::chain::{Link, Next, Stop, Tie};
use super::divide::divide_thread;
use super::effort::Effort;
use super::history::History;
use super::rules::is_user_lock;
use super::slices::{Owner, SliceNames};
use super::thread::{SchedState, Thread};
use crate::cause::{Cause, Segment};
use crate::event::{CodeLocation, Name, State};

/// Maximum number of threads behind one another.
pub(super) const MOST_DEEP: u8 = 16;
/// Maximum number of links of a call; one more where a thread's time is cut off.
pub(super) const MOST_LINKS: usize = 1024;

/// Chains of the waits in an ended call, in order of time.
pub(super) fn follow(
    (history, effort): (&History, &Effort),
    (calls, slices): (&Calls, &SliceNames),
    call: &OpenCall,
    parts: &[Segment],
) -> Vec<Link> {
    let mut waits: Vec<&Segment> = parts.iter().filter(|part| part.cause.label().is_followed()).collect();
    waits.sort_by_key(|part| std::cmp::Reverse(part.ns()));
    let mut chains = Vec::new();
    let mut follower = Follower { history, effort, calls, slices, call, links: Vec::new(), path: Vec::new() };
    for part in waits {
        let begin = follower.links.len();
        if begin >= MOST_LINKS || effort.is_spent() {
            break;
        }
        follower.path.clear();
        follower.path.push(call.client);
        if !matches!(part.cause, Cause::NoFreeThread { .. }) && part.tid != call.client {
            follower.path.push(part.tid);
        }
        follower.link(part, 0);
        chains.push((part.begin, begin..follower.links.len()));
    }
    chains.sort_by_key(|(begin, _)| *begin);
    let links = |range: std::ops::Range<usize>| follower.links.get(range).unwrap_or_default();
    chains.into_iter().flat_map(|(_, range)| links(range).iter().copied()).collect()
}

struct Follower<'w> {
    history: &'w History,
    effort: &'w Effort,
    calls: &'w Calls,
    slices: &'w SliceNames,
    call: &'w OpenCall,
    links: Vec<Link>,
    /// Threads that wait, the caller first.
    path: Vec<i32>,
}

impl Follower<'_> {
    /// Adds a stretch of a thread, and the chain of what it waited for.
    fn link(&mut self, part: &Segment, depth: u8) {
        let next = match self.next(part) {
            Next::Thread(_, tid) if self.path.contains(&tid) => Next::Stopped(Stop::Circle),
            Next::Thread(..) if depth >= MOST_DEEP => Next::Stopped(Stop::Depth),
            Next::Thread(..) if self.links.len() >= MOST_LINKS || !self.effort.step() => {
                Next::Stopped(Stop::Room)
            }
            next => next,
        };
        let in_call = matches!(next, Next::Thread(Tie::Call(_), _));
        let thread = self.history.thread(part.tid);
        self.links.push(Link {
            begin: part.begin,
            end: part.end,
            depth,
            tid: part.tid,
            comm: self.name(part),
            cause: if in_call { Cause::Nested } else { part.cause },
            cpu: part.cpu,
            slice: part.slice,
            work: thread.and_then(|thread| thread.work.at(part.begin)).unwrap_or_default(),
            next,
        });
        let Next::Thread(tie, tid) = next else { return };
        self.path.push(tid);
        // An owner is who it was when the wait began; whoever ended the wait, who it was then.
        let at = if tie == Tie::Owner { part.begin } else { part.end };
        self.did(tid, at, (part.begin, part.end), depth + 1);
        self.path.pop();
    }

    /// Adds what a thread did in this time. It is the thread that had this ID at `at`.
    fn did(&mut self, tid: i32, at: u64, (begin, end): (u64, u64), depth: u8) {
        let (born, dead) =
            self.history.thread(tid).map_or((begin, end), |thread| self.life(thread, at, begin, end));
        self.stop(tid, (begin, born), depth, Stop::Gone);
        let room = MOST_LINKS.saturating_sub(self.links.len());
        let parts = divide_thread((self.history, self.effort), self.call, tid, (born, dead), room);
        for part in parts {
            if self.links.len() >= MOST_LINKS {
                self.stop(tid, (part.begin, dead), depth, Stop::Room);
                break;
            }
            self.link(&part, depth);
        }
        self.stop(tid, (dead, end), depth, Stop::Gone);
    }

    /// Adds a stretch in which the chain stops.
    fn stop(&mut self, tid: i32, (begin, end): (u64, u64), depth: u8, why: Stop) {
        if begin >= end {
            return;
        }
        self.links.push(Link {
            begin,
            end,
            depth,
            tid,
            comm: self.history.name_on(tid, None, begin),
            cause: Cause::NotShown,
            cpu: None,
            slice: Default::default(),
            work: CodeLocation::default(),
            next: Next::Stopped(why),
        });
    }

    /// Name of a thread at the time of a segment.
    fn name(&self, part: &Segment) -> Name {
        let runs = |thread: &Thread| {
            let mut runs = thread.run.after(part.begin.saturating_sub(1)).take(4);
            runs.find_map(|(ts, run)| match run {
                SchedState::Running { cpu } => Some((cpu, ts)),
                _ => None,
            })
        };
        let next = || self.history.thread(part.tid).and_then(runs);
        let (cpu, ts) = match part.cpu {
            Some(cpu) if part.cause.behind().is_none() => (Some(cpu), part.begin),
            _ => next().map_or((None, part.begin), |(cpu, ts)| (Some(cpu), ts)),
        };
        self.history.name_on(part.tid, cpu, ts)
    }

    /// What a thread waited for in a segment.
    fn next(&self, part: &Segment) -> Next {
        let lost = || self.history.has_gap(part.begin, part.end);
        match part.cause {
            Cause::NoFreeThread { busy_with } if part.tid > 0 => {
                return Next::Thread(Tie::Busy(busy_with), part.tid);
            }
            Cause::NotShown => return Next::Stopped(if lost() { Stop::Lost } else { Stop::NotShown }),
            cause if !cause.label().is_followed() => return Next::Nothing,
            _ => {}
        }
        let Some(thread) = self.history.thread(part.tid) else { return Next::Stopped(Stop::NotShown) };
        if !matches!(thread.run.at(part.begin), Some(SchedState::Sleeping { .. })) {
            // It reclaims memory itself, or spins.
            return Next::Nothing;
        }
        if let Some((debug_id, server)) = self.call_of(part.tid, thread, part.begin) {
            return server
                .map_or(Next::Stopped(Stop::NotShown), |tid| Next::Thread(Tie::Call(debug_id), tid));
        }
        let owner = Owner::parse(self.slices.text(part.slice));
        if let Some(owner) = owner.filter(|_| is_user_lock(part.cause)) {
            return Next::Thread(Tie::Owner, owner.tid);
        }
        match thread.run.after(part.begin).next() {
            // It may have been woken, and slept again.
            _ if lost() => Next::Stopped(Stop::Lost),
            Some((_, SchedState::Runnable { waker, .. })) if waker > 0 => Next::Thread(Tie::Waker, waker),
            Some((woken, SchedState::Runnable { waker, on, .. })) if waker < 0 => {
                Next::Interrupt(self.history.interrupt_on(on, woken))
            }
            _ => Next::Stopped(Stop::NotShown),
        }
    }

    /// The call that a thread waited for at this time, and who served it.
    fn call_of(&self, tid: i32, thread: &Thread, ts: u64) -> Option<(i32, Option<i32>)> {
        let open_of = |slot: &usize| self.calls.get(*slot);
        // They began in this order.
        let began = thread.calling.partition_point(|slot| open_of(slot).is_none_or(|open| open.begin <= ts));
        let open = thread.calling[..began]
            .iter()
            .rev()
            .filter_map(open_of)
            .find(|open| open.client == tid && open.reply_received.is_none_or(|end| end > ts));
        let ended =
            || thread.made.iter().rev().take_while(|made| made.end > ts).find(|made| made.begin <= ts);
        open.map(|open| (open.sent.debug_id, open.server))
            .or_else(|| ended().map(|made| (made.debug_id, made.server)))
    }

    /// The part of `begin..end` in which the thread lived that has its ID at `at`.
    fn life(&self, thread: &Thread, at: u64, begin: u64, end: u64) -> (u64, u64) {
        if !thread.exited {
            return (begin, end);
        }
        let dead =
            |run: Option<SchedState>| matches!(run, Some(SchedState::Sleeping { state: State::Dead, .. }));
        let (mut from, mut to) = (begin, end);
        for (since, until, run) in thread.run.slices(begin, end) {
            if dead(run) {
                if until <= at {
                    from = until;
                } else if since > at {
                    to = since;
                    break;
                }
            }
            if !self.effort.step() {
                to = until;
                break;
            }
        }
        (from, to.max(from))
    }
}
