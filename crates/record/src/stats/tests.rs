//! Room: statistics on numbers whose answers are known.

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
