//! Verdict on a series of a soak: its trend with an interval, against a smallest effect.
//! Not here: the trend (`crate::stats::trend`), words and pages (`crate::render::soak`).
//!
//! - Of each stretch the first turns are warm-up and left out: a tenth, at least [`LEAST_WARM_UP`] and at most
//!   [`MOST_WARM_UP`].
//! - Only turns of one stretch are compared with each other: a process that starts again begins at another level.
//! - The chance of a false alarm is [`FALSE_ALARMS`] for all series of a soak together (Bonferroni).
//! - A series is steady if the whole interval is within the smallest effect; of a count only growth matters.
//! - A series drifts if the interval of its change over the soak excludes zero and the change exceeds the smallest effect.

use std::collections::BTreeSet;

use super::{Soak, Turn};
use crate::stats::median;
use crate::stats::shift::Estimate;
use crate::stats::trend::{Trend, theil_sen};

/// Chance of a false alarm in any series of a soak without drift.
pub const FALSE_ALARMS: f64 = 0.05;
/// Smallest change over the soak that counts, as a share of the level at its start.
pub const SMALLEST: f64 = 0.05;
/// Share of the smallest effect below which it does not matter that a value follows the one before.
const GRAIN: f64 = 0.1;
/// Warm-up of a stretch, in turns.
pub const LEAST_WARM_UP: usize = 2;
/// Longest warm-up of a stretch, in turns.
pub const MOST_WARM_UP: usize = 10;
/// Points of a series beyond which neighbours are joined to their median: the cost grows with their square.
const MOST_POINTS: usize = 400;

/// Most turns that a verdict names as needed, as a multiple of those there are.
const MOST_FOLD: f64 = 100.0;

/// Kind of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A time, which may change in neither direction.
    Figure,
    /// A count or an amount of memory, which may not grow.
    Count,
}

/// The verdict on a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// The whole interval of its change is within the smallest effect.
    Steady,
    /// A figure changes.
    Drifts,
    /// A count grows.
    Grows,
    /// The interval is too wide; with about so many turns it would not be, if known.
    CannotTell {
        /// Turns of the whole soak, with warm-up.
        needed: Option<u64>,
    },
}

impl Drift {
    /// Whether the soak fails by it.
    #[must_use]
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Drifts | Self::Grows)
    }
}

/// A value of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The number of its turn, by which trends are: turns are what may leave something behind.
    pub turn: f64,
    /// The time soaked, in seconds.
    pub soaked_s: f64,
    /// The value.
    pub value: f64,
}

/// A series with its verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Case and metric, or what is counted.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Values by stretch; without warm-up, neighbours joined.
    pub points: Vec<Vec<Point>>,
    /// Turns that are judged.
    pub turns: usize,
    /// The level at the start; 0 without values.
    pub level: f64,
    /// The change over the judged turns, as a share of the level, of counts of at least 1; `None` with too few turns.
    pub change: Option<Estimate>,
    /// The verdict.
    pub drift: Drift,
}

/// Judges all series of a soak: figures, then counts, by name.
#[must_use]
pub fn judge(soak: &Soak) -> Vec<Series> {
    let stretches: Vec<&[Turn]> =
        soak.turns.chunk_by(|one, other| one.stretch == other.stretch).map(after_warm_up).collect();
    let kinds = [Kind::Figure, Kind::Count].map(|kind| {
        let names: BTreeSet<&String> = soak.turns.iter().flat_map(|turn| values(turn, kind).keys()).collect();
        (kind, names)
    });
    let confidence =
        1.0 - FALSE_ALARMS / kinds.iter().map(|(_, names)| names.len()).sum::<usize>().max(1) as f64;
    let number = |turn: Option<&Turn>| turn.map_or(0.0, |turn| turn.turn as f64);
    let first = stretches.iter().find_map(|turns| turns.first());
    let span = number(stretches.iter().rev().find_map(|turns| turns.last())) - number(first);
    let all = kinds.into_iter().flat_map(|(kind, names)| names.into_iter().map(move |name| (kind, name)));
    all.map(|(kind, name)| {
        let point = |turn: &Turn| {
            let value = *values(turn, kind).get(name)?;
            Some(Point { turn: turn.turn as f64, soaked_s: turn.soaked_s, value })
        };
        let own = |turns: &&[Turn]| turns.iter().filter_map(point).collect();
        let points: Vec<Vec<_>> = stretches.iter().map(own).collect();
        series(name.clone(), kind, points, span, confidence)
    })
    .collect()
}

fn values(turn: &Turn, kind: Kind) -> &std::collections::BTreeMap<String, f64> {
    match kind {
        Kind::Figure => &turn.figures,
        Kind::Count => &turn.counts,
    }
}

/// The turns of a stretch that are judged.
fn after_warm_up(stretch: &[Turn]) -> &[Turn] {
    let left_out = stretch.len().div_ceil(10).clamp(LEAST_WARM_UP, MOST_WARM_UP);
    stretch.get(left_out..).unwrap_or_default()
}

fn series(name: String, kind: Kind, points: Vec<Vec<Point>>, span: f64, confidence: f64) -> Series {
    let turns: usize = points.iter().map(Vec::len).sum();
    let joined = turns.div_ceil(MOST_POINTS).max(1);
    let points: Vec<Vec<_>> =
        points.iter().map(|stretch| stretch.chunks(joined).filter_map(middle).collect()).collect();
    let by_turn: Vec<Vec<(f64, f64)>> = points
        .iter()
        .map(|stretch| stretch.iter().map(|point| (point.turn, point.value)).collect())
        .collect();
    let middle = median(&points.iter().flatten().map(|point| point.value).collect::<Vec<_>>());
    let trend = theil_sen(&by_turn, confidence, middle.unwrap_or(0.0) * SMALLEST * GRAIN);
    let level = level(&by_turn, trend);
    // A growth from nothing has no share.
    let base = if kind == Kind::Count { level.max(1.0) } else { level };
    let change = trend.filter(|_| base > 0.0).map(|trend| trend.slope.map(|slope| slope * span / base));
    let drift = match change {
        Some(change) => verdict(change, kind, turns),
        None => Drift::CannotTell { needed: least(&by_turn, confidence) },
    };
    Series { name, kind, points, turns, level, change, drift }
}

/// Neighbours joined: the median of each.
fn middle(points: &[Point]) -> Option<Point> {
    let of = |pick: fn(&Point) -> f64| median(&points.iter().map(pick).collect::<Vec<_>>());
    let (turn, soaked_s) = (of(|point| point.turn)?, of(|point| point.soaked_s)?);
    Some(Point { turn, soaked_s, value: of(|point| point.value)? })
}

/// The level at the start, as the trend has it; never below the least value.
fn level(points: &[Vec<(f64, f64)>], trend: Option<Trend>) -> f64 {
    let all: Vec<(f64, f64)> = points.iter().flatten().copied().collect();
    let (Some(first), slope) = (all.first(), trend.map_or(0.0, |trend| trend.slope.value)) else {
        return 0.0;
    };
    let at_start: Vec<f64> = all.iter().map(|(turn, value)| value - slope * (turn - first.0)).collect();
    let least = all.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
    median(&at_start).unwrap_or(0.0).max(least)
}

fn verdict(change: Estimate, kind: Kind, turns: usize) -> Drift {
    let excludes_zero = change.low > 0.0 || change.high < 0.0 && kind == Kind::Figure;
    let is_large = change.value.abs() > SMALLEST;
    match kind {
        Kind::Figure if excludes_zero && is_large => Drift::Drifts,
        Kind::Count if excludes_zero && is_large => Drift::Grows,
        Kind::Figure if change.low >= -SMALLEST && change.high <= SMALLEST => Drift::Steady,
        Kind::Count if change.high <= SMALLEST => Drift::Steady,
        _ => {
            // The interval becomes narrower with the root of the number of turns.
            let half = (change.high - change.low) / 2.0;
            let needed = (turns as f64 * (half / SMALLEST).powi(2)).ceil().max(turns as f64 + 1.0);
            let needed = needed + MOST_WARM_UP as f64;
            // Many more than there are is no answer.
            Drift::CannotTell { needed: (needed <= turns as f64 * MOST_FOLD).then_some(needed as u64) }
        }
    }
}

/// The least number of turns without a kill that have an interval with this confidence.
fn least(points: &[Vec<(f64, f64)>], confidence: f64) -> Option<u64> {
    let has_interval = |turns: &usize| {
        let line = (0..*turns).map(|at| (at as f64, at as f64)).collect();
        theil_sen(&[line], confidence, 0.0).is_some()
    };
    let longest = points.iter().map(Vec::len).max().unwrap_or(0);
    (longest..100).find(has_interval).map(|turns| (turns.max(longest + 1) + LEAST_WARM_UP) as u64)
}

#[cfg(test)]
mod tests;
