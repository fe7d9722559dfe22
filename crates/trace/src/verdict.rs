//! Room: what a trace says about its transactions: the slow ones one by one, and where the time of all went.
//! Not here: rebuilding transactions (`model`), pictures (`picture`).

mod busiest;
mod slow;
mod sums;
pub(crate) mod text;
mod told;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::{Deserialize, Serialize};

pub use busiest::Stretch;
pub use slow::{Before, Inverted, Moment, Reason, Slow, Who};
pub(crate) use slow::{label, outcome};
pub use sums::{Share, Sum};
pub use told::Told;

use crate::event::{Event, Kind, Name, Names};
use crate::model::{Model, Outcome, Transaction};
use crate::report::Report;
use busiest::Busiest;
use sums::Sums;
use told::Misses;

/// The most transactions over the deadline that are told one by one; the slowest of them are kept.
const MOST_MISSES: usize = 256;
/// The most tasks that are told apart in [`Analysis::behind`] while reading.
const MOST_TASKS: usize = 1 << 16;

/// Which transactions count. An empty filter takes all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Threads or processes, of the caller or of the server.
    pub pids: Vec<i32>,
    /// Part of the caller's or the server's name.
    pub comm: Option<String>,
    /// Only calls that binderperf's own marks name.
    pub own: bool,
    /// Part of what such a mark says.
    pub mark: Option<String>,
}

impl Filter {
    fn is_empty(&self) -> bool {
        self.pids.is_empty() && self.comm.is_none() && !self.own && self.mark.is_none()
    }

    fn takes(&self, call: &Transaction, names: &Names) -> bool {
        let by_pid = |pid: &i32| {
            let server = call.server.is_some_and(|server| server.tid == *pid);
            call.client.tid == *pid || call.client.tgid == Some(*pid) || call.to_proc == *pid || server
        };
        let by_comm = |comm: &String| {
            let has = |name: Name| names.text(name).contains(comm.as_str());
            has(call.client.comm) || call.server.is_some_and(|server| has(server.comm))
        };
        let by_mark =
            |mark: &String| call.label.as_deref().is_some_and(|label| label.contains(mark.as_str()));
        let named = !self.own || call.label.is_some();
        named
            && self.mark.as_ref().is_none_or(by_mark)
            && (self.pids.is_empty() || self.pids.iter().any(by_pid))
            && self.comm.as_ref().is_none_or(by_comm)
    }
}

/// What is asked of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// A call that takes longer is a miss, in nanoseconds.
    pub deadline_ns: Option<u64>,
    /// How many of the slowest calls to tell one by one.
    pub worst: usize,
    /// Which transactions count.
    pub filter: Filter,
}

/// How many transactions there were, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Calls whose reply arrived.
    pub calls: u64,
    /// Of them, made while serving another call.
    pub nested: u64,
    /// Of the calls, received on the CPU that they were sent on.
    #[serde(default)]
    pub same_cpu: u64,
    /// Oneway calls that were received.
    pub oneway: u64,
    /// Over the deadline that was asked for, without the doubtful ones, or told by the test itself.
    pub missed: u64,
    /// Failed, or to the dead or frozen.
    pub failed: u64,
    /// Cut off by the end of the trace.
    pub cut: u64,
    /// Missing events, so that they are not judged.
    pub doubtful: u64,
}

/// Calls of urgent callers that waited behind less urgent tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inversions {
    /// Calls with a caller of real-time or deadline priority: the only ones that can be inverted.
    pub urgent_calls: u64,
    /// Of them, inverted for at least a fifth of their time.
    pub calls: u64,
    /// Nanoseconds of inversion in all of them.
    pub ns: u64,
}

/// A trace's whole answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// From the first event to the last, in nanoseconds.
    pub span_ns: u64,
    /// Events read.
    pub events: u64,
    /// Events that the kernel lost.
    pub lost: u64,
    /// Gaps of unknown size.
    pub gaps: u64,
    /// What was wrong with the trace.
    pub problems: Vec<String>,
    /// The deadline that was asked for.
    pub deadline_ns: Option<u64>,
    /// How many there were.
    pub counts: Counts,
    /// Where the time of all calls went, outermost calls only unless a filter was set; oneway calls apart.
    pub all: Sum,
    /// The same of the slowest hundredth.
    pub slowest: Sum,
    /// Of oneway calls, from sending to receiving.
    pub oneway: Sum,
    /// Tasks that threads at work for a call waited behind, the longest first, ten at most.
    pub behind: Vec<Before>,
    /// Priority inversion in all calls.
    pub inversions: Inversions,
    /// The calls in a row that the most pairs made at once.
    #[serde(default)]
    pub busiest: Option<Stretch>,
    /// The slowest, and those over the deadline; the slowest first.
    pub slow: Vec<Slow>,
}

impl Analysis {
    /// All of it as JSON, ending in a newline.
    ///
    /// # Errors
    /// None that could be met: these are numbers and texts.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }
}

/// What an event made of transactions.
#[derive(Clone, Copy, Debug)]
pub enum Met<'c> {
    /// This one ended.
    Ended(&'c Transaction),
    /// This one, which ended before, was a miss as its caller tells.
    Missed(&'c Transaction, Told),
}

/// Reads a trace to its end and answers.
#[derive(Clone, Debug)]
pub struct Analyst {
    question: Question,
    model: Model,
    tally: Tally,
}

#[derive(Clone, Debug, Default)]
struct Tally {
    counts: Counts,
    calls: Sums,
    oneway: Sums,
    behind: HashMap<i32, Before>,
    inversions: Inversions,
    busiest: Busiest,
    kept: Vec<Transaction>,
    missed: Vec<Transaction>,
    told: Misses,
}

impl Analyst {
    /// One that has read nothing.
    #[must_use]
    pub fn new(question: Question) -> Self {
        let tally = Tally { told: Misses::keeping(MOST_MISSES), ..Tally::default() };
        Self { question, model: Model::new(), tally }
    }

    /// Takes the next event, in the order of their times. `names` are the reader's.
    pub fn take(&mut self, event: &Event, names: &Names) {
        self.take_with(event, names, &mut |_| {});
    }

    /// As [`Analyst::take`]; `met` gets the transactions that were asked for and end with this event, and the
    /// one that this event says was a miss.
    pub fn take_with(&mut self, event: &Event, names: &Names, met: &mut impl FnMut(Met<'_>)) {
        let (tally, question) = (&mut self.tally, &self.question);
        self.model.take(event, names, &mut |call| {
            if question.filter.takes(&call, names) {
                met(Met::Ended(&call));
                tally.take(call, question, names);
            }
        });
        if tally.tell(event, question, names)
            && let Some((call, told)) = tally.told.told.last()
        {
            met(Met::Missed(call, *told));
        }
        if let (Kind::Lost { .. }, Some(gap)) = (&event.kind, self.model.last_gap()) {
            let told = self.tally.told.told.iter_mut().map(|(call, _)| call);
            for call in self.tally.kept.iter_mut().chain(&mut self.tally.missed).chain(told) {
                call.doubtful |= call.begin < gap.end && call.end > gap.begin;
            }
        }
    }

    /// The trace has ended, and with it what is open; `met` gets those transactions that were asked for.
    /// [`Analyst::finish`] does this, too, for whoever does not want them.
    pub fn end_with(&mut self, names: &Names, met: &mut impl FnMut(Met<'_>)) {
        let (tally, question) = (&mut self.tally, &self.question);
        self.model.finish(&mut |call| {
            if question.filter.takes(&call, names) {
                met(Met::Ended(&call));
                tally.take(call, question, names);
            }
        });
    }

    /// What there is to tell of a transaction that was a miss: over the deadline that was asked for, or by what
    /// its caller told. `None` of any other.
    #[must_use]
    pub fn tell_miss(&self, call: &Transaction, told: Option<Told>, names: &Names) -> Option<Slow> {
        let deadline = self.question.deadline_ns;
        let over = !call.oneway && call.is_sound() && deadline.is_some_and(|deadline| call.ns() > deadline);
        (over || told.is_some()).then(|| Slow::of(call, (deadline, told), &self.model, names))
    }

    /// The trace has ended; `report` is what its reader came to.
    #[must_use]
    pub fn finish(mut self, names: &Names, report: &Report) -> Analysis {
        self.end_with(names, &mut |_| {});
        let (tally, question) = (self.tally, &self.question);
        let mut slow: Vec<(Transaction, Option<Told>)> =
            tally.told.told.into_iter().map(|(call, told)| (call, Some(told))).collect();
        for call in keep_slowest(tally.kept, self.question.worst).into_iter().chain(tally.missed) {
            let known =
                |(known, _): &(Transaction, _)| known.debug_id == call.debug_id && known.begin == call.begin;
            if !slow.iter().any(known) {
                slow.push((call, None));
            }
        }
        slow.sort_by_key(|(call, _)| std::cmp::Reverse(call.ns()));
        // Those of calls that were not asked for are none.
        let all = question.filter.pids.is_empty() && question.filter.comm.is_none();
        let strays = tally.told.strays.iter().filter(|_| all);
        let strays =
            strays.map(|words| format!("the trace does not hold the call that this miss was: {words}"));
        let problems = report.problems.iter().map(ToString::to_string).chain(strays).collect();
        let mut behind: Vec<Before> = tally.behind.into_values().collect();
        behind.sort_by_key(|task| (std::cmp::Reverse(task.ns), task.tid));
        behind.truncate(10);
        let deadline_ns = self.question.deadline_ns;
        let span = self.model.span();
        Analysis {
            span_ns: span.map_or(0, |(begin, end)| end - begin),
            events: report.events,
            lost: report.lost,
            gaps: report.gaps,
            problems,
            deadline_ns,
            counts: tally.counts,
            all: tally.calls.sum(1.0),
            slowest: tally.calls.sum(0.01),
            oneway: tally.oneway.sum(1.0),
            behind,
            inversions: tally.inversions,
            busiest: tally.busiest.found(),
            slow: slow
                .iter()
                .map(|(call, told)| Slow::of(call, (deadline_ns, *told), &self.model, names))
                .collect(),
        }
    }
}

/// The `most` slowest, in no order.
fn keep_slowest(mut calls: Vec<Transaction>, most: usize) -> Vec<Transaction> {
    if calls.len() > most {
        calls.sort_unstable_by_key(|call| std::cmp::Reverse(call.ns()));
        calls.truncate(most);
    }
    calls
}

impl Tally {
    fn take(&mut self, call: Transaction, question: &Question, names: &Names) {
        self.told.ended(&call);
        if !self.count(&call) {
            return;
        }
        // A nested call's time is already in the call that it was made for, unless that one is not asked for.
        let outermost = !call.nested || !question.filter.is_empty();
        let missed = !call.oneway && question.deadline_ns.is_some_and(|deadline| call.ns() > deadline);
        if outermost {
            let sums = if call.oneway { &mut self.oneway } else { &mut self.calls };
            sums.add(&call, names);
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
        if outermost && !call.oneway && question.worst > 0 {
            self.kept.push(call);
            if self.kept.len() >= 4 * question.worst + 64 {
                self.kept = keep_slowest(std::mem::take(&mut self.kept), question.worst);
            }
        }
    }

    /// A test may tell of a miss, which is a fact even where the trace lacks events; whether this event does, of
    /// a call that was asked for.
    fn tell(&mut self, event: &Event, question: &Question, names: &Names) -> bool {
        let Some(call) = self.told.marked(event) else { return false };
        let asked_for = question.filter.takes(call, names);
        let counted = call.is_sound() && question.deadline_ns.is_some_and(|deadline| call.ns() > deadline);
        self.counts.missed += u64::from(asked_for && !counted);
        asked_for
    }

    /// Counts it; whether it is to be judged.
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
            Outcome::Cut => counts.cut += 1,
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
        }
    }

    fn wait_behind(&mut self, call: &Transaction, names: &Names) {
        for part in &call.parts {
            // The other side of the call, which has not left the CPU yet, is in nobody's way.
            let Some(behind) = part.cause.behind().filter(|_| !slow::is_handover(part, call)) else {
                continue;
            };
            let room = self.behind.len() < MOST_TASKS;
            match self.behind.entry(behind.tid) {
                Entry::Occupied(mut task) => task.get_mut().ns += part.ns(),
                Entry::Vacant(place) if room => {
                    place.insert(Before::of(behind, part, names));
                }
                Entry::Vacant(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
