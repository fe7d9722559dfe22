//! Second pass over a trace: collects the data of the pictures.
//! Not here: the data types (`data`), the choice of slow calls (`verdict`).
//!
//! Memory: the model's own limit, and for each picture at most [`MOST_SLICES`] slices and twice [`MOST_CALLS`] calls.

use super::data::{
    CpuLane, CpuOccupant, Hop, LeftOut, PictureData, Slice, ThreadActivity, ThreadLane, WakeUp,
};
use super::slices::{SliceLimiter, number_pairs};
use crate::event::{Event, Name, Names, State};
use crate::model::chain::How;
use crate::model::history::{History, Interrupt, Occupant};
use crate::model::thread::{SchedState, SleepReason};
use crate::model::{Model, Peer, Transaction};
use crate::verdict::{Analysis, PathStep, People, Role, SlowCall, ThreadInfo};

/// Maximum slices of all lanes of a picture together.
const MOST_SLICES: usize = 2000;
/// Maximum number of thread lanes.
const MOST_THREADS: usize = 16;
/// Maximum number of CPU lanes.
const MOST_CPUS: usize = 16;
/// Maximum number of calls with arrows.
const MOST_CALLS: usize = 256;
/// Maximum number of wake-ups with arrows, the longest waits first.
const MOST_WAKES: usize = 64;

/// Collects the data of pictures in a second pass over the trace.
#[derive(Clone, Debug)]
pub struct PictureCollector {
    model: Model,
    requests: Vec<Request>,
    /// When the next picture's data is complete.
    next: u64,
}

/// Requested picture.
#[derive(Clone, Debug)]
struct Request {
    from: u64,
    to: u64,
    zero: u64,
    /// Slow call; `None` for the busiest burst.
    slow: Option<SlowCall>,
    calls: Vec<EndedCall>,
    missed_calls: usize,
    data: Option<PictureData>,
}

/// Call that ended within a requested picture.
#[derive(Clone, Copy, Debug)]
struct EndedCall {
    times: CallTimes,
    caller: Peer,
    server: Peer,
}

/// Threads of a call, and when it passed between them.
#[derive(Clone, Copy, Debug)]
struct CallTimes {
    debug_id: i32,
    caller: i32,
    server: i32,
    begin: u64,
    received: u64,
    replied: Option<u64>,
    end: u64,
}

impl CallTimes {
    fn of(slow: &SlowCall) -> Option<Self> {
        let after_begin = |ns: u64| slow.begin_ns.saturating_add(ns);
        Some(Self {
            debug_id: slow.debug_id,
            caller: slow.caller.tid,
            server: slow.server.as_ref()?.tid,
            begin: slow.begin_ns,
            received: after_begin(slow.received_ns?),
            replied: slow.replied_ns.map(after_begin),
            end: after_begin(slow.ns),
        })
    }
}

impl PictureCollector {
    /// Requests pictures of the busiest burst, and of `most` calls of an analysis: of those without an answer, half of them
    /// at most, and of the first slow ones.
    #[must_use]
    pub fn new(analysis: &Analysis, most: usize) -> Self {
        let burst = analysis.busiest.map(|busy| Request::new(busy.begin_ns, busy.ns, None));
        let unanswered = analysis
            .unanswered
            .iter()
            .filter(|slow| !slow.oneway && analysis.is_late(slow))
            .take(most.div_ceil(2));
        let slow = unanswered.chain(&analysis.slow).take(most);
        let slow = slow.map(|slow| Request::new(slow.begin_ns, slow.ns, Some(slow.clone())));
        let mut collector =
            Self { model: Model::new(), requests: burst.into_iter().chain(slow).collect(), next: 0 };
        collector.hold_history();
        collector
    }

    /// Takes the next event, in time order. `names` are the reader's.
    pub fn take(&mut self, event: &Event, names: &Names) {
        let requests = &mut self.requests;
        self.model.take(event, names, &mut |call| add_call(requests, &call));
        if event.ts > self.next {
            self.build_finished(event.ts, names);
            self.hold_history();
        }
    }

    /// Ends the trace. Returns the picture of the busiest burst, and those of the calls in order.
    #[must_use]
    pub fn finish(mut self, names: &Names) -> (Option<PictureData>, Vec<PictureData>) {
        let requests = &mut self.requests;
        self.model.finish(names, &mut |call| add_call(requests, &call));
        self.build_finished(u64::MAX, names);
        let (mut busiest, mut slow) = (None, Vec::new());
        for request in self.requests {
            match request.slow {
                None => busiest = request.data,
                Some(_) => slow.extend(request.data),
            }
        }
        (busiest, slow)
    }

    /// Builds the pictures whose time is over.
    fn build_finished(&mut self, now: u64, names: &Names) {
        for request in &mut self.requests {
            if request.data.is_none() && request.to < now {
                let builder = PictureBuilder {
                    history: self.model.history(),
                    people: People { model: &self.model, names },
                    from: request.from,
                    to: request.to,
                };
                request.data = Some(builder.build(request));
                request.calls = Vec::new();
            }
        }
    }

    /// Keeps history from the begin of the earliest remaining request.
    fn hold_history(&mut self) {
        let left = || self.requests.iter().filter(|request| request.data.is_none());
        let held = left().map(|request| request.from).min();
        self.next = left().map(|request| request.to).min().unwrap_or(u64::MAX);
        self.model.hold(held);
    }
}

/// Adds an ended call to the requests whose time it falls into.
fn add_call(requests: &mut [Request], call: &Transaction) {
    let (Some(server), Some(received)) = (call.server, call.received) else { return };
    for request in requests {
        if request.data.is_some() || call.end < request.from || call.begin > request.to {
            continue;
        }
        // On a busy system, unrelated calls would use up the room before a nested call ends.
        let own = request.may_belong(call.client.tid);
        let room = if own { 2 * MOST_CALLS } else { MOST_CALLS };
        if request.calls.len() >= room {
            request.missed_calls += usize::from(own);
            continue;
        }
        let times = CallTimes {
            debug_id: call.debug_id,
            caller: call.client.tid,
            server: server.tid,
            begin: call.begin,
            received,
            replied: call.replied,
            end: call.end,
        };
        request.calls.push(EndedCall { times, caller: call.client, server });
    }
}

impl Request {
    /// Whether a call of this thread may belong to the picture, as known before the slow call ended: for a slow call,
    /// calls of its caller, its server and those it waited for; for a burst, all calls.
    fn may_belong(&self, tid: i32) -> bool {
        let Some(slow) = &self.slow else { return true };
        slow.caller.tid == tid
            || slow.server.as_ref().is_some_and(|server| server.tid == tid)
            || slow.path.iter().any(|step| step.tid == tid)
    }

    fn new(begin: u64, ns: u64, slow: Option<SlowCall>) -> Self {
        // Margin before and after, so that the edges are visible.
        let margin = (ns / 16).max(1000);
        Self {
            from: begin.saturating_sub(margin),
            to: begin.saturating_add(ns).saturating_add(margin),
            zero: begin,
            slow,
            calls: Vec::new(),
            missed_calls: 0,
            data: None,
        }
    }
}

struct PictureBuilder<'a> {
    history: &'a History,
    people: People<'a>,
    from: u64,
    to: u64,
}

impl PictureBuilder<'_> {
    fn build(&self, request: &Request) -> PictureData {
        let mut threads = self.participants(request);
        let known = |tid: i32, threads: &[(ThreadInfo, Role)]| threads.iter().any(|(who, _)| who.tid == tid);
        let mut hops: Vec<Hop> =
            request.slow.as_ref().and_then(CallTimes::of).map(|call| self.hop(call)).into_iter().collect();
        for EndedCall { times, caller, server } in &request.calls {
            if hops.iter().any(|hop| hop.debug_id == times.debug_id && hop.sent == times.begin) {
                continue;
            }
            // For a slow call, only the nested calls made for it; for a burst, all calls.
            if request.slow.is_some() && !known(times.caller, &threads) {
                continue;
            }
            hops.push(self.hop(*times));
            let roles = match request.slow {
                Some(_) => [Role::Further, Role::Further],
                None => [Role::Caller, Role::Server],
            };
            for (Peer { tid, comm, prio, .. }, role) in [*caller, *server].into_iter().zip(roles) {
                if !known(tid, &threads) {
                    threads.push((self.people.thread(tid, comm, prio), role));
                }
            }
        }
        hops.sort_by_key(|hop| hop.sent);
        let outside = threads.len().saturating_sub(MOST_THREADS);
        threads.truncate(MOST_THREADS);
        let cpus = self.cpus_of(&threads, request);
        let mut left_out =
            LeftOut { threads: outside, cpus: cpus.len().saturating_sub(MOST_CPUS), ..LeftOut::default() };
        let mut cpus: Vec<u32> = cpus.into_iter().take(MOST_CPUS).collect();
        cpus.sort_unstable();
        left_out.calls = request.missed_calls;
        let most = MOST_SLICES / (threads.len() + 2 * cpus.len()).max(1);
        let mut kept = SliceLimiter::new(most);
        let wakes = request.slow.as_ref().map_or_else(Vec::new, |slow| self.wakes(slow, &threads));
        let mut threads: Vec<_> = threads
            .into_iter()
            .map(|(who, role)| self.thread(who, role, request.slow.as_ref(), &mut kept))
            .collect();
        if request.slow.is_none() {
            number_pairs(&mut threads, &hops);
        }
        let cpus = cpus.into_iter().map(|cpu| self.cpu(cpu, &mut kept)).collect();
        left_out.slices = kept.dropped();
        let call = request.slow.as_ref().map(|slow| (slow.debug_id, slow.begin_ns));
        let (from, to, zero) = (self.from, self.to, request.zero);
        PictureData { from, to, zero, call, threads, cpus, hops, wakes, left_out }
    }

    /// Threads known to take part before nested calls are added: caller, server, threads of the segments, and those that
    /// they waited for.
    fn participants(&self, request: &Request) -> Vec<(ThreadInfo, Role)> {
        let Some(slow) = &request.slow else { return Vec::new() };
        let mut threads = vec![(slow.caller.clone(), Role::Caller)];
        threads.extend(slow.server.clone().map(|server| (server, Role::Server)));
        for part in &slow.parts {
            if part.tid > 0 && !threads.iter().any(|(who, _)| who.tid == part.tid) {
                let known = self.history.thread(part.tid);
                let (comm, prio) = known.map_or((Name::NONE, None), |thread| (thread.comm, thread.prio));
                threads.push((self.people.thread(part.tid, comm, prio), Role::Further));
            }
        }
        for step in &slow.path {
            if !threads.iter().any(|(who, _)| who.tid == step.tid) {
                let prio = self.history.thread(step.tid).and_then(|thread| thread.prio);
                let who =
                    ThreadInfo { comm: step.comm.clone(), ..self.people.thread(step.tid, Name::NONE, prio) };
                threads.push((who, Role::Further));
            }
        }
        threads
    }

    /// Wake-ups of waiting threads of the path by threads that are drawn.
    fn wakes(&self, slow: &SlowCall, threads: &[(ThreadInfo, Role)]) -> Vec<WakeUp> {
        let mut waits: Vec<_> =
            slow.path.iter().filter(|step| step.waits_for.is_some() && step.how != Some(How::Call)).collect();
        waits.sort_by_key(|step| std::cmp::Reverse(step.ns));
        let wake = |step: &PathStep| {
            let end = slow.begin_ns.saturating_add(step.at_ns).saturating_add(step.ns);
            let (waker, at) = self.history.wakes(step.tid, end, end).next()?;
            let drawn = threads.iter().any(|(who, _)| who.tid == waker);
            drawn.then_some(WakeUp { waker, woken: step.tid, at })
        };
        let mut wakes: Vec<WakeUp> = Vec::new();
        for wake in waits.into_iter().take(MOST_WAKES).filter_map(wake) {
            if !wakes.contains(&wake) {
                wakes.push(wake);
            }
        }
        wakes
    }

    fn hop(&self, call: CallTimes) -> Hop {
        let CallTimes { debug_id, caller, server, begin: sent, received, replied, end } = call;
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

    /// When a thread was woken between two times; `to` if it was not.
    fn woken(&self, tid: i32, from: u64, to: u64) -> u64 {
        self.history.wakes(tid, from, to).next().map_or(to, |(_, ts)| ts)
    }

    /// CPUs that these threads used or waited for, in order of first use.
    fn cpus_of(&self, threads: &[(ThreadInfo, Role)], request: &Request) -> Vec<u32> {
        let mut cpus: Vec<u32> = Vec::new();
        let parts = request.slow.iter().flat_map(|slow| slow.parts.iter().filter_map(|part| part.cpu));
        let runs = threads.iter().filter_map(|(who, _)| self.history.thread(who.tid)).flat_map(|thread| {
            thread.run.slices(self.from, self.to).filter_map(|(_, _, run)| match run {
                Some(SchedState::Running { cpu } | SchedState::Runnable { cpu, .. }) => Some(cpu),
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

    fn thread(
        &self,
        who: ThreadInfo,
        role: Role,
        slow: Option<&SlowCall>,
        kept: &mut SliceLimiter,
    ) -> ThreadLane {
        let tid = who.tid;
        let thread = self.history.thread(tid);
        let slices = thread.map(|thread| thread.run.slices(self.from, self.to));
        let slices = slices.into_iter().flatten().map(|(begin, end, run)| Slice {
            begin,
            end,
            what: match (run, slow) {
                (Some(SchedState::Sleeping { .. }), Some(slow)) => {
                    waits_for(slow, tid, begin, end).unwrap_or_else(|| self.activity(run))
                }
                _ => self.activity(run),
            },
        });
        ThreadLane { who, role, pair: 0, slices: kept.longest(slices) }
    }

    fn activity(&self, run: Option<SchedState>) -> ThreadActivity {
        match run {
            Some(SchedState::Running { cpu }) => ThreadActivity::Running(cpu),
            Some(SchedState::Runnable { cpu, .. }) => ThreadActivity::Runnable(cpu),
            Some(SchedState::Sleeping { state, place, slept }) => {
                let what = match slept {
                    SleepReason::Io => "I/O",
                    SleepReason::Futex => "futex",
                    SleepReason::KernelLock => "lock of the kernel",
                    SleepReason::Reclaim => "memory",
                    SleepReason::Frozen => "frozen",
                    SleepReason::Unsaid if state == State::Uninterruptible => "uninterruptible",
                    SleepReason::Unsaid => return ThreadActivity::Sleeping,
                };
                let symbol = self.people.names.text(place.symbol);
                ThreadActivity::Blocked(if symbol.is_empty() {
                    what.to_owned()
                } else {
                    format!("{what}, {symbol}")
                })
            }
            Some(SchedState::Unknown) | None => ThreadActivity::Unknown,
        }
    }

    fn cpu(&self, cpu: u32, kept: &mut SliceLimiter) -> CpuLane {
        let Some(there) = self.history.cpu(cpu) else {
            return CpuLane { cpu, slices: Vec::new(), interrupts: Vec::new() };
        };
        let slices = there.occupant.slices(self.from, self.to);
        let slices = slices.map(|(begin, end, who)| Slice { begin, end, what: self.occupant(who) });
        let slices = kept.longest(slices);
        let interrupts = there.interrupt.slices(self.from, self.to).filter_map(|(begin, end, interrupt)| {
            let what = match interrupt.flatten()? {
                Interrupt::Hard(irq, name) => match self.people.names.text(name) {
                    "" => format!("{irq:?}"),
                    name => name.to_owned(),
                },
                Interrupt::Soft(softirq) => format!("softirq {}", softirq.name()),
            };
            Some(Slice { begin, end, what })
        });
        CpuLane { cpu, slices, interrupts: kept.longest(interrupts) }
    }

    fn occupant(&self, who: Option<Occupant>) -> CpuOccupant {
        match who {
            Some(who) if who.tid == 0 => CpuOccupant::Idle,
            Some(Occupant { tid, comm, prio }) if tid > 0 => {
                CpuOccupant::Task(self.people.thread(tid, comm, prio))
            }
            _ => CpuOccupant::Unknown,
        }
    }
}

/// Whom a thread waited for in this sleep, by the path of the call.
fn waits_for(slow: &SlowCall, tid: i32, begin: u64, end: u64) -> Option<ThreadActivity> {
    let within = |step: &&PathStep| {
        let at = slow.begin_ns.saturating_add(step.at_ns);
        step.tid == tid && step.waits_for.is_some_and(|whom| whom != tid) && begin <= at && at < end
    };
    let whom = slow.path.iter().find(within)?.waits_for?;
    let name = slow.path.iter().find(|step| step.tid == whom).map(|step| step.comm.as_str());
    let name = name.filter(|name| !name.is_empty()).map(|name| format!("{name} {whom}"));
    Some(ThreadActivity::WaitsFor(name.unwrap_or_else(|| whom.to_string())))
}
