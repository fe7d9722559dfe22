//! The command `inversion`: its options, output and exit status.
//! Not here: the experiment (`bench::inversion`), what inversion is (`record::experiments::inversion`).

use bench::inversion::InversionOptions;
use bench::load::LoadClass;
use bench::plan::{Flavour, fresh_seed};
use clap::{ArgAction, Args};
use conduct::verdict::inversion_status;

use super::choice::{self, Table};
use super::driver::DriverArgs;
use super::experiment::ExperimentArgs;
use super::{A_YEAR_S, CommandResult, command_line};

/// See whether a server without its real-time caller's priority keeps that caller waiting
///
/// A SCHED_FIFO caller, its server and CPU hogs share one CPU. With inheritance the server runs ahead of the hogs;
/// without it the caller waits for all of them.
#[derive(Clone, Debug, Args)]
pub(crate) struct InversionArgs {
    #[command(flatten)]
    driver: DriverArgs,

    /// What is spoken
    #[arg(help_heading = "Service", long, value_name = "FLAVOUR", default_value_t, value_parser = choice::of([Flavour::Hwbinder, Flavour::Binder]))]
    flavour: Flavour,

    /// Processes that hog the CPU
    #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true)]
    hogs: u32,

    /// How they are scheduled: other, batch, idle, niceN, fifoN, rrN
    #[arg(long, value_name = "CLASS", default_value_t)]
    hog_class: LoadClass,

    /// For how long the service computes in each call, in us of CPU time
    #[arg(long, value_name = "US", default_value_t = 1000, allow_negative_numbers = true)]
    work: u64,

    /// The CPU that all share [default: the last usable one]
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,

    /// Calls of each setting in a round
    #[arg(short = 'i', long, value_name = "N", default_value_t = 100, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    iterations: u32,

    /// Rounds, in each of which every setting has its turn
    #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// The result that makes the exit status 0
    #[arg(help_heading = "Verdict", long, action = ArgAction::Set, value_parser = choice::table(&EXPECTED), value_name = "WHAT", default_value = "none")]
    expect: bool,

    /// Seed of the pauses between calls [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    #[command(flatten)]
    common: ExperimentArgs,

    /// Seconds (more on a busy machine) without a call after which the test counts as hanging
    #[arg(long, hide = true, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,
}

/// Whether inversion is expected.
const EXPECTED: Table<bool, 2> = [
    (false, "none", "No inversion with inheritance"),
    (
        true,
        "inversion",
        "Inversion in spite of inheritance, as on drivers that do not inherit real-time policies",
    ),
];

impl InversionArgs {
    fn options(&self) -> Result<InversionOptions, String> {
        let options = InversionOptions {
            flavour: self.flavour,
            hogs: self.hogs,
            hog_class: self.hog_class,
            cpu: self.cpu,
            work_us: self.work,
            iterations: self.iterations,
            rounds: self.rounds,
            wanted: self.driver.wanted()?,
            inherit: self.driver.inherit(),
            android: self.common.android,
            seed: self.seed.unwrap_or_else(fresh_seed),
            patience_s: self.patience,
            time_limit_s: self.common.time_limit,
            command_line: command_line(),
        };
        options.check().map(|()| options)
    }
}

/// Runs the experiment.
pub(crate) fn run(args: &InversionArgs) -> CommandResult {
    args.common.measure(args.options(), bench::inversion::execute, |run| inversion_status(run, args.expect))
}
