//! Room: a chart as shares of its width and height: lines, dots, ticks.
//! Not here: how it is drawn (`page.html`), what it shows (`throughput`, `latency`).

use serde::Serialize;

/// A chart.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Chart {
    /// What it shows, in a sentence, also for those who do not see it.
    pub(super) caption: String,
    /// What the horizontal axis means.
    pub(super) across: String,
    pub(super) columns: Vec<Tick>,
    pub(super) rows: Vec<Tick>,
    pub(super) series: Vec<Series>,
    /// Limits across the chart.
    pub(super) limits: Vec<Tick>,
}

/// A labelled place on an axis; from the left, or from the top.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Tick {
    /// 0 to 100.
    pub(super) percent: f64,
    pub(super) label: String,
    /// Left out on a narrow page.
    pub(super) wide: bool,
}

/// One line.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Series {
    pub(super) name: String,
    /// Which look it has: a number for tests, `control` for yardsticks.
    pub(super) look: String,
    pub(super) dots: Vec<Dot>,
    /// Whether each dot is a measurement of its own; else there are too many to be told apart.
    pub(super) dotted: bool,
}

/// A point of a line.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Dot {
    /// From the left, 0 to 100.
    pub(super) x: f64,
    /// From the top, 0 to 100.
    pub(super) y: f64,
    /// What it says.
    pub(super) title: String,
}

/// Two digits behind the point are less than a pixel.
pub(super) fn percent(share: f64) -> f64 {
    (share * 10_000.0).round() / 100.0
}

impl Dot {
    /// At these shares from the left and from the bottom.
    pub(super) fn new(across: f64, up: f64, title: String) -> Dot {
        Dot { x: percent(across), y: percent(1.0 - up), title }
    }
}
