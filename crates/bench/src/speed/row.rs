//! One row of the table: the figure and its reference, the ratio of every round, the limits, and the verdict.
//! Not here: measuring (`trip`, `crowd`, `growth`). A row's ratio is the median over rounds (for many pairs,
//! the ratio of the medians). In each round both sides were measured back to back, so that a change of the
//! machine's speed between rounds affects both.

use std::fmt;

use crate::spread::Spread;

/// Limit on a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// For costs.
    AtMost(f64),
    /// For throughput.
    AtLeast(f64),
}

impl Limit {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }
}

/// Writes it like `<=1.60`.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, value) = match self {
            Self::AtMost(most) => ("<=", most),
            Self::AtLeast(least) => (">=", least),
        };
        match *value >= 100.0 {
            true => write!(f, "{sign}{value:.0}"),
            false => write!(f, "{sign}{value:.2}"),
        }
    }
}

/// Unit of a row's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds per round trip.
    Ns,
    /// Round trips per second.
    PerSecond,
    /// KiB; the ratio is the figure itself.
    Kib,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Ns if value < 9_995.0 => format!("{:.2} us", value / 1e3),
            Self::Ns => format!("{:.1} us", value / 1e3),
            Self::PerSecond => format!("{:.0} k/s", value / 1e3),
            Self::Kib => format!("{value:.0} KiB"),
        }
    }
}

/// A measured row.
#[derive(Clone, Debug)]
pub struct Row {
    /// Title, for the user.
    pub title: String,
    /// Unit of `measured` and `beside`.
    pub unit: Unit,
    /// Median over rounds of the driver's figure.
    pub measured: f64,
    /// Name and median of the reference; a row of [`Unit::Kib`] has none.
    pub beside: Option<(String, f64)>,
    /// Ratio of the figure to the reference, over the rounds.
    pub ratio: Spread,
    /// The same ratio for the runtime on the driver, where measured; without a limit.
    pub runtime: Option<f64>,
    /// Limit of the ratio.
    pub limit: Limit,
    /// Remark needed to judge the row.
    pub note: Option<String>,
}

impl Row {
    /// Creates a row without the runtime and a note.
    #[must_use]
    pub fn new(
        title: &str,
        unit: Unit,
        measured: f64,
        beside: Option<(String, f64)>,
        ratio: Spread,
        limit: Limit,
    ) -> Self {
        Self { title: title.to_owned(), unit, measured, beside, ratio, runtime: None, limit, note: None }
    }

    /// Returns true if the ratio is within its limit.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.limit.holds(self.ratio.median)
    }
}

/// Header line of the table.
pub(super) const HEAD: &str = "                                         driver          beside                ratio  (of rounds)   \
     runtime   limit";

/// Writes one line of a table without its end, and a second one for its note.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beside = self
            .beside
            .as_ref()
            .map_or(String::new(), |(what, value)| format!("{:>10} {what}", self.unit.show(*value)));
        let digits = usize::from(self.unit != Unit::Kib) * 2;
        let Spread { median, least, most, .. } = self.ratio;
        let spread = format!("{least:.digits$}..{most:.digits$}");
        let runtime = self.runtime.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        write!(
            f,
            "{:<36} {:>10} {beside:<23} {median:>6.digits$}  {spread:<13} {runtime:>7} {:>7}  {}",
            self.title,
            self.unit.show(self.measured),
            self.limit,
            if self.is_met() { "met" } else { "MISSED" }
        )?;
        match &self.note {
            Some(note) => write!(f, "\n    {note}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ratios: &[f64], limit: Limit) -> Row {
        let ratio = Spread::of(ratios).expect("rounds");
        Row::new("a title", Unit::Ns, 1500.0, Some(("futex".to_owned(), 1000.0)), ratio, limit)
    }

    #[test]
    fn one_wild_round_decides_nothing_and_is_shown() {
        let row = row(&[1.4, 30.0, 1.5, 1.6, 1.3], Limit::AtMost(1.6));
        assert_eq!(
            (row.ratio.median, row.ratio.least, row.ratio.most, row.ratio.rounds),
            (1.5, 1.3, 30.0, 5)
        );
        assert!(row.to_string().contains("1.30..30.00") && row.to_string().ends_with("met"), "{row}");
    }

    #[test]
    fn a_row_that_must_fail_fails() {
        for (ratio, limit, is_met) in [
            (1.6, Limit::AtMost(1.6), true),
            (1.61, Limit::AtMost(1.6), false),
            (0.69, Limit::AtLeast(0.7), false),
            (0.7, Limit::AtLeast(0.7), true),
            (f64::NAN, Limit::AtLeast(0.7), false),
        ] {
            assert_eq!(row(&[ratio], limit).is_met(), is_met, "{ratio} {limit}");
        }
        assert!(row(&[2.0], Limit::AtMost(1.6)).to_string().ends_with("MISSED"));
    }
}
