//! The command `throughput scaling`: throughput and latency with an increasing number of clients: its options.
//! Not here: the cases (`bench::workers::scaling`), measuring (`super::crowd`, `bench::workers`).

use bench::plan::Flavour;
use bench::plan::MinTime;
use bench::workers::MOST_WORKERS;
use bench::workers::scaling::{self, groups, leave_out, powers};
use clap::{Parser, ValueEnum};

use super::super::CommandResult;
use super::super::note;
use super::super::show::Form;
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
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Who::Pairs, Who::OneService])]
    shape: Vec<Who>,

    /// The library that the workers use
    #[arg(long, value_enum, default_value_t = Speak::Binder)]
    flavour: Speak,

    /// Duration of a round of each case in seconds
    #[arg(long, value_name = "S", default_value = "1", allow_negative_numbers = true, value_parser = crowd::seconds)]
    duration: f64,

    /// Calls of each client in a round, instead of a duration
    #[arg(short = 'i', long, value_name = "N", conflicts_with = "duration", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    iterations: Option<u64>,

    /// Output format
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Form::Summary)]
    format: Form,

    #[command(flatten)]
    common: Common,
}

/// The library in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Speak {
    /// Bare transactions
    Binder,
    /// `IBenchmark::sendVec`
    Hwbinder,
}

/// The numbers up to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Steps {
    /// 1, 2, 4, ... and the most
    Powers,
    /// Every number
    All,
}

/// The services that the clients call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Who {
    /// Each client has a service of its own
    Pairs,
    /// All clients call one service with a pool of threads
    OneService,
}

impl From<Who> for scaling::Who {
    fn from(who: Who) -> Self {
        match who {
            Who::Pairs => Self::Pairs,
            Who::OneService => Self::OneService,
        }
    }
}

/// Runs it.
pub(super) fn run(args: ScalingArgs) -> CommandResult {
    let most = args.most.unwrap_or_else(|| (host::cpus() * 2).min(MOST_WORKERS / 2));
    let steps = match args.steps {
        Steps::Powers => powers(most),
        Steps::All => (1..=most).collect(),
    };
    let whos: Vec<_> = args.shape.iter().map(|who| scaling::Who::from(*who)).collect();
    let mut groups = groups(&whos, &args.payload, &steps);
    let length = args.iterations.map_or(MinTime::Seconds(args.duration), MinTime::Iterations);
    let flavour = match args.flavour {
        Speak::Binder => Flavour::Binder,
        Speak::Hwbinder => Flavour::Hwbinder,
    };
    for left_out in leave_out(&mut groups, flavour) {
        note(format_args!("{left_out}\n"));
    }
    let options = args.common.options("throughput scaling", flavour, groups, length);
    crowd::run(options, &args.common, args.format)
}
