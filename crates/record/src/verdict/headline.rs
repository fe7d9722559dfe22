//! Headline of a throughput test: the cost of its smallest and largest payload, beside the nearest control.
//! Not here: all payloads (`crate::render::report`), whether the numbers are firm (`super::placement`).
//!
//! Where both sides have a fixed place, the headline is the median of the fastest repetition. Other work on the machine
//! or on its host only adds time, so the fastest repetition tells most about the driver and is nearly the same in every
//! run. Where the scheduler places them, the fastest is the luckiest: the median of all repetitions stands there, without
//! a ratio, because the control has luck of its own.

use super::placement::{PIPE, SPIN, by_scheduler, control, sides};
use crate::families::Family;
use crate::schema::{Case, Run};
use units::bytes;

/// A family in a few numbers.
pub(super) fn headline(run: &Run, family: &Family<'_>) -> Option<String> {
    let measured: Vec<(&Case, f64)> =
        family.cases.iter().filter_map(|case| Some((*case, cost(run, case)?))).collect();
    let one = |(case, cost): &(&Case, f64)| {
        let beside = beside(run, case, *cost).unwrap_or_default();
        format!("{} {}{beside}", bytes(case.payload_bytes), run.clock.unit.show(*cost))
    };
    let (first, last) = (measured.first()?, measured.last()?);
    let words = if measured.len() > 1 { vec![one(first), one(last)] } else { vec![one(first)] };
    let repetitions = first.0.measurements().count();
    let chosen = if by_scheduler(run) || repetitions < 2 {
        String::new()
    } else {
        format!("; fastest of {repetitions} repetitions")
    };
    Some(words.join(", ") + &chosen)
}

/// Cost of a case in clock units.
fn cost(run: &Run, case: &Case) -> Option<f64> {
    if by_scheduler(run) { case.median_real() } else { case.medians().reduce(f64::min) }
}

/// The nearest control: the ratio to a pipe, or the cost of spinning. That has no ratio, as it is several times less
/// where the CPUs share a cache than where they do not, and a hypervisor changes this from one second to the next.
fn beside(run: &Run, case: &Case, cost: f64) -> Option<String> {
    // A family without IPC costs next to nothing; its ratio is omitted.
    if by_scheduler(run) || case.family.ends_with("_passthrough") {
        return None;
    }
    let of = |family: &str| {
        let control = control(run, case, family)?;
        self::cost(run, control).filter(|control| *control > 0.0)
    };
    let distance = |control: f64| (cost / control).ln().abs();
    // Sides on one CPU cannot watch each other.
    let spinning = Some(SPIN).filter(|_| sides(run) == "cross").and_then(of);
    match (of(PIPE), spinning) {
        (pipe, Some(spin)) if pipe.is_none_or(|pipe| distance(spin) < distance(pipe)) => {
            Some(format!(" (spinning {})", run.clock.unit.show(spin)))
        }
        (pipe, _) => pipe.map(|pipe| format!(" ({:.2}x a pipe)", cost / pipe)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::families;
    use crate::fixtures::{self, case, measured};

    /// A binder case of 4 B and its controls; each repetition takes as long, in ns.
    fn run(placement: &str, cases: [(&str, &[u64]); 3]) -> Run {
        let mut run = fixtures::run();
        run.plan.placement = placement.to_owned();
        run.cases = cases
            .map(|(family, times)| {
                let repetitions = times.iter().map(|time| measured(1000, time * 1000, 1000));
                case(&format!("BM_sendVec_{family}"), 4, 0, repetitions.collect())
            })
            .into();
        run
    }

    fn told(run: &Run) -> String {
        headline(run, &families(run)[0]).expect("measured")
    }

    #[test]
    fn disturbed_repetitions_do_not_move_a_placed_headline() {
        let quiet =
            run("same", [("binder", &[5000, 5000, 5000]), ("pipe", &[6250, 6250, 6250]), ("spin", &[])]);
        assert_eq!(told(&quiet), "4 B 5.00 us (0.80x a pipe); fastest of 3 repetitions");
        let noisy =
            run("same", [("binder", &[8000, 5000, 9000]), ("pipe", &[6250, 8000, 8000]), ("spin", &[])]);
        assert_eq!(told(&noisy), told(&quiet));
        let slower =
            run("same", [("binder", &[8000, 7500, 9000]), ("pipe", &[6250, 8000, 8000]), ("spin", &[])]);
        assert_eq!(told(&slower), "4 B 7.50 us (1.20x a pipe); fastest of 3 repetitions");
    }

    #[test]
    fn the_nearest_control_is_named() {
        let spins = run("cross", [("binder", &[1500]), ("pipe", &[50_000]), ("spin", &[500])]);
        assert_eq!(told(&spins), "4 B 1.50 us (spinning 500 ns)");
        let one = run("same", [("binder", &[1500]), ("pipe", &[50_000]), ("spin", &[500])]);
        assert_eq!(told(&one), "4 B 1.50 us (0.03x a pipe)");
        let sleeps = run("cross", [("binder", &[75_000]), ("pipe", &[50_000]), ("spin", &[500])]);
        assert_eq!(told(&sleeps), "4 B 75.0 us (1.50x a pipe)");
    }

    #[test]
    fn the_schedulers_luck_has_no_ratio() {
        let told =
            told(&run("default", [("binder", &[4200, 560, 4200]), ("pipe", &[50_000]), ("spin", &[500])]));
        assert_eq!(told, "4 B 4.20 us");
    }
}
