//! The verdict on the overload experiment: whether real-time pairs keep their deadline up to one per CPU, and no longer
//! beyond.
//! Not here: the experiment (`bench::overload`), its table (`text`).

use crate::schema::{Class, Overload, OverloadRow};
use crate::verdict::{Grade, Verdict};

/// Largest share of misses of pairs that fit; with more, something else takes the CPUs.
const FITTING_SHARE: f64 = 0.1;
/// Pairs too many must miss at least this part of the share that is expected of them.
const EXPECTED_PART: f64 = 0.5;
/// Fewest calls of a row that allow a verdict.
const LEAST_CALLS: u64 = 20;

/// The verdict on the experiment.
pub fn of_overload(experiment: &Overload) -> Verdict {
    let cpus = experiment.cpus.len() as u32;
    let expected = format!("at most {} at once meet the deadline", units::counted(u64::from(cpus), "call"));
    let verdict = |words: &str| {
        Verdict::good("overload", words).held_against(expected.clone(), measured(experiment, Class::Fifo))
    };
    let unknown = |why: String| verdict("cannot be told").because(Grade::Note, why);
    if experiment.realtime.is_none() {
        let why = experiment.realtime_problem.as_deref().unwrap_or("no pair was real-time");
        return unknown(format!("without real-time pairs there is no such limit: {why}"))
            .then("sudo binderperf overload");
    }
    let rows: Vec<&OverloadRow> = experiment.of(Class::Fifo).collect();
    let (fit, beyond): (Vec<&OverloadRow>, Vec<&OverloadRow>) =
        rows.iter().copied().partition(|row| row.pairs <= cpus);
    if fit.is_empty() || beyond.is_empty() || rows.iter().any(|row| row.calls < LEAST_CALLS) {
        return unknown("too few calls, or only one side of the limit was measured".to_owned())
            .then("binderperf overload");
    }
    let share = |row: &OverloadRow| row.missed().unwrap_or(0.0);
    let worst = fit.iter().map(|row| share(row)).fold(0.0, f64::max);
    if worst > FITTING_SHARE {
        return unknown(
            "pairs that fit the CPUs miss the deadline, too: another process or the hypervisor takes CPU time, or a \
             call without any competition takes too long"
                .to_owned(),
        )
        .then("binderperf doctor, then binderperf overload --work 4000 --deadline-us 7000 --period-us 30000");
    }
    let kept = beyond.iter().find(|row| share(row) < worst + experiment.expected(row.pairs) * EXPECTED_PART);
    match kept {
        Some(row) => verdict("NOT CONFIRMED")
            .because(
                Grade::Bad,
                format!(
                    "{} real-time pairs on {} meet the deadline more often than these can serve: the pairs did not \
                     call at the same moments, or used other CPUs",
                    row.pairs,
                    units::counted(u64::from(cpus), "CPU"),
                ),
            )
            .then("binderperf trace record --html overload.html -- binderperf overload --iterations 30 --rounds 1"),
        None => verdict(&format!("confirmed: {}", units::counted(u64::from(cpus), "real-time pair")))
            .because(
                Grade::Good,
                "a real-time thread waits until one of the same priority sleeps, so pairs without a CPU wait for a \
                 whole call",
            )
            .then("raise no more threads to real-time than there are CPUs"),
    }
}

/// The shares of misses of a class, e.g. `1 pair 0.0 %, 2 pairs 0.4 %, 3 pairs 34 %`.
fn measured(experiment: &Overload, class: Class) -> String {
    let row = |row: &OverloadRow| {
        let missed = row.missed()? * 100.0;
        Some(format!("{} {missed:.1} % missed", units::counted(u64::from(row.pairs), "pair")))
    };
    experiment.of(class).filter_map(row).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::overload;

    fn judged(misses: [u64; 4]) -> (Grade, String) {
        let Verdict { grade, words, .. } = of_overload(&overload(misses));
        (grade, words)
    }

    #[test]
    fn each_cpu_serves_one_pair_in_time() {
        let shares = [1, 2, 3, 4, 8].map(|pairs| overload([0; 4]).expected(pairs));
        assert_eq!(shares, [0.0, 0.0, 1.0 / 3.0, 0.5, 0.75]);
    }

    #[test]
    fn misses_beyond_the_limit_only_confirm_it() {
        assert_eq!(judged([0, 2, 33, 50]), (Grade::Good, "confirmed: 2 real-time pairs".to_owned()));
        assert_eq!(judged([0, 2, 66, 90]).0, Grade::Good, "more misses than necessary");
    }

    #[test]
    fn pairs_too_many_that_keep_the_deadline_refute_it() {
        assert_eq!(judged([0, 0, 10, 50]), (Grade::Bad, "NOT CONFIRMED".to_owned()));
        assert_eq!(judged([0, 0, 33, 20]).0, Grade::Bad);
        assert_eq!(judged([0, 0, 0, 0]).0, Grade::Bad);
    }

    #[test]
    fn a_busy_machine_few_calls_and_missing_rights_tell_nothing() {
        assert_eq!(judged([0, 20, 50, 70]), (Grade::Note, "cannot be told".to_owned()));
        let mut few = overload([0, 0, 33, 50]);
        few.rows[2].calls = 19;
        assert_eq!(of_overload(&few).grade, Grade::Note);
        let mut fits_only = overload([0, 0, 33, 50]);
        fits_only.rows.retain(|row| row.pairs <= 2);
        assert_eq!(of_overload(&fits_only).grade, Grade::Note);
        let mut without = overload([0, 0, 33, 50]);
        (without.realtime, without.realtime_problem) = (None, Some("RLIMIT_RTPRIO is 0".to_owned()));
        let verdict = of_overload(&without);
        assert_eq!(verdict.grade, Grade::Note);
        assert!(verdict.why.is_some_and(|why| why.contains("RLIMIT_RTPRIO is 0")));
    }

    #[test]
    fn every_verdict_says_what_was_expected_why_and_what_next() {
        for misses in [[0, 2, 33, 50], [0; 4], [0, 20, 50, 70]] {
            let verdict = of_overload(&overload(misses));
            assert!(!verdict.expected.is_empty() && verdict.measured.contains("1 pair 0.0 % missed"));
            assert!(verdict.why.is_some() && verdict.next.is_some(), "{verdict:?}");
        }
    }
}
