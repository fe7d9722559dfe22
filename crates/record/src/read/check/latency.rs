//! Room: the rules of what a latency test found.
//! Not here: the times (`super`).

use super::Problem;
use crate::schema::{Case, Class, Inheritance, Latency, LatencyTest, Percentiles, Run};
use crate::verdict::{calls, numbers};
use std::collections::HashSet;

const MAX_PAIRS: u32 = 10_000;
/// Longest list of hops, roles or injected faults.
const MAX_LIST: usize = 1000;
/// Longest word that says how much load there is.
const MAX_LOAD: usize = 200;
/// Most single times of a case, as many as fit into a document that can be read.
const MAX_RAW: usize = 20_000_000;

/// The test as a whole, and its cases against each other.
pub(super) fn run(run: &Run) -> Result<(), Problem> {
    let Some(test) = &run.latency else {
        return match run.cases.iter().find(|case| case.latency.is_some()) {
            Some(case) => Err(format!("{} is a case of a latency test, which the run is not", case.name)),
            None => Ok(()),
        };
    };
    self::test(test)?;
    let mut seen = HashSet::new();
    for case in &run.cases {
        let Some(latency) = &case.latency else { continue };
        if latency.pairs > test.pairs {
            return Err(format!(
                "{} is one of {} pairs, the test has {}",
                case.name, latency.pairs, test.pairs
            ));
        }
        if !seen.insert((latency.pair, latency.class)) {
            let class = latency.class.name();
            return Err(format!("pair {} has two cases of class {class}", latency.pair));
        }
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
    test.all.iter().try_for_each(|of| ascending(of.percentiles))
}

/// One case.
pub(super) fn case(case: &Case) -> Result<(), Problem> {
    let Some(latency) = &case.latency else { return Ok(()) };
    if case.repetitions.len() > 1 {
        return Err(format!("{} repetitions of a latency test, which has one", case.repetitions.len()));
    }
    if latency.pair >= latency.pairs {
        return Err(format!("pair {} of {}", latency.pair, latency.pairs));
    }
    counts(latency, calls(case))?;
    if latency.raw.len() > MAX_RAW {
        return Err(format!("{} single times, more than {MAX_RAW}", latency.raw.len()));
    }
    if latency.load.len() > MAX_LOAD {
        return Err(format!("{} bytes to say the load, more than {MAX_LOAD}", latency.load.len()));
    }
    if latency.rate_hz.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
        return Err(format!("a rate of {} calls per second", latency.rate_hz.unwrap_or_default()));
    }
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

fn counts(latency: &Latency, calls: u64) -> Result<(), Problem> {
    at_most("misses", latency.misses, "calls", calls)?;
    at_most("bubbles", latency.bubbles, "misses", latency.misses)?;
    let on_some_cpu = latency.same_cpu.checked_add(latency.migrated).ok_or("counts overflow")?;
    at_most("calls on the same CPU or migrated", on_some_cpu, "calls", calls)?;
    at_most("calls not inherited", latency.not_inherited, "calls", calls)?;
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
