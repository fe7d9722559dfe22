//! Room: whether an analysis is right: latency tests into which a known cause is put are recorded, and it is looked
//! whether the verdicts name it, and whether they name it where it was not.
//! Not here: the latency test (`crate::latency`), verdicts (the crate `trace`).
//!
//! - [`cause`]: what is put in, and what names it.
//!
//! Which calls a cause befell is told by the caller's own clock, never by the trace: those of the real-time caller
//! that took so much longer than the median without it. What was to happen during a call and, by that clock, happened
//! before or after it, did not befall it. Without the cause such a call was disturbed by somebody else, of
//! whom this knows nothing; it counts for nothing.

pub mod cause;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::trace::verdict::{Analysis, Analyst, Filter, Question, Slow};
pub use cause::Cause;
use driver::AnyContext;
use record::{Class, Run};

use super::categories;
use super::record::work::Work;
use super::record::{self as recorder, Observer, Plan};
use crate::plan::{Dialect, Driver, Wanted};
use crate::run;

/// At least so much of the affected calls must be named ...
pub const LEAST_NAMED: f64 = 0.95;
/// ... and at most so much of the others.
pub const MOST_ALARMS: f64 = 0.02;
/// Fewer affected calls tell nothing.
pub const LEAST_AFFECTED: usize = 10;
/// Verdicts of calls for which it was wrong that are kept.
const EXAMPLES: usize = 3;
/// Of each CPU, in KB: no event may be lost.
const BUFFER_KB: u64 = 8192;

/// What to look at.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Causes.
    pub causes: Vec<Cause>,
    /// On which driver.
    pub driver: Driver,
    /// Calls of the real-time caller with each cause, and as many without.
    pub iterations: u32,
    /// Where recordings are kept, if they are.
    pub keep: Option<PathBuf>,
}

/// What came out for one cause.
#[derive(Clone, Debug)]
pub struct Found {
    /// Which.
    pub cause: Cause,
    /// Calls with it.
    pub calls: usize,
    /// Of them, those that it came too early or too late for, by the caller's clock.
    pub spared: usize,
    /// Of the others, those that it befell.
    pub affected: usize,
    /// Of those, those whose verdict names it.
    pub named: usize,
    /// Calls without it that nothing else disturbed, either.
    pub clean: usize,
    /// Of them, those whose verdict names it all the same.
    pub alarms: usize,
    /// Calls without it that took as long as if it had befallen them.
    pub disturbed: usize,
    /// Some verdicts that were wrong.
    pub wrong: Vec<String>,
}

impl Found {
    /// Named of affected; 0 without any.
    #[must_use]
    pub fn share_named(&self) -> f64 {
        share(self.named, self.affected)
    }

    /// Alarms of clean.
    #[must_use]
    pub fn share_alarms(&self) -> f64 {
        share(self.alarms, self.clean)
    }

    /// Whether there is enough for a judgement: calls that were affected, and most of the others undisturbed.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.affected >= LEAST_AFFECTED && self.clean > self.disturbed
    }

    /// Whether both limits hold.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.is_enough() && self.share_named() >= LEAST_NAMED && self.share_alarms() <= MOST_ALARMS
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Why it could not be looked at.
#[derive(Debug)]
pub enum Trouble {
    /// Tracing refused.
    Tracing(super::tracefs::Trouble),
    /// The driver, the CPUs or a test.
    Unready(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tracing(trouble) => trouble.fmt(f),
            Self::Unready(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Trouble {}

fn unready(what: &str, error: &io::Error) -> Trouble {
    Trouble::Unready(format!("{what}: {}", sys::errno::describe(error)))
}

/// What there is to say beside what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Causes that one CPU is too few for.
    pub left_out: Vec<Cause>,
    /// The signal that ended it.
    pub stopped_by: Option<&'static str>,
}

/// Puts in one cause after the other; tells of each when it is done. This program is started again for the tests. A
/// signal ends it: of the cause that it came in, the calls until then are told of, if there are some with it.
///
/// # Errors
/// No tracing, no driver, or a test that did not come to its end.
pub fn measure(ask: &Ask, tell: &mut dyn FnMut(&Found)) -> Result<Rest, Trouble> {
    sys::stop_signal::catch().map_err(|error| unready("catching signals", &error))?;
    let wanted = Wanted { driver: ask.driver, ..Wanted::default() };
    let found = run::find_driver(&wanted, Dialect::Hwbinder.context());
    let (context, _) = found.map_err(|error| Trouble::Unready(error.to_string()))?;
    let embedded = matches!(context, AnyContext::Embedded(_));
    drop(context);
    let usable = sys::sched::affinity().map_err(|error| unready("asking for the usable CPUs", &error))?;
    let cpus = match usable[..] {
        [.., first, second] => [first, second],
        [only] => [only; 2],
        [] => return Err(Trouble::Unready("there is no usable CPU".to_owned())),
    };
    let program = std::env::current_exe().map_err(|error| unready("finding this program's file", &error))?;
    let folder = Folder::of(ask.keep.as_deref())?;
    let rig = Rig { ask, embedded, cpus, program, folder };
    let (can, cannot): (Vec<Cause>, Vec<Cause>) =
        ask.causes.iter().partition(|cause| cause.cpus() <= usable.len());
    let mut rest = Rest { left_out: cannot, stopped_by: None };
    for cause in can {
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

/// Where recordings are.
struct Folder {
    path: PathBuf,
    kept: bool,
}

impl Folder {
    fn of(keep: Option<&Path>) -> Result<Self, Trouble> {
        let own = || std::env::temp_dir().join(format!("binderperf-accuracy-{}", std::process::id()));
        let path = keep.map_or_else(own, Path::to_owned);
        fs::create_dir_all(&path).map_err(|error| unready(&format!("making {}", path.display()), &error))?;
        Ok(Self { path, kept: keep.is_some() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// One recorded test.
struct Recorded {
    /// What the real-time caller's calls took, in their order, in ns.
    took: Vec<u64>,
    /// Numbers of those that the cause came too early or too late for.
    spared: Vec<u64>,
    /// How many of them were served on the caller's CPU, by the service's own account.
    same_cpu: u64,
    analysis: Analysis,
}

impl Recorded {
    /// The verdict on the call of this number.
    fn verdict(&self, number: usize) -> Option<&Slow> {
        let words = format!("pair=0 class={} number={number}", Class::Fifo.name());
        self.analysis.slow.iter().find(|call| call.label.as_deref() == Some(words.as_str()))
    }
}

struct Rig<'a> {
    ask: &'a Ask,
    embedded: bool,
    cpus: [u32; 2],
    program: PathBuf,
    folder: Folder,
}

impl Rig<'_> {
    /// `None` if a signal came before there was anything to find.
    fn look(&self, cause: Cause) -> Result<Option<Found>, Trouble> {
        let Some(without) = self.record(cause, false)? else { return Ok(None) };
        if sys::stop_signal::received().is_some() {
            return Ok(None);
        }
        let Some(with) = self.record(cause, true)? else { return Ok(None) };
        if cause == Cause::Apart && with.same_cpu > 0 {
            return Err(Trouble::Unready("the caller and its server were not kept apart".to_owned()));
        }
        Ok(Some(judge(cause, &with, &without)))
    }

    /// A latency test with a cause or without, recorded and analysed; `None` if a signal left nothing of it.
    fn record(&self, cause: Cause, with: bool) -> Result<Option<Recorded>, Trouble> {
        let way = if with { "with" } else { "without" };
        let path = |end: &str| self.folder.path.join(format!("{cause}-{way}.{end}"));
        let (file, document) = (path("trace"), path("json"));
        let (always, puts_in) = cause.words(self.embedded, self.cpus);
        let driver = if self.embedded { "embedded" } else { "kernel" };
        let line = format!(
            "latency hwbinder -i {} --driver {driver} --no-scenes --raw-data --deadline-us 60000000 {always} {} {}",
            self.ask.iterations,
            if with { puts_in.as_str() } else { "" },
            cause.either(with, self.cpus),
        );
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        words.extend(["--record".to_owned(), document.display().to_string()]);
        let typed = words.join(" ");
        let plan = Plan {
            categories: categories::USUAL.iter().filter_map(|name| categories::named(name)).collect(),
            buffer_kb: BUFFER_KB,
            circular: false,
            output: file.clone(),
            work: Work::Command {
                program: self.program.clone(),
                name: "binderperf".to_owned(),
                words,
                silent: true,
            },
        };
        recorder::record(&plan, &mut Nobody).map_err(Trouble::Tracing)?;
        let failed = |why: String| Trouble::Unready(format!("{cause}: binderperf {typed}: {why}"));
        let run = File::open(&document).map_err(|error| failed(sys::errno::describe(&error)));
        let run = run.and_then(|file| Run::read(file).map_err(|error| failed(error.to_string())));
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
            same_cpu: latency.same_cpu,
            analysis,
        }))
    }
}

struct Nobody;

impl Observer for Nobody {
    fn begins(&mut self, _notes: &[String]) {}
    fn advanced(&mut self, _elapsed: Duration, _bytes: u64) {}
}

fn analyse(file: &Path) -> Result<Analysis, ::trace::file::OpenError> {
    let mut reader = ::trace::open(File::open(file)?)?;
    let filter = Filter { own: true, ..Filter::default() };
    let mut analyst = Analyst::new(Question { deadline_ns: None, worst: usize::MAX >> 8, filter });
    while let Some(event) = reader.next() {
        analyst.take(&event, reader.names());
    }
    Ok(analyst.finish(reader.names(), reader.report()))
}

fn judge(cause: Cause, with: &Recorded, without: &Recorded) -> Found {
    let mut usual = without.took.clone();
    usual.sort_unstable();
    let usual = usual.get(usual.len() / 2).copied().unwrap_or(0);
    let limit = cause.excess_ns().map(|excess| usual.saturating_add(excess));
    let befell = |took: u64| limit.is_none_or(|limit| took > limit);
    let mut found = Found {
        cause,
        calls: with.took.len(),
        spared: with.spared.len(),
        affected: 0,
        named: 0,
        clean: 0,
        alarms: 0,
        disturbed: 0,
        wrong: Vec::new(),
    };
    let spared = |number: usize| with.spared.binary_search(&(number as u64)).is_ok();
    let slower = with.took.iter().enumerate().filter(|(_, took)| befell(**took));
    for (number, _) in slower.filter(|(number, _)| !spared(*number)) {
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
