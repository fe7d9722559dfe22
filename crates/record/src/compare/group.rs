//! Room: runs that belong together, and their cases as series of runs.
//! Not here: comparing two of them.

use super::{CannotCompare, Metric};
use crate::Distribution;
use crate::schema::{Case, CaseKind, CrowdShape, Measurement, Outcome, Run};
use std::collections::BTreeMap;

/// The key in [`Run::context`] of runs that were measured in turns: those with the same value belong together.
pub const PAIR_KEY: &str = "ab.pair";

/// Runs of the same thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What the user calls it.
    pub name: String,
    /// The runs.
    pub members: Vec<Member>,
}

/// One run of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Where it was read.
    pub file: String,
    /// The run.
    pub run: Run,
}

/// One case over the runs of a group.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) kind: CaseKind,
    pub(super) shape: Shape,
    /// Those that have a number.
    pub(super) runs: Vec<OfRun>,
    /// Repetitions without one: file and reason.
    pub(super) failed: Vec<String>,
}

/// The repetitions of a case in one run.
pub(super) struct OfRun {
    pub(super) pair: Option<String>,
    pub(super) parts: Vec<Part>,
}

/// One repetition; in a latency test of all pairs together.
pub(crate) struct Part {
    pub(crate) samples: Distribution,
    pub(crate) calls: u64,
    pub(crate) real: u64,
    pub(crate) cpu: u64,
}

/// One number of one case of a run.
pub(crate) struct Number {
    pub(crate) case: String,
    /// What the case's name does not say of how it was measured; empty if that is as usual.
    pub(crate) circumstances: String,
    pub(crate) metric: Metric,
    pub(crate) value: f64,
}

/// What must be the same of a case for its times to mean the same.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    payload_bytes: u64,
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

    /// What names of cases do not say: several pairs, a load, a rate.
    fn circumstances(&self) -> String {
        let pairs = self.pairs.filter(|pairs| *pairs > 1).map(|pairs| format!("{pairs} pairs"));
        let load = (!self.load.is_empty()).then(|| format!("load {}", self.load));
        let rate = self.rate_hz.map(|rate| format!("{rate} calls a second"));
        [pairs, load, rate].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// How they differ; `None` if they do not.
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

    /// Whether any run has a value.
    pub(super) fn has_value(&self, metric: Metric) -> bool {
        self.runs.iter().any(|run| run.value(metric).is_some())
    }

    /// The value of each run that has one.
    pub(super) fn values(&self, metric: Metric) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.value(metric)).collect()
    }

    /// Every repetition of every run.
    pub(super) fn parts(&self) -> Vec<&Part> {
        self.runs.iter().flat_map(|run| &run.parts).collect()
    }

    /// All samples of all runs.
    pub(super) fn samples(&self) -> Option<Distribution> {
        Distribution::merged(self.parts().into_iter().map(|part| &part.samples))
    }
}

impl OfRun {
    pub(super) fn value(&self, metric: Metric) -> Option<f64> {
        metric.of(&self.parts.iter().collect::<Vec<_>>())
    }
}

impl Group {
    /// A group of one.
    pub(crate) fn of_run(run: &Run) -> Group {
        Group { name: String::new(), members: vec![Member { file: String::new(), run: run.clone() }] }
    }

    /// The value of each case and metric that has one; all runs as one number.
    pub(crate) fn numbers(&self, metrics: &[Metric]) -> Vec<Number> {
        let all = self.series().unwrap_or_default();
        let of_case = |series: &Series| {
            let number = |metric: &Metric| {
                let value = metric.of(&series.parts())?;
                let (case, circumstances) = (series.name.clone(), series.shape.circumstances());
                Some(Number { case, circumstances, metric: *metric, value })
            };
            metrics.iter().filter_map(number).collect::<Vec<_>>()
        };
        all.iter().flat_map(of_case).collect()
    }

    /// Two members that are one run, as when a file was copied.
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
    pub(super) fn series(&self) -> Result<Vec<Series>, CannotCompare> {
        let mut all: Vec<Series> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for member in &self.members {
            for (name, cases) in by_name(&member.run) {
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
        let parts: Vec<Part> = parts.values().filter_map(|numbers| Part::of(numbers)).collect();
        if !parts.is_empty() {
            let context = member.run.context.iter();
            let pair = context.into_iter().find(|(key, _)| key == PAIR_KEY).map(|(_, value)| value.clone());
            self.runs.push(OfRun { pair, parts });
        }
    }
}

impl Part {
    /// `None` without samples, or if their precisions differ.
    fn of(numbers: &[&Measurement]) -> Option<Part> {
        Some(Part {
            samples: Distribution::merged(numbers.iter().map(|one| &one.samples))?,
            calls: numbers.iter().map(|one| one.iterations).sum(),
            real: numbers.iter().map(|one| one.real_total).fold(0, u64::saturating_add),
            cpu: numbers.iter().map(|one| one.cpu_total).fold(0, u64::saturating_add),
        })
    }
}

/// Cases by the name under which they are compared: pairs of a latency test are alike, so each class is one.
fn by_name(run: &Run) -> Vec<(String, Vec<&Case>)> {
    let mut all: Vec<(String, Vec<&Case>)> = Vec::new();
    for case in &run.cases {
        let name = match case.latency {
            Some(_) => {
                let kept = case.name.split('/').filter(|part| !part.starts_with("pair:"));
                kept.collect::<Vec<_>>().join("/")
            }
            None => case.name.clone(),
        };
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, cases)) => cases.push(case),
            None => all.push((name, vec![case])),
        }
    }
    all
}
