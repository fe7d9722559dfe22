//! A run as a list of checks, each with outcome and measures.
//! Not here: the formats.

use crate::figures::{Calls, FIGURES, Value};
use crate::render::printable;
use crate::schema::{Case, ClockUnit, Hop, Inversion, LatencyTest, Measured, Outcome, Run, Setting};
use crate::verdict::{self, Grade, Verdict};

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CheckOutcome {
    /// As expected, or only measured.
    Passed,
    /// Not as expected, with the reason.
    Failed(String),
    /// Not tried or undecided, with the reason.
    Skipped(String),
}

/// A number with its unit; the unit is empty for a count or a ratio.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measure {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) unit: &'static str,
}

/// One check.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Check {
    /// Contains letters, digits and `_/:.-` only.
    pub(super) name: String,
    pub(super) outcome: CheckOutcome,
    pub(super) measures: Vec<Measure>,
    /// Wall-clock duration in ns; 0 if unknown.
    pub(super) took_ns: u64,
}

/// All checks of a run: its cases, the verdicts on the whole test, and whether the run ended.
pub(super) fn checks(run: &Run) -> Vec<Check> {
    let mut checks: Vec<Check> = run.cases.iter().map(|case| of_case(run, case)).collect();
    match &run.measured {
        Measured::Cases => {}
        Measured::Latency(test) => {
            checks.push(inheritance(run, test));
            checks.extend(test.inheritance.hops.iter().map(hop));
        }
        Measured::Inversion(experiment) => checks.extend(inversions(experiment)),
        Measured::Overload(experiment) => checks.push(judged(verdict::of_overload(experiment))),
        Measured::Background(experiment) => {
            checks.extend(verdict::of_background(experiment, run.clock.unit).into_iter().map(judged));
        }
    }
    let outcome = run.ended_early().map_or(CheckOutcome::Passed, |why| CheckOutcome::Failed(why.to_owned()));
    checks.push(Check { name: "complete".to_owned(), outcome, measures: Vec::new(), took_ns: 0 });
    for check in &mut checks {
        if let CheckOutcome::Failed(why) | CheckOutcome::Skipped(why) = &mut check.outcome {
            *why = printable(why).into_owned();
        }
    }
    checks
}

/// The name of the test as a check name, e.g. `throughput-binder`.
pub(super) fn suite(run: &Run) -> String {
    let name = allowed(&run.plan.test, '-');
    if name.is_empty() { run.tool.name.clone() } else { name }
}

/// Replaces every character that a check name must not contain.
pub(super) fn allowed(text: &str, other: char) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "_/:.-".contains(c) { c } else { other };
    text.chars().map(keep).collect()
}

fn of_case(run: &Run, case: &Case) -> Check {
    let outcome = match (case.failure(), case.outcomes().find_map(Outcome::skipped)) {
        (Some(why), _) => CheckOutcome::Failed(why.to_owned()),
        (None, Some(why)) => CheckOutcome::Skipped(why.to_owned()),
        (None, None) if case.repetitions.is_empty() => CheckOutcome::Skipped("not run".to_owned()),
        (None, None) => CheckOutcome::Passed,
    };
    let took = case.measurements().map(|numbers| numbers.real_total).fold(0, u64::saturating_add);
    Check {
        name: case.name.clone(),
        outcome,
        measures: measures(run, case),
        took_ns: if run.clock.unit == ClockUnit::Ns { took } else { 0 },
    }
}

fn measures(run: &Run, case: &Case) -> Vec<Measure> {
    let mut found = Vec::new();
    let mut put = |name: &str, value: Option<f64>, unit: &'static str| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            found.push(Measure { name: name.to_owned(), value, unit });
        }
    };
    let unit = run.clock.unit.name();
    put("mean", case.mean_real(), unit);
    put("cpu", case.mean_cpu(), unit);
    let samples = case.samples();
    let exact = case.latency.as_ref().and_then(|latency| latency.percentiles);
    for (name, percent, exact) in [
        ("p50", 50.0, exact.map(|exact| exact.p50)),
        ("p99", 99.0, exact.map(|exact| exact.p99)),
        ("max", 100.0, None),
    ] {
        let value = exact.or_else(|| samples.as_ref()?.percentile(percent));
        put(name, value.map(|value| value as f64), unit);
    }
    let iterations = case.measurements().map(|numbers| numbers.iterations).fold(0, u64::saturating_add);
    put("iterations", (iterations > 0).then_some(iterations as f64), "");
    if case.latency.is_some() {
        let calls = Calls::of(vec![case]);
        for figure in FIGURES.iter().filter(|figure| figure.converted) {
            let unit = if matches!(figure.value, Value::Time(_)) { unit } else { "" };
            put(figure.name, figure.number(&calls), unit);
        }
    }
    for (name, counter) in case.measurements().flat_map(|numbers| numbers.counters.iter()).take(256) {
        put(&allowed(name, '_'), Some(counter.value), "");
    }
    // Counters of several repetitions share a name; in a column the last would overwrite the others.
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|measure| seen.insert(measure.name.clone()));
    found
}

fn inheritance(run: &Run, test: &LatencyTest) -> Check {
    let found = &test.inheritance;
    let Verdict { grade, why, measured, .. } = verdict::inheritance(run, test);
    let outcome = match grade {
        Grade::Good => CheckOutcome::Passed,
        Grade::Bad => CheckOutcome::Failed(why.unwrap_or(measured)),
        Grade::Note => CheckOutcome::Skipped(why.unwrap_or_default()),
    };
    let measures = counts([("calls", found.calls), ("not_inherited", found.not_inherited)]);
    Check { name: "inheritance".to_owned(), outcome, measures, took_ns: 0 }
}

/// A verdict as a check of its subject's name.
fn judged(verdict: Verdict) -> Check {
    let why = verdict.why.unwrap_or_default();
    let outcome = match verdict.grade {
        Grade::Good => CheckOutcome::Passed,
        Grade::Bad => CheckOutcome::Failed(why),
        Grade::Note => CheckOutcome::Skipped(why),
    };
    Check { name: verdict.about.to_owned(), outcome, measures: Vec::new(), took_ns: 0 }
}

fn counts<const N: usize>(counts: [(&str, u64); N]) -> Vec<Measure> {
    counts.map(|(name, count)| Measure { name: name.to_owned(), value: count as f64, unit: "" }).to_vec()
}

fn hop(hop: &Hop) -> Check {
    let outcome = match hop.as_expected() {
        Some(true) => CheckOutcome::Passed,
        Some(false) => {
            CheckOutcome::Failed("served at another priority than is expected of this driver".to_owned())
        }
        None if hop.is_broken() => CheckOutcome::Failed(hop.note.clone()),
        None if hop.note.is_empty() => {
            CheckOutcome::Skipped("no expectation is known for this driver".to_owned())
        }
        None => CheckOutcome::Skipped(hop.note.clone()),
    };
    let name = format!("inheritance/{}", allowed(&hop.scene, '_'));
    Check { name, outcome, measures: Vec::new(), took_ns: 0 }
}

/// Inversion is expected without inheritance and a failure with it.
fn inversions(experiment: &Inversion) -> impl Iterator<Item = Check> {
    experiment.rows.iter().map(|row| {
        let outcome = match (row.setting, row.inverted) {
            (Setting::On, Some(true)) => CheckOutcome::Failed(format!(
                "{} of {} calls waited behind less urgent processes",
                row.late, row.calls
            )),
            (Setting::On | Setting::Off, None) => {
                CheckOutcome::Skipped("too few calls to decide about inversion".to_owned())
            }
            _ => CheckOutcome::Passed,
        };
        let measures =
            counts([("calls", row.calls), ("late", row.late), ("not_inherited", row.not_inherited)]);
        Check { name: format!("inversion/{}", row.setting.name()), outcome, measures, took_ns: 0 }
    })
}
