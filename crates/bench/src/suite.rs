//! Suite: the four tests of Android's page in sequence, with the causes of slow calls, and the experiments; their
//! order and duration, and the partial results when a part cannot run or a signal ends the suite.
//! Not here: the tests themselves (`run`, `latency`), files and reports (the command line).

mod depth;
mod experiments;

use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use depth::Depth;
pub use experiments::Experiment;
use record::{Finding, HostClass, Run};

use crate::latency;
use crate::plan::{
    Controls, Device, Family, Flavour, Inherit, MinTime, Placement, Plan, Settings, Wanted, fresh_seed,
};
use crate::run::{self, Observer, RunError};

/// Options of the suite.
#[derive(Clone, Debug)]
pub struct SuiteOptions {
    /// Depth, which determines the duration.
    pub depth: Depth,
    /// Whether the experiments follow the tests.
    pub experiments: bool,
    /// Driver and context.
    pub wanted: Wanted,
    /// Whether `wanted` contains the embedded driver's inheritance; if not, latency tests have it inherit
    /// all.
    pub inherits_as_told: bool,
    /// Folder for recordings of slow calls; `None` for no flight recorder.
    pub recordings: Option<PathBuf>,
    /// Deliberate faults of the latency tests.
    pub injected: Vec<latency::Injected>,
    /// Seconds without a reply after which a throughput or latency test counts as hanging.
    pub patience_s: u64,
    /// Command line.
    pub command_line: Vec<String>,
}

/// A part of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuitePart {
    /// binder and hwbinder with the controls pipe, socket, futex and spinning; [`Placement::Default`] with all
    /// payloads, both others with [`PLACED_PAYLOADS`].
    Throughput(Placement),
    /// Pairs of client and server, call by call.
    Latency(Flavour),
    /// An experiment.
    Experiment(Experiment),
}

impl SuitePart {
    /// Returns the word used in progress lines and file names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput(Placement::Default) => "throughput",
            Self::Throughput(Placement::Same) => "throughput-one-cpu",
            Self::Throughput(Placement::Cross) => "throughput-two-cpus",
            Self::Latency(Flavour::Binder) => "latency-binder",
            Self::Latency(_) => "latency-hwbinder",
            Self::Experiment(experiment) => experiment.name(),
        }
    }
}

/// Observer of the suite's progress.
pub trait SuiteObserver {
    /// The driver and the machine are known.
    fn begins(&mut self, run: &Run);
    /// Progress of a part; `left` is the estimated time for all remaining parts.
    fn advanced(&mut self, part: SuitePart, done: u64, all: u64, left: Duration);
    /// Others disturbed a part, as this finding says: it is run once more.
    fn repeats(&mut self, part: SuitePart, why: &Finding);
    /// The first, disturbed result of a part that was then repeated; the result that counts follows.
    fn kept_first(&mut self, part: SuitePart, run: Run);
    /// A part has its result, which must be kept whatever happens later.
    fn kept(&mut self, part: SuitePart, run: Run);
    /// A part could not be run, for this reason.
    fn missing(&mut self, part: SuitePart, why: String);
}

/// Outcome of the suite.
#[derive(Debug)]
pub enum SuiteEnd {
    /// Every part was tried.
    Whole,
    /// A signal came; parts that had not begun were left out.
    Interrupted,
    /// No driver to measure.
    NoDriver(RunError),
}

/// Runs the suite. SIGINT and SIGTERM end it and keep the results so far.
pub fn execute(options: &SuiteOptions, observer: &mut dyn SuiteObserver) -> SuiteEnd {
    let parts = parts(options, placements());
    for (index, part) in parts.iter().copied().enumerate() {
        let rest: Duration = parts[index + 1..].iter().map(|part| options.depth.usual_time(*part)).sum();
        let attempt = Attempt { part, rest, first: index == 0, again: false };
        match attempt.execute(options, observer) {
            Ok(run) => attempt.keep(run, options, observer),
            Err(error @ RunError::NoDriver(_)) if index == 0 => return SuiteEnd::NoDriver(error),
            Err(error) => observer.missing(part, error.to_string()),
        }
        if sys::stop_signal::received().is_some() {
            let rest = parts[index + 1..].iter();
            rest.for_each(|part| observer.missing(*part, "a signal came before it began".to_owned()));
            return SuiteEnd::Interrupted;
        }
    }
    SuiteEnd::Whole
}

/// One execution of a part.
#[derive(Clone, Copy)]
struct Attempt {
    part: SuitePart,
    /// Typical time of the later parts.
    rest: Duration,
    /// Whether it is the first part.
    first: bool,
    /// Whether it repeats a disturbed one.
    again: bool,
}

impl Attempt {
    fn execute(self, options: &SuiteOptions, observer: &mut dyn SuiteObserver) -> Result<Run, RunError> {
        let mut observer = PartObserver {
            part: self.part,
            observer,
            rest: self.rest,
            begun: Instant::now(),
            usual: options.depth.usual_time(self.part),
            first: self.first,
        };
        match self.part {
            SuitePart::Throughput(placement) => run::execute(&throughput(options, placement), &mut observer),
            SuitePart::Latency(flavour) => {
                let mut latency = latency_options(options, flavour);
                if self.again {
                    // The recordings of the first time stay with its record.
                    latency.flight = latency.flight.map(|prefix| prefix.with_added_extension("again"));
                }
                latency::execute(&latency, &mut observer)
            }
            SuitePart::Experiment(experiment) => experiment.execute(options, &mut observer),
        }
    }

    /// Keeps a result. A disturbed one is kept beside that of a second time, if this is whole.
    fn keep(self, run: Run, options: &SuiteOptions, observer: &mut dyn SuiteObserver) {
        let may_repeat =
            run.complete && options.depth != Depth::Tiny && sys::stop_signal::received().is_none();
        let disturbed = doctor::spoiled(&run).filter(|_| may_repeat);
        if let Some(why) = disturbed {
            observer.repeats(self.part, why);
            let again = Self { first: false, again: true, ..self }.execute(options, observer);
            if let Ok(second) = again
                && second.complete
            {
                observer.kept_first(self.part, run);
                return observer.kept(self.part, second);
            }
        }
        observer.kept(self.part, run);
    }
}

/// Payloads of the parts that place both sides, in bytes: the ends of the range, and a page.
const PLACED_PAYLOADS: [u64; 3] = [4, 4096, 65536];

/// Returns the placements that this machine can give to both sides. On an emulated machine the default is one CPU
/// already, and two mean nothing.
fn placements() -> &'static [Placement] {
    match (host::class(), sys::sched::usable_cpus()) {
        (HostClass::Tcg | HostClass::Icount, _) => &[],
        (_, 1) => &[Placement::Same],
        _ => &[Placement::Same, Placement::Cross],
    }
}

/// Returns the parts; in a named context, those of its protocol.
fn parts(options: &SuiteOptions, placements: &[Placement]) -> Vec<SuitePart> {
    let placements = placements.iter().chain(&[Placement::Default]).copied();
    let tests = placements.map(SuitePart::Throughput).chain(flavours(options).map(SuitePart::Latency));
    let experiments = Experiment::ALL.into_iter().filter(|_| options.experiments).map(SuitePart::from);
    tests.chain(experiments).collect()
}

/// Returns the flavours of the latency tests; in a named context, that of its protocol.
pub(crate) fn flavours(options: &SuiteOptions) -> impl Iterator<Item = Flavour> {
    let named = named(&options.wanted.device);
    let speaks = move |flavour: &Flavour| {
        named.as_ref().is_none_or(|name| name.contains("hwbinder") == (*flavour == Flavour::Hwbinder))
    };
    [Flavour::Binder, Flavour::Hwbinder].into_iter().filter(speaks)
}

pub(crate) fn named(device: &Device) -> Option<String> {
    match device {
        Device::Auto | Device::Private => None,
        Device::Named(name) => Some(name.clone()),
        Device::Path(path) => Some(path.display().to_string()),
    }
}

pub(crate) fn throughput(options: &SuiteOptions, placement: Placement) -> Plan {
    let mut tests = match named(&options.wanted.device) {
        None => Family::TESTS.to_vec(),
        Some(name) if name.contains("hwbinder") => vec![Family::Binderize, Family::Passthrough],
        Some(_) => vec![Family::Binder],
    };
    let amounts = options.depth.amounts();
    let mut payloads = Family::PAYLOADS.to_vec();
    let (mut min_time_s, mut repetitions) = (amounts.min_time_s, amounts.repetitions);
    if placement != Placement::Default {
        // One side only has nothing to place.
        tests.retain(|family| *family != Family::Passthrough);
        payloads = PLACED_PAYLOADS.to_vec();
        (min_time_s, repetitions) = amounts.placed;
    }
    let test = match placement {
        Placement::Default => "throughput all",
        Placement::Same => "throughput all on one CPU",
        Placement::Cross => "throughput all on two CPUs",
    };
    Plan {
        test: test.to_owned(),
        tests,
        payloads,
        placement,
        controls: Controls::default_set(),
        min_time: MinTime::Seconds(min_time_s),
        repetitions,
        // What disturbs a moment meets a test and its control alike.
        interleaving_seed: Some(fresh_seed()),
        wanted: options.wanted.clone(),
        patience_s: options.patience_s,
        command_line: options.command_line.clone(),
        ..Plan::default()
    }
}

pub(crate) fn latency_options(options: &SuiteOptions, flavour: Flavour) -> latency::LatencyOptions {
    let wanted = if options.inherits_as_told {
        options.wanted.clone()
    } else {
        Wanted {
            settings: Settings { inherit: Inherit::Rt, ..options.wanted.settings },
            ..options.wanted.clone()
        }
    };
    latency::LatencyOptions {
        iterations: options.depth.amounts().iterations,
        pairs: sys::sched::usable_cpus().saturating_sub(1).clamp(1, latency::options::MOST_PAIRS),
        wanted,
        injected: options.injected.clone(),
        patience_s: options.patience_s,
        flight: options.recordings.as_ref().map(|folder| folder.join(SuitePart::Latency(flavour).name())),
        command_line: options.command_line.clone(),
        ..latency::LatencyOptions::usual(flavour)
    }
}

/// Turns the progress of a test into that of the suite.
struct PartObserver<'w> {
    part: SuitePart,
    observer: &'w mut dyn SuiteObserver,
    /// Typical time of the later parts.
    rest: Duration,
    begun: Instant,
    usual: Duration,
    first: bool,
}

impl PartObserver<'_> {
    fn tell(&mut self, done: u64, all: u64) {
        let elapsed = self.begun.elapsed();
        // The elapsed time predicts better than the typical time, once a tenth is done.
        let own = if done * 10 >= all && done > 0 {
            elapsed.mul_f64(all.saturating_sub(done) as f64 / done as f64)
        } else {
            self.usual.saturating_sub(elapsed)
        };
        self.observer.advanced(self.part, done, all, own + self.rest);
    }
}

impl Observer for PartObserver<'_> {
    fn begins(&mut self, run: &Run) {
        if self.first {
            self.observer.begins(run);
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

    fn options(device: Device) -> SuiteOptions {
        SuiteOptions {
            depth: Depth::Quick,
            experiments: false,
            wanted: Wanted { device, ..Wanted::default() },
            inherits_as_told: false,
            recordings: Some(PathBuf::from("x")),
            injected: Vec::new(),
            patience_s: 30,
            command_line: Vec::new(),
        }
    }

    #[test]
    fn all_four_tests_unless_a_context_speaks_one_flavour_only() {
        let default = SuitePart::Throughput(Placement::Default);
        let both = [default, SuitePart::Latency(Flavour::Binder), SuitePart::Latency(Flavour::Hwbinder)];
        assert_eq!(parts(&options(Device::Auto), &[]), both);
        let mut with = options(Device::Auto);
        with.experiments = true;
        let all: Vec<&str> = parts(&with, &[])[3..].iter().map(|part| part.name()).collect();
        assert_eq!(all, ["inversion", "overload", "background", "latency-sweep"]);
        let named = |name: &str| parts(&options(Device::Named(name.to_owned())), &[]);
        assert_eq!(named("hwbinder")[1..], [SuitePart::Latency(Flavour::Hwbinder)]);
        assert_eq!(named("binder")[1..], [SuitePart::Latency(Flavour::Binder)]);
    }

    #[test]
    fn each_placement_is_measured_with_what_has_two_sides() {
        let options = options(Device::Auto);
        let placed = parts(&options, &[Placement::Same, Placement::Cross]);
        let placed: Vec<&str> = placed.iter().map(|part| part.name()).collect();
        assert_eq!(placed[..3], ["throughput-one-cpu", "throughput-two-cpus", "throughput"]);
        let plan = throughput(&options, Placement::Cross);
        assert_eq!((plan.placement, plan.payloads), (Placement::Cross, PLACED_PAYLOADS.to_vec()));
        assert_eq!(plan.tests, [Family::Binder, Family::Binderize]);
    }

    #[test]
    fn latency_tests_inherit_all_unless_told_otherwise() {
        let mut options = options(Device::Auto);
        options.wanted.settings.inherit = Inherit::None;
        assert_eq!(latency_options(&options, Flavour::Binder).wanted.settings.inherit, Inherit::Rt);
        options.inherits_as_told = true;
        assert_eq!(latency_options(&options, Flavour::Binder).wanted.settings.inherit, Inherit::None);
        latency_options(&options, Flavour::Hwbinder).check().expect("can be done");
    }
}
