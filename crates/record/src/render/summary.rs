//! The summary at the end of `binderperf run`: environment, one row for each case, problems, next steps.
//! Not here: rows during the measurement (`super::gbench`).

use super::crowd;
use super::flavours;
use super::imported;
use super::kpi;
use super::latency;
use super::printable;
use super::remarks::{findings, trouble, warnings, without_numbers};
use super::table::{Row, Table, cells};
use crate::experiments::{background, inversion, overload};
use crate::number::human;
use crate::ratio::Controls;
use crate::schema::{Case, CaseKind, ClockUnit, LimitedMemory, Measured, Repetition, Run};
use std::collections::BTreeMap;

const HEADS: [&str; 13] = [
    "Benchmark",
    "Time",
    "CPU",
    "Iterations",
    "bytes/s",
    "p50",
    "p99",
    "max",
    "x pipe",
    "x unix",
    "x futex",
    "x eventfd",
    "x spin",
];
const FIRST_RATIO: usize = 8;

/// The whole text, which ends with `what_next`. Times are means over all repetitions, percentiles are over all
/// samples; `x pipe` is the median of a case divided by that of the pipe control for its payload.
pub fn summary(run: &Run, what_next: &str) -> String {
    if let Some(imported) = &run.imported {
        return imported::summary(run, imported) + what_next;
    }
    let mut text = head(run);
    let tests: Vec<&Case> = run.cases.iter().filter(|case| case.kind == CaseKind::Test).collect();
    let controls_only = tests.is_empty();
    let shown = if controls_only { run.cases.iter().collect() } else { tests };
    let controls = Controls::of(&run.cases);
    text.push('\n');
    text += &match &run.measured {
        Measured::Inversion(experiment) => inversion::text::report(run, experiment),
        Measured::Overload(experiment) => overload::text::report(run, experiment),
        Measured::Background(experiment) => background::text::report(run, experiment),
        Measured::Latency(_) => latency::body(run),
        Measured::Cases if crowd::has_crowds(run) => crowd::table(run),
        Measured::Cases if flavours::compares_flavours(run) => flavours::tables(run),
        Measured::Cases if kpi::has_kpis(run) => kpi::table(run),
        Measured::Cases => table(run, shown.iter().map(|case| row(run, case, &controls))).text(),
    };
    let mut notes: Vec<String> = shown.iter().flat_map(|case| partly_failed(case)).collect();
    if flavours::compares_flavours(run) {
        // The table of many clients has no row for a case without numbers.
        let without = shown.iter().filter(|case| case.mean_real().is_none());
        notes.extend(without.map(|case| format!("{}: {}", case.name, without_numbers(Some(case)))));
    }
    if !controls_only {
        notes.extend(troubled_controls(run));
    }
    notes.extend(run.constraints.iter().filter_map(|held| held.memory.as_ref()).map(LimitedMemory::line));
    notes.extend(findings(run));
    notes.extend(run.ended_early().map(|reason| format!("INCOMPLETE: {reason}")));
    for part in [notes.join("\n").as_str(), what_next.trim_end()] {
        if !part.is_empty() {
            text.push('\n');
            part.lines().for_each(|line| text += &(printable(line).into_owned() + "\n"));
        }
    }
    text
}

fn head(run: &Run) -> String {
    let kernel = &run.host.kernel;
    let mut kernel_line = format!("{} {}", kernel.release, kernel.machine).trim_end().to_owned();
    if let Some(preemption) = &kernel.preemption {
        kernel_line += &format!(", preemption {preemption}");
    }
    let driver = match &run.driver {
        Some(driver) => {
            let (kind, protocol) = (driver.kind.name(), driver.protocol_version);
            format!("{kind}, {}, protocol {protocol}", driver.details())
        }
        None => "none".to_owned(),
    };
    let cpu = &run.host.cpu;
    let host = format!("{}, {} CPU {}", run.host.class.name(), cpu.count, cpu.model);
    let mut clock = run.clock.name.clone();
    if let Some(cost) = run.clock.read_cost {
        clock += &format!(", {cost:.1} {} a pair of readings, within each sample", run.clock.unit.name());
    }
    let mut lines = vec![
        format!("{} {}, {}", run.tool.name, run.tool.version, run.started),
        format!("Kernel  {kernel_line}"),
        format!("Driver  {driver}"),
        format!("Host    {}", host.trim_end()),
        format!("Clock   {clock}"),
    ];
    if let Some(driver) = run.driver.as_ref().filter(|driver| driver.choice == "auto") {
        lines.insert(3, format!("Chosen  {}", driver.reason));
    }
    if !["", "default"].contains(&run.plan.placement.as_str()) {
        lines.push(format!("Placed  {}", placed(&run.plan.placement)));
    }
    lines.extend(run.constraints.as_ref().map(|constraints| format!("Held    {}", constraints.words())));
    lines.extend(warnings(run));
    lines.iter().map(|line| printable(line).into_owned() + "\n").collect()
}

fn placed(placement: &str) -> String {
    let (sides, chosen) = placement.split_once("; ").unwrap_or((placement, ""));
    let sides = match sides {
        "same" => "both sides of every case on one CPU",
        "cross" => "the two sides of every case on two CPUs",
        "default" => "by the scheduler",
        other => other,
    };
    [sides, chosen].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn row(run: &Run, case: &Case, controls: &Controls) -> Row {
    let Some(mean) = case.mean_real() else {
        return Row::words(&case.name, &without_numbers(Some(case)));
    };
    let of_unit = |value: f64| format!("{value:.0} {}", run.clock.unit.name());
    let samples = case.samples();
    let percentile = |percent| {
        let value = samples.as_ref().and_then(|samples| samples.percentile(percent));
        value.map(|value| of_unit(value as f64))
    };
    let iterations = case.measurements().map(|numbers| numbers.iterations);
    let rate = (run.clock.unit == ClockUnit::Ns && case.payload_bytes > 0 && mean > 0.0)
        .then(|| four_digits(case.payload_bytes as f64 * 1e9 / mean));
    let median = case.median_real().unwrap_or(mean);
    let ratios: BTreeMap<String, f64> = controls.ratios(case, median).collect();
    let ratio = |head: &&str| ratios.get(&head.replace(' ', "_")).map(|ratio| format!("{ratio:.2}"));
    cells![
        &case.name,
        of_unit(mean),
        case.mean_cpu().map(of_unit),
        iterations.fold(0, u64::saturating_add),
        rate,
        percentile(50.0),
        percentile(99.0),
        percentile(100.0),
    ]
    .and(HEADS[FIRST_RATIO..].iter().map(ratio))
}

/// A number with four significant digits, e.g. `1.164M`.
fn four_digits(value: f64) -> String {
    let rounded = format!("{value:.3e}").parse().unwrap_or(value);
    human(rounded, 1000.0)
}

fn table(run: &Run, rows: impl Iterator<Item = Row>) -> Table {
    let mut heads = HEADS;
    if run.clock.unit == ClockUnit::Instructions {
        (heads[1], heads[2]) = ("Instructions", "CPU");
    }
    Table::new(heads).rows(rows)
}

/// Failed repetitions of cases that have numbers from others.
fn partly_failed(case: &Case) -> Vec<String> {
    if case.mean_real().is_none() {
        return Vec::new();
    }
    let note = |repetition: &Repetition| {
        let trouble = trouble(&repetition.outcome)?;
        Some(format!("{} repetition {}: {trouble}", case.name, repetition.index))
    };
    case.repetitions.iter().filter_map(note).collect()
}

/// One line for each control family and problem, however many payloads are affected.
fn troubled_controls(run: &Run) -> Vec<String> {
    let mut counts: BTreeMap<(u32, &str, String), usize> = BTreeMap::new();
    for case in run.cases.iter().filter(|case| case.kind == CaseKind::Control) {
        for trouble in case.outcomes().filter_map(trouble) {
            *counts.entry((case.family_index, &case.family, trouble)).or_default() += 1;
        }
    }
    let note = |((_, family, trouble), count)| match count {
        1 => format!("{family}: {trouble}"),
        count => format!("{family} ({count} times): {trouble}"),
    };
    counts.into_iter().map(note).collect()
}

#[cfg(test)]
mod tests;
