//! Figures of the load in a recording: per pair of calling and called process, and of all calls.
//! Not here: how far two sets of figures are apart (`distance`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::recording::{Call, Selected};

/// Figures of some calls. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Number of calls with a reply.
    pub calls: u64,
    /// Number of oneway calls.
    pub oneway: u64,
    /// Calls of both kinds per second of the load.
    pub rate: f64,
    /// From the sending of each call to its reply, ascending.
    pub latency_ns: Vec<u64>,
    /// From the sending of each oneway call to its receipt, ascending.
    pub delivery_ns: Vec<u64>,
    /// From the receipt of each call of both kinds until its receiver was done, ascending.
    pub service_ns: Vec<u64>,
    /// Mean number of calls that wait for their end: a reply, or the receipt of a oneway call.
    pub concurrency: f64,
    /// Largest number of them.
    pub most_at_once: u64,
    /// How often the threads of the calls left a CPU, per call: of all calls, these threads in all of the time; of a
    /// pair, these in its calls. `None` if the trace does not show it.
    pub switches: Option<f64>,
    /// How often they were woken, per call, in the same time.
    pub wakeups: Option<f64>,
}

/// Figures of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadFigures {
    /// Its length in nanoseconds.
    pub span_ns: u64,
    /// Number of processes.
    pub processes: u64,
    /// Number of threads that make calls or serve them.
    pub threads: u64,
    /// Figures of all calls.
    pub all: Figures,
    /// Figures of the calls of one process to another, by their neutral names: `p2 -> p1`; those with most calls first.
    pub pairs: Vec<(String, Figures)>,
}

/// Figures of some calls as data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Whose calls: `all calls`, or a pair.
    pub name: String,
    /// [`Figures::calls`].
    pub calls: u64,
    /// [`Figures::oneway`].
    pub oneway: u64,
    /// [`Figures::rate`].
    pub rate: f64,
    /// Percentiles of [`Figures::latency_ns`]: 50, 90, 99.
    pub latency_ns: [Option<u64>; 3],
    /// Percentiles of [`Figures::delivery_ns`]: 50, 90, 99.
    pub delivery_ns: [Option<u64>; 3],
    /// Percentiles of [`Figures::service_ns`]: 50, 90, 99.
    pub service_ns: [Option<u64>; 3],
    /// [`Figures::concurrency`].
    pub concurrency: f64,
    /// [`Figures::most_at_once`].
    pub most_at_once: u64,
    /// [`Figures::switches`].
    pub switches: Option<f64>,
    /// [`Figures::wakeups`].
    pub wakeups: Option<f64>,
}

/// Value of `schema` in the JSON.
pub const SCHEMA: &str = "binderperf.workload-figures";
/// Name of the figures of all calls.
pub const ALL: &str = "all calls";

impl Figures {
    /// These figures as data.
    #[must_use]
    pub fn summary(&self, name: &str) -> Summary {
        let three = |ns: &[u64]| [50.0, 90.0, 99.0].map(|percent| units::percentile(ns, percent));
        Summary {
            name: name.to_owned(),
            calls: self.calls,
            oneway: self.oneway,
            rate: self.rate,
            latency_ns: three(&self.latency_ns),
            delivery_ns: three(&self.delivery_ns),
            service_ns: three(&self.service_ns),
            concurrency: self.concurrency,
            most_at_once: self.most_at_once,
            switches: self.switches,
            wakeups: self.wakeups,
        }
    }

    fn of(calls: &[&Call], span_ns: u64) -> Self {
        let span = span_ns.max(1) as f64;
        let times = |which: &dyn Fn(&Call) -> Option<u64>| {
            let mut times: Vec<u64> = calls.iter().filter_map(|call| which(call)).collect();
            times.sort_unstable();
            times
        };
        let in_flight: f64 = calls.iter().map(|call| (call.end - call.sent) as f64).sum();
        let mut edges: Vec<(u64, i64)> = calls
            .iter()
            .flat_map(|call| [(call.sent, 1), (call.end.max(call.sent.saturating_add(1)), -1)])
            .collect();
        edges.sort_unstable();
        let at_once = edges.iter().scan(0, |now, (_, step)| {
            *now += step;
            Some(*now)
        });
        let oneway = calls.iter().filter(|call| call.oneway).count() as u64;
        Self {
            calls: calls.len() as u64 - oneway,
            oneway,
            rate: calls.len() as f64 / (span / 1e9),
            latency_ns: times(&|call| (!call.oneway).then_some(call.end - call.sent)),
            delivery_ns: times(&|call| call.oneway.then_some(call.end - call.sent)),
            service_ns: times(&|call| Some(call.done - call.received)),
            concurrency: in_flight / span,
            most_at_once: u64::try_from(at_once.max().unwrap_or(0)).unwrap_or(0),
            switches: None,
            wakeups: None,
        }
    }
}

impl LoadFigures {
    /// These figures as JSON.
    ///
    /// # Errors
    /// If they cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        #[derive(Serialize)]
        struct Document {
            schema: &'static str,
            span_ns: u64,
            processes: u64,
            threads: u64,
            figures: Vec<Summary>,
        }
        let Self { span_ns, processes, threads, .. } = *self;
        let document = Document { schema: SCHEMA, span_ns, processes, threads, figures: self.summaries() };
        serde_json::to_string_pretty(&document).map(|json| json + "\n")
    }

    /// Figures of all calls and of each pair as data, all calls first.
    #[must_use]
    pub fn summaries(&self) -> Vec<Summary> {
        let pairs = self.pairs.iter().map(|(name, figures)| figures.summary(name));
        std::iter::once(self.all.summary(ALL)).chain(pairs).collect()
    }
}

impl Selected<'_> {
    /// Figures of these calls.
    #[must_use]
    pub fn figures(&self) -> LoadFigures {
        let calls: Vec<&Call> = self.each().collect();
        let (first, span_ns) = (self.span.0, self.ns());
        let tids: BTreeSet<i32> =
            calls.iter().flat_map(|call| [Some(call.client), call.server]).flatten().collect();
        let mut all = Figures::of(&calls, span_ns);
        let whole = tids.iter().map(|tid| self.recording.threads.counts(*tid, first, self.span.1));
        self.note_switches(&mut all, whole);
        let mut pairs: BTreeMap<(i32, i32), Vec<&Call>> = BTreeMap::new();
        for call in &calls {
            pairs.entry((call.caller, call.callee)).or_default().push(call);
        }
        let pair = |((from, to), calls): ((i32, i32), Vec<&Call>)| {
            let mut figures = Figures::of(&calls, span_ns);
            let threads = &self.recording.threads;
            let in_call = calls.iter().flat_map(|call| {
                let both = [Some(call.client), call.server].into_iter().flatten();
                both.map(|tid| threads.counts(tid, call.sent, call.end))
            });
            self.note_switches(&mut figures, in_call);
            let name = |process: i32| self.names.get(&process).map_or("", String::as_str);
            (format!("{} -> {}", name(from), name(to)), figures)
        };
        let mut pairs = merged(pairs.into_iter().map(pair));
        pairs.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.calls + figures.oneway));
        let (processes, threads) = (self.processes.len() as u64, tids.len() as u64);
        LoadFigures { span_ns, processes, threads, all, pairs }
    }

    fn note_switches(&self, figures: &mut Figures, counts: impl Iterator<Item = (u64, u64)>) {
        let (left, woken) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let calls = (figures.calls + figures.oneway).max(1) as f64;
        let shown = self.recording.shown;
        figures.switches = shown.switches.then_some(left as f64 / calls);
        figures.wakeups = (shown.switches && shown.wakeups).then_some(woken as f64 / calls);
    }
}

/// Joins the pairs of one name: copies of a process in a replay.
fn merged(pairs: impl Iterator<Item = (String, Figures)>) -> Vec<(String, Figures)> {
    let mut merged: BTreeMap<String, Figures> = BTreeMap::new();
    for (name, one) in pairs {
        match merged.entry(name) {
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(one);
            }
            std::collections::btree_map::Entry::Occupied(mut place) => place.get_mut().join(one),
        }
    }
    merged.into_iter().collect()
}

impl Figures {
    /// Adds calls of another pair in the same time. The largest number at once is then a bound: that of both together.
    fn join(&mut self, other: Self) {
        let (mine, its) = ((self.calls + self.oneway) as f64, (other.calls + other.oneway) as f64);
        let mean =
            |one: Option<f64>, two: Option<f64>| Some((one? * mine + two? * its) / (mine + its).max(1.0));
        self.switches = mean(self.switches, other.switches);
        self.wakeups = mean(self.wakeups, other.wakeups);
        self.calls += other.calls;
        self.oneway += other.oneway;
        self.rate += other.rate;
        self.concurrency += other.concurrency;
        self.most_at_once += other.most_at_once;
        for (mine, its) in [
            (&mut self.latency_ns, other.latency_ns),
            (&mut self.delivery_ns, other.delivery_ns),
            (&mut self.service_ns, other.service_ns),
        ] {
            mine.extend(its);
            mine.sort_unstable();
        }
    }
}
