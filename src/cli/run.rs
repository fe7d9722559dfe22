//! The command `run`: all tests in sequence, a summary on one screen and a report in a folder; on this machine's driver, on
//! the embedded one, or in a guest.
//! Not here: the list of tests (`bench::suite`), the report's contents (`record::render::report`), the guest
//! (`vm`).

mod fault;
mod soak;

use std::path::PathBuf;
use std::time::Duration;

use bench::load::LoadSpec;
use bench::suite::{self, Depth, Experiment, SuiteEnd, SuiteObserver, SuiteOptions, SuitePart};
use clap::Args;
use fleet::guest::run as guest;
use host::klog;
use record::checkup::Checkup;
use record::render::report::{RunProblem, verdicts};
use record::verdict::Grade;
use record::{DriverKind, Finding, Run};
use store::run::Folder;

use super::driver::DriverArgs;
use super::progress::{self, StatusLine};
use super::{
    A_YEAR_S, CommandResult, Failure, OrExit, command_line, complain, exit, note, say, status_of, tell,
};
use conduct::measure::chosen;
use fault::Fault;
use units::typed::duration;

/// Run all tests: binder and hwbinder, throughput and latency, slow calls with their causes; with a report
///
/// Uses this machine's driver, else the embedded one. Ctrl-C keeps the results so far. The summary is on stdout; the
/// folder holds a record of each test, the doctor's findings, a recording of slow calls, and report.html.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// Under a minute, for a first look
    #[arg(long)]
    quick: bool,

    /// Several repetitions, longer tests and the experiments, for results to compare with
    #[arg(long, conflicts_with = "quick")]
    thorough: bool,

    /// The experiments, too: inversion, overload, background and latency sweep; always with --thorough
    #[arg(long)]
    experiments: bool,

    /// Folder for records, recordings and the report [default: binderperf-run-TIME]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,

    /// Fail if the kernel or its binder driver logged a problem during the run
    #[arg(long)]
    klog_check: bool,

    /// Measure latency without the flight recorder: no picture of the slowest calls, and no second pass where recording costs much
    #[arg(long)]
    no_trace: bool,

    /// Inject a fault into the latency tests, to see its cause named; as for `latency`, e.g. delay=5000:0.01; with --soak also leak-broker, leak-nodes=N, leak-buffers=N, leak-memory=KIB, leak-descriptors=N, slow-down=NS
    #[arg(long, value_name = "FAULT")]
    inject: Vec<Fault>,

    /// Short tests in turns under load for this time (90s, 30m, 8h), and whether anything drifts or grows; with the same --out it goes on after a kill or reboot
    #[arg(help_heading = "Soak", long, value_name = "TIME", value_parser = duration, conflicts_with_all = ["quick", "thorough", "experiments", "klog_check", "no_trace"])]
    soak: Option<Duration>,

    /// Stop the soak after N turns in all
    #[arg(help_heading = "Soak", long, value_name = "N", requires = "soak", value_parser = clap::value_parser!(u64).range(1..))]
    turns: Option<u64>,

    /// Load during the soak, as for `latency` [default: cpu:1:batch]
    #[arg(help_heading = "Soak", long, value_name = "KIND[:COUNT[:CLASS]]", requires = "soak")]
    load: Vec<LoadSpec>,

    /// Seconds (more on a busy machine) without a reply after which a throughput or latency test counts as hanging
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,

    /// Use the driver of a real kernel, in a VM: bzImage, .deb (may be repeated), or a name such as 6.12; as vm --kernel
    #[arg(long, alias = "kernel", value_name = "KERNEL", num_args = 0..=1, default_missing_value = "", conflicts_with_all = HERE)]
    vm: Option<Vec<String>>,

    /// Turns of a soak that do the least that has figures, for tests
    #[arg(long, hide = true, requires = "soak")]
    tiny: bool,

    /// Report progress on stderr for the copy of this program on the host
    #[arg(long, hide = true)]
    progress: bool,

    #[command(flatten)]
    driver: DriverArgs,
}

/// Flags about the driver of this machine.
const HERE: [&str; 6] = ["driver", "device", "context_dir", "inherit", "wait", "direct"];

/// Hint on how to measure a kernel's driver.
const IN_A_VM: &str =
    "binderperf run --vm measures the driver of a real kernel, in a VM (--vm=X: that kernel).\n";

/// Runs it.
pub(crate) fn run(args: &RunArgs) -> CommandResult {
    if let Some(time) = args.soak {
        return soak::run(args, time);
    }
    fault::refuse_of_soak(&args.inject)?;
    let mut folder = Folder::make(args.out.clone(), tell)?;
    let measured = match &args.vm {
        Some(kernels) => guest::run(kernels, args.words_there(), args.depth().usual_whole(), &mut folder),
        None => here(args, &mut folder),
    };
    match measured {
        Ok(()) => Ok(present(&mut folder)),
        Err(failure) => {
            folder.remove_if_empty();
            Err(failure)
        }
    }
}

impl RunArgs {
    fn depth(&self) -> Depth {
        match (self.quick, self.thorough) {
            (true, _) => Depth::Quick,
            (_, true) => Depth::Thorough,
            _ => Depth::Usual,
        }
    }

    /// The words of the copy in a guest, apart from those that every copy gets.
    fn words_there(&self) -> Vec<String> {
        let flags = [
            (self.quick, "--quick"),
            (self.thorough, "--thorough"),
            (self.no_trace, "--no-trace"),
            (self.experiments, "--experiments"),
            (self.klog_check, "--klog-check"),
            (self.tiny, "--tiny"),
        ];
        let flags = flags.into_iter().filter(|(given, _)| *given).map(|(_, word)| word.to_owned());
        let soak = self.soak.map(|time| format!("--soak={}s", time.as_secs_f64()));
        let turns = self.turns.map(|turns| format!("--turns={turns}"));
        let loads = self.load.iter().map(|load| format!("--load={load}"));
        let faults = self.inject.iter().map(|fault| format!("--inject={fault}"));
        let patience = format!("--patience={}", self.patience);
        flags.chain(soak).chain(turns).chain(loads).chain(faults).chain([patience]).collect()
    }
}

/// Runs on this machine: on its own driver or the embedded one.
fn here(args: &RunArgs, folder: &mut Folder) -> Result<(), Failure> {
    let wanted = args.driver.wanted().or_exit(exit::USAGE)?;
    let options = SuiteOptions {
        depth: args.depth(),
        experiments: args.experiments || args.thorough,
        wanted,
        inherits_as_told: args.driver.inherit().is_some(),
        recordings: (!args.no_trace).then(|| folder.path().to_owned()),
        injected: fault::of_tests(&args.inject).collect(),
        patience_s: args.patience,
        command_line: command_line(),
    };
    let watch = args.klog_check.then(klog::Watch::begin).transpose().or_exit(exit::UNABLE)?;
    let mut line = StatusLine::default();
    line.show("looking at the machine");
    let checkup = Some(doctor::examine_here());
    let mut progress = ProgressReporter { line, for_a_copy: args.progress, folder, checkup };
    let ended = suite::execute(&options, &mut progress);
    progress.line.show("");
    if !matches!(ended, SuiteEnd::NoDriver(_)) {
        watch.into_iter().for_each(|watch| folder.keep_complaints(watch.end()));
    }
    match ended {
        SuiteEnd::Whole => Ok(()),
        SuiteEnd::Interrupted => {
            note("Stopped by a signal: what was measured until then is kept.\n");
            Ok(())
        }
        SuiteEnd::NoDriver(error) => {
            complain(error);
            note(IN_A_VM);
            Err(Failure { status: exit::UNABLE, message: None })
        }
    }
}

/// Shows progress, and stores each result at once.
struct ProgressReporter<'f> {
    line: StatusLine,
    for_a_copy: bool,
    folder: &'f mut Folder,
    /// The doctor's findings before the first test; stored once a test begins.
    checkup: Option<Checkup>,
}

impl SuiteObserver for ProgressReporter<'_> {
    fn begins(&mut self, run: &Run) {
        if let Some(checkup) = self.checkup.take() {
            self.folder.keep_checkup(checkup);
        }
        self.line.show("");
        note(chosen(run).unwrap_or_default());
        let by_itself = run.driver.as_ref().filter(|driver| driver.choice == "auto");
        if by_itself.is_some_and(|driver| driver.kind == DriverKind::Embedded) {
            note(IN_A_VM);
        }
    }

    fn advanced(&mut self, part: SuitePart, done: u64, all: u64, left: Duration) {
        let (name, seconds) = (part.name(), left.as_secs());
        if self.for_a_copy {
            note(progress::line(done as usize, all as usize, name) + "\n");
        } else {
            self.line.show(&format!("{name} {done}/{all}, about {seconds} s left"));
        }
    }

    fn repeats(&mut self, part: SuitePart, why: &Finding) {
        self.line.show("");
        note(format_args!("{} was disturbed and is measured once more: {}\n", part.name(), why.text));
    }

    fn kept_first(&mut self, part: SuitePart, run: Run) {
        self.folder.keep_first(part.name(), &run);
    }

    fn kept(&mut self, part: SuitePart, run: Run) {
        self.folder.keep(part.name(), run);
    }

    fn missing(&mut self, part: SuitePart, why: String) {
        // These need rights that the tests do without.
        let problem = match part {
            SuitePart::Experiment(Experiment::Inversion | Experiment::Background) => {
                RunProblem::not_here(part.name(), why)
            }
            _ => RunProblem::not_run(part.name(), why),
        };
        self.folder.bundle.troubles.push(problem);
    }
}

/// Writes the report and the summary; returns the exit status.
fn present(folder: &mut Folder) -> u8 {
    folder.explain();
    let report = folder.report();
    let printed = status_of(say(&folder.summary(report.as_deref())));
    let troubles = folder.troubles();
    troubles.iter().for_each(complain);
    let tests = verdicts(&folder.bundle);
    let bad = tests.iter().flat_map(|test| &test.verdicts).any(|verdict| verdict.grade == Grade::Bad);
    if !troubles.is_empty() || printed != exit::FINE {
        exit::INTERNAL
    } else if folder.bundle.runs.is_empty() {
        exit::UNABLE
    } else if bad {
        exit::FAILED
    } else {
        exit::FINE
    }
}
