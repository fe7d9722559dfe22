//! A latency test in a report: distributions of both classes, misses, inheritance.
//! Not here: the full table (`crate::render::latency`).

use crate::figures::{Calls, FIGURES};
use crate::render::chart::{Chart, Dot, Series, Tick, label, percent, rows};
use crate::render::latency::Group;
use crate::schema::{Class, LatencyTest, Run};
use page::Axis;

/// The calls of each class that has any, over all pairs; empty for a sweep, where a sum is meaningless.
pub(super) fn classes<'r>(run: &'r Run, test: &LatencyTest) -> Vec<(Class, Calls<'r>)> {
    if test.sweep.is_some() {
        return Vec::new();
    }
    let groups = Group::of(run);
    let Some(all) = groups.first() else { return Vec::new() };
    Class::BOTH.into_iter().filter_map(|class| Some((class, all.calls(class, test)?))).collect()
}

/// What the classes are.
const MEANINGS: [&str; 2] = ["calls of a real-time thread (SCHED_FIFO)", "calls of an ordinary thread"];

/// Labelled percentages, positioned by their number of nines.
const PERCENTS: [(f64, &str); 7] = [
    (0.0, "0 %"),
    (50.0, "50 %"),
    (90.0, "90 %"),
    (99.0, "99 %"),
    (99.9, "99.9 %"),
    (99.99, "99.99 %"),
    (99.999, "99.999 %"),
];
/// Points of the curve for each nine.
const PER_NINE: u32 = 24;

fn nines(percent: f64) -> f64 {
    -(1.0 - percent / 100.0).log10()
}

/// A chart of time against percentile; `None` without calls.
pub(super) fn chart(run: &Run, test: &LatencyTest) -> Option<Chart> {
    let classes = classes(run, test);
    let most = classes.iter().map(|(_, calls)| calls.samples.count).max().filter(|count| *count > 0)?;
    let right = (most as f64).log10().max(0.4);
    let extremes = classes.iter().flat_map(|(_, calls)| [calls.samples.min as f64, calls.samples.max as f64]);
    let up = Axis::around(extremes)?;
    let mut series: Vec<Series> = classes
        .iter()
        .map(|(class, calls)| Series {
            name: class.name().to_owned(),
            meaning: MEANINGS[usize::from(*class != Class::Fifo)],
            label_at: 0.0,
            look: if *class == Class::Fifo { "1" } else { "2" }.to_owned(),
            dots: curve(run, (*class, calls), right, up),
            dotted: false,
        })
        .collect();
    label(&mut series);
    let in_sight = |value: f64| up.at(value) > 0.0 && up.at(value) < 1.0;
    let deadline = test.deadline as f64;
    let limits = in_sight(deadline).then(|| Tick {
        percent: percent(1.0 - up.at(deadline)),
        label: format!("deadline {}", run.clock.unit.show(deadline)),
        wide: false,
    });
    let column = |(value, label): &(f64, &str)| Tick {
        percent: percent(nines(*value) / right),
        label: (*label).to_owned(),
        // The labels below 50 % are close together on this axis.
        wide: *value < 50.0,
    };
    Some(Chart {
        caption:
            "How long calls took, by the share of calls that were as quick or quicker: the farther right, \
                  the rarer. Lower is better."
                .to_owned(),
        columns: PERCENTS.iter().filter(|(value, _)| nines(*value) <= right + 1e-9).map(column).collect(),
        rows: rows(run, up),
        series,
        limits: limits.into_iter().collect(),
    })
}

fn curve(run: &Run, (class, calls): (Class, &Calls<'_>), right: f64, up: Axis) -> Vec<Dot> {
    let end = (calls.samples.count as f64).log10();
    let steps = (end * f64::from(PER_NINE)).floor() as u32;
    let places = (0..=steps).map(|step| f64::from(step) / f64::from(PER_NINE)).chain([end]);
    let dot = |place: f64| {
        let share = (1.0 - 10f64.powf(-place)) * 100.0;
        let last = place >= end;
        let value = if last { calls.samples.max } else { calls.samples.percentile(share)? };
        let title = match last {
            true => format!("{}, worst: {}", class.name(), run.clock.unit.show(value as f64)),
            false => String::new(),
        };
        Some(Dot::new(place / right, up.at(value as f64), title))
    };
    places.filter_map(dot).collect()
}

/// Name and meaning of what stands in the table of a latency test.
pub(super) fn terms() -> Vec<(&'static str, &'static str)> {
    let classes = Class::BOTH.map(|class| (class.name(), MEANINGS[usize::from(class != Class::Fifo)]));
    let figures = FIGURES.iter().filter_map(|figure| Some((figure.head?, figure.means?)));
    classes.into_iter().chain(figures).collect()
}
