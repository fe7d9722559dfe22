//! The command `workload run`: carries a description out.
//! Not here: how (`bench::replay`), judging it (`workload distance`).

use std::path::PathBuf;

use bench::replay::WorkloadOptions;
use bench::run::Observer;
use clap::Args;
use conduct::verdict::workload_status;
use store::input;

use crate::cli::constraints::ConstraintArgs;
use crate::cli::driver::DriverArgs;
use crate::cli::experiment::ExperimentArgs;
use crate::cli::{CommandResult, command_line, tell};

/// Largest description that is read, in bytes.
const LARGEST: u64 = 256 << 20;

/// Carry a description out: its processes make their calls, and report how long each took
///
/// A call that depended on an earlier one comes behind it, however long that took; one that came by time comes at its time. To judge it,
/// record it: `trace record -o FILE -- binderperf workload run DESCRIPTION`, then `workload distance ORIGINAL FILE`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// The description
    file: PathBuf,

    #[command(flatten)]
    driver: DriverArgs,

    /// Run N such loads at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    scale: u32,

    /// Leave the priorities of the description out: all threads are ordinary ones
    #[arg(long)]
    no_scheduling: bool,

    /// Carry it out N times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Duration of a load whose threads have no end, in seconds
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,

    /// Give up after so many seconds (more on a busy machine) without a call, beyond the longest pause of the load
    #[arg(help_heading = "Verdict", long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    patience: u64,

    #[command(flatten)]
    constraints: ConstraintArgs,

    #[command(flatten)]
    common: ExperimentArgs,
}

impl RunArgs {
    fn options(&self) -> Result<WorkloadOptions, String> {
        let name = self.file.display();
        let text = input::text(&self.file, LARGEST, tell).map_err(|error| format!("{name}: {error}"))?;
        let workload = workload::text::parse(&text).map_err(|error| format!("{name}: {error}"))?;
        let options = WorkloadOptions {
            workload,
            scale: self.scale,
            with_scheduling: !self.no_scheduling,
            rounds: self.rounds,
            seconds: self.seconds.into(),
            wanted: self.driver.wanted()?,
            android: self.common.android,
            patience_s: self.patience,
            time_limit_s: self.common.time_limit,
            command_line: command_line(),
        };
        options.check().map(|()| options)
    }
}

/// Runs it.
pub(super) fn run(args: &RunArgs) -> CommandResult {
    let held = args.constraints.wanted();
    let execute = |options: &WorkloadOptions, observer: &mut dyn Observer| {
        held.held(|| bench::replay::execute(options, observer))
    };
    args.common.measure(args.options(), execute, workload_status)
}
