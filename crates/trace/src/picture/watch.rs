//! Room: the second reading of a trace: the world around the calls that are to be drawn.
//! Not here: what a scene is (`scene`), which calls are slow (`verdict`).
//!
//! Memory: the model's own limit, and for each picture at most [`MOST_SLICES`] slices and twice [`MOST_CALLS`] calls.

use super::keep::{Kept, number_pairs};
use super::scene::{CpuLane, Doing, Has, Hop, LeftOut, Role, Scene, Slice, ThreadLane};
use crate::event::{Event, Name, Names, State};
use crate::model::world::{Interrupt, Occupant, Run, Slept, World};
use crate::model::{Model, Transaction};
use crate::verdict::{Analysis, Slow, Who};

/// The most slices of all lanes of a picture together.
const MOST_SLICES: usize = 2000;
/// The most threads that get a lane.
const MOST_THREADS: usize = 16;
/// The most CPUs that get a lane.
const MOST_CPUS: usize = 16;
/// The most calls whose arrows are drawn.
const MOST_CALLS: usize = 256;

/// Reads a trace again and keeps what pictures need.
#[derive(Clone, Debug)]
pub struct Watch {
    model: Model,
    asked: Vec<Request>,
    /// When the next scene is complete.
    next: u64,
}

/// A picture that is asked for.
#[derive(Clone, Debug)]
struct Request {
    from: u64,
    to: u64,
    zero: u64,
    /// The slow call; `None` for the busiest stretch.
    slow: Option<Slow>,
    calls: Vec<Seen>,
    missed_calls: usize,
    scene: Option<Scene>,
}

/// A call that ended while somebody watched.
#[derive(Clone, Copy, Debug)]
struct Seen {
    debug_id: i32,
    caller: Person,
    server: Person,
    begin: u64,
    received: u64,
    replied: Option<u64>,
    end: u64,
}

#[derive(Clone, Copy, Debug)]
struct Person {
    tid: i32,
    comm: Name,
    prio: Option<i32>,
}

impl Watch {
    /// For the busiest stretch of what the first reading found, and for the first `most` slow calls.
    #[must_use]
    pub fn new(analysis: &Analysis, most: usize) -> Self {
        let stretch = analysis.busiest.map(|busy| Request::new(busy.begin_ns, busy.ns, None));
        let slow = analysis.slow.iter().take(most);
        let slow = slow.map(|slow| Request::new(slow.begin_ns, slow.ns, Some(slow.clone())));
        let mut watch =
            Self { model: Model::new(), asked: stretch.into_iter().chain(slow).collect(), next: 0 };
        watch.turn();
        watch
    }

    /// Takes the next event, in the order of their times. `names` are the reader's.
    pub fn take(&mut self, event: &Event, names: &Names) {
        let asked = &mut self.asked;
        self.model.take(event, names, &mut |call| note(asked, &call));
        if event.ts > self.next {
            self.look(event.ts, names);
            self.turn();
        }
    }

    /// The trace has ended. The scene of the busiest stretch, and those of the slow calls in their order.
    #[must_use]
    pub fn finish(mut self, names: &Names) -> (Option<Scene>, Vec<Scene>) {
        let asked = &mut self.asked;
        self.model.finish(&mut |call| note(asked, &call));
        self.look(u64::MAX, names);
        let (mut busiest, mut slow) = (None, Vec::new());
        for request in self.asked {
            match request.slow {
                None => busiest = request.scene,
                Some(_) => slow.extend(request.scene),
            }
        }
        (busiest, slow)
    }

    /// Draws up the scenes that are over by now.
    fn look(&mut self, now: u64, names: &Names) {
        for request in &mut self.asked {
            if request.scene.is_none() && request.to < now {
                let looker = Looker { world: self.model.world(), names, from: request.from, to: request.to };
                request.scene = Some(looker.scene(request));
                request.calls = Vec::new();
            }
        }
    }

    /// Turns to those that are left: nothing since the first of them may be forgotten.
    fn turn(&mut self) {
        let left = || self.asked.iter().filter(|request| request.scene.is_none());
        let held = left().map(|request| request.from).min();
        self.next = left().map(|request| request.to).min().unwrap_or(u64::MAX);
        self.model.hold(held);
    }
}

/// A call has ended: those who watch that time take note.
fn note(asked: &mut [Request], call: &Transaction) {
    let (Some(server), Some(received)) = (call.server, call.received) else { return };
    let person =
        |tid, comm, prio: Option<crate::event::Prio>| Person { tid, comm, prio: prio.map(|prio| prio.0) };
    for request in asked {
        if request.scene.is_some() || call.end < request.from || call.begin > request.to {
            continue;
        }
        // On a busy system strangers fill the room long before a nested call has ended.
        let own = request.is_of_its_cast(call.client.tid);
        let room = if own { 2 * MOST_CALLS } else { MOST_CALLS };
        if request.calls.len() >= room {
            request.missed_calls += usize::from(own);
            continue;
        }
        request.calls.push(Seen {
            debug_id: call.debug_id,
            caller: person(call.client.tid, call.client.comm, call.client.prio),
            server: person(server.tid, server.comm, server.prio),
            begin: call.begin,
            received,
            replied: call.replied,
            end: call.end,
        });
    }
}

impl Request {
    /// Whether a call of this thread's is to be seen in the picture, as far as can be told before the slow call has
    /// ended: of a slow call those of its own two threads, of a stretch all.
    fn is_of_its_cast(&self, tid: i32) -> bool {
        let Some(slow) = &self.slow else { return true };
        slow.caller.tid == tid || slow.server.as_ref().is_some_and(|server| server.tid == tid)
    }

    fn new(begin: u64, ns: u64, slow: Option<Slow>) -> Self {
        // A little before and after, so that the edges are seen.
        let margin = (ns / 16).max(1000);
        Self {
            from: begin.saturating_sub(margin),
            to: begin.saturating_add(ns).saturating_add(margin),
            zero: begin,
            slow,
            calls: Vec::new(),
            missed_calls: 0,
            scene: None,
        }
    }
}

struct Looker<'a> {
    world: &'a World,
    names: &'a Names,
    from: u64,
    to: u64,
}

impl Looker<'_> {
    fn scene(&self, request: &Request) -> Scene {
        let mut people = self.cast(request);
        let known = |tid: i32, people: &[(Who, Role)]| people.iter().any(|(who, _)| who.tid == tid);
        let mut hops: Vec<Hop> =
            request.slow.as_ref().and_then(|slow| self.main_hop(slow)).into_iter().collect();
        for seen in &request.calls {
            if hops.iter().any(|hop| hop.debug_id == seen.debug_id && hop.sent == seen.begin) {
                continue;
            }
            // Of a slow call those that were made for it; of a stretch everybody's.
            if request.slow.is_some() && !known(seen.caller.tid, &people) {
                continue;
            }
            hops.push(self.hop(seen));
            let (caller, server) = match request.slow {
                Some(_) => (Role::Further, Role::Further),
                None => (Role::Caller, Role::Server),
            };
            for (person, role) in [(seen.caller, caller), (seen.server, server)] {
                if !known(person.tid, &people) {
                    people.push((self.who(person), role));
                }
            }
        }
        hops.sort_by_key(|hop| hop.sent);
        let outside = people.len().saturating_sub(MOST_THREADS);
        people.truncate(MOST_THREADS);
        let cpus = self.cpus_of(&people, request);
        let mut left_out =
            LeftOut { threads: outside, cpus: cpus.len().saturating_sub(MOST_CPUS), ..LeftOut::default() };
        let mut cpus: Vec<u32> = cpus.into_iter().take(MOST_CPUS).collect();
        cpus.sort_unstable();
        left_out.calls = request.missed_calls;
        let most = MOST_SLICES / (people.len() + 2 * cpus.len()).max(1);
        let mut kept = Kept::new(most);
        let mut threads: Vec<_> =
            people.into_iter().map(|(who, role)| self.thread(who, role, &mut kept)).collect();
        if request.slow.is_none() {
            number_pairs(&mut threads, &hops);
        }
        let cpus = cpus.into_iter().map(|cpu| self.cpu(cpu, &mut kept)).collect();
        left_out.slices = kept.dropped();
        Scene { from: self.from, to: self.to, zero: request.zero, threads, cpus, hops, left_out }
    }

    /// Who is known to take part before any other call was looked at: caller, server, and whoever worked.
    fn cast(&self, request: &Request) -> Vec<(Who, Role)> {
        let Some(slow) = &request.slow else { return Vec::new() };
        let mut people = vec![(slow.caller.clone(), Role::Caller)];
        people.extend(slow.server.clone().map(|server| (server, Role::Server)));
        for part in &slow.parts {
            if part.tid > 0 && !people.iter().any(|(who, _)| who.tid == part.tid) {
                let comm = self.world.thread(part.tid).map_or(Name::NONE, |thread| thread.comm);
                let prio = self.world.thread(part.tid).and_then(|thread| thread.prio).map(|prio| prio.0);
                people.push((self.who(Person { tid: part.tid, comm, prio }), Role::Further));
            }
        }
        people
    }

    fn who(&self, person: Person) -> Who {
        Who { tid: person.tid, comm: self.names.text(person.comm).to_owned(), prio: person.prio }
    }

    fn main_hop(&self, slow: &Slow) -> Option<Hop> {
        let server = slow.server.as_ref()?.tid;
        let (begin, end) = (slow.begin_ns, slow.begin_ns.saturating_add(slow.ns));
        let received = begin.saturating_add(slow.received_ns?);
        let replied = slow.replied_ns.map(|at| begin.saturating_add(at));
        Some(self.arrows(slow.debug_id, (slow.caller.tid, server), (begin, received), replied, end))
    }

    fn hop(&self, seen: &Seen) -> Hop {
        let who = (seen.caller.tid, seen.server.tid);
        self.arrows(seen.debug_id, who, (seen.begin, seen.received), seen.replied, seen.end)
    }

    fn arrows(
        &self,
        debug_id: i32,
        (caller, server): (i32, i32),
        (sent, received): (u64, u64),
        replied: Option<u64>,
        end: u64,
    ) -> Hop {
        Hop {
            debug_id,
            caller,
            server,
            sent,
            woken: self.woken(server, sent, received),
            received,
            replied,
            caller_woken: replied.map(|replied| self.woken(caller, replied, end)),
            end,
        }
    }

    /// When a thread was woken between two moments; the second if it was not.
    fn woken(&self, tid: i32, from: u64, to: u64) -> u64 {
        let Some(thread) = self.world.thread(tid) else { return to };
        let mut steps = thread.run.after(from.saturating_sub(1)).take_while(|(ts, _)| *ts <= to);
        let woken = steps.find(|(_, run)| matches!(run, Run::Runnable { waker, .. } if *waker != 0));
        woken.map_or(to, |(ts, _)| ts)
    }

    /// The CPUs that these threads used or waited for, the first first.
    fn cpus_of(&self, people: &[(Who, Role)], request: &Request) -> Vec<u32> {
        let mut cpus: Vec<u32> = Vec::new();
        let parts = request.slow.iter().flat_map(|slow| slow.parts.iter().filter_map(|part| part.cpu));
        let runs = people.iter().filter_map(|(who, _)| self.world.thread(who.tid)).flat_map(|thread| {
            thread.run.slices(self.from, self.to).filter_map(|(_, _, run)| match run {
                Some(Run::Running { cpu } | Run::Runnable { cpu, .. }) => Some(cpu),
                _ => None,
            })
        });
        for cpu in parts.chain(runs) {
            if !cpus.contains(&cpu) {
                cpus.push(cpu);
            }
        }
        cpus
    }

    fn thread(&self, who: Who, role: Role, kept: &mut Kept) -> ThreadLane {
        let thread = self.world.thread(who.tid);
        let slices = thread.map(|thread| thread.run.slices(self.from, self.to));
        let slices =
            slices.into_iter().flatten().map(|(begin, end, run)| Slice { begin, end, what: self.doing(run) });
        ThreadLane { who, role, pair: 0, slices: kept.of(slices) }
    }

    fn doing(&self, run: Option<Run>) -> Doing {
        match run {
            Some(Run::Running { cpu }) => Doing::Running(cpu),
            Some(Run::Runnable { cpu, .. }) => Doing::Runnable(cpu),
            Some(Run::Sleeping { state, place, slept }) => {
                let what = match slept {
                    Slept::Io => "I/O",
                    Slept::Futex => "futex",
                    Slept::KernelLock => "lock of the kernel",
                    Slept::Reclaim => "memory",
                    Slept::Frozen => "frozen",
                    Slept::Unsaid if state == State::Uninterruptible => "uninterruptible",
                    Slept::Unsaid => return Doing::Sleeping,
                };
                let symbol = self.names.text(place.symbol);
                Doing::Blocked(if symbol.is_empty() { what.to_owned() } else { format!("{what}, {symbol}") })
            }
            Some(Run::Unknown) | None => Doing::Unknown,
        }
    }

    fn cpu(&self, cpu: u32, kept: &mut Kept) -> CpuLane {
        let Some(there) = self.world.cpu(cpu) else {
            return CpuLane { cpu, slices: Vec::new(), interrupts: Vec::new() };
        };
        let slices = there.occupant.slices(self.from, self.to);
        let slices = slices.map(|(begin, end, who)| Slice { begin, end, what: self.has(who) });
        let slices = kept.of(slices);
        let interrupts = there.interrupt.slices(self.from, self.to).filter_map(|(begin, end, interrupt)| {
            let what = match interrupt.flatten()? {
                Interrupt::Hard(irq, name) => match self.names.text(name) {
                    "" => format!("{irq:?}"),
                    name => name.to_owned(),
                },
                Interrupt::Soft(softirq) => format!("softirq {}", softirq.name()),
            };
            Some(Slice { begin, end, what })
        });
        CpuLane { cpu, slices, interrupts: kept.of(interrupts) }
    }

    fn has(&self, who: Option<Occupant>) -> Has {
        match who {
            Some(who) if who.tid == 0 => Has::Idle,
            Some(who) if who.tid > 0 => {
                let comm = self.names.text(who.comm).to_owned();
                Has::Task(Who { tid: who.tid, comm, prio: who.prio.map(|prio| prio.0) })
            }
            _ => Has::Unknown,
        }
    }
}
