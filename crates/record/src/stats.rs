//! Room: statistics over a handful of repetitions.
//! Not here: percentiles of recorded samples (`crate::distribution`).
//! A statistic that does not exist for so few values is `None`, never 0.

pub mod change;
pub mod dice;
pub mod order;
pub mod rank;
pub mod shift;

/// Arithmetic mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The middle value, or the mean of the two middle ones; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some((sorted[sorted.len() / 2 - 1] + upper) / 2.0)
}

/// Standard deviation of the sample (divisor n - 1); `None` below two values.
pub fn stddev(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Coefficient of variation, `stddev / mean`, as a fraction; `None` below two values or at mean 0.
pub fn cv(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let spread = stddev(values)?;
    (mean != 0.0).then(|| spread / mean)
}

/// The least value that `percent` of the values do not exceed (nearest rank); `None` of nothing.
pub fn percentile(values: &[f64], percent: f64) -> Option<f64> {
    let sorted = sorted(values);
    let rank = (percent.clamp(0.0, 100.0) / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// The least probability of success that so many successes allow, with this confidence, one-sided
/// (Wilson's score interval); `None` without trials or when the confidence is not within 0.5 and 1.
pub fn wilson_lower(successes: u64, trials: u64, confidence: f64) -> Option<f64> {
    if trials == 0 || successes > trials {
        return None;
    }
    let z = normal_quantile(confidence)?;
    if successes == 0 {
        // Where rounding would leave a little above nothing.
        return Some(0.0);
    }
    let (n, z2) = (trials as f64, z * z);
    let share = successes as f64 / n;
    let spread = z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    Some(((share + z2 / (2.0 * n) - spread) / (1.0 + z2 / n)).clamp(0.0, 1.0))
}

/// How many standard deviations above the mean a normal variable stays below with this probability, at least
/// 0.5 and below 1; `None` for others.
pub fn normal_quantile(probability: f64) -> Option<f64> {
    if !(0.5..1.0).contains(&probability) {
        return None;
    }
    // No double below 1 is further out.
    let (mut low, mut high) = (0.0, 9.0);
    while high - low > 1e-12 {
        let middle = (low + high) / 2.0;
        if normal_below(middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some((low + high) / 2.0)
}

/// Probability of a normal variable to stay below so many standard deviations, at least 0 and at most 9.
/// Facts: G. Marsaglia, "Evaluating the Normal Distribution", 2004: a series of terms that are all positive.
fn normal_below(z: f64) -> f64 {
    let (mut term, mut sum, mut divisor) = (z, z, 1.0);
    while term > sum * 1e-17 {
        divisor += 2.0;
        term *= z * z / divisor;
        sum += term;
    }
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    0.5 + sum * density
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests;
