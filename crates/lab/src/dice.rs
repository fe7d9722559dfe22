//! Room: random numbers that a seed repeats, and contents that a key repeats.
//! Not here: what they decide (`chaos`, `workers`, `plan::order`).
//! The numbers are those of `record::stats`, enough to spread traffic; nothing here is a secret.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Dice(record::stats::dice::Dice);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(record::stats::dice::Dice::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.roll()
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit)
    }

    /// A length up to `most`: small ones far more often than large ones.
    pub(crate) fn length(&mut self, most: usize) -> usize {
        let limit = most >> self.below(12);
        self.below(limit + 1)
    }
}

/// The bytes of this key.
pub(crate) fn content(key: u64, len: usize) -> Vec<u8> {
    let mut dice = Dice::new(key);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&dice.next().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// A sum that tells contents apart: every byte's value and place count (FNV over words).
pub(crate) fn sum(key: u64, bytes: &[u8]) -> u64 {
    let mut sum = key ^ 0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum = (sum ^ u64::from_le_bytes(word)).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_repeats_its_content() {
        assert_eq!(content(7, 1001), content(7, 1001));
        assert_eq!(content(7, 1001).len(), 1001);
        assert_ne!(content(7, 1001), content(8, 1001));
    }

    #[test]
    fn a_sum_sees_every_byte_and_its_place() {
        let bytes = content(1, 100);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_ne!(sum(3, &bytes), sum(3, &other), "byte {at}");
        }
        let mut swapped = bytes.clone();
        swapped.swap(8, 16);
        assert_ne!(sum(3, &bytes), sum(3, &swapped));
        assert_ne!(sum(3, &[0]), sum(3, &[0, 0]));
        assert_ne!(sum(3, &bytes), sum(4, &bytes));
    }

    #[test]
    fn lengths_stay_within_their_limit() {
        let mut dice = Dice::new(1);
        let lengths: Vec<usize> = (0..10_000).map(|_| dice.length(1000)).collect();
        assert!(lengths.iter().all(|length| *length <= 1000));
        assert!(lengths.contains(&0) && lengths.iter().any(|length| *length > 900));
    }
}
