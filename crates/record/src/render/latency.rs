//! Room: latency tests: calls gathered for a row or an object, and the lines on who took part.
//! Not here: the two looks themselves (`json`, `table`), what is good or poor (`crate::verdict`).
//! Facts: keys, lines and the order of both: AOSP `libhwbinder_latency` and `schd-dbg` (Android 8 to 14).

mod json;
mod object;
mod sweep;
mod table;

pub use json::{Options, json};
pub use table::table;

pub(super) use table::{HEADS, HOPS, body, hop_cells, pair_cells};

use crate::Distribution;
use crate::schema::{
    Case, Class, ClockUnit, LatencyTest, Measurement, Outcome, Percentiles, Role, Run, Sched,
};
use crate::verdict::{Served, numbers};
use std::collections::BTreeSet;

/// Calls that are told of together: those of one pair, or of all.
pub(super) struct Group<'r> {
    /// Which pair; `None` for all.
    pair: Option<u32>,
    cases: Vec<&'r Case>,
}

impl<'r> Group<'r> {
    /// All pairs together, then each of them.
    pub(super) fn of(run: &'r Run) -> Vec<Group<'r>> {
        let cases = || run.cases.iter().filter_map(|case| Some((case.latency.as_ref()?.pair, case)));
        let pairs: BTreeSet<u32> = cases().map(|(pair, _)| pair).collect();
        let all = Group { pair: None, cases: cases().map(|(_, case)| case).collect() };
        let each = pairs.into_iter().map(|pair| Group {
            pair: Some(pair),
            cases: cases().filter(|(of, _)| *of == pair).map(|(_, case)| case).collect(),
        });
        [all].into_iter().chain(each).collect()
    }

    /// `ALL`, `P0`, `P1`, ...
    fn name(&self) -> String {
        self.pair.map_or("ALL".to_owned(), |pair| format!("P{pair}"))
    }

    /// The cases of one class.
    fn of_class(&self, class: Class) -> impl Iterator<Item = &'r Case> {
        let of_class = move |case: &Case| case.latency.as_ref().is_some_and(|latency| latency.class == class);
        self.cases.iter().copied().filter(move |case| of_class(case))
    }

    /// The calls of one class; `None` without any.
    pub(super) fn calls(&self, class: Class, test: &LatencyTest) -> Option<Calls> {
        let cases: Vec<&Case> = self.of_class(class).collect();
        let numbers: Vec<&Measurement> = cases.iter().filter_map(|case| numbers(case)).collect();
        let found = || cases.iter().filter_map(|case| case.latency.as_ref());
        let total = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
        let alone = match found().collect::<Vec<_>>()[..] {
            [one] => one.percentiles,
            _ => None,
        };
        let together = || test.all.iter().find(|all| all.class == class).map(|all| all.percentiles);
        Some(Calls {
            samples: Distribution::merged(numbers.iter().map(|numbers| &numbers.samples))?,
            misses: total(&mut found().map(|latency| latency.misses)),
            bubbles: total(&mut found().map(|latency| latency.bubbles)),
            percentiles: if self.pair.is_some() { alone } else { together().or(alone) },
            served: Served::of(cases.iter().copied()),
        })
    }

    /// Why it broke; each reason once.
    fn failures(&self) -> Vec<&'r str> {
        let outcomes = self.cases.iter().flat_map(|case| &case.repetitions);
        once(outcomes.filter_map(|repetition| match &repetition.outcome {
            Outcome::Failed { reason, .. } => Some(reason.as_str()),
            Outcome::Measured(_) | Outcome::Skipped { .. } => None,
        }))
    }

    /// Why calls of this class broke, or were not tried; each reason once.
    fn trouble(&self, class: Class) -> Vec<&'r str> {
        once(self.of_class(class).flat_map(|case| &case.repetitions).filter_map(|repetition| {
            match &repetition.outcome {
                Outcome::Failed { reason, .. } | Outcome::Skipped { reason } => Some(reason.as_str()),
                Outcome::Measured(_) => None,
            }
        }))
    }
}

fn once<'r>(reasons: impl Iterator<Item = &'r str>) -> Vec<&'r str> {
    let mut seen: Vec<&str> = Vec::new();
    for reason in reasons {
        if !seen.contains(&reason) {
            seen.push(reason);
        }
    }
    seen
}

/// Numbers of calls that are told of together.
pub(super) struct Calls {
    pub(super) samples: Distribution,
    pub(super) misses: u64,
    bubbles: u64,
    /// `None` where nobody could tell them exactly.
    pub(super) percentiles: Option<Percentiles>,
    pub(super) served: Served,
}

/// The lines of `-v`, one for each role: what it is, where and how it ran. A priority that was only lent is
/// marked, and the name of a policy newer than this program is `???`.
pub fn roles(run: &Run) -> String {
    let test = run.latency.as_ref();
    test.iter()
        .flat_map(|test| &test.roles)
        .map(|role| super::printable(&line(role)).into_owned() + "\n")
        .collect()
}

fn line(role: &Role) -> String {
    let Role { role, pid, tid, cpu, sched, transitional } = role;
    let policy = sched.policy_name().unwrap_or("???");
    let mut line = format!("{role} pid: {pid} tid: {tid} cpu: {cpu} {policy} {}", sched.priority);
    if !sched.is_realtime() && sched.nice != 0 {
        line += &format!(" nice {}", sched.nice);
    }
    if *transitional {
        line += " (transitional)";
    }
    line
}

/// `FIFO 99`, `OTHER nice 0`.
fn short(sched: Sched) -> String {
    let policy = sched.policy_name().map_or("???", |name| name.trim_start_matches("SCHED_"));
    if sched.is_realtime() {
        format!("{policy} {}", sched.priority)
    } else {
        format!("{policy} nice {}", sched.nice)
    }
}

/// A round time: `100 us`, `2.5 ms`.
fn short_time(run: &Run, value: u64) -> String {
    match (run.clock.unit, value) {
        (ClockUnit::Instructions, _) => format!("{value} insns"),
        (ClockUnit::Ns, ..1_000_000) => format!("{} us", value as f64 / 1e3),
        (ClockUnit::Ns, ..1_000_000_000) => format!("{} ms", value as f64 / 1e6),
        (ClockUnit::Ns, _) => format!("{} s", value as f64 / 1e9),
    }
}

/// What a time stands in where Android's tools say ms: instructions are never called a time.
fn unit_name(run: &Run) -> &'static str {
    match run.clock.unit {
        ClockUnit::Ns => "ns",
        ClockUnit::Instructions => "instructions",
    }
}

#[cfg(test)]
mod tests;
