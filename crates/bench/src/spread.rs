//! Distribution of a value over the rounds of a self-check.
//! Not here: distributions of samples (`record`).

/// Distribution of a value over rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Minimum.
    pub least: f64,
    /// Maximum.
    pub most: f64,
    /// Number of rounds.
    pub rounds: usize,
}

impl Spread {
    /// Computes the distribution of these values; `None` without values.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            median: record::stats::median(values)?,
            least: values.iter().copied().min_by(f64::total_cmp)?,
            most: values.iter().copied().max_by(f64::total_cmp)?,
            rounds: values.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rounds_are_no_result() {
        assert_eq!(Spread::of(&[]), None);
    }
}
