//! Accuracy of the trace analysis: records latency tests with a known cause of slowness, and counts correct
//! verdicts and false alarms.
//! Not here: the latency test (`crate::latency`), verdicts (the crate `trace`).
//!
//! - [`cause`]: the causes, and the verdicts that name them.
//!
//! The caller's own clock, never the trace, tells which calls the cause affected: those of the real-time
//! caller that took sufficiently longer than the median without it. If the cause came before or after a call
//! by that clock, it did not affect the call. Without the cause, a call that long had an unknown disturbance,
//! and is not counted. A call that lost its CPU to the host counts neither way: the trace proves it, or the machine had
//! steal time and the call computed longer at a stretch than any injected work, or its threads were idle by their own
//! clocks, which stop with the CPU, while they ran by the trace.

pub mod cause;

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use ::trace::cause::Label;
use ::trace::verdict::{Analysis, AnalysisOptions, Analyzer, CallSegment, Filter, SlowCall};
use backend::AnyContext;
pub use cause::Cause;
use record::Class;

use super::{CheckError, RecordingFolder, read_record, record_own, unready, usual_categories};
use crate::plan::{Dialect, Driver, Wanted};
use crate::run;

/// Minimum share of the affected calls whose verdict names the cause.
pub const LEAST_NAMED: f64 = 0.95;
/// Maximum share of false alarms among the other calls.
pub const MOST_ALARMS: f64 = 0.02;
/// Minimum number of affected calls for a result.
pub const LEAST_AFFECTED: usize = 10;
/// Minimum share of a call's time for which its CPU was taken, in a call that does not count.
const LEAST_STOLEN: f64 = 0.1;
/// Maximum number of stored wrong verdicts.
const EXAMPLES: usize = 3;
/// Trace buffer per CPU, in KB.
const BUFFER_KB: u64 = 8192;

/// Ends of the names of files that are kept: without a cause, and with it.
const WAYS: [&str; 2] = ["without", "with"];

/// Options of an accuracy check.
#[derive(Clone, Debug)]
pub struct AccuracyOptions {
    /// Causes to inject.
    pub causes: Vec<Cause>,
    /// Driver.
    pub driver: Driver,
    /// Calls of the real-time caller with each cause, and as many without.
    pub iterations: u32,
    /// Folder that keeps the recordings, if any.
    pub keep: Option<PathBuf>,
    /// Write marks into the shared buffer, too.
    pub shared_marks: bool,
}

/// Head of the table of results.
pub const HEAD: &str = "cause      calls affected named            clean alarms            disturbed\n";

/// Result for one cause.
#[derive(Clone, Debug)]
pub struct CauseResult {
    /// The cause.
    pub cause: Cause,
    /// Calls with the cause.
    pub calls: usize,
    /// Calls for which the cause came too early or too late, by the caller's clock.
    pub spared: usize,
    /// Affected calls, among the others with the cause.
    pub affected: usize,
    /// Affected calls whose verdict names the cause.
    pub named: usize,
    /// Undisturbed calls without the cause.
    pub clean: usize,
    /// Undisturbed calls without the cause whose verdict names it (false alarms).
    pub alarms: usize,
    /// Calls without the cause that took as long as affected ones.
    pub disturbed: usize,
    /// Calls that lost their CPU to the host; they are in none of the counts above but `calls` and `spared`.
    pub stolen: usize,
    /// Examples of wrong verdicts.
    pub wrong: Vec<String>,
}

impl fmt::Display for CauseResult {
    /// A row of the table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cause, calls, spared, affected, named, clean, alarms, disturbed, stolen, wrong } = self;
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let verdict = match (self.is_right(), self.is_enough()) {
            (true, _) => "right".to_owned(),
            (false, true) => {
                format!(
                    "WRONG: at least {} named, at most {} alarms",
                    percent(LEAST_NAMED),
                    percent(MOST_ALARMS)
                )
            }
            (false, false) if *stolen > 0 => format!(
                "disturbed: {stolen} calls; at least {LEAST_AFFECTED} others must be affected: repeat on a quieter host"
            ),
            (false, false) => {
                format!("TOO FEW: at least {LEAST_AFFECTED} must be affected; more iterations (-i)")
            }
        };
        let spared = match spared {
            0 => String::new(),
            spared => format!("; too early or too late for {spared} calls, which do not count"),
        };
        let stolen = match stolen {
            0 => String::new(),
            stolen => format!("; disturbed: {stolen} calls, whose CPU the host took, do not count"),
        };
        let mut text = format!(
            "{:<10} {calls:>5} {affected:>8} {named:>5} {:>9} {clean:>6} {alarms:>6} {:>9} {disturbed:>6}  {verdict}\n           {}{spared}{stolen}\n",
            cause.name(),
            percent(self.share_named()),
            percent(self.share_alarms()),
            cause.title(),
        );
        for example in wrong {
            text += &format!("           {example}\n");
        }
        f.write_str(&text)
    }
}

impl CauseResult {
    /// Returns the share of named among affected calls; 0 without any.
    #[must_use]
    pub fn share_named(&self) -> f64 {
        share(self.named, self.affected)
    }

    /// Returns the share of alarms among clean calls.
    #[must_use]
    pub fn share_alarms(&self) -> f64 {
        share(self.alarms, self.clean)
    }

    /// Returns true if the numbers suffice for a judgement: enough affected calls, and most of the others
    /// undisturbed.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.affected >= LEAST_AFFECTED && self.clean > self.disturbed
    }

    /// Returns true if both limits hold.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.is_enough() && self.share_named() >= LEAST_NAMED && self.share_alarms() <= MOST_ALARMS
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Summary of a check, besides the results of the causes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccuracySummary {
    /// Causes that this machine cannot have, and why.
    pub left_out: Vec<(Cause, &'static str)>,
    /// The signal that ended it.
    pub stopped_by: Option<&'static str>,
}

/// Injects one cause after the other; reports each when it is finished. This program is started again for the
/// tests. A signal ends the check: the current cause is reported with the calls until then, if some have the
/// cause.
///
/// # Errors
/// No tracing, no driver, or a test that did not finish.
pub fn measure(
    options: &AccuracyOptions,
    tell: &mut dyn FnMut(&CauseResult),
) -> Result<AccuracySummary, CheckError> {
    sys::stop_signal::catch().map_err(|error| unready("catching signals", &error))?;
    let wanted = Wanted { driver: options.driver, ..Wanted::default() };
    let found = run::find_driver(&wanted, Dialect::Hwbinder.context());
    let (context, _) = found.map_err(|error| CheckError::Unready(error.to_string()))?;
    let embedded = matches!(context, AnyContext::Embedded(_));
    drop(context);
    let usable = sys::sched::affinity().map_err(|error| unready("asking for the usable CPUs", &error))?;
    let cpus = match usable[..] {
        [.., first, second] => [first, second],
        [only] => [only; 2],
        [] => return Err(CheckError::Unready("there is no usable CPU".to_owned())),
    };
    let folder = RecordingFolder::create("accuracy", options.keep.as_deref())?;
    let rig = AccuracyTest { options, embedded, cpus, folder };
    let mut rest = AccuracySummary::default();
    for cause in options.causes.iter().copied() {
        if let Some(why) = cause.lacks(usable.len()) {
            rest.left_out.push((cause, why));
            continue;
        }
        if let Some(found) = rig.look(cause)? {
            tell(&found);
        }
        rest.stopped_by = sys::stop_signal::received();
        if rest.stopped_by.is_some() {
            break;
        }
    }
    Ok(rest)
}

/// One recorded test.
struct Recorded {
    /// Durations of the real-time caller's calls, in order, in ns.
    took: Vec<u64>,
    /// Numbers of the calls for which the cause came too early or too late.
    spared: Vec<u64>,
    /// Time of each call in which neither side ran, in ns, by their threads' clocks, where it is known.
    idle: Vec<Option<u64>>,
    /// Number of calls served on the caller's CPU, by the service's own report.
    same_cpu: u64,
    analysis: Analysis,
}

impl Recorded {
    /// Returns true if the call of this number lost its CPU to the host.
    fn is_stolen(&self, number: usize, call: &SlowCall) -> bool {
        let seen =
            call.reasons.iter().any(|reason| reason.cause == Label::Stolen && reason.share >= LEAST_STOLEN);
        let idle_ns = self.idle.get(number).copied().flatten().unwrap_or(0);
        let taken = taken_ns(idle_ns, &call.parts) as f64 > call.ns as f64 * LEAST_STOLEN;
        let steal = self.analysis.stolen_ns.is_some_and(|stolen| stolen > 0);
        let long = |part: &CallSegment| is_running(part) && part.ns > cause::LONGEST_WORK_NS;
        seen || steal && (taken || call.parts.iter().any(long))
    }

    /// Returns the verdict on the call of this number.
    fn verdict(&self, number: usize) -> Option<&SlowCall> {
        let words = format!("pair=0 class={} number={number}", Class::Fifo.name());
        self.analysis.slow.iter().find(|call| call.label.as_deref() == Some(words.as_str()))
    }
}

/// Returns true if the trace saw a thread on a CPU in this part of a call.
fn is_running(part: &CallSegment) -> bool {
    matches!(part.cause, Label::ServerRunning | Label::ClientRunning | Label::Silent)
}

/// Returns the time in ns for which the threads of a call were idle by their own clocks and ran by the trace.
fn taken_ns(idle_ns: u64, parts: &[CallSegment]) -> u64 {
    let waited: u64 = parts.iter().filter(|part| !is_running(part)).map(|part| part.ns).sum();
    idle_ns.saturating_sub(waited)
}

struct AccuracyTest<'a> {
    options: &'a AccuracyOptions,
    embedded: bool,
    cpus: [u32; 2],
    folder: RecordingFolder,
}

impl AccuracyTest<'_> {
    /// Checks one cause; `None` if a signal came before any result.
    fn look(&self, cause: Cause) -> Result<Option<CauseResult>, CheckError> {
        let Some(without) = self.record(cause, false)? else { return Ok(None) };
        if sys::stop_signal::received().is_some() {
            return Ok(None);
        }
        let Some(with) = self.record(cause, true)? else { return Ok(None) };
        if cause == Cause::Apart && with.same_cpu > 0 {
            return Err(CheckError::Unready("the caller and its server were not kept apart".to_owned()));
        }
        Ok(Some(judge(cause, &with, &without)))
    }

    /// Records and analyses a latency test with or without a cause; `None` if a signal left no result.
    fn record(&self, cause: Cause, with: bool) -> Result<Option<Recorded>, CheckError> {
        let way = WAYS[usize::from(with)];
        let path = |end: &str| self.folder.path.join(format!("{cause}-{way}.{end}"));
        let (file, document) = (path("trace"), path("json"));
        let (always, puts_in) = cause.words(self.embedded, self.cpus);
        let driver = if self.embedded { "embedded" } else { "kernel" };
        let line = format!(
            "latency hwbinder -i {} --driver {driver} --no-scenes --raw-data --deadline-us 60000000 {always} {} {}",
            self.options.iterations,
            if with { puts_in.as_str() } else { "" },
            cause.either(with, self.cpus),
        );
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        words.extend(["--record".to_owned(), document.display().to_string()]);
        let typed = words.join(" ");
        record_own(words, usual_categories(), BUFFER_KB, file.clone(), self.options.shared_marks)?;
        let failed = |why: String| CheckError::Unready(format!("{cause}: binderperf {typed}: {why}"));
        let run = read_record(&document).map_err(failed);
        let stopped = sys::stop_signal::received().is_some();
        let run = match run {
            Err(_) if stopped => return Ok(None),
            run => run?,
        };
        if !stopped && (!run.complete || run.any_failed()) {
            return Err(failed(run.incomplete_reason.unwrap_or_else(|| "a pair broke".to_owned())));
        }
        let latency = run.cases.iter().filter_map(|case| case.latency.as_ref());
        let latency =
            latency.into_iter().find(|latency| latency.class == Class::Fifo && !latency.raw.is_empty());
        let Some(latency) = latency else {
            return if stopped { Ok(None) } else { Err(failed("no real-time caller".to_owned())) };
        };
        let analysis = analyse(&file).map_err(|error| failed(error.to_string()))?;
        if analysis.lost > 0 || analysis.gaps > 0 {
            return Err(failed(format!("the recording lost {} events", analysis.lost)));
        }
        Ok(Some(Recorded {
            took: latency.raw.clone(),
            spared: latency.spared.clone(),
            idle: latency.idle.clone(),
            same_cpu: latency.same_cpu,
            analysis,
        }))
    }
}

/// Whether a file of this name is one that a check keeps.
#[must_use]
pub fn is_kept(name: &str) -> bool {
    let Some((stem, "trace" | "json")) = name.split_once('.') else { return false };
    stem.rsplit_once('-').is_some_and(|(_, way)| WAYS.contains(&way))
}

fn analyse(file: &Path) -> Result<Analysis, ::trace::file::OpenError> {
    let mut reader = ::trace::open(File::open(file)?)?;
    let filter = Filter { own: true, ..Filter::default() };
    let mut analyzer =
        Analyzer::new(AnalysisOptions { worst: usize::MAX >> 8, filter, ..AnalysisOptions::default() });
    while let Some(event) = reader.next() {
        analyzer.take(&event, reader.names());
    }
    Ok(analyzer.finish(reader.names(), reader.report()))
}

fn judge(cause: Cause, with: &Recorded, without: &Recorded) -> CauseResult {
    let mut usual = without.took.clone();
    usual.sort_unstable();
    let usual = usual.get(usual.len() / 2).copied().unwrap_or(0);
    let limit = cause.excess_ns().map(|excess| usual.saturating_add(excess));
    let befell = |took: u64| limit.is_none_or(|limit| took > limit);
    let mut found = CauseResult {
        cause,
        calls: with.took.len(),
        spared: with.spared.len(),
        affected: 0,
        named: 0,
        clean: 0,
        alarms: 0,
        disturbed: 0,
        stolen: 0,
        wrong: Vec::new(),
    };
    let spared = |number: usize| with.spared.binary_search(&(number as u64)).is_ok();
    let slower = with.took.iter().enumerate().filter(|(_, took)| befell(**took));
    for (number, _) in slower.filter(|(number, _)| !spared(*number)) {
        if with.verdict(number).is_some_and(|call| with.is_stolen(number, call)) {
            found.stolen += 1;
            continue;
        }
        found.affected += 1;
        match with.verdict(number) {
            Some(call) if cause.is_claimed(call, true) => found.named += 1,
            Some(call) => keep(&mut found.wrong, || format!("not named: {}", call.verdict)),
            None => keep(&mut found.wrong, || format!("call {number} is not in the trace")),
        }
    }
    for (number, took) in without.took.iter().enumerate() {
        if limit.is_some() && befell(*took) {
            found.disturbed += 1;
            continue;
        }
        if without.verdict(number).is_some_and(|call| without.is_stolen(number, call)) {
            found.stolen += 1;
            continue;
        }
        found.clean += 1;
        if let Some(call) = without.verdict(number).filter(|call| cause.is_claimed(call, false)) {
            found.alarms += 1;
            keep(&mut found.wrong, || format!("false alarm: {}", call.verdict));
        }
    }
    found
}

fn keep(list: &mut Vec<String>, what: impl FnOnce() -> String) {
    if list.len() < EXAMPLES {
        list.push(what());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_taken_where_a_thread_ran_by_the_trace_and_not_by_its_clock() {
        let part =
            |cause, ns| CallSegment { at_ns: 0, ns, cause, tid: 1, cpu: Some(0), behind: None, depth: 0 };
        let parts =
            [part(Label::ClientRunning, 100), part(Label::ServerRunning, 2000), part(Label::Io, 1500)];
        assert_eq!(taken_ns(1500, &parts), 0, "it waited for the disk and for nothing else");
        assert_eq!(taken_ns(2400, &parts), 900);
        assert_eq!(taken_ns(0, &parts), 0, "unknown");
    }
}
