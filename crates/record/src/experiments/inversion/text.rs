//! The priority-inversion experiment as text: a row for each setting, distributions, and the verdict.
//! Not here: computing the verdict (`lateness`).

use super::lateness::{INVERTED_SHARE, LATE_BY, LATE_FACTOR, LEAST_CALLS};
use crate::Distribution;
use crate::render::printable;
use crate::render::remarks::without_numbers;
use crate::render::table::{Row, Table, cells};
use crate::schema::{DriverKind, Inversion, InversionRow, Outcome, Run, Sched, Setting};

/// Table, distributions and verdict.
pub(crate) fn report(run: &Run, experiment: &Inversion) -> String {
    let heads = ["Setting", "calls", "p50", "p90", "p95", "p99", "max", "late", "served as", "inversion"];
    let mut text = Table::new(heads).rows(experiment.rows.iter().map(|row| line(run, row))).text();
    text += &distributions(run, experiment);
    text.push('\n');
    text += &words(run, experiment);
    text
}

/// The experiment on one line, e.g. `SCHED_FIFO 99 caller, hwbinder server and 2 hogs (other) on CPU 1`.
fn scene(experiment: &Inversion) -> String {
    let Inversion { flavour, cpu, hogs, hog_class, caller, .. } = experiment;
    let hogs = if *hogs == 1 { "1 hog".to_owned() } else { format!("{hogs} hogs") };
    format!("{} caller, {flavour} server and {hogs} ({hog_class}), all on CPU {cpu}", scheduling(*caller))
}

fn scheduling(sched: Sched) -> String {
    let name = sched.policy_name().unwrap_or("policy unknown").trim_start_matches("SCHED_");
    match sched.is_realtime() {
        true => format!("{name} {}", sched.priority),
        false => format!("{name} nice {}", sched.nice),
    }
}

fn samples(run: &Run, row: &InversionRow) -> Option<Distribution> {
    let case = run.case(&row.case)?;
    Distribution::merged(case.outcomes().filter_map(Outcome::numbers).map(|numbers| &numbers.samples))
}

fn line(run: &Run, row: &InversionRow) -> Row {
    let (Some(percentiles), Some(samples)) = (row.percentiles, samples(run, row)) else {
        return Row::words(&row.case, &without_numbers(run.case(&row.case)));
    };
    let of_unit = |value: u64| run.clock.unit.show(value as f64);
    let served = row.served.first().map(|most| match row.served.len() {
        1 => scheduling(most.sched),
        _ => format!("{} ({:.0} %)", scheduling(most.sched), percent(most.calls, row.calls)),
    });
    let verdict = match (row.setting, row.inverted) {
        (Setting::Quiet, _) => "no hogs",
        (Setting::Raised, Some(false)) => "reference",
        (_, Some(true)) => "YES",
        (_, Some(false)) => "no",
        (_, None) => "?",
    };
    cells![
        &row.case,
        row.calls,
        of_unit(percentiles.p50),
        of_unit(percentiles.p90),
        of_unit(percentiles.p95),
        of_unit(percentiles.p99),
        of_unit(samples.max),
        format!("{:.1} %", percent(row.late, row.calls)),
        served,
        verdict,
    ]
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Columns for each doubling of the time.
const PER_DOUBLING: f64 = 2.0;
/// Characters from no call to most calls.
const SHADES: &[u8] = b" .:-=+*#%@";

fn column(value: u64, first: u64) -> usize {
    let doublings = (value.max(1) as f64).log2() - (first.max(1) as f64).log2();
    (doublings * PER_DOUBLING).floor().max(0.0) as usize
}

/// A line for each setting on a common logarithmic axis: darker where more of its calls lie.
fn distributions(run: &Run, experiment: &Inversion) -> String {
    let all: Vec<(&InversionRow, Distribution)> = experiment
        .rows
        .iter()
        .filter_map(|row| Some((row, samples(run, row)?)))
        .filter(|(_, samples)| samples.count > 0)
        .collect();
    let least = all.iter().map(|(_, samples)| samples.min).min();
    let Some((least, most)) = least.zip(all.iter().map(|(_, samples)| samples.max).max()) else {
        return String::new();
    };
    let first = 1 << least.max(1).ilog2();
    let columns = column(most, first) + 1;
    let width = all.iter().map(|(row, _)| row.setting.name().len()).max().unwrap_or(0);
    let mut text = format!("\n{:width$}  {}\n", "", axis(run, first, columns));
    for (row, samples) in &all {
        let mut counts = vec![0u64; columns];
        for &(value, count) in &samples.buckets {
            counts[column(value, first).min(columns - 1)] += count;
        }
        let highest = counts.iter().copied().max().unwrap_or(1).max(1);
        let shade = |count: &u64| {
            // A single call must be visible, too.
            let step = (count * (SHADES.len() as u64 - 1)).div_ceil(highest);
            char::from(SHADES[step as usize])
        };
        let shades: String = counts.iter().map(shade).collect();
        text += &format!("{:width$} |{shades}|\n", row.setting.name());
    }
    text
}

/// An axis with the time of every eighth column.
fn axis(run: &Run, first: u64, columns: usize) -> String {
    const STEP: usize = 8;
    let each = (0..columns.div_ceil(STEP)).map(|step| {
        let doublings = (step * STEP) as f64 / PER_DOUBLING;
        format!("{:<STEP$}", run.clock.unit.show_round((first as f64 * doublings.exp2()).floor()))
    });
    each.collect::<String>().trim_end().to_owned()
}

/// Explanation and verdict, which follow the table.
fn words(run: &Run, experiment: &Inversion) -> String {
    let mut lines = vec![scene(experiment)];
    if let Some(limit) = experiment.limit {
        lines.push(format!(
            "late: longer than {}; {LATE_FACTOR} times the usual time, and {} more than it. Inversion: {:.0} % of the calls \
             late beyond the reference's",
            run.clock.unit.show(limit as f64),
            run.clock.unit.show_round(LATE_BY as f64),
            INVERTED_SHARE * 100.0,
        ));
    }
    let means = experiment.rows.iter().map(|row| format!("{}: {}", row.setting.name(), row.means));
    lines.push(means.collect::<Vec<_>>().join("; "));
    lines.push(verdict(run, experiment));
    lines.iter().map(|line| printable(line).into_owned() + "\n").collect()
}

/// The verdict as a sentence that begins with INVERSION, NO INVERSION or UNKNOWN.
pub(crate) fn verdict(run: &Run, experiment: &Inversion) -> String {
    let inverted = |setting| experiment.row(setting).and_then(|row| row.inverted);
    let served = experiment.row(Setting::On).and_then(|row| row.served.first());
    let as_served = served.map(|most| format!(" (served as {})", scheduling(most.sched))).unwrap_or_default();
    match (inverted(Setting::On), inverted(Setting::Off)) {
        (Some(false), Some(true)) => {
            format!("NO INVERSION with inheritance{as_served}; without it there is")
        }
        (Some(false), Some(false)) => format!(
            "NO INVERSION with inheritance{as_served}, yet none without it either: these hogs do not keep a server of \
             normal priority waiting, so this says nothing about inheritance; try others (--hogs, --hog-class)"
        ),
        (Some(false), None) => {
            format!("NO INVERSION with inheritance{as_served}; without it the result is undecided")
        }
        (Some(true), _) => {
            let kind = run.driver.as_ref().map(|driver| driver.kind);
            let mainline = match kind {
                Some(DriverKind::KernelC) => {
                    "; mainline's C driver passes on nice only, Android's kernels real-time too"
                }
                Some(DriverKind::KernelRust) => "; mainline's Rust driver passes on no priority at all",
                _ => "",
            };
            let raised = match (inverted(Setting::Raised), kind) {
                (Some(true), Some(DriverKind::Embedded)) => {
                    "; calls of a server that was raised by hand are late as well, so it is not the server that waits \
                     behind the hogs: the driver's broker may (--direct=off)"
                }
                (Some(true), _) => {
                    "; calls of a server that was raised by hand are late as well: something else disturbs this machine, \
                     so run it again before you trust the times"
                }
                _ => "",
            };
            format!("INVERSION although inheritance was asked for{as_served}{mainline}{raised}")
        }
        (None, _) if experiment.row(Setting::On).is_some_and(|row| row.calls >= LEAST_CALLS) => {
            "UNKNOWN: calls were late beside those without hogs, but hardly more often than those of a server that was \
             raised by hand: the machine was disturbed, run it again"
                .to_owned()
        }
        (None, _) => "UNKNOWN: too few calls were made to tell".to_owned(),
    }
}

#[cfg(test)]
mod tests;
