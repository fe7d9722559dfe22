//! Report of one slow transaction: threads, duration, reasons by weight, priority inversion.
//! Not here: sentences (`text`).

use serde::{Deserialize, Serialize};

use super::chain::{ChainLink, PathStep, ended_by, heaviest, steps};
use super::codes::code_name;
use super::detail::{Details, Doing, InterruptName};
use super::misses::ReportedMiss;
use super::unfinished::FailureInfo;
use super::who::ThreadInfo;
use crate::cause::{CpuHolder, Inversion, Label, Segment, SliceName};
use crate::event::{Name, Names};
use crate::model::{Model, Outcome, Peer, Transaction};

/// Maximum number of slices that are compared for the one that a reason's time was spent in.
const MOST_SLICES: usize = 32;

/// Role of a thread in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It made the call.
    Caller,
    /// It served it.
    Server,
    /// It served a nested call, or was waited for.
    #[serde(rename = "thread")]
    Further,
}

impl Role {
    /// The role as a word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Server => "server",
            Self::Further => "thread",
        }
    }
}

/// Task that threads waited behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockingTask {
    /// Thread ID; -1 if unknown.
    pub tid: i32,
    /// Name; empty if unknown.
    pub comm: String,
    /// Kernel priority.
    pub prio: Option<i32>,
    /// CPU on which they waited.
    pub cpu: Option<u32>,
    /// Duration of the wait in nanoseconds.
    pub ns: u64,
}

impl BlockingTask {
    pub(super) fn of(behind: CpuHolder, part: &Segment, names: &Names) -> Self {
        Self {
            tid: behind.tid,
            comm: names.text(behind.comm).to_owned(),
            prio: behind.prio.map(|prio| prio.0),
            cpu: part.cpu,
            ns: part.ns(),
        }
    }
}

/// Reason of a transaction's duration: all its segments with one cause and thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The cause.
    pub cause: Label,
    /// Duration in nanoseconds.
    pub ns: u64,
    /// Share of the transaction, 0 to 1.
    pub share: f64,
    /// Thread that worked, waited or was waited for.
    pub who: Option<ThreadInfo>,
    /// Role of that thread.
    pub role: Role,
    /// CPUs involved.
    pub cpus: Vec<u32>,
    /// Tasks waited behind, the longest first.
    pub behind: Vec<BlockingTask>,
    /// Further detail: an interrupt's name, a kernel function, a call's number.
    pub detail: Option<String>,
    /// Slice that the thread was in for most of the time, if it says more than the called method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
    /// Whom the thread waited for, and whom that one waited for: the heaviest chain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<ChainLink>,
    /// The interrupt that ended the longest of its waits, if nobody was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<InterruptName>,
}

/// Priority inversion in one transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InversionDetail {
    /// Duration in nanoseconds.
    pub ns: u64,
    /// Thread that worked for the caller at a lower priority.
    pub waiter: ThreadInfo,
    /// Tasks waited behind, the longest first.
    pub behind: Vec<BlockingTask>,
}

/// Segment of a transaction, for a timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSegment {
    /// Nanoseconds from the transaction's begin.
    pub at_ns: u64,
    /// Duration in nanoseconds.
    pub ns: u64,
    /// The cause.
    pub cause: Label,
    /// Thread ID.
    pub tid: i32,
    /// CPU number.
    pub cpu: Option<u32>,
    /// Task that it waited behind.
    pub behind: Option<i32>,
    /// Nesting depth.
    pub depth: u8,
}

/// Report of a slow transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowCall {
    /// `debug_id` of the transaction.
    pub debug_id: i32,
    /// Words of binderperf's own mark.
    pub label: Option<String>,
    /// Called node; 0 if unknown.
    #[serde(default)]
    pub node: i32,
    /// Transaction code.
    pub code: u32,
    /// Name of a code that means the same for every interface, such as `PING`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_name: Option<String>,
    /// The called method, `INTERFACE.METHOD`, if a slice of a proxy or a stub names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Begin, in nanoseconds of the trace clock.
    pub begin_ns: u64,
    /// Duration in nanoseconds.
    pub ns: u64,
    /// Nanoseconds from begin until the server received it.
    #[serde(default)]
    pub received_ns: Option<u64>,
    /// Nanoseconds from begin until the server replied.
    #[serde(default)]
    pub replied_ns: Option<u64>,
    /// Deadline of the options.
    pub deadline_ns: Option<u64>,
    /// Whether it missed that deadline, or its caller reported a miss.
    pub missed: bool,
    /// Miss that the caller reported.
    #[serde(rename = "told", default)]
    pub reported_miss: Option<ReportedMiss>,
    /// Calling thread.
    pub caller: ThreadInfo,
    /// Calling process, if known.
    pub caller_process: Option<i32>,
    /// Serving thread.
    pub server: Option<ThreadInfo>,
    /// Called process.
    pub server_process: i32,
    /// Its name; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub server_name: String,
    /// CPUs of sender and receiver, if they differ.
    #[serde(default)]
    pub crossed: Option<(u32, u32)>,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether it is oneway.
    #[serde(default)]
    pub oneway: bool,
    /// The driver's word for a failure, and why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureInfo>,
    /// Numbers of the calls that its receiver's threads served when the trace ended, if none of them took this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind_calls: Vec<i32>,
    /// Events are missing; draw no conclusions.
    pub doubtful: bool,
    /// Whether it was made while serving another call.
    pub nested: bool,
    /// Reasons, the heaviest first; they add up to the duration.
    pub reasons: Vec<Reason>,
    /// Priority inversion of at least a fifth of the duration.
    pub inversion: Option<InversionDetail>,
    /// Late preemption in nanoseconds: the thread was urgent enough, yet a less urgent task kept the CPU.
    pub late_preemption_ns: u64,
    /// Nanoseconds on a CPU below its highest frequency, and the lowest such frequency in kHz.
    pub slow_clock: Option<(u64, u32)>,
    /// Segments in order.
    pub parts: Vec<CallSegment>,
    /// Whom the threads of the call waited for: chains of the waits among `parts`, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<PathStep>,
    /// Summary in a sentence or two.
    pub verdict: String,
}

/// Nanoseconds of priority inversion in a transaction.
pub(super) fn inverted_ns(call: &Transaction) -> u64 {
    suffered(call, Inversion::NotBoosted).map(Segment::ns).sum()
}

/// Whether it is at least a fifth of the duration; less did not make the call slow.
pub(super) fn matters(ns: u64, call: &Transaction) -> bool {
    ns > 0 && ns >= call.ns() / 5
}

fn suffered(call: &Transaction, what: Inversion) -> impl Iterator<Item = &Segment> {
    call.parts.iter().filter(move |part| part.inversion(call.client.tid, call.client.prio) == Some(what))
}

impl SlowCall {
    /// Report without its sentence.
    pub(super) fn of(
        call: &Transaction,
        (deadline_ns, reported): (Option<u64>, Option<ReportedMiss>),
        model: &Model,
        names: &Names,
    ) -> Self {
        let teller = SlowCallBuilder { call, names, details: Details { model, names } };
        Self {
            debug_id: call.debug_id,
            label: call.label.as_deref().map(ToOwned::to_owned),
            node: call.node,
            code: call.code,
            code_name: code_name(call.code).map(str::to_owned),
            method: call.method.as_ref().map(ToString::to_string),
            begin_ns: call.begin,
            ns: call.ns(),
            received_ns: call.received.map(|at| at.saturating_sub(call.begin)),
            replied_ns: call.replied.map(|at| at.saturating_sub(call.begin)),
            deadline_ns,
            missed: reported.is_some() || deadline_ns.is_some_and(|deadline| call.is_over(deadline)),
            reported_miss: reported,
            caller: teller.peer(call.client),
            caller_process: teller.details.people().pid(call.client.tid).or(call.client.tgid),
            server: call.server.map(|server| teller.peer(server)),
            server_process: call.to_proc,
            server_name: teller.details.people().process(call.to_proc).unwrap_or_default(),
            crossed: call.crossed(),
            outcome: call.outcome,
            oneway: call.oneway,
            failure: FailureInfo::of(call),
            behind_calls: call.behind.clone(),
            doubtful: call.doubtful,
            nested: call.nested,
            reasons: teller.reasons(),
            inversion: teller.inversion(),
            late_preemption_ns: suffered(call, Inversion::LatePreemption).map(Segment::ns).sum(),
            slow_clock: call.slow_clock.map(|slow| (slow.ns, slow.khz)),
            parts: call.parts.iter().map(|part| teller.moment(part)).collect(),
            path: steps(&teller.details, call),
            verdict: String::new(),
        }
    }
}

struct SlowCallBuilder<'a> {
    call: &'a Transaction,
    names: &'a Names,
    details: Details<'a>,
}

/// Segments of one reason.
#[derive(Default)]
struct Made {
    begins: Vec<u64>,
    /// Slices, each with its time.
    slices: Vec<(SliceName, u64)>,
}

impl SlowCallBuilder<'_> {
    fn peer(&self, Peer { tid, comm, prio, .. }: Peer) -> ThreadInfo {
        self.details.people().thread(tid, comm, prio)
    }

    /// Thread that a segment is about.
    fn worker(&self, part: &Segment) -> ThreadInfo {
        self.details.people().thread(part.tid, Name::NONE, part.prio)
    }

    fn moment(&self, part: &Segment) -> CallSegment {
        CallSegment {
            at_ns: part.begin - self.call.begin,
            ns: part.ns(),
            cause: part.cause.label(),
            tid: part.tid,
            cpu: part.cpu,
            behind: part.cause.behind().map(|behind| behind.tid),
            depth: part.depth,
        }
    }

    fn reasons(&self) -> Vec<Reason> {
        let mut reasons: Vec<Reason> = Vec::new();
        let mut made: Vec<Made> = Vec::new();
        for part in &self.call.parts {
            let cause = part.cause.label();
            let detail = self.details.of(&part.cause);
            let same = |reason: &Reason| {
                let tid = reason.who.as_ref().map_or(0, |who| who.tid);
                reason.cause == cause && reason.detail == detail && tid == part.tid.max(0)
            };
            let index = reasons.iter().position(same).unwrap_or(reasons.len());
            if index == reasons.len() {
                reasons.push(self.reason(part, cause, detail));
                made.push(Made::default());
            }
            made[index].add(part);
            let reason = &mut reasons[index];
            reason.ns += part.ns();
            if let Some(cpu) = part.cpu.filter(|cpu| !reason.cpus.contains(cpu)) {
                reason.cpus.push(cpu);
            }
            if let Some(behind) = part.cause.behind() {
                add_behind(&mut reason.behind, BlockingTask::of(behind, part, self.names));
            }
        }
        for (reason, made) in reasons.iter_mut().zip(&made) {
            reason.share = ratio(reason.ns, self.call.ns());
            reason.chain = heaviest(&self.details, &self.call.links, &made.begins);
            if reason.chain.is_empty() {
                reason.ended_by = ended_by(&self.details, &self.call.links, &made.begins);
            }
            reason.doing = self.details.doing(made.slice()).and_then(|doing| match doing {
                Doing::Slice(name) => Some(name),
                Doing::Method(_) => None,
            });
        }
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.ns));
        reasons
    }

    fn reason(&self, part: &Segment, cause: Label, detail: Option<String>) -> Reason {
        let server = self.call.server.map(|server| server.tid);
        let role = match part.tid {
            tid if tid == self.call.client.tid => Role::Caller,
            tid if Some(tid) == server => Role::Server,
            _ => Role::Further,
        };
        let who = (part.tid > 0).then(|| self.worker(part));
        Reason {
            cause,
            ns: 0,
            share: 0.0,
            who,
            role,
            cpus: Vec::new(),
            behind: Vec::new(),
            detail,
            doing: None,
            chain: Vec::new(),
            ended_by: None,
        }
    }

    fn inversion(&self) -> Option<InversionDetail> {
        let ns = inverted_ns(self.call);
        if !matters(ns, self.call) {
            return None;
        }
        let mut behind = Vec::new();
        let mut longest: Option<&Segment> = None;
        for part in suffered(self.call, Inversion::NotBoosted) {
            if let Some(task) = part.cause.behind() {
                add_behind(&mut behind, BlockingTask::of(task, part, self.names));
            }
            longest = longest.filter(|longest| longest.ns() >= part.ns()).or(Some(part));
        }
        Some(InversionDetail { ns, waiter: self.worker(longest?), behind })
    }
}

impl Made {
    fn add(&mut self, part: &Segment) {
        self.begins.push(part.begin);
        let room = self.slices.len() < MOST_SLICES;
        match self.slices.iter_mut().find(|(name, _)| *name == part.slice) {
            Some((_, ns)) => *ns += part.ns(),
            None if room => self.slices.push((part.slice, part.ns())),
            None => {}
        }
    }

    /// The slice with the most time.
    fn slice(&self) -> SliceName {
        self.slices.iter().max_by_key(|(_, ns)| *ns).map_or(SliceName::NONE, |(name, _)| *name)
    }
}

/// Adds a wait to those behind the same task; the longest one comes first.
fn add_behind(all: &mut Vec<BlockingTask>, new: BlockingTask) {
    match all.iter_mut().find(|known| known.tid == new.tid && known.cpu == new.cpu) {
        Some(known) => known.ns += new.ns,
        None => all.push(new),
    }
    all.sort_by_key(|task| std::cmp::Reverse(task.ns));
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no 64 bits")]
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
