//! Renders latency tests: groups of calls for a row or an object, and the list of threads.
//! Not here: the formats themselves (`json`, `table`), verdicts (`crate::verdict`).
//! Facts: keys, lines and their order: AOSP `libhwbinder_latency` and `schd-dbg` (Android 8 to 14).

pub mod aosp;
mod json;
mod table;

pub use json::{Options, json};
pub use table::table;

pub(super) use table::{body, hops, pairs};

use crate::figures::Calls;
use crate::schema::{Case, Class, ClockUnit, LatencyTest, Outcome, Role, Run, Sched};
use std::collections::BTreeSet;

/// A group of calls that is shown together: those of one pair, or of all pairs.
pub(super) struct Group<'r> {
    /// Index of the pair; `None` for all pairs.
    pair: Option<u32>,
    cases: Vec<&'r Case>,
}

impl<'r> Group<'r> {
    /// The group of all pairs, then a group for each pair.
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
    pub(super) fn calls(&self, class: Class, test: &LatencyTest) -> Option<Calls<'r>> {
        let mut calls = Calls::of(self.of_class(class).collect());
        if self.pair.is_none() {
            let together = test.all.iter().find(|all| all.class == class).map(|all| all.percentiles);
            calls.percentiles = together.or(calls.percentiles);
        }
        calls.any().then_some(calls)
    }

    /// Reasons of failures, without duplicates.
    fn failures(&self) -> Vec<&'r str> {
        once(self.cases.iter().flat_map(|case| case.outcomes()).filter_map(Outcome::failure))
    }

    /// Reasons why calls of this class failed or were skipped, without duplicates.
    fn trouble(&self, class: Class) -> Vec<&'r str> {
        let outcomes = self.of_class(class).flat_map(Case::outcomes);
        once(outcomes.filter_map(|outcome| outcome.failure().or(outcome.skipped())))
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

/// The lines of `-v`: one for each thread, with its role, CPU and scheduling. A temporary priority is marked; `???`
/// is a policy unknown to this program.
pub fn roles(run: &Run) -> String {
    let test = run.latency();
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

/// The unit in places where Android's tools say ms; instructions are never called a time.
fn unit_name(run: &Run) -> &'static str {
    match run.clock.unit {
        ClockUnit::Ns => "ns",
        ClockUnit::Instructions => "instructions",
    }
}

#[cfg(test)]
mod tests;
