//! Room: what one round trip costs on the embedded driver beside the floor of the machine.
//! Not here: many pairs (`crowd`), a driver with much in it (`growth`).
//!
//! Every round measures the floors, the driver (the command streams of the raw control) and the runtime
//! one after another, each with fresh server processes. The floor is the family with the best median over
//! all rounds: the best of each round would be the one that was luckiest. Where the scheduler places both sides it is luck whether they share a CPU, and a wake-up across CPUs
//! costs up to 30 times one on the same: there a round is compared with floors that had the same luck.

use std::fmt;
use std::path::Path;

use driver::AnyContext;
use driver::locate::{Driver, Wanted};
use record::{HostClass, Sampler};

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

    /// Median time of a round trip in ns.
    pub(super) fn median<R: RoundTrip>(&mut self, client: &mut R, watch: &Watch) -> Result<f64, String> {
        let trial = self.batch(client, TRIAL, watch)?;
        self.batch(client, ((self.lap_ns / trial) as u64).max(TRIAL), watch)
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
    for _ in 0..rounds {
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
        made.push(Round { driver, runtime: site.median(Family::Binder, &mut tools)?, floors });
    }
    let limit = match (trip.placement, same_cpu) {
        (Placement::Default, Some(floor)) => floor * TOGETHER,
        _ => f64::INFINITY,
    };
    row(trip, &made, limit)
}

/// A round trip under so many floors of one CPU was made on one CPU.
const TOGETHER: f64 = 3.0;

fn row(trip: Trip, rounds: &[Round], together_below: f64) -> Result<Row, String> {
    let compared = |which: fn(&Round) -> f64| {
        rounds
            .iter()
            .filter_map(|round| compare(which(round), round, rounds, together_below))
            .collect::<Vec<_>>()
    };
    let driver = compared(|round| round.driver);
    let ratios: Vec<f64> = driver.iter().map(Compared::ratio).collect();
    let alone = "no floor was placed as the driver was, in any round";
    let ratio = Spread::of(&ratios).ok_or(alone)?;
    let median = |values: Vec<f64>| record::stats::median(&values).ok_or(alone);
    let measured = median(driver.iter().map(|compared| compared.value).collect())?;
    let floor = median(driver.iter().map(|compared| compared.floor).collect())?;
    let wins = |family: Family| driver.iter().filter(|compared| compared.family == family).count();
    let family = driver.iter().map(|compared| compared.family).max_by_key(|family| wins(*family));
    let family = family.ok_or(alone)?;
    let target = Limit::AtMost(trip.target);
    let beside = Some((family.word().to_owned(), floor));
    let mut row = Row::new(trip.title, Unit::Ns, measured, beside, ratio, target)
        .with_goal(trip.goal.map(Limit::AtMost));
    row.runtime = record::stats::median(
        &compared(|round| round.runtime).iter().map(Compared::ratio).collect::<Vec<_>>(),
    );
    row.note = together_below.is_finite().then(|| luck(rounds, driver.len(), together_below));
    Ok(row)
}

/// Tells how the scheduler placed things.
fn luck(rounds: &[Round], compared: usize, together_below: f64) -> String {
    let together =
        |values: &mut dyn Iterator<Item = f64>| values.filter(|value| *value < together_below).count();
    let driver = together(&mut rounds.iter().map(|round| round.driver));
    let floors = || rounds.iter().flat_map(|round| round.floors.iter().map(|(_, value)| *value));
    format!(
        "on one CPU: driver {driver} of {}, floors {} of {}; {compared} rounds had a floor placed likewise",
        rounds.len(),
        together(&mut floors()),
        floors().count()
    )
}

/// A figure and the floor that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Compared {
    value: f64,
    floor: f64,
    family: Family,
}

impl Compared {
    fn ratio(&self) -> f64 {
        self.value / self.floor
    }
}

/// The floor of this round if it was placed alike, else its median where it was; `None` if no floor ever
/// was.
fn compare(value: f64, round: &Round, rounds: &[Round], together_below: f64) -> Option<Compared> {
    let alike = |floor: f64| (floor < together_below) == (value < together_below);
    let of = |round: &Round, family: Family| {
        round.floors.iter().find(|(other, floor)| *other == family && alike(*floor)).map(|(_, floor)| *floor)
    };
    let all = |family| -> Vec<f64> { rounds.iter().filter_map(|round| of(round, family)).collect() };
    let families = || round.floors.iter().map(|(family, _)| *family);
    let most = families().map(|family| all(family).len()).max()?;
    // One that was placed so much more seldom has a median of luck.
    let often = families().filter(|family| all(*family).len() * 2 >= most);
    let medians = often.filter_map(|family| Some((family, record::stats::median(&all(family))?)));
    let (family, usual) = medians.min_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(Compared { value, floor: of(round, family).unwrap_or(usual), family })
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
    fn where_placement_is_luck_like_is_compared_with_like() {
        let rounds = [
            // The driver had luck, one floor had not.
            round(2400.0, 3000.0, 70_000.0, 2000.0),
            // The driver had none, nor had one floor.
            round(77_000.0, 2600.0, 70_000.0, 2000.0),
            // Only the driver had none: compared with the best such floor of any round.
            round(84_000.0, 80_000.0, 2000.0, 2000.0),
        ];
        let row = row(TRIPS[1], &rounds, 6000.0).expect("a row");
        assert_eq!((row.ratio.least, row.ratio.median, row.ratio.most), (1.1, 1.2, 1.2));
        let note = row.note.expect("a note");
        assert!(note.starts_with("on one CPU: driver 1 of 3, floors 4 of 6; 3 rounds"), "{note}");
    }

    #[test]
    fn without_any_floor_alike_there_is_no_row() {
        assert!(row(TRIPS[1], &[round(70_000.0, 70_000.0, 2000.0, 2000.0)], 6000.0).is_err());
    }
}
