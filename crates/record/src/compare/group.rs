//! A group of runs, and its cases as series over these runs.
//! Not here: comparing two groups.

use super::metric::Metric;
use super::refusal::CannotCompare;
use super::repetition::MergedRepetition;
use crate::Distribution;
use crate::schema::{Case, CaseKind, CrowdShape, Figure, Measurement, Outcome, Run};
use std::collections::BTreeMap;

/// Key in [`Run::context`] of runs that were measured in turns: runs with the same value are a pair.
pub const PAIR_KEY: &str = "ab.pair";

/// A group of runs of the same thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The user's name for it.
    pub name: String,
    /// The runs.
    pub members: Vec<Member>,
}

/// One run of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The path of the record.
    pub file: String,
    /// The run.
    pub run: Run,
}

/// One case over all runs of a group.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) kind: CaseKind,
    pub(crate) shape: Shape,
    /// The runs that have a number.
    pub(super) runs: Vec<RunRepetitions>,
    /// Failed repetitions: file and reason.
    pub(super) failed: Vec<String>,
}

/// The repetitions of a case in one run.
pub(crate) struct RunRepetitions {
    pub(super) pair: Option<String>,
    pub(super) parts: Vec<MergedRepetition>,
}

/// The properties of a case that must be equal for its times to be comparable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(crate) payload_bytes: u64,
    threads: u32,
    crowd: Option<(CrowdShape, u32)>,
    pairs: Option<u32>,
    load: String,
    rate_hz: Option<f64>,
}

impl Shape {
    fn of(case: &Case) -> Shape {
        let latency = case.latency.as_ref();
        Shape {
            payload_bytes: case.payload_bytes,
            threads: case.threads,
            crowd: case.crowd.as_ref().map(|crowd| (crowd.shape, crowd.services)),
            pairs: latency.map(|latency| latency.pairs),
            load: latency.map_or(String::new(), |latency| latency.load.clone()),
            rate_hz: latency.and_then(|latency| latency.rate_hz),
        }
    }

    /// Pairs, load and rate, which the name of a case does not contain; empty for the defaults.
    pub(crate) fn circumstances(&self) -> String {
        let pairs = self.pairs.filter(|pairs| *pairs > 1).map(|pairs| format!("{pairs} pairs"));
        let load = (!self.load.is_empty()).then(|| format!("load {}", self.load));
        let rate = self.rate_hz.map(|rate| format!("{rate} calls a second"));
        [pairs, load, rate].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// A description of the differences; `None` if there are none.
    pub(super) fn unlike(&self, other: &Shape) -> Option<String> {
        let number = |value: Option<f64>| value.map_or("none".to_owned(), |value| value.to_string());
        let crowd = |shape: &Shape| {
            shape
                .crowd
                .map_or("none".to_owned(), |(shape, services)| format!("{} of {services}", shape.name()))
        };
        let load = |shape: &Shape| if shape.load.is_empty() { "none".to_owned() } else { shape.load.clone() };
        let told = [
            ("payload", format!("{} B", self.payload_bytes), format!("{} B", other.payload_bytes)),
            ("clients", self.threads.to_string(), other.threads.to_string()),
            ("crowd", crowd(self), crowd(other)),
            ("pairs", number(self.pairs.map(f64::from)), number(other.pairs.map(f64::from))),
            ("load", load(self), load(other)),
            ("rate", number(self.rate_hz), number(other.rate_hz)),
        ];
        let unlike = told.iter().find(|(_, one, other)| one != other);
        unlike.map(|(what, one, other)| format!("{what} {one} and {other}"))
    }
}

impl Series {
    fn new(name: String, case: &Case) -> Series {
        Series { name, kind: case.kind, shape: Shape::of(case), runs: Vec::new(), failed: Vec::new() }
    }

    /// Whether it is a subject of the test or a control.
    pub(crate) fn kind(&self) -> CaseKind {
        self.kind
    }

    /// Whether any run has a value.
    pub(super) fn has_value(&self, metric: Metric) -> bool {
        self.runs.iter().any(|run| run.value(metric).is_some())
    }

    /// The value of each run that has one.
    pub(super) fn values(&self, metric: Metric) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.value(metric)).collect()
    }

    /// The value over all runs.
    pub(crate) fn value(&self, metric: Metric) -> Option<f64> {
        metric.of(&self.parts())
    }

    /// How far off the values may be because another program printed them with few digits, relative to them.
    pub(super) fn rounding(&self, metric: Metric) -> f64 {
        let each = self.parts().into_iter().filter_map(|part| metric.stated(part.stated.as_ref()?));
        each.map(Figure::share).fold(0.0, f64::max)
    }

    /// Every repetition of every run.
    pub(super) fn parts(&self) -> Vec<&MergedRepetition> {
        self.runs.iter().flat_map(|run| &run.parts).collect()
    }

    /// All samples of all runs.
    pub(super) fn samples(&self) -> Option<Distribution> {
        Distribution::merged(self.parts().into_iter().map(|part| &part.samples))
    }
}

impl RunRepetitions {
    pub(super) fn value(&self, metric: Metric) -> Option<f64> {
        metric.of(&self.parts.iter().collect::<Vec<_>>())
    }
}

impl Group {
    /// A group of one run.
    pub(crate) fn of_run(run: &Run) -> Group {
        Group { name: String::new(), members: vec![Member { file: String::new(), run: run.clone() }] }
    }

    /// Two members that hold the same run, for example a copied file.
    pub(super) fn copies(&self) -> Option<CannotCompare> {
        let mut seen: BTreeMap<&str, Vec<&Member>> = BTreeMap::new();
        for member in &self.members {
            let of_the_moment = seen.entry(&member.run.started).or_default();
            if let Some(one) = of_the_moment.iter().find(|one| one.run.cases == member.run.cases) {
                let (one, other) = (one.file.clone(), member.file.clone());
                return Some(CannotCompare::Copies { group: self.name.clone(), one, other });
            }
            of_the_moment.push(member);
        }
        None
    }

    /// The cases of all runs, in the order in which they first occur.
    pub(crate) fn series(&self) -> Result<Vec<Series>, CannotCompare> {
        let mut all: Vec<Series> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let placement = |member: &Member| member.run.plan.placement.clone();
        let mixed = self.members.windows(2).any(|two| placement(&two[0]) != placement(&two[1]));
        for member in &self.members {
            // The cases of `run` on one CPU and on two are others than those that the scheduler placed.
            let placed = Some(placement(member)).filter(|placed| mixed && placed != "default");
            for (name, cases) in by_name(&member.run) {
                let name = placed.iter().fold(name, |name, placed| format!("{name}/{placed}"));
                let place = *places.entry(name.clone()).or_insert_with(|| {
                    all.push(Series::new(name.clone(), cases[0]));
                    all.len() - 1
                });
                let series = &mut all[place];
                if let Some(how) = cases.iter().find_map(|case| series.shape.unlike(&Shape::of(case))) {
                    return Err(CannotCompare::Mixed { group: self.name.clone(), case: name, how });
                }
                series.add(member, &cases);
            }
        }
        Ok(all)
    }
}

impl Series {
    fn add(&mut self, member: &Member, cases: &[&Case]) {
        let mut parts: BTreeMap<u32, Vec<&Measurement>> = BTreeMap::new();
        for repetition in cases.iter().flat_map(|case| &case.repetitions) {
            match &repetition.outcome {
                Outcome::Measured(numbers) => parts.entry(repetition.index).or_default().push(numbers),
                Outcome::Failed { reason, .. } => self.failed.push(format!("{}: {reason}", member.file)),
                Outcome::Skipped { .. } => {}
            }
        }
        let parts: Vec<MergedRepetition> =
            parts.values().filter_map(|numbers| MergedRepetition::of(numbers)).collect();
        if !parts.is_empty() {
            let context = member.run.context.iter();
            let pair = context.into_iter().find(|(key, _)| key == PAIR_KEY).map(|(_, value)| value.clone());
            self.runs.push(RunRepetitions { pair, parts });
        }
    }
}

/// The name of a case with its size in bytes: the tools of Android 8 print 2048 as `2k`.
fn whole_size(case: &Case) -> String {
    let short = case.payload_bytes.checked_div(1024).map(|kib| format!("/{kib}k")).unwrap_or_default();
    match case.name.strip_suffix(&short) {
        Some(family) if case.payload_bytes >= 2048 => format!("{family}/{}", case.payload_bytes),
        _ => case.name.clone(),
    }
}

/// Cases by the name under which they are compared. The pairs of a latency test become one case for each class.
fn by_name(run: &Run) -> Vec<(String, Vec<&Case>)> {
    let mut all: Vec<(String, Vec<&Case>)> = Vec::new();
    for case in &run.cases {
        let name = match case.latency {
            Some(_) => {
                let kept = case.name.split('/').filter(|part| !part.starts_with("pair:"));
                kept.collect::<Vec<_>>().join("/")
            }
            None => whole_size(case),
        };
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, cases)) => cases.push(case),
            None => all.push((name, vec![case])),
        }
    }
    all
}
