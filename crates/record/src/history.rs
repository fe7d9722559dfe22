//! The history of results: one line of JSON for each number, series of them, and their change points.
//! Not here: the file (`store::history`), the detection of changes (`crate::stats::change`).
//!
//! Lines are only appended. A line that was cut short, by a full disk or a kill, affects no other.

use crate::compare::{Group, Metric};
use crate::date::milliseconds;
use crate::schema::{ClockUnit, Run};
use crate::stats::change::changes;
use crate::stats::median;
use crate::stats::rank::ranks;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The metrics that are kept for each case.
pub const METRICS: [Metric; 3] = [Metric::Median, Metric::P99, Metric::Mean];
/// The newest values of a series in which changes are searched: the cost grows with their square.
pub const SEARCHED: usize = 500;
/// Highest p-value of a change.
const CHANCE: f64 = 0.01;

/// One number of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When the run began, RFC 3339.
    pub date: String,
    /// The case, as comparisons name it.
    pub case: String,
    /// The metric.
    pub metric: Metric,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: ClockUnit,
    /// Machine, driver and settings of the test. Only entries with equal text form one series.
    pub environment: String,
    /// The kernel, which may change within a series.
    pub kernel: String,
    /// Version of binderperf, with its commit if known, which may change within a series.
    pub tool: String,
}

/// The entries of a run: one for each kept metric of each case.
#[must_use]
pub fn entries(run: &Run) -> Vec<Entry> {
    let settings = environment(run);
    let git = run.tool.git.as_ref().map(|git| format!(" {git}")).unwrap_or_default();
    let mut entries = Vec::new();
    for case in Group::of_run(run).series().unwrap_or_default() {
        let circumstances = case.shape.circumstances();
        let separator = if circumstances.is_empty() { "" } else { "; " };
        let entry = |metric| {
            Some(Entry {
                date: run.started.clone(),
                case: case.name.clone(),
                metric,
                value: case.value(metric)?,
                unit: run.clock.unit,
                environment: format!("{settings}{separator}{circumstances}"),
                kernel: run.host.kernel.release.clone(),
                tool: format!("{}{git}", run.tool.version),
            })
        };
        entries.extend(METRICS.into_iter().filter_map(entry));
    }
    entries
}

/// Machine, driver and settings, as text: numbers of one series have it in common.
#[must_use]
pub fn environment(run: &Run) -> String {
    let driver = run.driver.as_ref();
    let settings = driver.and_then(|driver| driver.embedded.as_ref()).map(crate::EmbeddedSettings::describe);
    let parts = [
        run.host.host_name.clone(),
        run.host.class.name().to_owned(),
        match run.host.cpu.count {
            0 => run.host.cpu.model.clone(),
            count => format!("{count} x {}", run.host.cpu.model),
        },
        match (&run.imported, driver) {
            (Some(other), _) => other.program.clone(),
            (None, driver) => driver.map_or("no driver", |driver| driver.kind.name()).to_owned(),
        },
        settings.unwrap_or_default(),
        run.plan.placement.clone(),
        run.constraints.as_ref().map_or(String::new(), crate::Constraints::words),
        run.tool.build_profile.clone(),
        run.latency().map_or(String::new(), |test| test.injected.join(" ")),
    ];
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    units::visible::printable(&parts.collect::<Vec<_>>().join("; ")).into_owned()
}

impl Entry {
    /// The entry as a line of the history file, with its newline.
    #[must_use]
    pub fn line(&self) -> String {
        serde_json::to_string(self).map_or_else(|_| String::new(), |line| line + "\n")
    }

    fn key(&self) -> (&str, Metric, &str, bool) {
        (&self.case, self.metric, &self.environment, self.unit == ClockUnit::Ns)
    }
}

/// Parses a history file: entries, and the numbers (from 1) of invalid lines.
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

/// The added entries that are not known yet.
#[must_use]
pub fn fresh(known: &[Entry], added: Vec<Entry>) -> Vec<Entry> {
    let keys: std::collections::HashSet<_> =
        known.iter().map(|entry| (entry.key(), entry.date.as_str())).collect();
    added.into_iter().filter(|entry| !keys.contains(&(entry.key(), entry.date.as_str()))).collect()
}

/// The values of one case, metric and environment, ordered by date.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// The case.
    pub case: String,
    /// The metric.
    pub metric: Metric,
    /// The environment.
    pub environment: String,
    /// The unit of the values.
    pub unit: ClockUnit,
    /// The values.
    pub entries: Vec<Entry>,
    /// The changes of level or spread.
    pub changes: Vec<LevelChange>,
}

/// A change of level or spread in a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LevelChange {
    /// Index of the first value after the change.
    pub at: usize,
    /// Median of the values between the previous change and this one.
    pub before: f64,
    /// Median of the values up to the next change.
    pub after: f64,
    /// Share of random permutations with a change as strong.
    pub p: f64,
}

/// All series of these entries, ordered by name.
#[must_use]
pub fn series(entries: &[Entry]) -> Vec<Series> {
    let mut all: BTreeMap<(&str, Metric, &str, bool), Vec<&Entry>> = BTreeMap::new();
    entries.iter().for_each(|entry| all.entry(entry.key()).or_default().push(entry));
    let one = |((case, metric, environment, _), mut entries): (_, Vec<&Entry>)| {
        // A stable sort keeps the order of entries with equal dates.
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

fn turns(entries: &[&Entry]) -> Vec<LevelChange> {
    let first = entries.len().saturating_sub(SEARCHED);
    let values: Vec<f64> = entries[first..].iter().map(|entry| entry.value).collect();
    // Ranks, because one disturbed run, three times as long, must not hide a step of 5 %.
    let found = changes(&ranks(&values), CHANCE, 1);
    let borders: Vec<usize> =
        std::iter::once(0).chain(found.iter().map(|change| change.at)).chain([values.len()]).collect();
    let level = |part: usize| median(&values[borders[part]..borders[part + 1]]).unwrap_or(0.0);
    let turn = |(at, change): (usize, &crate::stats::change::Change)| LevelChange {
        at: first + change.at,
        before: level(at),
        after: level(at + 1),
        p: change.p,
    };
    found.iter().enumerate().map(turn).collect()
}

#[cfg(test)]
mod tests;
