//! Overload experiment: pairs of client and server that call at the same moments, real-time and not, up to more of
//! them than CPUs; from a plan to the record.
//! Not here: the verdict (`record::verdict`), grids of other latency tests (`crate::sweep`).
//!
//! - [`options`]: the validated request.
//! - [`role`]: one process.
//!
//! Facts: Android's page on Binder performance testing: with n CPUs at most n real-time threads run at once, and others
//! may miss deadlines. Servers are raised by hand, not by inheritance, so the result is the same on every driver. At
//! any moment one side of a pair runs, so a pair counts as one thread. The experiment cannot hang a machine: pairs
//! sleep between their calls, and the kernel ends a real-time process that runs for too long (`RLIMIT_RTTIME`).

pub mod options;
pub(crate) mod role;

use std::time::{Duration, Instant};

pub use options::OverloadOptions;
use procgroup::{BlockLayout, Member, ProcessGroup, READY, WorkerError};
use record::{Class, Measured, Outcome, Overload, OverloadRow, Percentiles, Run};

use crate::brokers::Brokers;
use crate::case;
use crate::measure;
use crate::plan::Dialect;
use crate::run::{self, Observer, RunError};
use crate::scheduling::try_fifo;
use host::realtime::HIGHEST;
use options::case_name;
use role::{OverloadRole, Side};

/// Executes a plan that [`OverloadOptions::check`] accepted. SIGINT and SIGTERM stop a running experiment.
/// This program is started again for every process, so it must call [`crate::start_worker`]. Without the right to a
/// real-time policy only ordinary pairs are measured.
///
/// # Errors
/// [`RunError`]: no driver, or the processes did not get ready. Later failures are part of the record.
pub fn execute(options: &OverloadOptions, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let cpus = options.check().map_err(RunError::Unready)?;
    let until = Instant::now() + Duration::from_secs(options.time_limit_s);
    let without_ipc = || RunError::Unready("without IPC there are no pairs".to_owned());
    let dialect = options.flavour.dialect(options.android).ok_or_else(without_ipc)?;
    let (prologue, mut run) = run::begin(&options.wanted, Some(dialect), options.for_record())?;
    let realtime = try_fifo(HIGHEST);
    let points: Vec<(Class, u32)> = Class::BOTH
        .into_iter()
        .filter(|class| *class == Class::Other || realtime.is_ok())
        .flat_map(|class| options.pairs(cpus.len() as u32).into_iter().map(move |pairs| (class, pairs)))
        .collect();
    run.cases = (0..)
        .zip(&points)
        .map(|(index, (class, pairs))| {
            case::new_case(case_name(*class, *pairs), "overload".to_owned(), index)
        })
        .collect();
    observer.begins(&run);
    let _manager = prologue.manage(options.patience_s)?;
    let crew = Crew { options, dialect, address: prologue.address(), cpus: &cpus, points: &points };
    let workers = crew.start(until).map_err(|error| RunError::Unready(error.to_string()))?;
    let mut times = vec![Vec::new(); points.len()];
    measure_all((options, &prologue.brokers), &points, workers, &mut times, &mut run, observer)?;
    run.measured = Measured::Overload(Overload {
        flavour: options.flavour.to_string(),
        work: options.work_us * 1000,
        deadline: options.deadline_us * 1000,
        period: options.period_us * 1000,
        iterations: options.iterations.into(),
        rounds: options.rounds,
        realtime: realtime.as_ref().ok().copied(),
        realtime_problem: realtime.err(),
        rows: points.iter().zip(times).map(|(point, times)| row(*point, times, options)).collect(),
        cpus,
    });
    prologue.finish(&mut run);
    Ok(run)
}

/// Measures all points in all rounds; collects the time of each call by point.
fn measure_all(
    (options, brokers): (&OverloadOptions, &Brokers),
    points: &[(Class, u32)],
    mut workers: ProcessGroup,
    times: &mut [Vec<u64>],
    run: &mut Run,
    observer: &mut dyn Observer,
) -> Result<(), RunError> {
    let callers = workers.callers();
    let turns: Vec<usize> = (0..options.rounds).flat_map(|_| 0..points.len()).collect();
    let mut step = READY;
    run::take_turns(run, observer, &turns, brokers, |run, _, case| {
        step += 1;
        let broken = workers.round(step, &mut &*brokers).err().map(|error| error.to_string());
        let block = workers.block();
        let calling = &callers[..points[case].1 as usize];
        let cpu_ns = calling.iter().map(|caller| block.totals(*caller).cpu).sum();
        let samples = block.samples(calling);
        let outcome = match (measure::of_samples(&samples, cpu_ns), &broken) {
            (Some(numbers), None) => Outcome::Measured(numbers),
            (partial, Some(why)) => Outcome::Failed { reason: why.clone(), partial },
            (None, None) => Outcome::Failed { reason: "no call was made".to_owned(), partial: None },
        };
        times[case].extend(samples);
        case::add_repetition(&mut run.cases[case], outcome);
        Ok(broken)
    })
}

fn row((class, pairs): (Class, u32), mut times: Vec<u64>, options: &OverloadOptions) -> OverloadRow {
    let deadline = options.deadline_us * 1000;
    OverloadRow {
        class,
        pairs,
        case: case_name(class, pairs),
        calls: times.len() as u64,
        misses: times.iter().filter(|time| **time > deadline).count() as u64,
        percentiles: Percentiles::of(&mut times),
    }
}

/// State that all processes of the experiment share.
struct Crew<'c> {
    options: &'c OverloadOptions,
    dialect: Dialect,
    address: String,
    cpus: &'c [u32],
    /// Class and number of pairs of each point.
    points: &'c [(Class, u32)],
}

impl Crew<'_> {
    /// Starts all processes, and returns when each caller has called its servers: first the servers of each class,
    /// one for each pair, then the callers.
    fn start(&self, until: Instant) -> Result<ProcessGroup, WorkerError> {
        let pairs = self.points.iter().map(|(_, pairs)| *pairs).max().unwrap_or(0);
        let mut classes: Vec<Class> = self.points.iter().map(|(class, _)| *class).collect();
        classes.dedup();
        let servers = pairs * classes.len() as u32;
        // Each process has two pipes and its shared memory; embedded channels take more.
        let _ = sys::limits::raise_open_files(u64::from(servers + pairs) * 16 + 64);
        let server = |number: u32| Member {
            title: format!("server {}", number % pairs),
            serves: true,
            calls: false,
            unit: 0,
        };
        let caller = |pair| Member { title: format!("caller {pair}"), serves: false, calls: true, unit: 0 };
        let members = (0..servers).map(server).chain((0..pairs).map(caller)).collect();
        let layout = BlockLayout {
            workers: servers + pairs,
            callers: pairs,
            samples: self.options.iterations as usize,
            words: 1,
        };
        let name = |number: u32| format!("binderperf.overload.{}.{number}", std::process::id());
        let patience = Duration::from_secs(self.options.patience_s.max(1));
        let group = ProcessGroup::start(members, layout, patience, |slot| {
            let side = match slot.number {
                number if number < servers => Side::Server {
                    name: name(number),
                    class: classes[(number / pairs) as usize],
                    work_ns: self.options.work_us * 1000,
                },
                number => self.caller(number - servers, pairs, &classes, name),
            };
            OverloadRole {
                slot,
                address: self.address.clone(),
                dialect: self.dialect.to_string(),
                cpus: self.cpus.to_vec(),
                side,
            }
        });
        let mut group = group?.until(until);
        group.prepare()?;
        Ok(group)
    }

    fn caller(&self, pair: u32, pairs: u32, classes: &[Class], name: impl Fn(u32) -> String) -> Side {
        let server = |(at, class): (u32, &Class)| (*class, name(at * pairs + pair), at * pairs + pair);
        Side::Caller {
            pair,
            servers: (0..).zip(classes).map(server).collect(),
            steps: (0..self.options.rounds).flat_map(|_| self.points.iter().copied()).collect(),
            iterations: self.options.iterations,
            period_ns: self.options.period_us * 1000,
        }
    }
}
