//! A chart in percent of its width and height: lines, dots, ticks.
//! Not here: its markup (`page.html`), its content (`throughput`, `latency`).

use serde::Serialize;

/// A chart.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Chart {
    /// A description in one sentence, also for screen readers.
    pub(super) caption: String,
    pub(super) columns: Vec<Tick>,
    pub(super) rows: Vec<Tick>,
    pub(super) series: Vec<Series>,
    /// Limits, as lines across the chart.
    pub(super) limits: Vec<Tick>,
}

/// A labelled position on an axis, measured from the left or from the top.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Tick {
    /// 0 to 100.
    pub(super) percent: f64,
    pub(super) label: String,
    /// Whether the label is hidden on a narrow page.
    pub(super) wide: bool,
}

/// A line of a chart.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Series {
    pub(super) name: String,
    /// Style of the line: a number for tests, `control` for controls.
    pub(super) look: String,
    pub(super) dots: Vec<Dot>,
    /// Whether each dot is a measurement; otherwise there are too many points to show.
    pub(super) dotted: bool,
}

/// A point of a line.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Dot {
    /// From the left, 0 to 100.
    pub(super) x: f64,
    /// From the top, 0 to 100.
    pub(super) y: f64,
    /// The tooltip.
    pub(super) title: String,
}

/// Rounds to two decimals, which is finer than a pixel.
pub(super) fn percent(share: f64) -> f64 {
    (share * 10_000.0).round() / 100.0
}

impl Dot {
    /// A dot at these shares from the left and from the bottom.
    pub(super) fn new(across: f64, up: f64, title: String) -> Dot {
        Dot { x: percent(across), y: percent(1.0 - up), title }
    }
}
