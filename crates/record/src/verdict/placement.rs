//! Where both sides of a throughput test ran, and what that says about its numbers: steadiness, jumps between payloads.
//! Not here: the numbers (`crate::render::report`).

use super::{Grade, Verdict};
use crate::families::{Family, name_of};
use crate::schema::{Case, CpuLooks, HostClass, Run};
use crate::stats::percentile;

/// Ratio of the second fastest repetition's median to the fastest's from which the fastest is not confirmed.
const UNCONFIRMED: f64 = 1.15;
/// Fewest repetitions that can confirm one another.
const FEWEST: usize = 4;
/// Ratio of the upper quartile of the spinning control's repetitions to the fastest from which its CPUs were moved.
const MOVED: f64 = 1.5;
/// Family of the control whose sides sleep.
pub(super) const PIPE: &str = "BM_sendVec_pipe";
/// Family of the control whose sides watch each other.
pub(super) const SPIN: &str = "BM_sendVec_spin";
/// Ratio of the medians of neighbouring payloads that is a jump: a payload of twice the size costs at most twice.
const JUMP: f64 = 3.0;

/// Adds to the verdict on a family: where both sides ran, and what is not firm about
/// its numbers.
pub(super) fn completed(run: &Run, family: &Family<'_>, verdict: Verdict) -> Verdict {
    let looks = family.cases.iter().filter_map(|case| case.cpu_looks());
    let looks = looks.reduce(|all, more| CpuLooks {
        taken: all.taken + more.taken,
        together: all.together + more.together,
    });
    let share = looks.map(|CpuLooks { taken, together }| {
        let percent = together as f64 * 100.0 / taken as f64;
        format!("; both sides on one CPU in {percent:.0} % of {taken} looks")
    });
    let place = match sides(run) {
        "same" => " on one CPU",
        "cross" => " on two CPUs",
        _ if share.is_some() => ", placed by the scheduler",
        _ => "",
    };
    let chosen =
        run.plan.placement.split_once("; ").map_or(String::new(), |(_, chosen)| format!(" ({chosen})"));
    let measured = verdict.measured.clone() + &share.unwrap_or_default();
    let verdict = Verdict { words: verdict.words.clone() + place + &chosen, measured, ..verdict };
    match (verdict.grade, unsteady(run, family), jump(run, family).filter(|_| by_scheduler(run))) {
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

/// The placement of both sides to each other: `same`, `cross` or `default`.
pub(super) fn sides(run: &Run) -> &str {
    run.plan.placement.split(';').next().unwrap_or_default()
}

/// Whether the scheduler chose the CPUs of both sides, and could choose differently.
pub(super) fn by_scheduler(run: &Run) -> bool {
    let one_cpu = matches!(run.host.class, HostClass::Tcg | HostClass::Icount);
    let placed = matches!(sides(run), "same" | "cross");
    !placed && !one_cpu
}

/// The case of a control with the payload of this one.
pub(super) fn control<'r>(run: &'r Run, case: &Case, family: &str) -> Option<&'r Case> {
    run.cases.iter().find(|other| other.family == family && other.payload_bytes == case.payload_bytes)
}

/// Doubt about the smallest or largest payload's headline.
fn unsteady(run: &Run, family: &Family<'_>) -> Option<String> {
    let (first, last) = (*family.cases.first()?, *family.cases.last()?);
    let with_control = |case| [Some(case), control(run, case, PIPE)];
    let alone =
        [first, last].into_iter().flat_map(with_control).flatten().find_map(|case| unconfirmed(run, case));
    alone.or_else(|| moved(run, control(run, first, SPIN)?))
}

/// A case whose fastest repetition none of the others confirms.
fn unconfirmed(run: &Run, case: &Case) -> Option<String> {
    let medians = sorted(case);
    let [fastest, second, ..] = medians[..] else { return None };
    let (name, size) = (name_of(&case.family), size(case));
    let alone = medians.len() >= FEWEST && second > fastest * UNCONFIRMED;
    let (fastest, second) = (run.clock.unit.show(fastest), run.clock.unit.show(second));
    alone.then(|| {
        format!(
            "one repetition of {name} with {size} took {fastest}, the next {second}; other work shows in them"
        )
    })
}

/// CPUs that were nearer to each other in some repetitions than in others, told from the spinning control.
fn moved(run: &Run, spinning: &Case) -> Option<String> {
    let medians = sorted(spinning);
    let (fastest, high) = (*medians.first()?, percentile(&medians, 75.0)?);
    let moved = medians.len() >= FEWEST && high > fastest * MOVED;
    let (fastest, high) = (run.clock.unit.show(fastest), run.clock.unit.show(high));
    moved.then(|| {
        format!(
            "the host moved the two CPUs: spinning took {fastest} in some repetitions and {high} in others"
        )
    })
}

/// The medians of a case's repetitions, the fastest first.
fn sorted(case: &Case) -> Vec<f64> {
    let mut medians: Vec<f64> = case.medians().collect();
    medians.sort_by(f64::total_cmp);
    medians
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
    use crate::families::families;
    use crate::fixtures::{self, case, measured};
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
        completed(run, &families[0], Verdict::good("throughput", "measured").held_against("", "4 B"))
    }

    #[test]
    fn a_placement_is_named_and_the_schedulers_choice_has_its_share() {
        assert_eq!(verdict(&run("same", &[(4, &[5000])])).words, "measured on one CPU");
        assert_eq!(verdict(&run("cross", &[(4, &[5000])])).words, "measured on two CPUs");
        assert_eq!(verdict(&run("same; big", &[(4, &[5000])])).words, "measured on one CPU (big)");
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
    fn a_fastest_repetition_that_none_confirms_is_unsteady_and_a_disturbance_is_not() {
        let steady = verdict(&run("same", &[(4, &[5000, 5100, 7000, 7000, 30_000])]));
        assert_eq!(steady.grade, Grade::Good, "{steady:?}");
        let unsteady = verdict(&run("same", &[(4, &[5000, 7000, 7000, 7000])]));
        assert_eq!((unsteady.grade, unsteady.words.as_str()), (Grade::Note, "measured on one CPU, unsteady"));
        let why = unsteady.why.expect("a reason");
        assert!(why.contains("one repetition of binder with 4 B took 5.00 us, the next 7.00 us"), "{why}");
        // The control is half of the ratio.
        let beside = |family: &str, times: [u64; 4]| {
            let mut run = run("same", &[(4, &[5000, 5000, 5000, 5000])]);
            run.cases.push(case(family, 4, 0, times.map(|time| measured(9, time * 9, 9)).into()));
            verdict(&run)
        };
        assert_eq!(beside(PIPE, [6000, 6100, 9000, 9000]).words, "measured on one CPU");
        assert_eq!(beside(PIPE, [5000, 7000, 7000, 7000]).words, "measured on one CPU, unsteady");
        assert_eq!(beside(SPIN, [150, 150, 150, 500]).words, "measured on one CPU");
        let moved = beside(SPIN, [150, 150, 500, 500]).why.expect("a reason");
        assert!(moved.starts_with("the host moved the two CPUs"), "{moved}");
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
