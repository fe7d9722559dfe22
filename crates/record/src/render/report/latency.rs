//! Room: a latency test in a report: the whole spread of both classes, misses, inheritance.
//! Not here: the full table (`crate::render::latency`).

use serde::Serialize;

use super::chart::{Chart, Dot, Series, Tick, percent};
use super::number::time;
use super::scale::Scale;
use super::throughput::rows;
use crate::Distribution;
use crate::render::inheritance::short;
use crate::schema::{Class, Hop, LatencyTest, Run};
use crate::verdict::{Served, calls, met, numbers};

/// The calls of one class, all pairs together.
pub(super) struct Calls {
    pub(super) class: Class,
    pub(super) samples: Distribution,
    pub(super) misses: u64,
    pub(super) bubbles: u64,
    pub(super) served: Served,
    /// Exact where the test kept them so.
    pub(super) p50: u64,
    pub(super) p99: u64,
}

/// Both classes, as far as they made calls. A sweep has no such sum.
pub(super) fn classes(run: &Run, test: &LatencyTest) -> Vec<Calls> {
    if test.sweep.is_some() {
        return Vec::new();
    }
    Class::BOTH.into_iter().filter_map(|class| of_class(run, test, class)).collect()
}

fn of_class(run: &Run, test: &LatencyTest, class: Class) -> Option<Calls> {
    let of_class = || {
        run.cases.iter().filter_map(move |case| {
            let found = case.latency.as_ref().filter(|found| found.class == class)?;
            Some((case, found))
        })
    };
    let parts: Vec<_> = of_class().filter_map(|(case, _)| numbers(case)).collect();
    let samples = Distribution::merged(parts.iter().map(|numbers| &numbers.samples))?;
    let exact = test.all.iter().find(|all| all.class == class).map(|all| all.percentiles);
    let of = |exact: Option<u64>, percent| exact.or_else(|| samples.percentile(percent));
    Some(Calls {
        class,
        misses: of_class().map(|(_, found)| found.misses).fold(0, u64::saturating_add),
        bubbles: of_class().map(|(_, found)| found.bubbles).fold(0, u64::saturating_add),
        served: Served::of(of_class().map(|(case, _)| case)),
        p50: of(exact.map(|exact| exact.p50), 50.0)?,
        p99: of(exact.map(|exact| exact.p99), 99.0)?,
        samples,
    })
}

/// Percent of calls, and its place counted in nines.
const PERCENTS: [(f64, &str); 7] = [
    (0.0, "0 %"),
    (50.0, "50 %"),
    (90.0, "90 %"),
    (99.0, "99 %"),
    (99.9, "99.9 %"),
    (99.99, "99.99 %"),
    (99.999, "99.999 %"),
];
/// Points of a curve for each nine.
const PER_NINE: u32 = 24;

fn nines(percent: f64) -> f64 {
    -(1.0 - percent / 100.0).log10()
}

/// Time against the share of the calls that were as quick; `None` without calls.
pub(super) fn chart(run: &Run, test: &LatencyTest) -> Option<Chart> {
    let classes = classes(run, test);
    let most = classes.iter().map(|calls| calls.samples.count).max().filter(|count| *count > 0)?;
    let right = (most as f64).log10().max(0.4);
    let extremes = classes.iter().flat_map(|calls| [calls.samples.min as f64, calls.samples.max as f64]);
    let up = Scale::around(extremes)?;
    let series = classes.iter().map(|calls| Series {
        name: calls.class.name().to_owned(),
        look: if calls.class == Class::Fifo { "1" } else { "2" }.to_owned(),
        dots: curve(run, calls, right, up),
        dotted: false,
    });
    let in_sight = |value: f64| up.at(value) > 0.0 && up.at(value) < 1.0;
    let deadline = test.deadline as f64;
    let limits = in_sight(deadline).then(|| Tick {
        percent: percent(1.0 - up.at(deadline)),
        label: format!("deadline {}", time(run, deadline)),
        wide: false,
    });
    let column = |(value, label): &(f64, &str)| Tick {
        percent: percent(nines(*value) / right),
        label: (*label).to_owned(),
        // Half of the calls are close to none of them on this axis.
        wide: *value < 50.0,
    };
    Some(Chart {
        caption:
            "How long calls took, by the share of calls that were as quick or quicker: the farther right, \
                  the rarer. Lower is better."
                .to_owned(),
        across: "share of calls".to_owned(),
        columns: PERCENTS.iter().filter(|(value, _)| nines(*value) <= right + 1e-9).map(column).collect(),
        rows: rows(run, up),
        series: series.collect(),
        limits: limits.into_iter().collect(),
    })
}

fn curve(run: &Run, calls: &Calls, right: f64, up: Scale) -> Vec<Dot> {
    let end = (calls.samples.count as f64).log10();
    let steps = (end * f64::from(PER_NINE)).floor() as u32;
    let places = (0..=steps).map(|step| f64::from(step) / f64::from(PER_NINE)).chain([end]);
    let dot = |place: f64| {
        let share = (1.0 - 10f64.powf(-place)) * 100.0;
        let last = place >= end;
        let value = if last { calls.samples.max } else { calls.samples.percentile(share)? };
        let title = match last {
            true => format!("{}, worst: {}", calls.class.name(), time(run, value as f64)),
            false => String::new(),
        };
        Some(Dot::new(place / right, up.at(value as f64), title))
    };
    places.filter_map(dot).collect()
}

/// Heads of [`table`].
pub(super) const HEADS: [&str; 10] =
    ["caller", "calls", "best", "median", "p99", "worst", "misses", "meetR", "SYNC", "bubbles"];

/// A row for each class.
pub(super) fn table(run: &Run, test: &LatencyTest) -> Vec<Vec<String>> {
    let row = |calls: &Calls| {
        let made = calls.served.calls;
        let sync = calls.served.sync().zip(calls.served.ratio());
        let of = |value: u64| time(run, value as f64);
        vec![
            calls.class.name().to_owned(),
            made.to_string(),
            of(calls.samples.min),
            of(calls.p50),
            of(calls.p99),
            of(calls.samples.max),
            calls.misses.to_string(),
            met(calls.misses, made).map_or("-".to_owned(), |met| {
                if met < 1.0 { format!("{:.6}", met.min(0.999_999)) } else { "1".to_owned() }
            }),
            sync.map_or("-".to_owned(), |(sync, ratio)| format!("{} {ratio:.2}", sync.name())),
            calls.bubbles.to_string(),
        ]
    };
    classes(run, test).iter().map(row).collect()
}

/// One hop of inheritance, in words.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    scene: String,
    caller: String,
    served: String,
    expected: String,
    /// `as expected`, `UNEXPECTED`, or nothing.
    verdict: &'static str,
    note: String,
}

impl Told {
    pub(super) fn of(hop: &Hop) -> Told {
        let known = |sched: Option<crate::Sched>| sched.map_or("-".to_owned(), short);
        Told {
            scene: hop.scene.clone(),
            caller: short(hop.caller),
            served: known(hop.served),
            expected: known(hop.expected),
            verdict: match hop.as_expected() {
                Some(true) => "as expected",
                Some(false) => "UNEXPECTED",
                None if hop.is_broken() => "BROKEN",
                None => "",
            },
            note: hop.note.clone(),
        }
    }
}

/// Calls that were made, of both classes.
pub(super) fn made(run: &Run) -> u64 {
    run.cases.iter().map(calls).fold(0, u64::saturating_add)
}
