//! Room: a whole run: every repetition in its order, on its stage, into the record.
//! Not here: the loop that measures (`crate::measure`), printing any of it (an [`Observer`]).
//! Nothing that was measured is lost: a case that breaks is recorded as broken with what it had,
//! and a signal to stop leaves a record that says so.

mod repetition;
mod search;

use std::fmt;
use std::io;
use std::time::Instant;

use driver::locate;
use driver::{AnyContext, Connection, Context, OpenError, OpenOptions};
use record::{Clock, ClockUnit, HostClass, Outcome, Repetition, Run, Sampler};
use sys::local_time::LocalTime;

use crate::doctor;
use crate::host;
use crate::measure::{Sequence, overhead};
use crate::plan::{Dialect, Plan, Planned, Wanted};
use crate::stage::{Contexts, Place, Stage, StageError};

/// Is told how a run goes on.
pub trait Observer {
    /// All facts about the machine are in `run`, and all planned cases, none of them measured.
    fn begins(&mut self, run: &Run) {
        let _ = run;
    }

    /// Repetition number `done` of `all` is about to start.
    fn starts(&mut self, run: &Run, case: usize, done: usize, all: usize) {
        let _ = (run, case, done, all);
    }

    /// A trial in the search for the number of iterations was made.
    fn tried(&mut self, name: &str, iterations: u64, seconds: f64) {
        let _ = (name, iterations, seconds);
    }

    /// Whether anybody still wants results; asked before each repetition.
    fn is_wanted(&self) -> bool {
        true
    }

    /// A round ahead of the measured ones was made, the worst call of which took so many clock units.
    fn trained(&mut self, worst: u64) {
        let _ = worst;
    }

    /// So many of all calls of a test were made.
    fn advanced(&mut self, made: u64, all: u64) {
        let _ = (made, all);
    }

    /// The last repetition of a case was made.
    fn case_done(&mut self, run: &Run, case: usize) {
        let _ = (run, case);
    }
}

/// Why a run could not start. All that goes wrong later is part of its record.
#[derive(Debug)]
pub enum RunError {
    /// The filter lets no case through.
    NothingToRun {
        /// The filter, as Google Benchmark would name it.
        filter: String,
    },
    /// There is no binder driver to be used.
    NoDriver(OpenError),
    /// The processes of the run did not get as far as the first measurement.
    Unready(String),
    /// The system refused what every run needs.
    Os(io::Error),
}

impl RunError {
    /// For a plan whose filter lets nothing through.
    #[must_use]
    pub fn nothing_to_run(plan: &Plan) -> Self {
        let filter = plan.filter.as_str();
        Self::NothingToRun { filter: if filter.is_empty() { "." } else { filter }.to_owned() }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingToRun { filter } => {
                write!(f, "Failed to match any benchmarks against regex: {filter}")
            }
            Self::NoDriver(error) => write!(f, "{error}"),
            Self::Unready(why) => f.write_str(why),
            Self::Os(error) => write!(f, "preparing the run: {}", sys::errno::describe(error)),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NothingToRun { .. } | Self::Unready(_) => None,
            Self::NoDriver(error) => Some(error),
            Self::Os(error) => Some(error),
        }
    }
}

/// Carries out a plan. This binary is started again for every server process, so it must pass its
/// words on to [`crate::stage::role::play`]. SIGINT and SIGTERM stop a run that has begun.
///
/// # Errors
/// [`RunError`], before anything is measured.
pub fn execute(plan: &Plan, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let planned = plan.cases();
    if planned.is_empty() {
        return Err(RunError::nothing_to_run(plan));
    }
    let program = std::env::current_exe().map_err(RunError::Os)?;
    let start = Instant::now();
    let (contexts, driver) = find_contexts(plan, &planned)?;
    let class = host::class();
    let mut run = new_run(plan.for_record(), driver, class);
    run.context.clone_from(&plan.context);
    // One client and one service take turns; they need no more than the one CPU there always is.
    run.overloaded = false;
    run.cases = planned.iter().map(|planned| planned.case.clone()).collect();
    sys::stop_signal::catch().map_err(RunError::Os)?;
    observer.begins(&run);
    let mut stage = Stage::new(plan, &program, contexts, class);
    stage.see_to_others().map_err(|error| RunError::Unready(error.to_string()))?;
    run_all(plan, &planned, &mut run, &mut stage, observer);
    run.elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok(run)
}

/// A run of which nothing is known yet but what was asked, where, and by what.
pub(crate) fn new_run(plan: record::Plan, driver: Option<record::Driver>, class: HostClass) -> Run {
    let (started, host) = (LocalTime::now().to_string(), host::facts(class));
    let mut run = Run::new(host::tool(), started, plan, host, clock(class));
    run.driver = driver;
    run.findings = doctor::at_start(class, run.driver.as_ref().map(|driver| driver.kind));
    run
}

/// The contexts that some cases need, and the driver behind the first that there is. Cases for which there
/// is none are skipped, unless it is all of them.
fn find_contexts(plan: &Plan, planned: &[Planned]) -> Result<(Contexts, Option<record::Driver>), RunError> {
    let (mut contexts, mut first, mut missing) = (Contexts::default(), None, None);
    for dialect in [Dialect::Binder(plan.android), Dialect::Hwbinder] {
        if !planned.iter().any(|planned| plan.dialect(planned.family) == Some(dialect)) {
            continue;
        }
        *contexts.of_mut(dialect) = match find_driver(&plan.wanted, dialect.context()) {
            Ok((context, driver)) => {
                first = first.or(Some(driver));
                Place::Found(context)
            }
            Err(error) => {
                let place = Place::Missing(error.to_string());
                missing = missing.or(Some(error));
                place
            }
        };
    }
    match (first, missing) {
        (None, Some(error)) => Err(error),
        (first, _) => Ok((contexts, first)),
    }
}

/// The context of this flavour that was asked for, and the driver behind it.
pub(crate) fn find_driver(wanted: &Wanted, flavour: &str) -> Result<(AnyContext, record::Driver), RunError> {
    let located = locate::find(wanted, flavour).map_err(RunError::NoDriver)?;
    let options = OpenOptions { map_size: 0, ..OpenOptions::default() };
    let connection = located.context.open(options).map_err(RunError::NoDriver)?;
    let version = connection.version().unwrap_or(abi::PROTOCOL_VERSION);
    let driver = host::driver(&located, version);
    Ok((located.context, driver))
}

fn clock(class: HostClass) -> Clock {
    let overhead = overhead();
    let unit = if class == HostClass::Icount { ClockUnit::Instructions } else { ClockUnit::Ns };
    Clock {
        name: "CLOCK_MONOTONIC".to_owned(),
        unit,
        read_cost: overhead.read_cost,
        resolution: overhead.resolution,
    }
}

fn run_all(
    plan: &Plan,
    planned: &[Planned],
    run: &mut Run,
    stage: &mut Stage<'_>,
    observer: &mut dyn Observer,
) {
    let order = plan.order(planned.len());
    let repetitions = plan.effective_repetitions() as usize;
    let mut bench = repetition::Bench {
        plan,
        sampler: Sampler::new(),
        sequence: Sequence::default(),
        found: vec![None; planned.len()],
    };
    for (done, &case) in order.iter().enumerate() {
        if let Some(signal) = sys::stop_signal::received() {
            run.incomplete_reason = Some(format!("stopped by {signal}"));
            return;
        }
        if !observer.is_wanted() {
            run.incomplete_reason = Some("stopped as nobody reads the results".to_owned());
            return;
        }
        observer.starts(run, case, done, order.len());
        let outcome = match stage.enter(&planned[case]) {
            Ok(subject) => bench.repeat(case, &planned[case], subject, stage, observer),
            Err(StageError::Unfit(reason)) => Outcome::Skipped { reason },
            Err(StageError::Failed(reason)) => Outcome::Failed { reason, partial: None },
        };
        stage.leave();
        let list = &mut run.cases[case].repetitions;
        list.push(Repetition { index: list.len() as u32, outcome });
        if list.len() == repetitions {
            observer.case_done(run, case);
        }
    }
    match sys::stop_signal::received() {
        Some(signal) if last_was_cut_short(run) => {
            run.incomplete_reason = Some(format!("stopped by {signal}"))
        }
        _ => run.complete = true,
    }
}

fn last_was_cut_short(run: &Run) -> bool {
    run.cases.iter().flat_map(|case| &case.repetitions).any(|repetition| {
        matches!(&repetition.outcome, Outcome::Failed { reason, .. } if reason == repetition::STOPPED)
    })
}
