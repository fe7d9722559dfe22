//! Figures and distances as text.
//! Not here: their values.

use std::fmt;

use record::render::plain;
use units::{counted, duration};

use super::{Distance, Row, Scope};
use crate::figures::{LoadFigures, Summary};

/// Pairs that a text shows.
const MOST_PAIRS: usize = 10;

/// The meaning of the distances.
const MEANING: &str = "\
Distance: the larger value divided by the smaller one; of a distribution, the largest such factor of its quantiles from 5 % to 95 %.
KS: the largest difference of the shares of calls that are done by any time, 0 to 1. Halves: the distance of the original's two halves.
";

/// A number with three significant digits.
pub(super) fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value}");
    }
    let places = (2.0 - value.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.places$}")
}

fn with_unit(value: Option<f64>, unit: &str) -> String {
    match (value, unit) {
        (None, _) => String::new(),
        (Some(ns), "ns") => duration(ns.round()),
        (Some(value), _) => number(value),
    }
}

fn cells(row: &Row) -> Vec<String> {
    let factor = match row.factor {
        Some(factor) => number(factor),
        None if row.beyond => "no bound".to_owned(),
        None => String::new(),
    };
    vec![
        row.figure.to_owned(),
        with_unit(row.original, row.unit),
        with_unit(row.replay, row.unit),
        with_unit(row.ratio, ""),
        factor,
        row.ks.map_or_else(String::new, |ks| format!("{ks:.2}")),
        row.halves.map_or_else(String::new, number),
    ]
}

fn scope(scope: &Scope) -> String {
    let heads = [scope.name.as_str(), "original", "replay", "ratio", "distance", "KS", "halves"];
    let has_values = |row: &&Row| row.original.is_some() || row.replay.is_some() || row.factor.is_some();
    let is_nothing = |row: &&Row| row.original == Some(0.0) && row.replay == Some(0.0);
    plain(&heads, scope.rows.iter().filter(has_values).filter(|row| !is_nothing(row)).map(cells))
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.scopes.iter().take(MOST_PAIRS + 1).enumerate() {
            write!(f, "{}{}", if at == 0 { "" } else { "\n" }, scope(part))?;
        }
        let more = self.scopes.len().saturating_sub(MOST_PAIRS + 1) as u64;
        if more > 0 {
            writeln!(f, "\nand {} (--json has all)", counted(more, "further pair"))?;
        }
        writeln!(f)?;
        for (pairs, whose) in [(&self.only_original, "original"), (&self.only_replay, "replay")] {
            for (name, calls) in pairs.iter().take(MOST_PAIRS) {
                writeln!(f, "Only in the {whose}: {name}, {}", counted(*calls, "call"))?;
            }
            let more = pairs.len().saturating_sub(MOST_PAIRS) as u64;
            if more > 0 {
                writeln!(f, "Only in the {whose}: {}", counted(more, "further pair"))?;
            }
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "Note: {note}"))?;
        f.write_str(MEANING)
    }
}

impl fmt::Display for LoadFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = [
            "calls of", "calls", "oneway", "per s", "p50", "p90", "p99", "at once", "most", "switches",
            "wake-ups",
        ];
        let ns = |ns: Option<u64>| ns.map_or_else(String::new, |ns| duration(ns as f64));
        let per_call = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
        let cells = |of: Summary| {
            let [p50, p90, p99] = of.latency_ns.map(ns);
            vec![
                of.name,
                of.calls.to_string(),
                of.oneway.to_string(),
                number(of.rate),
                p50,
                p90,
                p99,
                number(of.concurrency),
                of.most_at_once.to_string(),
                per_call(of.switches),
                per_call(of.wakeups),
            ]
        };
        let span = duration(self.span_ns as f64);
        writeln!(f, "{span} of load, {} processes, {}", self.processes, counted(self.threads, "thread"))?;
        f.write_str(&plain(&heads, self.summaries().into_iter().take(MOST_PAIRS + 1).map(cells)))?;
        let more = self.pairs.len().saturating_sub(MOST_PAIRS) as u64;
        if more > 0 {
            writeln!(f, "and {} (--json has all)", counted(more, "further pair"))?;
        }
        f.write_str("p50 to p99: from sending to reply. Switches and wake-ups: per call.\n")
    }
}
