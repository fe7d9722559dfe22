//! The command `background`: its options, output and exit status.
//! Not here: the experiment (`bench::background`), its verdicts (`record::verdict`).

use bench::background::{BackgroundOptions, GroupKind};
use bench::plan::Flavour;
use clap::Args;
use conduct::verdict::background_status;

use super::choice::{self, Table};
use super::driver::DriverArgs;
use super::experiment::ExperimentArgs;
use super::{CommandResult, command_line};

/// See what calls cost if the server or the caller is in the background, and what moving to the foreground costs
///
/// A caller, its server and a CPU hog share one CPU. The background is a control group with a twentieth of the CPU time, or
/// nice 10. Binder drivers move no thread between groups, so a server must move itself, or be moved.
#[derive(Clone, Debug, Args)]
pub(crate) struct BackgroundArgs {
    #[command(flatten)]
    driver: DriverArgs,

    /// What is spoken
    #[arg(help_heading = "Service", long, value_name = "FLAVOUR", default_value_t = BackgroundOptions::usual().flavour, value_parser = choice::of([Flavour::Hwbinder, Flavour::Binder]))]
    flavour: Flavour,

    /// What the background is
    #[arg(long, value_parser = choice::table(&KINDS), value_name = "WHAT", default_value = "auto")]
    group: GroupKind,

    /// Foreground processes that hog the CPU
    #[arg(long, value_name = "N", default_value_t = BackgroundOptions::usual().hogs, allow_negative_numbers = true)]
    hogs: u32,

    /// For how long the service computes in each call, in us of CPU time
    #[arg(long, value_name = "US", default_value_t = BackgroundOptions::usual().work_us, allow_negative_numbers = true)]
    work: u64,

    /// Calls of each setting in a round
    #[arg(short = 'i', long, value_name = "N", default_value_t = BackgroundOptions::usual().iterations, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    iterations: u32,

    /// Rounds, in each of which every setting has its turn
    #[arg(long, value_name = "N", default_value_t = BackgroundOptions::usual().rounds, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    #[command(flatten)]
    common: ExperimentArgs,
}

/// Kinds of the background.
const KINDS: Table<GroupKind, 3> = [
    (GroupKind::Auto, "auto", "A control group if one can be made, else a nice value"),
    (GroupKind::Cgroup, "cgroup", "A control group with a twentieth of the CPU time (version 1 or 2)"),
    (GroupKind::Nice, "nice", "Nice 10"),
];

impl BackgroundArgs {
    fn options(&self) -> Result<BackgroundOptions, String> {
        let options = BackgroundOptions {
            flavour: self.flavour,
            group: self.group,
            hogs: self.hogs,
            work_us: self.work,
            iterations: self.iterations,
            rounds: self.rounds,
            wanted: self.driver.wanted()?,
            android: self.common.android,
            time_limit_s: self.common.time_limit,
            command_line: command_line(),
            ..BackgroundOptions::usual()
        };
        options.check().map(|()| options)
    }
}

/// Runs the experiment.
pub(crate) fn run(args: &BackgroundArgs) -> CommandResult {
    args.common.measure(args.options(), bench::background::execute, background_status)
}
