//! Room: random numbers that a seed repeats, so that a comparison says the same each time.
//! Not here: what they decide.
//! Facts: SplitMix64 (Steele, Lea, Flood 2014); Box and Muller 1958.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The stream of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The next word; each is as likely as any other.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        // The remainder is below `limit` and so fits.
        (self.roll() % limit.max(1) as u64) as usize
    }

    /// A number at least 0 and below 1.
    pub fn unit(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number of the normal distribution with mean 0 and deviation 1.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.unit()).cos()
    }

    /// Puts values into a drawn order, each as likely as any other.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for end in (1..values.len()).rev() {
            values.swap(end, self.below(end + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_its_published_first_values() {
        let mut dice = Dice::new(1_234_567);
        let got = [dice.roll(), dice.roll(), dice.roll()];
        assert_eq!(got, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn normal_numbers_have_their_mean_and_deviation() {
        let mut dice = Dice::new(1);
        let drawn: Vec<f64> = (0..100_000).map(|_| dice.normal()).collect();
        let mean = super::super::mean(&drawn).expect("some");
        let deviation = super::super::stddev(&drawn).expect("some");
        assert!(mean.abs() < 0.02 && (deviation - 1.0).abs() < 0.02, "{mean} {deviation}");
    }

    #[test]
    fn a_shuffled_list_has_the_same_members() {
        let mut values: Vec<u32> = (0..100).collect();
        Dice::new(3).shuffle(&mut values);
        assert_ne!(values, (0..100).collect::<Vec<u32>>());
        values.sort_unstable();
        assert_eq!(values, (0..100).collect::<Vec<u32>>());
    }
}
