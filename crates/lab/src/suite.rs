//! Room: the four tests of Android's page after one another, and what slow calls waited for: in which order, how
//! long each, and what is kept when one of them cannot run or somebody ends it.
//! Not here: the tests themselves (`run`, `latency`), files and reports (the command line).

mod depth;

use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use depth::Depth;
use record::Run;

use crate::latency::{self, Flavour};
use crate::plan::{Controls, Device, Driver, Family, Inherit, Plan, Settings, Wanted};
use crate::run::{self, Observer, RunError};
use crate::trace::categories;
use crate::trace::record::work::Work;
use crate::trace::record::{self as recorder, Plan as Recording};

/// What shall be run.
#[derive(Clone, Debug)]
pub struct Ask {
    /// How long it may take.
    pub depth: Depth,
    /// Which driver, and which context of it.
    pub wanted: Wanted,
    /// Whether `wanted` says what the embedded driver shall inherit; if not, latency tests have it inherit all.
    pub inherits_as_told: bool,
    /// Where a recording of slow calls goes; `None` for none.
    pub recording: Option<PathBuf>,
    /// The words of the command line.
    pub command_line: Vec<String>,
}

/// One part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// binder and hwbinder beside pipe, socket, futex and spinning.
    Throughput,
    /// Pairs of client and server, call by call.
    Latency(Flavour),
    /// The same for a moment, recorded.
    Recorded(Flavour),
}

impl Part {
    /// The word in progress lines and names of files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency(Flavour::Binder) => "latency-binder",
            Self::Latency(_) => "latency-hwbinder",
            Self::Recorded(_) => "slow-calls",
        }
    }
}

/// Who is told how it goes.
pub trait Watcher {
    /// The driver is known, and so is where it runs.
    fn begins(&mut self, run: &Run);
    /// A part has come so far, of `all`; nearly so much time is left for all parts together.
    fn advanced(&mut self, part: Part, done: u64, all: u64, left: Duration);
    /// A part has its result, which is to be kept whatever happens later.
    fn kept(&mut self, part: Part, run: Run);
    /// A part could not be run, and why.
    fn missing(&mut self, part: Part, why: String);
}

/// How all of it ended.
#[derive(Debug)]
pub enum Ended {
    /// Every part was tried.
    Whole,
    /// A signal came; parts that had not begun were left out.
    Interrupted,
    /// There is no driver to measure.
    NoDriver(RunError),
}

/// Runs them. SIGINT and SIGTERM end it with what was measured until then.
pub fn execute(ask: &Ask, watcher: &mut dyn Watcher) -> Ended {
    let parts = parts(ask);
    for (index, part) in parts.iter().copied().enumerate() {
        let rest: Duration = parts[index + 1..].iter().map(|part| ask.depth.usual_time(*part)).sum();
        let mut teller = Teller {
            part,
            watcher,
            rest,
            begun: Instant::now(),
            usual: ask.depth.usual_time(part),
            first: index == 0,
        };
        let result = match part {
            Part::Throughput => run::execute(&throughput(ask), &mut teller).map(Some),
            Part::Latency(flavour) => latency::execute(&latency_ask(ask, flavour), &mut teller).map(Some),
            Part::Recorded(flavour) => {
                if let Err(why) = record(ask, flavour) {
                    watcher.missing(part, why);
                }
                Ok(None)
            }
        };
        match result {
            Ok(Some(run)) => watcher.kept(part, run),
            Ok(None) => {}
            Err(error @ RunError::NoDriver(_)) if index == 0 => return Ended::NoDriver(error),
            Err(error) => watcher.missing(part, error.to_string()),
        }
        if sys::stop_signal::received().is_some() {
            let rest = parts[index + 1..].iter();
            rest.for_each(|part| watcher.missing(*part, "a signal came before it began".to_owned()));
            return Ended::Interrupted;
        }
    }
    Ended::Whole
}

/// Which parts there are: in a context that was named, what is spoken there.
fn parts(ask: &Ask) -> Vec<Part> {
    let speaks = |flavour| {
        named(&ask.wanted.device)
            .is_none_or(|name| name.contains("hwbinder") == (flavour == Flavour::Hwbinder))
    };
    let flavours: Vec<Flavour> =
        [Flavour::Binder, Flavour::Hwbinder].into_iter().filter(|flavour| speaks(*flavour)).collect();
    let mut parts = vec![Part::Throughput];
    parts.extend(flavours.iter().map(|flavour| Part::Latency(*flavour)));
    if ask.recording.is_some() {
        parts.extend(flavours.last().map(|flavour| Part::Recorded(*flavour)));
    }
    parts
}

fn named(device: &Device) -> Option<String> {
    match device {
        Device::Auto | Device::Private => None,
        Device::Named(name) => Some(name.clone()),
        Device::Path(path) => Some(path.display().to_string()),
    }
}

fn throughput(ask: &Ask) -> Plan {
    let tests = match named(&ask.wanted.device) {
        None => Family::TESTS.to_vec(),
        Some(name) if name.contains("hwbinder") => vec![Family::Binderize, Family::Passthrough],
        Some(_) => vec![Family::Binder],
    };
    Plan {
        test: "throughput all".to_owned(),
        tests,
        controls: Controls::default_set(),
        min_time: ask.depth.min_time(),
        repetitions: ask.depth.repetitions(),
        wanted: ask.wanted.clone(),
        command_line: ask.command_line.clone(),
        ..Plan::default()
    }
}

fn latency_ask(ask: &Ask, flavour: Flavour) -> latency::Ask {
    let wanted = if ask.inherits_as_told {
        ask.wanted.clone()
    } else {
        Wanted { settings: Settings { inherit: Inherit::Rt, ..ask.wanted.settings }, ..ask.wanted.clone() }
    };
    latency::Ask {
        iterations: ask.depth.iterations(),
        pairs: sys::sched::usable_cpus().saturating_sub(1).clamp(1, latency::ask::MOST_PAIRS),
        wanted,
        command_line: ask.command_line.clone(),
        ..latency::Ask::usual(flavour)
    }
}

/// Records a short latency test of a copy of this program: what is recorded costs time, so none of its times
/// are among the results.
fn record(ask: &Ask, flavour: Flavour) -> Result<(), String> {
    let Some(output) = &ask.recording else { return Ok(()) };
    let program = std::env::current_exe().map_err(|error| format!("finding this program: {error}"))?;
    let plan = Recording {
        categories: categories::USUAL.iter().filter_map(|name| categories::named(name)).collect(),
        buffer_kb: 4096,
        circular: false,
        output: output.clone(),
        work: Work::Command {
            program,
            name: "binderperf".to_owned(),
            words: words(ask, flavour),
            silent: true,
        },
    };
    let recorded = recorder::record(&plan, &mut Quiet);
    if std::fs::metadata(output).is_ok_and(|file| file.len() == 0) {
        // It was begun, and nothing came.
        let _ = std::fs::remove_file(output);
    }
    let summary = recorded.map_err(|trouble| trouble.to_string())?;
    match summary.ended {
        // 3: no real-time caller may run here; the other one's calls were recorded.
        recorder::work::Ended::Command(status) if matches!(status.code(), Some(0 | 1 | 3)) => Ok(()),
        recorder::work::Ended::Command(status) => {
            Err(format!("the latency test that was recorded ended with {status}"))
        }
        recorder::work::Ended::Time => Ok(()),
    }
}

/// The recorded test's words.
fn words(ask: &Ask, flavour: Flavour) -> Vec<String> {
    let wanted = &ask.wanted;
    let mut words = vec!["latency".to_owned(), flavour.name().to_owned(), "--no-scenes".to_owned()];
    words.push(format!("--iterations={}", ask.depth.recorded_iterations()));
    words.push(format!("--driver={}", wanted.driver));
    words.push(format!("--device={}", wanted.device));
    // Settings of the embedded driver, which the kernel's would refuse.
    if wanted.driver != Driver::Kernel {
        let settings = latency_ask(ask, flavour).wanted.settings;
        words.push(format!("--inherit={}", settings.inherit));
        words.push(format!("--wait={}:{}", settings.waiting, settings.spin_budget_ns / 1000));
        words.push(format!("--lanes={}", if settings.lanes { "on" } else { "off" }));
        words.extend(wanted.context_dir.iter().map(|folder| format!("--context-dir={}", folder.display())));
    }
    words
}

struct Quiet;

impl recorder::Observer for Quiet {
    fn begins(&mut self, _notes: &[String]) {}
    fn advanced(&mut self, _elapsed: Duration, _bytes: u64) {}
}

/// Turns what a test says of itself into how far all of it is.
struct Teller<'w> {
    part: Part,
    watcher: &'w mut dyn Watcher,
    /// Usual time of the parts after this one.
    rest: Duration,
    begun: Instant,
    usual: Duration,
    first: bool,
}

impl Teller<'_> {
    fn tell(&mut self, done: u64, all: u64) {
        let elapsed = self.begun.elapsed();
        // What it took so far says more than what is usual, once there is enough of it.
        let own = if done * 10 >= all && done > 0 {
            elapsed.mul_f64(all.saturating_sub(done) as f64 / done as f64)
        } else {
            self.usual.saturating_sub(elapsed)
        };
        self.watcher.advanced(self.part, done, all, own + self.rest);
    }
}

impl Observer for Teller<'_> {
    fn begins(&mut self, run: &Run) {
        if self.first {
            self.watcher.begins(run);
        }
    }

    fn starts(&mut self, _run: &Run, _case: usize, done: usize, all: usize) {
        self.tell(done as u64, all as u64);
    }

    fn advanced(&mut self, made: u64, all: u64) {
        self.tell(made, all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(device: Device, recording: bool) -> Ask {
        Ask {
            depth: Depth::Quick,
            wanted: Wanted { device, ..Wanted::default() },
            inherits_as_told: false,
            recording: recording.then(|| PathBuf::from("x")),
            command_line: Vec::new(),
        }
    }

    #[test]
    fn all_four_tests_unless_a_context_speaks_one_flavour_only() {
        let both = [Part::Throughput, Part::Latency(Flavour::Binder), Part::Latency(Flavour::Hwbinder)];
        assert_eq!(parts(&ask(Device::Auto, false)), both);
        assert_eq!(parts(&ask(Device::Private, true))[3], Part::Recorded(Flavour::Hwbinder));
        let named = |name: &str| parts(&ask(Device::Named(name.to_owned()), true));
        assert_eq!(
            named("hwbinder")[1..],
            [Part::Latency(Flavour::Hwbinder), Part::Recorded(Flavour::Hwbinder)]
        );
        assert_eq!(named("binder")[1..], [Part::Latency(Flavour::Binder), Part::Recorded(Flavour::Binder)]);
    }

    #[test]
    fn latency_tests_inherit_all_unless_told_otherwise() {
        let mut ask = ask(Device::Auto, false);
        ask.wanted.settings.inherit = Inherit::None;
        assert_eq!(latency_ask(&ask, Flavour::Binder).wanted.settings.inherit, Inherit::Rt);
        ask.inherits_as_told = true;
        assert_eq!(latency_ask(&ask, Flavour::Binder).wanted.settings.inherit, Inherit::None);
        latency_ask(&ask, Flavour::Hwbinder).check().expect("can be done");
    }
}
