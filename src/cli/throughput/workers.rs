//! The command `throughput workers`, which is also Android's `binderThroughputTest`: its flags.
//! Not here: measuring (`super::crowd`, `bench::workers`).
//! Facts: flags and defaults of AOSP `binderThroughputTest.cpp` (Android 14).

use bench::plan::Flavour;
use bench::plan::{Device, MinTime};
use bench::workers::{Group, Shape};
use clap::Parser;

use super::super::CommandResult;
use super::super::exact::ExactArgs;
use super::super::show::{Form, forms};
use super::crowd::{self, Common};

/// Measure binder throughput with many workers that call each other; Android's binderThroughputTest
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
pub(crate) struct WorkersArgs {
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

    /// Bytes of each call
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 0, allow_negative_numbers = true)]
    payload: u32,

    /// Half of the workers are servers, the others call one each, instead of calls to random workers
    #[arg(short = 'p', long)]
    pairs: bool,

    /// Expected longest call in us; calls that took longer are counted
    #[arg(help_heading = "Times that are expected", short = 'm', long, value_name = "US", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    expected_max: Option<u64>,

    /// Run a training round; twice its longest call is then the expected longest call
    #[arg(help_heading = "Times that are expected", short = 't', long)]
    training: bool,

    /// Ping this registered service instead
    #[arg(long, value_name = "NAME", conflicts_with = "pairs")]
    service: Option<String>,

    /// Output format [default: lines]
    #[arg(help_heading = "Output", long, value_parser = forms())]
    format: Option<Form>,

    #[command(flatten)]
    exact: ExactArgs,

    #[command(flatten)]
    common: Common,
}

/// The device on which a registered service is looked up.
fn of_others(device: Device) -> Result<Device, String> {
    match device {
        Device::Auto => Ok(Device::Named("binder".to_owned())),
        Device::Private => {
            Err("nobody has registered --service in a private context: name its --device".to_owned())
        }
        named => Ok(named),
    }
}

/// Runs it; `applet`: called by the name of Android's tool.
pub(crate) fn run(args: WorkersArgs, applet: bool) -> CommandResult {
    let as_android = crowd::as_android(args.exact, applet, args.format)?;
    let shape = match (&args.service, args.pairs) {
        (Some(name), _) => Shape::Named(name.clone()),
        (None, true) => Shape::Pairs,
        (None, false) => Shape::Random,
    };
    let groups = vec![Group { shape, workers: args.workers, payload: args.payload }];
    let length = args.duration.map_or(MinTime::Iterations(args.iterations), MinTime::Seconds);
    let options = args.common.options("throughput workers", Flavour::Binder, groups, length);
    let options = options.and_then(|mut options| {
        if args.service.is_some() {
            options.wanted.device = of_others(options.wanted.device)?;
        }
        options.training = args.training;
        options.as_android = as_android;
        options.expected_max_ns = args.expected_max.map(|us| us * 1000);
        Ok(options)
    });
    crowd::run(options, &args.common, args.format.unwrap_or(Form::Lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_services_are_in_no_context_of_our_own() {
        assert_eq!(of_others(Device::Auto), Ok(Device::Named("binder".to_owned())));
        let other = Device::Named("vndbinder".to_owned());
        assert_eq!(of_others(other.clone()), Ok(other));
        assert!(of_others(Device::Private).is_err_and(|why| why.contains("--device")));
    }
}
