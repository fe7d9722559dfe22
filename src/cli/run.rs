//! The command `run`: all tests in sequence, a summary on one screen and a report in a folder; on this machine's driver, on
//! the embedded one, or in a guest.
//! Not here: running them (`conduct::suite`, `conduct::soak`), the list of tests (`bench::suite`), the report's contents
//! (`record::render::report`), guests (`fleet::guest::run`).

use std::path::PathBuf;
use std::time::Duration;

use bench::load::LoadSpec;
use bench::soak::SoakOptions;
use bench::soak::fault::{Fault, of_soak, of_tests};
use bench::suite::{Depth, SuiteOptions};
use clap::Args;
use conduct::{soak, suite};
use fleet::guest::run as guest;
use store::run::{Folder, unnamed};
use units::typed::duration;

use super::driver::DriverArgs;
use super::{A_YEAR_S, CommandResult, Failure, OrExit, command_line, exit, tell};

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

    /// Inject a fault into the latency tests, to see its cause named; as for `latency`, e.g. delay=5000:0.01; with
    /// --soak also leak-broker, leak-nodes=N, leak-buffers=N, leak-memory=KIB, leak-descriptors=N, slow-down=NS
    #[arg(long, value_name = "FAULT")]
    inject: Vec<Fault>,

    /// Short tests in turns under load for this time (90s, 30m, 8h), and whether anything drifts or grows; with the
    /// same --out it goes on after a kill or reboot
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

    /// The least that has figures, for tests: of every test, or of a soak's turns
    #[arg(long, hide = true, conflicts_with_all = ["quick", "thorough"])]
    tiny: bool,

    /// Report progress on stderr for the copy of this program on the host
    #[arg(long, hide = true)]
    progress: bool,

    #[command(flatten)]
    driver: DriverArgs,
}

/// Flags about the driver of this machine.
const HERE: [&str; 6] = ["driver", "device", "context_dir", "inherit", "wait", "direct"];

/// The load of a soak without `--load`.
const USUAL_LOAD: &str = "cpu:1:batch";

/// Runs it.
pub(crate) fn run(args: &RunArgs) -> CommandResult {
    if let Some(time) = args.soak {
        return args.soak(time);
    }
    if let Some(fault) = of_soak(&args.inject).next() {
        return Err(Failure::new(exit::USAGE, format_args!("--inject {fault} needs --soak TIME")));
    }
    let mut folder = Folder::make(args.out.clone(), tell)?;
    let measured = match &args.vm {
        Some(kernels) => guest::run(kernels, args.words_there(), args.depth().usual_whole(), &mut folder),
        None => args.here(&mut folder),
    };
    match measured {
        Ok(()) => Ok(suite::present(&mut folder)),
        Err(failure) => {
            folder.remove_if_empty();
            Err(failure)
        }
    }
}

impl RunArgs {
    fn depth(&self) -> Depth {
        match (self.tiny, self.quick, self.thorough) {
            (true, ..) => Depth::Tiny,
            (_, true, _) => Depth::Quick,
            (.., true) => Depth::Thorough,
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

    /// Runs on this machine: on its own driver or the embedded one.
    fn here(&self, folder: &mut Folder) -> Result<(), Failure> {
        let options = SuiteOptions {
            depth: self.depth(),
            experiments: self.experiments || self.thorough,
            wanted: self.driver.wanted().or_exit(exit::USAGE)?,
            inherits_as_told: self.driver.inherit().is_some(),
            recordings: (!self.no_trace).then(|| folder.path().to_owned()),
            injected: of_tests(&self.inject).collect(),
            patience_s: self.patience,
            command_line: command_line(),
        };
        suite::run(&options, self.klog_check, self.progress, folder)
    }

    /// Soaks, here or in a guest.
    fn soak(&self, time: Duration) -> CommandResult {
        let job = soak::Job {
            folder: self.out.clone().unwrap_or_else(unnamed),
            time,
            turns: self.turns,
            for_a_copy: self.progress,
        };
        match &self.vm {
            Some(kernels) => {
                soak::run_elsewhere(&job, |log| guest::soak(kernels, self.words_there(), time, log))
            }
            None => soak::run(&job, || self.soak_options()),
        }
    }

    fn soak_options(&self) -> Result<SoakOptions, String> {
        let usual = || USUAL_LOAD.parse().map(|load| vec![load]);
        Ok(SoakOptions {
            wanted: self.driver.wanted()?,
            inherits_as_told: self.driver.inherit().is_some(),
            loads: if self.load.is_empty() { usual()? } else { self.load.clone() },
            injected: of_tests(&self.inject).collect(),
            faults: of_soak(&self.inject).collect(),
            patience_s: self.patience,
            tiny: self.tiny,
            command_line: command_line(),
        })
    }
}
