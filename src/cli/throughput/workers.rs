//! Room: `throughput workers`, which is also Android's `binderThroughputTest`: its flags.
//! Not here: carrying it out (`super::crowd`, `lab::workers`).
//! Facts: flags and defaults of AOSP `binderThroughputTest.cpp` (Android 14).

use clap::Parser;
use lab::plan::{Device, MinTime};
use lab::workers::{Flavour, Group, Shape};

use super::super::show::Form;
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

    /// How long each worker calls, in seconds, in place of a number of calls
    #[arg(long, value_name = "S", conflicts_with = "iterations", allow_negative_numbers = true, value_parser = crowd::seconds)]
    duration: Option<f64>,

    /// Bytes of each call
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 0, allow_negative_numbers = true)]
    payload: u32,

    /// Half of the workers are servers, the others call one each, in place of calls to random others
    #[arg(short = 'p', long)]
    pairs: bool,

    /// Longest time in us that a call is expected to take; those that took longer are counted
    #[arg(help_heading = "Times that are expected", short = 'm', long, value_name = "US", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    expected_max: Option<u64>,

    /// A round ahead; twice the longest call of it is then the longest expected
    #[arg(help_heading = "Times that are expected", short = 't', long)]
    training: bool,

    /// Ping this service instead, which somebody else registered
    #[arg(long, value_name = "NAME", conflicts_with = "pairs")]
    service: Option<String>,

    /// What to print
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Form::Lines)]
    format: Form,

    #[command(flatten)]
    common: Common,
}

/// Where somebody else's service can be.
fn of_others(device: Device) -> Result<Device, String> {
    match device {
        Device::Auto => Ok(Device::Named("binder".to_owned())),
        Device::Private => {
            Err("nobody has registered --service in a private context: name its --device".to_owned())
        }
        named => Ok(named),
    }
}

/// Runs it; the result is the exit status.
pub(crate) fn run(args: WorkersArgs) -> u8 {
    let shape = match (&args.service, args.pairs) {
        (Some(name), _) => Shape::Named(name.clone()),
        (None, true) => Shape::Pairs,
        (None, false) => Shape::Random,
    };
    let groups = vec![Group { shape, workers: args.workers, payload: args.payload }];
    let length = args.duration.map_or(MinTime::Iterations(args.iterations), MinTime::Seconds);
    let ask = args.common.ask("throughput workers", Flavour::Binder, groups, length);
    let ask = ask.and_then(|mut ask| {
        if args.service.is_some() {
            ask.wanted.device = of_others(ask.wanted.device)?;
        }
        ask.training = args.training;
        ask.expected_max_ns = args.expected_max.map(|us| us * 1000);
        Ok(ask)
    });
    crowd::run(ask, &args.common, args.format)
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
