//! Priority-inversion experiment: a real-time caller, its server and CPU hogs on one CPU, with and without
//! inheritance; from a plan to the record.
//! Not here: the definition of inversion (`record::experiments::inversion`), the hogs (`crate::load`).
//!
//! - [`options`]: the validated request.
//! - [`role`]: one process.
//! - `service`: the called service, in either flavour.
//! - `tally`: calls into figures.
//!
//! Facts: figures 3 and 4 of Android's page on Binder performance testing. The experiment cannot hang a
//! machine: the caller sleeps between its calls, the server's work per call is limited, and the kernel ends a
//! real-time process that runs for too long (`RLIMIT_RTTIME`).
//!
//! A server with next to no work often runs at once all the same: a fair scheduler prefers threads that slept
//! more than their share. With some work in each call it waits its turn.

pub mod options;
pub(crate) mod role;
pub(crate) mod service;
mod tally;

use std::time::{Duration, Instant};

use backend::AnyContext;
pub use options::InversionOptions;
use procgroup::{BlockLayout, Member, ProcessGroup, READY, WorkerError};
use record::{Inversion, Measured, Outcome, Run, Sched, Setting};

use crate::brokers::Brokers;
use crate::case;
use crate::load::{LoadKind, LoadSpec, Loads};
use crate::plan::Dialect;
use crate::run::{self, Observer, RunError};
use crate::scheduling::unpack;
use role::{CALLERS_SCHED, InversionRole, Side, WORDS};
use tally::{Calls, Tally};

/// Settings of the servers, one each; the caller is the worker after them.
const SERVED: [Setting; 3] = [Setting::Off, Setting::On, Setting::Raised];
const CALLER: u32 = SERVED.len() as u32;

/// Executes a plan that [`InversionOptions::check`] accepted. SIGINT and SIGTERM stop a running experiment.
/// This program is started again for every process, so it must call [`crate::start_worker`].
///
/// # Errors
/// [`RunError`]: no driver, or the processes did not get ready, such as a caller without the right to a
/// real-time policy. Later failures are part of the record.
pub fn execute(options: &InversionOptions, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let cpu = options.cpu().map_err(RunError::Unready)?;
    let until = Instant::now() + Duration::from_secs(options.time_limit_s);
    let without_ipc = || RunError::Unready("without IPC there is nobody to wait for".to_owned());
    let dialect = options.flavour.dialect(options.android).ok_or_else(without_ipc)?;
    let (prologue, mut run) = run::begin(&options.wanted(), Some(dialect), options.for_record())?;
    let context = prologue.context.as_ref().ok_or_else(without_ipc)?;
    run.cases = (0..)
        .zip(Setting::ALL)
        .map(|(index, setting)| case::new_case(options.case_name(setting), "inversion".to_owned(), index))
        .collect();
    observer.begins(&run);
    let _manager = prologue.manage(options.patience_s)?;
    let workers = start(options, cpu, dialect, context, until);
    let mut workers = workers.map_err(|error| RunError::Unready(error.to_string()))?;
    let caller = unpack(workers.block().notes(CALLER)[CALLERS_SCHED]);
    let mut experiment = Experiment {
        options,
        brokers: &prologue.brokers,
        cpu,
        caller,
        workers,
        step: READY,
        hogs: None,
        tally: Tally::default(),
    };
    let case = |setting| Setting::ALL.iter().position(|known| *known == setting).unwrap_or(0);
    let turns: Vec<usize> = (0..options.rounds).flat_map(order).map(case).collect();
    let brokers = &prologue.brokers;
    run::take_turns(&mut run, observer, &turns, brokers, |run, _, case| Ok(experiment.visit(run, case)))?;
    let Experiment { tally, .. } = experiment;
    run.measured = Measured::Inversion(Inversion {
        flavour: options.flavour.to_string(),
        cpu,
        hogs: options.hogs,
        hog_class: options.hog_class.to_string(),
        caller,
        iterations: options.iterations.into(),
        rounds: options.rounds,
        limit: None,
        rows: Vec::new(),
    });
    tally.conclude(&mut run, |setting| options.means(setting, context));
    prologue.finish(&mut run);
    Ok(run)
}

/// Starts all processes, and returns when the caller is real-time and has called each server.
fn start(
    options: &InversionOptions,
    cpu: u32,
    dialect: Dialect,
    context: &AnyContext,
    until: Instant,
) -> Result<ProcessGroup, WorkerError> {
    let (samples, patience) = (options.iterations as usize, Duration::from_secs(options.patience_s.max(1)));
    let layout = BlockLayout { workers: CALLER + 1, callers: 1, samples, words: WORDS };
    let server = |setting| {
        let title = match setting {
            Setting::Off => "the server without inheritance",
            Setting::On => "the server with inheritance",
            _ => "the raised server",
        };
        Member { title: title.to_owned(), serves: true, calls: false, unit: 0 }
    };
    let caller = Member { title: "the caller".to_owned(), serves: false, calls: true, unit: 0 };
    let members = SERVED.into_iter().map(server).chain([caller]).collect();
    let name = |setting: Setting| format!("binderperf.inversion.{}.{}", std::process::id(), setting.name());
    let started = ProcessGroup::start(members, layout, patience, |slot| {
        let (address, side) = match SERVED.get(slot.number as usize) {
            Some(&setting) => {
                let inherit_rt = InversionOptions::node_inherits(setting, context);
                let (work_ns, raised) = (options.work_us * 1000, setting == Setting::Raised);
                (
                    options.address(setting, context),
                    Side::Server { name: name(setting), inherit_rt, work_ns, raised },
                )
            }
            None => (context.address(), Side::Caller { names: SERVED.map(name), seed: options.seed }),
        };
        InversionRole {
            slot,
            address,
            dialect: dialect.to_string(),
            iterations: options.iterations,
            cpu,
            side,
        }
    });
    let mut workers = started?.until(until);
    workers.prepare()?;
    Ok(workers)
}

/// Order of the settings in a round: the quiet one first, because hogs are started once; the others rotate,
/// so that none is always first among them.
fn order(round: u32) -> [Setting; 4] {
    let mut hogged = [Setting::Off, Setting::On, Setting::Raised];
    hogged.rotate_left(round as usize % 3);
    let [first, second, third] = hogged;
    [Setting::Quiet, first, second, third]
}

/// A running experiment.
struct Experiment<'r> {
    options: &'r InversionOptions,
    brokers: &'r Brokers,
    cpu: u32,
    /// Actual scheduling of the caller.
    caller: Sched,
    workers: ProcessGroup,
    /// Number of the latest step, from which the caller derives the setting.
    step: u32,
    /// Started in each round after the quiet setting.
    hogs: Option<Loads>,
    tally: Tally,
}

impl Experiment<'_> {
    /// Makes the calls of one setting in one round. Returns the reason if no further calls are possible.
    fn visit(&mut self, run: &mut Run, case: usize) -> Option<String> {
        let setting = Setting::ALL[case];
        if setting == Setting::Quiet {
            self.hogs = None;
        } else if self.hogs.is_none() {
            let (count, class) = (self.options.hogs, self.options.hog_class);
            match Loads::start(&[LoadSpec { kind: LoadKind::Cpu, count, class }], Some(&[self.cpu])) {
                Ok(hogs) => self.hogs = Some(hogs),
                Err(why) => return Some(why),
            }
        }
        self.step += 1;
        let broken = self.workers.round(self.step, &mut &*self.brokers).err().map(|error| match error {
            WorkerError::Stopped(_) | WorkerError::TimeLimit => error.to_string(),
            error => format!("{error} (in the setting {})", setting.name()),
        });
        let block = self.workers.block();
        let calls =
            Calls { caller: self.caller, cpu_ns: block.totals(CALLER).cpu, words: block.samples(&[CALLER]) };
        // Without all hogs the result would be that of another experiment.
        let broken = broken.or_else(|| self.hogs.as_ref()?.check().err());
        let numbers = tally::measurement(&calls);
        self.tally.add(setting, &calls);
        let outcome = match (numbers, &broken) {
            (Some(numbers), None) => Outcome::Measured(numbers),
            (partial, Some(why)) => Outcome::Failed { reason: why.clone(), partial },
            (None, None) => Outcome::Failed { reason: "no call was made".to_owned(), partial: None },
        };
        case::add_repetition(&mut run.cases[case], outcome);
        broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_turn_in_each_round_and_none_is_always_first() {
        for round in 0..6 {
            let mut settings = order(round);
            assert_eq!(settings[0], Setting::Quiet);
            settings.sort_unstable();
            assert_eq!(settings, Setting::ALL);
        }
        let firsts = [0, 1, 2].map(|round| order(round)[1]);
        assert_eq!(firsts, [Setting::Off, Setting::On, Setting::Raised]);
    }
}
