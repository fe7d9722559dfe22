//! A chart in percent of its width and height: lines, dots, ticks.
//! Not here: its markup (`chart/chart.html`), its content (`report`).

pub(crate) mod settings;

use page::Axis;
use serde::Serialize;

use crate::schema::Run;

/// A chart.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chart {
    /// A description in one sentence, also for screen readers.
    pub(crate) caption: String,
    pub(crate) columns: Vec<Tick>,
    pub(crate) rows: Vec<Tick>,
    pub(crate) series: Vec<Series>,
    /// Limits, as lines across the chart.
    pub(crate) limits: Vec<Tick>,
}

/// A labelled position on an axis, measured from the left or from the top.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Tick {
    /// 0 to 100.
    pub(crate) percent: f64,
    pub(crate) label: String,
    /// Whether the label is hidden on a narrow page.
    pub(crate) wide: bool,
}

/// A line of a chart.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// Its meaning, for the legend; empty if the name says it.
    pub(crate) meaning: &'static str,
    /// Where its name stands beside its end, 0 to 100 from the top.
    pub(crate) label_at: f64,
    /// Style of the line: a number for tests, `control-` and a number for controls.
    pub(crate) look: String,
    pub(crate) dots: Vec<Dot>,
    /// Whether each dot is a measurement; otherwise there are too many points to show.
    pub(crate) dotted: bool,
}

/// A point of a line.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Dot {
    /// From the left, 0 to 100.
    pub(crate) x: f64,
    /// From the top, 0 to 100.
    pub(crate) y: f64,
    /// The tooltip.
    pub(crate) title: String,
}

/// Least distance of two names beside the ends of curves, in percent of the height.
const APART: f64 = 5.6;

/// Puts each name beside the end of its curve, or as near to it as the others leave room.
pub(crate) fn label(series: &mut [Series]) {
    let end = |line: &Series| line.dots.last().map_or(0.0, |dot| dot.y);
    series.iter_mut().for_each(|line| line.label_at = end(line));
    let mut order: Vec<&mut Series> = series.iter_mut().collect();
    order.sort_by(|one, other| one.label_at.total_cmp(&other.label_at));
    let mut above = f64::NEG_INFINITY;
    for line in &mut order {
        line.label_at = line.label_at.max(above + APART);
        above = line.label_at;
    }
    let mut below = 100.0 + APART;
    for line in order.iter_mut().rev() {
        line.label_at = percent(line.label_at.min(below - APART) / 100.0);
        below = line.label_at;
    }
}

/// Rounds to two decimals, which is finer than a pixel.
pub(crate) fn percent(share: f64) -> f64 {
    (share * 10_000.0).round() / 100.0
}

/// Ticks of an axis of times.
pub(crate) fn rows(run: &Run, up: Axis) -> Vec<Tick> {
    let tick = |value: f64| Tick {
        percent: percent(1.0 - up.at(value)),
        label: run.clock.unit.show_round(value),
        wide: false,
    };
    up.ticks().into_iter().map(tick).collect()
}

impl Dot {
    /// A dot at these shares from the left and from the bottom.
    pub(crate) fn new(across: f64, up: f64, title: String) -> Dot {
        Dot { x: percent(across), y: percent(1.0 - up), title }
    }
}
