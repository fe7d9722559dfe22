//! Room: no collapse: pairs that need more CPUs than there are, and one pair with both sides on one,
//! in every way of waiting.
//! Not here: a pair (`role`).
//! All pairs of a row begin together and count the round trips in each slice of a fixed time; the rate of a
//! round is that of all pairs in the middle one of its slices, so that somebody else's burst of work does
//! not count. The median of the rounds is divided by that of as many pairs on the best floor. Where the scheduler
//! places the pairs there are more rounds: each is one throw of the dice for each side.

use std::path::Path;

use record::stats::median;

use super::helper::Helper;
use super::role::{self, DONE, SLICE_NS, STARTED};
use super::row::{Limit, Row, Spread, Unit};
use super::trip::{self, ASLEEP};
use crate::plan::{Dialect, Family, Placement, Waiting};
use crate::stage::Stage;

/// The least part of the floor's throughput that must be left.
const LEAST: f64 = 0.7;
/// For how many slices of time the pairs of a round count.
const SLICES: usize = 20;

const MODES: [Waiting; 3] = [Waiting::Sleep, Waiting::Spin, Waiting::Adaptive];

/// How many pairs, and where each runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd {
    pairs: usize,
    placement: Placement,
}

/// One pair on one CPU, as many pairs as CPUs, twice as many.
pub(super) fn crowds() -> [Crowd; 3] {
    let cpus = sys::sched::usable_cpus() as usize;
    [
        Crowd { pairs: 1, placement: Placement::Same },
        Crowd { pairs: cpus, placement: Placement::Default },
        Crowd { pairs: cpus * 2, placement: Placement::Default },
    ]
}

impl Crowd {
    /// For people.
    pub(super) fn title(self) -> String {
        let on = if self.placement == Placement::Same {
            "1 CPU".to_owned()
        } else {
            let cpus = sys::sched::usable_cpus();
            format!("{cpus} {}", if cpus == 1 { "CPU" } else { "CPUs" })
        };
        format!("{} {} on {on}", self.pairs, if self.pairs == 1 { "pair" } else { "pairs" })
    }

    /// Round trips per second of all pairs.
    fn rate(self, program: &Path, family: Family, context: Option<&str>) -> Result<f64, String> {
        let words = role::pair(family, self.placement, SLICES, context);
        let named = |why: String| format!("{}: {why}", family.word());
        let mut pairs = Vec::new();
        for _ in 0..self.pairs {
            pairs.push(Helper::start(program, &words).map_err(named)?);
        }
        pairs.iter_mut().try_for_each(|pair| pair.hear(STARTED).map(drop)).map_err(named)?;
        pairs.iter_mut().try_for_each(Helper::go).map_err(named)?;
        let said: Result<Vec<String>, String> = pairs.iter_mut().map(|pair| pair.hear(DONE)).collect();
        said.and_then(|said| rate_of(&said)).map_err(named)
    }
}

/// The rate in the middle one of all slices, from what each pair counted.
fn rate_of(said: &[String]) -> Result<f64, String> {
    let mut sums = [0.0; SLICES];
    for said in said {
        let counted: Vec<f64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
        if counted.len() != SLICES {
            return Err(format!("a helper process counted {said:?}"));
        }
        sums.iter_mut().zip(counted).for_each(|(sum, count)| *sum += count);
    }
    let middle = median(&sums).filter(|count| *count > 0.0);
    Ok(middle.ok_or("there were hardly any round trips")? * 1e9 / SLICE_NS as f64)
}

/// The rates of one round.
#[derive(Clone, Debug)]
struct Round {
    floors: Vec<(Family, f64)>,
    /// As [`MODES`].
    driver: [f64; MODES.len()],
}

/// Measures a row for each way of waiting.
pub(super) fn measure(crowd: Crowd, program: &Path, rounds: usize) -> Result<Vec<Row>, String> {
    let class = crate::host::class();
    let plans = MODES.map(|waiting| trip::plan(&[], 4, crowd.placement, waiting));
    let mut contexts = Vec::new();
    let mut managed = Vec::new();
    for plan in &plans {
        let plan = plan.as_ref().map_err(Clone::clone)?;
        let context = trip::context(plan)?;
        let mut stage = Stage::new(plan, program, Some(context.clone()), class);
        stage.manage(Dialect::Binder(plan.android)).map_err(|error| error.to_string())?;
        contexts.push(context);
        managed.push(stage);
    }
    let mut made = Vec::new();
    let rounds = if crowd.placement == Placement::Default { rounds * trip::MORE } else { rounds };
    for _ in 0..rounds {
        super::heed_signals()?;
        let mut floors = Vec::new();
        for family in ASLEEP {
            floors.push((family, crowd.rate(program, family, None)?));
        }
        let mut driver = [0.0; MODES.len()];
        for (rate, context) in driver.iter_mut().zip(&contexts) {
            *rate = crowd.rate(program, Family::Raw, Some(&context.address()))?;
        }
        made.push(Round { floors, driver });
    }
    rows(&crowd.title(), &made)
}

/// The family with the best median is the floor of all rounds: the best of each round would be the one
/// that was luckiest.
fn rows(title: &str, rounds: &[Round]) -> Result<Vec<Row>, String> {
    let none = "no round was made";
    let rates_of = |family: Family| -> Vec<f64> {
        let floors = rounds.iter().flat_map(|round| &round.floors);
        floors.filter(|(other, _)| *other == family).map(|(_, rate)| *rate).collect()
    };
    let medians = ASLEEP.iter().filter_map(|family| Some((*family, median(&rates_of(*family))?)));
    let (family, floor) = medians.max_by(|one, other| one.1.total_cmp(&other.1)).ok_or(none)?;
    let row = |(index, waiting): (usize, &Waiting)| {
        let rates: Vec<f64> = rounds.iter().map(|round| round.driver[index]).collect();
        let ratios: Vec<f64> = rates.iter().zip(rates_of(family)).map(|(rate, floor)| rate / floor).collect();
        let (rate, mut ratio) = (median(&rates).ok_or(none)?, Spread::of(&ratios).ok_or(none)?);
        // Rounds of the driver have nothing to do with those of the floor.
        ratio.median = rate / floor;
        let beside = Some((family.word().to_owned(), floor));
        let title = format!("{title}, {waiting}");
        Ok(Row::new(&title, Unit::PerSecond, rate, beside, ratio, Limit::AtLeast(LEAST)))
    };
    MODES.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::row::Verdict;
    use super::*;

    #[test]
    fn a_way_of_waiting_that_collapses_misses_and_the_others_do_not() {
        let round = |pipe, futex, driver| Round {
            floors: vec![(Family::Pipe, pipe), (Family::Futex, futex)],
            driver,
        };
        let rounds = [
            round(100.0, 90.0, [90.0, 3.0, 70.0]),
            // The futex was lucky once.
            round(100.0, 900.0, [80.0, 75.0, 80.0]),
            round(100.0, 50.0, [80.0, 4.0, 70.0]),
        ];
        let rows = rows("2 pairs", &rounds).expect("rows");
        let verdicts: Vec<Verdict> = rows.iter().map(|row| row.verdict).collect();
        assert_eq!(verdicts, [Verdict::Met, Verdict::Missed, Verdict::Met]);
        assert_eq!(rows[0].beside, Some(("pipe".to_owned(), 100.0)));
        assert_eq!((rows[1].ratio.least, rows[1].ratio.most), (0.03, 0.75));
        assert!(rows[1].title.ends_with("spin"), "{}", rows[1].title);
    }

    #[test]
    fn what_a_pair_says_is_a_rate_or_an_error() {
        let counts = |one: u32, other: u32| {
            let words: Vec<String> =
                (0..SLICES).map(|slice| if slice < 12 { one } else { other }.to_string()).collect();
            words.join(" ")
        };
        // Two pairs, in slices of 20 ms, in few of which something else ran.
        assert_eq!(rate_of(&[counts(100, 0), counts(100, 30)]), Ok(10_000.0));
        for bad in [String::new(), "1".to_owned(), counts(0, 5), counts(1, 1) + " 1"] {
            assert!(rate_of(std::slice::from_ref(&bad)).is_err(), "{bad}");
        }
    }
}
