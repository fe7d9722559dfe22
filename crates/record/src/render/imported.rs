//! Figures of another program as a table.
//! Not here: reading them (`crate::import`).

use super::grid::{Row, grid};
use super::printable;
use crate::schema::{Case, Figure, Imported, Measurement, Outcome, Run, Stated};

const HEADS: [&str; 10] =
    ["Benchmark", "Mean", "CPU", "Iterations", "best", "p50", "p90", "p95", "p99", "worst"];

/// The whole text about such a run.
pub(super) fn summary(run: &Run, imported: &Imported) -> String {
    let mut lines = vec![format!("{}, {}", name(run), run.started)];
    let host = host(run);
    if !host.is_empty() {
        lines.push(format!("Host    {host}"));
    }
    lines.extend(run.context.iter().map(|(key, value)| format!("{key}  {value}")));
    let mut text: String = lines.iter().map(|line| printable(line).into_owned() + "\n").collect();
    let rows: Vec<Row> = run.cases.iter().flat_map(|case| rows(run, case)).collect();
    text += &format!("\n{}\n", grid(&HEADS, &rows));
    for note in &imported.notes {
        text += &format!("Note: {}\n", printable(note));
    }
    text
}

/// Heads and cells of a table with a row for each repetition.
pub(super) fn table(run: &Run) -> (Vec<String>, Vec<Vec<String>>) {
    let rows = run.cases.iter().flat_map(|case| rows(run, case)).map(|row| match row {
        Row::Numbers(cells) => cells,
        Row::Words(name, words) => {
            let blank = std::iter::repeat_n(String::new(), HEADS.len() - 2);
            [name, words].into_iter().chain(blank).collect()
        }
        Row::Rule(words) => vec![words],
    });
    (HEADS.map(str::to_owned).to_vec(), rows.collect())
}

/// The program with its version.
pub(super) fn name(run: &Run) -> String {
    format!("{} {}", run.tool.name, run.tool.version).trim_end().to_owned()
}

fn host(run: &Run) -> String {
    let cpus = match (run.host.cpu.count, run.host.cpu.mhz) {
        (0, _) => String::new(),
        (count, None) => format!("{count} CPUs"),
        (count, Some(mhz)) => format!("{count} CPUs of {mhz:.0} MHz"),
    };
    let parts = [run.host.host_name.clone(), cpus];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// A row for each repetition.
fn rows(run: &Run, case: &Case) -> Vec<Row> {
    let name = |index: u32| match case.repetitions.len() {
        1 => case.name.clone(),
        _ => format!("{} #{index}", case.name),
    };
    let each = case.repetitions.iter().map(|repetition| match &repetition.outcome {
        Outcome::Measured(Measurement { stated: Some(stated), .. }) => {
            Row::Numbers(cells(run, name(repetition.index), stated).to_vec())
        }
        other => {
            let why = other.failure().or(other.skipped()).unwrap_or("no figures");
            Row::Words(name(repetition.index), format!("no result: {why}"))
        }
    });
    each.collect()
}

fn cells(run: &Run, name: String, stated: &Stated) -> [String; 10] {
    let figure = |figure: Option<Figure>| figure.map_or(String::new(), |figure| shown(run, figure));
    let Stated { calls, mean, cpu, min, p50, p90, p95, p99, max } = *stated;
    let calls = calls.map_or(String::new(), |calls| calls.to_string());
    let [mean, cpu, min, p50, p90, p95, p99, max] = [mean, cpu, min, p50, p90, p95, p99, max].map(figure);
    [name, mean, cpu, calls, min, p50, p90, p95, p99, max]
}

/// A figure with its unit, and how far off it may be where that is more than its digits show.
fn shown(run: &Run, figure: Figure) -> String {
    let value = run.clock.unit.show(figure.value);
    match figure.share() > 0.005 {
        true => format!("{value} ±{:.0} %", (figure.share() * 100.0).max(1.0)),
        false => value,
    }
}
