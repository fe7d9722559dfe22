//! Analysis of a trace: each slow transaction, and where the time of all transactions went.
//! Not here: rebuilding transactions (`model`), pictures (`picture`).

mod busiest;
mod chain;
mod codes;
mod detail;
mod groups;
mod hints;
mod marks;
mod misses;
mod of_call;
pub(crate) mod overview;
mod samples;
mod slow;
mod sums;
pub(crate) mod text;
mod unfinished;
mod who;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

pub use busiest::CallBurst;
pub use chain::{ChainLink, End, PathStep};
pub use codes::code_name;
pub use detail::InterruptName;
pub use groups::{By, Group};
pub use marks::MarkCost;
pub use misses::ReportedMiss;
pub use of_call::of_call;
pub use overview::cause_words;
pub use samples::{MOST_CALLS, Sampled, SampledGroup, Sampler, UnfinishedCount};
pub use slow::{BlockingTask, CallSegment, InversionDetail, Reason, Role, SlowCall};
pub use sums::{Share, Sum};
pub use unfinished::{FailureInfo, OnewaySpam};
pub(crate) use who::People;
pub use who::ThreadInfo;

use crate::cause::Label;
use crate::event::{Event, Kind, Name, Names};
use crate::model::{Gap, Model, Outcome, Transaction};
use crate::report::Report;
use busiest::BurstFinder;
use groups::Groups;
use marks::Marks;
use misses::Misses;
use sums::Sums;
use unfinished::Unfinished;

/// Maximum number of deadline misses reported one by one; the slowest are kept.
const MOST_MISSES: usize = 256;
/// Maximum number of tasks in [`Analysis::behind`] while reading.
const MOST_TASKS: usize = 1 << 16;

/// Selection of transactions. An empty filter selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Thread or process IDs of the caller or the server.
    pub pids: Vec<i32>,
    /// Substring of the name of the calling or the serving thread, or of its process.
    pub comm: Option<String>,
    /// Only calls that binderperf's own marks name.
    pub own: bool,
    /// Substring of such a mark.
    pub mark: Option<String>,
    /// Also calls of binderperf's own inheritance scenes, which sleep on purpose.
    pub scenes: bool,
    /// Only calls by the first thread of a process, whose waiting a user sees.
    pub main_thread: bool,
}

impl Filter {
    fn is_empty(&self) -> bool {
        *self == Self { scenes: self.scenes, ..Self::default() }
    }

    fn takes(&self, call: &Transaction, names: &Names) -> bool {
        let by_pid = |pid: &i32| {
            let server = call.server.is_some_and(|server| server.tid == *pid);
            call.client.tid == *pid || call.client.tgid == Some(*pid) || call.to_proc == *pid || server
        };
        let by_comm = |comm: &String| {
            let has = |name: Name| names.text(name).contains(comm.as_str());
            let process = |pid: Option<i32>| pid.is_some_and(|pid| has(names.known.process(pid)));
            has(call.client.comm)
                || call.server.is_some_and(|server| has(server.comm))
                || process(call.client.tgid)
                || process(Some(call.to_proc))
        };
        let by_mark =
            |mark: &String| call.label.as_deref().is_some_and(|label| label.contains(mark.as_str()));
        let named = !self.own || call.label.is_some();
        named
            && (!self.main_thread || call.client.tgid == Some(call.client.tid))
            && (self.scenes || !call.scene)
            && self.mark.as_ref().is_none_or(by_mark)
            && (self.pids.is_empty() || self.pids.iter().any(by_pid))
            && self.comm.as_ref().is_none_or(by_comm)
    }
}

/// Options of an analysis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnalysisOptions {
    /// Deadline in nanoseconds; a call that takes longer is a miss.
    pub deadline_ns: Option<u64>,
    /// Number of slowest calls to report one by one.
    pub worst: usize,
    /// Selection of transactions.
    pub filter: Filter,
    /// What the calls of a row of [`Analysis::groups`] have in common; `None`: the method, if the trace names any or has many.
    pub by: Option<By>,
}

/// Number of transactions by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Calls whose reply arrived.
    pub calls: u64,
    /// Calls made while serving another call.
    pub nested: u64,
    /// Calls received on the CPU that they were sent on.
    #[serde(default)]
    pub same_cpu: u64,
    /// Oneway calls that were received.
    pub oneway: u64,
    /// Misses: over the deadline and without missing events, answered or not, or reported by the caller.
    pub missed: u64,
    /// Failed, or receiver dead or frozen.
    pub failed: u64,
    /// Cut off by the end of the trace.
    pub cut: u64,
    /// Of those, the ones that surely had no answer: no events are missing.
    #[serde(default)]
    pub unanswered: u64,
    /// With missing events; not judged.
    pub doubtful: u64,
    /// Calls of binderperf's own inheritance scenes, which are left out of all else unless the filter has them.
    #[serde(default)]
    pub scenes: u64,
}

/// Priority inversion over all calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inversions {
    /// Calls of real-time or deadline callers, the only ones that can be inverted.
    pub urgent_calls: u64,
    /// Urgent calls that were inverted for at least a fifth of their time.
    pub calls: u64,
    /// Nanoseconds of inversion in all urgent calls.
    pub ns: u64,
    /// The call that was inverted longest; `None` without any.
    #[serde(default)]
    pub worst: Option<InvertedCall>,
}

/// An inverted call and what the inversion cost it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvertedCall {
    /// The transaction's `debug_id`.
    pub debug_id: i32,
    /// Thread ID of the caller.
    pub caller: i32,
    /// Nanoseconds of inversion.
    pub ns: u64,
}

/// Result of an analysis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// Time from the first to the last event, in nanoseconds.
    pub span_ns: u64,
    /// Events read.
    pub events: u64,
    /// Events that the kernel lost.
    pub lost: u64,
    /// Gaps of unknown size.
    pub gaps: u64,
    /// CPU time in nanoseconds that the hypervisor gave to others during the recording; `None` if unknown.
    #[serde(default)]
    pub stolen_ns: Option<u64>,
    /// Problems of the trace.
    pub problems: Vec<String>,
    /// Deadline of the options.
    pub deadline_ns: Option<u64>,
    /// Number of transactions by outcome.
    pub counts: Counts,
    /// Calls that were not answered, and oneway calls that nobody had taken, when the trace ended, the oldest first, 64 at
    /// most. Their duration is their age.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<SlowCall>,
    /// Calls that failed, in order of time, 256 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<SlowCall>,
    /// Oneway calls that the driver suspects of being spam.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oneway_spam: Vec<OnewaySpam>,
    /// Where the time of all calls went; only outermost calls unless a filter was set; without oneway calls.
    pub all: Sum,
    /// Where the time of the slowest hundredth went.
    pub slowest: Sum,
    /// Where the time of oneway calls went, from sending to receiving.
    pub oneway: Sum,
    /// What the rows of `groups` have in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// Where the time of calls went by pair, interface or method; the rows with the most time first, those that wait by
    /// design last. Without oneway calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// Tasks that threads waited behind while they worked for a call, the longest first, ten at most.
    pub behind: Vec<BlockingTask>,
    /// Priority inversion over all calls.
    pub inversions: Inversions,
    /// Cost of the embedded driver's marks, if the trace has many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<MarkCost>,
    /// Consecutive calls made by the most pairs.
    #[serde(default)]
    pub busiest: Option<CallBurst>,
    /// The slowest calls and those over the deadline, slowest first.
    pub slow: Vec<SlowCall>,
}

impl Analysis {
    /// Serializes as JSON, ending in a newline.
    ///
    /// # Errors
    /// None in practice: all fields are numbers and texts.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }
}

/// Change of a transaction, caused by one event.
#[derive(Clone, Copy, Debug)]
pub enum TransactionEvent<'c> {
    /// Transaction that ended.
    Ended(&'c Transaction),
    /// Transaction that ended before, and whose caller now reports a miss.
    Missed(&'c Transaction, ReportedMiss),
}

/// Reads a trace's events and analyses them.
#[derive(Clone, Debug)]
pub struct Analyzer {
    options: AnalysisOptions,
    model: Model,
    tally: Tally,
    marks: Marks,
}

#[derive(Clone, Debug, Default)]
struct Tally {
    counts: Counts,
    calls: Sums,
    oneway: Sums,
    groups: Groups,
    behind: HashMap<i32, BlockingTask>,
    inversions: Inversions,
    busiest: BurstFinder,
    kept: Vec<Transaction>,
    missed: Vec<Transaction>,
    unfinished: Unfinished,
    reported: Misses,
}

impl Analyzer {
    /// Creates an analysis without events.
    #[must_use]
    pub fn new(options: AnalysisOptions) -> Self {
        let groups = Groups::new(options.by.unwrap_or_default());
        let tally = Tally { groups, ..Tally::default() };
        Self { options, model: Model::new(), tally, marks: Marks::default() }
    }

    /// Takes the next event, in time order. `names` are the reader's.
    pub fn take(&mut self, event: &Event, names: &Names) {
        self.take_with(event, names, &mut |_| {});
    }

    /// Takes the next event like [`Analyzer::take`]; passes the selected transactions that it ends, and the one that
    /// it reports as a miss, to `met`.
    pub fn take_with(&mut self, event: &Event, names: &Names, met: &mut impl FnMut(TransactionEvent<'_>)) {
        self.marks.take(event);
        let (tally, options) = (&mut self.tally, &self.options);
        self.model.take(event, names, &mut |call| {
            tally.counts.scenes += u64::from(call.scene);
            if options.filter.takes(&call, names) {
                met(TransactionEvent::Ended(&call));
                tally.take(call, options, names);
            }
        });
        tally.unfinished.hear(event, &self.model);
        if tally.handle_miss_mark(event, options, names)
            && let Some((call, reported)) = tally.reported.misses.last()
        {
            met(TransactionEvent::Missed(call, *reported));
        }
        if let (Kind::Lost { .. }, Some(gap)) = (&event.kind, self.model.last_gap().filter(Gap::has_time)) {
            let reported = self.tally.reported.misses.iter_mut().map(|(call, _)| call);
            for call in self.tally.kept.iter_mut().chain(&mut self.tally.missed).chain(reported) {
                call.doubtful |= call.begin < gap.end && call.end > gap.begin;
            }
        }
    }

    /// Ends the trace and passes the selected open transactions to `met`. [`Analyzer::finish`] includes this.
    pub fn end_with(&mut self, names: &Names, met: &mut impl FnMut(TransactionEvent<'_>)) {
        while let Some(call) = self.end_next(names) {
            met(TransactionEvent::Ended(&call));
        }
    }

    /// Ends the trace, and of its selected open transactions the one that began last; `None` if none is left.
    pub fn end_next(&mut self, names: &Names) -> Option<Transaction> {
        let (tally, options) = (&mut self.tally, &self.options);
        while let Some(call) = self.model.end_next(names) {
            tally.counts.scenes += u64::from(call.scene);
            if options.filter.takes(&call, names) {
                tally.take(call.clone(), options, names);
                return Some(call);
            }
        }
        None
    }

    /// Describes a transaction that missed the deadline of the options, or its caller's own (`reported`). `None` if it
    /// missed none.
    #[must_use]
    pub fn describe_miss(
        &self,
        call: &Transaction,
        reported: Option<ReportedMiss>,
        names: &Names,
    ) -> Option<SlowCall> {
        let deadline = self.options.deadline_ns;
        let over = deadline.is_some_and(|deadline| call.is_over(deadline));
        (over || reported.is_some()).then(|| self.describe(call, reported, names))
    }

    fn describe(&self, call: &Transaction, reported: Option<ReportedMiss>, names: &Names) -> SlowCall {
        let mut slow = SlowCall::of(call, (self.options.deadline_ns, reported), &self.model, names);
        slow.verdict = text::sentence(&slow);
        slow
    }

    /// Ends the trace and returns the result; `report` is the reader's.
    #[must_use]
    pub fn finish(mut self, names: &Names, report: &Report) -> Analysis {
        self.end_with(names, &mut |_| {});
        let (mut tally, options) = (std::mem::take(&mut self.tally), &self.options);
        tally.unfinished.sort();
        let mut slow: Vec<(Transaction, Option<ReportedMiss>)> =
            tally.reported.misses.into_iter().map(|(call, reported)| (call, Some(reported))).collect();
        let key = |call: &Transaction| (call.debug_id, call.begin);
        let mut known: HashSet<(i32, u64)> = slow.iter().map(|(call, _)| key(call)).collect();
        for call in keep_slowest(tally.kept, self.options.worst).into_iter().chain(tally.missed) {
            if known.insert(key(&call)) {
                slow.push((call, None));
            }
        }
        slow.sort_by_key(|(call, _)| std::cmp::Reverse(call.ns()));
        // Strays of calls outside the selection do not count.
        let Filter { pids, comm, mark, main_thread, .. } = &options.filter;
        let all = pids.is_empty() && comm.is_none() && mark.is_none() && !main_thread;
        let strays = tally.reported.strays.iter().filter(|_| all);
        let strays =
            strays.map(|words| format!("the trace does not hold the call that this miss was: {words}"));
        let missing = hints::missing(self.model.shown());
        let problems = report.problems.iter().map(ToString::to_string).chain(strays).chain(missing);
        let problems = problems.chain(self.model.left_out().words()).collect();
        let mut behind: Vec<BlockingTask> = tally.behind.into_values().collect();
        behind.sort_by_key(|task| (std::cmp::Reverse(task.ns), task.tid));
        behind.truncate(10);
        let describe_all =
            |calls: &[Transaction]| calls.iter().map(|call| self.describe(call, None, names)).collect();
        let span = self.model.span();
        let by = options.by.or_else(|| tally.groups.are_worth_a_table().then(By::default));
        Analysis {
            span_ns: span.map_or(0, |(begin, end)| end - begin),
            events: report.events,
            lost: report.lost,
            gaps: report.gaps,
            stolen_ns: report.stolen_ns,
            problems,
            deadline_ns: options.deadline_ns,
            counts: tally.counts,
            unanswered: describe_all(&tally.unfinished.waiting),
            failed: describe_all(&tally.unfinished.failed),
            oneway_spam: tally.unfinished.spam(People { model: &self.model, names }),
            all: tally.calls.sum(1.0),
            slowest: tally.calls.sum(0.01),
            oneway: tally.oneway.sum(1.0),
            by,
            groups: by.map_or_else(Vec::new, |_| tally.groups.found(People { model: &self.model, names })),
            behind,
            inversions: tally.inversions,
            marks: self.marks.clone().cost(),
            busiest: tally.busiest.found(),
            slow: slow.iter().map(|(call, reported)| self.describe(call, *reported, names)).collect(),
        }
    }
}

/// The `most` slowest, unordered.
fn keep_slowest(mut calls: Vec<Transaction>, most: usize) -> Vec<Transaction> {
    if calls.len() > most {
        calls.sort_unstable_by_key(|call| std::cmp::Reverse(call.ns()));
        calls.truncate(most);
    }
    calls
}

impl Tally {
    fn take(&mut self, call: Transaction, options: &AnalysisOptions, names: &Names) {
        self.reported.ended(&call);
        if !self.count(&call) {
            self.counts.missed +=
                u64::from(options.deadline_ns.is_some_and(|deadline| call.is_over(deadline)));
            self.unfinished.take(call);
            return;
        }
        if !call.oneway {
            self.groups.add(&call);
        }
        // A nested call's time is part of its outer call, unless that one is not selected.
        let outermost = !call.nested || !options.filter.is_empty();
        let missed = !call.oneway && options.deadline_ns.is_some_and(|deadline| call.ns() > deadline);
        if outermost {
            let sums = if call.oneway { &mut self.oneway } else { &mut self.calls };
            sums.add(&call);
            self.wait_behind(&call, names);
            if !call.oneway {
                self.inversion(&call);
                self.busiest.add(&call);
            }
        }
        if missed {
            self.counts.missed += 1;
            self.missed.push(call.clone());
            if self.missed.len() >= 2 * MOST_MISSES {
                self.missed = keep_slowest(std::mem::take(&mut self.missed), MOST_MISSES);
            }
        }
        if outermost && !call.oneway && options.worst > 0 {
            self.kept.push(call);
            if self.kept.len() >= 4 * options.worst + 64 {
                self.kept = keep_slowest(std::mem::take(&mut self.kept), options.worst);
            }
        }
    }

    /// Handles the mark of a miss, which is valid even where events are missing. Whether this event is one, of a
    /// selected call.
    fn handle_miss_mark(&mut self, event: &Event, options: &AnalysisOptions, names: &Names) -> bool {
        let Some(call) = self.reported.marked(event) else { return false };
        let selected = options.filter.takes(call, names);
        let counted = call.is_sound() && options.deadline_ns.is_some_and(|deadline| call.ns() > deadline);
        self.counts.missed += u64::from(selected && !counted);
        selected
    }

    /// Counts a transaction; returns whether it can be judged.
    fn count(&mut self, call: &Transaction) -> bool {
        let counts = &mut self.counts;
        match call.outcome {
            Outcome::Replied => {
                counts.calls += 1;
                counts.nested += u64::from(call.nested);
                counts.same_cpu += u64::from(call.server_cpu == Some(call.client_cpu));
            }
            Outcome::Delivered => counts.oneway += 1,
            Outcome::Failed | Outcome::Dead | Outcome::Frozen => counts.failed += 1,
            Outcome::Cut => {
                counts.cut += 1;
                counts.unanswered += u64::from(call.is_unanswered());
            }
            Outcome::Unanswered => {}
        }
        counts.doubtful += u64::from(call.doubtful);
        call.is_sound()
    }

    fn inversion(&mut self, call: &Transaction) {
        self.inversions.urgent_calls += u64::from(call.client.prio.is_some_and(|prio| prio.0 < 100));
        let ns = slow::inverted_ns(call);
        if slow::matters(ns, call) {
            self.inversions.calls += 1;
            self.inversions.ns += ns;
            if self.inversions.worst.is_none_or(|worst| worst.ns < ns) {
                let (debug_id, caller) = (call.debug_id, call.client.tid);
                self.inversions.worst = Some(InvertedCall { debug_id, caller, ns });
            }
        }
    }

    fn wait_behind(&mut self, call: &Transaction, names: &Names) {
        for part in &call.parts {
            // The other side of the call, about to leave the CPU, delays nobody.
            let Some(behind) = part.cause.behind().filter(|_| part.cause.label() != Label::Handover) else {
                continue;
            };
            let room = self.behind.len() < MOST_TASKS;
            match self.behind.entry(behind.tid) {
                Entry::Occupied(mut task) => task.get_mut().ns += part.ns(),
                Entry::Vacant(place) if room => {
                    place.insert(BlockingTask::of(behind, part, names));
                }
                Entry::Vacant(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
