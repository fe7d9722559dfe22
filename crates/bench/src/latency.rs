//! Latency tests: pairs of client and server whose calls are timed one by one, from a real-time and from an
//! ordinary thread; deadlines, CPU placement, priority inheritance; from a plan to the record.
//! Not here: single situations of inheritance (`crate::inheritance`), many concurrent workers
//! (`crate::workers`), grids of tests (`crate::sweep`).
//!
//! - [`options`]: the validated request; [`fault`]: deliberate faults.
//! - [`pairs`]: their processes, from outside; [`role`]: one of them from inside; [`caller`]: a client's two
//!   threads; `pace`: their schedule; [`service`]: the called service; [`endpoint`]: the flavours; `ping`: other programs' objects;
//!   `disturbance`: deliberate interference by other threads.
//! - [`sample`], [`notes`]: stored data; [`tally`]: its figures; [`flight`]: recordings of slow calls; [`passes`]: which
//!   calls are made with the flight recorder.
//!
//! Facts: libhwbinder's `Latency.cpp` and `PerfTest.cpp`, frameworks/native's `schd-dbg.cpp` (Android 14).
//! `docs/reading-the-numbers.md` lists their errors, which this test avoids.

pub mod accuracy;
pub(crate) mod blockers;
mod caller;
mod disturbance;
mod endpoint;
pub mod fault;
mod flight;
mod notes;
pub mod options;
mod pace;
mod pairs;
mod passes;
mod ping;
pub(crate) mod role;
mod sample;
mod service;
mod tally;
pub mod verdict;

use std::path::PathBuf;

use backend::AnyContext;
pub use fault::Injected;
pub use options::LatencyOptions;
use record::{
    Case, Class, ClassTotals, Finding, Inheritance, LatencyTest, Level, Measured, Measurement, Outcome,
    Percentiles, Role, Run, Sched, Severity,
};

use crate::brokers::Brokers;
use crate::case;
use crate::inheritance::{self, InheritanceError, InheritanceOptions};
use crate::load::Loads;
use crate::plan::{Dialect, Flavour, Inherit};
use crate::run::{self, Observer, RunError};
use crate::scheduling::{self, unpack};
use flight::RecordingKeeper;
use ftrace::switch;
use notes::ThreadFacts;
use pairs::{PairResult, Pairs, Setup};
use passes::Passes;
use sample::Sample;
use tally::{Callers, CaseFacts};

/// Executes a plan that [`LatencyOptions::check`] accepted. SIGINT and SIGTERM stop a running test. This
/// program is started again for both ends of every pair, so it must call [`crate::start_worker`].
///
/// # Errors
/// [`RunError`]: no driver, no tracing to stop, no load, or no process of a pair got ready. Once a pair is
/// ready, failures of other pairs are part of the record.
pub fn execute(options: &LatencyOptions, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let tracing = if options.trace { Some(switch::running().map_err(unready)?) } else { None };
    let dialect = options.flavour.dialect(options.android);
    let (prologue, mut run) = run::begin(&options.wanted, dialect, options.for_record())?;
    let realtime = try_realtime(options);
    run.overloaded = options.pairs > sys::sched::usable_cpus();
    run.measured = Measured::Latency(frame_of_test(options, &realtime));
    run.cases = cases(options);
    // Each process has two pipes and its shared memory; embedded channels take more.
    let _ = sys::limits::raise_open_files(u64::from(options.pairs) * 16 + 64);
    observer.begins(&run);
    // A manager of ours would not know another program's service, and would be in the way of that program's manager.
    let others = options.pinged.as_ref().is_some_and(|service| !service.is_empty());
    let _manager = if others { None } else { prologue.manage(options.patience_s)? };
    let setup = setup(options, prologue.context.as_ref(), tracing, realtime.is_ok())?;
    match &options.flight {
        None => measure(options, &setup, &mut run, &prologue.brokers, None, observer)?,
        Some(prefix) => {
            let test = Passes { options, setup: &setup, brokers: &prologue.brokers };
            test.measure(prefix.clone(), &mut run, observer)?;
        }
    }
    match (&prologue.context, dialect) {
        // Nothing is known of the threads of another program.
        _ if options.pinged.is_some() => {}
        (Some(context), Some(dialect)) if options.scenes && run.complete => {
            let scenes = scenes_of(options, dialect);
            examine(inheritance::measure(context, &scenes), &mut run);
        }
        (Some(context), _) => examine(inheritance::promise(context, options.inherit_rt), &mut run),
        (None, _) => run.measured.latency_mut().into_iter().for_each(without_ipc),
    }
    prologue.finish(&mut run);
    Ok(run)
}

/// Path of a stopped trace; `None` without tracefs.
#[must_use]
pub fn trace_log() -> Option<PathBuf> {
    switch::log()
}

/// Whether the kernel's tracing is on.
///
/// # Errors
/// It is off or out of reach: the path of the file that says so.
pub fn tracing_is_on() -> Result<(), PathBuf> {
    let usual = || switch::log().unwrap_or_else(|| PathBuf::from("/sys/kernel/tracing/trace"));
    switch::running().map(drop).map_err(|_| usual().with_file_name("tracing_on"))
}

/// Registers a service that is never called, under this name. It lives as long as the returned value.
pub(crate) fn offer_idle<C: driver::Connection>(
    endpoint: &crate::endpoint::Endpoint<C>,
    name: &str,
) -> Result<ipc::Binder, crate::call_error::CallError> {
    endpoint::offer(endpoint, name, service::Service::default(), false)
}

fn unready(why: impl std::fmt::Display) -> RunError {
    RunError::Unready(why.to_string())
}

/// Tries the real-time caller's scheduling in a thread of this process.
fn try_realtime(options: &LatencyOptions) -> Result<Sched, String> {
    if !options.realtime {
        return Err("none was asked for".to_owned());
    }
    scheduling::try_fifo(options.priority)
}

fn frame_of_test(options: &LatencyOptions, realtime: &Result<Sched, String>) -> LatencyTest {
    LatencyTest {
        flavour: if options.flavour == Flavour::Passthrough { "hwbinder" } else { options.flavour.name() }
            .to_owned(),
        binderized: options.flavour != Flavour::Passthrough,
        pinged: options.pinged.clone(),
        pairs: options.pairs,
        iterations: options.iterations,
        deadline: options.deadline(),
        realtime: realtime.as_ref().ok().copied(),
        realtime_problem: realtime.as_ref().err().cloned(),
        all: Vec::new(),
        inheritance: Inheritance::default(),
        roles: Vec::new(),
        injected: options.injected.iter().map(ToString::to_string).collect(),
        overhead: overhead(options.pinged.is_none()),
        stopped_at: None,
        recorder: None,
        sweep: None,
    }
}

/// Measurement overhead in each duration, in ns: a pair of clock readings, and with `looks` the service's query of its
/// thread.
fn overhead(looks: bool) -> Option<f64> {
    const LOOKS: u32 = 2000;
    let mut times: Vec<u64> = (0..LOOKS)
        .map(|_| {
            let start = sys::clock::monotonic_ns();
            if looks {
                std::hint::black_box(service::look());
            }
            sys::clock::monotonic_ns() - start
        })
        .collect();
    Percentiles::of(&mut times).map(|percentiles| percentiles.p50 as f64)
}

fn cases(options: &LatencyOptions) -> Vec<Case> {
    let both = (0..options.pairs).flat_map(|pair| Class::BOTH.map(|class| (pair, class)));
    both.zip(0..)
        .map(|((pair, class), index)| Case {
            payload_bytes: options.payload.into(),
            ..case::new_case(options.case_name(pair, class), options.family(), index)
        })
        .collect()
}

fn setup(
    options: &LatencyOptions,
    context: Option<&AnyContext>,
    tracing: Option<PathBuf>,
    realtime: bool,
) -> Result<Setup, RunError> {
    let client = context.map(AnyContext::address).unwrap_or_default();
    let server = match context {
        Some(AnyContext::Embedded(embedded)) => embedded.with_inherit(options.server_inherits()).address(),
        Some(AnyContext::Kernel(_)) if options.injected.contains(&Injected::DropInheritance) => {
            let why = format!(
                "{} is a setting of the embedded driver, and this is the kernel's",
                Injected::DropInheritance
            );
            return Err(RunError::Unready(format!("{why}: --driver embedded")));
        }
        _ => client.clone(),
    };
    Ok(Setup { client, server, tracing, realtime, flight: None, records: None })
}

/// Runs everything between the first process of a pair and its last result.
fn measure(
    options: &LatencyOptions,
    setup: &Setup,
    run: &mut Run,
    brokers: &Brokers,
    keeper: Option<&mut RecordingKeeper>,
    observer: &mut dyn Observer,
) -> Result<(), RunError> {
    let mut pairs = Pairs::start(options, setup).map_err(RunError::Unready)?;
    let ready = pairs.any_whole();
    let loads =
        Loads::start(&options.loads, options.load_cpu.as_ref().map(std::slice::from_ref)).map_err(unready)?;
    let classes = if setup.realtime { 2 } else { 1 };
    let all = options.iterations * classes * u64::from(options.pairs);
    let ended = pairs.run(keeper, brokers, &mut |made| observer.advanced(made, all));
    if let Err(error) = loads.check() {
        let text = format!("the load beside the test was not what was asked for: {error}");
        run.findings.push(Finding::new("load-lost", Severity::Error, text));
    }
    drop(loads);
    let results = pairs.results();
    keep(options, setup, &results, run);
    run.complete = ended.is_ok();
    run.incomplete_reason = ended.err().map(|signal| format!("stopped by {signal}"));
    if let Some(test) = run.measured.latency_mut()
        && test.stopped_at.is_some()
    {
        run.complete = false;
        run.incomplete_reason.get_or_insert_with(|| "stopped at a missed deadline, as asked for".to_owned());
    }
    brokers.end_of_run(run, &format!("the calls of {}", units::counted(u64::from(options.pairs), "pair")));
    match results.into_iter().find_map(|result| result.broken) {
        Some(why) if !ready && run.complete => Err(RunError::Unready(why)),
        _ => Ok(()),
    }
}

/// Writes the results into the record.
fn keep(options: &LatencyOptions, setup: &Setup, results: &[PairResult], run: &mut Run) {
    let frame = CaseFacts {
        pairs: options.pairs,
        deadline: options.deadline(),
        load: options.load_words(),
        rate_hz: options.rate_hz,
        raw: options.raw,
        flavour: options.flavour,
        told: options.pinged.is_none(),
    };
    let fifo = run.latency().and_then(|test| test.realtime);
    for (pair, result) in (0..).zip(results) {
        let other = result.other.map_or(Sched::other(0), |seen| seen.sched);
        let callers = Callers { fifo, other };
        for class in Class::BOTH {
            let found = tally::class(&frame, pair, class, &callers, &result.samples);
            let skipped = (class == Class::Fifo && !setup.realtime)
                .then(|| run.latency().and_then(|test| test.realtime_problem.clone()).unwrap_or_default());
            let name = options.case_name(pair, class);
            let Some(case) = run.cases.iter_mut().find(|case| case.name == name) else { continue };
            let (measurement, latency) = found;
            case.latency = Some(latency);
            case::add_repetition(case, outcome(result, measurement, skipped));
        }
    }
    let Some(test) = run.measured.latency_mut() else { return };
    test.all = passes::of_classes(results);
    let faceted = run.cases.iter().filter_map(|case| case.latency.as_ref());
    test.inheritance.not_inherited = faceted.map(|latency| latency.not_inherited).sum();
    if options.pinged.is_none() {
        test.inheritance.calls = results.iter().map(|result| result.samples.len() as u64).sum();
    }
    let misses = results.iter().filter_map(|result| result.miss);
    test.stopped_at = misses.min_by_key(|noted| noted.rank).map(|noted| noted.miss);
    test.roles = roles(options, results);
}

fn outcome(result: &PairResult, measurement: Option<Measurement>, skipped: Option<String>) -> Outcome {
    match (&result.broken, measurement, skipped) {
        (_, _, Some(reason)) => Outcome::Skipped { reason },
        (Some(reason), partial, None) => Outcome::Failed { reason: reason.clone(), partial },
        (None, Some(measurement), None) => Outcome::Measured(measurement),
        // Only a stop keeps a working pair from making any call.
        (None, None, None) => Outcome::Skipped { reason: "it was stopped before its first call".to_owned() },
    }
}

fn totals(class: Class, results: &[PairResult]) -> Option<ClassTotals> {
    let samples = results.iter().flat_map(|result| &result.samples);
    tally::totals(class, samples.filter(|sample| sample.class == class))
}

/// Threads that took part: of the first pair in its first iteration, or of all pairs in all of their calls.
fn roles(options: &LatencyOptions, results: &[PairResult]) -> Vec<Role> {
    let shown = if options.every_role { results } else { results.get(..1).unwrap_or_default() };
    let named = |role: &'static str| move |seen: ThreadFacts| role_of(role, seen);
    let mut roles: Vec<Role> = shown.iter().filter_map(|pair| pair.service.map(named("service"))).collect();
    roles.push(role_of("main", ThreadFacts::own()));
    roles.extend(shown.iter().filter_map(|pair| pair.client.map(named("client"))));
    for pair in shown {
        let first = |class| pair.samples.iter().find(|sample| sample.class == class);
        let first: Vec<&Sample> = Class::BOTH.into_iter().filter_map(first).collect();
        let calls = if options.every_role { pair.samples.iter().collect() } else { first };
        roles.extend(calls.into_iter().flat_map(|sample| both_ends(options.flavour, pair, sample)));
    }
    roles
}

fn role_of(role: &str, seen: ThreadFacts) -> Role {
    let ThreadFacts { pid, tid, cpu, sched } = seen;
    Role { role: role.to_owned(), pid, tid, cpu, sched, transitional: false }
}

/// The two threads of a call: the caller on its CPU just before the call, and the thread that served it.
fn both_ends(flavour: Flavour, pair: &PairResult, sample: &Sample) -> impl Iterator<Item = Role> {
    let (name, caller) = match sample.class {
        Class::Fifo => ("fifo-caller", pair.fifo),
        Class::Other => ("other-caller", pair.other),
    };
    let caller = caller.map(|seen| role_of(name, ThreadFacts { cpu: sample.before, ..seen }));
    let answer = sample.answer;
    let served = pair.service.or(pair.client).filter(|_| sample.answer.is_told()).map(|process| {
        let sched = unpack(answer.sched);
        let seen = ThreadFacts { pid: process.pid, tid: answer.tid, cpu: answer.cpu, sched };
        // Not the thread's own priority: it waits with the priority of its process's opener.
        let transitional = pair.service.is_some_and(|service| !record::same_urgency(service.sched, sched));
        let name = if flavour == Flavour::Binder { "binder" } else { "hwbinder" };
        Role { transitional, ..role_of(name, seen) }
    });
    caller.into_iter().chain(served)
}

/// The inheritance scenes, with servers that inherit as those of the test did.
fn scenes_of(options: &LatencyOptions, dialect: Dialect) -> InheritanceOptions {
    let dropped = options.injected.contains(&Injected::DropInheritance);
    let servers_inherit = dropped.then_some(Inherit::None);
    InheritanceOptions { dialect, inherit_rt: options.inherit_rt, servers_inherit }
}

/// Adds what is promised, and what single situations showed, to the test's own calls.
fn examine(seen: Result<Inheritance, InheritanceError>, run: &mut Run) {
    let Some(test) = run.measured.latency_mut() else { return };
    match seen {
        Ok(seen) => {
            let Inheritance { calls, not_inherited, .. } = test.inheritance;
            test.inheritance = Inheritance { calls, not_inherited, ..seen };
        }
        Err(error) => {
            run.findings.push(Finding::new("inheritance-scenes", Severity::Warning, error.to_string()));
        }
    }
}

/// Without IPC the caller's own thread serves, independent of any driver.
fn without_ipc(test: &mut LatencyTest) {
    let inheritance = &mut test.inheritance;
    inheritance.expected = Some(Level::Rt);
    inheritance.expected_reason = "without IPC the caller's own thread serves".to_owned();
    inheritance.measured = (inheritance.not_inherited == 0 && test.realtime.is_some()).then_some(Level::Rt);
}
