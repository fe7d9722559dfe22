//! A whole throughput run: every repetition in its order, on its servers, into the record.
//! Not here: the loop that measures (`crate::measure`), printing (an [`Observer`]). No measurement is lost: a
//! case that breaks is recorded as broken with its partial results, and a stop by a signal leaves a record
//! that says so.

mod repetition;
mod search;

use std::fmt;
use std::io;
use std::time::Instant;

use backend::AnyContext;
use backend::locate;
use driver::{Connection, Context, OpenError, OpenOptions};
use record::{Case, Clock, ClockUnit, HostClass, Measurement, Outcome, Run, Sampler};
use sys::local_time::LocalTime;

use crate::brokers::Brokers;
use crate::case;
use crate::measure::Sequence;
use crate::plan::{Dialect, Plan, Planned, Wanted};
use crate::servers::{CaseError, ContextState, Contexts, OwnManager, Servers};
use doctor;
use host;
use host::clock_cost::overhead;

/// Observer of a run's progress.
pub trait Observer {
    /// The run begins: `run` contains all facts about the machine, and all planned cases without
    /// measurements.
    fn begins(&mut self, _run: &Run) {}

    /// Repetition number `done` of `all` is about to start.
    fn starts(&mut self, _run: &Run, _case: usize, _done: usize, _all: usize) {}

    /// A trial in the search for the number of iterations was made.
    fn tried(&mut self, _name: &str, _iterations: u64, _seconds: f64) {}

    /// Returns true if results are still wanted; called before each repetition.
    fn is_wanted(&self) -> bool {
        true
    }

    /// A training round before the measured ones of a case is finished.
    fn trained(&mut self, _case: &Case, _round: &Measurement) {}

    /// `made` of `all` calls of a test were made.
    fn advanced(&mut self, _made: u64, _all: u64) {}

    /// The last repetition of a case is finished.
    fn case_done(&mut self, _run: &Run, _case: usize) {}
}

/// Error that prevents the start of a run. Later failures are part of its record.
#[derive(Debug)]
pub enum RunError {
    /// The filter accepts no case.
    NothingToRun {
        /// The filter, as Google Benchmark would name it.
        filter: String,
    },
    /// No usable binder driver.
    NoDriver(OpenError),
    /// The processes of the run failed before the first measurement.
    Unready(String),
    /// The system refused a resource that every run needs.
    Os(io::Error),
}

impl RunError {
    /// Error for a plan whose filter accepts no case.
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

/// Executes a plan. SIGINT and SIGTERM stop a running test. This program is started again for every server
/// process, so it must call [`crate::start_worker`].
///
/// # Errors
/// [`RunError`], before anything is measured.
pub fn execute(plan: &Plan, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let planned = plan.cases();
    if planned.is_empty() {
        return Err(RunError::nothing_to_run(plan));
    }
    let (start, steal) = (Instant::now(), host::Steal::now());
    let (contexts, driver) = find_contexts(plan, &planned)?;
    let brokers = Brokers::watch(contexts.found(), start).map_err(RunError::NoDriver)?;
    // First: programs that it asks would count as others'.
    let conditions = host::conditions();
    let load = host::Load::now(&brokers.pids());
    let class = host::class();
    let mut run = new_run(plan.for_record(), driver, class);
    run.context.clone_from(&plan.context);
    // One client and one service take turns; one CPU suffices.
    run.overloaded = false;
    run.cases = planned.iter().map(|planned| planned.case.clone()).collect();
    sys::stop_signal::catch().map_err(RunError::Os)?;
    observer.begins(&run);
    let mut servers = Servers::new(plan, contexts, class);
    servers.see_to_others().map_err(|error| RunError::Unready(error.to_string()))?;
    run_all(plan, &planned, &mut run, &mut servers, &brokers, observer)?;
    run.elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    run.stolen_ns = steal.and_then(host::Steal::since_ns);
    note_disturbance(&mut run, load, &brokers);
    note_conditions(&mut run, conditions);
    Ok(run)
}

/// Adds the conditions from the start until now, and findings on them.
fn note_conditions(run: &mut Run, start: record::Conditions) {
    run.conditions = host::until_now(start);
    run.findings.extend(run.conditions.iter().flat_map(doctor::of_conditions));
}

/// Adds the finding on the CPU time that others took since then.
fn note_disturbance(run: &mut Run, load: Option<host::Load>, brokers: &Brokers) {
    let shares = load.and_then(|load| load.until_now(&brokers.pids()));
    run.findings.extend(shares.as_ref().map(doctor::disturbance));
}

/// Common setup of every test before its first measurement.
pub(crate) struct Prologue {
    /// The driver's context; `None` without IPC.
    pub(crate) context: Option<AnyContext>,
    pub(crate) brokers: Brokers,
    dialect: Option<Dialect>,
    start: Instant,
    steal: Option<host::Steal>,
    load: Option<host::Load>,
    conditions: record::Conditions,
}

/// Catches stop signals, finds the driver if a dialect is given, and gathers the facts of the run.
pub(crate) fn begin(
    wanted: &Wanted,
    dialect: Option<Dialect>,
    plan: record::Plan,
) -> Result<(Prologue, Run), RunError> {
    let (start, steal) = (Instant::now(), host::Steal::now());
    // Before the first process is started, which others take as a sign that the test has begun.
    sys::stop_signal::catch().map_err(RunError::Os)?;
    let (context, driver) = match dialect {
        Some(dialect) => {
            find_driver(wanted, dialect.context()).map(|(context, driver)| (Some(context), Some(driver)))?
        }
        None => (None, None),
    };
    let brokers = Brokers::watch(&context, start).map_err(RunError::NoDriver)?;
    // First: programs that it asks would count as others'.
    let conditions = host::conditions();
    let load = host::Load::now(&brokers.pids());
    let prologue = Prologue { context, brokers, dialect, start, steal, load, conditions };
    Ok((prologue, new_run(plan, driver, host::class())))
}

impl Prologue {
    /// Returns the address of the context; empty without IPC.
    pub(crate) fn address(&self) -> String {
        self.context.as_ref().map(AnyContext::address).unwrap_or_default()
    }

    /// Starts a service manager if the context has none.
    pub(crate) fn manage(&self, patience_s: u64) -> Result<Option<OwnManager>, RunError> {
        let managed = self.dialect.zip(self.context.clone());
        let start = |(dialect, context)| OwnManager::start(dialect, context, patience_s);
        managed.map(start).transpose().map_err(|error| RunError::Unready(error.to_string()))
    }

    /// Records the duration of the test, the steal time in it, and whether it lost its driver's broker.
    pub(crate) fn finish(&self, run: &mut Run) {
        self.brokers.end_of_run(run, "its last step");
        run.stolen_ns = self.steal.and_then(host::Steal::since_ns);
        note_disturbance(run, self.load, &self.brokers);
        note_conditions(run, self.conditions.clone());
        run.elapsed_ns = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    }
}

/// Visits cases in this order, until a signal requests a stop, nobody reads the results any longer, a broker ends, or a
/// visit returns the reason for an early end.
///
/// # Errors
/// The first error of a visit.
pub(crate) fn take_turns(
    run: &mut Run,
    observer: &mut dyn Observer,
    order: &[usize],
    brokers: &Brokers,
    mut visit: impl FnMut(&mut Run, &mut dyn Observer, usize) -> Result<Option<String>, RunError>,
) -> Result<(), RunError> {
    for (done, &case) in order.iter().enumerate() {
        let unwanted = || (!observer.is_wanted()).then(|| "stopped as nobody reads the results".to_owned());
        run.incomplete_reason =
            sys::stop_signal::received().map(|signal| format!("stopped by {signal}")).or_else(unwanted);
        if run.incomplete_reason.is_some() {
            return Ok(());
        }
        observer.starts(run, case, done, order.len());
        let ended = visit(run, observer, case)?;
        let name = run.cases[case].name.clone();
        run.incomplete_reason = brokers.end_of_run(run, &name).or(ended);
        if run.incomplete_reason.is_some() {
            return Ok(());
        }
        if !order[done + 1..].contains(&case) {
            observer.case_done(run, case);
        }
    }
    run.complete = true;
    Ok(())
}

/// Creates a record with everything but cases and results.
pub(crate) fn new_run(plan: record::Plan, driver: Option<record::Driver>, class: HostClass) -> Run {
    let (started, host) = (LocalTime::now().to_string(), host::facts(class));
    let mut run = Run::new(host::tool(), started, plan, host, clock(class));
    run.driver = driver;
    run.findings = doctor::at_start(class, run.driver.as_ref().map(|driver| driver.kind));
    run
}

/// Finds the contexts that some cases need, and the driver of the first one found. Cases without a context
/// are skipped.
///
/// # Errors
/// None of the needed contexts can be found.
fn find_contexts(plan: &Plan, planned: &[Planned]) -> Result<(Contexts, Option<record::Driver>), RunError> {
    let (mut contexts, mut first, mut missing) = (Contexts::default(), None, None);
    for dialect in [Dialect::Binder(plan.android), Dialect::Hwbinder] {
        if !planned.iter().any(|planned| plan.dialect(planned.family) == Some(dialect)) {
            continue;
        }
        let state = match find_driver(&plan.wanted, dialect.context()) {
            Ok((context, driver)) => {
                first = first.or(Some(driver));
                ContextState::Found(context)
            }
            Err(error) => {
                let state = ContextState::Missing(error.to_string());
                missing = missing.or(Some(error));
                state
            }
        };
        contexts.set(dialect, state);
    }
    match (first, missing) {
        (None, Some(error)) => Err(error),
        (first, _) => Ok((contexts, first)),
    }
}

/// Finds the requested context of this flavour, and its driver.
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
    servers: &mut Servers,
    brokers: &Brokers,
    observer: &mut dyn Observer,
) -> Result<(), RunError> {
    let order = plan.order(planned.len());
    let mut bench = repetition::RepetitionRunner {
        plan,
        sampler: Sampler::new(),
        sequence: Sequence::default(),
        found: vec![None; planned.len()],
    };
    take_turns(run, observer, &order, brokers, |run, observer, case| {
        let several = planned[case].case.threads > 1;
        let measured = if several {
            let session = servers.open_session(&planned[case]);
            session.map(|session| bench.repeat_together(case, &planned[case], session, servers, observer))
        } else {
            let client = servers.open_case(&planned[case]);
            client.map(|client| bench.repeat(case, &planned[case], client, servers, observer))
        };
        let outcome = match measured {
            Ok(outcome) => outcome,
            Err(CaseError::Unfit(reason)) => Outcome::Skipped { reason },
            Err(CaseError::Failed(reason)) => Outcome::Failed { reason, partial: None },
        };
        let on_driver = plan.dialect(planned[case].family).is_some();
        let outcome = if on_driver { brokers.judged(outcome) } else { outcome };
        servers.close_case();
        case::add_repetition(&mut run.cases[case], outcome);
        Ok(None)
    })?;
    if let Some(signal) = sys::stop_signal::received().filter(|_| run.complete && last_was_cut_short(run)) {
        run.complete = false;
        run.incomplete_reason = Some(format!("stopped by {signal}"));
    }
    Ok(())
}

fn last_was_cut_short(run: &Run) -> bool {
    run.cases.iter().flat_map(|case| &case.repetitions).any(|repetition| {
        matches!(&repetition.outcome, Outcome::Failed { reason, .. } if reason == repetition::STOPPED)
    })
}
