//! One command on several machines, side by side: how it ended, and the medians of what it measured.
//! Not here: comparing two groups of runs (`super::compare`).

use super::printable;
use super::table::{Cell, Table, cells};
use crate::compare::{Group, Metric};
use crate::schema::{CaseKind, Run};
use std::collections::BTreeMap;

/// Most rows of figures: with more, those of a typical small and a typical large payload are shown.
const ROWS: usize = 16;
/// Ends of the names of those.
const TYPICAL: [&str; 2] = ["/4", "/4096"];

/// Results from one machine.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name.
    pub target: String,
    /// How the command ended there.
    pub ended: String,
    /// Its records, each with a name.
    pub runs: Vec<(String, Run)>,
}

/// Figures by row and column, rows in the order in which they first occur.
#[derive(Default)]
struct Figures {
    order: Vec<String>,
    cells: BTreeMap<(String, usize), String>,
}

impl Figures {
    fn put(&mut self, row: String, column: usize, cell: String) {
        if !self.order.contains(&row) {
            self.order.push(row.clone());
        }
        self.cells.insert((row, column), cell);
    }
}

/// The table.
#[must_use]
pub fn targets(columns: &[Column]) -> String {
    let mut figures = Figures::default();
    let mut fact = |name: &str, of: fn(&Run) -> Option<String>| {
        for (at, column) in columns.iter().enumerate() {
            if let Some(text) = column.runs.iter().find_map(|(_, run)| of(run)) {
                figures.put(name.to_owned(), at, text);
            }
        }
    };
    fact("kernel", |run| Some(run.host.kernel.release.clone()).filter(|release| !release.is_empty()));
    fact("driver", |run| run.driver.as_ref().map(|driver| driver.kind.name().to_owned()));
    let facts = figures.order.len();
    for (at, column) in columns.iter().enumerate() {
        for (name, run) in &column.runs {
            for (case, median, p99) in medians(run) {
                let case = if column.runs.len() > 1 { format!("{name} {case}") } else { case };
                figures.put(format!("{} median", printable(&case)), at, median);
                if let Some(p99) = p99 {
                    figures.put(format!("{} p99", printable(&case)), at, p99);
                }
            }
        }
    }
    let (facts, all) = figures.order.split_at(facts);
    let typical = |row: &&String| {
        let case = row.rsplit_once(' ').map_or("", |(case, _)| case);
        TYPICAL.iter().any(|end| case.ends_with(end)) || !case.rsplit('/').next().is_some_and(is_number)
    };
    let shown: Vec<&String> = match all.len() {
        0..=ROWS => all.iter().collect(),
        _ => all.iter().filter(typical).take(ROWS).collect(),
    };
    let left = all.len() - shown.len();
    let row = |name: &String| {
        let cell = |at| figures.cells.get(&(name.clone(), at)).map_or(Cell::from("-"), Cell::from);
        cells![name].and((0..columns.len()).map(cell))
    };
    let more =
        || format!("{} more: binderperf compare A B, of two records", units::counted(left as u64, "row"));
    Table::new(["Target"].into_iter().chain(columns.iter().map(|column| column.target.as_str())))
        .rows([cells!["ended"].and(columns.iter().map(|column| &column.ended))])
        .rows(facts.iter().chain(shown).map(row))
        .notes((left > 0).then(more))
        .text()
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The name of each case under test, its median, and of latency tests its 99th percentile.
fn medians(run: &Run) -> Vec<(String, String, Option<String>)> {
    let unit = run.clock.unit;
    // One run does not mix unlike cases.
    let series = Group::of_run(run).series().unwrap_or_default();
    let tests = series.iter().filter(|series| series.kind() == CaseKind::Test);
    tests
        .filter_map(|series| {
            let shown = |metric| series.value(metric).map(|value| unit.show(value));
            let p99 = run.latency().and_then(|_| shown(Metric::P99));
            Some((series.name.clone(), shown(Metric::Median)?, p99))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Pair, case, latency_run, measured, run};

    fn column(target: &str, ended: &str, runs: Vec<Run>) -> Column {
        let runs = runs.into_iter().enumerate().map(|(at, run)| (format!("part{at}"), run)).collect();
        Column { target: target.to_owned(), ended: ended.to_owned(), runs }
    }

    #[test]
    fn machines_stand_side_by_side() {
        let mut other = run();
        other.host.kernel.release = "5.10".to_owned();
        let columns =
            [column("a", "0", vec![run()]), column("b", "0", vec![other]), column("c", "3", vec![])];
        let text = targets(&columns);
        let line = |start: &str| {
            let found = text
                .lines()
                .find(|line| line.starts_with(start))
                .unwrap_or_else(|| panic!("{start}: {text}"));
            found.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(line("Target"), ["Target", "a", "b", "c"]);
        assert_eq!(line("ended"), ["ended", "0", "0", "3"]);
        assert_eq!(line("kernel"), ["kernel", "6.12.9-amd64", "5.10", "-"]);
        let median = line("BM_");
        assert!(
            median.contains(&"median".to_owned()) && median.last().is_some_and(|cell| cell == "-"),
            "{text}"
        );
    }

    #[test]
    fn a_latency_test_has_its_p99_and_parts_have_names() {
        let columns = [column("a", "1", vec![run(), latency_run(&[Pair::healthy(0)])])];
        let text = targets(&columns);
        assert!(text.contains("part0 BM_") && text.contains("part1 ") && text.contains(" p99 "), "{text}");
        assert!(!targets(&[column("a", "0", vec![run()])]).contains("p99"));
    }

    #[test]
    fn of_many_rows_the_typical_ones_are_shown() {
        let mut many = run();
        let family = |at: u32| format!("BM_{}_binder", at / 15);
        let new = |at: u32| case(&family(at), 4 << (at % 15), at, vec![measured(10, 1000, 1000)]);
        many.cases = (0..30).map(new).collect();
        let text = targets(&[column("a", "0", vec![many])]);
        assert!(text.contains("BM_0_binder/4 median") && text.contains("BM_1_binder/4096 median"), "{text}");
        assert!(!text.contains("BM_0_binder/8 ") && text.contains("26 rows more"), "{text}");
    }
}
