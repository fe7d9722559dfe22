//! Renders cases with many clients: a table, and the lines of Android's throughput tests.
//! Not here: cases with one client and its service (`super::summary`).
//! Facts: the lines of AOSP `binderThroughputTest` (Android 14), except that percentages are percentages and numbers
//! have no exponents.

mod aosp;

pub use aosp::{PERCENTILES, exact_rate_line, exact_time_lines, training_line};

use super::remarks::{trouble, without_numbers};
use super::table::{Row, Table, cells};
use crate::Distribution;
use crate::schema::{Case, ClockUnit, Measurement, Outcome, Run};
use crate::stats;

/// Whether a run has cases with many clients.
pub(super) fn has_crowds(run: &Run) -> bool {
    run.cases.iter().any(|case| case.crowd.is_some())
}

/// One row for each case; the rate is the median of its repetitions. A rule marks where clients begin to outnumber
/// CPUs.
pub(super) fn table(run: &Run) -> String {
    let mut rows = Vec::new();
    let mut before: Option<&Case> = None;
    for case in &run.cases {
        let overloaded = |case: &Case| case.crowd.as_ref().is_some_and(|crowd| crowd.overloaded);
        let same_series = before.filter(|before| series(before) == series(case));
        if overloaded(case) && !same_series.is_some_and(overloaded) {
            let cpus = run.host.cpu.count;
            rows.push(Row::Rule(format!("overload: more clients than CPUs ({cpus})")));
        } else if before.is_some() && same_series.is_none() {
            rows.push(Row::Rule(String::new()));
        }
        rows.push(row(run, case));
        before = Some(case);
    }
    Table::new(["Benchmark", "calls/s", "average", "p50", "p90", "p99", "max", ""]).rows(rows).text()
}

/// The key of cases that differ only in the number of clients.
fn series(case: &Case) -> (&str, Option<crate::CrowdShape>, u64) {
    (&case.family, case.crowd.as_ref().map(|crowd| crowd.shape), case.payload_bytes)
}

fn row(run: &Run, case: &Case) -> Row {
    // Including those of failed repetitions.
    let measured: Vec<&Measurement> = case.outcomes().filter_map(Outcome::numbers).collect();
    let broken = case.outcomes().find_map(trouble);
    let samples = Distribution::merged(measured.iter().map(|numbers| &numbers.samples));
    let Some(samples) = samples else {
        return Row::words(&case.name, &without_numbers(Some(case)));
    };
    let of_unit = |value: f64| format!("{value:.0} {}", run.clock.unit.name());
    let percentile = |percent| samples.percentile(percent).map(|value| of_unit(value as f64));
    let rates: Vec<f64> = measured.iter().filter_map(|numbers| rate(numbers)).collect();
    let means: Vec<f64> = measured.iter().filter_map(|numbers| numbers.mean_real()).collect();
    cells![
        &case.name,
        stats::median(&rates).map(|rate| format!("{rate:.0}")),
        stats::mean(&means).map(of_unit),
        percentile(50.0),
        percentile(90.0),
        percentile(99.0),
        percentile(100.0),
        broken.map(|_| "INCOMPLETE"),
    ]
}

fn rate(numbers: &Measurement) -> Option<f64> {
    numbers.counters.find("calls_per_second").map(|counter| counter.value)
}

/// The line with the rate of a repetition, as Android's tools print it.
pub fn rate_line(numbers: &Measurement) -> String {
    format!("iterations per sec: {}\n", plain(rate(numbers).unwrap_or(0.0), 1))
}

/// The lines with the times of a repetition, as Android's tools print them.
pub fn time_lines(run: &Run, numbers: &Measurement) -> String {
    let millis = in_unit(run);
    let samples = &numbers.samples;
    let counter = |name: &str| numbers.counters.find(name).map(|counter| counter.value);
    let mut text = String::new();
    if let Some(longer) = counter("longer").filter(|longer| *longer > 0.0 && samples.count > 0) {
        let percent = plain(longer / samples.count as f64 * 100.0, 6);
        let worst = samples.max.div_ceil(1000);
        text += &format!(
            "{percent}% of transactions took longer than estimated max latency. Consider setting -m to be higher \
             than {worst} microseconds\n"
        );
    }
    let [average, worst, best] =
        [numbers.mean_real().unwrap_or(0.0), samples.max as f64, samples.min as f64].map(in_millions);
    text += &format!("average:{average}{millis} worst:{worst}{millis} best:{best}{millis}\n");
    let percentiles = [50, 90, 95, 99].map(|percent| {
        let value = counter(&format!("exact_p{percent}")).map(in_millions).unwrap_or_default();
        format!("{percent}%: {value}")
    });
    text + &percentiles.join(" ") + "\n"
}

/// The unit of a million clock units.
fn in_unit(run: &Run) -> &'static str {
    match run.clock.unit {
        ClockUnit::Ns => "ms",
        ClockUnit::Instructions => "Minsns",
    }
}

/// All repetitions of all cases as Android's tools print them, and the failures.
pub fn lines(run: &Run) -> String {
    let mut text = String::new();
    for case in run.cases.iter().filter(|case| case.crowd.is_some()) {
        if run.cases.len() > 1 {
            text += &format!("{}\n", case.name);
        }
        for numbers in case.outcomes().filter_map(Outcome::numbers) {
            text += &rate_line(numbers);
            text += &time_lines(run, numbers);
        }
        let troubles = case.outcomes().filter_map(trouble);
        text += &troubles.map(|trouble| super::printable(&trouble).into_owned() + "\n").collect::<String>();
    }
    text
}

fn in_millions(value: f64) -> String {
    plain(value / 1e6, 6)
}

/// A number with at most `decimals` decimals, no trailing zeros and no exponent.
fn plain(value: f64, decimals: usize) -> String {
    units::without_zeros(&format!("{value:.decimals$}")).to_owned()
}

#[cfg(test)]
mod tests;
