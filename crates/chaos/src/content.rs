//! Reproducible payload contents, their checksum, and random lengths.
//! Not here: the key of each message (`member::traffic`).

use std::hash::{DefaultHasher, Hash, Hasher};

use fastrand::Rng;

/// A random length from 0 to `most` bytes; short ones are far more frequent.
pub(crate) fn length(rng: &mut Rng, most: usize) -> usize {
    let limit = most >> rng.usize(..12);
    rng.usize(..=limit)
}

/// The `len` bytes generated from `key`.
pub(crate) fn content(key: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::with_seed(key).fill(&mut bytes);
    bytes
}

/// Checksum over key and bytes; depends on each byte's value and position.
pub(crate) fn sum(key: u64, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, bytes).hash(&mut hasher);
    hasher.finish()
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
        let mut rng = Rng::with_seed(1);
        let lengths: Vec<usize> = (0..10_000).map(|_| length(&mut rng, 1000)).collect();
        assert!(lengths.iter().all(|length| *length <= 1000));
        assert!(lengths.contains(&0) && lengths.iter().any(|length| *length > 900));
    }
}
