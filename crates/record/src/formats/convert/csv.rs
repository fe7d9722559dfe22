//! CSV for Apache Otava and spreadsheets: a row for each run, a column for each measure.
//! Facts: Otava 0.8 reads a time column, attribute columns and number columns; empty cells are missing values.

use std::collections::BTreeMap;

use super::ConvertError;
use super::checks::checks;
use crate::render::csv_cell;
use crate::schema::Run;

/// Columns before the measures.
const HEADS: [&str; 6] = ["time", "commit", "host", "kernel", "driver", "host_class"];

/// The table with a heading, oldest run first.
pub(super) fn table(runs: &[Run]) -> Result<String, ConvertError> {
    if runs.iter().any(|run| run.started.is_empty()) {
        return Err(ConvertError::Lacks { what: "start", format: "csv" });
    }
    let mut columns: Vec<String> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut rows: Vec<(&Run, BTreeMap<usize, f64>)> = Vec::new();
    for run in runs {
        let mut cells = BTreeMap::new();
        for check in checks(run) {
            for measure in check.measures {
                let unit = if measure.unit.is_empty() { String::new() } else { format!("_{}", measure.unit) };
                let name = format!("{}.{}{unit}", check.name, measure.name);
                let column = *known.entry(name.clone()).or_insert_with(|| {
                    columns.push(name);
                    columns.len() - 1
                });
                cells.insert(column, measure.value);
            }
        }
        rows.push((run, cells));
    }
    if columns.is_empty() {
        return Err(ConvertError::Lacks { what: "measured case", format: "csv" });
    }
    // Sorted by the instant, so that dates with different offsets keep their order.
    rows.sort_by_key(|(run, _)| crate::date::milliseconds(&run.started));
    let heads = HEADS.iter().map(|head| (*head).to_owned()).chain(columns.iter().cloned());
    let mut text = heads.collect::<Vec<_>>().join(",") + "\n";
    for (run, cells) in rows {
        let driver = run.driver.as_ref().map_or("none", |driver| driver.kind.name());
        let facts = [
            run.started.as_str(),
            run.tool.git.as_deref().unwrap_or(&run.tool.version),
            &run.host.host_name,
            &run.host.kernel.release,
            driver,
            run.host.class.name(),
        ];
        let facts = facts.iter().map(|fact| csv_cell(fact));
        let numbers = (0..columns.len()).map(|at| cells.get(&at).map(f64::to_string).unwrap_or_default());
        text += &(facts.chain(numbers).collect::<Vec<_>>().join(",") + "\n");
    }
    Ok(text)
}
