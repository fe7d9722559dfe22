//! A load for its own sake: its processes make their steps, and report the time of each call.
//! Not here: its processes (`crate::workload`), judging it by a trace (crate `workload`), scenarios (`crate::run`).

use std::time::{Duration, Instant};

use ::workload::Workload;
use ::workload::description::{Scheduling, Step, Turns};
use ::workload::recording::SUBJECT;
use ::workload::text::{MEASURING, MOST_PROCESSES};
use ftrace::marker::Marker;
use ipc::Release;
use procgroup::Watchdog;
use record::{Case, Distribution, Finding, Measurement, Outcome, Run, Severity};

use crate::case;
use crate::plan::{Dialect, Wanted};
use crate::run::{self, Observer, RunError};
use crate::scheduling::try_fifo;
use crate::workload::group::{Group, Setting};
use crate::workload::place::Report;
use crate::workload::program::{Act, Pair, Program};

/// Interval of the looks at a load that is carried out.
const LOOK: Duration = Duration::from_millis(50);
/// Processes that a machine is given for each of its CPUs, at most.
const MOST_FOR_A_CPU: u32 = 500;
/// Name of the finding on refused calls.
const REFUSED: &str = "refused";

/// How to carry a load out.
#[derive(Clone, Debug)]
pub struct WorkloadOptions {
    /// The load, without steps of a measuring process.
    pub workload: Workload,
    /// How many such loads run at the same time.
    pub scale: u32,
    /// Whether threads have the scheduling of the description; else that of this process.
    pub with_scheduling: bool,
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
        let (workload, _) = self.program()?;
        let realtime = workload.threads.iter().filter_map(|thread| match thread.scheduling {
            Scheduling::Fifo(priority) | Scheduling::RoundRobin(priority) => Some(priority),
            _ => None,
        });
        if let Some(Err(why)) = realtime.max().map(try_fifo) {
            return Err(format!(
                "the load has real-time threads: {why}; --no-scheduling leaves priorities out"
            ));
        }
        Ok(())
    }

    /// The load at its scale, numbered.
    ///
    /// # Errors
    /// Why it cannot be carried out here, as a message for the user.
    fn program(&self) -> Result<(Workload, Program), String> {
        let mut workload = self.workload.clone();
        if workload.measured.is_some() || workload.processes.iter().any(|process| process.name == MEASURING) {
            let why = "the description has a measuring process or steps of it (once, before, measure, after)";
            return Err(format!("{why}, and nothing is measured but the calls of all"));
        }
        let mut processes = 0_u64;
        for process in &mut workload.processes {
            process.copies = process.copies.saturating_mul(self.scale);
            processes += u64::from(process.copies);
        }
        let most = u64::from(MOST_FOR_A_CPU * sys::sched::usable_cpus()).min(MOST_PROCESSES);
        if processes > most {
            return Err(format!(
                "{processes} processes are too many here: {most} at most, {MOST_FOR_A_CPU} for each CPU"
            ));
        }
        let threads = threads(&workload);
        if threads > 4 * most {
            return Err(format!("{threads} threads are too many here: {} at most", 4 * most));
        }
        for thread in &mut workload.threads {
            if thread.turns == Turns::OnRelease {
                return Err("a thread waits for a release, which only a measuring process gives".to_owned());
            }
            if !self.with_scheduling {
                thread.scheduling = Scheduling::Inherited;
            }
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

/// Threads of a load that make calls of their own accord.
fn threads(workload: &Workload) -> u64 {
    let copies = |process: usize| workload.processes.get(process).map_or(0, |process| process.copies.into());
    workload.threads.iter().map(|thread| copies(thread.process)).fold(0, u64::saturating_add)
}

/// Carries a load out. This program is started again for every process, so it must call [`crate::start_worker`].
///
/// # Errors
/// [`RunError`]: no driver, or the load cannot be carried out here. What fails later is part of the record.
pub fn execute(options: &WorkloadOptions, observer: &mut dyn Observer) -> Result<Run, RunError> {
    let (workload, program) = options.program().map_err(RunError::Unready)?;
    let dialect = Dialect::Binder(options.android);
    let (prologue, mut run) = run::begin(&options.wanted, Some(dialect), options.for_record())?;
    run.cases = (0..).zip(&program.pairs).map(|(index, pair)| pair_case(&workload, *pair, index)).collect();
    run.overloaded = threads(&workload) > u64::from(sys::sched::usable_cpus());
    let _ = sys::limits::raise_open_files(4096);
    let until = Instant::now() + Duration::from_secs(options.time_limit_s);
    observer.begins(&run);
    let _manager = prologue.manage(options.patience_s)?;
    let context =
        prologue.context.clone().ok_or_else(|| RunError::Unready("no context was opened".to_owned()))?;
    let text = ::workload::print(&workload);
    for round in 0..options.rounds {
        let setting = Setting { context: context.clone(), dialect, sampled: true, fault: None };
        observer.starts(&run, 0, round as usize, options.rounds as usize);
        let program = Program::new(&workload).map_err(RunError::Unready)?;
        // A trace is judged by the first round.
        let marked = round == 0;
        let totals = carry_out((options, marked), &text, program, setting, until, observer);
        let lost = prologue.brokers.end_of_run(&mut run, "the load");
        match totals {
            Ok(totals) => keep(&mut run, &totals),
            Err(reason) => {
                for case in &mut run.cases {
                    case::add_repetition(case, Outcome::Failed { reason: reason.clone(), partial: None });
                }
                run.incomplete_reason = Some(reason);
            }
        }
        run.incomplete_reason = lost.or(run.incomplete_reason.take());
        if run.incomplete_reason.is_some() {
            break;
        }
    }
    run.complete = run.incomplete_reason.is_none();
    prologue.finish(&mut run);
    Ok(run)
}

fn pair_case(workload: &Workload, Pair { from, to, oneway }: Pair, index: u32) -> Case {
    let way = if oneway { "/oneway" } else { "" };
    let name = format!("{}:{}{way}", workload.name(from), workload.name(to));
    case::new_case(name, "workload".to_owned(), index)
}

/// The calls of one pair in a round.
#[derive(Debug, Default)]
struct Total {
    parts: Vec<Distribution>,
    cpu_ns: u64,
    refused: u64,
}

/// Starts the processes, waits until they have made their turns, and adds up their calls, by pair.
fn carry_out(
    (options, marked): (&WorkloadOptions, bool),
    text: &str,
    program: Program,
    setting: Setting,
    until: Instant,
    observer: &mut dyn Observer,
) -> Result<Vec<Total>, String> {
    let watchdog = Watchdog::new(Duration::from_secs(options.patience_s.max(1)));
    let group = Group::start(text, program, setting, watchdog.watched())?;
    group.find(|| Ok::<(), String>(()))?;
    let marker = Marker::into(None);
    if marked {
        marker.mark(SUBJECT, format_args!("load=begin"));
    }
    group.run();
    await_end(options, &group, until, observer)?;
    if marked {
        marker.mark(SUBJECT, format_args!("load=end"));
    }
    let mut totals: Vec<Total> = group.program.pairs.iter().map(|_| Total::default()).collect();
    for text in group.end()? {
        let reports: Vec<Report> = serde_json::from_str(&text).map_err(|_| {
            group.reason_soon().unwrap_or_else(|| "a process ended without its report".to_owned())
        })?;
        for report in reports {
            let total =
                totals.get_mut(report.pair).ok_or("a process reports calls that are none of the load")?;
            total.parts.push(report.samples);
            total.cpu_ns += report.cpu_ns;
            total.refused += report.refused;
        }
    }
    Ok(totals)
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
    let (mut last, mut moved) = ((0, 0), Instant::now());
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
        let now = (group.calls(), group.steps());
        if now != last {
            (last, moved) = (now, Instant::now());
            observer.advanced(now.0, all.max(now.0));
        }
        if Instant::now() >= until {
            return Err(format!("the time limit of {} s is over", options.time_limit_s));
        }
        if sys::patience::is_over(moved, patience) {
            let (waited, calls) = (moved.elapsed().as_secs(), now.0);
            return Err(format!(
                "no call was served in {waited} s, after {calls}: do its calls wait for each other?"
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
        // Those of a receiver follow each other without a sign of life.
        steps.iter().map(of).fold(0, u64::saturating_add)
    }
    let threads = workload.threads.iter().flat_map(|thread| &thread.steps);
    Duration::from_nanos(threads.map(|step| longest(std::slice::from_ref(step))).max().unwrap_or(0))
}

/// Calls that a load makes whose threads end.
fn calls(program: &Program) -> u64 {
    fn of(program: &Program, acts: &[Act]) -> u64 {
        let calls = acts.iter().map(|act| match act {
            Act::Call(site) => {
                let site = &program.sites[*site];
                u64::from(site.call.times).saturating_mul(of(program, &site.served).saturating_add(1))
            }
            Act::Other(_) => 0,
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
fn keep(run: &mut Run, totals: &[Total]) {
    let mut findings = Vec::new();
    for (case, total) in run.cases.iter_mut().zip(totals) {
        if total.refused > 0 {
            findings.push(refusals(&case.name, total));
        }
        let samples = Distribution::merged(&total.parts).filter(|samples| samples.count > 0);
        let outcome = match samples {
            Some(samples) => Outcome::Measured(Measurement {
                iterations: samples.count,
                real_total: samples.sum,
                cpu_total: total.cpu_ns,
                samples,
                ..Measurement::default()
            }),
            None => Outcome::Failed { reason: "no such call was taken".to_owned(), partial: None },
        };
        case::add_repetition(case, outcome);
    }
    run.findings.extend(findings);
}

/// Finding on calls that the driver refused, as the load allows.
fn refusals(pair: &str, total: &Total) -> Finding {
    let taken: u64 = total.parts.iter().map(|part| part.count).sum();
    let (refused, all) = (total.refused, total.refused + taken);
    let text = format!("{pair}: {refused} of {all} calls were refused, and are in no time");
    Finding {
        effect: Some("the load is less than described".to_owned()),
        fix: Some("lower --scale, or look with `explain` for who fills whose buffers".to_owned()),
        ..Finding::new(REFUSED, Severity::Warning, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: &str = "binderperf workload 1\nprocess a copies 3\nprocess b pool 2\nthread a times 5\n  call b 4>8 times 2\n    \
        oneway a 16\n  sleep 3s\nthread b forever\n  sleep 7s\n";

    fn options(text: &str, scale: u32) -> WorkloadOptions {
        WorkloadOptions {
            workload: ::workload::text::parse(text).expect("valid"),
            scale,
            with_scheduling: true,
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
        let pair = |from, to, oneway| Pair { from, to, oneway };
        assert_eq!(program.pairs, [pair(0, 1, false), pair(1, 0, true)]);
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
