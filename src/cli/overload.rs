//! The command `overload`: its options, output and exit status.
//! Not here: the experiment (`bench::overload`), its verdict (`record::verdict`).

use bench::overload::OverloadOptions;
use bench::plan::Flavour;
use clap::Args;
use conduct::verdict::overload_status;

use super::choice;
use super::driver::DriverArgs;
use super::experiment::ExperimentArgs;
use super::{CommandResult, command_line};

/// See how many real-time pairs of client and server keep a deadline: at most as many as there are CPUs
///
/// The pairs call at the same moments, and a CPU can serve one such call before the deadline. Both sides of each pair are
/// SCHED_FIFO; the same pairs as ordinary threads are measured for comparison.
#[derive(Clone, Debug, Args)]
pub(crate) struct OverloadArgs {
    #[command(flatten)]
    driver: DriverArgs,

    /// What is spoken
    #[arg(help_heading = "Service", long, value_name = "FLAVOUR", default_value_t, value_parser = choice::of([Flavour::Hwbinder, Flavour::Binder]))]
    flavour: Flavour,

    /// Number of CPUs that all pairs share, the last usable ones [default: all usable ones, 64 at most]
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,

    /// Numbers of pairs, ascending [default: 1, those around the number of CPUs, and twice that number]
    #[arg(short = 'w', long, value_name = "N,...", value_delimiter = ',')]
    pairs: Vec<u32>,

    /// For how long the service computes in each call, in us of CPU time
    #[arg(long, value_name = "US", default_value_t = OverloadOptions::usual().work_us, allow_negative_numbers = true)]
    work: u64,

    /// Deadline of a call in us: more than the work, less than twice as much
    #[arg(long, value_name = "US", default_value_t = OverloadOptions::usual().deadline_us, allow_negative_numbers = true)]
    deadline_us: u64,

    /// Time between two calls of a pair, in us
    #[arg(long, value_name = "US", default_value_t = OverloadOptions::usual().period_us, allow_negative_numbers = true)]
    period_us: u64,

    /// Calls of each pair in a round
    #[arg(short = 'i', long, value_name = "N", default_value_t = OverloadOptions::usual().iterations, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    iterations: u32,

    /// Rounds, in each of which every number of pairs has its turn
    #[arg(long, value_name = "N", default_value_t = OverloadOptions::usual().rounds, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    #[command(flatten)]
    common: ExperimentArgs,
}

impl OverloadArgs {
    fn options(&self) -> Result<OverloadOptions, String> {
        let options = OverloadOptions {
            flavour: self.flavour,
            cpus: self.cpus,
            pairs: self.pairs.clone(),
            work_us: self.work,
            deadline_us: self.deadline_us,
            period_us: self.period_us,
            iterations: self.iterations,
            rounds: self.rounds,
            wanted: self.driver.wanted()?,
            android: self.common.android,
            time_limit_s: self.common.time_limit,
            command_line: command_line(),
            ..OverloadOptions::usual()
        };
        options.check().map(|_| options)
    }
}

/// Runs the experiment.
pub(crate) fn run(args: &OverloadArgs) -> CommandResult {
    args.common.measure(args.options(), bench::overload::execute, overload_status)
}
