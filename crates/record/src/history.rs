//! Room: what runs measured over time: one line of JSON for each number, series of them, and where they change.
//! Not here: the file (`cli`), how changes are found (`crate::stats::change`).
//!
//! Lines are only ever appended. One that was cut short, by a full disk or a kill, costs itself and no other.

use crate::compare::{Group, Metric, Number};
use crate::date::milliseconds;
use crate::schema::{ClockUnit, Run};
use crate::stats::change::changes;
use crate::stats::median;
use crate::stats::rank::ranks;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The metrics of each case that are kept.
pub const METRICS: [Metric; 3] = [Metric::Median, Metric::P99, Metric::Mean];
/// The newest values of a series that are searched for changes: the search takes their square.
pub const SEARCHED: usize = 500;
/// Changes that chance makes more often are none.
const CHANCE: f64 = 0.01;

/// One number of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When the run began, RFC 3339.
    pub date: String,
    /// The case, as comparisons name it.
    pub case: String,
    /// Which number of it.
    pub metric: Metric,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: ClockUnit,
    /// Machine, driver and settings of the test: only what has the same key is one series.
    pub environment: String,
    /// The kernel, which a series may change with.
    pub kernel: String,
    /// Version of binderperf, with its commit if known; likewise.
    pub tool: String,
}

/// Every kept number of a run.
#[must_use]
pub fn entries(run: &Run) -> Vec<Entry> {
    let group = Group::of_run(run);
    let settings = environment(run);
    let git = run.tool.git.as_ref().map(|git| format!(" {git}")).unwrap_or_default();
    let entry = |Number { case, circumstances, metric, value }: Number| Entry {
        date: run.started.clone(),
        case,
        metric,
        value,
        unit: run.clock.unit,
        environment: [settings.as_str(), circumstances.as_str()].join(if circumstances.is_empty() {
            ""
        } else {
            "; "
        }),
        kernel: run.host.kernel.release.clone(),
        tool: format!("{}{git}", run.tool.version),
    };
    group.numbers(&METRICS).into_iter().map(entry).collect()
}

/// What must be the same for numbers to be of one series, in words that a person can tell apart.
#[must_use]
pub fn environment(run: &Run) -> String {
    let driver = run.driver.as_ref();
    let settings = driver.and_then(|driver| driver.embedded.as_ref()).map(crate::EmbeddedSettings::describe);
    let parts = [
        run.host.host_name.clone(),
        run.host.class.name().to_owned(),
        format!("{} x {}", run.host.cpu.count, run.host.cpu.model),
        driver.map_or("no driver", |driver| driver.kind.name()).to_owned(),
        settings.unwrap_or_default(),
        run.plan.placement.clone(),
        run.tool.build_profile.clone(),
        run.latency.as_ref().map_or(String::new(), |test| test.injected.join(" ")),
    ];
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    crate::render::printable(&parts.collect::<Vec<_>>().join("; ")).into_owned()
}

impl Entry {
    /// As a line of the file, with its end.
    #[must_use]
    pub fn line(&self) -> String {
        serde_json::to_string(self).map_or_else(|_| String::new(), |line| line + "\n")
    }

    fn key(&self) -> (&str, Metric, &str, bool) {
        (&self.case, self.metric, &self.environment, self.unit == ClockUnit::Ns)
    }
}

/// Lines into entries; and the numbers, from 1, of the lines that are none.
#[must_use]
pub fn parse(text: &str) -> (Vec<Entry>, Vec<usize>) {
    let (mut entries, mut strange) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str::<Entry>(line) {
            Ok(entry)
                if entry.value.is_finite() && entry.value > 0.0 && milliseconds(&entry.date).is_some() =>
            {
                entries.push(entry);
            }
            _ => strange.push(number),
        }
    }
    (entries, strange)
}

/// Those of the entries that the others do not have.
#[must_use]
pub fn fresh(known: &[Entry], added: Vec<Entry>) -> Vec<Entry> {
    let keys: std::collections::HashSet<_> =
        known.iter().map(|entry| (entry.key(), entry.date.as_str())).collect();
    added.into_iter().filter(|entry| !keys.contains(&(entry.key(), entry.date.as_str()))).collect()
}

/// The values of one case, metric and environment, in the order of their dates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// The case.
    pub case: String,
    /// Which number of it.
    pub metric: Metric,
    /// Where.
    pub environment: String,
    /// The unit of the values.
    pub unit: ClockUnit,
    /// The values.
    pub entries: Vec<Entry>,
    /// Where their level or spread changes.
    pub changes: Vec<Turn>,
}

/// A change of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Turn {
    /// The first value after it, from 0.
    pub at: usize,
    /// The middle of the values between the change before and this one.
    pub before: f64,
    /// The middle of the values up to the next change.
    pub after: f64,
    /// Share of drawn orders with as strong a change.
    pub p: f64,
}

/// All series of these entries, by name.
#[must_use]
pub fn series(entries: &[Entry]) -> Vec<Series> {
    let mut all: BTreeMap<(&str, Metric, &str, bool), Vec<&Entry>> = BTreeMap::new();
    entries.iter().for_each(|entry| all.entry(entry.key()).or_default().push(entry));
    let one = |((case, metric, environment, _), mut entries): (_, Vec<&Entry>)| {
        // Stable for those of one moment.
        entries.sort_by_key(|entry| milliseconds(&entry.date));
        let (case, environment): (&str, &str) = (case, environment);
        Series {
            case: case.to_owned(),
            metric,
            environment: environment.to_owned(),
            unit: entries[0].unit,
            changes: turns(&entries),
            entries: entries.into_iter().cloned().collect(),
        }
    };
    all.into_iter().map(one).collect()
}

fn turns(entries: &[&Entry]) -> Vec<Turn> {
    let first = entries.len().saturating_sub(SEARCHED);
    let values: Vec<f64> = entries[first..].iter().map(|entry| entry.value).collect();
    // By their ranks: one disturbed run, three times as long, must not hide a step of 5 %.
    let found = changes(&ranks(&values), CHANCE, 1);
    let borders: Vec<usize> =
        std::iter::once(0).chain(found.iter().map(|change| change.at)).chain([values.len()]).collect();
    let level = |part: usize| median(&values[borders[part]..borders[part + 1]]).unwrap_or(0.0);
    let turn = |(at, change): (usize, &crate::stats::change::Change)| Turn {
        at: first + change.at,
        before: level(at),
        after: level(at + 1),
        p: change.p,
    };
    found.iter().enumerate().map(turn).collect()
}

/// The series of one environment as a table that Apache Otava reads: a row for each run, a column for each case and
/// metric. Empty cells are left so.
#[must_use]
pub fn csv(all: &[Series]) -> String {
    type Row<'e> = (Option<i64>, &'e str, &'e str, &'e str);
    let mut rows: BTreeMap<Row<'_>, BTreeMap<usize, f64>> = BTreeMap::new();
    for (column, series) in all.iter().enumerate() {
        for entry in &series.entries {
            let row = (milliseconds(&entry.date), &*entry.date, &*entry.kernel, &*entry.tool);
            let row = rows.entry(row).or_default();
            row.insert(column, entry.value);
        }
    }
    let names: Vec<String> = all.iter().map(|series| quoted(&column(series))).collect();
    let mut text = format!("time,kernel,tool,{}\n", names.join(","));
    for ((_, date, kernel, tool), values) in &rows {
        let cells = (0..all.len()).map(|at| values.get(&at).map_or(String::new(), ToString::to_string));
        let cells = cells.collect::<Vec<_>>().join(",");
        let _ = writeln!(text, "{},{},{},{cells}", quoted(date), quoted(kernel), quoted(tool));
    }
    text
}

/// The name of a series' column, e.g. `BM_sendVec_binder_4.median`; otava splits at nothing in it.
#[must_use]
pub fn column(series: &Series) -> String {
    let plain =
        |letter: char| if letter.is_ascii_alphanumeric() || "_.-".contains(letter) { letter } else { '_' };
    format!("{}.{}", series.case.chars().map(plain).collect::<String>(), series.metric.name())
}

fn quoted(text: &str) -> String {
    let text = crate::render::printable(text);
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into_owned() }
}

#[cfg(test)]
mod tests;
