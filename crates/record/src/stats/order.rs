//! Room: within which limits a quantile is known, by the ranks of the values alone.
//! Not here: comparing quantiles (`crate::compare`).
//!
//! However many of n independent values lie above the true quantile is a matter of the binomial distribution, and of nothing
//! else. So some value of low rank is below it and one of high rank above, with a confidence that can be counted.

use super::normal_quantile;

/// With more values expected above the quantile the binomial distribution is as good as normal.
const COUNTED: f64 = 500.0;

/// Ranks, from 1, of the values between which a quantile lies; `None` for an end beyond all values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranks {
    /// Of the greatest value that is surely not above it.
    pub low: Option<u64>,
    /// Of the least value that is surely not below it.
    pub high: Option<u64>,
}

/// Of `n` independent values, the ranks between which the quantile lies with this confidence, at least;
/// `quantile` and `confidence` are above 0 and below 1.
#[must_use]
pub fn quantile_ranks(n: u64, quantile: f64, confidence: f64) -> Ranks {
    let outside = (1.0 - confidence) / 2.0;
    let share = 1.0 - quantile;
    let expected = n as f64 * share;
    // Fewest and most values above it that are not too unlikely.
    let (fewest, most) = if expected <= COUNTED {
        above(n, share, outside)
    } else {
        let spread = normal_quantile(1.0 - outside).unwrap_or(0.0) * (expected * quantile).sqrt();
        // One further on either side is for the whole numbers.
        ((expected - spread).floor().max(0.0) as u64, (expected + spread).ceil() as u64)
    };
    Ranks { low: n.checked_sub(most).filter(|rank| *rank > 0), high: (fewest > 0).then(|| n - fewest + 1) }
}

/// The greatest number with at most `outside` below it, and the least with at most that above it.
fn above(n: u64, share: f64, outside: f64) -> (u64, u64) {
    let mut chance = (n as f64 * (1.0 - share).ln()).exp();
    let mut sum = 0.0;
    let (mut fewest, mut count) = (0, 0);
    loop {
        if sum <= outside {
            fewest = count;
        }
        sum += chance;
        if sum >= 1.0 - outside || count == n {
            return (fewest, count);
        }
        chance *= (n - count) as f64 / (count + 1) as f64 * share / (1.0 - share);
        count += 1;
    }
}
