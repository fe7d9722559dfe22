//! Room: two kernels, drivers or settings measured in turns, so that whatever drifts on this machine befalls both; until
//! the intervals are narrow enough, or the time is over.
//! Not here: one run (`bench`), what a side is (`side`), comparing (`record::compare`).
//!
//! Runs come in pairs, one of each side, right after each other. Of two pairs one begins with A and the other with B,
//! which of them is drawn: what changes steadily then cancels over the two, and nobody gains by being first. When
//! to stop depends on how wide the intervals are and never on where they lie, so looking after every pair is no
//! second chance for a difference.

mod bench;
mod side;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use record::compare::{
    CannotCompare, Comparison, Group, Options, PAIR_KEY, USUAL_RUNS, compare, pairs_needed,
};

use crate::dice::Dice;
pub use bench::{Bench, RunFailure};
pub use side::Side;

/// A side that fails so often in a row is given up.
const FAILURES: usize = 3;

/// What to do.
#[derive(Clone, Debug)]
pub struct Ask {
    /// A and B.
    pub sides: [Side; 2],
    /// The test: a command of this program, without its name.
    pub test: Vec<String>,
    /// No pair is begun that would not be over by then.
    pub budget: Duration,
    /// Stop once half of each interval is at most this share.
    pub until_width: f64,
    /// Stop after so many pairs; `None`: no limit.
    pub pairs: Option<usize>,
    /// Count guest instructions, of one boot of each side.
    pub icount: bool,
    /// Where the records are kept.
    pub folder: PathBuf,
    /// Longest time of one run.
    pub patience: Duration,
    /// How to compare.
    pub options: Options,
    /// Seed of the order.
    pub seed: u64,
}

/// Is told what happens.
pub trait Observer {
    /// A run begins: the how-manyth pair, whose turn, time since the start, and how wide the intervals are.
    fn starts(&mut self, pair: usize, side: char, elapsed: Duration, half_width: Option<f64>);
    /// A run failed.
    fn failed(&mut self, side: char, why: &RunFailure);
}

/// Why it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The intervals are narrow enough.
    Narrow,
    /// The time is over.
    Budget,
    /// All pairs that were asked for are there.
    Pairs,
    /// Somebody asked to stop.
    Stopped(&'static str),
    /// A side failed again and again: its letter.
    Broken(char),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Narrow => f.write_str("the intervals are narrow enough"),
            Self::Budget => f.write_str("the time is over (--budget)"),
            Self::Pairs => f.write_str("all pairs are measured"),
            Self::Stopped(signal) => write!(f, "stopped by {signal}"),
            Self::Broken(side) => write!(f, "side {side} failed {FAILURES} times in a row"),
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// The runs of either side that are there, each in a file of the folder.
    pub groups: [Group; 2],
    /// They, compared.
    pub compared: Result<Comparison, CannotCompare>,
    /// Why it ended.
    pub ended: Ended,
    /// What failed: side and reason.
    pub failures: Vec<(char, RunFailure)>,
}

/// Measures. Once it runs, SIGINT and SIGTERM end it, and what was measured is kept.
///
/// # Errors
/// Only what keeps it from beginning: a test that this program does not know, a folder that cannot be written.
pub fn execute(ask: &Ask, observer: &mut dyn Observer) -> Result<Outcome, RunFailure> {
    let bench = Bench::new(&ask.test, &ask.folder, ask.patience, ask.icount)?;
    let (groups, failures) = (names(ask), Vec::new());
    let mut turns = Turns { ask, bench, observer, start: Instant::now(), groups, failures, in_a_row: [0, 0] };
    let ended = if ask.icount { turns.once()? } else { turns.until_told()? };
    let [a, b] = &turns.groups;
    let compared = compare(a, b, &ask.options);
    Ok(Outcome { compared, ended, failures: turns.failures, groups: turns.groups })
}

fn names(ask: &Ask) -> [Group; 2] {
    let group = |side: &Side| Group { name: side.to_string(), members: Vec::new() };
    [group(&ask.sides[0]), group(&ask.sides[1])]
}

/// The letter of a side.
fn letter(side: usize) -> char {
    if side == 0 { 'A' } else { 'B' }
}

struct Turns<'t> {
    ask: &'t Ask,
    bench: Bench,
    observer: &'t mut dyn Observer,
    start: Instant,
    groups: [Group; 2],
    failures: Vec<(char, RunFailure)>,
    in_a_row: [usize; 2],
}

impl Turns<'_> {
    /// One run of each.
    fn once(&mut self) -> Result<Ended, RunFailure> {
        for side in [0, 1] {
            if let Some(ended) = self.run(side, 0, None)? {
                return Ok(ended);
            }
        }
        Ok(if self.groups.iter().any(|group| group.members.is_empty()) {
            Ended::Broken(letter(self.groups.iter().take_while(|group| !group.members.is_empty()).count()))
        } else {
            Ended::Pairs
        })
    }

    fn until_told(&mut self) -> Result<Ended, RunFailure> {
        let mut order = Order::new(self.ask.seed);
        let mut half_width = None;
        for pair in 0.. {
            for side in order.next_pair() {
                if let Some(ended) = self.run(side, pair, half_width)? {
                    return Ok(ended);
                }
            }
            half_width = self.half_width();
            if half_width.is_some_and(|half| half <= self.ask.until_width) {
                return Ok(Ended::Narrow);
            }
            let made = pair + 1;
            if self.ask.pairs.is_some_and(|most| made >= most) {
                return Ok(Ended::Pairs);
            }
            let elapsed = self.start.elapsed();
            if elapsed + elapsed / u32::try_from(made).unwrap_or(u32::MAX) > self.ask.budget {
                return Ok(Ended::Budget);
            }
        }
        Ok(Ended::Pairs)
    }

    /// One run; why that is the end, if it is.
    fn run(
        &mut self,
        side: usize,
        pair: usize,
        half_width: Option<f64>,
    ) -> Result<Option<Ended>, RunFailure> {
        self.observer.starts(pair, letter(side), self.start.elapsed(), half_width);
        let name = format!("{}-{:03}", letter(side).to_ascii_lowercase(), pair + 1);
        let mark = (PAIR_KEY.to_owned(), format!("{:x}:{pair}", self.ask.seed));
        let result = self.bench.run(&self.ask.sides[side], &name, mark);
        if let Some(signal) = sys::stop_signal::received() {
            return Ok(Some(Ended::Stopped(signal)));
        }
        match result {
            Ok(member) => {
                self.in_a_row[side] = 0;
                self.groups[side].members.push(member);
            }
            // The next run would be called just as wrongly.
            Err(why @ RunFailure::Usage(_)) => return Err(why),
            Err(why) => {
                self.observer.failed(letter(side), &why);
                self.failures.push((letter(side), why));
                self.in_a_row[side] += 1;
                if self.in_a_row[side] >= FAILURES {
                    return Ok(Some(Ended::Broken(letter(side))));
                }
            }
        }
        Ok(None)
    }

    /// Half of the widest interval, once there are pairs enough to tell all cases apart.
    fn half_width(&self) -> Option<f64> {
        let [a, b] = &self.groups;
        let found = compare(a, b, &self.ask.options).ok()?;
        let subjects = || found.cases.iter().filter(|case| case.kind == record::CaseKind::Test);
        // Each case has its own test and one of its p99.
        let needed = pairs_needed(2 * subjects().count(), self.ask.options.false_alarm).max(USUAL_RUNS);
        if a.members.len().min(b.members.len()) < needed {
            return None;
        }
        let widths = subjects().map(|case| case.half_width());
        widths.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
    }
}

/// Who is first: of two pairs each side once, drawn.
struct Order {
    dice: Dice,
    due: Option<[usize; 2]>,
}

impl Order {
    fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed), due: None }
    }

    fn next_pair(&mut self) -> [usize; 2] {
        if let Some(due) = self.due.take() {
            return due;
        }
        let first = self.dice.below(2);
        self.due = Some([1 - first, first]);
        [first, 1 - first]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_is_first_in_one_of_two_pairs_and_which_is_drawn() {
        let mut order = Order::new(5);
        let pairs: Vec<[usize; 2]> = (0..200).map(|_| order.next_pair()).collect();
        for two in pairs.chunks(2) {
            assert_ne!(two[0], two[1]);
        }
        let a_first = pairs.chunks(2).filter(|two| two[0][0] == 0).count();
        assert!((30..=70).contains(&a_first), "{a_first}");
    }
}
