//! Figures of another program as a table.
//! Not here: reading them (`crate::import`).

use super::printable;
use super::table::{Row, Table, cells};
use crate::schema::{Case, Figure, Imported, Measurement, Outcome, Run, Stated};

/// The whole text about such a run.
pub(super) fn summary(run: &Run, imported: &Imported) -> String {
    let mut lines = vec![format!("{}, {}", name(run), run.started)];
    let host = host(run);
    if !host.is_empty() {
        lines.push(format!("Host    {host}"));
    }
    lines.extend(run.context.iter().map(|(key, value)| format!("{key}  {value}")));
    let mut text: String = lines.iter().map(|line| printable(line).into_owned() + "\n").collect();
    text += &format!("\n{}\n", table(run).text());
    for note in &imported.notes {
        text += &format!("Note: {}\n", printable(note));
    }
    text
}

/// A row for each repetition.
pub(super) fn table(run: &Run) -> Table {
    let heads = ["Benchmark", "Mean", "CPU", "Iterations", "best", "p50", "p90", "p95", "p99", "worst"];
    Table::new(heads).rows(run.cases.iter().flat_map(|case| rows(run, case)))
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

fn rows(run: &Run, case: &Case) -> impl Iterator<Item = Row> {
    let name = |index: u32| match case.repetitions.len() {
        1 => case.name.clone(),
        _ => format!("{} #{index}", case.name),
    };
    case.repetitions.iter().map(move |repetition| match &repetition.outcome {
        Outcome::Measured(Measurement { stated: Some(stated), .. }) => {
            line(run, name(repetition.index), stated)
        }
        other => {
            let why = other.failure().or(other.skipped()).unwrap_or("no figures");
            Row::words(name(repetition.index), &format!("no result: {why}"))
        }
    })
}

fn line(run: &Run, name: String, stated: &Stated) -> Row {
    let Stated { calls, mean, cpu, min, p50, p90, p95, p99, max } = *stated;
    let figure = |figure: Option<Figure>| figure.map(|figure| shown(run, figure));
    let [mean, cpu] = [mean, cpu].map(figure);
    cells![name, mean, cpu, calls].and([min, p50, p90, p95, p99, max].map(figure))
}

/// A figure with its unit, and how far off it may be where that is more than its digits show.
fn shown(run: &Run, figure: Figure) -> String {
    let value = run.clock.unit.show(figure.value);
    match figure.share() > 0.005 {
        true => format!("{value} ±{:.0} %", (figure.share() * 100.0).max(1.0)),
        false => value,
    }
}
