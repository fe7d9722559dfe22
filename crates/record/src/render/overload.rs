//! The overload experiment as text: a row for each class and number of pairs, and the verdict.
//! Not here: the verdict (`crate::verdict`), the picture (`super::report`).

use super::grid::{Row, grid};
use super::remarks::without_numbers;
use super::verdicts;
use crate::schema::{Class, Overload, OverloadRow, Run};
use crate::verdict::{of_overload, runnable};

/// Heads of [`cells`].
pub(super) const HEADS: [&str; 7] = ["Pairs", "calls", "p50", "p99", "max", "missed", "must miss"];

/// Table and verdict; empty for other tests.
pub(super) fn report(run: &Run) -> String {
    let Some(experiment) = &run.overload else { return String::new() };
    let row = |row: &OverloadRow| match cells(run, experiment, row) {
        Some(cells) => Row::Numbers(cells),
        None => Row::Words(row.case.clone(), without_numbers(run.case(&row.case))),
    };
    let rows: Vec<Row> = experiment.rows.iter().map(row).collect();
    format!(
        "{}\n{}\n{}",
        grid(&HEADS, &rows),
        scene(run, experiment),
        verdicts::lines(&[runnable(of_overload(experiment), &run.host)])
    )
}

/// The cells of a row; `None` without calls.
pub(super) fn cells(run: &Run, experiment: &Overload, row: &OverloadRow) -> Option<Vec<String>> {
    let percentiles = row.percentiles?;
    let most = run.case(&row.case).and_then(|case| case.samples()).map_or(0, |samples| samples.max);
    let time = |value: u64| run.clock.unit.show(value as f64);
    let kind = if row.class == Class::Fifo { "real-time" } else { "ordinary" };
    let must = (row.class == Class::Fifo).then(|| format!("{:.1} %", experiment.expected(row.pairs) * 100.0));
    Some(vec![
        units::counted(row.pairs.into(), &format!("{kind} pair")),
        row.calls.to_string(),
        time(percentiles.p50),
        time(percentiles.p99),
        time(most),
        format!("{:.1} %", row.missed()? * 100.0),
        must.unwrap_or_default(),
    ])
}

/// The experiment in two sentences.
pub(super) fn scene(run: &Run, experiment: &Overload) -> String {
    let time = |value: u64| run.clock.unit.show_round(value as f64);
    let cpus: Vec<String> = experiment.cpus.iter().map(u32::to_string).collect();
    format!(
        "All pairs share CPU {} and call every {} at the same moment; the server computes for {}, and the deadline is {}.\n\
         A CPU can serve one such call in time, so calls of more real-time pairs must miss.\n",
        cpus.join(", "),
        time(experiment.period),
        time(experiment.work),
        time(experiment.deadline),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::overload_run;

    #[test]
    fn the_table_shows_misses_beside_what_must_miss() {
        let text = report(&overload_run([0, 2, 35, 50]));
        for says in
            ["1 real-time pair ", "3 real-time pairs", "35.0 %", "33.3 %", "CPU 0, 1", "deadline is 2.5 ms"]
        {
            assert!(text.contains(says), "{says}: {text}");
        }
        assert!(text.contains("ok    confirmed: 2 real-time pairs: "), "{text}");
    }

    #[test]
    fn rows_without_calls_say_so() {
        let mut run = overload_run([0, 2, 35, 50]);
        let experiment = run.overload.as_mut().expect("the experiment");
        experiment.rows.iter_mut().for_each(|row| (row.calls, row.percentiles) = (0, None));
        let text = report(&run);
        assert!(text.contains("not run") && text.contains("cannot be told"), "{text}");
    }
}
