//! Where both sides of a throughput test ran, and what that says about its numbers: steadiness, jumps between payloads.
//! Not here: the numbers (`super::throughput`).

use super::throughput::Family;
use crate::schema::{Case, CpuLooks, HostClass, Run};
use crate::stats::percentile;
use crate::verdict::{Grade, Verdict};

/// Ratio of the upper to the lower quartile of the repetitions' medians from which a case is unsteady.
const UNSTEADY: f64 = 1.3;
/// Fewest repetitions with quartiles.
const FEWEST: usize = 4;
/// Ratio of the medians of neighbouring payloads that is a jump: a payload of twice the size costs at most twice.
const JUMP: f64 = 3.0;

/// Adds to the verdict on a family: where both sides ran, and what is not firm about
/// its numbers.
pub(super) fn told(run: &Run, family: &Family<'_>, verdict: Verdict) -> Verdict {
    let looks = family.cases.iter().filter_map(|case| case.cpu_looks());
    let looks = looks.reduce(|all, more| CpuLooks {
        taken: all.taken + more.taken,
        together: all.together + more.together,
    });
    let share = looks.map(|CpuLooks { taken, together }| {
        let percent = together as f64 * 100.0 / taken as f64;
        format!("; both sides on one CPU in {percent:.0} % of {taken} looks")
    });
    let place = match run.plan.placement.as_str() {
        "same" => " on one CPU",
        "cross" => " on two CPUs",
        _ if share.is_some() => ", placed by the scheduler",
        _ => "",
    };
    let measured = verdict.measured.clone() + &share.unwrap_or_default();
    let verdict = Verdict { words: verdict.words.clone() + place, measured, ..verdict };
    let by_scheduler = run.plan.placement == "default" && run.host.class != HostClass::Tcg;
    match (verdict.grade, unsteady(run, family), jump(run, family).filter(|_| by_scheduler)) {
        (Grade::Good, Some(why), _) => {
            let words = verdict.words.clone() + ", unsteady";
            Verdict { words, ..verdict }
                .because(Grade::Note, why)
                .then("binderperf doctor, which says what disturbs this machine")
        }
        (Grade::Good, None, Some(why)) => verdict
            .because(Grade::Note, why)
            .then("compare the cases on one CPU and on two, which are placed"),
        _ => verdict,
    }
}

/// The smallest or largest payload's case whose repetitions differ much.
fn unsteady(run: &Run, family: &Family<'_>) -> Option<String> {
    let ends = [family.cases.first()?, family.cases.last()?];
    ends.into_iter().find_map(|case| {
        let medians: Vec<f64> = case
            .measurements()
            .filter_map(|numbers| Some(numbers.samples.percentile(50.0)? as f64))
            .collect();
        let (low, high) = (percentile(&medians, 25.0)?, percentile(&medians, 75.0)?);
        let wide = medians.len() >= FEWEST && high > low * UNSTEADY;
        let (size, low, high) = (size(case), run.clock.unit.show(low), run.clock.unit.show(high));
        wide.then(|| {
            format!("half of the repetitions with {size} took {low} to {high}; other work shows in them")
        })
    })
}

/// Two neighbouring payloads of which one costs several times as much.
fn jump(run: &Run, family: &Family<'_>) -> Option<String> {
    let costs: Vec<(&Case, f64)> =
        family.cases.iter().filter_map(|case| Some((*case, case.median_real()?))).collect();
    costs.windows(2).find_map(|two| {
        let [(one, before), (other, after)] = two else { return None };
        let neighbours = other.payload_bytes <= one.payload_bytes * 2;
        let jumps = neighbours && before.max(*after) > before.min(*after) * JUMP;
        let show = |median: f64| run.clock.unit.show(median);
        jumps.then(|| {
            format!(
                "{} took {} and {} {}: the scheduler placed their two sides differently",
                size(one),
                show(*before),
                size(other),
                show(*after)
            )
        })
    })
}

fn size(case: &Case) -> String {
    units::bytes(case.payload_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, case, measured};
    use crate::render::report::throughput::families;
    use crate::schema::Outcome;

    /// A binder case of each payload, whose repetitions take these times in ns.
    fn run(placement: &str, cases: &[(u64, &[u64])]) -> Run {
        let mut run = fixtures::run();
        run.plan.placement = placement.to_owned();
        let case = |(index, (payload, times)): (usize, &(u64, &[u64]))| {
            let repetitions = times.iter().map(|time| measured(1000, time * 1000, 1000));
            case("BM_sendVec_binder", *payload, index as u32, repetitions.collect())
        };
        run.cases = cases.iter().enumerate().map(case).collect();
        run
    }

    fn verdict(run: &Run) -> Verdict {
        let families = families(run);
        told(run, &families[0], Verdict::good("throughput", "measured").held_against("", "4 B"))
    }

    #[test]
    fn a_placement_is_named_and_the_schedulers_choice_has_its_share() {
        assert_eq!(verdict(&run("same", &[(4, &[5000])])).words, "measured on one CPU");
        assert_eq!(verdict(&run("cross", &[(4, &[5000])])).words, "measured on two CPUs");
        let mut by_scheduler = run("default", &[(4, &[5000])]);
        assert_eq!(verdict(&by_scheduler).measured, "4 B");
        if let Outcome::Measured(numbers) = &mut by_scheduler.cases[0].repetitions[0].outcome {
            numbers.cpus = Some(CpuLooks { taken: 8, together: 6 });
        }
        let told = verdict(&by_scheduler);
        assert!(told.measured.contains("on one CPU in 75 % of 8 looks"), "{told:?}");
        assert_eq!((told.words.as_str(), told.grade), ("measured, placed by the scheduler", Grade::Good));
    }

    #[test]
    fn repetitions_that_differ_are_unsteady_and_one_disturbance_is_not() {
        let steady = verdict(&run("same", &[(4, &[5000, 5100, 5000, 5100, 30_000])]));
        assert_eq!(steady.grade, Grade::Good, "{steady:?}");
        let unsteady = verdict(&run("same", &[(4, &[5000, 5000, 7000, 7000])]));
        assert_eq!((unsteady.grade, unsteady.words.as_str()), (Grade::Note, "measured on one CPU, unsteady"));
        assert!(unsteady.why.expect("a reason").contains("4 B took 5.00 us to 7.00 us"));
    }

    #[test]
    fn a_jump_between_neighbours_is_flagged_where_the_scheduler_places() {
        let cases: &[(u64, &[u64])] = &[(4, &[4200]), (8, &[560]), (4096, &[9000])];
        let told = verdict(&run("default", cases));
        assert_eq!(told.grade, Grade::Note);
        assert!(told.why.expect("a reason").starts_with("4 B took 4.20 us and 8 B 560 ns"));
        assert_eq!(verdict(&run("same", cases)).grade, Grade::Good);
        // 8 B and 4 KiB are no neighbours.
        assert_eq!(verdict(&run("default", &cases[1..])).grade, Grade::Good);
    }
}
