//! The command `throughput hwbinder-workers`, which is also Android's `hwbinderThroughputTest`: its flags.
//! Not here: measuring (`super::crowd`, `bench::workers`).
//! Facts: flags and defaults of libhwbinder's `Benchmark_throughput.cpp`; `-s` is the number of services
//! there, where its binder twin means bytes.

use bench::plan::Flavour;
use bench::plan::MinTime;
use bench::workers::{Group, Shape, WorkersOptions};
use clap::Parser;
use conduct::latency::note_mode;

use super::super::exact::ExactArgs;
use super::super::show::{Form, forms};
use super::super::{CommandResult, Failure, exit};
use super::crowd::{self, Common};

/// Measure hwbinder throughput with many workers that call services; Android's hwbinderThroughputTest
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
pub(crate) struct HwbinderArgs {
    /// BINDERIZE: calls to other processes; PASSTHROUGH: to the same objects in each worker's own process, without IPC
    #[arg(short = 'm', long, value_name = "MODE", default_value = "BINDERIZE")]
    mode: String,

    /// Workers, each a process
    #[arg(short = 'w', long, value_name = "N", default_value_t = 2, allow_negative_numbers = true)]
    workers: u32,

    /// Calls of each worker in a round
    #[arg(short = 'i', long, value_name = "N", default_value_t = 10_000, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    iterations: u64,

    /// Duration of each worker's calls in seconds, instead of a number of calls
    #[arg(long, value_name = "S", conflicts_with = "iterations", allow_negative_numbers = true, value_parser = crowd::seconds)]
    duration: Option<f64>,

    /// Services, each a process with one thread [default: as many as workers]
    #[arg(short = 's', long, value_name = "N", allow_negative_numbers = true)]
    services: Option<u32>,

    /// Bytes of the vector that is sent and returned
    #[arg(long, value_name = "BYTES", default_value_t = 16, allow_negative_numbers = true)]
    payload: u32,

    /// Output format [default: lines]
    #[arg(help_heading = "Output", long, value_parser = forms())]
    format: Option<Form>,

    #[command(flatten)]
    exact: ExactArgs,

    #[command(flatten)]
    common: Common,
}

/// Runs it; `applet`: called by the name of Android's tool.
pub(crate) fn run(args: HwbinderArgs, applet: bool) -> CommandResult {
    let as_android = crowd::as_android(args.exact, applet, args.format)?;
    let flavour = match args.mode.as_str() {
        "BINDERIZE" => Flavour::Hwbinder,
        "PASSTHROUGH" => Flavour::Passthrough,
        other if as_android => {
            note_mode(other);
            Flavour::Hwbinder
        }
        other => {
            let why = format_args!("-m is BINDERIZE or PASSTHROUGH, not {other:?}");
            return Err(Failure::new(exit::USAGE, why));
        }
    };
    let shape = Shape::Services { count: args.services.unwrap_or(args.workers), more_threads: 0 };
    let groups = vec![Group { shape, workers: args.workers, payload: args.payload }];
    let length = args.duration.map_or(MinTime::Iterations(args.iterations), MinTime::Seconds);
    let options = args.common.options("throughput hwbinder-workers", flavour, groups, length);
    let options = options.map(|options| WorkersOptions { as_android, ..options });
    crowd::run(options, &args.common, args.format.unwrap_or(Form::Lines))
}
