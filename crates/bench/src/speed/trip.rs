//! Cost of one round trip on the embedded driver relative to the floor of the machine.
//! Not here: many pairs (`crowd`), a full driver (`growth`).
//!
//! Every round measures the floors, the driver (the command streams of the raw control) and the runtime one
//! after another, each with fresh server processes. The floor is the family with the best median over all
//! rounds: the best one of each round would be the luckiest one.
//!
//! Where the scheduler places both sides, it is random whether they share a CPU, and a wake-up across CPUs
//! costs up to 30 times one on the same CPU: there a round is compared with floors of the same placement.
//!
//! When spinning, the floor depends on the distance of the two CPUs, and a hypervisor may move its virtual
//! CPUs at any time: between two threads of one core, two cores of one cache, two caches. There the floor is
//! measured at both ends of a round, and a round in which it changed is repeated. One cache line goes to the
//! other CPU and back in about 0.05 us between two threads of a core, 0.1 us between two cores of a cache, 0.3 us
//! and more between caches; the driver's own work varies far less than that.

use std::fmt;

use backend::AnyContext;
use backend::locate::{self, Driver, Wanted};
use record::Sampler;

use super::row::{Limit, Row, Unit};
use crate::measure::{Halt, RoundTrip, Sequence, batch};
use crate::plan::{Dialect, Family, Filter, Placement, Plan, Planned, Settings, Waiting};
use crate::servers::{Contexts, Servers, on_client};
use crate::spread::Spread;
use procgroup::Watchdog;

/// Families that are the floors of sleeping.
pub(super) const ASLEEP: [Family; 3] = [Family::Pipe, Family::Futex, Family::Eventfd];

/// One row, and its limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trip {
    pub(super) title: &'static str,
    waiting: Waiting,
    placement: Placement,
    /// Payload in bytes.
    payload: u64,
    floors: &'static [Family],
    /// Whether sleeping on one CPU may be the floor, too: it copies large payloads faster.
    or_asleep: bool,
    limit: f64,
}

/// All rows, in order.
pub(super) const TRIPS: [Trip; 4] = [
    Trip {
        title: "sleeping, one CPU, 4 B",
        waiting: Waiting::Sleep,
        placement: Placement::Same,
        payload: 4,
        floors: &ASLEEP,
        or_asleep: false,
        limit: 1.5,
    },
    Trip {
        title: "sleeping, default placement, 4 B",
        waiting: Waiting::Sleep,
        placement: Placement::Default,
        payload: 4,
        floors: &ASLEEP,
        or_asleep: false,
        limit: 1.25,
    },
    Trip {
        title: "spinning, two CPUs, 4 B",
        waiting: Waiting::Spin,
        placement: Placement::Cross,
        payload: 4,
        floors: &[Family::Spin],
        or_asleep: false,
        limit: 4.0,
    },
    Trip {
        title: "spinning, two CPUs, 64 KiB",
        waiting: Waiting::Spin,
        placement: Placement::Cross,
        payload: 65536,
        floors: &[Family::Spin],
        or_asleep: true,
        limit: 1.5,
    },
];

/// Returns a plan for the driver (bare exchanges), its runtime and these floors.
pub(super) fn plan(
    floors: &[Family],
    payload: u64,
    placement: Placement,
    waiting: Waiting,
) -> Result<Plan, String> {
    let words: Vec<&str> = floors.iter().chain([&Family::Raw]).map(|family| family.word()).collect();
    Ok(Plan {
        controls: words.join(",").parse()?,
        filter: Filter::new(&format!("/{payload}$"))?,
        placement,
        wanted: Wanted {
            driver: Driver::Embedded,
            settings: Settings { waiting, ..Settings::default() },
            ..Wanted::default()
        },
        ..Plan::default()
    })
}

/// Returns the private context that a plan requests.
pub(super) fn context(plan: &Plan) -> Result<AnyContext, String> {
    locate::find(&plan.wanted, "binder").map(|found| found.context).map_err(|error| error.to_string())
}

/// Returns the server processes of a plan in this context.
pub(super) fn servers(plan: &Plan, context: Option<AnyContext>) -> Servers {
    Servers::new(plan, Contexts::only(Dialect::Binder(plan.android), context), host::class())
}

/// State shared by all batches.
#[derive(Debug)]
pub(super) struct BatchRunner {
    sampler: Sampler,
    sequence: Sequence,
    /// Command line, for the record.
    lap_ns: f64,
}

/// Round trips that determine the length of a batch; they also warm it up.
const TRIAL: u64 = 100;

impl BatchRunner {
    /// Creates a runner for batches of about `lap_s` seconds.
    pub(super) fn new(lap_s: f64) -> Self {
        Self { sampler: Sampler::new(), sequence: Sequence::default(), lap_ns: lap_s * 1e9 }
    }

    /// Returns the median time of a round trip in ns, after one lap of warm-up: two sides that begin asleep,
    /// and take longer to wake up than they may spin, need some time until both spin.
    pub(super) fn median<R: RoundTrip>(
        &mut self,
        client: &mut R,
        watchdog: &Watchdog,
    ) -> Result<f64, String> {
        let trial = self.batch(client, TRIAL, watchdog)?;
        let warm = self.lap(client, trial, watchdog)?;
        self.lap(client, warm, watchdog)
    }

    /// Measures one lap; `ns` is the approximate time of a round trip. Returns the median in ns.
    fn lap<R: RoundTrip>(&mut self, client: &mut R, ns: f64, watchdog: &Watchdog) -> Result<f64, String> {
        self.batch(client, ((self.lap_ns / ns) as u64).max(TRIAL), watchdog)
    }

    fn batch<R: RoundTrip>(
        &mut self,
        client: &mut R,
        count: u64,
        watchdog: &Watchdog,
    ) -> Result<f64, String> {
        let (measured, halt) =
            watchdog.during(|| batch(client, count, &mut self.sequence, &mut self.sampler, watchdog));
        match halt {
            Some(Halt::Broken(error)) => return Err(error.to_string()),
            Some(Halt::Stopped) => return Err("stopped by a signal".to_owned()),
            None => {}
        }
        let median = measured.samples.percentile(50.0).ok_or("nothing was measured")?;
        Ok((median as f64).max(1.0))
    }
}

/// One placement, and its servers.
struct PlacedServers {
    servers: Servers,
    cases: Vec<Planned>,
}

impl PlacedServers {
    fn new(plan: &Plan) -> Result<Self, String> {
        let servers = self::servers(plan, Some(context(plan)?));
        Ok(Self { servers, cases: plan.cases() })
    }

    fn median(&mut self, family: Family, runner: &mut BatchRunner) -> Result<f64, String> {
        let named = |why: &dyn fmt::Display| format!("{}: {why}", family.word());
        let planned = self.cases.iter().find(|planned| planned.family == family);
        let planned = planned.ok_or_else(|| named(&"it is not planned"))?;
        let client = self.servers.open_case(planned).map_err(|why| named(&why))?;
        let result = on_client!(client, |mut client| runner.median(&mut client, self.servers.watchdog()));
        self.servers.close_case();
        result.map_err(|why| named(&why))
    }
}

/// The medians of one round in ns.
#[derive(Clone, Debug)]
struct Round {
    driver: f64,
    runtime: f64,
    floors: Vec<(Family, f64)>,
}

/// Measures a row. `same_cpu` is the floor in ns where both sides share a CPU, if known.
pub(super) fn measure(trip: Trip, rounds: usize, same_cpu: Option<f64>) -> Result<Row, String> {
    let plan = plan(trip.floors, trip.payload, trip.placement, trip.waiting)?;
    let asleep = self::plan(&ASLEEP, trip.payload, Placement::Same, Waiting::Sleep)?;
    let mut site = PlacedServers::new(&plan)?;
    let mut beside = if trip.or_asleep { Some(PlacedServers::new(&asleep)?) } else { None };
    let mut runner = BatchRunner::new(super::LAP_S);
    let mut made = Vec::new();
    let rounds = if trip.placement == Placement::Default { rounds * MORE } else { rounds };
    let mut left = rounds * MOST_MADE;
    while made.len() < rounds {
        left -= 1;
        let mut floors = Vec::new();
        for &family in trip.floors {
            floors.push((family, site.median(family, &mut runner)?));
        }
        if let Some(beside) = &mut beside {
            for family in ASLEEP {
                floors.push((family, beside.median(family, &mut runner)?));
            }
        }
        let driver = site.median(Family::Raw, &mut runner)?;
        let moved = match floors.first_mut() {
            Some((Family::Spin, before)) => {
                let after = site.median(Family::Spin, &mut runner)?;
                let moved = differ(*before, after);
                *before = (*before + after) / 2.0;
                moved
            }
            _ => false,
        };
        if !moved || left < rounds - made.len() {
            made.push(Round { driver, runtime: site.median(Family::Binder, &mut runner)?, floors });
        }
    }
    let limit = match (trip.placement, same_cpu) {
        (Placement::Default, Some(floor)) => floor * TOGETHER,
        _ => f64::INFINITY,
    };
    row(trip, &made, limit)
}

/// Ratio of two floors of spinning that were measured at different distances.
const APART: f64 = 1.5;

/// Returns true if two floors were measured at different distances of the CPUs.
fn differ(one: f64, other: f64) -> bool {
    one.max(other) >= one.min(other) * APART
}

/// Maximum number of rounds made, as a multiple of the wanted ones, where rounds with a changed floor are
/// repeated.
const MOST_MADE: usize = 3;

/// Multiple of the rounds where the scheduler places both sides: each round is a random placement.
pub(super) const MORE: usize = 3;

/// A round trip below this multiple of the one-CPU floor was made on one CPU.
const TOGETHER: f64 = 3.0;

/// Rounds of a placement that the driver and a floor need for it to count: at least two repetitions.
const REPEATED: usize = 2;

fn row(trip: Trip, rounds: &[Round], together_below: f64) -> Result<Row, String> {
    let driver = Compared::of(rounds, |round| round.driver, together_below)?;
    let limit = Limit::AtMost(trip.limit);
    let beside = Some((driver.family.word().to_owned(), driver.floor));
    let mut row = Row::new(trip.title, Unit::Ns, driver.value, beside, driver.ratio, limit);
    row.runtime =
        Compared::of(rounds, |round| round.runtime, together_below).ok().map(|made| made.ratio.median);
    row.note = together_below.is_finite().then(|| luck(rounds, &driver.places));
    Ok(row)
}

/// Describes the scheduler's placements, and the result of each.
fn luck(rounds: &[Round], places: &[PlacementResult]) -> String {
    let told = places.iter().map(|place| {
        let PlacementResult { name, value, floor, share, made, .. } = place;
        let (value, floor, ratio) = (value / 1e3, floor / 1e3, value / floor);
        format!(
            "{name}: {value:.2} us beside {floor:.2}, {ratio:.2}, {made} of {} rounds, weight {share:.2}",
            rounds.len()
        )
    });
    told.collect::<Vec<_>>().join("; ")
}

/// A placement of both sides, and the time of a round trip there.
#[derive(Clone, Debug, PartialEq)]
struct PlacementResult {
    name: &'static str,
    /// Medians of the compared figure, and of the best floor.
    value: f64,
    floor: f64,
    family: Family,
    /// Share of all measurements with this placement, 0 to 1.
    share: f64,
    /// Number of rounds in which the compared figure had it.
    made: usize,
    ratios: Vec<f64>,
}

impl PlacementResult {
    /// Computes the result; `None` if the placement was too rare.
    fn of(
        (name, is_here): (&'static str, &dyn Fn(f64) -> bool),
        rounds: &[Round],
        which: fn(&Round) -> f64,
    ) -> Option<Self> {
        let needed = REPEATED.min(rounds.len());
        let enough = |values: &Vec<f64>| values.len() >= needed;
        let values: Vec<f64> = rounds.iter().map(which).filter(|value| is_here(*value)).collect();
        let floors = rounds.first()?.floors.iter().filter_map(|(family, _)| {
            let all = rounds.iter().flat_map(|round| &round.floors);
            let here = all.filter(|(other, value)| other == family && is_here(*value));
            let here: Vec<f64> = here.map(|(_, value)| *value).collect();
            Some((*family, record::stats::median(&here).filter(|_| enough(&here))?))
        });
        let (family, floor) = floors.min_by(|one, other| one.1.total_cmp(&other.1))?;
        let own = |round: &Round| {
            let floor_then = round.floors.iter().find(|(other, value)| *other == family && is_here(*value));
            let value = which(round);
            is_here(value).then(|| value / floor_then.map_or(floor, |(_, then)| *then))
        };
        let all = || {
            rounds.iter().flat_map(|round| round.floors.iter().map(|(_, value)| *value).chain([which(round)]))
        };
        Some(Self {
            name,
            value: record::stats::median(&values).filter(|_| enough(&values))?,
            floor,
            family,
            share: all().filter(|value| is_here(*value)).count() as f64 / all().count() as f64,
            made: values.len(),
            ratios: rounds.iter().filter_map(own).collect(),
        })
    }
}

/// A figure and its floor. Where the scheduler places both sides, each placement is compared separately, and
/// both sides get the same weights, by how often anything was placed there: the result is the cost of the
/// driver and its floor at equal luck.
struct Compared {
    value: f64,
    floor: f64,
    family: Family,
    ratio: Spread,
    places: Vec<PlacementResult>,
}

impl Compared {
    fn of(rounds: &[Round], which: fn(&Round) -> f64, together_below: f64) -> Result<Self, String> {
        let alone = "nothing was placed as its floor was, in so many rounds as it takes";
        let together = |value: f64| value < together_below;
        let apart = |value: f64| value >= together_below;
        let sites: [(_, &dyn Fn(f64) -> bool); 2] = [("on one CPU", &together), ("on two", &apart)];
        let places: Vec<PlacementResult> =
            sites.into_iter().filter_map(|site| PlacementResult::of(site, rounds, which)).collect();
        let ratios: Vec<f64> = places.iter().flat_map(|place| place.ratios.clone()).collect();
        let mut ratio = Spread::of(&ratios).ok_or(alone)?;
        let most = |place: &&PlacementResult| (place.share * 1e6) as u64;
        let family = places.iter().max_by_key(most).ok_or(alone)?.family;
        let weight: f64 = places.iter().map(|place| place.share).sum();
        let weighted = |of: fn(&PlacementResult) -> f64| {
            places.iter().map(|place| of(place) * place.share).sum::<f64>() / weight
        };
        let (value, floor) = (weighted(|place| place.value), weighted(|place| place.floor));
        if places.len() > 1 {
            ratio.median = value / floor;
        }
        Ok(Self { value, floor, family, ratio, places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(driver: f64, runtime: f64, pipe: f64, futex: f64) -> Round {
        Round { driver, runtime, floors: vec![(Family::Pipe, pipe), (Family::Futex, futex)] }
    }

    #[test]
    fn each_round_is_compared_with_its_own_floor() {
        // The machine became slower by half in the second round, for all measurements.
        let rounds = [round(1300.0, 1700.0, 1200.0, 1000.0), round(1950.0, 2550.0, 1800.0, 1500.0)];
        let row = row(TRIPS[0], &rounds, f64::INFINITY).expect("a row");
        assert_eq!((row.ratio.least, row.ratio.most, row.ratio.rounds), (1.3, 1.3, 2));
        assert_eq!((row.runtime, row.is_met()), (Some(1.7), true));
    }

    #[test]
    fn a_driver_that_is_too_slow_misses_whatever_the_runtime_does() {
        let rounds = [round(1700.0, 1000.0, 1000.0, 1100.0)];
        assert!(!row(TRIPS[0], &rounds, f64::INFINITY).expect("a row").is_met());
        let rounds = [round(1200.0, 9000.0, 1000.0, 1100.0)];
        assert!(row(TRIPS[0], &rounds, f64::INFINITY).expect("a row").is_met());
        assert!(differ(100.0, 150.0) && differ(150.0, 100.0) && !differ(100.0, 149.0));
    }

    #[test]
    fn a_floor_that_was_lucky_once_is_not_the_floor() {
        let rounds = [
            round(1500.0, 0.0, 1000.0, 1100.0),
            round(1500.0, 0.0, 1000.0, 500.0),
            round(1500.0, 0.0, 1000.0, 1100.0),
        ];
        let row = row(TRIPS[0], &rounds, f64::INFINITY).expect("a row");
        assert_eq!(row.beside, Some(("pipe".to_owned(), 1000.0)));
        assert_eq!((row.ratio.least, row.ratio.most), (1.5, 1.5));
    }

    #[test]
    fn where_placement_is_luck_both_sides_are_given_the_same() {
        let rounds = [
            // The driver was on one CPU, one floor was not.
            round(2400.0, 3000.0, 70_000.0, 2000.0),
            // Neither the driver nor one floor was on one CPU.
            round(77_000.0, 2600.0, 70_000.0, 2000.0),
            // Only the driver was on two CPUs.
            round(84_000.0, 80_000.0, 2000.0, 2000.0),
            round(2600.0, 80_000.0, 2000.0, 2000.0),
        ];
        let row = row(TRIPS[1], &rounds, 6000.0).expect("a row");
        // 8 of 12 figures on one CPU: 2500 beside 2000 there, 80,500 beside 70,000 on two.
        let want = (2500.0 * 2.0 + 80_500.0) / (2000.0 * 2.0 + 70_000.0);
        assert!((row.ratio.median - want).abs() < 1e-9, "{:?}", row.ratio);
        assert_eq!((row.ratio.least, row.ratio.most), (1.1, 1.3));
        let note = row.note.expect("a note");
        assert!(
            note.starts_with("on one CPU: 2.50 us beside 2.00, 1.25, 2 of 4 rounds, weight 0.67; on two"),
            "{note}"
        );
    }

    #[test]
    fn a_place_that_came_about_once_is_not_compared() {
        let luck = |driver| round(driver, driver, 2000.0, 2000.0);
        let rounds = [luck(2400.0), luck(2600.0), luck(90_000.0)];
        let row = row(TRIPS[1], &rounds, 6000.0).expect("a row");
        assert_eq!((row.measured, row.ratio.median), (2500.0, 1.25));
    }

    #[test]
    fn without_any_floor_alike_there_is_no_row() {
        assert!(row(TRIPS[1], &[round(70_000.0, 70_000.0, 2000.0, 2000.0)], 6000.0).is_err());
    }
}
