//! Room: drawing an order that the same seed draws again.
//! Not here: what is ordered.
//! Facts: Fisher and Yates' shuffle; splitmix64 (Steele, Lea, Flood 2014).

/// The same values in an order that depends on the seed alone.
#[must_use]
pub fn shuffled<T>(mut values: Vec<T>, seed: u64) -> Vec<T> {
    let mut state = seed;
    for last in (1..values.len()).rev() {
        // The bias of the remainder is below 2^-40 for any number of cases.
        let chosen = next(&mut state) % (last as u64 + 1);
        values.swap(last, chosen as usize);
    }
    values
}

/// A seed that the next run will not have: the clock's.
#[must_use]
pub fn fresh_seed() -> u64 {
    sys::clock::monotonic_ns()
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_its_published_first_values() {
        let mut state = 1_234_567;
        let got = [next(&mut state), next(&mut state), next(&mut state)];
        assert_eq!(got, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn every_position_can_come_first() {
        let firsts: std::collections::BTreeSet<u8> =
            (0..64).map(|seed| shuffled(vec![0, 1, 2, 3], seed)[0]).collect();
        assert_eq!(firsts.len(), 4);
    }
}
