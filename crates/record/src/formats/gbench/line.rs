//! The content of one row, independent of the format; numbers are in the output unit.
//! Not here: widths, quotes, digits.
//! Counters of a row: the repetition's own; `bytes_per_second`: payload bytes in one direction per second of real
//! time; `p50`, `p99`, `max` of the round trips in the output unit; `x_<control>`: this row's mean divided by the
//! mean of that control for the same payload in this run.

use super::Scale;
use crate::ratio::Controls;
use crate::schema::{Case, CounterKind, Measurement, Outcome, Repetition};
use crate::stats;
use std::collections::BTreeMap;

/// One row.
pub(super) struct Line<'a> {
    pub(super) case: &'a Case,
    pub(super) place: Place,
    /// Number of planned repetitions.
    pub(super) repetitions: u32,
    pub(super) status: Status<'a>,
    pub(super) iterations: u64,
    /// Time per iteration in `scale`'s unit; a fraction in a cv row.
    pub(super) real: f64,
    pub(super) cpu: f64,
    pub(super) scale: Scale,
    /// Sorted by name, as in Google Benchmark.
    pub(super) counters: BTreeMap<String, Value>,
}

/// The kind of row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Repetition(u32),
    Aggregate(Statistic),
}

/// Whether the numbers of the row are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status<'a> {
    Measured,
    Failed(&'a str),
    Skipped(&'a str),
}

/// A counter's value and its format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value {
    pub(super) number: f64,
    /// Suffix in a table.
    pub(super) suffix: &'static str,
    /// The value of a table's prefix `k`: 1000 or 1024.
    pub(super) base: f64,
}

/// A statistic over repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statistic {
    Mean,
    Median,
    Stddev,
    Cv,
}

impl Statistic {
    pub(super) const ALL: [Statistic; 4] =
        [Statistic::Mean, Statistic::Median, Statistic::Stddev, Statistic::Cv];

    pub(super) fn name(self) -> &'static str {
        match self {
            Statistic::Mean => "mean",
            Statistic::Median => "median",
            Statistic::Stddev => "stddev",
            Statistic::Cv => "cv",
        }
    }

    fn of(self, values: &[f64]) -> Option<f64> {
        match self {
            Statistic::Mean => stats::mean(values),
            Statistic::Median => stats::median(values),
            Statistic::Stddev => stats::stddev(values),
            Statistic::Cv => stats::cv(values),
        }
    }
}

impl<'a> Line<'a> {
    pub(super) fn repetition(
        case: &'a Case,
        repetition: &'a Repetition,
        repetitions: u32,
        scale: Scale,
        controls: &Controls,
    ) -> Line<'a> {
        let (status, numbers) = match &repetition.outcome {
            Outcome::Measured(numbers) => (Status::Measured, Some(numbers)),
            Outcome::Failed { reason, partial } => (Status::Failed(reason), partial.as_ref()),
            Outcome::Skipped { reason } => (Status::Skipped(reason), None),
        };
        let scaled = |value: Option<f64>| value.unwrap_or(0.0) / scale.divisor;
        let iterations = numbers.map_or(0, |numbers| numbers.iterations);
        Line {
            case,
            place: Place::Repetition(repetition.index),
            repetitions,
            status,
            // Test harnesses treat a row without iterations as one that did not run.
            iterations: match status {
                Status::Failed(_) => iterations.max(1),
                Status::Measured | Status::Skipped(_) => iterations,
            },
            real: scaled(numbers.and_then(Measurement::mean_real)),
            cpu: scaled(numbers.and_then(Measurement::mean_cpu)),
            scale,
            counters: match status {
                Status::Measured => {
                    numbers.map(|numbers| counters(case, numbers, scale, controls)).unwrap_or_default()
                }
                Status::Failed(_) | Status::Skipped(_) => BTreeMap::new(),
            },
        }
    }

    /// A statistic over the measured rows of a case, of which there are at least two.
    pub(super) fn aggregate(case: &'a Case, rows: &[Line<'a>], statistic: Statistic) -> Line<'a> {
        let over = |pick: &dyn Fn(&Line<'_>) -> Option<f64>| {
            statistic.of(&rows.iter().filter_map(pick).collect::<Vec<f64>>())
        };
        let mut counters = BTreeMap::new();
        for (name, value) in rows.iter().flat_map(|row| &row.counters) {
            let number = over(&|row| row.counters.get(name).map(|value| value.number));
            if let Some(number) = number.filter(|number| number.is_finite()) {
                counters.insert(name.clone(), Value { number, ..*value });
            }
        }
        Line {
            case,
            place: Place::Aggregate(statistic),
            repetitions: rows[0].repetitions,
            status: Status::Measured,
            iterations: case.repetitions.len() as u64,
            real: over(&|row| Some(row.real)).unwrap_or(0.0),
            cpu: over(&|row| Some(row.cpu)).unwrap_or(0.0),
            scale: rows[0].scale,
            counters,
        }
    }

    pub(super) fn name(&self) -> String {
        match self.place {
            Place::Repetition(_) => self.case.name.clone(),
            Place::Aggregate(statistic) => format!("{}_{}", self.case.name, statistic.name()),
        }
    }

    pub(super) fn label(&self) -> Option<&str> {
        self.case.label.as_deref().filter(|label| !label.is_empty())
    }

    /// Whether the numbers are fractions rather than times.
    pub(super) fn is_fraction(&self) -> bool {
        self.place == Place::Aggregate(Statistic::Cv)
    }
}

/// Whether a counter is shown: rates are per second and need a clock that measures time.
pub(super) fn is_shown(kind: CounterKind, scale: Scale) -> bool {
    kind == CounterKind::Plain || scale.is_time
}

fn counters(
    case: &Case,
    numbers: &Measurement,
    scale: Scale,
    controls: &Controls,
) -> BTreeMap<String, Value> {
    let plain = |number| Value { number, suffix: "", base: 1000.0 };
    let mut counters: BTreeMap<String, Value> = BTreeMap::new();
    for (name, counter) in numbers.counters.iter() {
        if !is_shown(counter.kind, scale) {
            continue;
        }
        let suffix = match counter.kind {
            CounterKind::Plain => "",
            CounterKind::Rate => "/s",
            CounterKind::Inverted => "s",
        };
        counters.insert(name.to_owned(), Value { suffix, ..plain(counter.value) });
    }
    for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("max", 100.0)] {
        if let Some(value) = numbers.samples.percentile(percent) {
            counters.insert(name.to_owned(), plain(value as f64 / scale.divisor));
        }
    }
    let Some(mean) = numbers.mean_real().filter(|&mean| mean > 0.0) else { return counters };
    if scale.is_time && case.payload_bytes > 0 {
        let number = case.payload_bytes as f64 * 1e9 / mean;
        let rate = Value { number, suffix: "/s", base: 1024.0 };
        counters.insert("bytes_per_second".to_owned(), rate);
    }
    if let Some(median) = numbers.samples.percentile(50.0) {
        let ratios = controls.ratios(case, median as f64);
        counters.extend(ratios.map(|(name, ratio)| (name, plain(ratio))));
    }
    counters
}
