//! A/B comparison: measures two kernels, drivers or settings alternately, so that drift of the machine
//! affects both, until the intervals are narrow enough or the time is over.
//! Not here: one run (`bench`), a side (`side`), the statistics (`record::compare`).
//!
//! Runs come in pairs, one of each side, back to back. Of every two pairs one begins with A and the other
//! with B, in random order: linear drift cancels over the two, and neither side benefits from its position.
//! The stop rule depends on the width of the intervals and never on their position, so checking after every
//! pair does not raise the false-alarm rate.

mod bench;
mod side;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use record::compare::{
    CannotCompare, Comparison, Group, Options, PAIR_KEY, USUAL_RUNS, compare, pairs_needed,
};

pub use bench::{Bench, RunFailure, is_record_of};
use fastrand::Rng;
pub use side::Side;

/// Consecutive failures after which a side is given up.
const FAILURES: usize = 3;

/// Options of a comparison.
#[derive(Clone, Debug)]
pub struct AbOptions {
    /// A and B.
    pub sides: [Side; 2],
    /// The test: a command of this program, without the program name.
    pub test: Vec<String>,
    /// Time budget; no pair begins that would exceed it.
    pub budget: Duration,
    /// Target for half of each interval, as a share.
    pub until_width: f64,
    /// Maximum number of pairs; `None`: no limit.
    pub pairs: Option<usize>,
    /// Count guest instructions, in one boot of each side.
    pub icount: bool,
    /// Folder of the records.
    pub folder: PathBuf,
    /// Time limit of one run.
    pub patience: Duration,
    /// Options of the statistics.
    pub options: Options,
    /// Seed of the order.
    pub seed: u64,
}

/// Observer of a comparison.
pub trait Observer {
    /// A run begins: number of the pair, side, time since the start, and half width of the intervals.
    fn starts(&mut self, pair: usize, side: char, elapsed: Duration, half_width: Option<f64>);
    /// A run failed.
    fn failed(&mut self, side: char, why: &RunFailure);
}

/// Reason for the end of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The intervals are narrow enough.
    Narrow,
    /// The time budget is used up.
    Budget,
    /// All requested pairs were measured.
    Pairs,
    /// A signal requested a stop.
    Stopped(&'static str),
    /// This side failed repeatedly.
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

/// Result of a comparison.
#[derive(Debug)]
pub struct Outcome {
    /// Successful runs of either side, each in a file of the folder.
    pub groups: [Group; 2],
    /// Comparison of the two groups.
    pub compared: Result<Comparison, CannotCompare>,
    /// Reason for the end.
    pub ended: Ended,
    /// Failures: side and reason.
    pub failures: Vec<(char, RunFailure)>,
}

/// Runs a comparison. SIGINT and SIGTERM end it and keep the results so far.
///
/// # Errors
/// It cannot begin: an unknown test, a folder that cannot be written.
pub fn execute(options: &AbOptions, observer: &mut dyn Observer) -> Result<Outcome, RunFailure> {
    let bench = Bench::new(&options.test, &options.folder, options.patience, options.icount)?;
    let (groups, failures) = (names(options), Vec::new());
    let mut turns =
        Turns { options, bench, observer, start: Instant::now(), groups, failures, in_a_row: [0, 0] };
    let ended = if options.icount { turns.once()? } else { turns.until_told()? };
    let [a, b] = &turns.groups;
    let compared = compare(a, b, &options.options);
    Ok(Outcome { compared, ended, failures: turns.failures, groups: turns.groups })
}

fn names(options: &AbOptions) -> [Group; 2] {
    let group = |side: &Side| Group { name: side.to_string(), members: Vec::new() };
    [group(&options.sides[0]), group(&options.sides[1])]
}

fn letter(side: usize) -> char {
    if side == 0 { 'A' } else { 'B' }
}

struct Turns<'t> {
    options: &'t AbOptions,
    bench: Bench,
    observer: &'t mut dyn Observer,
    start: Instant,
    groups: [Group; 2],
    failures: Vec<(char, RunFailure)>,
    in_a_row: [usize; 2],
}

impl Turns<'_> {
    /// Runs each side once.
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
        let mut order = SideOrder::new(self.options.seed);
        let mut half_width = None;
        for pair in 0.. {
            for side in order.next_pair() {
                if let Some(ended) = self.run(side, pair, half_width)? {
                    return Ok(ended);
                }
            }
            half_width = self.half_width();
            if half_width.is_some_and(|half| half <= self.options.until_width) {
                return Ok(Ended::Narrow);
            }
            let made = pair + 1;
            if self.options.pairs.is_some_and(|most| made >= most) {
                return Ok(Ended::Pairs);
            }
            let elapsed = self.start.elapsed();
            if elapsed + elapsed / u32::try_from(made).unwrap_or(u32::MAX) > self.options.budget {
                return Ok(Ended::Budget);
            }
        }
        Ok(Ended::Pairs)
    }

    /// Makes one run; returns the reason if it must be the last one.
    fn run(
        &mut self,
        side: usize,
        pair: usize,
        half_width: Option<f64>,
    ) -> Result<Option<Ended>, RunFailure> {
        self.observer.starts(pair, letter(side), self.start.elapsed(), half_width);
        let name = format!("{}-{:03}", letter(side).to_ascii_lowercase(), pair + 1);
        let mark = (PAIR_KEY.to_owned(), format!("{:x}:{pair}", self.options.seed));
        let result = self.bench.run(&self.options.sides[side], &name, mark);
        if let Some(signal) = sys::stop_signal::received() {
            return Ok(Some(Ended::Stopped(signal)));
        }
        match result {
            Ok(member) => {
                self.in_a_row[side] = 0;
                self.groups[side].members.push(member);
            }
            // The next run would have the same wrong usage.
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

    /// Half of the widest interval, once there are enough pairs to distinguish all cases.
    fn half_width(&self) -> Option<f64> {
        let [a, b] = &self.groups;
        let found = compare(a, b, &self.options.options).ok()?;
        let subjects = || found.cases.iter().filter(|case| case.kind == record::CaseKind::Test);
        // Each case has one test of its median and one of its p99.
        let needed = pairs_needed(2 * subjects().count()).max(USUAL_RUNS);
        if a.members.len().min(b.members.len()) < needed {
            return None;
        }
        let widths = subjects().map(|case| case.half_width());
        widths.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
    }
}

/// Order of the sides: of every two pairs each side begins one, at random.
struct SideOrder {
    rng: Rng,
    due: Option<[usize; 2]>,
}

impl SideOrder {
    fn new(seed: u64) -> Self {
        Self { rng: Rng::with_seed(seed), due: None }
    }

    fn next_pair(&mut self) -> [usize; 2] {
        if let Some(due) = self.due.take() {
            return due;
        }
        let first = self.rng.usize(..2);
        self.due = Some([1 - first, first]);
        [first, 1 - first]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_is_first_in_one_of_two_pairs_and_which_is_drawn() {
        let mut order = SideOrder::new(5);
        let pairs: Vec<[usize; 2]> = (0..200).map(|_| order.next_pair()).collect();
        for two in pairs.chunks(2) {
            assert_ne!(two[0], two[1]);
        }
        let a_first = pairs.chunks(2).filter(|two| two[0][0] == 0).count();
        assert!((30..=70).contains(&a_first), "{a_first}");
    }
}
