//! Room: what a run has to say, one check after another: whether it passed, and its measures.
//! Not here: how any format writes that.

use crate::Distribution;
use crate::render::printable;
use crate::render::summary::unit;
use crate::schema::{Case, Hop, Inversion, Latency, LatencyTest, Measurement, Outcome, Run, Setting};
use crate::verdict::{Inherited, as_expected, calls, met, short_of_known};

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Came {
    /// It is as it should be, or was only to be measured.
    Passed,
    /// It is not; why.
    Failed(String),
    /// It was not tried, or nothing can be said; why.
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
    /// Of letters, digits and `_/:.-` only.
    pub(super) name: String,
    pub(super) came: Came,
    pub(super) measures: Vec<Measure>,
    /// How long it took by the wall, in ns; 0 where that is not known.
    pub(super) took_ns: u64,
}

/// All checks of a run: its cases, then what their test says as a whole, then whether it ended.
pub(super) fn checks(run: &Run) -> Vec<Check> {
    let mut checks: Vec<Check> = run.cases.iter().map(|case| of_case(run, case)).collect();
    if let Some(test) = &run.latency {
        checks.push(inheritance(test));
        checks.extend(test.inheritance.hops.iter().map(hop));
    }
    if let Some(experiment) = &run.inversion {
        checks.extend(inversions(experiment));
    }
    let came = if run.complete {
        Came::Passed
    } else {
        Came::Failed(run.incomplete_reason.clone().unwrap_or_else(|| "the run did not end".to_owned()))
    };
    checks.push(Check { name: "complete".to_owned(), came, measures: Vec::new(), took_ns: 0 });
    for check in &mut checks {
        if let Came::Failed(why) | Came::Skipped(why) = &mut check.came {
            *why = printable(why).into_owned();
        }
    }
    checks
}

/// The name of the test, as a name of checks: `throughput-binder`.
pub(super) fn suite(run: &Run) -> String {
    let name = allowed(&run.plan.test, '-');
    if name.is_empty() { run.tool.name.clone() } else { name }
}

/// Text with every other character replaced that a name of a check may not have.
pub(super) fn allowed(text: &str, other: char) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "_/:.-".contains(c) { c } else { other };
    text.chars().map(keep).collect()
}

fn of_case(run: &Run, case: &Case) -> Check {
    let outcomes: Vec<&Outcome> = case.repetitions.iter().map(|repetition| &repetition.outcome).collect();
    let failed = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Failed { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    let skipped = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Skipped { reason } => Some(reason.clone()),
        _ => None,
    });
    let came = match (failed, skipped) {
        (Some(why), _) => Came::Failed(why),
        (None, Some(why)) => Came::Skipped(why),
        (None, None) if outcomes.is_empty() => Came::Skipped("not run".to_owned()),
        (None, None) => Came::Passed,
    };
    let took = case.measurements().map(|numbers| numbers.real_total).fold(0, u64::saturating_add);
    Check {
        name: case.name.clone(),
        came,
        measures: measures(run, case),
        took_ns: if unit(run) == "ns" { took } else { 0 },
    }
}

fn measures(run: &Run, case: &Case) -> Vec<Measure> {
    let mut found = Vec::new();
    let mut put = |name: &str, value: Option<f64>, unit: &'static str| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            found.push(Measure { name: name.to_owned(), value, unit });
        }
    };
    let unit = unit(run);
    put("mean", case.mean_real(), unit);
    let cpu: Vec<f64> = case.measurements().filter_map(Measurement::mean_cpu).collect();
    put("cpu", crate::stats::mean(&cpu), unit);
    let samples = Distribution::merged(case.measurements().map(|numbers| &numbers.samples));
    for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("max", 100.0)] {
        let exact =
            case.latency.as_ref().and_then(|latency| latency.percentiles).and_then(|exact| match name {
                "p50" => Some(exact.p50),
                "p99" => Some(exact.p99),
                _ => None,
            });
        let value = exact.or_else(|| samples.as_ref().and_then(|samples| samples.percentile(percent)));
        put(name, value.map(|value| value as f64), unit);
    }
    let iterations = case.measurements().map(|numbers| numbers.iterations).fold(0, u64::saturating_add);
    put("iterations", (iterations > 0).then_some(iterations as f64), "");
    if let Some(latency) = &case.latency {
        of_latency(&mut put, case, latency);
    }
    for (name, counter) in case.measurements().flat_map(|numbers| numbers.counters.iter()).take(256) {
        put(&allowed(name, '_'), Some(counter.value), "");
    }
    // Counters of several repetitions have one name; the last of them would win in a column.
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|measure| seen.insert(measure.name.clone()));
    found
}

fn of_latency(put: &mut impl FnMut(&str, Option<f64>, &'static str), case: &Case, latency: &Latency) {
    put("misses", Some(latency.misses as f64), "");
    put("meetR", met(latency.misses, calls(case)), "");
    put("bubbles", Some(latency.bubbles as f64), "");
    put("same_cpu", Some(latency.same_cpu as f64), "");
    put("not_inherited", Some(latency.not_inherited as f64), "");
}

fn inheritance(test: &LatencyTest) -> Check {
    let found = &test.inheritance;
    let came = match Inherited::of(test) {
        Inherited::Pass => Came::Passed,
        // Not all that Android asks for, and all that this driver is known to give.
        Inherited::Fail if as_expected(found) == Some(true) && short_of_known(test).is_none() => Came::Passed,
        Inherited::Fail => {
            let (late, all) = (found.not_inherited, found.calls);
            Came::Failed(format!("{late} of {all} calls were served at another priority than their caller's"))
        }
        Inherited::Unknown { reason } => Came::Skipped(reason),
    };
    let count = |name: &str, value: u64| Measure { name: name.to_owned(), value: value as f64, unit: "" };
    let measures = vec![count("calls", found.calls), count("not_inherited", found.not_inherited)];
    Check { name: "inheritance".to_owned(), came, measures, took_ns: 0 }
}

fn hop(hop: &Hop) -> Check {
    let came = match hop.as_expected() {
        Some(true) => Came::Passed,
        Some(false) => Came::Failed("served at another priority than is expected of this driver".to_owned()),
        None if hop.is_broken() => Came::Failed(hop.note.clone()),
        None if hop.note.is_empty() => Came::Skipped("it is not known what to expect".to_owned()),
        None => Came::Skipped(hop.note.clone()),
    };
    let name = format!("inheritance/{}", allowed(&hop.scene, '_'));
    Check { name, came, measures: Vec::new(), took_ns: 0 }
}

/// Inversion is to be expected without inheritance and a failure with it.
fn inversions(experiment: &Inversion) -> impl Iterator<Item = Check> {
    experiment.rows.iter().map(|row| {
        let came = match (row.setting, row.inverted) {
            (Setting::On, Some(true)) => Came::Failed(format!(
                "{} of {} calls waited behind less urgent processes",
                row.late, row.calls
            )),
            (Setting::On | Setting::Off, None) => {
                Came::Skipped("too few calls to tell inversion by".to_owned())
            }
            _ => Came::Passed,
        };
        let count = |name: &str, value: u64| Measure { name: name.to_owned(), value: value as f64, unit: "" };
        let measures = vec![
            count("calls", row.calls),
            count("late", row.late),
            count("not_inherited", row.not_inherited),
        ];
        Check { name: format!("inversion/{}", row.setting.name()), came, measures, took_ns: 0 }
    })
}
