//! The verdicts on the tests of a run, each by its own rules.
//! Not here: those rules for latency tests (`super::latency`) and experiments (`crate::experiments`).
//!
//! A throughput test has no limit of its own: it was measured or not. Only a comparison with another record shows
//! whether it became slower.

use super::headline::headline;
use super::{
    Grade, TestVerdicts, Verdict, of_background, of_latency, of_lost_broker, of_overload, placement, runnable,
};
use crate::experiments::inversion::verdict::of_inversion;
use crate::families::families;
use crate::schema::{Case, CaseKind, Measured, Outcome, Run};

/// The tests of one run.
pub(crate) fn of_run(run: &Run) -> Vec<TestVerdicts> {
    let one = |verdicts| vec![TestVerdicts { test: run.title(), verdicts }];
    let mut tests = match &run.measured {
        Measured::Latency(test) => one(of_latency(run, test)),
        Measured::Inversion(experiment) => one(vec![of_inversion(run, experiment)]),
        Measured::Overload(experiment) => one(vec![of_overload(experiment)]),
        Measured::Background(experiment) => one(of_background(experiment, run.clock.unit)),
        Measured::Cases => of_throughput(run),
    };
    if let Some(lost) = of_lost_broker(run) {
        tests.iter_mut().for_each(|test| put_first(&lost, test));
    } else if let Some(why) = run.ended_early() {
        for test in &mut tests {
            let verdict =
                Verdict::good("completeness", "INCOMPLETE").held_against("the whole test", "a part of it");
            test.verdicts.insert(
                0,
                verdict.because(Grade::Bad, format!("it stopped early: {why}")).then("run it again"),
            );
        }
    }
    let told = tests.iter_mut().flat_map(|test| &mut test.verdicts);
    told.for_each(|verdict| *verdict = runnable(verdict.clone(), &run.host));
    tests
}

/// Puts the loss of the broker in the place of the failures that it caused, and keeps what was measured until then.
fn put_first(lost: &Verdict, test: &mut TestVerdicts) {
    test.verdicts.retain(|verdict| verdict.about != lost.about);
    let mut lost = lost.clone();
    let caused = |verdict: &mut Verdict| verdict.about == "throughput" && verdict.grade == Grade::Bad;
    for failure in test.verdicts.extract_if(.., caused).filter(|failure| !failure.measured.is_empty()) {
        lost.measured = format!("{}: {}", lost.measured, failure.measured);
    }
    test.verdicts.insert(0, lost);
}

fn of_throughput(run: &Run) -> Vec<TestVerdicts> {
    let families = families(run);
    let tests = families.iter().filter(|family| family.kind == CaseKind::Test);
    let tests: Vec<TestVerdicts> = tests
        .map(|family| {
            let number = headline(run, family).unwrap_or_default();
            let test = format!("{} throughput", family.name);
            let verdict = placement::completed(run, family, progress(&family.cases, number));
            TestVerdicts { test, verdicts: vec![verdict] }
        })
        .collect();
    if tests.is_empty() { vec![of_other(run)] } else { tests }
}

/// The verdict on cases without a limit of their own.
fn progress(cases: &[&Case], number: String) -> Verdict {
    let all = cases.len();
    let failed = cases.iter().filter(|case| case.failure().is_some()).count();
    let measured = cases.iter().filter(|case| case.measurements().next().is_some()).count();
    let (grade, words) = match (failed, measured) {
        (0, 0) => (Grade::Bad, "NOT MEASURED".to_owned()),
        (0, some) if some < all => (Grade::Note, format!("measured in {some} of {all} cases")),
        (0, _) => (Grade::Good, "measured".to_owned()),
        (some, _) => (Grade::Bad, format!("FAILED in {some} of {all} cases")),
    };
    let expected = if grade == Grade::Good { "" } else { "every case is measured" };
    let verdict = Verdict::good("throughput", words).held_against(expected, number);
    let skipped = || cases.iter().flat_map(|case| case.outcomes()).find_map(Outcome::skipped);
    match cases.iter().find_map(|case| case.failure()).or_else(skipped) {
        Some(why) if failed > 0 => verdict.because(grade, why).then("binderperf conformance"),
        Some(why) => verdict.because(grade, why),
        None => Verdict { grade, ..verdict },
    }
}

/// Any other test, such as those with many clients.
fn of_other(run: &Run) -> TestVerdicts {
    let rate = |case: &Case| {
        case.measurements()
            .filter_map(|numbers| Some(numbers.counters.find("items_per_second")?.value))
            .reduce(f64::max)
    };
    let best = run.cases.iter().filter_map(rate).reduce(f64::max);
    let number = best.map_or(String::new(), |rate| format!("at most {}", units::rate(rate)));
    let verdict = progress(&run.cases.iter().collect::<Vec<&Case>>(), number);
    TestVerdicts { test: run.plan.test.clone(), verdicts: vec![verdict] }
}
