//! Descriptive statistics of a few repetitions.
//! Not here: percentiles of recorded samples (`crate::distribution`).
//! A statistic that is undefined for so few values is `None`, never 0.

pub mod change;
pub mod order;
pub mod rank;
pub mod shift;
pub mod trend;

/// Arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Median; for an even number of values the mean of the middle two. `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some((sorted[sorted.len() / 2 - 1] + upper) / 2.0)
}

/// A random number from the standard normal distribution (Box and Muller 1958).
pub fn normal(rng: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (2.0 * std::f64::consts::PI * rng.f64()).cos()
}

/// Sample standard deviation (divisor n - 1); `None` below two values.
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

/// The nearest-rank percentile of values in any order; `None` without values.
pub fn percentile(values: &[f64], percent: f64) -> Option<f64> {
    units::percentile(&sorted(values), percent)
}

/// One-sided lower confidence bound of a success probability (Wilson's score interval); `None` without trials, or if
/// the confidence is not between 0.5 and 1.
pub fn wilson_lower(successes: u64, trials: u64, confidence: f64) -> Option<f64> {
    if trials == 0 || successes > trials {
        return None;
    }
    let z = normal_quantile(confidence)?;
    if successes == 0 {
        // Rounding would leave a little above 0.
        return Some(0.0);
    }
    let (n, z2) = (trials as f64, z * z);
    let share = successes as f64 / n;
    let spread = z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    Some(((share + z2 / (2.0 * n) - spread) / (1.0 + z2 / n)).clamp(0.0, 1.0))
}

/// Quantile of the standard normal distribution for a probability from 0.5 up to below 1; `None` for others.
pub fn normal_quantile(probability: f64) -> Option<f64> {
    if !(0.5..1.0).contains(&probability) {
        return None;
    }
    // No double below 1 has a larger quantile.
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

/// Cumulative distribution function of the standard normal distribution for `z` from 0 to 9.
/// Facts: G. Marsaglia, "Evaluating the Normal Distribution", 2004: a series of positive terms.
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
