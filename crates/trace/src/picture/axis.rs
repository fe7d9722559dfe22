//! Room: the time axis: its unit, its round ticks, and where a moment is on it.
//! Not here: what is drawn there.

/// A tick.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// From the axis' zero, in nanoseconds.
    pub(super) ns: i64,
    /// Where, 0 to 1.
    pub(super) x: f64,
    /// The number in the axis' unit.
    pub(super) label: String,
    /// Every second one, from zero: enough for a narrow page.
    pub(super) even: bool,
}

/// From which moment to which one, and where its zero is; nanoseconds of the trace's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) zero: u64,
}

/// At most so many steps between ticks.
const STEPS: u64 = 8;

#[expect(clippy::cast_precision_loss, reason = "a place on a screen needs no 64 bits")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Axis {
    fn span(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Where a moment is, 0 to 1; what is outside is at the edge.
    pub(super) fn x(&self, ts: u64) -> f64 {
        ratio(ts.clamp(self.from, self.to.max(self.from)) - self.from, self.span())
    }

    /// Where something begins, and how wide it is.
    pub(super) fn place(&self, begin: u64, end: u64) -> (f64, f64) {
        let x = self.x(begin);
        (x, (self.x(end) - x).max(0.0))
    }

    /// A moment as nanoseconds from zero.
    pub(super) fn since_zero(&self, ts: u64) -> i64 {
        i64::try_from(i128::from(ts) - i128::from(self.zero)).unwrap_or(i64::MAX)
    }

    /// The unit of the numbers at its ticks, and how many nanoseconds it is.
    pub(super) fn unit(&self) -> (&'static str, i64) {
        match self.span() {
            0..20_000_000 => ("us", 1_000),
            20_000_000..20_000_000_000 => ("ms", 1_000_000),
            _ => ("s", 1_000_000_000),
        }
    }

    /// Ticks at multiples of 1, 2 or 5 times a power of ten.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        let step = round_step(self.span());
        let (first, last) = (self.since_zero(self.from), self.since_zero(self.to));
        let mut ticks = Vec::new();
        let mut number = first.div_euclid(step);
        while let Some(ns) = number.checked_mul(step).filter(|ns| *ns <= last) {
            if ns >= first {
                let ts = u64::try_from(i128::from(self.zero) + i128::from(ns)).unwrap_or(0);
                ticks.push(Tick { ns, x: self.x(ts), label: self.label(ns), even: number % 2 == 0 });
            }
            number += 1;
        }
        ticks
    }

    /// A number of nanoseconds in the axis' unit, without zeros that say nothing.
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

/// The least round number of nanoseconds that fits at most [`STEPS`] times.
fn round_step(span: u64) -> i64 {
    let least = span.div_ceil(STEPS).max(1);
    let mut step: u64 = 1;
    loop {
        for factor in [1, 2, 5] {
            if let Some(step) = step.checked_mul(factor).filter(|step| *step >= least) {
                return i64::try_from(step).unwrap_or(i64::MAX);
            }
        }
        match step.checked_mul(10) {
            Some(next) => step = next,
            None => return i64::MAX,
        }
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
    fn any_span_has_some_ticks_and_not_too_many() {
        for span in [1_u64, 7, 999, 12_345, 1 << 30, 1 << 45, u64::MAX / 4] {
            let axis = Axis { from: 10, to: 10 + span, zero: 10 };
            let ticks = axis.ticks();
            assert!((1..=9).contains(&ticks.len()), "{span}: {ticks:?}");
            assert!(ticks.iter().all(|tick| (0.0..=1.0).contains(&tick.x)), "{span}");
        }
        let empty = Axis { from: 10, to: 10, zero: 10 };
        assert_eq!((empty.ticks().len(), empty.place(10, 10)), (1, (0.0, 0.0)));
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
