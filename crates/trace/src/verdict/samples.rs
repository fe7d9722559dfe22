//! Each call of a trace with its time by cause, in groups whose names hold in other traces, too: no numbers of processes,
//! threads or nodes.
//! Not here: comparing two traces (crate `trace-compare`), sums of one trace (`sums`).

use std::collections::{BTreeMap, HashMap};

use super::codes::code_words;
use super::groups::{is_by_design, waits};
use super::who::People;
use super::{Analysis, AnalysisOptions, Analyzer, By, Filter, TransactionEvent};
use crate::cause::Label;
use crate::event::{Event, Kind, Names};
use crate::model::{Gap, Transaction};
use crate::report::Report;

/// Maximum number of calls that are kept, the first ones; a call takes about 64 bytes.
pub const MOST_CALLS: usize = 1 << 20;
/// Maximum number of groups; calls of further ones share a group.
const MOST_GROUPS: usize = 4096;

/// Calls with something in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampledGroup {
    /// The interface and method; without those the names of both processes, and the transaction code.
    pub name: String,
    /// Whether its calls wait by design, as polls do.
    pub waits_by_design: bool,
    /// Duration of each call in nanoseconds, in order of time.
    pub ns: Vec<u64>,
    /// Where the times of each call end.
    ends: Vec<usize>,
    times: Vec<CauseTime>,
}

impl SampledGroup {
    /// A group without calls.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Adds a call: nanoseconds by cause.
    pub fn add(&mut self, by_cause: impl IntoIterator<Item = (Label, u64)>) {
        let first = self.times.len();
        self.times.extend(by_cause.into_iter().map(|(cause, ns)| CauseTime::new(cause, ns)));
        self.ns.push(self.times[first..].iter().map(|time| time.parts().1).sum());
        self.ends.push(self.times.len());
    }

    /// A call's nanoseconds by cause, which sum to its duration; nothing for a call that is not there.
    pub fn by_cause(&self, call: usize) -> impl Iterator<Item = (Label, u64)> {
        let first = call.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(call).copied().unwrap_or(first);
        self.times[first..end].iter().map(|time| time.parts())
    }
}

/// Calls of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    /// The calls whose time is known, in groups, without oneway calls. A nested call stands in its own group, and its time is part of
    /// the call that it was made for, too.
    pub groups: Vec<SampledGroup>,
    /// Calls beyond [`MOST_CALLS`], which are in no group.
    pub beyond: u64,
    /// How many calls of each group had no reply, by the group's name; also of groups without other calls.
    pub unfinished: BTreeMap<String, UnfinishedCount>,
    /// The trace as a whole.
    pub analysis: Analysis,
}

/// Calls without a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnfinishedCount {
    /// They failed, or their receiver was dead or frozen.
    pub failed: u64,
    /// They waited when the trace ended.
    pub unanswered: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Pair { caller: i32, callee: i32, code: Option<u32> },
    Interface(Box<str>),
    Method(Box<str>, Box<str>),
    Rest,
}

impl Key {
    fn of(by: By, call: &Transaction) -> Self {
        let caller = call.client.tgid.unwrap_or(call.client.tid);
        let pair = |code| Self::Pair { caller, callee: call.to_proc, code };
        match (by, call.method.as_deref()) {
            (By::Pair, _) | (By::Interface, None) => pair(None),
            (By::Method, None) => pair(Some(call.code)),
            (By::Interface, Some(method)) => Self::Interface(method.interface.clone()),
            (By::Method, Some(method)) => Self::Method(method.interface.clone(), method.name.clone()),
        }
    }

    fn text(&self, process: &impl Fn(i32) -> String) -> String {
        match self {
            Self::Pair { caller, callee, code: None } => {
                format!("{} -> {}", process(*caller), process(*callee))
            }
            Self::Pair { caller, callee, code: Some(code) } => {
                format!("{} -> {}, {}", process(*caller), process(*callee), code_words(*code))
            }
            Self::Interface(interface) => interface.to_string(),
            Self::Method(interface, name) => format!("{interface}.{name}"),
            Self::Rest => "all others".to_owned(),
        }
    }
}

/// A call's time by one cause: the cause in the highest byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CauseTime(u64);

const CAUSE_BITS: u32 = 56;

impl CauseTime {
    fn new(cause: Label, ns: u64) -> Self {
        Self((cause as u64) << CAUSE_BITS | ns.min((1 << CAUSE_BITS) - 1))
    }

    fn parts(self) -> (Label, u64) {
        let cause = Label::ALL.get(usize::from((self.0 >> CAUSE_BITS).to_le_bytes()[0]));
        (cause.copied().unwrap_or(Label::NotShown), self.0 & ((1 << CAUSE_BITS) - 1))
    }
}

/// A call. Its times are those from `first` up to that of the next.
#[derive(Clone, Copy, Debug)]
struct Kept {
    key: u32,
    waits: bool,
    doubtful: bool,
    begin: u64,
    end: u64,
    first: usize,
}

/// Reads a trace's events and keeps its calls.
#[derive(Clone, Debug)]
pub struct Sampler {
    analyzer: Analyzer,
    kept: Calls,
}

#[derive(Clone, Debug)]
struct Calls {
    by: By,
    keys: HashMap<Key, u32>,
    calls: Vec<Kept>,
    times: Vec<CauseTime>,
    beyond: u64,
    unfinished: HashMap<Key, UnfinishedCount>,
}

impl Sampler {
    /// Creates one without events.
    #[must_use]
    pub fn new(filter: Filter, by: By) -> Self {
        let options = AnalysisOptions { filter, ..AnalysisOptions::default() };
        let kept = Calls {
            by,
            keys: HashMap::new(),
            calls: Vec::new(),
            times: Vec::new(),
            beyond: 0,
            unfinished: HashMap::new(),
        };
        Self { analyzer: Analyzer::new(options), kept }
    }

    /// Takes the next event, in time order. `names` are the reader's.
    pub fn take(&mut self, event: &Event, names: &Names) {
        let kept = &mut self.kept;
        self.analyzer.take_with(event, names, &mut |met| kept.met(met));
        if let (Kind::Lost { .. }, Some(gap)) =
            (&event.kind, self.analyzer.model.last_gap().filter(Gap::has_time))
        {
            // Calls are in order of their ends.
            let late = kept.calls.iter_mut().rev();
            for call in late.take_while(|call| call.end > gap.begin) {
                call.doubtful |= call.begin < gap.end;
            }
        }
    }

    /// Ends the trace and returns its calls; `report` is the reader's.
    #[must_use]
    pub fn finish(mut self, names: &Names, report: &Report) -> Sampled {
        let kept = &mut self.kept;
        self.analyzer.end_with(names, &mut |met| kept.met(met));
        let people = People { model: &self.analyzer.model, names };
        let process = |pid: i32| people.process(pid).unwrap_or_else(|| "a process without a name".to_owned());
        let beyond = self.kept.beyond;
        let mut unfinished: BTreeMap<String, UnfinishedCount> = BTreeMap::new();
        for (key, count) in std::mem::take(&mut self.kept.unfinished) {
            let sum = unfinished.entry(key.text(&process)).or_default();
            sum.failed += count.failed;
            sum.unanswered += count.unanswered;
        }
        let groups = self.kept.groups(&process);
        Sampled { groups, beyond, unfinished, analysis: self.analyzer.finish(names, report) }
    }
}

impl Calls {
    fn met(&mut self, met: TransactionEvent<'_>) {
        let TransactionEvent::Ended(call) = met else { return };
        if call.failure.is_some() || call.is_unanswered() {
            self.count_unfinished(call);
        }
        if call.oneway || !call.is_sound() {
            return;
        }
        if self.calls.len() >= MOST_CALLS {
            self.beyond += 1;
            return;
        }
        let key = Key::of(self.by, call);
        let known = self.keys.len() < MOST_GROUPS || self.keys.contains_key(&key);
        let next = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        let key = *self.keys.entry(if known { key } else { Key::Rest }).or_insert(next);
        let first = self.times.len();
        for part in &call.parts {
            let cause = part.cause.label();
            match self.times[first..].iter_mut().find(|time| time.parts().0 == cause) {
                Some(time) => *time = CauseTime::new(cause, time.parts().1.saturating_add(part.ns())),
                None => self.times.push(CauseTime::new(cause, part.ns())),
            }
        }
        self.calls.push(Kept {
            key,
            waits: waits(call),
            doubtful: false,
            begin: call.begin,
            end: call.end,
            first,
        });
    }

    fn count_unfinished(&mut self, call: &Transaction) {
        let key = Key::of(self.by, call);
        let known = self.unfinished.len() < MOST_GROUPS || self.unfinished.contains_key(&key);
        let count = self.unfinished.entry(if known { key } else { Key::Rest }).or_default();
        count.failed += u64::from(call.failure.is_some());
        count.unanswered += u64::from(call.is_unanswered());
    }

    /// Groups of one name are one group: processes of one name.
    fn groups(self, process: &impl Fn(i32) -> String) -> Vec<SampledGroup> {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut place_of = vec![0; self.keys.len()];
        let mut groups: Vec<SampledGroup> = Vec::new();
        let mut keys: Vec<(&Key, u32)> = self.keys.iter().map(|(key, number)| (key, *number)).collect();
        keys.sort_unstable_by_key(|(_, number)| *number);
        for (key, number) in keys {
            let name = key.text(process);
            place_of[number as usize] = *places.entry(name.clone()).or_insert_with(|| {
                groups.push(SampledGroup::new(&name));
                groups.len() - 1
            });
        }
        let mut order: Vec<usize> = (0..self.calls.len()).collect();
        order.sort_by_key(|at| self.calls[*at].begin);
        let mut waiting = vec![0; groups.len()];
        for at in order.into_iter().filter(|at| !self.calls[*at].doubtful) {
            let call = self.calls[at];
            let end = self.calls.get(at + 1).map_or(self.times.len(), |next| next.first);
            let place = place_of[call.key as usize];
            groups[place].add(self.times[call.first..end].iter().map(|time| time.parts()));
            waiting[place] += u64::from(call.waits);
        }
        for (group, waiting) in groups.iter_mut().zip(waiting) {
            group.waits_by_design = is_by_design(waiting, group.ns.len() as u64);
        }
        groups.retain(|group| !group.ns.is_empty());
        groups
    }
}
