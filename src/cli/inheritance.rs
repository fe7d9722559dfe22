//! Room: `binderperf inheritance`: typed words to `lab::inheritance`, and its hops to text.
//! Not here: the scenes (`lab::inheritance`), the table (`record::render::inheritance`).

use clap::{Args, ValueEnum};
use lab::inheritance::{self, InheritanceError, Question};
use lab::plan::{Dialect, Inherit};
use record::{Driver, Inheritance};

use super::driver::DriverArgs;
use super::{complain, exit, say};

/// See whose priority a thread takes over that serves a call: direct, queued, nested, oneway, and afterwards
///
/// The servers wait at nice 4, so that a thread that was left alone looks different from one that took over
/// nice 0.
#[derive(Clone, Debug, Args)]
pub(crate) struct InheritanceArgs {
    #[command(flatten)]
    driver: DriverArgs,

    /// Whose library, objects and context
    #[arg(long, value_enum, default_value_t = Flavour::Hwbinder)]
    flavour: Flavour,

    /// Whether the objects ask for the policies of real-time callers (INHERIT_RT) [default: on for hwbinder, off for binder]
    #[arg(long, value_name = "on|off")]
    inherit_rt: Option<Switch>,

    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Have the servers' embedded driver do something wrong, to see the test fail
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
    fn question(&self) -> Question {
        let dialect = match self.flavour {
            Flavour::Hwbinder => Dialect::Hwbinder,
            Flavour::Binder => Dialect::Binder(lab::plan::Release::default()),
        };
        let usual = Question::usual(dialect);
        Question {
            inherit_rt: self.inherit_rt.map_or(usual.inherit_rt, |switch| switch == Switch::On),
            servers_inherit: self.driver_fault.map(|DriverFault::DropInheritance| Inherit::None),
            ..usual
        }
    }
}

/// Runs the scenes; the result is the exit status.
pub(crate) fn run(args: &InheritanceArgs) -> u8 {
    let wanted = match args.driver.wanted() {
        Ok(wanted) => wanted,
        Err(why) => {
            complain(why);
            return exit::USAGE;
        }
    };
    let question = args.question();
    let (driver, found) = match inheritance::run(&wanted, &question) {
        Ok(found) => found,
        Err(error) => {
            let code = match error {
                InheritanceError::NotEmbedded => exit::USAGE,
                _ => exit::UNABLE,
            };
            complain(error);
            return code;
        }
    };
    let flavour = question.dialect.context();
    match say(&text(args.format, flavour, &driver, &found)) {
        exit::FINE => judge(&found),
        trouble => trouble,
    }
}

fn text(format: Format, flavour: &str, driver: &Driver, found: &Inheritance) -> String {
    match format {
        Format::Json => record::render::inheritance::json(flavour, driver, found),
        Format::Table => {
            let head = format!("Driver: {} ({}): {}.\n", driver.kind.name(), driver.details(), driver.reason);
            head + &record::render::inheritance::table(flavour, found)
        }
    }
}

/// The exit status, and the reason if it is not 0.
fn judge(found: &Inheritance) -> u8 {
    let wrong: Vec<&str> = found
        .hops
        .iter()
        .filter(|hop| hop.is_broken() || hop.as_expected() == Some(false))
        .map(|hop| hop.scene.as_str())
        .collect();
    if !wrong.is_empty() {
        complain(format_args!("not as expected of this driver: {}", wrong.join(", ")));
        return exit::FAILED;
    }
    if let Some(untried) = found.hops.iter().find(|hop| hop.served.is_none()) {
        complain(format_args!("{} could not be tried: {}", untried.scene, untried.note));
        return exit::UNABLE;
    }
    if found.expected.is_none() {
        complain(format_args!("nothing to compare with: {}", found.expected_reason));
        return exit::UNABLE;
    }
    exit::FINE
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

    fn question(words: &[&str]) -> Question {
        Words::try_parse_from([&["x"], words].concat()).expect("fine").args.question()
    }

    #[test]
    fn words_are_understood() {
        let usual = question(&[]);
        assert!(usual.inherit_rt && usual.dialect == Dialect::Hwbinder && usual.servers_inherit.is_none());
        assert!(!question(&["--flavour=binder"]).inherit_rt);
        assert!(question(&["--flavour=binder", "--inherit-rt=on"]).inherit_rt);
        assert!(!question(&["--inherit-rt=off"]).inherit_rt);
        let faulty = question(&["--driver-fault=drop-inheritance"]);
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
            assert_eq!(judge(&found(served, expected)), want, "{served:?} {expected:?}");
        }
    }
}
