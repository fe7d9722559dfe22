//! Rules for the results of a latency test.
//! Not here: rules for times (`super`).

use super::Problem;
use crate::schema::{
    Case, Cell, Class, Inheritance, LONGEST_LOAD, Latency, LatencyTest, MOST_RAW, Percentiles, Run, Sweep,
};
use crate::verdict::{calls, numbers};
use std::collections::HashSet;

const MAX_PAIRS: u32 = 10_000;
/// Longest accepted list of hops, roles or injected faults.
const MAX_LIST: usize = 1000;
const MAX_CELLS: usize = 100_000;

/// Checks the test as a whole, and its cases against each other.
pub(super) fn run(run: &Run) -> Result<(), Problem> {
    let Some(test) = run.latency() else {
        return match run.cases.iter().find(|case| case.latency.is_some()) {
            Some(case) => Err(format!("{} is a case of a latency test, which the run is not", case.name)),
            None => Ok(()),
        };
    };
    self::test(test)?;
    if test.sweep.is_none() {
        not_inherited(run, test)?;
    }
    let mut seen = HashSet::new();
    for case in &run.cases {
        let Some(latency) = &case.latency else { continue };
        if latency.pairs > test.pairs {
            return Err(format!(
                "{} is one of {} pairs, the test has {}",
                case.name, latency.pairs, test.pairs
            ));
        }
        // A sweep has a case of each pair for many points.
        if test.sweep.is_none() && !seen.insert((latency.pair, latency.class)) {
            let class = latency.class.name();
            return Err(format!("pair {} has two cases of class {class}", latency.pair));
        }
    }
    Ok(())
}

/// The test's calls that did not inherit are those of its cases.
fn not_inherited(run: &Run, test: &LatencyTest) -> Result<(), Problem> {
    let mut cases = run.cases.iter().filter_map(|case| case.latency.as_ref()).peekable();
    if cases.peek().is_none() {
        return Ok(());
    }
    let of_cases = cases.map(|latency| latency.not_inherited).fold(0, u64::saturating_add);
    let of_test = test.inheritance.not_inherited;
    if of_cases != of_test {
        return Err(format!("not_inherited is {of_test} in the test and {of_cases} in its cases"));
    }
    Ok(())
}

fn test(test: &LatencyTest) -> Result<(), Problem> {
    if !(1..=MAX_PAIRS).contains(&test.pairs) {
        return Err(format!("{} pairs, not 1 to {MAX_PAIRS}", test.pairs));
    }
    let Inheritance { calls, not_inherited, hops, .. } = &test.inheritance;
    at_most("calls not inherited", *not_inherited, "calls looked at", *calls)?;
    for (what, length) in [("hops", hops.len()), ("roles", test.roles.len()), ("faults", test.injected.len())]
    {
        if length > MAX_LIST {
            return Err(format!("{length} {what}, more than {MAX_LIST}"));
        }
    }
    if test.all.len() > Class::BOTH.len()
        || test.all.iter().map(|of| of.class).collect::<HashSet<_>>().len() < test.all.len()
    {
        return Err("a class of callers is added up twice".to_owned());
    }
    test.all.iter().try_for_each(|of| ascending(of.percentiles))?;
    test.sweep.as_ref().map_or(Ok(()), sweep)
}

fn sweep(sweep: &Sweep) -> Result<(), Problem> {
    let deadlines = sweep.deadlines.len();
    if !(1..=MAX_LIST).contains(&deadlines) || !sweep.deadlines.is_sorted_by(|one, next| one < next) {
        return Err(format!("{deadlines} deadlines, which are not 1 to {MAX_LIST}, or do not ascend"));
    }
    if !(sweep.meet > 0.0 && sweep.meet < 1.0 && (0.5..1.0).contains(&sweep.confidence)) {
        return Err(format!(
            "a share of {} to meet a deadline with confidence {}",
            sweep.meet, sweep.confidence
        ));
    }
    if sweep.cells.len() > MAX_CELLS {
        return Err(format!("{} cells, more than {MAX_CELLS}", sweep.cells.len()));
    }
    for (number, cell) in sweep.cells.iter().enumerate() {
        self::cell(cell, deadlines).map_err(|problem| format!("cell {number}: {problem}"))?;
    }
    Ok(())
}

fn cell(cell: &Cell, deadlines: usize) -> Result<(), Problem> {
    if !(1..=MAX_PAIRS).contains(&cell.point.pairs) {
        return Err(format!("{} pairs, not 1 to {MAX_PAIRS}", cell.point.pairs));
    }
    load_and_rate(&cell.point.load, cell.point.rate_hz)?;
    if cell.misses.len() != deadlines {
        return Err(format!("misses of {} deadlines, there are {deadlines}", cell.misses.len()));
    }
    if !cell.misses.iter().rev().is_sorted() {
        return Err("more misses of a later deadline".to_owned());
    }
    at_most("misses", cell.misses.first().copied().unwrap_or(0), "calls", cell.calls)?;
    let Some(percentiles) = cell.percentiles else { return Ok(()) };
    ascending(percentiles)?;
    at_most("units of the 99th percentile", percentiles.p99, "units of the longest call", cell.worst)
}

/// Checks one case.
pub(super) fn case(case: &Case) -> Result<(), Problem> {
    let Some(latency) = &case.latency else { return Ok(()) };
    if case.repetitions.len() > 1 {
        return Err(format!("{} repetitions of a latency test, which has one", case.repetitions.len()));
    }
    if latency.pair >= latency.pairs {
        return Err(format!("pair {} of {}", latency.pair, latency.pairs));
    }
    counts(latency, calls(case))?;
    if latency.raw.len() > MOST_RAW {
        return Err(format!("{} single times, more than {MOST_RAW}", latency.raw.len()));
    }
    load_and_rate(&latency.load, latency.rate_hz)?;
    let Some(percentiles) = latency.percentiles else { return Ok(()) };
    ascending(percentiles)?;
    let samples = numbers(case).map(|numbers| &numbers.samples).filter(|samples| samples.count > 0);
    match samples {
        None => Err("percentiles of no calls".to_owned()),
        Some(samples) if percentiles.p50 < samples.min || percentiles.p99 > samples.max => {
            Err("percentiles beyond the least or greatest time".to_owned())
        }
        Some(_) => Ok(()),
    }
}

fn load_and_rate(load: &str, rate_hz: Option<f64>) -> Result<(), Problem> {
    if load.len() > LONGEST_LOAD {
        return Err(format!("{} bytes to say the load, more than {LONGEST_LOAD}", load.len()));
    }
    match rate_hz.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
        Some(rate) => Err(format!("a rate of {rate} calls per second")),
        None => Ok(()),
    }
}

fn counts(latency: &Latency, calls: u64) -> Result<(), Problem> {
    if let Some(problem) = crate::figures::exceeded(latency, calls) {
        return Err(problem);
    }
    let on_some_cpu = latency.same_cpu.checked_add(latency.migrated).ok_or("counts overflow")?;
    at_most("calls on the same CPU or migrated", on_some_cpu, "calls", calls)?;
    at_most("single times", latency.raw.len() as u64, "calls", calls)
}

fn at_most(part: &str, number: u64, whole: &str, limit: u64) -> Result<(), Problem> {
    if number > limit {
        return Err(format!("{number} {part} of {limit} {whole}"));
    }
    Ok(())
}

fn ascending(percentiles: Percentiles) -> Result<(), Problem> {
    let Percentiles { p50, p90, p95, p99 } = percentiles;
    if [p50, p90, p95, p99].is_sorted() { Ok(()) } else { Err("percentiles do not ascend".to_owned()) }
}

#[cfg(test)]
mod tests;
