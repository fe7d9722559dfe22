//! A latency sweep in a report: the share of calls that met each deadline.
//! Not here: its tables (`text`).

use crate::render::chart::{Chart, Dot, Series, Tick, label, percent};
use crate::schema::{Cell, Run, Sweep};
use page::Axis;

/// Looks of the lines; further points are in the table only.
const LOOKS: [&str; 8] = ["1", "2", "3", "4", "control-1", "control-2", "control-3", "control-4"];

/// A chart of the share of calls against the deadline, for each point without a rate; `None` without any.
pub(crate) fn chart(run: &Run, sweep: &Sweep) -> Option<Chart> {
    let (first, last) = (*sweep.deadlines.first()? as f64, *sweep.deadlines.last()? as f64);
    let across = Axis::logarithmic(first, last);
    let unpaced = sweep.cells.iter().filter(|cell| cell.point.rate_hz.is_none() && cell.calls > 0);
    let mut series: Vec<Series> =
        unpaced.zip(LOOKS).map(|(cell, look)| line(run, sweep, (cell, look), across)).collect();
    if series.is_empty() {
        return None;
    }
    label(&mut series);
    let column = |(at, deadline): (usize, &u64)| Tick {
        percent: percent(across.at(*deadline as f64)),
        label: run.clock.unit.show_round(*deadline as f64),
        wide: at % 4 != 0,
    };
    let row = |share: u32| Tick {
        percent: percent(1.0 - f64::from(share) / 100.0),
        label: format!("{share} %"),
        wide: false,
    };
    Some(Chart {
        caption: "Share of calls that met a deadline, by the deadline, at full speed. Higher and farther left is better."
            .to_owned(),
        columns: sweep.deadlines.iter().enumerate().map(column).collect(),
        rows: [0, 25, 50, 75, 100].map(row).into(),
        series,
        limits: Vec::new(),
    })
}

fn line(run: &Run, sweep: &Sweep, (cell, look): (&Cell, &str), across: Axis) -> Series {
    let class = cell.class.name();
    let place = format!("{class} {}x{}", cell.point.pairs, units::bytes(cell.point.payload_bytes));
    let dot = |(deadline, misses): (&u64, &u64)| {
        let met = 1.0 - *misses as f64 / cell.calls as f64;
        let title = format!("{place}, {}: {:.2} %", run.clock.unit.show_round(*deadline as f64), met * 100.0);
        Dot::new(across.at(*deadline as f64), met, title)
    };
    Series {
        name: place.clone(),
        meaning: "callers: pairs x payload",
        label_at: 0.0,
        look: look.to_owned(),
        dots: sweep.deadlines.iter().zip(&cell.misses).map(dot).collect(),
        dotted: true,
    }
}
