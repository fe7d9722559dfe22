//! Room: logarithmic axes: where a value is, and which round values are labelled.
//! Not here: what is drawn.

/// A logarithmic axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// Around these values, widened to round ones; `None` without a positive value.
    pub(super) fn around(values: impl IntoIterator<Item = f64>) -> Option<Scale> {
        let positive = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) =
            positive.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            return None;
        }
        let (low, high) = (round_down(low), round_up(high));
        Some(Scale { low, high: if high > low { high } else { low * 10.0 } })
    }

    /// From one value to another, both positive.
    pub(super) fn between(low: f64, high: f64) -> Scale {
        Scale { low, high: high.max(low * 1.000_001) }
    }

    /// Where a value is, 0 to 1; what is outside is at the edge.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln();
        share.clamp(0.0, 1.0)
    }

    /// Round values: 1, 2 and 5 of each decade, or only decades if there are many.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let factors: &[f64] = if decades <= 2.2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        (first..=last)
            .flat_map(|decade| factors.iter().map(move |factor| factor * 10f64.powi(decade)))
            .filter(|value| *value >= self.low * 0.999 && *value <= self.high * 1.001)
            .collect()
    }
}

fn round_down(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|factor| factor * decade)
        .find(|round| *round <= value * 1.000_001)
        .unwrap_or(decade)
}

fn round_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let rounds = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * decade);
    rounds.into_iter().find(|round| *round >= value * 0.999_999).unwrap_or(decade * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_begins_and_ends_round_and_holds_every_value() {
        let scale = Scale::around([3_081.0, 41_000.0]).expect("there are values");
        assert_eq!((scale.low, scale.high), (2_000.0, 50_000.0));
        assert_eq!(scale.ticks(), [2_000.0, 5_000.0, 10_000.0, 20_000.0, 50_000.0]);
        assert_eq!((scale.at(2_000.0), scale.at(50_000.0)), (0.0, 1.0));
        assert!((scale.at(10_000.0) - 0.5).abs() < 1e-9, "the geometric middle");
        let wide = Scale::around([1.0, 3e7]).expect("there are values");
        assert_eq!(wide.ticks(), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7]);
    }

    #[test]
    fn one_value_has_an_axis_and_none_has_none() {
        let scale = Scale::around([100.0]).expect("there is one");
        assert!(scale.high > scale.low && (0.0..=1.0).contains(&scale.at(100.0)));
        assert!(Scale::around([]).is_none());
        assert!(Scale::around([0.0, -3.0, f64::NAN, f64::INFINITY]).is_none());
    }
}
