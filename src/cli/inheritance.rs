//! The command `inheritance`: its options, output and exit status.
//! Not here: the scenes (`bench::inheritance`), the table (`record::experiments::inheritance`).

use bench::inheritance::{self, InheritanceOptions};
use bench::plan::{Dialect, Flavour, Inherit};
use clap::{Args, ValueEnum};
use conduct::verdict::inheritance_status;
use record::experiments::inheritance::text;
use record::{Driver, Inheritance};

use super::choice::{self, ON_OFF, Table};
use super::driver::DriverArgs;
use super::{CommandResult, OrExit, exit, say};

/// Test whose priority the thread that serves a call inherits: direct, queued, nested, oneway, and afterwards
///
/// The servers wait at nice 4, so that a thread without inheritance differs from one that inherited
/// nice 0.
#[derive(Clone, Debug, Args)]
pub(crate) struct InheritanceArgs {
    #[command(flatten)]
    driver: DriverArgs,

    /// The library, objects and context to use
    #[arg(long, value_parser = choice::of([Flavour::Hwbinder, Flavour::Binder]), default_value_t = Flavour::Hwbinder)]
    flavour: Flavour,

    /// Whether the objects ask for the policies of real-time callers (INHERIT_RT) [default: on for hwbinder, off for binder]
    #[arg(long, value_name = "on|off", value_parser = choice::table(&ON_OFF))]
    inherit_rt: Option<bool>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Inject a fault into the servers' embedded driver, to see the test fail
    #[arg(long, value_name = "FAULT", hide = true, value_parser = choice::table(&FAULTS))]
    driver_fault: Option<Inherit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

/// Faults of the servers' driver: what it inherits then.
const FAULTS: Table<Inherit, 1> = [(Inherit::None, "drop-inheritance", "")];

impl InheritanceArgs {
    fn options(&self) -> InheritanceOptions {
        let dialect = match self.flavour {
            Flavour::Hwbinder | Flavour::Passthrough => Dialect::Hwbinder,
            Flavour::Binder => Dialect::Binder(bench::plan::Release::default()),
        };
        let usual = InheritanceOptions::usual(dialect);
        InheritanceOptions {
            inherit_rt: self.inherit_rt.unwrap_or(usual.inherit_rt),
            servers_inherit: self.driver_fault,
            ..usual
        }
    }
}

/// Runs the test.
pub(crate) fn run(args: &InheritanceArgs) -> CommandResult {
    let wanted = args.driver.wanted().or_exit(exit::USAGE)?;
    let options = args.options();
    let (driver, found) = inheritance::run(&wanted, &options)?;
    say(&output(args.format, options.dialect.context(), &driver, &found))?;
    inheritance_status(&found)
}

fn output(format: Format, flavour: &str, driver: &Driver, found: &Inheritance) -> String {
    match format {
        Format::Json => text::json(flavour, driver, found),
        Format::Table => {
            let head = format!("Driver: {} ({}): {}.\n", driver.kind.name(), driver.details(), driver.reason);
            head + &text::table(flavour, found)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        args: InheritanceArgs,
    }

    fn options(words: &[&str]) -> InheritanceOptions {
        Words::try_parse_from([&["x"], words].concat()).expect("fine").args.options()
    }

    #[test]
    fn words_are_understood() {
        let usual = options(&[]);
        assert!(usual.inherit_rt && usual.dialect == Dialect::Hwbinder && usual.servers_inherit.is_none());
        assert!(!options(&["--flavour=binder"]).inherit_rt);
        assert!(options(&["--flavour=binder", "--inherit-rt=on"]).inherit_rt);
        assert!(!options(&["--inherit-rt=off"]).inherit_rt);
        let faulty = options(&["--driver-fault=drop-inheritance"]);
        assert_eq!(faulty.servers_inherit, Some(Inherit::None));
        assert!(Words::try_parse_from(["x", "--driver-fault=other"]).is_err());
    }
}
