//! Grid of latency tests, and tests at rising rates: which points, in which order, into one record.
//! Not here: a single point (`crate::latency`); the search, the criterion, joining records (`record::experiments::sweep`).

use record::experiments::sweep::sustained;
use record::{Class, Finding, Point, Run, Severity, Sweep};

use crate::latency::options::RATES;
use crate::latency::{self, LatencyOptions};
use crate::load::{self, LoadSpec, MOST_PROCESSES};
use crate::run::{Observer, RunError};

/// Maximum number of points; more are taken for a typing error.
const MOST_POINTS: usize = 1000;
/// Maximum number of deadlines, which fit into a table.
const MOST_DEADLINES: usize = 50;
/// Maximum number of rates, which bounds the duration.
const MOST_RATES: usize = 100;

/// Returns numbers of pairs that do not overload so many CPUs.
#[must_use]
pub fn usual_pairs(cpus: u32) -> Vec<u32> {
    let mut pairs = vec![1, cpus.saturating_sub(1).max(1)];
    pairs.dedup();
    pairs
}

/// A grid: the varied and the fixed options.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Fixed options. Each point replaces pairs, payload, loads and rate; the inheritance scenes are played
    /// once.
    pub base: LatencyOptions,
    /// Numbers of concurrent pairs.
    pub pairs: Vec<u32>,
    /// Payloads, in bytes.
    pub payloads: Vec<u32>,
    /// Loads during the test; an empty list is no load.
    pub loads: Vec<Vec<LoadSpec>>,
    /// Deadlines that every call is compared with, in us, ascending.
    pub deadlines_us: Vec<u64>,
    /// Calls per second of each pair, both classes together, ascending; the search finds the highest
    /// sustained one. Empty for no search.
    pub rates: Vec<f64>,
    /// Share of the calls that must meet the deadline at a sustained rate.
    pub meet: f64,
    /// Confidence of that share.
    pub confidence: f64,
}

impl Grid {
    /// Checks the grid.
    ///
    /// # Errors
    /// The invalid option and its limit.
    pub fn check(&self) -> Result<(), String> {
        self.check_axes()?;
        if !(self.meet > 0.0 && self.meet < 1.0) {
            return Err(format!(
                "a share of {} cannot be asked to meet a deadline: use 0.5 to 0.9999",
                self.meet
            ));
        }
        if !(0.5..1.0).contains(&self.confidence) {
            return Err(format!(
                "no search ends with a confidence of {}: use 0.5 to 0.9999",
                self.confidence
            ));
        }
        self.check_numbers()?;
        for point in self.points() {
            self.ask_at(&point).check().map_err(|why| format!("{}: {why}", point.place.name()))?;
            for rate in &self.rates {
                self.ask_at(&point.paced(*rate))
                    .check()
                    .map_err(|why| format!("{}: {why}", point.place.name()))?;
            }
        }
        Ok(())
    }

    /// Checks that the number of calls suffices for a result.
    fn check_numbers(&self) -> Result<(), String> {
        let fewest = u64::from(self.pairs.iter().copied().min().unwrap_or(1)).max(1);
        let needed = sustained::calls_needed(self.meet, self.confidence).unwrap_or(u64::MAX).div_ceil(fewest);
        if self.rates.is_empty() || self.base.iterations >= needed {
            return Ok(());
        }
        Err(format!(
            "{} iterations cannot show that a share of {} meets a deadline with a confidence of {}: use -i {needed} \
             or more, or --rates none",
            self.base.iterations, self.meet, self.confidence
        ))
    }

    fn check_axes(&self) -> Result<(), String> {
        for (what, length, most) in [
            ("deadlines", self.deadlines_us.len(), MOST_DEADLINES),
            ("numbers of pairs", self.pairs.len(), MOST_POINTS),
            ("payloads", self.payloads.len(), MOST_POINTS),
            ("loads", self.loads.len(), MOST_POINTS),
        ] {
            if !(1..=most).contains(&length) {
                return Err(format!("{length} {what} cannot be: use 1 to {most}"));
            }
        }
        let points = self.pairs.len().saturating_mul(self.payloads.len()).saturating_mul(self.loads.len());
        if points > MOST_POINTS {
            return Err(format!("{points} points of the grid are too many: the limit is {MOST_POINTS}"));
        }
        if self.rates.len() > MOST_RATES {
            return Err(format!("{} rates are too many: the limit is {MOST_RATES}", self.rates.len()));
        }
        if let Some(rate) = self.rates.iter().find(|rate| !RATES.contains(*rate)) {
            return Err(format!(
                "{rate} calls per second cannot be: use {} to {}",
                RATES.start(),
                RATES.end()
            ));
        }
        let ascends = self.deadlines_us.is_sorted_by(|one, next| one < next)
            && self.rates.is_sorted_by(|one, next| one < next);
        if !ascends || self.deadlines_us[0] == 0 {
            return Err("deadlines and rates must ascend, from above 0".to_owned());
        }
        let processes =
            |loads: &Vec<LoadSpec>| loads.iter().map(|load| load.count).fold(0, u32::saturating_add);
        match self.loads.iter().map(processes).find(|processes| *processes > MOST_PROCESSES) {
            Some(processes) => Err(format!("{processes} processes of load: the limit is {MOST_PROCESSES}")),
            None => Ok(()),
        }
    }

    /// Returns the points without their rates, in the order of measuring.
    fn points(&self) -> Vec<Planned> {
        let mut points = Vec::new();
        for loads in &self.loads {
            for payload in &self.payloads {
                for pairs in &self.pairs {
                    let planned = Planned {
                        place: Point {
                            pairs: *pairs,
                            payload_bytes: (*payload).into(),
                            load: load::describe(loads),
                            rate_hz: None,
                        },
                        payload: *payload,
                        loads: loads.clone(),
                    };
                    // A repeated value counts once.
                    if !points.contains(&planned) {
                        points.push(planned);
                    }
                }
            }
        }
        points
    }

    fn ask_at(&self, point: &Planned) -> LatencyOptions {
        let longest = self.deadlines_us.last().copied().unwrap_or(self.base.deadline_us);
        let asked = self.base.iterations;
        let iterations = match point.place.rate_hz {
            // An iteration is two calls.
            Some(rate) => {
                sustained::calls_at(rate, asked.saturating_mul(2), longest.saturating_mul(1000)).div_ceil(2)
            }
            None => asked,
        };
        LatencyOptions {
            pairs: point.place.pairs,
            payload: point.payload,
            loads: point.loads.clone(),
            rate_hz: point.place.rate_hz,
            iterations,
            deadline_us: longest,
            raw: true,
            trace: false,
            cell: point.place.name(),
            ..self.base.clone()
        }
    }
}

/// A point to measure.
#[derive(Clone, Debug, PartialEq)]
struct Planned {
    place: Point,
    payload: u32,
    loads: Vec<LoadSpec>,
}

impl Planned {
    fn paced(&self, rate: f64) -> Self {
        let mut paced = self.clone();
        paced.place.rate_hz = Some(rate);
        paced
    }
}

/// Measures a grid that [`Grid::check`] accepted. The observer sees each point as a case. A point that cannot
/// be measured is left out and noted, and makes the record incomplete.
///
/// # Errors
/// [`RunError`], if not even the first point can be measured.
pub fn execute(grid: &Grid, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let points = grid.points();
    let all = points.len() * (1 + grid.rates.len());
    let sweep = Sweep {
        deadlines: grid.deadlines_us.iter().map(|us| us.saturating_mul(1000)).collect(),
        meet: grid.meet,
        confidence: grid.confidence,
        cells: Vec::new(),
    };
    let mut work = Work { grid, sweep, run: None, done: 0, all, observer };
    for (number, point) in points.iter().enumerate() {
        // Rates that need not be measured count as done.
        work.done = number * (1 + grid.rates.len());
        match work.point(point) {
            Ok(()) => {}
            Err(Stop::Nothing(error)) => return Err(error),
            Err(Stop::Asked) => break,
        }
    }
    let Work { sweep, run, .. } = work;
    let mut run = run.ok_or_else(|| RunError::Unready("the grid has no point".to_owned()))?;
    if !grid.base.raw {
        sustained::forget_raw(&mut run);
    }
    if let Some(test) = run.measured.latency_mut() {
        test.sweep = Some(sweep);
    }
    Ok(run)
}

/// Reason for the early end of a sweep.
enum Stop {
    /// Not even the first point could be measured.
    Nothing(RunError),
    /// A signal requested a stop, or the results are no longer wanted.
    Asked,
}

struct Work<'w> {
    grid: &'w Grid,
    sweep: Sweep,
    run: Option<Run>,
    done: usize,
    all: usize,
    observer: &'w mut dyn Observer,
}

impl Work<'_> {
    /// Measures a point without a rate, then as many of the rates as the search needs.
    fn point(&mut self, point: &Planned) -> Result<(), Stop> {
        self.measure(point)?;
        let deadlines = self.sweep.deadlines.len();
        let questions = Class::BOTH.len() * deadlines;
        sustained::climb(self.grid.rates.len(), questions, |rung| {
            let from = self.sweep.cells.len();
            self.measure(&point.paced(self.grid.rates[rung]))?;
            let answer = |class: Class, deadline: usize| {
                let cell = self.sweep.cells[from..].iter().find(|cell| cell.class == class)?;
                Some(sustained::holds(&self.sweep, cell, deadline))
            };
            let answers = Class::BOTH.iter().flat_map(|class| (0..deadlines).map(|at| answer(*class, at)));
            Ok(answers.collect())
        })
        .map(|_| ())
    }

    /// Adds one point to the record. One that cannot be measured leaves a note, unless it is the first.
    fn measure(&mut self, point: &Planned) -> Result<(), Stop> {
        if !self.observer.is_wanted() {
            return Err(Stop::Asked);
        }
        let first = self.run.is_none();
        let options = LatencyOptions { scenes: self.grid.base.scenes && first, ..self.grid.ask_at(point) };
        let mut relay = Relay { observer: self.observer, first, done: self.done, all: self.all };
        let result = latency::execute(&options, &mut relay);
        self.done += 1;
        match (result, &mut self.run) {
            (Ok(run), whole) => {
                let stopped = !run.complete;
                self.sweep.cells.extend(sustained::cells(&run, &point.place, &self.sweep.deadlines));
                sustained::join(whole, run);
                if stopped { Err(Stop::Asked) } else { Ok(()) }
            }
            (Err(error), None) => Err(Stop::Nothing(error)),
            (Err(error), Some(run)) => {
                let text = format!("{} could not be measured: {error}", point.place.name());
                run.findings.push(Finding::new("point-left-out", Severity::Error, text));
                run.complete = false;
                run.incomplete_reason.get_or_insert_with(|| "not every point could be measured".to_owned());
                Ok(())
            }
        }
    }
}

/// Presents the points to the observer as cases of one run.
struct Relay<'r> {
    observer: &'r mut dyn Observer,
    first: bool,
    done: usize,
    all: usize,
}

impl Observer for Relay<'_> {
    fn begins(&mut self, run: &Run) {
        if self.first {
            self.observer.begins(run);
        }
        self.observer.starts(run, 0, self.done, self.all);
    }

    fn is_wanted(&self) -> bool {
        self.observer.is_wanted()
    }
}

#[cfg(test)]
mod tests;
