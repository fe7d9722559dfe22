//! How far the figures of a replay are from those of its original.
//! Not here: the figures (`figures`).
//!
//! The distance of two values is a factor of at least 1: 2 means that one is twice the other. The distance of two distributions is the
//! largest factor between their quantiles from 5 % to 95 %, each 5 %. Beside it stands the Kolmogorov-Smirnov distance: the largest
//! difference of the shares of calls that are done by any time, from 0 to 1.
//!
//! A yardstick is the distance between the two halves of the original: a replay cannot be expected to be nearer than that.

mod text;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::figures::{ALL, Figures, LoadFigures};

/// Value of `schema` in the JSON.
pub const SCHEMA: &str = "binderperf.workload-distance";
/// Fewest calls that a verdict rests on.
const LEAST_JUDGED: usize = 20;
/// Fewest values beyond a percentile that a verdict rests on.
const LEAST_BEYOND: f64 = 5.0;
/// A pair of the original with at least this share of its calls must be in the replay.
const IMPORTANT: f64 = 0.01;

/// A figure of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Which figure.
    pub figure: &'static str,
    /// Its unit: `ns`, `1/s`, or none.
    pub unit: &'static str,
    /// Value of the original; `None` if it has none, and for distributions.
    pub original: Option<f64>,
    /// Value of the replay; `None` if it has none, and for distributions.
    pub replay: Option<f64>,
    /// The replay's value relative to the original's.
    pub ratio: Option<f64>,
    /// Distance, at least 1; `None` if either has no value, and if one of them is 0 and the other is not, which is beyond any factor.
    pub factor: Option<f64>,
    /// Whether one is 0 and the other is not.
    pub beyond: bool,
    /// Whether both have enough calls for a verdict: 20, and five of them beyond a percentile.
    pub judged: bool,
    /// Kolmogorov-Smirnov distance of two distributions.
    pub ks: Option<f64>,
    /// Distance of the original's halves.
    pub halves: Option<f64>,
}

/// The figures of some calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scope {
    /// Whose calls: `all calls`, or a pair.
    pub name: String,
    /// Number of calls in the original.
    pub calls: u64,
    /// The figures.
    pub rows: Vec<Row>,
}

/// How far a replay is from its original.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distance {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// All calls first, then the pairs that both have, those with most calls first.
    pub scopes: Vec<Scope>,
    /// Pairs of the original only, with their calls.
    pub only_original: Vec<(String, u64)>,
    /// Pairs of the replay only, with their calls.
    pub only_replay: Vec<(String, u64)>,
    /// Limits of the comparison.
    pub notes: Vec<String>,
}

impl Distance {
    /// Distance between two sets of figures; `halves` are those of the original's halves.
    #[must_use]
    pub fn of(
        original: &LoadFigures,
        replay: &LoadFigures,
        halves: Option<(&LoadFigures, &LoadFigures)>,
    ) -> Self {
        let scope = |name: &str, one: &Figures, other: &Figures, halves: Option<(&Figures, &Figures)>| {
            let mut all = rows(one, other);
            if let Some((first, second)) = halves {
                let within = rows(first, second);
                all.iter_mut().zip(within).for_each(|(row, half)| row.halves = half.factor);
            }
            Scope { name: name.to_owned(), calls: one.calls + one.oneway, rows: all }
        };
        let whole = halves.map(|(first, second)| (&first.all, &second.all));
        let mut scopes = vec![scope(ALL, &original.all, &replay.all, whole)];
        let mut others = by_name(replay);
        let in_halves = halves.map(|(first, second)| (by_name(first), by_name(second)));
        let mut only_original = Vec::new();
        for (name, figures) in &original.pairs {
            match others.remove(name.as_str()) {
                Some(other) => {
                    let halves = in_halves.as_ref().and_then(|(first, second)| {
                        Some((*first.get(name.as_str())?, *second.get(name.as_str())?))
                    });
                    scopes.push(scope(name, figures, other, halves));
                }
                None => only_original.push((name.clone(), figures.calls + figures.oneway)),
            }
        }
        let rest = replay.pairs.iter().filter(|(name, _)| others.contains_key(name.as_str()));
        let only_replay =
            rest.map(|(name, figures)| (name.clone(), figures.calls + figures.oneway)).collect();
        let notes = notes(original, replay);
        Self { schema: SCHEMA, scopes, only_original, only_replay, notes }
    }

    /// Figures further apart than this factor, in words: judged figures of all calls, and pairs of the original with at
    /// least 1 % of its calls that the replay lacks. Empty if nothing is.
    #[must_use]
    pub fn beyond(&self, factor: f64) -> Vec<String> {
        let all = self.scopes.first();
        let far = all
            .into_iter()
            .flat_map(|scope| &scope.rows)
            .filter(|row| row.judged && (row.beyond || row.factor.is_some_and(|found| found > factor)));
        let mut words: Vec<String> = far
            .map(|row| match row.factor {
                Some(found) => format!("{}: a factor of {}", row.figure, text::number(found)),
                None => format!("{}: one of both is 0", row.figure),
            })
            .collect();
        let calls = all.map_or(0, |scope| scope.calls) as f64;
        for (name, of_pair) in &self.only_original {
            if *of_pair as f64 >= IMPORTANT * calls {
                words.push(format!("{name}: no call in the replay"));
            }
        }
        words
    }

    /// The result as JSON.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }
}

fn by_name(figures: &LoadFigures) -> BTreeMap<&str, &Figures> {
    figures.pairs.iter().map(|(name, figures)| (name.as_str(), figures)).collect()
}

fn notes(original: &LoadFigures, replay: &LoadFigures) -> Vec<String> {
    let mut notes = Vec::new();
    for (who, figures) in [("original", original), ("replay", replay)] {
        if figures.all.switches.is_none() {
            notes.push(format!("The {who}'s trace does not show when threads ran (no sched_switch)."));
        } else if figures.all.wakeups.is_none() {
            notes.push(format!(
                "The {who}'s trace does not show wake-ups (no sched_waking, no sched_wakeup)."
            ));
        }
    }
    notes
}

/// The rows of two sets of figures.
fn rows(one: &Figures, other: &Figures) -> Vec<Row> {
    let mut rows = vec![
        value("calls", "", Some(one.calls as f64), Some(other.calls as f64)),
        value("oneway calls", "", Some(one.oneway as f64), Some(other.oneway as f64)),
        value("rate", "1/s", Some(one.rate), Some(other.rate)),
    ];
    type Names = ([&'static str; 3], &'static str);
    let kinds: [(Names, &[u64], &[u64]); 3] = [
        (
            (["latency p50", "latency p90", "latency p99"], "latency, distribution"),
            &one.latency_ns,
            &other.latency_ns,
        ),
        (
            (["delivery p50", "delivery p90", "delivery p99"], "delivery, distribution"),
            &one.delivery_ns,
            &other.delivery_ns,
        ),
        (
            (["service p50", "service p90", "service p99"], "service, distribution"),
            &one.service_ns,
            &other.service_ns,
        ),
    ];
    for ((names, whole), one, other) in kinds {
        if one.is_empty() && other.is_empty() {
            continue;
        }
        for (name, percent) in names.into_iter().zip([50.0, 90.0, 99.0]) {
            let of = |ns: &[u64]| units::percentile(ns, percent).map(|ns| ns as f64);
            let few = one.len().min(other.len()) as f64;
            let judged = few >= LEAST_JUDGED as f64 && few * (100.0 - percent) / 100.0 >= LEAST_BEYOND;
            rows.push(Row { judged, ..value(name, "ns", of(one), of(other)) });
        }
        rows.push(distribution(whole, one, other));
    }
    rows.extend([
        value("calls at once, mean", "", Some(one.concurrency), Some(other.concurrency)),
        value("calls at once, most", "", Some(one.most_at_once as f64), Some(other.most_at_once as f64)),
        value("switches per call", "", one.switches, other.switches),
        value("wake-ups per call", "", one.wakeups, other.wakeups),
    ]);
    rows
}

fn value(figure: &'static str, unit: &'static str, original: Option<f64>, replay: Option<f64>) -> Row {
    let (mut ratio, mut factor, mut beyond) = (None, None, false);
    if let (Some(one), Some(other)) = (original, replay) {
        if one > 0.0 && other > 0.0 {
            ratio = Some(other / one);
            factor = Some((other / one).max(one / other));
        } else if one == other {
            factor = Some(1.0);
        } else {
            beyond = true;
        }
    }
    Row { figure, unit, original, replay, ratio, factor, beyond, judged: true, ks: None, halves: None }
}

fn distribution(figure: &'static str, one: &[u64], other: &[u64]) -> Row {
    let mut row = value(figure, "", None, None);
    row.judged = one.len().min(other.len()) >= LEAST_JUDGED;
    if !row.judged {
        return row;
    }
    let quantile = |ns: &[u64], percent: f64| units::percentile(ns, percent).unwrap_or(0).max(1) as f64;
    let factors = (1..20).map(|step| {
        let percent = f64::from(step) * 5.0;
        let ratio = quantile(other, percent) / quantile(one, percent);
        ratio.max(ratio.recip())
    });
    row.factor = Some(factors.fold(1.0, f64::max));
    row.ks = Some(kolmogorov_smirnov(one, other));
    row
}

/// Largest difference of two ascending samples' shares of values up to any value.
fn kolmogorov_smirnov(one: &[u64], other: &[u64]) -> f64 {
    let share = |values: &[u64], up_to: u64| {
        values.partition_point(|value| *value <= up_to) as f64 / values.len().max(1) as f64
    };
    let apart = |at: &u64| (share(one, *at) - share(other, *at)).abs();
    one.iter().chain(other).map(apart).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
