//! What became slower between two traces: per method and per cause, with intervals.
//!
//! - [`compare`] pairs the groups of two [`Sampled`] traces; [`Comparison`] is the result, as text (`Display`) and as JSON;
//! - `blocks`: the unit of the statistics, runs of consecutive calls; `judge`: differences, intervals, verdicts.
//!
//! Not here: calls and their causes (`trace`), the tests and bootstraps (`record::stats`).

#![forbid(unsafe_code)]

mod blocks;
mod judge;
mod text;
mod unfinished;

use std::collections::BTreeMap;
use std::fmt;

use record::stats::rank::holm;
use serde::Serialize;
use trace::verdict::{By, MOST_CALLS, Sampled, SampledGroup};

pub use judge::{CauseChange, Change, Direction, Figures, Row, Undecided, Verdict};
pub use unfinished::Unfinished;

/// Value of `schema` in the JSON.
pub const SCHEMA: &str = "binderperf.trace-comparison";

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// Probability that a comparison of equals reports any difference.
const FALSE_ALARM: f64 = 0.02;

/// A trace and its name.
#[derive(Clone, Debug)]
pub struct Side {
    /// Its name, as given.
    pub name: String,
    /// Its calls.
    pub sampled: Sampled,
}

/// Options of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// What the calls of a row have in common; for the result only.
    pub by: By,
    /// Relative difference that the verdict "no difference" excludes.
    pub resolution: f64,
}

/// One trace of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    /// Its name, as given.
    pub name: String,
    /// Nanoseconds from the first to the last event.
    pub span_ns: u64,
    /// Calls whose time is known.
    pub calls: u64,
    /// Calls not judged, because events are missing.
    pub doubtful: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls that had no answer when the trace ended.
    pub unanswered: u64,
    /// Events that were lost.
    pub lost: u64,
    /// Gaps of unknown size.
    pub gaps: u64,
    /// Problems of the trace.
    pub problems: Vec<String>,
}

/// A row of one trace only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lone {
    /// Its name.
    pub name: String,
    /// Its calls and times.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The first trace: the reference.
    pub a: Trace,
    /// The second trace.
    pub b: Trace,
    /// What the calls of a row have in common.
    pub by: By,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Relative difference that the verdict "no difference" excludes.
    pub resolution: f64,
    /// Calls without a reply: they failed, or waited when the trace ended. Not judged: each is what it is.
    pub unfinished: Vec<Unfinished>,
    /// Rows of both traces: slower ones, those that cost most first; faster ones; the others; those that wait by design.
    pub rows: Vec<Row>,
    /// Rows of A only, those with the most time first.
    pub only_a: Vec<Lone>,
    /// Rows of B only.
    pub only_b: Vec<Lone>,
    /// What limits the comparison.
    pub notes: Vec<String>,
}

/// Reason why two traces cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CannotCompare {
    /// A trace has no call.
    Empty {
        /// Its name.
        name: String,
    },
    /// No row is in both traces.
    NothingInCommon {
        /// A row of A.
        a: String,
        /// A row of B.
        b: String,
    },
}

impl fmt::Display for CannotCompare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { name } => write!(
                f,
                "{name}: no call in this trace was asked for or is whole; it needs the events binder_transaction and \
                 binder_transaction_received"
            ),
            Self::NothingInCommon { a, b } => {
                write!(
                    f,
                    "the traces have no calls in common: A has those of \"{a}\", B those of \"{b}\"; try --by"
                )
            }
        }
    }
}

impl std::error::Error for CannotCompare {}

/// Compares the second trace with the first.
///
/// # Errors
/// [`CannotCompare`] if a trace has no calls, or both have calls with a reply and none in common.
pub fn compare(a: &Side, b: &Side, options: Options) -> Result<Comparison, CannotCompare> {
    for side in [a, b] {
        if side.sampled.groups.is_empty() && side.sampled.unfinished.is_empty() {
            return Err(CannotCompare::Empty { name: side.name.clone() });
        }
    }
    let mut of_b: BTreeMap<&str, &SampledGroup> =
        b.sampled.groups.iter().map(|group| (group.name.as_str(), group)).collect();
    let (mut rows, mut only_a) = (Vec::new(), Vec::new());
    for one in &a.sampled.groups {
        match of_b.remove(one.name.as_str()) {
            Some(other) => rows.push(Row::of(one, other)),
            None => only_a.push(Lone::of(one)),
        }
    }
    let mut only_b: Vec<Lone> = of_b.into_values().map(Lone::of).collect();
    for lone in [&mut only_a, &mut only_b] {
        lone.sort_by_key(|one| std::cmp::Reverse(one.figures.total_ns));
    }
    if let ([], [one, ..], [other, ..]) = (&rows[..], &only_a[..], &only_b[..]) {
        return Err(CannotCompare::NothingInCommon { a: one.name.clone(), b: other.name.clone() });
    }
    judge_together(&mut rows, options.resolution);
    rows.sort_by(Row::by_cost);
    let notes = notes([("A", a), ("B", b)], &rows);
    Ok(Comparison {
        schema: SCHEMA,
        a: Trace::of(a),
        b: Trace::of(b),
        by: options.by,
        confidence: CONFIDENCE,
        resolution: options.resolution,
        unfinished: Unfinished::of(a, b),
        rows,
        only_a,
        only_b,
        notes,
    })
}

/// Corrects the p-values of all rows for each other and sets the verdicts.
fn judge_together(rows: &mut [Row], resolution: f64) {
    let p: Vec<f64> = rows.iter().flat_map(|row| row.changes().filter_map(|change| change.p)).collect();
    let mut adjusted = holm(&p).into_iter();
    for row in rows {
        for change in row.changes_mut().filter(|change| change.p.is_some()) {
            change.p = adjusted.next();
        }
        row.judge(p.len(), resolution);
    }
}

impl Lone {
    fn of(group: &SampledGroup) -> Self {
        Self { name: group.name.clone(), figures: Figures::of(&group.ns) }
    }
}

impl Trace {
    fn of(side: &Side) -> Self {
        let analysis = &side.sampled.analysis;
        Self {
            name: side.name.clone(),
            span_ns: analysis.span_ns,
            calls: side.sampled.groups.iter().map(|group| group.ns.len() as u64).sum(),
            doubtful: analysis.counts.doubtful,
            failed: analysis.counts.failed,
            unanswered: analysis.counts.unanswered,
            lost: analysis.lost,
            gaps: analysis.gaps,
            problems: analysis.problems.clone(),
        }
    }
}

fn notes(sides: [(&str, &Side); 2], rows: &[Row]) -> Vec<String> {
    let mut notes = Vec::new();
    if rows.is_empty() {
        notes.push("no calls of one name have a reply in both traces: no times are compared".to_owned());
    }
    for (letter, side) in sides {
        let analysis = &side.sampled.analysis;
        if analysis.lost > 0 || analysis.gaps > 0 {
            let doubtful = units::counted(analysis.counts.doubtful, "call");
            notes.push(format!(
                "{letter} lost {} and has {} of unknown size: {doubtful} may lack events and are not compared. Lost \
                 events are not lost by chance: the busiest moments are missing",
                units::counted(analysis.lost, "event"),
                units::counted(analysis.gaps, "gap"),
            ));
        }
        if side.sampled.beyond > 0 {
            notes.push(format!(
                "only the first {MOST_CALLS} calls of {letter} are compared, of {} more none",
                side.sampled.beyond
            ));
        }
    }
    let few = rows.iter().filter(|row| row.verdict == Verdict::CannotTell(Undecided::FewCalls)).count();
    if few > 0 {
        notes.push(format!(
            "{} cannot be told: fewer than {} calls in one of the traces",
            units::counted(few as u64, "row"),
            blocks::LEAST_CALLS
        ));
    }
    let [(_, a), (_, b)] = sides;
    if a.sampled == b.sampled {
        notes.push("both traces have the same calls".to_owned());
    }
    notes
}

impl Comparison {
    /// The result as JSON.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }

    /// Number of rows that became slower, and faster; one may do both.
    #[must_use]
    pub fn slower_and_faster(&self) -> (usize, usize) {
        let count = |wanted: Verdict| {
            self.rows
                .iter()
                .filter(|row| row.verdict == wanted || row.verdict == Verdict::SlowerAndFaster)
                .count()
        };
        (count(Verdict::Slower), count(Verdict::Faster))
    }
}

#[cfg(test)]
mod tests;
