//! Statistics of values with known answers.

use super::*;

#[test]
fn textbook_sample() {
    // Sum 40, squared deviations 32: population deviation 2, sample deviation sqrt(32 / 7).
    let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
    assert_eq!(mean(&values), Some(5.0));
    assert_eq!(median(&values), Some(4.5));
    assert_eq!(stddev(&values), Some((32.0f64 / 7.0).sqrt()));
    assert_eq!(cv(&values), Some((32.0f64 / 7.0).sqrt() / 5.0));
}

#[test]
fn order_does_not_matter_to_the_middle() {
    assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
    assert_eq!(median(&[9.0, 1.0]), Some(5.0));
    assert_eq!(percentile(&[9.0, 1.0, 5.0, 7.0], 75.0), Some(7.0));
    assert_eq!(percentile(&[9.0, 1.0, 5.0, 7.0], 0.0), Some(1.0));
    assert_eq!(percentile(&[9.0, 1.0, 5.0, 7.0], 100.0), Some(9.0));
}

#[test]
fn what_does_not_exist_is_none() {
    assert_eq!((mean(&[]), median(&[]), percentile(&[], 50.0)), (None, None, None));
    assert_eq!((stddev(&[3.0]), cv(&[3.0])), (None, None));
    assert_eq!((mean(&[3.0]), median(&[3.0])), (Some(3.0), Some(3.0)));
    assert_eq!(cv(&[-1.0, 1.0]), None, "a spread relative to 0");
}

#[test]
fn no_spread_is_zero_spread() {
    assert_eq!(stddev(&[4.0, 4.0, 4.0]), Some(0.0));
}

#[test]
fn quantiles_of_the_normal_distribution_are_those_of_the_tables() {
    let table = [
        (0.5, 0.0),
        (0.8, 0.841_621_233_572_914),
        (0.9, 1.281_551_565_544_6),
        (0.95, 1.644_853_626_951_472),
        (0.975, 1.959_963_984_540_054),
        (0.99, 2.326_347_874_040_841),
        (0.999, 3.090_232_306_167_813),
        (0.999_999, 4.753_424_308_822_899),
    ];
    for (probability, wanted) in table {
        let found = normal_quantile(probability).expect("within 0.5 and 1");
        assert!((found - wanted).abs() < 1e-9, "{probability}: {found}");
    }
    for beyond in [0.4, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(normal_quantile(beyond), None, "{beyond}");
    }
    assert!(normal_quantile(1.0 - f64::EPSILON).is_some_and(|z| z > 8.0 && z < 9.0));
}

#[test]
fn wilson_s_bound_is_newcombe_s() {
    // Source: R. Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I, method 3. Lower
    // ends of two-sided 95 % intervals are one-sided bounds of 97.5 %.
    for (successes, trials, wanted) in [(81, 263, 0.2553), (15, 148, 0.0624), (0, 20, 0.0), (1, 29, 0.0061)] {
        let found = wilson_lower(successes, trials, 0.975).expect("there are trials");
        assert!((found - wanted).abs() < 5e-5, "{successes} of {trials}: {found}");
    }
    // Without a failure the bound is n / (n + z^2).
    let clean = wilson_lower(268, 268, 0.95).expect("there are trials");
    assert!((clean - 268.0 / (268.0 + 2.705_543_454_095_404)).abs() < 1e-9, "{clean}");
    assert!(clean >= 0.99 && wilson_lower(267, 267, 0.95).is_some_and(|bound| bound < 0.99));
}

#[test]
fn wilson_s_bound_of_nonsense_does_not_exist() {
    assert_eq!(wilson_lower(0, 0, 0.95), None);
    assert_eq!(wilson_lower(2, 1, 0.95), None);
    assert_eq!(wilson_lower(1, 2, 1.0), None);
    assert_eq!(wilson_lower(0, 10, 0.95), Some(0.0));
}

mod scipy;

use super::{rank, shift};
use fastrand::Rng;

#[test]
fn what_a_test_cannot_be_made_of_is_none() {
    assert_eq!(rank::mann_whitney(&[], &[1.0]), None);
    assert_eq!(rank::signed_rank(&[]), None);
    assert_eq!(shift::hodges_lehmann(&[1.0], &[]), None);
    assert_eq!(shift::between_groups(&[1.0], &[2.0, 3.0], 0.95, 1), None, "no spread of one value");
    assert_eq!(shift::student_quantile(0.975, 0), None);
}

#[test]
fn no_difference_at_all_is_no_evidence() {
    let same = [5.0; 12];
    assert_eq!(rank::mann_whitney(&same, &same).expect("groups").p, 1.0);
    assert_eq!(rank::mann_whitney(&[5.0; 30], &[5.0; 30]).expect("groups").p, 1.0);
    assert_eq!(rank::signed_rank(&[0.0; 9]).expect("pairs").p, 1.0);
}

#[test]
fn holm_enlarges_the_least_most_and_keeps_their_order() {
    assert_eq!(rank::holm(&[0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]);
    assert_eq!(rank::holm(&[0.6, 0.9]), [1.0, 1.0]);
    assert_eq!(rank::holm(&[]), Vec::<f64>::new());
}

/// Shares of 400 intervals that contain the true shift, for groups with occasional outliers.
fn coverage(n: usize, paired: bool) -> f64 {
    let mut rng = Rng::with_seed(n as u64);
    let mut value =
        |shift: f64| shift + crate::stats::normal(&mut rng) * if rng.usize(..10) == 0 { 4.0 } else { 1.0 };
    let held = (0..400).filter(|&seed| {
        let first: Vec<f64> = (0..n).map(|_| value(0.0)).collect();
        let second: Vec<f64> = (0..n).map(|_| value(0.5)).collect();
        let found = if paired {
            let differences: Vec<f64> = first.iter().zip(&second).map(|(low, high)| high - low).collect();
            shift::between_pairs(&differences, 0.95, seed)
        } else {
            shift::between_groups(&first, &second, 0.95, seed)
        };
        found.is_some_and(|found| found.low <= 0.5 && 0.5 <= found.high)
    });
    held.count() as f64 / 400.0
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    for n in [5, 12] {
        for paired in [false, true] {
            let share = coverage(n, paired);
            // 0.95 is asked for; 400 trials measure it to 0.02.
            assert!((0.92..=0.999).contains(&share), "n {n}, paired {paired}: {share}");
        }
    }
}

#[test]
fn an_interval_is_the_same_each_time() {
    let (a, b) = ([1.0, 2.0, 4.0, 3.0], [2.0, 2.5, 5.0]);
    assert_eq!(shift::between_groups(&a, &b, 0.95, 9), shift::between_groups(&a, &b, 0.95, 9));
}
