//! Room: a sweep as tables for a person, and as JSON: the share that met each deadline at each point, and
//! what is sustained.
//! Not here: a latency test of one point (`super::table`, `super::json`).

use super::object::Object;
use super::short_time;
use super::table::time;
use crate::render::grid::{Row, grid};
use crate::schema::{Cell, Class, LatencyTest, Point, Run, Sweep};
use crate::sweep::{Sustained, met_at_least, sustained};
use crate::verdict::met;
use serde::Serialize;

/// Cells in the order of a table: point by point, class by class, from the lowest rate to the highest.
fn ordered(sweep: &Sweep) -> Vec<&Cell> {
    let mut points: Vec<Point> = Vec::new();
    for cell in &sweep.cells {
        let point = cell.point.unpaced();
        if !points.contains(&point) {
            points.push(point);
        }
    }
    let mut cells = Vec::with_capacity(sweep.cells.len());
    for point in &points {
        for class in Class::BOTH {
            let here =
                sweep.cells.iter().filter(|cell| cell.class == class && cell.point.unpaced() == *point);
            let mut here: Vec<&Cell> = here.collect();
            here.sort_by(|one, other| {
                one.point.rate_hz.unwrap_or(0.0).total_cmp(&other.point.rate_hz.unwrap_or(0.0))
            });
            cells.extend(here);
        }
    }
    cells
}

/// A row for each cell, its share that met each deadline; then what is sustained.
pub(super) fn table(run: &Run, sweep: &Sweep) -> String {
    let mut heads: Vec<String> =
        ["meetR by deadline", "calls", "median", "p99", "worst"].map(str::to_owned).to_vec();
    heads.extend(sweep.deadlines.iter().map(|deadline| short_time(run, *deadline)));
    heads.push(String::new());
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut rows = Vec::new();
    let mut before: Option<Point> = None;
    for cell in ordered(sweep) {
        let point = cell.point.unpaced();
        if before.as_ref().is_some_and(|before| *before != point) {
            rows.push(Row::Rule(String::new()));
        }
        rows.push(row(run, cell));
        before = Some(point);
    }
    let text = grid(&heads, &rows);
    let found = sustained(sweep);
    if found.is_empty() { text } else { text + "\n" + &sustained_table(run, sweep, &found) }
}

fn row(run: &Run, cell: &Cell) -> Row {
    let percentile = |pick: fn(crate::Percentiles) -> u64| {
        cell.percentiles.map(|percentiles| time(run, pick(percentiles))).unwrap_or_default()
    };
    let mut cells = vec![
        format!("{} {}", cell.point.name(), cell.class.name()),
        cell.calls.to_string(),
        percentile(|percentiles| percentiles.p50),
        percentile(|percentiles| percentiles.p99),
        time(run, cell.worst),
    ];
    cells.extend(cell.misses.iter().map(|misses| share(*misses, cell.calls)));
    cells.push(cell.failed.as_ref().map(|_| "INCOMPLETE".to_owned()).unwrap_or_default());
    Row::Numbers(cells)
}

/// Rounded down to four digits: never 1 when there was a miss.
fn share(misses: u64, calls: u64) -> String {
    let met = u128::from(calls.saturating_sub(misses));
    match (met * 10_000).checked_div(u128::from(calls)) {
        None => String::new(),
        Some(_) if misses == 0 => "1".to_owned(),
        Some(parts) => format!("0.{parts:04}"),
    }
}

/// A row for each point and class, with the rate of each deadline.
fn sustained_table(run: &Run, sweep: &Sweep, found: &[Sustained]) -> String {
    let mut heads = vec!["Sustained calls/s".to_owned()];
    heads.extend(sweep.deadlines.iter().map(|deadline| short_time(run, *deadline)));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let row = |of_one: &[Sustained]| {
        let name = of_one.first().map(|at| format!("{} {}", at.point.name(), at.class.name()));
        Row::Numbers(name.into_iter().chain(of_one.iter().map(rate)).collect())
    };
    let rows: Vec<Row> =
        found.chunk_by(|one, next| one.point == next.point && one.class == next.class).map(row).collect();
    grid(&heads, &rows)
        + &format!(
            "Of all pairs and both classes together; a rate is sustained if at least {} % of the calls of this class meet\n\
             the deadline, with a confidence of {} % (Wilson, one-sided). Times count from the intended start.\n",
            percent(sweep.meet),
            percent(sweep.confidence)
        )
}

/// Of all pairs; marked where no rate was too high.
fn rate(at: &Sustained) -> String {
    match at.total_hz() {
        None => "none".to_owned(),
        Some(rate) if at.fails_at_hz.is_none() => format!(">={rate}"),
        Some(rate) => rate.to_string(),
    }
}

/// Without the digits that binary fractions bring along.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

/// Pairs that broke, point by point.
pub(super) fn troubles(sweep: &Sweep) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for cell in ordered(sweep) {
        if let Some(reason) = &cell.failed {
            lines.push(format!("{} {} FAILED: {reason}", cell.point.name(), cell.class.name()));
        }
    }
    lines
}

/// The keys of a sweep: what was asked for, each cell on a line, what is sustained.
pub(super) fn json(test: &LatencyTest, sweep: &Sweep, text: &mut Object) {
    text.line("cfg", &Cfg::of(test, sweep));
    text.list("cells", ordered(sweep).into_iter().map(|cell| CellShown::of(sweep, cell)));
    text.list("sustained", sustained(sweep).iter().map(SustainedShown::of));
}

#[derive(Serialize)]
struct Cfg {
    pairs: Vec<u32>,
    payload_bytes: Vec<u64>,
    load: Vec<String>,
    rate_hz: Vec<f64>,
    deadline_us: Vec<f64>,
    iterations: u64,
    meet: f64,
    confidence: f64,
}

impl Cfg {
    fn of(test: &LatencyTest, sweep: &Sweep) -> Cfg {
        let cells = ordered(sweep);
        Cfg {
            pairs: distinct(cells.iter().map(|cell| cell.point.pairs)),
            payload_bytes: distinct(cells.iter().map(|cell| cell.point.payload_bytes)),
            load: distinct(cells.iter().map(|cell| cell.point.load.clone())),
            rate_hz: distinct(cells.iter().filter_map(|cell| cell.point.rate_hz)),
            deadline_us: sweep.deadlines.iter().map(|deadline| *deadline as f64 / 1e3).collect(),
            iterations: test.iterations,
            meet: sweep.meet,
            confidence: sweep.confidence,
        }
    }
}

fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// A point as keys; one way to say it for cells and for what is sustained.
#[derive(Serialize)]
struct PointShown<'r> {
    pairs: u32,
    payload_bytes: u64,
    load: Option<&'r str>,
    rate_hz: Option<f64>,
    class: &'static str,
}

impl<'r> PointShown<'r> {
    fn of(point: &'r Point, class: Class) -> PointShown<'r> {
        PointShown {
            pairs: point.pairs,
            payload_bytes: point.payload_bytes,
            load: Some(point.load.as_str()).filter(|load| !load.is_empty()),
            rate_hz: point.rate_hz,
            class: class.name(),
        }
    }
}

#[derive(Serialize)]
struct CellShown<'r> {
    #[serde(flatten)]
    point: PointShown<'r>,
    calls: u64,
    wst_ms: f64,
    dis_ms: Option<super::json::Spread>,
    curve: Vec<OnCurve>,
    failed: Option<&'r str>,
}

/// The share that met one deadline.
#[derive(Serialize)]
struct OnCurve {
    deadline_us: f64,
    miss: u64,
    #[serde(rename = "meetR")]
    meet: Option<f64>,
    /// At least so much, with the sweep's confidence.
    #[serde(rename = "meetR_low")]
    at_least: Option<f64>,
}

impl<'r> CellShown<'r> {
    fn of(sweep: &Sweep, cell: &'r Cell) -> CellShown<'r> {
        let on_curve = |(number, (deadline, misses)): (usize, (&u64, &u64))| OnCurve {
            deadline_us: *deadline as f64 / 1e3,
            miss: *misses,
            meet: met(*misses, cell.calls),
            at_least: met_at_least(sweep, cell, number),
        };
        CellShown {
            point: PointShown::of(&cell.point, cell.class),
            calls: cell.calls,
            wst_ms: cell.worst as f64 / 1e6,
            dis_ms: cell.percentiles.map(super::json::Spread::of),
            curve: sweep.deadlines.iter().zip(&cell.misses).enumerate().map(on_curve).collect(),
            failed: cell.failed.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct SustainedShown<'r> {
    #[serde(flatten)]
    point: PointShown<'r>,
    deadline_us: f64,
    sustained_hz: Option<f64>,
    all_pairs_hz: Option<f64>,
    fails_at_hz: Option<f64>,
}

impl<'r> SustainedShown<'r> {
    fn of(at: &'r Sustained) -> SustainedShown<'r> {
        SustainedShown {
            point: PointShown::of(&at.point, at.class),
            deadline_us: at.deadline as f64 / 1e3,
            sustained_hz: at.rate_hz,
            all_pairs_hz: at.total_hz(),
            fails_at_hz: at.fails_at_hz,
        }
    }
}

#[cfg(test)]
mod tests;
