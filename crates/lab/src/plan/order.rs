//! Room: drawing an order that the same seed draws again.
//! Not here: what is ordered.
//! Facts: Fisher and Yates' shuffle.

use crate::dice::Dice;

/// The same values in an order that depends on the seed alone.
#[must_use]
pub fn shuffled<T>(mut values: Vec<T>, seed: u64) -> Vec<T> {
    let mut dice = Dice::new(seed);
    for last in (1..values.len()).rev() {
        values.swap(last, dice.below(last + 1));
    }
    values
}

/// A seed that the next run will not have: the clock's.
#[must_use]
pub fn fresh_seed() -> u64 {
    sys::clock::monotonic_ns()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_can_come_first() {
        let firsts: std::collections::BTreeSet<u8> =
            (0..64).map(|seed| shuffled(vec![0, 1, 2, 3], seed)[0]).collect();
        assert_eq!(firsts.len(), 4);
    }
}
