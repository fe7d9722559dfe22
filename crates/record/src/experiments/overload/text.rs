//! The overload experiment as text: a row for each class and number of pairs, and the verdict.
//! Not here: the verdict (`verdict`), the picture (`chart`).

use crate::render::remarks::without_numbers;
use crate::render::table::{Row, Table, cells};
use crate::render::verdicts;
use crate::schema::{Class, Overload, OverloadRow, Run};
use crate::verdict::{of_overload, runnable};

/// Table and verdict.
pub(crate) fn report(run: &Run, experiment: &Overload) -> String {
    format!(
        "{}\n{}\n{}",
        table(run, experiment).text(),
        scene(run, experiment),
        verdicts::lines(&[runnable(of_overload(experiment), &run.host)])
    )
}

/// A row for each class and number of pairs.
pub(crate) fn table(run: &Run, experiment: &Overload) -> Table {
    let heads = ["Pairs", "calls", "p50", "p99", "max", "missed", "must miss"];
    Table::new(heads).rows(experiment.rows.iter().map(|row| line(run, experiment, row)))
}

fn line(run: &Run, experiment: &Overload, row: &OverloadRow) -> Row {
    let case = run.case(&row.case);
    let Some((percentiles, missed)) = row.percentiles.zip(row.missed()) else {
        return Row::words(&row.case, &without_numbers(case));
    };
    let most = case.and_then(|case| case.samples()).map_or(0, |samples| samples.max);
    let time = |value: u64| run.clock.unit.show(value as f64);
    let kind = if row.class == Class::Fifo { "real-time" } else { "ordinary" };
    let share = |share: f64| format!("{:.1} %", share * 100.0);
    cells![
        units::counted(row.pairs.into(), &format!("{kind} pair")),
        row.calls,
        time(percentiles.p50),
        time(percentiles.p99),
        time(most),
        share(missed),
        (row.class == Class::Fifo).then(|| share(experiment.expected(row.pairs))),
    ]
}

/// The experiment in two sentences.
pub(crate) fn scene(run: &Run, experiment: &Overload) -> String {
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
    use crate::fixtures::{overload, run};

    #[test]
    fn the_table_shows_misses_beside_what_must_miss() {
        let text = report(&run(), &overload([0, 2, 35, 50]));
        for says in
            ["1 real-time pair ", "3 real-time pairs", "35.0 %", "33.3 %", "CPU 0, 1", "deadline is 2.5 ms"]
        {
            assert!(text.contains(says), "{says}: {text}");
        }
        assert!(text.contains("ok    confirmed: 2 real-time pairs: "), "{text}");
    }

    #[test]
    fn rows_without_calls_say_so() {
        let mut experiment = overload([0, 2, 35, 50]);
        experiment.rows.iter_mut().for_each(|row| (row.calls, row.percentiles) = (0, None));
        let text = report(&run(), &experiment);
        assert!(text.contains("not run") && text.contains("cannot be told"), "{text}");
    }
}
