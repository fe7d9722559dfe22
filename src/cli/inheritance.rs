//! The command `inheritance`: its options, output and exit status.
//! Not here: the scenes (`bench::inheritance`), the table (`record::experiments::inheritance`).

use bench::inheritance::{self, InheritanceError, InheritanceOptions};
use bench::plan::{Dialect, Inherit};
use clap::{Args, ValueEnum};
use record::experiments::inheritance::text;
use record::{Driver, Inheritance};

use super::driver::DriverArgs;
use super::{CommandResult, Failure, OrExit, exit, say};

/// Test whose priority the thread that serves a call inherits: direct, queued, nested, oneway, and afterwards
///
/// The servers wait at nice 4, so that a thread without inheritance differs from one that inherited
/// nice 0.
#[derive(Clone, Debug, Args)]
pub(crate) struct InheritanceArgs {
    #[command(flatten)]
    driver: DriverArgs,

    /// The library, objects and context to use
    #[arg(long, value_enum, default_value_t = Flavour::Hwbinder)]
    flavour: Flavour,

    /// Whether the objects ask for the policies of real-time callers (INHERIT_RT) [default: on for hwbinder, off for binder]
    #[arg(long, value_name = "on|off")]
    inherit_rt: Option<Switch>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Inject a fault into the servers' embedded driver, to see the test fail
    #[arg(long, value_name = "FAULT", hide = true)]
    driver_fault: Option<DriverFault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Flavour {
    Hwbinder,
    Binder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DriverFault {
    DropInheritance,
}

impl InheritanceArgs {
    fn options(&self) -> InheritanceOptions {
        let dialect = match self.flavour {
            Flavour::Hwbinder => Dialect::Hwbinder,
            Flavour::Binder => Dialect::Binder(bench::plan::Release::default()),
        };
        let usual = InheritanceOptions::usual(dialect);
        InheritanceOptions {
            inherit_rt: self.inherit_rt.map_or(usual.inherit_rt, |switch| switch == Switch::On),
            servers_inherit: self.driver_fault.map(|DriverFault::DropInheritance| Inherit::None),
            ..usual
        }
    }
}

/// Runs the test.
pub(crate) fn run(args: &InheritanceArgs) -> CommandResult {
    let wanted = args.driver.wanted().or_exit(exit::USAGE)?;
    let options = args.options();
    let (driver, found) = inheritance::run(&wanted, &options).map_err(|error| match error {
        InheritanceError::NotEmbedded => Failure::new(exit::USAGE, error),
        _ => Failure::new(exit::UNABLE, error),
    })?;
    say(&output(args.format, options.dialect.context(), &driver, &found))?;
    judge(&found)
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

/// The verdict; an error says what is not as expected, or not known.
fn judge(found: &Inheritance) -> CommandResult {
    let wrong: Vec<&str> = found
        .hops
        .iter()
        .filter(|hop| hop.is_broken() || hop.as_expected() == Some(false))
        .map(|hop| hop.scene.as_str())
        .collect();
    if !wrong.is_empty() {
        let why = format!("not as expected of this driver: {}", wrong.join(", "));
        return Err(Failure::new(exit::FAILED, why));
    }
    if let Some(untried) = found.hops.iter().find(|hop| hop.served.is_none()) {
        let why = format!("{} could not be tried: {}", untried.scene, untried.note);
        return Err(Failure::new(exit::UNABLE, why));
    }
    if found.expected.is_none() {
        let why = format!("nothing to compare with: {}", found.expected_reason);
        return Err(Failure::new(exit::UNABLE, why));
    }
    Ok(exit::FINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use record::{Hop, Level, Sched};

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

    fn found(served: Option<Sched>, expected: Option<Sched>) -> Inheritance {
        let (caller, idle) = (Sched::fifo(99), Sched::other(4));
        let hop = Hop { scene: "call".to_owned(), caller, idle, served, expected, note: String::new() };
        let level = expected.map(|_| Level::Nice);
        Inheritance { hops: vec![hop], expected: level, ..Inheritance::default() }
    }

    #[test]
    fn the_status_tells_wrong_from_untried() {
        let (one, other) = (Some(Sched::other(0)), Some(Sched::other(4)));
        for (served, expected, want) in [
            (one, one, exit::FINE),
            (one, other, exit::FAILED),
            (None, one, exit::FAILED),
            (None, None, exit::UNABLE),
            (one, None, exit::UNABLE),
        ] {
            let status = judge(&found(served, expected)).unwrap_or_else(|failure| failure.status);
            assert_eq!(status, want, "{served:?} {expected:?}");
        }
    }
}
