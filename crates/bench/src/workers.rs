//! Throughput with many concurrent workers: workers that call each other at random, clients with a service of
//! their own, clients that share services; from a plan to the record.
//! Not here: one client and its service (`crate::run`), the embedded driver's targets (`crate::speed`).
//!
//! - [`options`]: the validated request; [`layout`]: the servers and the callees of each client.
//! - [`scaling`]: the cases of a test with an increasing number of clients.
//! - [`role`]: one worker; [`endpoint`]: the flavours; [`tally`]: samples into figures.
//!
//! Facts: AOSP `binderThroughputTest.cpp` (Android 14) and `Benchmark_throughput.cpp` of libhwbinder.
//! `docs/reading-the-numbers.md` lists their counting errors, which this test avoids.

mod endpoint;
mod layout;
pub mod options;
pub(crate) mod role;
pub mod scaling;
mod tally;

use std::time::Duration;

pub use options::{Group, MOST_WORKERS, Shape, WorkersOptions};
use procgroup::{BlockLayout, ProcessGroup, READY, SlotTotals, WorkerError};
use record::{Case, Crowd, Measurement, Outcome, Run};
use sys::clock::monotonic_ns;

use crate::brokers::Brokers;
use crate::case;
use crate::plan::{Flavour, MinTime};
use crate::run::{self, Observer, RunError};
use role::WorkerRole;

/// Threads of a pool as in libbinder: the number that the driver may ask for in addition to the first one.
const POOL: u32 = 15;

/// Executes a plan that [`WorkersOptions::check`] accepted. SIGINT and SIGTERM stop a running test. This
/// program is started again for every worker, so it must call [`crate::start_worker`].
///
/// # Errors
/// [`RunError`]: no driver, or the workers could not get ready. Failures during the calls are part of the
/// record.
pub fn execute(options: &WorkersOptions, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let dialect = options.flavour.dialect(options.android);
    let (prologue, mut run) = run::begin(&options.wanted, dialect, options.for_record())?;
    run.cases = (0..).zip(&options.groups).map(|(index, group)| case(options, group, index)).collect();
    run.overloaded = run.cases.iter().any(|case| case.crowd.as_ref().is_some_and(|crowd| crowd.overloaded));
    // Workers inherit it.
    let _ = sys::limits::raise_open_files(options.descriptors());
    observer.begins(&run);
    // A manager of ours would not know other programs' services.
    let others = options.groups.iter().all(|group| matches!(group.shape, Shape::Named(_)));
    let _manager = if others { None } else { prologue.manage(options.patience_s)? };
    let address = prologue.address();
    // A single case keeps its processes for all of its rounds; several cases take turns, so that slow drift of
    // the machine affects all of them.
    let cases = options.groups.len();
    let (passes, rounds) = if cases == 1 { (1, options.rounds) } else { (options.rounds, 1) };
    let turns: Vec<usize> = (0..passes).flat_map(|_| 0..cases).collect();
    let mut test = Test { options, brokers: &prologue.brokers, address, longest: options.expected_max_ns };
    run::take_turns(&mut run, observer, &turns, &prologue.brokers, |run, observer, case| {
        test.visit(run, observer, case, rounds)
    })?;
    prologue.finish(&mut run);
    Ok(run)
}

fn case(options: &WorkersOptions, group: &Group, index: u32) -> Case {
    Case {
        payload_bytes: group.payload.into(),
        threads: group.clients(),
        crowd: Some(Crowd {
            shape: group.shape.kind(),
            services: group.services(),
            overloaded: group.clients() > sys::sched::usable_cpus(),
        }),
        label: group.shape.label(),
        ..case::new_case(group.case_name(options.flavour), options::family(options.flavour), index)
    }
}

/// A running test.
struct Test<'r> {
    options: &'r WorkersOptions,
    brokers: &'r Brokers,
    /// Address of the context; empty without IPC.
    address: String,
    /// The longest expected call, in ns.
    longest: Option<u64>,
}

impl Test<'_> {
    /// Runs `rounds` rounds of one case, with one set of processes. Returns the reason that ended the run.
    fn visit(
        &mut self,
        run: &mut Run,
        observer: &mut dyn Observer,
        index: usize,
        rounds: u32,
    ) -> Result<Option<String>, RunError> {
        let has_results = run.cases.iter().any(|case| !case.repetitions.is_empty());
        let case = &mut run.cases[index];
        let mut workers = match start(self.options, &self.options.groups[index], &self.address) {
            Ok(workers) => workers,
            Err(error @ WorkerError::Stopped(_)) => return Ok(Some(error.to_string())),
            Err(error) if has_results => return Ok(Some(keep(case, None, &error))),
            Err(error) => return Err(RunError::Unready(error.to_string())),
        };
        let mut step = READY;
        if self.options.training {
            step += 1;
            let (measured, error) = self.round(&mut workers, step, None);
            if let Some(error) = error {
                return Ok(Some(keep(case, measured, &error)));
            }
            // Like the original: twice the worst call.
            let worst = measured.as_ref().map_or(0, |measured| measured.samples.max);
            self.longest = Some(worst.saturating_mul(2));
            if let Some(measured) = &measured {
                observer.trained(case, measured);
            }
        }
        for _ in 0..rounds {
            step += 1;
            match self.round(&mut workers, step, self.longest) {
                (Some(measured), None) => case::add_repetition(case, Outcome::Measured(measured)),
                (measured, error) => {
                    let nothing = || WorkerError::Start(case.name.clone(), "no call was made".to_owned());
                    let error = error.unwrap_or_else(nothing);
                    return Ok(Some(keep(case, measured, &error)));
                }
            }
        }
        Ok(None)
    }

    /// Runs one round: all clients begin together and call until each has finished. Returns the measurement even
    /// after a failure; then no further round is possible.
    fn round(
        &self,
        workers: &mut ProcessGroup,
        step: u32,
        expected_max: Option<u64>,
    ) -> (Option<Measurement>, Option<WorkerError>) {
        let begin = monotonic_ns();
        let error = workers.round(step, &mut &*self.brokers).err();
        let clients = workers.callers();
        let totals: Vec<SlotTotals> = clients.iter().map(|&client| workers.block().totals(client)).collect();
        let samples = workers.block().samples(&clients);
        let kept = self.options.as_android.then(|| samples.clone());
        let mut measured = tally::measurement(begin, &totals, samples, expected_max);
        if let (Some(measured), Some(samples)) = (&mut measured, kept) {
            tally::set_androids_percentiles(measured, samples);
        }
        (measured, error)
    }
}

/// Records a failure with what was measured before; returns its reason.
fn keep(case: &mut Case, partial: Option<Measurement>, error: &WorkerError) -> String {
    let reason = error.to_string();
    case::add_repetition(case, Outcome::Failed { reason: reason.clone(), partial });
    reason
}

/// Starts all workers of a case, and returns when each has found its callees.
fn start(options: &WorkersOptions, group: &Group, address: &str) -> Result<ProcessGroup, WorkerError> {
    let workers = layout::workers(group, options.flavour != Flavour::Passthrough);
    let samples = options
        .capacity(group)
        .map_err(|why| WorkerError::Start("making room for the samples".to_owned(), why))?;
    let count = workers.len() as u32;
    let layout = BlockLayout { workers: count, callers: group.clients(), samples, words: 1 };
    let (most_calls, most_time) = match options.length {
        MinTime::Iterations(calls) => (u32::try_from(calls).unwrap_or(u32::MAX), u64::MAX),
        // The cast saturates at the maximum of the integer.
        MinTime::Seconds(seconds) => (u32::MAX, (seconds * 1e9) as u64),
    };
    let pool = match group.shape {
        Shape::Services { more_threads, .. } => more_threads,
        _ => POOL,
    };
    let members = workers.iter().map(|worker| worker.member.clone()).collect();
    let patience = Duration::from_secs(options.patience_s.max(1));
    let started = ProcessGroup::start(members, layout, patience, |slot| {
        let number = slot.number;
        let worker = &workers[number as usize];
        let title = worker.member.title.clone();
        let planned = title.replace(' ', "");
        WorkerRole {
            slot,
            title,
            flavour: options.flavour,
            address: address.to_owned(),
            release: options.android.to_string(),
            ready_samples: options.ready_samples(group),
            names: format!("binderperf.worker.{}.", std::process::id()),
            calls: worker.calls.clone(),
            pings: group.shape.label(),
            pool: worker.member.serves.then_some(pool),
            payload: group.payload,
            // Consecutive seeds of this generator give unrelated streams.
            seed: options.seed.wrapping_add(number.into()),
            most_calls,
            most_time,
            fault: options.faults.iter().find(|fault| fault.case == planned).map(|fault| fault.kind),
        }
    });
    let mut workers = started?.calling(group.shape.label());
    workers.prepare()?;
    Ok(workers)
}
