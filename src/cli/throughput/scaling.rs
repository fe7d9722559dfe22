//! The command `throughput scaling`: throughput and latency with an increasing number of clients: its options.
//! Not here: the cases (`bench::workers::scaling`), measuring (`super::crowd`, `bench::workers`).

use bench::plan::Flavour;
use bench::plan::MinTime;
use bench::workers::MOST_WORKERS;
use bench::workers::scaling::{Who, groups, leave_out, powers};
use clap::{Parser, ValueEnum};

use super::super::CommandResult;
use super::super::choice::{self, Table};
use super::super::note;
use super::super::show::{Form, forms};
use super::crowd::{self, Common};

/// Measure how binder throughput and latency change with 1, 2, 4, ... pairs, and clients of one service
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
pub(super) struct ScalingArgs {
    /// Most pairs, and most clients of one service [default: twice the CPUs]
    #[arg(short = 'P', long, value_name = "N", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_WORKERS / 2)))]
    most: Option<u32>,

    /// The numbers of clients
    #[arg(long, value_enum, default_value_t = Steps::Powers)]
    steps: Steps,

    /// Payloads in bytes
    #[arg(short = 's', long, value_name = "BYTES", value_delimiter = ',', default_values_t = [0, 4096])]
    payload: Vec<u32>,

    /// The services that the clients call
    #[arg(long, value_parser = choice::table(&SERVICES), value_delimiter = ',', default_values = ["pairs", "one-service"])]
    shape: Vec<Who>,

    /// The library that the workers use
    #[arg(long, value_parser = choice::table(&LIBRARIES), default_value = "binder")]
    flavour: Flavour,

    /// Duration of a round of each case in seconds
    #[arg(long, value_name = "S", default_value = "1", allow_negative_numbers = true, value_parser = crowd::seconds)]
    duration: f64,

    /// Calls of each client in a round, instead of a duration
    #[arg(short = 'i', long, value_name = "N", conflicts_with = "duration", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    iterations: Option<u64>,

    /// Output format
    #[arg(help_heading = "Output", long, value_parser = forms(), default_value = "summary")]
    format: Form,

    #[command(flatten)]
    common: Common,
}

/// Libraries that workers use.
const LIBRARIES: Table<Flavour, 2> = [
    (Flavour::Binder, "binder", "Bare transactions"),
    (Flavour::Hwbinder, "hwbinder", "`IBenchmark::sendVec`"),
];

/// The numbers up to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Steps {
    /// 1, 2, 4, ... and the most
    Powers,
    /// Every number
    All,
}

/// The services that the clients call.
const SERVICES: Table<Who, 2> = [
    (Who::Pairs, "pairs", "Each client has a service of its own"),
    (Who::OneService, "one-service", "All clients call one service with a pool of threads"),
];

/// Runs it.
pub(super) fn run(args: ScalingArgs) -> CommandResult {
    let most = args.most.unwrap_or_else(|| (host::cpus() * 2).min(MOST_WORKERS / 2));
    let steps = match args.steps {
        Steps::Powers => powers(most),
        Steps::All => (1..=most).collect(),
    };
    let mut groups = groups(&args.shape, &args.payload, &steps);
    let length = args.iterations.map_or(MinTime::Seconds(args.duration), MinTime::Iterations);
    for left_out in leave_out(&mut groups, args.flavour) {
        note(format_args!("{left_out}\n"));
    }
    let options = args.common.options("throughput scaling", args.flavour, groups, length);
    crowd::run(options, &args.common, args.format)
}
