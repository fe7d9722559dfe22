//! Time axis of a picture: unit and labels.
//! Not here: positions and round ticks (`page::Axis`).

use serde::Serialize;

/// Tick mark of the axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Tick {
    /// Nanoseconds from the axis' zero.
    pub(super) ns: i64,
    /// Position, 0 to 1.
    pub(super) x: f64,
    /// Number in the axis' unit.
    pub(super) label: String,
    /// Every second tick, counted from zero: the ones shown on a narrow page.
    pub(super) even: bool,
}

/// Time range of the axis and its zero, in nanoseconds of the trace clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) zero: u64,
}

impl Axis {
    /// The axis in nanoseconds from zero.
    fn linear(&self) -> page::Axis {
        page::Axis::linear(self.since_zero(self.from) as f64, self.since_zero(self.to) as f64)
    }

    /// Position of a time, 0 to 1, clamped to the edges.
    pub(super) fn x(&self, ts: u64) -> f64 {
        self.linear().at(self.since_zero(ts) as f64)
    }

    /// Position and width of a time range.
    pub(super) fn place(&self, begin: u64, end: u64) -> (f64, f64) {
        let x = self.x(begin);
        (x, (self.x(end) - x).max(0.0))
    }

    /// Time in nanoseconds from zero.
    pub(super) fn since_zero(&self, ts: u64) -> i64 {
        i64::try_from(i128::from(ts) - i128::from(self.zero)).unwrap_or(i64::MAX)
    }

    /// Unit of the tick labels, and its length in nanoseconds.
    pub(super) fn unit(&self) -> (&'static str, i64) {
        match self.to.saturating_sub(self.from) {
            0..20_000_000 => ("us", 1_000),
            20_000_000..20_000_000_000 => ("ms", 1_000_000),
            _ => ("s", 1_000_000_000),
        }
    }

    pub(super) fn ticks(&self) -> Vec<Tick> {
        let axis = self.linear();
        let tick = |value: f64| {
            let (ns, even) = (value as i64, (value / axis.step()) % 2.0 == 0.0);
            Tick { ns, x: axis.at(value), label: self.label(ns), even }
        };
        axis.ticks().into_iter().map(tick).collect()
    }

    /// Nanoseconds in the axis' unit, without trailing zeros.
    fn label(&self, ns: i64) -> String {
        let (_, one) = self.unit();
        let sign = if ns < 0 { "-" } else { "" };
        let (whole, rest) = (ns.unsigned_abs() / one.unsigned_abs(), ns.unsigned_abs() % one.unsigned_abs());
        let digits = one.ilog10() as usize;
        let rest = format!("{rest:0digits$}");
        let rest = rest.trim_end_matches('0');
        let point = if rest.is_empty() { "" } else { "." };
        format!("{sign}{whole}{point}{rest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_have_their_place() {
        let axis = Axis { from: 900_000, to: 4_200_000, zero: 1_000_000 };
        let ticks = axis.ticks();
        let labels: Vec<_> = ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(labels, ["0", "500", "1000", "1500", "2000", "2500", "3000"]);
        assert_eq!(axis.unit().0, "us");
        for tick in &ticks {
            let ts = u64::try_from(1_000_000 + tick.ns).expect("after zero");
            assert!((tick.x - axis.x(ts)).abs() < 1e-9);
        }
        assert_eq!(ticks.iter().filter(|tick| tick.even).count(), 4);
    }

    #[test]
    fn what_is_outside_is_at_the_edge() {
        let axis = Axis { from: 100, to: 200, zero: 100 };
        assert_eq!((axis.x(0), axis.x(150), axis.x(900)), (0.0, 0.5, 1.0));
        assert_eq!(axis.place(150, 900), (0.5, 0.5));
    }

    #[test]
    fn labels_have_the_digits_that_count() {
        let axis = Axis { from: 0, to: 1000, zero: 0 };
        assert_eq!((axis.label(200).as_str(), axis.label(-1_500).as_str()), ("0.2", "-1.5"));
        assert_eq!(axis.label(0), "0");
    }
}
