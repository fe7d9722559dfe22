//! The test `latency ping`: options, output and exit status.
//! Not here: measuring (`bench::latency`).

use bench::latency::LatencyOptions;
use bench::plan::{Device, Flavour};
use clap::Parser;
use record::render::latency::Options;

use super::super::choice;
use super::super::{CommandResult, OrExit, exit};
use super::Form;
use super::common::CommonArgs;

/// Measure pings call by call: needs no service of ours, so it works on production phones
///
/// A ping is a call that every object answers. It measures the driver, the scheduler and the called process, the service manager
/// or any registered service, with the statistics, deadlines and traces of the other latency tests. The called
/// process tells nothing of itself, so where it ran and at which priority is not known; a trace shows it.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
pub(super) struct PingArgs {
    /// Ping this registered service, of hwbinder INTERFACE/INSTANCE [default: the service manager]
    #[arg(help_heading = "Service", long, value_name = "NAME")]
    service: Option<String>,

    /// The library whose object is pinged: binder, hwbinder
    #[arg(help_heading = "Service", long, value_name = "FLAVOUR", default_value_t = Flavour::Binder, value_parser = choice::of([Flavour::Binder, Flavour::Hwbinder]))]
    flavour: Flavour,

    /// Clients, one process each
    #[arg(
        short = 'w',
        long,
        alias = "pair",
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    pairs: u32,

    /// Pin clients to this CPU
    #[arg(long, value_name = "CPU", conflicts_with = "cluster")]
    cpu: Option<u32>,

    /// Output format
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Form::Table)]
    format: Form,

    #[command(flatten)]
    common: CommonArgs,
}

/// Measures and prints the result.
pub(super) fn run(args: &PingArgs) -> CommandResult {
    let options = args.options().or_exit(exit::USAGE)?;
    let (sides, place) = (args.common.place.enter().or_exit(exit::UNABLE)?, args.common.place.words());
    let options = LatencyOptions { sides, place, ..options };
    let shown = Options { verbose: args.common.verbose, raw: args.common.raw_data, android: false };
    args.common.asked(options.check().map(|()| options)).pings(|run| args.format.of(run, shown))
}

impl PingArgs {
    fn options(&self) -> Result<LatencyOptions, String> {
        if self.common.place.cluster.is_some_and(|clusters| clusters.client != clusters.server) {
            return Err(
                "a ping's server cannot be placed: --cluster takes one cluster here, for the clients"
                    .to_owned(),
            );
        }
        let mut options = self.common.applied(LatencyOptions {
            pairs: self.pairs,
            cpus: self.cpu.map(|cpu| [cpu; 2]),
            ..LatencyOptions::pings(self.flavour, self.service.clone().unwrap_or_default())
        })?;
        match (&self.service, &options.wanted.device) {
            (Some(_), Device::Private) => {
                return Err(
                    "nobody has registered --service in a private context: name its --device".to_owned()
                );
            }
            (Some(_), Device::Auto) => {
                options.wanted.device = Device::Named(self.flavour.name().to_owned());
            }
            _ => {}
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<LatencyOptions, String> {
        let args = PingArgs::try_parse_from([&["x"], words].concat()).map_err(|error| error.to_string())?;
        args.options()
    }

    #[test]
    fn a_named_service_is_looked_for_where_others_register() {
        let manager = parsed(&[]).expect("nothing needed");
        assert_eq!((manager.pinged.as_deref(), manager.wanted.device), (Some(""), Device::Auto));
        let named = parsed(&["--service", "a.b/default", "--flavour", "hwbinder"]).expect("a name");
        assert_eq!(named.wanted.device, Device::Named("hwbinder".to_owned()));
        assert!(parsed(&["--service", "x", "--device", "private"]).expect_err("nobody").contains("private"));
        assert!(parsed(&["--flavour", "passthrough"]).is_err());
        assert!(parsed(&["--cluster", "big,little"]).expect_err("two").contains("cannot be placed"));
        assert!(
            parsed(&["--cluster", "big", "--cpu", "1"]).is_err() && parsed(&["--cluster", "big"]).is_ok()
        );
    }
}
