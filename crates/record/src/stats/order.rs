//! Confidence limits of a quantile from ranks (order statistics).
//! Not here: comparing quantiles (`crate::compare`).
//!
//! The number of n independent values above the true quantile has a binomial distribution, whatever the distribution
//! of the values. So a value of low rank lies below the quantile and one of high rank above it, with a known
//! confidence.

use super::normal_quantile;

/// Expected number of values above the quantile from which the normal approximation is used.
const COUNTED: f64 = 500.0;

/// Ranks, from 1, of the values that bound a quantile; `None` for an end beyond all values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranks {
    /// Rank of the lower bound.
    pub low: Option<u64>,
    /// Rank of the upper bound.
    pub high: Option<u64>,
}

/// Ranks of the values that bound the quantile of `n` independent values with at least this confidence. `quantile`
/// and `confidence` must be above 0 and below 1.
#[must_use]
pub fn quantile_ranks(n: u64, quantile: f64, confidence: f64) -> Ranks {
    let outside = (1.0 - confidence) / 2.0;
    let share = 1.0 - quantile;
    let expected = n as f64 * share;
    // Limits of the number of values above the quantile.
    let (fewest, most) = if expected <= COUNTED {
        above(n, share, outside)
    } else {
        let spread = normal_quantile(1.0 - outside).unwrap_or(0.0) * (expected * quantile).sqrt();
        // One more on each side corrects for whole numbers.
        ((expected - spread).floor().max(0.0) as u64, (expected + spread).ceil() as u64)
    };
    Ranks { low: n.checked_sub(most).filter(|rank| *rank > 0), high: (fewest > 0).then(|| n - fewest + 1) }
}

/// The greatest number with probability at most `outside` below it, and the least with at most that above it.
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
