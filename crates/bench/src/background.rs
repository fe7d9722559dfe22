//! Background experiment: what it costs that a server, or its caller, is in a scheduling group with little CPU time,
//! and what moving between groups costs; from a plan to the record.
//! Not here: the verdicts (`record::verdict`), the hogs (`crate::load`).
//!
//! - [`options`]: the validated request; `group`: the background.
//! - [`role`]: one process.
//!
//! Facts: no binder driver moves a thread between groups; a driver at most passes nice and real-time priority on. The
//! group change that Android's page ascribes to binder is made outside of it, by libraries and the activity manager.

mod group;
pub mod options;
pub(crate) mod role;

use std::time::{Duration, Instant};

pub use options::{BackgroundOptions, GroupKind};
use procgroup::{BlockLayout, Member, ProcessGroup, READY, WorkerError};
use record::experiments::inversion::lateness::{Lateness, limit};
use record::{Background, BackgroundRow, Ground as Who, Measured, Outcome, Percentiles, Run};

use crate::brokers::Brokers;
use crate::case;
use crate::load::{LoadClass, LoadKind, LoadSpec, Loads};
use crate::measure;
use crate::run::{self, Observer, RunError};
use group::{Ground, Group};
use options::{case_name, settings};
use role::{BackgroundRole, SERVERS, WORDS};

/// The caller is the worker after the servers.
const CALLER: u32 = SERVERS.len() as u32;

/// Executes a plan that [`BackgroundOptions::check`] accepted. SIGINT and SIGTERM stop a running experiment.
/// This program is started again for every process, so it must call [`crate::start_worker`].
///
/// # Errors
/// [`RunError`]: no driver, no right to move to the background and back, or the processes did not get ready. Later
/// failures are part of the record.
pub fn execute(options: &BackgroundOptions, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let until = Instant::now() + Duration::from_secs(options.time_limit_s);
    let without_ipc = || RunError::Unready("without IPC there is no server".to_owned());
    let dialect = options.flavour.dialect(options.android).ok_or_else(without_ipc)?;
    let cpus = sys::sched::affinity().map_err(RunError::Os)?;
    // The first CPU takes the interrupts.
    let cpu = cpus.last().copied().ok_or_else(|| RunError::Unready("there is no usable CPU".to_owned()))?;
    let group = Group::make(options.group).map_err(RunError::Unready)?;
    let (prologue, mut run) = run::begin(&options.wanted, Some(dialect), options.for_record())?;
    run.cases = (0..)
        .zip(settings())
        .map(|(index, setting)| case::new_case(case_name(setting), "background".to_owned(), index))
        .collect();
    observer.begins(&run);
    let _manager = prologue.manage(options.patience_s)?;
    let names = SERVERS.map(|who| format!("binderperf.background.{}.{}", std::process::id(), who.name()));
    let workers = start(options, until, |slot| BackgroundRole {
        slot,
        address: prologue.address(),
        dialect: dialect.to_string(),
        cpu,
        ground: group.ground.clone(),
        names: names.clone(),
        work_ns: options.work_us * 1000,
        iterations: options.iterations,
    });
    let workers = workers.map_err(|error| RunError::Unready(error.to_string()))?;
    let samples = measure_all((options, cpu, &prologue.brokers), workers, &mut run, observer)?;
    run.measured = Measured::Background(Background {
        flavour: options.flavour.to_string(),
        cpu,
        hogs: options.hogs,
        group: group.words.clone(),
        is_cgroup: matches!(group.ground, Ground::Cgroup { .. }),
        work: options.work_us * 1000,
        iterations: options.iterations.into(),
        rounds: options.rounds,
        limit: None,
        rows: Vec::new(),
    });
    conclude(&mut run, samples);
    prologue.finish(&mut run);
    Ok(run)
}

/// Starts all processes, and returns when the caller has found each server.
fn start(
    options: &BackgroundOptions,
    until: Instant,
    role: impl FnMut(procgroup::SlotAddress) -> BackgroundRole,
) -> Result<ProcessGroup, WorkerError> {
    let server = |who: Who| {
        let title = format!("the server of the setting {}", who.name());
        Member { title, serves: true, calls: false, unit: 0 }
    };
    let caller = Member { title: "the caller".to_owned(), serves: false, calls: true, unit: 0 };
    let members = SERVERS.into_iter().map(server).chain([caller]).collect();
    let layout =
        BlockLayout { workers: CALLER + 1, callers: 1, samples: options.iterations as usize, words: WORDS };
    let patience = Duration::from_secs(options.patience_s.max(1));
    let mut group = ProcessGroup::start(members, layout, patience, role)?.until(until);
    group.prepare()?;
    Ok(group)
}

/// Measures all settings in all rounds; returns the words of all calls, by setting. All processes have ended then.
fn measure_all(
    (options, cpu, brokers): (&BackgroundOptions, u32, &Brokers),
    mut workers: ProcessGroup,
    run: &mut Run,
    observer: &mut dyn Observer,
) -> Result<Vec<Vec<u64>>, RunError> {
    let all: Vec<(Who, bool)> = settings().collect();
    let mut samples = vec![Vec::new(); all.len()];
    let turns: Vec<usize> = (0..options.rounds).flat_map(|_| 0..all.len()).collect();
    let (mut step, mut hogs) = (READY, None);
    run::take_turns(run, observer, &turns, brokers, |run, _, case| {
        if !all[case].1 {
            hogs = None;
        } else if hogs.is_none() {
            let load = LoadSpec { kind: LoadKind::Cpu, count: options.hogs, class: LoadClass::Other };
            match Loads::start(&[load], Some(&[cpu])) {
                Ok(loads) => hogs = Some(loads),
                Err(why) => return Ok(Some(why)),
            }
        }
        step += 1;
        let broken = workers.round(step, &mut &*brokers).err();
        let broken = broken.map(|error| error.to_string()).or_else(|| hogs.as_ref()?.check().err());
        let block = workers.block();
        let (words, cpu_ns) = (block.samples(&[CALLER]), block.totals(CALLER).cpu);
        let times: Vec<u64> = words.iter().step_by(WORDS).copied().collect();
        let outcome = match (measure::of_samples(&times, cpu_ns), &broken) {
            (Some(numbers), None) => Outcome::Measured(numbers),
            (partial, Some(why)) => Outcome::Failed { reason: why.clone(), partial },
            (None, None) => Outcome::Failed { reason: "no call was made".to_owned(), partial: None },
        };
        samples[case].extend(words);
        case::add_repetition(&mut run.cases[case], outcome);
        Ok(broken)
    })?;
    Ok(samples)
}

/// Adds the summary of all calls to the run.
fn conclude(run: &mut Run, samples: Vec<Vec<u64>>) {
    let Measured::Background(experiment) = &mut run.measured else { return };
    let column = |words: &[u64], column: usize| -> Vec<u64> {
        words.iter().skip(column).step_by(WORDS).copied().collect()
    };
    let times: Vec<Vec<u64>> = samples.iter().map(|words| column(words, 0)).collect();
    let reference = settings().position(|setting| setting == (Who::Foreground, true));
    let reference = reference.map(|at| times[at].clone()).unwrap_or_default();
    experiment.limit = Percentiles::of(&mut reference.clone()).map(|usual| limit(usual.p50));
    for ((setting, words), mut times) in settings().zip(&samples).zip(times) {
        let (ground, hogs) = setting;
        let late =
            experiment.limit.map(|limit| (Lateness::of(&times, limit), Lateness::of(&reference, limit)));
        let compared = late.filter(|_| hogs && ground != Who::Foreground);
        experiment.rows.push(BackgroundRow {
            ground,
            hogs,
            case: case_name(setting),
            calls: times.len() as u64,
            late: late.map_or(0, |(own, _)| own.late),
            waits: compared.and_then(|(own, reference)| own.is_inverted(reference)),
            moves: (ground == Who::Moves).then(|| Percentiles::of(&mut column(words, 1))).flatten(),
            percentiles: Percentiles::of(&mut times),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::new_run;

    #[test]
    fn a_setting_waits_if_many_more_of_its_calls_are_late_than_in_the_foreground() {
        let mut run = new_run(record::Plan::default(), None, host::class());
        run.measured = Measured::Background(Background {
            flavour: "binder".to_owned(),
            cpu: 0,
            hogs: 1,
            group: "nice 10".to_owned(),
            is_cgroup: false,
            work: 1_000_000,
            iterations: 30,
            rounds: 1,
            limit: None,
            rows: Vec::new(),
        });
        let words = |(ground, hogs): (Who, bool)| {
            let took = if hogs && ground == Who::Background { 20_000_000 } else { 1_100_000 };
            [took, 8_000].repeat(30)
        };
        conclude(&mut run, settings().map(words).collect());
        let experiment = run.background().expect("the experiment");
        assert_eq!(experiment.limit, Some(2_200_000));
        let waits = |ground, hogs| experiment.row(ground, hogs).expect("a row").waits;
        assert_eq!(waits(Who::Background, true), Some(true));
        assert_eq!(waits(Who::Moves, true), Some(false));
        assert_eq!((waits(Who::Foreground, true), waits(Who::Background, false)), (None, None));
        let moves = experiment.row(Who::Moves, false).expect("a row").moves.expect("it moves");
        assert_eq!(moves.p50, 8_000);
    }
}
