//! The judge on series of known trend: false alarms, found drifts, stretches, too few turns.

use super::super::{Setup, Soak, Turn};
use super::{Drift, Kind, Series, judge};
use crate::schema::ClockUnit;
use crate::stats::normal;

/// Seeded soaks of each sort.
const SOAKS: u64 = 200;

/// A soak whose only series has these values, of stretches of so many turns.
fn soak(kind: Kind, stretch: usize, values: impl IntoIterator<Item = f64>) -> Soak {
    let turn = |(at, value): (usize, f64)| {
        let own = [("x".to_owned(), value)].into();
        let (figures, counts) = match kind {
            Kind::Figure => (own, Default::default()),
            Kind::Count => (Default::default(), own),
        };
        let stretch = (at / stretch + 1) as u64;
        Turn {
            turn: at as u64 + 1,
            stretch,
            soaked_s: (at + 1) as f64 * 20.0,
            figures,
            counts,
            ..Turn::default()
        }
    };
    let turns = values.into_iter().enumerate().map(turn).collect();
    Soak { setup: Setup::new(String::new(), ClockUnit::Ns), turns, strange: Vec::new() }
}

fn judged(soak: &Soak) -> Series {
    let mut all = judge(soak);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Values around 1000 that change by this share over the soak, with noise of so many percent, each linked to the one before.
fn noisy(seed: u64, turns: usize, drift: f64, (percent, link): (f64, f64)) -> Vec<f64> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut off = 0.0;
    let value = |at: usize| {
        off = link * off + (1.0 - link * link).sqrt() * normal(&mut rng);
        1000.0 * (1.0 + drift * at as f64 / (turns - 1) as f64 + off * percent / 100.0)
    };
    (0..turns).map(value).collect()
}

/// Number of bad soaks.
fn alarms(turns: usize, drift: f64, noise: (f64, f64)) -> usize {
    let bad = |seed: &u64| {
        judged(&soak(Kind::Figure, usize::MAX, noisy(*seed, turns, drift, noise))).drift.is_bad()
    };
    (0..SOAKS).filter(bad).count()
}

#[test]
fn noise_without_a_drift_raises_no_more_alarms_than_stated() {
    // Noise of a tenth lets a change of more than the smallest effect come by chance. 5 % of 200 are 10; of the numbers with
    // this mean, 1 of 100 exceeds 17.
    let settings = [(14, 0.0), (40, 0.0), (150, 0.0), (150, 0.5)];
    let found = settings.map(|(turns, link)| alarms(turns, 0.0, (10.0, link)));
    assert!(found.iter().all(|found| *found <= 17), "{found:?} of {SOAKS} soaks");
    assert!(found.iter().sum::<usize>() <= 40, "{found:?} of {SOAKS} soaks");
}

#[test]
fn a_drift_is_found_and_has_its_size() {
    assert!(alarms(100, 0.10, (5.0, 0.0)) >= 190, "10 % beside noise of 5 %");
    assert!(alarms(14, 0.5, (5.0, 0.0)) >= 190, "half as much again, in few turns");
    assert!(alarms(300, -0.10, (10.0, 0.3)) >= 180, "downwards");
    let one = judged(&soak(Kind::Figure, usize::MAX, noisy(1, 200, 0.2, (2.0, 0.0))));
    let change = one.change.expect("enough");
    assert!(change.low > 0.15 && change.high < 0.25 && one.drift == Drift::Drifts, "{one:?}");
    assert!((980.0..1050.0).contains(&one.level), "{one:?}");
}

#[test]
fn a_drift_below_the_smallest_effect_is_steady() {
    let small = judged(&soak(Kind::Figure, usize::MAX, noisy(1, 200, 0.03, (0.5, 0.0))));
    assert!(small.change.is_some_and(|change| change.low > 0.0) && small.drift == Drift::Steady, "{small:?}");
}

#[test]
fn counts_may_shrink_and_not_grow() {
    let of = |values: Vec<f64>| judged(&soak(Kind::Count, usize::MAX, values)).drift;
    let line = |from: f64, by: f64| (0..20).map(|at| from + by * f64::from(at)).collect::<Vec<_>>();
    assert_eq!(of(vec![7.0; 20]), Drift::Steady);
    assert_eq!(of(vec![0.0; 20]), Drift::Steady);
    assert_eq!(of(line(7.0, 1.0)), Drift::Grows);
    assert_eq!(of(line(0.0, 1.0)), Drift::Grows);
    assert_eq!(of(line(100.0, -1.0)), Drift::Steady);
    // Memory grows by steps, with a few pages to and fro.
    let pages = line(18_000.0, 1024.0).into_iter().zip([0.0, 4.0, 8.0, 8.0].into_iter().cycle());
    assert_eq!(of(pages.take(14).map(|(memory, pages)| memory + pages).collect()), Drift::Grows);
    // The first turns fill what is filled once.
    assert_eq!(of([vec![1.0, 50.0], vec![90.0; 18]].concat()), Drift::Steady);
}

#[test]
fn each_stretch_begins_at_its_own_level() {
    // A leak that a restart ends grows in each stretch, though the whole does not.
    let sawtooth = (0..60).map(|at| 100.0 + f64::from(at % 20) * 3.0);
    assert_eq!(judged(&soak(Kind::Count, 20, sawtooth)).drift, Drift::Grows);
    let steps = (0..60).map(|at| 100.0 + f64::from(at / 20) * 30.0);
    assert_eq!(judged(&soak(Kind::Count, 20, steps)).drift, Drift::Steady);
}

#[test]
fn too_few_turns_say_how_many_are_needed() {
    let few = judged(&soak(Kind::Count, usize::MAX, vec![5.0; 4]));
    let Drift::CannotTell { needed: Some(needed) } = few.drift else { panic!("{few:?}") };
    assert_eq!(few.change, None);
    let enough = judged(&soak(Kind::Count, usize::MAX, vec![5.0; needed as usize]));
    let less = judged(&soak(Kind::Count, usize::MAX, vec![5.0; needed as usize - 1]));
    assert!(enough.change.is_some() && less.change.is_none(), "{needed}: {enough:?} {less:?}");
    let wide = judged(&soak(Kind::Figure, usize::MAX, noisy(3, 20, 0.0, (10.0, 0.0))));
    let Drift::CannotTell { needed: Some(needed) } = wide.drift else { panic!("{wide:?}") };
    assert!((40..1800).contains(&needed), "{needed}");
    assert!(judge(&soak(Kind::Count, 1, [])).is_empty());
}

#[test]
fn turns_of_unequal_length_make_a_steady_leak_no_less_certain() {
    let mut leak = soak(Kind::Count, usize::MAX, (0..14).map(|at| 5.0 + 3.0 * f64::from(at)));
    let mut rng = fastrand::Rng::with_seed(11);
    let mut soaked = 0.0;
    for turn in &mut leak.turns {
        soaked += 1.0 + 20.0 * rng.f64();
        turn.soaked_s = soaked;
    }
    assert_eq!(judged(&leak).drift, Drift::Grows);
}

#[test]
fn thousands_of_turns_are_joined_and_judged_alike() {
    let long = judged(&soak(Kind::Figure, usize::MAX, noisy(5, 5000, 0.10, (10.0, 0.0))));
    assert!(long.points[0].len() <= 400 && long.turns == 4990, "{}", long.turns);
    assert_eq!(long.drift, Drift::Drifts);
}
