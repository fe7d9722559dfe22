//! The verdicts on the background experiment: whether calls of a server in the background wait, and what moving costs.
//! Not here: the experiment (`bench::background`), its table (`text`).

use crate::schema::{Background, BackgroundRow, ClockUnit, Ground};
use crate::verdict::judged::by_severity;
use crate::verdict::{Grade, Verdict};

/// The verdicts on the experiment; the unit is that of its times.
pub fn of_background(experiment: &Background, unit: ClockUnit) -> Vec<Verdict> {
    by_severity(vec![waits(experiment, unit), moves(experiment, unit)])
}

fn median(row: Option<&BackgroundRow>, unit: ClockUnit) -> String {
    let percentiles = row.and_then(|row| row.percentiles);
    percentiles.map_or("not measured".to_owned(), |percentiles| unit.show(percentiles.p50 as f64))
}

fn waits(experiment: &Background, unit: ClockUnit) -> Verdict {
    let of = |ground| experiment.row(ground, true);
    let row = of(Ground::Background);
    let verdict = |words: &str| {
        let measured = format!(
            "beside hogs: median {}, in the foreground {}",
            median(row, unit),
            median(of(Ground::Foreground), unit)
        );
        Verdict::good("background", words)
            .held_against("calls of a background server wait for others", measured)
    };
    let by_nice = "the background is a nice value here, and a driver may pass its caller's nice on; run it where a cpu \
                   control group can be made";
    match row.and_then(|row| row.waits) {
        None => verdict("cannot be told")
            .because(Grade::Note, "too few calls were made to tell")
            .then("binderperf background --iterations 50"),
        Some(late) if !experiment.is_cgroup => {
            verdict(if late { "a nice server waits" } else { "a nice server does not wait" })
                .because(Grade::Note, by_nice)
                .then("sudo binderperf background --group cgroup")
        }
        Some(true) => verdict("a background server waits")
            .because(
                Grade::Good,
                "no driver moves a server between groups: the caller waits for the group's share of the CPU",
            )
            .then("move the server to the foreground before the call, as Android's activity manager does"),
        Some(false) => verdict("NO EFFECT")
            .because(
                Grade::Bad,
                "a server with a twentieth of the CPU time is no slower: the hogs or the group do not count",
            )
            .then("binderperf background --hogs 3"),
    }
}

fn moves(experiment: &Background, unit: ClockUnit) -> Verdict {
    let of = |hogs| experiment.row(Ground::Moves, hogs);
    let Some(cost) = of(false).and_then(|row| row.moves) else {
        return Verdict::good("move", "cost of a move unknown")
            .held_against("the server moves in each call", "no call was made")
            .because(Grade::Note, "the server that moves answered no call")
            .then("binderperf background");
    };
    let measured = format!(
        "both moves of a call: median {}, p99 {}; beside hogs the call takes {}",
        unit.show(cost.p50 as f64),
        unit.show(cost.p99 as f64),
        median(of(true), unit)
    );
    let verdict = Verdict::good("move", "moving costs time in each call").held_against("", measured);
    match of(true).and_then(|row| row.waits) {
        Some(true) if experiment.is_cgroup => verdict
            .because(
                Grade::Good,
                "some calls still wait: a server must run in the background before it can move itself",
            )
            .then("let another process move it before the call"),
        _ => verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::background;

    fn judged(late: bool, is_cgroup: bool) -> Vec<Verdict> {
        let mut experiment = background(late);
        experiment.is_cgroup = is_cgroup;
        of_background(&experiment, ClockUnit::Ns)
    }

    #[test]
    fn a_group_without_effect_fails_and_one_that_waits_is_as_expected() {
        let of = |late, is_cgroup| {
            let all = judged(late, is_cgroup);
            let verdict = all.iter().find(|verdict| verdict.about == "background").expect("one").clone();
            (verdict.grade, verdict.words)
        };
        assert_eq!(of(true, true), (Grade::Good, "a background server waits".to_owned()));
        assert_eq!(of(false, true), (Grade::Bad, "NO EFFECT".to_owned()));
        assert_eq!(of(true, false), (Grade::Note, "a nice server waits".to_owned()));
        assert_eq!(of(false, false), (Grade::Note, "a nice server does not wait".to_owned()));
    }

    #[test]
    fn the_cost_of_moving_is_told_and_so_is_its_absence() {
        let all = judged(true, true);
        let moves = all.iter().find(|verdict| verdict.about == "move").expect("one");
        assert!(moves.measured.contains("median 8.00 us"), "{moves:?}");
        let mut without = background(true);
        without.rows.iter_mut().for_each(|row| (row.moves, row.waits) = (None, None));
        let all = of_background(&without, ClockUnit::Ns);
        assert!(all.iter().all(|verdict| verdict.grade == Grade::Note), "{all:?}");
        assert!(all.iter().all(|verdict| verdict.why.is_some() && verdict.next.is_some()));
    }
}
