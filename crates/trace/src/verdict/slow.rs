//! Room: one slow transaction as it is told: who, how long, the reasons by weight, priority inversion.
//! Not here: sentences (`text`).

use serde::{Deserialize, Serialize};

use super::sums::ratio;
use super::told::Told;
use crate::cause::{Behind, Cause, Inversion, Part};
use crate::event::{Name, Names, Place, Prio};
use crate::model::{Model, Outcome, Peer, Transaction};

/// Programs whose own running disturbs what they record.
const TRACERS: [&str; 6] = ["trace-cmd", "atrace", "traced", "traced_probes", "perfetto", "bp-recorder"];

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// Its number.
    pub tid: i32,
    /// Its name; empty where the trace does not know it.
    pub comm: String,
    /// The kernel's priority: 0 to 99 real-time, 100 to 139 by nice value.
    pub prio: Option<i32>,
}

/// A task that others waited behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// Its number; -1 where the trace does not show who it was.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// The kernel's priority.
    pub prio: Option<i32>,
    /// The CPU.
    pub cpu: Option<u32>,
    /// For how long, in nanoseconds.
    pub ns: u64,
}

impl Before {
    pub(super) fn of(behind: Behind, part: &Part, names: &Names) -> Self {
        Self {
            tid: behind.tid,
            comm: names.text(behind.comm).to_owned(),
            prio: behind.prio.map(|prio| prio.0),
            cpu: part.cpu,
            ns: part.ns(),
        }
    }
}

/// One reason of a transaction's duration: all its parts with that cause and that thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The cause's name.
    pub cause: String,
    /// How long, in nanoseconds.
    pub ns: u64,
    /// Of the transaction, 0 to 1.
    pub share: f64,
    /// The thread that worked, waited or was waited for.
    pub who: Option<Who>,
    /// `caller`, `server`, or `thread` for another one.
    pub role: String,
    /// The CPUs where.
    pub cpus: Vec<u32>,
    /// Behind whom, the longest first.
    pub behind: Vec<Before>,
    /// What else is known: an interrupt's name, a kernel function, a call's number.
    pub detail: Option<String>,
}

/// Priority inversion in one transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inverted {
    /// For how long.
    pub ns: u64,
    /// The thread that worked for the caller and had a lower priority than that.
    pub waiter: Who,
    /// Behind whom, the longest first.
    pub behind: Vec<Before>,
}

/// A part, for a timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// From the transaction's beginning, in nanoseconds.
    pub at_ns: u64,
    /// How long.
    pub ns: u64,
    /// The cause's name.
    pub cause: String,
    /// The thread.
    pub tid: i32,
    /// The CPU.
    pub cpu: Option<u32>,
    /// The task that it waited behind.
    pub behind: Option<i32>,
    /// How deep in nested calls.
    pub depth: u8,
}

/// A slow transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// The driver's number.
    pub debug_id: i32,
    /// What binderperf's own mark said of it.
    pub label: Option<String>,
    /// The call's code.
    pub code: u32,
    /// When it began, in nanoseconds of the trace's clock.
    pub begin_ns: u64,
    /// How long it took.
    pub ns: u64,
    /// When the server had it, from the beginning.
    #[serde(default)]
    pub received_ns: Option<u64>,
    /// When the server answered, from the beginning.
    #[serde(default)]
    pub replied_ns: Option<u64>,
    /// The deadline that was asked for.
    pub deadline_ns: Option<u64>,
    /// Whether it took longer than that, or its caller told of a miss.
    pub missed: bool,
    /// What the caller itself told of the miss.
    #[serde(default)]
    pub told: Option<Told>,
    /// Who called.
    pub caller: Who,
    /// Its process, where the trace knows it.
    pub caller_process: Option<i32>,
    /// Who served.
    pub server: Option<Who>,
    /// The process called.
    pub server_process: i32,
    /// The CPUs on which it was sent and received, if those are two.
    #[serde(default)]
    pub crossed: Option<(u32, u32)>,
    /// `replied`, `delivered`, `failed`, `dead`, `frozen`, `unanswered`, `cut`.
    pub outcome: String,
    /// Events are missing; nothing should be concluded.
    pub doubtful: bool,
    /// It was made while serving another.
    pub nested: bool,
    /// The reasons, the heaviest first. Together they are the whole duration.
    pub reasons: Vec<Reason>,
    /// Priority inversion, if it was a fifth of the duration or more.
    pub inversion: Option<Inverted>,
    /// Boosted, or urgent by itself, and still not let in before less urgent tasks, in nanoseconds.
    pub late_preemption_ns: u64,
    /// Nanoseconds on a CPU below its highest frequency, and that frequency in kHz.
    pub slow_clock: Option<(u64, u32)>,
    /// The parts in their order.
    pub parts: Vec<Moment>,
    /// All that in a sentence or two.
    pub verdict: String,
}

/// The cause's name in results. Some are only visible with the whole transaction at hand.
pub(crate) fn label(part: &Part, call: &Transaction, names: &Names) -> &'static str {
    let tracer = |behind: Behind| TRACERS.contains(&names.text(behind.comm));
    if part.cause.behind().is_some_and(tracer) {
        "tracing"
    } else if is_handover(part, call) {
        "handover"
    } else {
        match part.cause {
            // In a call that the server makes meanwhile, the names are those of the call that it serves.
            Cause::ClientRunning | Cause::ServerRunning if part.tid == call.client.tid => "client_running",
            Cause::ClientRunning => "server_running",
            cause => cause.name(),
        }
    }
}

/// The two sides of a call share a CPU, and the one that has done its part has not left it yet.
pub(super) fn is_handover(part: &Part, call: &Transaction) -> bool {
    let peers = [Some(call.client.tid), call.server.map(|server| server.tid)];
    part.depth == 0 && part.cause.behind().is_some_and(|behind| peers.contains(&Some(behind.tid)))
}

/// How long a transaction suffered from priority inversion.
pub(super) fn inverted_ns(call: &Transaction) -> u64 {
    suffered(call, Inversion::NotBoosted).map(Part::ns).sum()
}

/// A fifth of the duration, or more: less did not make the call slow.
pub(super) fn matters(ns: u64, call: &Transaction) -> bool {
    ns > 0 && ns >= call.ns() / 5
}

fn suffered(call: &Transaction, what: Inversion) -> impl Iterator<Item = &Part> {
    call.parts.iter().filter(move |part| {
        !is_handover(part, call) && part.inversion(call.client.tid, call.client.prio) == Some(what)
    })
}

impl Slow {
    pub(super) fn of(
        call: &Transaction,
        (deadline_ns, told): (Option<u64>, Option<Told>),
        model: &Model,
        names: &Names,
    ) -> Self {
        let teller = Teller { call, model, names };
        let mut slow = Self {
            debug_id: call.debug_id,
            label: call.label.as_deref().map(ToOwned::to_owned),
            code: call.code,
            begin_ns: call.begin,
            ns: call.ns(),
            received_ns: call.received.map(|at| at.saturating_sub(call.begin)),
            replied_ns: call.replied.map(|at| at.saturating_sub(call.begin)),
            deadline_ns,
            missed: told.is_some()
                || deadline_ns.is_some_and(|deadline| call.ns() > deadline) && !call.doubtful,
            told,
            caller: teller.peer(call.client),
            caller_process: call.client.tgid,
            server: call.server.map(|server| teller.peer(server)),
            server_process: call.to_proc,
            crossed: call.crossed(),
            outcome: outcome(call.outcome).to_owned(),
            doubtful: call.doubtful,
            nested: call.nested,
            reasons: teller.reasons(),
            inversion: teller.inversion(),
            late_preemption_ns: suffered(call, Inversion::LatePreemption).map(Part::ns).sum(),
            slow_clock: call.slow_clock.map(|slow| (slow.ns, slow.khz)),
            parts: call.parts.iter().map(|part| teller.moment(part)).collect(),
            verdict: String::new(),
        };
        slow.verdict = super::text::sentence(&slow);
        slow
    }
}

pub(crate) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Replied => "replied",
        Outcome::Delivered => "delivered",
        Outcome::Failed => "failed",
        Outcome::Dead => "dead",
        Outcome::Frozen => "frozen",
        Outcome::Unanswered => "unanswered",
        Outcome::Cut => "cut",
    }
}

struct Teller<'a> {
    call: &'a Transaction,
    model: &'a Model,
    names: &'a Names,
}

impl Teller<'_> {
    fn peer(&self, peer: Peer) -> Who {
        self.who(peer.tid, peer.comm, peer.prio)
    }

    fn who(&self, tid: i32, comm: Name, prio: Option<Prio>) -> Who {
        Who { tid, comm: self.names.text(comm).to_owned(), prio: prio.map(|prio| prio.0) }
    }

    fn moment(&self, part: &Part) -> Moment {
        Moment {
            at_ns: part.begin - self.call.begin,
            ns: part.ns(),
            cause: label(part, self.call, self.names).to_owned(),
            tid: part.tid,
            cpu: part.cpu,
            behind: part.cause.behind().map(|behind| behind.tid),
            depth: part.depth,
        }
    }

    fn detail(&self, cause: &Cause) -> Option<String> {
        let place = |place: &Place| match self.names.text(place.symbol) {
            "" => (place.address != 0).then(|| format!("{:#x}", place.address)),
            symbol => Some(symbol.to_owned()),
        };
        match cause {
            Cause::Interrupt { irq, name } => Some(match self.names.text(*name) {
                "" => format!("{irq:?}"),
                name => name.to_owned(),
            }),
            Cause::SoftInterrupt(softirq) => Some(softirq.name().to_owned()),
            Cause::IdleExit { state } => Some(state.to_string()),
            Cause::NoFreeThread { busy_with } => busy_with.map(|call| call.to_string()),
            Cause::Thread { waker, comm } => {
                let comm = self.names.text(*comm);
                Some(format!("{comm}{}{waker}", if comm.is_empty() { "" } else { " " }))
            }
            Cause::WrongCpu { idle_cpu, .. } => Some(format!("cpu{idle_cpu}")),
            Cause::Contention(sort) => Some(sort.name().to_owned()),
            Cause::KernelLock(at) | Cause::Uninterruptible(at) | Cause::Sleeping(at) => place(at),
            _ => None,
        }
    }

    fn reasons(&self) -> Vec<Reason> {
        let mut reasons: Vec<Reason> = Vec::new();
        for part in &self.call.parts {
            let cause = label(part, self.call, self.names);
            let detail = self.detail(&part.cause);
            let same = |reason: &Reason| {
                let tid = reason.who.as_ref().map_or(0, |who| who.tid);
                reason.cause == cause && reason.detail == detail && tid == part.tid.max(0)
            };
            let index = reasons.iter().position(same).unwrap_or(reasons.len());
            if index == reasons.len() {
                reasons.push(self.reason(part, cause, detail));
            }
            let reason = &mut reasons[index];
            reason.ns += part.ns();
            if let Some(cpu) = part.cpu.filter(|cpu| !reason.cpus.contains(cpu)) {
                reason.cpus.push(cpu);
            }
            if let Some(behind) = part.cause.behind() {
                add_behind(&mut reason.behind, Before::of(behind, part, self.names));
            }
        }
        for reason in &mut reasons {
            reason.share = ratio(reason.ns, self.call.ns());
        }
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.ns));
        reasons
    }

    fn reason(&self, part: &Part, cause: &str, detail: Option<String>) -> Reason {
        let server = self.call.server.map(|server| server.tid);
        let role = match part.tid {
            tid if tid == self.call.client.tid => "caller",
            tid if Some(tid) == server => "server",
            _ => "thread",
        };
        let who = (part.tid > 0).then(|| self.who(part.tid, self.model.name_of(part.tid), part.prio));
        Reason {
            cause: cause.to_owned(),
            ns: 0,
            share: 0.0,
            who,
            role: role.to_owned(),
            cpus: Vec::new(),
            behind: Vec::new(),
            detail,
        }
    }

    fn inversion(&self) -> Option<Inverted> {
        let ns = inverted_ns(self.call);
        if !matters(ns, self.call) {
            return None;
        }
        let mut behind = Vec::new();
        let mut longest: Option<&Part> = None;
        for part in suffered(self.call, Inversion::NotBoosted) {
            if let Some(task) = part.cause.behind() {
                add_behind(&mut behind, Before::of(task, part, self.names));
            }
            longest = longest.filter(|longest| longest.ns() >= part.ns()).or(Some(part));
        }
        let waiter = longest?;
        let waiter = self.who(waiter.tid, self.model.name_of(waiter.tid), waiter.prio);
        Some(Inverted { ns, waiter, behind })
    }
}

/// Adds a wait to those behind the same task; the longest stands first.
fn add_behind(all: &mut Vec<Before>, new: Before) {
    match all.iter_mut().find(|known| known.tid == new.tid && known.cpu == new.cpu) {
        Some(known) => known.ns += new.ns,
        None => all.push(new),
    }
    all.sort_by_key(|task| std::cmp::Reverse(task.ns));
}
