//! Room: what one round trip costs on the embedded driver beside the floor of the machine.
//! Not here: many pairs (`crowd`), a driver with much in it (`growth`).
//!
//! Every round measures the floors, the driver (the command streams of the raw control) and the runtime
//! one after another, each with fresh server processes. The floor is the family with the best median over
//! all rounds: the best of each round would be the one that was luckiest. Where the scheduler places both sides it is luck whether they share a CPU, and a wake-up across CPUs
//! costs up to 30 times one on the same: there a round is compared with floors that had the same luck.
//! Spinning, the floor is how far apart the two CPUs are, and a hypervisor may move its virtual CPUs at any time: between
//! two threads of one core, two cores of one cache, two caches. There the floor is measured at both ends of a round, a round
//! in which it changed is made anew, and a line says what the ratio was at each distance (`distance`).

use std::fmt;
use std::path::Path;

use driver::AnyContext;
use driver::locate::{Driver, Wanted};
use record::{HostClass, Sampler};

use super::distance;
use super::row::{Limit, Row, Spread, Unit};
use crate::measure::{Halt, RoundTrip, Sequence, batch};
use crate::plan::{Family, Filter, Placement, Plan, Planned, Settings, Waiting};
use crate::run::find_driver;
use crate::stage::{Stage, Watch, on_subject};

/// The floors of sleeping.
pub(super) const ASLEEP: [Family; 3] = [Family::Pipe, Family::Futex, Family::Eventfd];

/// What one row measures, and what it is held to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trip {
    pub(super) title: &'static str,
    waiting: Waiting,
    placement: Placement,
    /// Bytes.
    payload: u64,
    floors: &'static [Family],
    /// Whether sleeping on one CPU may be the floor, too: what large payloads are copied faster by.
    or_asleep: bool,
    target: f64,
    goal: Option<f64>,
}

/// The rows, in their order.
pub(super) const TRIPS: [Trip; 4] = [
    Trip {
        title: "sleeping, one CPU, 4 B",
        waiting: Waiting::Sleep,
        placement: Placement::Same,
        payload: 4,
        floors: &ASLEEP,
        or_asleep: false,
        target: 1.6,
        goal: Some(1.25),
    },
    Trip {
        title: "sleeping, default placement, 4 B",
        waiting: Waiting::Sleep,
        placement: Placement::Default,
        payload: 4,
        floors: &ASLEEP,
        or_asleep: false,
        target: 1.3,
        goal: Some(1.1),
    },
    Trip {
        title: "spinning, two CPUs, 4 B",
        waiting: Waiting::Spin,
        placement: Placement::Cross,
        payload: 4,
        floors: &[Family::Spin],
        or_asleep: false,
        target: 3.0,
        goal: Some(1.5),
    },
    Trip {
        title: "spinning, two CPUs, 64 KiB",
        waiting: Waiting::Spin,
        placement: Placement::Cross,
        payload: 65536,
        floors: &[Family::Spin],
        or_asleep: true,
        target: 1.3,
        goal: None,
    },
];

/// A plan for the driver (bare exchanges), its runtime and these floors.
pub(super) fn plan(
    floors: &[Family],
    payload: u64,
    placement: Placement,
    waiting: Waiting,
) -> Result<Plan, String> {
    let words: Vec<&str> = floors.iter().chain([&Family::Raw]).map(|family| family.word()).collect();
    Ok(Plan {
        controls: words.join(",").parse()?,
        filter: Filter::new(&format!("/{payload}$")).map_err(|error| error.to_string())?,
        placement,
        wanted: Wanted {
            driver: Driver::Embedded,
            settings: Settings { waiting, ..Settings::default() },
            ..Wanted::default()
        },
        ..Plan::default()
    })
}

/// The private context that a plan asks for.
pub(super) fn context(plan: &Plan) -> Result<AnyContext, String> {
    find_driver(&plan.wanted, "binder").map(|(context, _)| context).map_err(|error| error.to_string())
}

/// What every batch needs, made once.
#[derive(Debug)]
pub(super) struct Tools {
    sampler: Sampler,
    sequence: Sequence,
    /// How long a batch lasts, about.
    lap_ns: f64,
}

/// Round trips by which the length of a batch is found; they also warm it up.
const TRIAL: u64 = 100;

impl Tools {
    /// For batches of so many seconds.
    pub(super) fn new(lap_s: f64) -> Self {
        Self { sampler: Sampler::new(), sequence: Sequence::default(), lap_ns: lap_s * 1e9 }
    }

    /// Median time of a round trip in ns, once a lap has gone by: two sides that begin asleep, and take longer to wake
    /// than they may spin, need a while until both spin.
    pub(super) fn median<R: RoundTrip>(&mut self, client: &mut R, watch: &Watch) -> Result<f64, String> {
        let trial = self.batch(client, TRIAL, watch)?;
        let warm = self.lap(client, trial, watch)?;
        self.lap(client, warm, watch)
    }

    /// The same of one lap, by what a round trip takes about.
    fn lap<R: RoundTrip>(&mut self, client: &mut R, ns: f64, watch: &Watch) -> Result<f64, String> {
        self.batch(client, ((self.lap_ns / ns) as u64).max(TRIAL), watch)
    }

    fn batch<R: RoundTrip>(&mut self, client: &mut R, count: u64, watch: &Watch) -> Result<f64, String> {
        let (measured, halt) =
            watch.during(|| batch(client, count, &mut self.sequence, &mut self.sampler, watch));
        match halt {
            Some(Halt::Broken(error)) => return Err(error.to_string()),
            Some(Halt::Stopped) => return Err("stopped by a signal".to_owned()),
            None => {}
        }
        let median = measured.samples.percentile(50.0).ok_or("nothing was measured")?;
        Ok((median as f64).max(1.0))
    }
}

/// One placement, and what is measured there.
struct Site<'p> {
    stage: Stage<'p>,
    cases: Vec<Planned>,
}

impl<'p> Site<'p> {
    fn new(plan: &'p Plan, program: &Path, class: HostClass) -> Result<Self, String> {
        let stage = Stage::new(plan, program, Some(context(plan)?), class);
        Ok(Self { stage, cases: plan.cases() })
    }

    fn median(&mut self, family: Family, tools: &mut Tools) -> Result<f64, String> {
        let named = |why: &dyn fmt::Display| format!("{}: {why}", family.word());
        let planned = self.cases.iter().find(|planned| planned.family == family);
        let planned = planned.ok_or_else(|| named(&"it is not planned"))?;
        let subject = self.stage.enter(planned).map_err(|why| named(&why))?;
        let result = on_subject!(subject, |mut client| tools.median(&mut client, self.stage.watch()));
        self.stage.leave();
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

impl Round {
    /// The floor of spinning and the driver beside it.
    fn spun(&self) -> Option<(f64, f64)> {
        let &(family, floor) = self.floors.first()?;
        (family == Family::Spin).then_some((floor, self.driver))
    }
}

/// Measures a row. `same_cpu` is the floor in ns where both sides share a CPU, if it is known.
pub(super) fn measure(
    trip: Trip,
    program: &Path,
    rounds: usize,
    same_cpu: Option<f64>,
) -> Result<Row, String> {
    let class = crate::host::class();
    let plan = plan(trip.floors, trip.payload, trip.placement, trip.waiting)?;
    let asleep = self::plan(&ASLEEP, trip.payload, Placement::Same, Waiting::Sleep)?;
    let mut site = Site::new(&plan, program, class)?;
    let mut beside = if trip.or_asleep { Some(Site::new(&asleep, program, class)?) } else { None };
    let mut tools = Tools::new(super::LAP_S);
    let mut made = Vec::new();
    let rounds = if trip.placement == Placement::Default { rounds * MORE } else { rounds };
    let mut left = rounds * MOST_MADE;
    while made.len() < rounds {
        left -= 1;
        let mut floors = Vec::new();
        for &family in trip.floors {
            floors.push((family, site.median(family, &mut tools)?));
        }
        if let Some(beside) = &mut beside {
            for family in ASLEEP {
                floors.push((family, beside.median(family, &mut tools)?));
            }
        }
        let driver = site.median(Family::Raw, &mut tools)?;
        let moved = match floors.first_mut() {
            Some((Family::Spin, before)) => {
                let after = site.median(Family::Spin, &mut tools)?;
                let moved = distance::differ(*before, after);
                *before = (*before + after) / 2.0;
                moved
            }
            _ => false,
        };
        if !moved || left < rounds - made.len() {
            made.push(Round { driver, runtime: site.median(Family::Binder, &mut tools)?, floors });
        }
    }
    let limit = match (trip.placement, same_cpu) {
        (Placement::Default, Some(floor)) => floor * TOGETHER,
        _ => f64::INFINITY,
    };
    row(trip, &made, limit)
}

/// At most so many times the rounds are made where those count that did not change meanwhile.
const MOST_MADE: usize = 3;

/// So many times the rounds where placement is luck: each is one throw of the dice for each side.
pub(super) const MORE: usize = 3;

/// A round trip under so many floors of one CPU was made on one CPU.
const TOGETHER: f64 = 3.0;

/// Rounds that a placement must have had, of the driver and of a floor, to count: two repetitions at least.
const REPEATED: usize = 2;

fn row(trip: Trip, rounds: &[Round], together_below: f64) -> Result<Row, String> {
    let driver = Compared::of(rounds, |round| round.driver, together_below)?;
    let target = Limit::AtMost(trip.target);
    let beside = Some((driver.family.word().to_owned(), driver.floor));
    let mut row = Row::new(trip.title, Unit::Ns, driver.value, beside, driver.ratio, target)
        .with_goal(trip.goal.map(Limit::AtMost));
    row.runtime =
        Compared::of(rounds, |round| round.runtime, together_below).ok().map(|made| made.ratio.median);
    row.note = match trip.waiting {
        // One of 64 KiB may have another floor.
        Waiting::Spin if !trip.or_asleep => {
            distance::told(&rounds.iter().filter_map(Round::spun).collect::<Vec<_>>())
        }
        _ => together_below.is_finite().then(|| luck(rounds, &driver.places)),
    };
    Ok(row)
}

/// Tells how the scheduler placed things, and what came of each.
fn luck(rounds: &[Round], places: &[Place]) -> String {
    let told = places.iter().map(|place| {
        let Place { name, value, floor, share, made, .. } = place;
        let (value, floor, ratio) = (value / 1e3, floor / 1e3, value / floor);
        format!(
            "{name}: {value:.2} us beside {floor:.2}, {ratio:.2}, {made} of {} rounds, weight {share:.2}",
            rounds.len()
        )
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Where both sides ran, and what a round trip took there.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    name: &'static str,
    /// Medians of what is compared, and of the best floor.
    value: f64,
    floor: f64,
    family: Family,
    /// How often all that was measured was placed so, of 1.
    share: f64,
    /// Rounds in which what is compared was.
    made: usize,
    ratios: Vec<f64>,
}

impl Place {
    /// `None` if it came about too seldom.
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

/// A figure beside its floor. Where the scheduler places both sides, each place that came about is compared by
/// itself, and the two are weighted alike on both sides, by how often anything was placed there: so it is what
/// the driver and its floor would take if they had the same luck.
struct Compared {
    value: f64,
    floor: f64,
    family: Family,
    ratio: Spread,
    places: Vec<Place>,
}

impl Compared {
    fn of(rounds: &[Round], which: fn(&Round) -> f64, together_below: f64) -> Result<Self, String> {
        let alone = "nothing was placed as its floor was, in so many rounds as it takes";
        let together = |value: f64| value < together_below;
        let apart = |value: f64| value >= together_below;
        let sites: [(_, &dyn Fn(f64) -> bool); 2] = [("on one CPU", &together), ("on two", &apart)];
        let places: Vec<Place> =
            sites.into_iter().filter_map(|site| Place::of(site, rounds, which)).collect();
        let ratios: Vec<f64> = places.iter().flat_map(|place| place.ratios.clone()).collect();
        let mut ratio = Spread::of(&ratios).ok_or(alone)?;
        let most = |place: &&Place| (place.share * 1e6) as u64;
        let family = places.iter().max_by_key(most).ok_or(alone)?.family;
        let weight: f64 = places.iter().map(|place| place.share).sum();
        let weighted =
            |of: fn(&Place) -> f64| places.iter().map(|place| of(place) * place.share).sum::<f64>() / weight;
        let (value, floor) = (weighted(|place| place.value), weighted(|place| place.floor));
        if places.len() > 1 {
            ratio.median = value / floor;
        }
        Ok(Self { value, floor, family, ratio, places })
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::Verdict;
    use super::*;

    fn round(driver: f64, runtime: f64, pipe: f64, futex: f64) -> Round {
        Round { driver, runtime, floors: vec![(Family::Pipe, pipe), (Family::Futex, futex)] }
    }

    #[test]
    fn each_round_is_compared_with_its_own_floor() {
        // The machine became slower by half in the second round, and so did everything.
        let rounds = [round(1500.0, 1700.0, 1200.0, 1000.0), round(2250.0, 2550.0, 1800.0, 1500.0)];
        let row = row(TRIPS[0], &rounds, f64::INFINITY).expect("a row");
        assert_eq!((row.ratio.least, row.ratio.most, row.ratio.rounds), (1.5, 1.5, 2));
        assert_eq!((row.runtime, row.verdict), (Some(1.7), Verdict::ShortOfTheGoal));
    }

    #[test]
    fn a_driver_that_is_too_slow_misses_whatever_the_runtime_does() {
        let rounds = [round(1700.0, 1000.0, 1000.0, 1100.0)];
        assert_eq!(row(TRIPS[0], &rounds, f64::INFINITY).expect("a row").verdict, Verdict::Missed);
        let rounds = [round(1200.0, 9000.0, 1000.0, 1100.0)];
        assert_eq!(row(TRIPS[0], &rounds, f64::INFINITY).expect("a row").verdict, Verdict::Met);
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
            // The driver had luck, one floor had not.
            round(2400.0, 3000.0, 70_000.0, 2000.0),
            // The driver had none, nor had one floor.
            round(77_000.0, 2600.0, 70_000.0, 2000.0),
            // Only the driver had none.
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
