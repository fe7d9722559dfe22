//! A load for its own sake: its processes make their steps, and report the time of each call.
//! Not here: judging it by a trace (crate `workload`), measuring scenarios (`conductor`).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ftrace::marker::Marker;
use ipc::Release;
use procgroup::Watchdog;
use record::{Case, Outcome, Run};
use workload::Workload;
use workload::description::{Step, Turns};
use workload::recording::SUBJECT;

use super::group::{Group, Setting};
use super::place::Sample;
use super::program::Program;
use crate::case;
use crate::measure;
use crate::plan::{Dialect, Wanted};
use crate::run::{self, Observer, RunError};

/// Interval of the looks at a load that is carried out.
const LOOK: Duration = Duration::from_millis(50);
/// Processes that a machine is given for each of its CPUs, at most.
const MOST_FOR_A_CPU: u32 = 500;

/// How to carry a load out.
#[derive(Clone, Debug)]
pub struct WorkloadOptions {
    /// The load, without steps of a measuring process.
    pub workload: Workload,
    /// How many such loads run at the same time.
    pub scale: u32,
    /// How often it is carried out.
    pub rounds: u32,
    /// Duration of a load whose threads have no end, in seconds.
    pub seconds: f64,
    /// Driver and context.
    pub wanted: Wanted,
    /// Android release of the service manager's protocol.
    pub android: Release,
    /// Time limit without a served call beyond the longest sleep of the load, in seconds.
    pub patience_s: u64,
    /// Time limit of all, in seconds.
    pub time_limit_s: u64,
    /// Command line, for the record.
    pub command_line: Vec<String>,
}

impl WorkloadOptions {
    /// Checks that the load can be carried out here.
    ///
    /// # Errors
    /// Why not, as a message for the user.
    pub fn check(&self) -> Result<(), String> {
        self.program().map(drop)
    }

    /// The load at its scale, numbered.
    ///
    /// # Errors
    /// Why it cannot be carried out here, as a message for the user.
    fn program(&self) -> Result<(Workload, Program), String> {
        let mut workload = self.workload.clone();
        if workload.measured.is_some() {
            let why = "the description has steps of a measuring process (once, before, measure, after)";
            return Err(format!("{why}: leave them out, or use `scenario`"));
        }
        let mut processes = 0_u64;
        for process in &mut workload.processes {
            process.copies = process.copies.saturating_mul(self.scale);
            processes += u64::from(process.copies);
        }
        let most = u64::from(MOST_FOR_A_CPU * sys::sched::usable_cpus());
        if processes > most {
            return Err(format!(
                "{processes} processes are too many here: {most} at most, {MOST_FOR_A_CPU} for each CPU"
            ));
        }
        if workload.threads.iter().any(|thread| thread.turns == Turns::OnRelease) {
            return Err("a thread waits for a release, which only a measuring process gives".to_owned());
        }
        let program = Program::new(&workload)?;
        Ok((workload, program))
    }

    fn for_record(&self) -> record::Plan {
        record::Plan {
            test: "workload".to_owned(),
            filter: String::new(),
            min_time: String::new(),
            min_warmup_s: 0.0,
            repetitions: self.rounds,
            random_interleaving: false,
            seed: None,
            controls: false,
            driver: self.wanted.driver.to_string(),
            device: self.wanted.device.to_string(),
            placement: "default".to_owned(),
            command_line: self.command_line.clone(),
        }
    }
}

/// Calls from one process to another, as a case.
type Pair = (usize, usize, bool);

/// Carries a load out. This program is started again for every process, so it must call [`crate::start_worker`].
///
/// # Errors
/// [`RunError`]: no driver, or the load cannot be carried out here. What fails later is part of the record.
pub fn execute(options: &WorkloadOptions, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let (workload, program) = options.program().map_err(RunError::Unready)?;
    let dialect = Dialect::Binder(options.android);
    let (prologue, mut run) = run::begin(&options.wanted, Some(dialect), options.for_record())?;
    let pairs = pairs(&program);
    run.cases = (0..).zip(&pairs).map(|(index, pair)| pair_case(&workload, *pair, index)).collect();
    let threads: u64 =
        program.threads.iter().map(|thread| u64::from(workload.processes[thread.process].copies)).sum();
    run.overloaded = threads > u64::from(sys::sched::usable_cpus());
    let _ = sys::limits::raise_open_files(4096);
    let until = Instant::now() + Duration::from_secs(options.time_limit_s);
    observer.begins(&run);
    let _manager = prologue.manage(options.patience_s)?;
    let context =
        prologue.context.clone().ok_or_else(|| RunError::Unready("no context was opened".to_owned()))?;
    let text = workload::print(&workload);
    let mut program = Some(program);
    for round in 0..options.rounds {
        let setting = Setting { context: context.clone(), dialect, sampled: true, fault: None };
        observer.starts(&run, 0, round as usize, options.rounds as usize);
        let program =
            program.take().map_or_else(|| Program::new(&workload), Ok).map_err(RunError::Unready)?;
        let samples = carry_out(options, &text, program, setting, until, observer);
        let last = prologue.brokers.end_of_run(&mut run, "the load");
        match samples {
            Ok(samples) => keep(&mut run, &pairs, &samples),
            Err(reason) => {
                for case in &mut run.cases {
                    case::add_repetition(case, Outcome::Failed { reason: reason.clone(), partial: None });
                }
                run.incomplete_reason = Some(reason);
            }
        }
        run.incomplete_reason = last.or(run.incomplete_reason.take());
        if run.incomplete_reason.is_some() {
            break;
        }
    }
    run.complete = run.incomplete_reason.is_none();
    prologue.finish(&mut run);
    Ok(run)
}

/// The pairs of processes between which calls go, in the order of the first call.
fn pairs(program: &Program) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for site in &program.sites {
        let pair = (site.from, site.call.to, site.call.oneway);
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs
}

fn pair_case(workload: &Workload, (from, to, oneway): Pair, index: u32) -> Case {
    let way = if oneway { "/oneway" } else { "" };
    let name = format!("{}:{}{way}", workload.name(from), workload.name(to));
    case::new_case(name, "workload".to_owned(), index)
}

/// Starts the processes, waits until they have made their turns, and collects the times of their calls, by pair.
fn carry_out(
    options: &WorkloadOptions,
    text: &str,
    program: Program,
    setting: Setting,
    until: Instant,
    observer: &mut dyn Observer,
) -> Result<BTreeMap<Pair, Vec<u64>>, String> {
    let watchdog = Watchdog::new(Duration::from_secs(options.patience_s.max(1)));
    let group = Group::start(text, program, setting, watchdog.watched())?;
    group.find(|| Ok::<(), String>(()))?;
    let marker = Marker::into(None);
    marker.mark(SUBJECT, format_args!("load=begin"));
    group.run();
    await_end(options, &group, until, observer)?;
    marker.mark(SUBJECT, format_args!("load=end"));
    let mut times: BTreeMap<Pair, Vec<u64>> = BTreeMap::new();
    for report in group.end()? {
        let samples: Vec<Sample> = serde_json::from_str(&report).map_err(|_| match report.as_str() {
            "" => "a process ended without a report".to_owned(),
            why => format!("a process ended: {why}"),
        })?;
        for (site, ns) in samples {
            let site =
                group.program.sites.get(site as usize).ok_or("a process reports a call that is none")?;
            times.entry((site.from, site.call.to, site.call.oneway)).or_default().push(ns);
        }
    }
    Ok(times)
}

/// Waits until all threads that end have ended; without any, for the time of the options.
fn await_end(
    options: &WorkloadOptions,
    group: &Group,
    until: Instant,
    observer: &mut dyn Observer,
) -> Result<(), String> {
    let ends = group.program.threads.iter().any(|thread| matches!(thread.turns, Turns::Times(_)));
    let time = Duration::from_secs_f64(options.seconds.max(0.0));
    let patience = Duration::from_secs(options.patience_s).saturating_add(longest_pause(&options.workload));
    let (start, all) = (Instant::now(), if ends { calls(&group.program) } else { 0 });
    let (mut last, mut moved) = (0, Instant::now());
    loop {
        if let Some(signal) = sys::stop_signal::received() {
            return Err(format!("stopped by {signal}"));
        }
        if let Some(reason) = group.reason() {
            return Err(reason);
        }
        if if ends { group.is_done() } else { start.elapsed() >= time } {
            return Ok(());
        }
        let served = group.served();
        if served != last {
            (last, moved) = (served, Instant::now());
            observer.advanced(served.min(all.max(served)), all.max(served));
        }
        if Instant::now() >= until {
            return Err(format!("the time limit of {} s is over", options.time_limit_s));
        }
        if sys::patience::is_over(moved, patience) {
            let waited = moved.elapsed().as_secs();
            return Err(format!(
                "no call was served in {waited} s, after {served}: do its calls wait for each other?"
            ));
        }
        std::thread::sleep(LOOK);
    }
}

/// The longest time in which a load may make no call on purpose.
fn longest_pause(workload: &Workload) -> Duration {
    fn longest(steps: &[Step]) -> u64 {
        let of = |step: &Step| match step {
            Step::Sleep(ns) | Step::Work(ns) | Step::At(ns) => *ns,
            Step::Call(call) => longest(&call.served),
            _ => 0,
        };
        steps.iter().map(of).max().unwrap_or(0)
    }
    let threads = workload.threads.iter().map(|thread| longest(&thread.steps));
    Duration::from_nanos(threads.max().unwrap_or(0))
}

/// Calls that a load makes whose threads end.
fn calls(program: &Program) -> u64 {
    fn of(program: &Program, acts: &[super::program::Act]) -> u64 {
        let calls = acts.iter().map(|act| match act {
            super::program::Act::Call(site) => {
                let site = &program.sites[*site];
                u64::from(site.call.times).saturating_mul(1 + of(program, &site.served))
            }
            super::program::Act::Other(_) => 0,
        });
        calls.fold(0, u64::saturating_add)
    }
    let threads = program.threads.iter().map(|thread| {
        let turns = if let Turns::Times(turns) = thread.turns { turns } else { 0 };
        let copies = u64::from(program.processes[thread.process].copies);
        of(program, &thread.acts).saturating_mul(turns).saturating_mul(copies)
    });
    threads.fold(0, u64::saturating_add)
}

/// Adds a round's results to the record.
fn keep(run: &mut Run, pairs: &[Pair], times: &BTreeMap<Pair, Vec<u64>>) {
    for (case, pair) in run.cases.iter_mut().zip(pairs) {
        let measured = times.get(pair).and_then(|times| measure::of_samples(times, 0));
        let outcome = match measured {
            Some(measured) => Outcome::Measured(measured),
            None => Outcome::Failed { reason: "no such call was made".to_owned(), partial: None },
        };
        case::add_repetition(case, outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: &str = "binderperf workload 1\nprocess a copies 3\nprocess b pool 2\nthread a times 5\n  call b 4>8 times 2\n    \
        oneway a 16\n  sleep 3s\nthread b forever\n  sleep 7s\n";

    fn options(text: &str, scale: u32) -> WorkloadOptions {
        WorkloadOptions {
            workload: workload::text::parse(text).expect("valid"),
            scale,
            rounds: 1,
            seconds: 1.0,
            wanted: Wanted::default(),
            android: Release::default(),
            patience_s: 30,
            time_limit_s: 600,
            command_line: Vec::new(),
        }
    }

    #[test]
    fn calls_are_counted_with_those_within_them_and_at_scale() {
        let (workload, program) = options(LOAD, 2).program().expect("fine");
        assert_eq!(calls(&program), 6 * 5 * 2 * 2);
        assert_eq!(workload.processes[0].copies, 6);
        assert_eq!(longest_pause(&workload), Duration::from_secs(7));
        assert_eq!(pairs(&program), [(0, 1, false), (1, 0, true)]);
    }

    #[test]
    fn loads_that_cannot_be_carried_out_are_refused() {
        let many = options(LOAD, 100_000).program().expect_err("too many");
        assert!(many.contains("too many here"), "{many}");
        let measured = format!("{LOAD}measure\n  list\n");
        assert!(options(&measured, 1).program().expect_err("measures").contains("measuring process"));
        let released = LOAD.replace("forever", "on-release");
        assert!(options(&released, 1).program().expect_err("waits").contains("release"));
    }
}
