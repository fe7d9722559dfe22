//! Axes of charts: the position of a value, and round ticks.
//! Not here: units and labels, drawing.

/// Maximum number of steps between the ticks of a linear axis.
const STEPS: f64 = 8.0;

/// A range of values on a linear or logarithmic axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    is_linear: bool,
}

impl Axis {
    /// A linear axis; empty unless `high` is above `low`.
    #[must_use]
    pub fn linear(low: f64, high: f64) -> Axis {
        Axis { low, high, is_linear: true }
    }

    /// A logarithmic axis between two positive values.
    #[must_use]
    pub fn logarithmic(low: f64, high: f64) -> Axis {
        Axis { low, high: high.max(low * 1.000_001), is_linear: false }
    }

    /// A logarithmic axis that includes these values, extended to round ones; `None` without a positive value.
    pub fn around(values: impl IntoIterator<Item = f64>) -> Option<Axis> {
        let positive = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) =
            positive.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            return None;
        }
        // A value may miss a round one by the rounding error of a mean.
        let (low, high) = (round_down(low * 1.000_001), round_up(high * 0.999_999));
        Some(Axis::logarithmic(low, if high > low { high } else { low * 10.0 }))
    }

    /// The position of a value, 0 to 1; values outside lie at the edge.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        let Axis { low, high, .. } = *self;
        let share = match self.is_linear {
            true if high > low => (value - low) / (high - low),
            true => 0.0,
            false => (value.max(f64::MIN_POSITIVE) / low).ln() / (high / low).ln(),
        };
        share.clamp(0.0, 1.0)
    }

    /// Distance between the ticks of a linear axis: 1, 2 or 5 times a power of ten, at least 1.
    #[must_use]
    pub fn step(&self) -> f64 {
        round_up(((self.high - self.low) / STEPS).ceil().max(1.0))
    }

    /// Ticks at round values. Linear: multiples of [`Self::step`]. Logarithmic: 1, 2 and 5 of each decade, or only
    /// decades if there are many.
    #[must_use]
    pub fn ticks(&self) -> Vec<f64> {
        let Axis { low, high, .. } = *self;
        if self.is_linear {
            let step = self.step();
            let numbers = (0..).map(|number| ((low / step).ceil() + f64::from(number)) * step);
            return numbers.take_while(|value| *value <= high).collect();
        }
        let factors: &[f64] = if (high / low).log10() <= 2.2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        (first..=last)
            .flat_map(|decade| factors.iter().map(move |factor| factor * 10f64.powi(decade)))
            .filter(|value| *value >= low * 0.999 && *value <= high * 1.001)
            .collect()
    }
}

/// The greatest of 1, 2 or 5 times a power of ten that is at most a positive value.
fn round_down(value: f64) -> f64 {
    let decade = 10f64.powi(value.log10().floor() as i32);
    [5.0, 2.0].into_iter().map(|factor| factor * decade).find(|round| *round <= value).unwrap_or(decade)
}

/// The least of 1, 2 or 5 times a power of ten that is at least a positive value.
fn round_up(value: f64) -> f64 {
    let decade = 10f64.powi(value.log10().floor() as i32);
    let rounds = [1.0, 2.0, 5.0].into_iter().map(|factor| factor * decade);
    rounds.into_iter().find(|round| *round >= value).unwrap_or(decade * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_begins_and_ends_round_and_holds_every_value() {
        let axis = Axis::around([3_081.0, 41_000.0]).expect("there are values");
        assert_eq!((axis.low, axis.high), (2_000.0, 50_000.0));
        assert_eq!(axis.ticks(), [2_000.0, 5_000.0, 10_000.0, 20_000.0, 50_000.0]);
        assert_eq!((axis.at(2_000.0), axis.at(50_000.0)), (0.0, 1.0));
        assert!((axis.at(10_000.0) - 0.5).abs() < 1e-9, "the geometric middle");
        let wide = Axis::around([1.0, 3e7]).expect("there are values");
        assert_eq!(wide.ticks(), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7]);
    }

    #[test]
    fn one_value_has_an_axis_and_none_has_none() {
        let axis = Axis::around([100.0]).expect("there is one");
        assert!(axis.high > axis.low && (0.0..=1.0).contains(&axis.at(100.0)));
        assert!(Axis::around([]).is_none());
        assert!(Axis::around([0.0, -3.0, f64::NAN, f64::INFINITY]).is_none());
    }

    #[test]
    fn a_linear_axis_has_some_round_ticks_and_not_too_many() {
        assert_eq!(
            Axis::linear(-100.0, 3200.0).ticks(),
            [0.0, 500.0, 1000.0, 1500.0, 2000.0, 2500.0, 3000.0]
        );
        for span in [1_u64, 7, 8, 999, 8001, 12_345, 1 << 30, 1 << 45, u64::MAX / 4].map(|span| span as f64) {
            let ticks = Axis::linear(0.0, span).ticks();
            assert!((2..=9).contains(&ticks.len()), "{span}: {ticks:?}");
        }
        let empty = Axis::linear(0.0, 0.0);
        assert_eq!((empty.ticks(), empty.at(0.0)), (vec![0.0], 0.0));
        let axis = Axis::linear(100.0, 200.0);
        assert_eq!((axis.at(0.0), axis.at(150.0), axis.at(900.0)), (0.0, 0.5, 1.0));
    }
}
