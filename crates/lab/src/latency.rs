//! Room: the latency tests: pairs of client and server whose calls are timed one by one, from a real-time
//! and from an ordinary thread; deadlines, the same CPU, the caller's priority; from a plan to the record.
//! Not here: single situations of inheritance (`crate::inheritance`), many at work at once (`crate::workers`).
//!
//! - [`ask`]: what was asked for, validated; [`fault`]: what shall go wrong.
//! - [`pairs`]: their processes, from outside; [`role`]: one of them from inside; [`caller`]: a client's two
//!   threads; `pace`: when they call; [`service`]: what is called; [`scene`]: the flavours; `disturbance`: what others do on purpose.
//! - [`sample`], [`notes`]: what is kept; [`tally`]: what it says.
//! - [`sweep`]: all of it at every point of a grid.
//!
//! Facts: libhwbinder's `Latency.cpp` and `PerfTest.cpp`, frameworks/native's `schd-dbg.cpp` (Android 14).
//! Where those err this does not: `docs/reading-the-numbers.md` lists it.

pub mod accuracy;
pub mod ask;
mod caller;
mod disturbance;
pub mod fault;
mod notes;
mod pace;
mod pairs;
pub mod role;
mod sample;
mod scene;
mod service;
pub mod sweep;
mod tally;

use std::path::{Path, PathBuf};
use std::time::Instant;

pub use ask::{Ask, Flavour};
use driver::AnyContext;
pub use fault::Injected;
use record::{
    Case, CaseKind, Class, ClassTotals, Finding, Inheritance, LatencyTest, Level, Measurement, Outcome,
    Percentiles, Repetition, Role, Run, Sched, Severity,
};

use crate::host;
use crate::inheritance::{self, Question};
use crate::load::Loads;
use crate::plan::{Dialect, Inherit, Plan};
use crate::realtime;
use crate::run::{self, Observer, RunError};
use crate::stage::{Contexts, Stage};
use crate::trace::switch;
use notes::Seen;
use pairs::{Addresses, Pairs};
use tally::{Callers, Frame};

/// Carries out a plan that [`Ask::check`] let through. This binary is started again for both ends of every
/// pair, so it must pass its words on to [`role::play`]. SIGINT and SIGTERM stop a test that has begun.
///
/// # Errors
/// [`RunError`]: no driver, no tracing to stop, no load, or no process of a pair got ready. What goes wrong
/// in single pairs once others are ready is part of the record.
pub fn execute(ask: &Ask, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let start = Instant::now();
    // Before the first process is started, which whoever stops this may see.
    sys::stop_signal::catch().map_err(RunError::Os)?;
    let tracing = if ask.trace { Some(switch::running().map_err(unready)?) } else { None };
    let dialect = ask.flavour.dialect(ask.android);
    let (context, driver) = match dialect {
        Some(dialect) => run::find_driver(&ask.wanted, dialect.context())
            .map(|(context, driver)| (Some(context), Some(driver)))?,
        None => (None, None),
    };
    let realtime = try_realtime(ask);
    let class = host::class();
    let mut run = run::new_run(ask.for_record(), driver, class);
    run.overloaded = ask.pairs > sys::sched::usable_cpus();
    run.latency = Some(frame_of_test(ask, &realtime));
    run.cases = cases(ask);
    let program = std::env::current_exe().map_err(RunError::Os)?;
    // Eight descriptors for each process: its output, and what the stage keeps.
    let _ = sys::open_files::allow(u64::from(ask.pairs) * 16 + 64);
    observer.begins(&run);
    let plan = Plan {
        wanted: ask.wanted.clone(),
        android: ask.android,
        patience_s: ask.patience_s,
        ..Plan::default()
    };
    let contexts = match dialect {
        Some(dialect) => Contexts::only(dialect, context.clone()),
        None => Contexts::default(),
    };
    let mut stage = Stage::new(&plan, &program, contexts, class);
    if let Some(dialect) = dialect {
        stage.manage(dialect).map_err(unready)?;
    }
    let addresses = addresses(ask, context.as_ref(), tracing, realtime.is_ok())?;
    measure(ask, &addresses, &stage, &program, &mut run, observer)?;
    match (&context, dialect) {
        (Some(context), Some(dialect)) if ask.scenes && run.complete => {
            look_at_scenes(ask, context, dialect, &mut run);
        }
        (None, _) => run.latency.iter_mut().for_each(without_ipc),
        _ => {}
    }
    run.elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok(run)
}

/// Where a trace that was stopped can be read; `None` without tracefs.
#[must_use]
pub fn trace_log() -> Option<PathBuf> {
    switch::log()
}

fn unready(why: impl std::fmt::Display) -> RunError {
    RunError::Unready(why.to_string())
}

/// Whether a thread of this process can be what the real-time caller shall be.
fn try_realtime(ask: &Ask) -> Result<Sched, String> {
    if !ask.realtime {
        return Err("none was asked for".to_owned());
    }
    let priority = ask.priority;
    let tried = std::thread::spawn(move || realtime::become_fifo(priority)).join();
    match tried {
        Ok(Ok(sched)) => Ok(sched),
        Ok(Err(problem)) => Err(problem.to_string()),
        Err(_) => Err("the thread that tried broke".to_owned()),
    }
}

fn frame_of_test(ask: &Ask, realtime: &Result<Sched, String>) -> LatencyTest {
    LatencyTest {
        flavour: if ask.flavour == Flavour::Passthrough { "hwbinder" } else { ask.flavour.name() }.to_owned(),
        binderized: ask.flavour != Flavour::Passthrough,
        pairs: ask.pairs,
        iterations: ask.iterations,
        deadline: ask.deadline(),
        realtime: realtime.as_ref().ok().copied(),
        realtime_problem: realtime.as_ref().err().cloned(),
        all: Vec::new(),
        inheritance: Inheritance::default(),
        roles: Vec::new(),
        injected: ask.injected.iter().map(ToString::to_string).collect(),
        overhead: overhead(),
        stopped_at: None,
        sweep: None,
    }
}

/// What the test adds to each time, in ns: a pair of clock readings, and the service's look at its thread.
fn overhead() -> Option<f64> {
    const LOOKS: u32 = 2000;
    let mut times: Vec<u64> = (0..LOOKS)
        .map(|_| {
            let start = sys::clock::monotonic_ns();
            std::hint::black_box(service::look());
            sys::clock::monotonic_ns() - start
        })
        .collect();
    Percentiles::of(&mut times).map(|percentiles| percentiles.p50 as f64)
}

fn cases(ask: &Ask) -> Vec<Case> {
    let both = (0..ask.pairs).flat_map(|pair| Class::BOTH.map(|class| (pair, class)));
    both.zip(0..)
        .map(|((pair, class), index)| Case {
            name: ask.case_name(pair, class),
            family: ask.family(),
            family_index: 0,
            per_family_instance_index: index,
            kind: CaseKind::Test,
            payload_bytes: ask.payload.into(),
            threads: 1,
            crowd: None,
            latency: None,
            label: None,
            repetitions: Vec::new(),
        })
        .collect()
}

fn addresses(
    ask: &Ask,
    context: Option<&AnyContext>,
    tracing: Option<PathBuf>,
    realtime: bool,
) -> Result<Addresses, RunError> {
    let client = context.map(AnyContext::address).unwrap_or_default();
    let server = match context {
        Some(AnyContext::Embedded(embedded)) => embedded.with_inherit(ask.server_inherits()).address(),
        Some(AnyContext::Kernel(_)) if ask.injected.contains(&Injected::DropInheritance) => {
            let why = format!(
                "{} is a setting of the embedded driver, and this is the kernel's",
                Injected::DropInheritance
            );
            return Err(RunError::Unready(format!("{why}: --driver embedded")));
        }
        _ => client.clone(),
    };
    Ok(Addresses { client, server, tracing, realtime })
}

/// Everything between the first process of a pair and its last result.
fn measure(
    ask: &Ask,
    addresses: &Addresses,
    stage: &Stage<'_>,
    program: &Path,
    run: &mut Run,
    observer: &mut dyn Observer,
) -> Result<(), RunError> {
    let mut pairs = Pairs::start(ask, addresses, stage).map_err(RunError::Unready)?;
    let ready = pairs.any_whole();
    let loads = Loads::start(&ask.loads, program, ask.load_cpu.as_ref().map(std::slice::from_ref))
        .map_err(unready)?;
    let classes = if addresses.realtime { 2 } else { 1 };
    let all = ask.iterations * classes * u64::from(ask.pairs);
    let ended = pairs.run(&mut |made| observer.advanced(made, all));
    if let Err(error) = loads.check() {
        let text = format!("the load beside the test was not what was asked for: {error}");
        run.findings.push(Finding::new("load-lost", Severity::Error, text));
    }
    drop(loads);
    let results = pairs.results();
    keep(ask, addresses, &results, run);
    run.complete = ended.is_ok();
    run.incomplete_reason = ended.err().map(|signal| format!("stopped by {signal}"));
    if let Some(test) = &mut run.latency
        && test.stopped_at.is_some()
    {
        run.complete = false;
        run.incomplete_reason.get_or_insert_with(|| "stopped at a missed deadline, as asked for".to_owned());
    }
    match results.into_iter().find_map(|result| result.broken) {
        Some(why) if !ready && run.complete => Err(RunError::Unready(why)),
        _ => Ok(()),
    }
}

/// What came out, into the record.
fn keep(ask: &Ask, addresses: &Addresses, results: &[pairs::Result], run: &mut Run) {
    let frame = Frame {
        pairs: ask.pairs,
        deadline: ask.deadline(),
        load: ask.load_words(),
        rate_hz: ask.rate_hz,
        raw: ask.raw,
    };
    let fifo = run.latency.as_ref().and_then(|test| test.realtime);
    for (pair, result) in (0..).zip(results) {
        let other = result.other.map_or(Sched::other(0), |seen| seen.sched);
        let callers = Callers { fifo, other };
        for class in Class::BOTH {
            let found = tally::class(&frame, pair, class, &callers, &result.samples);
            let skipped = (class == Class::Fifo && !addresses.realtime).then(|| {
                run.latency.as_ref().and_then(|test| test.realtime_problem.clone()).unwrap_or_default()
            });
            let name = ask.case_name(pair, class);
            let Some(case) = run.cases.iter_mut().find(|case| case.name == name) else { continue };
            let (measurement, latency) = found;
            case.latency = Some(latency);
            case.repetitions.push(Repetition { index: 0, outcome: outcome(result, measurement, skipped) });
        }
    }
    let Some(test) = &mut run.latency else { return };
    test.all = Class::BOTH.into_iter().filter_map(|class| totals(class, results)).collect();
    let faceted = run.cases.iter().filter_map(|case| case.latency.as_ref());
    test.inheritance.not_inherited = faceted.map(|latency| latency.not_inherited).sum();
    test.inheritance.calls = results.iter().map(|result| result.samples.len() as u64).sum();
    let misses = results.iter().filter_map(|result| result.miss);
    test.stopped_at = misses.min_by_key(|noted| noted.rank).map(|noted| noted.miss);
    test.roles = results.first().map(|result| roles(ask, result)).unwrap_or_default();
}

fn outcome(result: &pairs::Result, measurement: Option<Measurement>, skipped: Option<String>) -> Outcome {
    match (&result.broken, measurement, skipped) {
        (_, _, Some(reason)) => Outcome::Skipped { reason },
        (Some(reason), partial, None) => Outcome::Failed { reason: reason.clone(), partial },
        (None, Some(measurement), None) => Outcome::Measured(measurement),
        // Only a stop keeps a pair that works from making any.
        (None, None, None) => Outcome::Skipped { reason: "it was stopped before its first call".to_owned() },
    }
}

fn totals(class: Class, results: &[pairs::Result]) -> Option<ClassTotals> {
    let samples = results.iter().flat_map(|result| &result.samples);
    let mut times: Vec<u64> =
        samples.filter(|sample| sample.class == class).map(|sample| sample.took).collect();
    Percentiles::of(&mut times).map(|percentiles| ClassTotals { class, percentiles })
}

/// Who took part in the first iteration of a pair.
fn roles(ask: &Ask, result: &pairs::Result) -> Vec<Role> {
    let named = |role: &str, seen: Seen| Role {
        role: role.to_owned(),
        pid: seen.pid,
        tid: seen.tid,
        cpu: seen.cpu,
        sched: seen.sched,
        transitional: false,
    };
    let service = result.service;
    let served = |class: Class| {
        let sample = result.samples.iter().find(|sample| sample.class == class)?;
        let sched = sample::unpack(sample.answer.sched);
        Some(Role {
            role: if ask.flavour == Flavour::Binder { "binder" } else { "hwbinder" }.to_owned(),
            pid: service.or(result.client)?.pid,
            tid: sample.answer.tid,
            cpu: sample.answer.cpu,
            sched,
            // Not its own: it waits as its process was opened.
            transitional: service.is_some_and(|service| !record::same_urgency(service.sched, sched)),
        })
    };
    [
        service.map(|seen| named("service", seen)),
        Some(named("main", Seen::own())),
        result.client.map(|seen| named("client", seen)),
        result.fifo.map(|seen| named("fifo-caller", seen)),
        served(Class::Fifo),
        result.other.map(|seen| named("other-caller", seen)),
        served(Class::Other),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Single situations, with servers that inherit as the test's did.
fn look_at_scenes(ask: &Ask, context: &AnyContext, dialect: Dialect, run: &mut Run) {
    let dropped = ask.injected.contains(&Injected::DropInheritance);
    let question =
        Question { dialect, inherit_rt: ask.inherit_rt, servers_inherit: dropped.then_some(Inherit::None) };
    let seen = inheritance::measure(context, &question);
    let Some(test) = &mut run.latency else { return };
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

/// Without IPC the caller's own thread serves, whatever a driver would do.
fn without_ipc(test: &mut LatencyTest) {
    let inheritance = &mut test.inheritance;
    inheritance.expected = Some(Level::Rt);
    inheritance.expected_reason = "without IPC the caller's own thread serves".to_owned();
    inheritance.measured = (inheritance.not_inherited == 0 && test.realtime.is_some()).then_some(Level::Rt);
}
