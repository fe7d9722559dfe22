//! The background experiment as text: a row for each setting, and the verdicts.
//! Not here: the verdicts (`verdict`), the picture (`chart`).

use crate::render::remarks::without_numbers;
use crate::render::table::{Row, Table, cells};
use crate::render::verdicts;
use crate::schema::{Background, BackgroundRow, Run};
use crate::verdict::{Verdict, of_background, runnable};

/// Table and verdicts.
pub(crate) fn report(run: &Run, experiment: &Background) -> String {
    let told = of_background(experiment, run.clock.unit).into_iter();
    let told: Vec<Verdict> = told.map(|verdict| runnable(verdict, &run.host)).collect();
    let verdicts = verdicts::lines(&told);
    format!("{}\n{}\n{verdicts}", table(run, experiment).text(), scene(run, experiment))
}

/// A row for each setting.
pub(crate) fn table(run: &Run, experiment: &Background) -> Table {
    let heads = ["Setting", "calls", "p50", "p99", "late", "both moves", "waits"];
    Table::new(heads).rows(experiment.rows.iter().map(|row| line(run, row)))
}

fn line(run: &Run, row: &BackgroundRow) -> Row {
    let Some(percentiles) = row.percentiles else {
        return Row::words(&row.case, &without_numbers(run.case(&row.case)));
    };
    let time = |value: u64| run.clock.unit.show(value as f64);
    let beside = if row.hogs { "beside hogs" } else { "alone" };
    cells![
        format!("{}, {beside}", row.ground.words()),
        row.calls,
        time(percentiles.p50),
        time(percentiles.p99),
        row.hogs.then(|| format!("{:.1} %", row.late as f64 * 100.0 / row.calls.max(1) as f64)),
        row.moves.map(|moves| time(moves.p50)),
        row.waits.map(|waits| if waits { "YES" } else { "no" }),
    ]
}

/// The experiment in a few sentences.
pub(crate) fn scene(run: &Run, experiment: &Background) -> String {
    let Background { flavour, cpu, hogs, group, work, .. } = experiment;
    let limit = experiment
        .limit
        .map_or(String::new(), |limit| format!(" Late: longer than {}.", run.clock.unit.show(limit as f64)));
    format!(
        "{flavour} caller, server and {} share CPU {cpu}; the server computes for {}. Background: {group}.{limit}\n",
        units::counted((*hogs).into(), "hog"),
        run.clock.unit.show_round(*work as f64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{background, run};

    #[test]
    fn the_table_has_a_row_for_each_setting_and_the_verdicts() {
        let text = report(&run(), &background(true));
        for says in [
            "server in the background, beside hogs",
            "YES",
            "8.00 us",
            "cpu.shares",
            "a background server waits",
        ] {
            assert!(text.contains(says), "{says}: {text}");
        }
    }
}
