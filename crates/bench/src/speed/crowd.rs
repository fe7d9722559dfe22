//! Throughput of many pairs: pairs that need more CPUs than the machine has, and one pair with both sides on
//! one CPU, in every way of waiting.
//! Not here: a pair (`role`). All pairs of a row begin together and count the round trips in each slice of a
//! fixed time; the rate of a round is that of all pairs in the median slice, so that a burst of other work
//! does not count. The median of the rounds is divided by that of as many pairs on the best floor. Where the
//! scheduler places the pairs, more rounds are made, because each one is a random placement.

use record::stats::median;

use super::role::{SLICE_NS, SpeedRole, go_on, hear};
use super::row::{Limit, Row, Unit};
use super::trip::{self, ASLEEP};
use crate::plan::{Dialect, Family, Placement, Waiting};
use crate::servers::OwnManager;
use crate::spread::Spread;

/// Minimum share of the floor's throughput.
const LEAST: f64 = 0.55;
/// Number of time slices in a round.
const SLICES: usize = 20;

const MODES: [Waiting; 3] = [Waiting::Sleep, Waiting::Spin, Waiting::Adaptive];

/// Number of pairs, and their placement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd {
    pairs: usize,
    placement: Placement,
}

/// Returns the rows: one pair on one CPU, as many pairs as CPUs, twice as many.
pub(super) fn crowds() -> [Crowd; 3] {
    let cpus = sys::sched::usable_cpus() as usize;
    [
        Crowd { pairs: 1, placement: Placement::Same },
        Crowd { pairs: cpus, placement: Placement::Default },
        Crowd { pairs: cpus * 2, placement: Placement::Default },
    ]
}

impl Crowd {
    /// Returns the title of the row.
    pub(super) fn title(self) -> String {
        let on = if self.placement == Placement::Same {
            "1 CPU".to_owned()
        } else {
            let cpus = sys::sched::usable_cpus();
            format!("{cpus} {}", if cpus == 1 { "CPU" } else { "CPUs" })
        };
        format!("{} {} on {on}", self.pairs, if self.pairs == 1 { "pair" } else { "pairs" })
    }

    /// Measures the round trips per second of all pairs.
    fn rate(self, family: Family, context: Option<&str>) -> Result<f64, String> {
        let role = SpeedRole::Pair {
            family: family.word().to_owned(),
            placement: self.placement.to_string(),
            slices: SLICES as u16,
            context: context.map(str::to_owned),
        };
        let named = |why: String| format!("{}: {why}", family.word());
        let start = |_| role.start().map_err(named);
        let pairs: Vec<_> = (0..self.pairs).map(start).collect::<Result<_, _>>()?;
        pairs.iter().try_for_each(|pair| hear(pair).map(drop)).map_err(named)?;
        pairs.iter().try_for_each(go_on).map_err(named)?;
        let said: Result<Vec<String>, String> = pairs.iter().map(hear).collect();
        said.and_then(|said| rate_of(&said)).map_err(named)
    }
}

/// Returns the rate in the median slice, from the counts of each pair.
fn rate_of(said: &[String]) -> Result<f64, String> {
    let mut sums = [0.0; SLICES];
    for said in said {
        let counted: Vec<f64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
        if counted.len() != SLICES {
            return Err(format!("a worker process counted {said:?}"));
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
    /// Indexed as [`MODES`].
    driver: [f64; MODES.len()],
}

/// Measures a row for each way of waiting.
pub(super) fn measure(crowd: Crowd, rounds: usize) -> Result<Vec<Row>, String> {
    let (mut addresses, mut managers) = (Vec::new(), Vec::new());
    for waiting in MODES {
        let plan = trip::plan(&[], 4, crowd.placement, waiting)?;
        let context = trip::context(&plan)?;
        addresses.push(context.address());
        let manager = OwnManager::start(Dialect::Binder(plan.android), context, plan.patience_s);
        managers.push(manager.map_err(|error| error.to_string())?);
    }
    let mut made = Vec::new();
    let rounds = if crowd.placement == Placement::Default { rounds * trip::MORE } else { rounds };
    for _ in 0..rounds {
        super::heed_signals()?;
        let mut floors = Vec::new();
        for family in ASLEEP {
            floors.push((family, crowd.rate(family, None)?));
        }
        let mut driver = [0.0; MODES.len()];
        for (rate, context) in driver.iter_mut().zip(&addresses) {
            *rate = crowd.rate(Family::Raw, Some(context))?;
        }
        made.push(Round { floors, driver });
    }
    rows(&crowd.title(), &made)
}

/// The family with the best median is the floor of all rounds: the best one of each round would be the
/// luckiest one.
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
        // Rounds of the driver are independent of those of the floor.
        ratio.median = rate / floor;
        let beside = Some((family.word().to_owned(), floor));
        let title = format!("{title}, {waiting}");
        Ok(Row::new(&title, Unit::PerSecond, rate, beside, ratio, Limit::AtLeast(LEAST)))
    };
    MODES.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_of_waiting_that_collapses_misses_and_the_others_do_not() {
        let round = |pipe, futex, driver| Round {
            floors: vec![(Family::Pipe, pipe), (Family::Futex, futex)],
            driver,
        };
        let rounds = [
            round(100.0, 90.0, [90.0, 3.0, 70.0]),
            // One lucky round of the futex.
            round(100.0, 900.0, [80.0, 75.0, 80.0]),
            round(100.0, 50.0, [80.0, 4.0, 70.0]),
        ];
        let rows = rows("2 pairs", &rounds).expect("rows");
        assert_eq!(rows.iter().map(Row::is_met).collect::<Vec<_>>(), [true, false, true]);
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
        // Two pairs, in slices of 20 ms, with other work in a few of them.
        assert_eq!(rate_of(&[counts(100, 0), counts(100, 30)]), Ok(10_000.0));
        for bad in [String::new(), "1".to_owned(), counts(0, 5), counts(1, 1) + " 1"] {
            assert!(rate_of(std::slice::from_ref(&bad)).is_err(), "{bad}");
        }
    }
}
