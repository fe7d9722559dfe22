//! A soak: the same tests in turns for hours. Its log, one line of JSON for the setup and one for each turn.
//! Not here: running it (`bench::soak`), the file (`cli`), which series drift ([`judge`]), showing it
//! (`crate::render::soak`).
//!
//! Lines are only appended. One that a kill cut short affects no other.

pub mod judge;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::compare::Metric;
use crate::history;
use crate::schema::{ClockUnit, Run};

/// The name of the format.
const SCHEMA: &str = "binderperf.soak";
/// The version of the format.
const VERSION: u32 = 1;
/// The metrics that a turn keeps of each case.
const METRICS: [Metric; 2] = [Metric::Median, Metric::P99];

/// The first line: the setup of all turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    schema: String,
    version: u32,
    /// Machine, driver, settings, load and injected faults, as text. Only turns of equal setups make one soak.
    pub setup: String,
    /// Unit of the figures.
    pub unit: ClockUnit,
}

impl Setup {
    /// The setup of a soak.
    #[must_use]
    pub fn new(setup: String, unit: ClockUnit) -> Self {
        Self { schema: SCHEMA.to_owned(), version: VERSION, setup, unit }
    }
}

/// One turn: all tests once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Its number, from 1.
    pub turn: u64,
    /// The number, from 1, of its stretch: what ran without a kill or a reboot.
    pub stretch: u64,
    /// When it began, RFC 3339.
    pub began: String,
    /// When it ended, RFC 3339.
    pub ended: String,
    /// The kernel's number of this boot; empty where it has none.
    pub boot: String,
    /// Time of all turns up to its end, without gaps, in seconds.
    pub soaked_s: f64,
    /// Figures by case and metric, in the setup's unit.
    pub figures: BTreeMap<String, f64>,
    /// Memory, in KiB, and counts of what should not grow.
    pub counts: BTreeMap<String, f64>,
    /// Tests that failed or ended early, with the reasons: the soak fails by them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// Counts that are missing, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

impl Turn {
    /// Adds the figures of a test.
    pub fn add(&mut self, run: &Run) {
        for entry in history::entries(run) {
            if METRICS.contains(&entry.metric) {
                self.figures.insert(format!("{} {}", entry.case, entry.metric.name()), entry.value);
            }
        }
    }
}

/// A line of the log, with its end.
#[must_use]
pub fn line(content: &impl Serialize) -> String {
    serde_json::to_string(content).map_or_else(|_| String::new(), |line| line + "\n")
}

/// A soak as its log has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Soak {
    /// The setup of all turns.
    pub setup: Setup,
    /// The turns in order.
    pub turns: Vec<Turn>,
    /// Numbers, from 1, of lines that are no turn.
    pub strange: Vec<usize>,
}

impl Soak {
    /// Parses a log.
    ///
    /// # Errors
    /// It is not the log of a soak, or one of a newer version.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = (1..).zip(text.lines());
        let first = lines.next().map_or("", |(_, line)| line);
        let setup = serde_json::from_str::<Setup>(first).ok().filter(|setup| setup.schema == SCHEMA);
        let setup = setup.ok_or("it does not begin with the setup of a soak")?;
        if setup.version > VERSION {
            return Err(format!("it has version {} and this program knows up to {VERSION}", setup.version));
        }
        let (mut turns, mut strange) = (Vec::<Turn>::new(), Vec::new());
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            // What goes back in time is from elsewhere, and would make no series.
            let before = turns.last().map_or((0, 0, 0.0), |turn| (turn.turn, turn.stretch, turn.soaked_s));
            match serde_json::from_str::<Turn>(line) {
                Ok(turn) if turn.turn > before.0 && turn.stretch >= before.1 && turn.soaked_s > before.2 => {
                    turns.push(turn);
                }
                _ => strange.push(number),
            }
        }
        Ok(Self { setup, turns, strange })
    }

    /// The time of all turns, without gaps, in seconds.
    #[must_use]
    pub fn soaked_s(&self) -> f64 {
        self.turns.last().map_or(0.0, |turn| turn.soaked_s)
    }

    /// Whether a test failed in any turn.
    #[must_use]
    pub fn has_failures(&self) -> bool {
        self.turns.iter().any(|turn| !turn.failed.is_empty())
    }

    /// The gaps between stretches: the turns before and after.
    pub fn gaps(&self) -> impl Iterator<Item = (&Turn, &Turn)> {
        let pairs = self.turns.windows(2).filter(|pair| pair[0].stretch < pair[1].stretch);
        pairs.map(|pair| (&pair[0], &pair[1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn turn(number: u64, stretch: u64) -> Turn {
        let mut turn = Turn { turn: number, stretch, soaked_s: number as f64 * 3.0, ..Turn::default() };
        turn.add(&fixtures::run());
        turn
    }

    #[test]
    fn a_log_reads_back_and_a_cut_line_takes_no_other_with_it() {
        let setup = Setup::new("board".to_owned(), ClockUnit::Ns);
        let whole = line(&turn(2, 1));
        let text =
            [line(&setup), line(&turn(1, 1)), whole[..40].to_owned() + "\n", line(&turn(3, 2))].concat();
        let soak = Soak::parse(&text).expect("a log");
        assert_eq!((soak.setup.clone(), soak.strange.clone(), soak.soaked_s()), (setup, vec![3], 9.0));
        assert_eq!(soak.turns, [turn(1, 1), turn(3, 2)]);
        assert_eq!(
            soak.gaps().map(|(before, after)| (before.turn, after.turn)).collect::<Vec<_>>(),
            [(1, 3)]
        );
        let names: Vec<_> = soak.turns[0].figures.keys().collect();
        assert!(names.iter().any(|name| name.ends_with("/4 median")), "{names:?}");
    }

    #[test]
    fn what_is_no_log_is_refused_and_what_goes_back_is_left_out() {
        for text in ["", "{}", "{\"schema\":\"binderperf.run\",\"version\":1}", "\u{0}\n"] {
            assert!(Soak::parse(text).is_err(), "{text:?}");
        }
        let setup = line(&Setup::new(String::new(), ClockUnit::Ns));
        assert!(
            Soak::parse(&setup.replace("\"version\":1", "\"version\":9")).is_err_and(|why| why.contains("9"))
        );
        let soak = Soak::parse(&[setup, line(&turn(2, 1)), line(&turn(1, 1)), line(&turn(2, 1))].concat());
        assert_eq!(soak.expect("a log").strange, [3, 4]);
    }
}
