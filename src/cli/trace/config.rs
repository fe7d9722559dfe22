//! The command `trace config`: prints a configuration for Perfetto's recorder.
//! Not here: its text (`ftrace::perfetto`).

use clap::Args;
use ftrace::categories::{self, known};
use ftrace::perfetto::PerfettoConfig;

use crate::cli::{A_YEAR_S, CommandResult, say};

/// Print a configuration with which Perfetto's own recorder records the same events, on any phone and without root
///
/// `perfetto -c - --txt -o FILE` reads it from standard input. The buffer keeps the newest events.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Size of the buffer of all CPUs together in KB
    #[arg(short = 'b', long, value_name = "KB", default_value_t = 65_536, value_parser = clap::value_parser!(u64).range(64..=4_194_304))]
    buffer_kb: u64,

    /// Record for this many seconds; otherwise until it is interrupted
    #[arg(short = 't', long, value_name = "SEC", value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    time: Option<u64>,

    /// Record until the trigger binderperf-miss, which `trigger_perfetto binderperf-miss` sends; otherwise nothing is written
    #[arg(long, conflicts_with = "time")]
    until_miss: bool,

    /// Application whose trace sections are recorded, * for all; may be repeated
    #[arg(long, value_name = "NAME")]
    app: Vec<String>,

    /// Categories of events, of the kernel and of Android's userspace [default: sched freq idle irq workq sync binder_driver memreclaim]
    categories: Vec<String>,
}

/// Prints it.
pub(super) fn run(args: &ConfigArgs) -> CommandResult {
    let usual = || categories::USUAL.map(str::to_owned).to_vec();
    let names = if args.categories.is_empty() { usual() } else { args.categories.clone() };
    let (categories, userspace) = known(&names)?;
    let applications: Vec<&str> = args.app.iter().map(String::as_str).collect();
    let config = PerfettoConfig {
        categories: &categories,
        userspace: &userspace,
        applications: &applications,
        buffer_kb: args.buffer_kb,
        seconds: args.time,
        until_miss: args.until_miss,
        stream: false,
        kernel_buffer_kb: None,
    };
    say(&config.text())
}
