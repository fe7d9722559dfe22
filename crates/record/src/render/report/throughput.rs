//! Throughput in a report: the cost of a call by payload, for each IPC mechanism.
//! Not here: the full table (`crate::render::summary`).

use crate::families::{Family, families, meaning_of};
use crate::render::chart::{Chart, Dot, Series, Tick, label, percent, rows};
use crate::render::table::{Table, cells};
use crate::schema::{CaseKind, Run};
use page::Axis;
use units::bytes;

/// A chart of median cost against payload; `None` without any.
pub(super) fn chart(run: &Run) -> Option<Chart> {
    let families = families(run);
    // Calls without IPC cost so little that the other lines could not be told apart beside them.
    let (families, without): (Vec<Family<'_>>, Vec<Family<'_>>) =
        families.into_iter().partition(|family| !family.cases[0].family.ends_with("_passthrough"));
    let points = |family: &Family<'_>| -> Vec<(f64, f64, String)> {
        let each = family.cases.iter().filter(|case| case.payload_bytes > 0);
        each.filter_map(|case| {
            let median = case.median_real()?;
            let (size, cost) = (bytes(case.payload_bytes), run.clock.unit.show(median));
            Some((case.payload_bytes as f64, median, format!("{}, {size}: {cost}", family.name)))
        })
        .collect()
    };
    let all: Vec<(f64, f64, String)> = families.iter().flat_map(points).collect();
    let sizes = || all.iter().map(|(size, ..)| *size);
    let (least, most) = (sizes().reduce(f64::min)?, sizes().reduce(f64::max)?);
    let across = Axis::logarithmic(least, most);
    let up = Axis::around(all.iter().map(|(_, cost, _)| *cost))?;
    let (mut tests, mut controls) = (0, 0);
    let series = families.iter().filter(|family| family.cases.len() > 1).map(|family| {
        let look = match family.kind {
            CaseKind::Control => {
                controls += 1;
                format!("control-{controls}")
            }
            CaseKind::Test => {
                tests += 1;
                tests.to_string()
            }
        };
        let dots = points(family)
            .into_iter()
            .map(|(size, cost, title)| Dot::new(across.at(size), up.at(cost), title));
        let meaning = meaning_of(&family.cases[0].family);
        Series { name: family.name.clone(), meaning, label_at: 0.0, look, dots: dots.collect(), dotted: true }
    });
    let mut series: Vec<Series> = series.filter(|series| !series.dots.is_empty()).collect();
    label(&mut series);
    if series.is_empty() {
        return None;
    }
    Some(Chart {
        caption: caption(&without),
        columns: columns(least, most, across),
        rows: rows(run, up),
        series,
        limits: Vec::new(),
    })
}

fn caption(without: &[Family<'_>]) -> String {
    let mut caption =
        "Median time of a round trip by payload, which crosses once each way. Thin lines are controls: the same bytes \
         by other means of this machine. Both axes are logarithmic; lower is better."
            .to_owned();
    if !without.is_empty() {
        caption += " Calls without IPC are in the table only.";
    }
    caption
}

/// Ticks at powers of four, as the payloads are powers of two.
fn columns(least: f64, most: f64, across: Axis) -> Vec<Tick> {
    let sizes = (0..32).map(|power| 1u64 << (2 * power).min(62)).filter(|size| {
        let size = *size as f64;
        size >= least * 0.999 && size <= most * 1.001
    });
    let tick = |(index, size): (usize, u64)| Tick {
        percent: percent(across.at(size as f64)),
        label: bytes(size),
        wide: index % 2 == 1,
    };
    sizes.enumerate().map(tick).collect()
}

/// A row for each payload and a column for each mechanism, with its median.
pub(super) fn table(run: &Run) -> Table {
    let families = families(run);
    let mut sizes: Vec<u64> =
        families.iter().flat_map(|family| family.cases.iter()).map(|case| case.payload_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let cell = |family: &Family<'_>, size: u64| {
        let case = family.cases.iter().find(|case| case.payload_bytes == size)?;
        Some(case.median_real().map_or("-".to_owned(), |median| run.clock.unit.show(median)))
    };
    let row = |size: u64| cells![bytes(size)].and(families.iter().map(|family| cell(family, size)));
    let kinds = families.iter().map(|family| match family.kind {
        CaseKind::Test => "tests",
        CaseKind::Control => "controls",
    });
    Table::new(["payload"].into_iter().chain(families.iter().map(|family| family.name.as_str())))
        .groups([""].into_iter().chain(kinds))
        .rows(sizes.into_iter().map(row))
}
