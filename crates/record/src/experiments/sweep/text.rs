//! A sweep as tables and JSON: the share of calls that met each deadline at each point, and the sustained rates.
//! Not here: a latency test of one point (`crate::render::latency`).

use super::sustained::{Sustained, met_at_least, sustained};
use crate::render::object::{Object, millis, spread};
use crate::render::table::{Row, Table, cells};
use crate::schema::{Cell, Class, LatencyTest, Point, Run, Sweep};
use crate::verdict::met;

/// Cells in the order of a table: by point, by class, then by ascending rate.
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

/// A row for each cell with its share for each deadline, then the sustained rates.
pub(crate) fn table(run: &Run, sweep: &Sweep) -> String {
    let mut heads: Vec<String> =
        ["meetR by deadline", "calls", "median", "p99", "worst"].map(str::to_owned).to_vec();
    heads.extend(sweep.deadlines.iter().map(|deadline| run.clock.unit.show_round(*deadline as f64)));
    heads.push(String::new());
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
    let text = Table::new(heads).rows(rows).text();
    let found = sustained(sweep);
    if found.is_empty() { text } else { text + "\n" + &sustained_table(run, sweep, &found) }
}

fn row(run: &Run, cell: &Cell) -> Row {
    let percentile = |pick: fn(crate::Percentiles) -> u64| {
        cell.percentiles.map(|percentiles| run.clock.unit.show(pick(percentiles) as f64))
    };
    cells![
        format!("{} {}", cell.point.name(), cell.class.name()),
        cell.calls,
        percentile(|percentiles| percentiles.p50),
        percentile(|percentiles| percentiles.p99),
        run.clock.unit.show(cell.worst as f64),
    ]
    .and(cell.misses.iter().map(|misses| share(*misses, cell.calls)))
    .and([cell.failed.as_ref().map(|_| "INCOMPLETE")])
}

/// The share that met the deadline, rounded down to four digits: never 1 after a miss.
fn share(misses: u64, calls: u64) -> String {
    let met = u128::from(calls.saturating_sub(misses));
    match (met * 10_000).checked_div(u128::from(calls)) {
        None => String::new(),
        Some(_) if misses == 0 => "1".to_owned(),
        Some(parts) => format!("0.{parts:04}"),
    }
}

/// A row for each point and class, with the sustained rate for each deadline.
fn sustained_table(run: &Run, sweep: &Sweep, found: &[Sustained]) -> String {
    let mut heads = vec!["Sustained calls/s".to_owned()];
    heads.extend(sweep.deadlines.iter().map(|deadline| run.clock.unit.show_round(*deadline as f64)));
    let row = |of_one: &[Sustained]| {
        let name = of_one.first().map(|at| format!("{} {}", at.point.name(), at.class.name()));
        cells![name].and(of_one.iter().map(rate))
    };
    let rows = found.chunk_by(|one, next| one.point == next.point && one.class == next.class).map(row);
    Table::new(heads).rows(rows).text()
        + &format!(
            "Of all pairs and both classes together; a rate is sustained if at least {} % of the calls of this class meet\n\
             the deadline, with a confidence of {} % (Wilson, one-sided). Times count from the intended start.\n",
            percent(sweep.meet),
            percent(sweep.confidence)
        )
}

/// The rate of all pairs together; marked if no measured rate was too high.
fn rate(at: &Sustained) -> String {
    match at.total_hz() {
        None => "none".to_owned(),
        Some(rate) if at.fails_at_hz.is_none() => format!(">={rate}"),
        Some(rate) => rate.to_string(),
    }
}

/// A percentage without the rounding error of binary fractions.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

/// Failed pairs, by point.
pub(crate) fn troubles(sweep: &Sweep) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for cell in ordered(sweep) {
        if let Some(reason) = &cell.failed {
            lines.push(format!("{} {} FAILED: {reason}", cell.point.name(), cell.class.name()));
        }
    }
    lines
}

/// The keys of a sweep: settings, one line for each cell, sustained rates.
pub(crate) fn json(test: &LatencyTest, sweep: &Sweep) -> Object {
    Object::outer()
        .line("cfg", &settings(test, sweep))
        .list("cells", ordered(sweep).into_iter().map(|cell| cell_object(sweep, cell)))
        .list("sustained", sustained(sweep).iter().map(sustained_object))
}

fn settings(test: &LatencyTest, sweep: &Sweep) -> Object {
    let cells = ordered(sweep);
    let deadlines: Vec<f64> = sweep.deadlines.iter().map(|deadline| micros(*deadline)).collect();
    Object::inner()
        .beside("pairs", &distinct(cells.iter().map(|cell| cell.point.pairs)))
        .beside("payload_bytes", &distinct(cells.iter().map(|cell| cell.point.payload_bytes)))
        .beside("load", &distinct(cells.iter().map(|cell| &cell.point.load)))
        .beside("rate_hz", &distinct(cells.iter().filter_map(|cell| cell.point.rate_hz)))
        .beside("deadline_us", &deadlines)
        .beside("iterations", &test.iterations)
        .beside("meet", &sweep.meet)
        .beside("confidence", &sweep.confidence)
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

fn micros(time: u64) -> f64 {
    time as f64 / 1e3
}

/// The keys of a point, common to cells and sustained rates.
fn point_object(point: &Point, class: Class) -> Object {
    Object::inner()
        .beside("pairs", &point.pairs)
        .beside("payload_bytes", &point.payload_bytes)
        .beside("load", &Some(&point.load).filter(|load| !load.is_empty()))
        .beside("rate_hz", &point.rate_hz)
        .beside("class", &class.name())
}

fn cell_object(sweep: &Sweep, cell: &Cell) -> Object {
    // The share of calls that met each deadline, and its lower bound with the sweep's confidence.
    let on_curve = |(number, (deadline, misses)): (usize, (&u64, &u64))| {
        Object::inner()
            .beside("deadline_us", &micros(*deadline))
            .beside("miss", misses)
            .beside("meetR", &met(*misses, cell.calls))
            .beside("meetR_low", &met_at_least(sweep, cell, number))
    };
    let curve = sweep.deadlines.iter().zip(&cell.misses).enumerate().map(on_curve);
    point_object(&cell.point, cell.class)
        .beside("calls", &cell.calls)
        .beside("wst_ms", &millis(cell.worst))
        .beside("dis_ms", &cell.percentiles.map(spread))
        .beside("curve", &curve.collect::<Vec<Object>>())
        .beside("failed", &cell.failed)
}

fn sustained_object(at: &Sustained) -> Object {
    point_object(&at.point, at.class)
        .beside("deadline_us", &micros(at.deadline))
        .beside("sustained_hz", &at.rate_hz)
        .beside("all_pairs_hz", &at.total_hz())
        .beside("fails_at_hz", &at.fails_at_hz)
}

#[cfg(test)]
mod tests;
