//! Room: one row of the table: what was measured beside what, the ratio of every round, the limits, and
//! the verdict.
//! Not here: measuring (`trip`, `crowd`, `growth`).
//! A row's ratio is the median over rounds (where pairs crowd, that of the medians). In each round both sides were measured one right after the
//! other, so that a machine that changes its pace between rounds changes both.

use std::fmt;

use serde::Serialize;

/// What a ratio is held to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Of costs.
    AtMost(f64),
    /// Of throughput.
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

/// As `<=1.60`.
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

/// A value per round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The one in the middle.
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
    /// How many.
    pub rounds: usize,
}

impl Spread {
    /// Of these values; `None` of none.
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

/// What figures of a row are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
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

/// How a row turned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The target, and the goal if there is one.
    Met,
    /// The target only.
    ShortOfTheGoal,
    /// Not even that.
    Missed,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::ShortOfTheGoal => "met, short of the goal",
            Self::Missed => "MISSED",
        })
    }
}

/// A row that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// For people.
    pub title: String,
    /// Of `measured` and `beside`.
    pub unit: Unit,
    /// Median over rounds of the driver's figure.
    pub measured: f64,
    /// What it is compared with, and the median of that; a row of [`Unit::Kib`] has none.
    pub beside: Option<(String, f64)>,
    /// Of the rounds.
    pub ratio: Spread,
    /// The same ratio for the runtime on the driver, where it was measured. Held to nothing.
    pub runtime: Option<f64>,
    /// What the ratio must be.
    pub target: Limit,
    /// What it should be.
    pub goal: Option<Limit>,
    /// How it turned out.
    pub verdict: Verdict,
    /// What else must be known to judge it.
    pub note: Option<String>,
}

impl Row {
    /// A row whose verdict follows from its ratio.
    #[must_use]
    pub fn new(
        title: &str,
        unit: Unit,
        measured: f64,
        beside: Option<(String, f64)>,
        ratio: Spread,
        target: Limit,
    ) -> Self {
        let row = Self {
            title: title.to_owned(),
            unit,
            measured,
            beside,
            ratio,
            runtime: None,
            target,
            goal: None,
            verdict: Verdict::Met,
            note: None,
        };
        row.with_goal(None)
    }

    /// The same with a goal beyond the target.
    #[must_use]
    pub fn with_goal(self, goal: Option<Limit>) -> Self {
        let ratio = self.ratio.median;
        let verdict = match (self.target.holds(ratio), goal.is_none_or(|goal| goal.holds(ratio))) {
            (true, true) => Verdict::Met,
            (true, false) => Verdict::ShortOfTheGoal,
            (false, _) => Verdict::Missed,
        };
        Self { goal, verdict, ..self }
    }
}

/// The table's head.
pub(super) const HEAD: &str = "                                         driver          beside                ratio  (of rounds)   \
     runtime  target    goal";

/// One line of a table without its end, and a second one for its note.
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
        let goal = self.goal.map_or("-".to_owned(), |goal| goal.to_string());
        write!(
            f,
            "{:<36} {:>10} {beside:<23} {median:>6.digits$}  {spread:<13} {runtime:>7} {:>7} {goal:>7}  {}",
            self.title,
            self.unit.show(self.measured),
            self.target,
            self.verdict
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

    fn row(ratios: &[f64], target: Limit, goal: Option<Limit>) -> Row {
        let ratio = Spread::of(ratios).expect("rounds");
        Row::new("a title", Unit::Ns, 1500.0, Some(("futex".to_owned(), 1000.0)), ratio, target)
            .with_goal(goal)
    }

    #[test]
    fn one_wild_round_decides_nothing_and_is_shown() {
        let ratios = [1.4, 30.0, 1.5, 1.6, 1.3];
        let row = row(&ratios, Limit::AtMost(1.6), Some(Limit::AtMost(1.25)));
        assert_eq!(
            (row.ratio.median, row.ratio.least, row.ratio.most, row.ratio.rounds),
            (1.5, 1.3, 30.0, 5)
        );
        assert_eq!(row.verdict, Verdict::ShortOfTheGoal);
        assert!(row.to_string().contains("1.30..30.00"), "{row}");
        assert!(row.to_string().ends_with("met, short of the goal"), "{row}");
    }

    #[test]
    fn a_row_that_must_fail_fails() {
        let most = |ratio| row(&[ratio], Limit::AtMost(1.6), Some(Limit::AtMost(1.25))).verdict;
        assert_eq!(
            [most(1.25), most(1.26), most(1.6), most(1.61)].map(|verdict| verdict == Verdict::Missed),
            [false, false, false, true]
        );
        assert_eq!((most(1.25), most(1.6)), (Verdict::Met, Verdict::ShortOfTheGoal));
        let least = |ratio| row(&[ratio], Limit::AtLeast(0.7), None).verdict;
        assert_eq!((least(0.69), least(0.7), least(2.0)), (Verdict::Missed, Verdict::Met, Verdict::Met));
        assert_eq!(least(f64::NAN), Verdict::Missed, "no number meets anything");
        assert!(row(&[2.0], Limit::AtMost(1.6), None).to_string().ends_with("MISSED"));
    }

    #[test]
    fn no_rounds_are_no_result() {
        assert_eq!(Spread::of(&[]), None);
    }
}
