//! Room: `binderperf conformance` and the suite's own helper processes: typed words to
//! `lab::conformance`.
//! Not here: the tests, the lines they are reported in (`lab::conformance`).

use std::io;
use std::time::Duration;

use clap::Args;
use lab::conformance::{self, Drivers, Fault, Item, Ktap, Options, Outcome, Totals};

use super::driver::DriverArgs;
use super::{A_YEAR_S, complain, exit, say};

/// Test the driver against every promise of the contract; results as KTAP
#[derive(Clone, Debug, Args)]
pub(crate) struct ConformanceArgs {
    #[command(flatten)]
    driver: DriverArgs,

    /// Only items whose number starts with this or whose title contains it, as TX- or WR-03; commas separate several
    #[arg(long, value_name = "WORDS", default_value = "")]
    filter: String,

    /// List the items instead of testing them
    #[arg(long)]
    list: bool,

    /// After how many seconds an item counts as hanging
    #[arg(long, value_name = "S", default_value_t = 60, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    limit: u64,

    /// Put faults in front of the driver, to see the tests fail
    #[arg(long, value_name = "FAULTS", value_delimiter = ',', hide = true)]
    inject: Vec<Fault>,
}

/// Runs a helper of a suite under way
#[derive(Clone, Debug, Args)]
pub(crate) struct HelperArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Runs the suite; the result is the exit status.
pub(crate) fn run(args: &ConformanceArgs) -> u8 {
    let items = conformance::select(&args.filter);
    if items.is_empty() {
        complain(format_args!(
            "no item has {:?} in its number or title; see binderperf conformance --list",
            args.filter
        ));
        return exit::USAGE;
    }
    if args.list {
        return say(&items.into_iter().map(listed).collect::<String>());
    }
    match test(args, &items) {
        Ok(Totals { failed: 0, .. }) => exit::FINE,
        Ok(_) => exit::FAILED,
        // A reader that has gone, as `head` does, had enough.
        Err(Stop::Unread) => exit::FINE,
        Err(Stop::Because(why, status)) => {
            complain(why);
            status
        }
    }
}

/// Why not all items were tested.
enum Stop {
    /// Nobody reads the results any more.
    Unread,
    /// This, with this exit status.
    Because(String, u8),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Unread;
        }
        let what = lab::describe_errno(&error);
        Self::Because(format!("could not write all of the result to standard output: {what}"), exit::INTERNAL)
    }
}

fn listed(item: &Item) -> String {
    let drivers = match item.drivers {
        Drivers::Both => "both",
        Drivers::C => "C",
        Drivers::Rust => "Rust",
    };
    format!("{:7} {drivers:5} {}\n", item.id, item.title)
}

fn test(args: &ConformanceArgs, items: &[&Item]) -> Result<Totals, Stop> {
    let no_driver = |error: conformance::OpenError| Stop::Because(error.to_string(), exit::UNABLE);
    let wanted = args.driver.wanted().map_err(|why| Stop::Because(why, exit::USAGE))?;
    let located = conformance::find(&wanted).map_err(no_driver)?;
    let context = located.context;
    let mut evidence = conformance::examine(&context).map_err(no_driver)?;
    evidence.findings.push(format!("why this driver: {}", located.reason));
    conformance::check_unmanaged(&context).map_err(|why| Stop::Because(why, exit::UNABLE))?;
    let about = conformance::Subject::describe(&context);
    let mut ktap = Ktap::begin(io::stdout().lock(), items.len(), &about, &evidence)?;
    let mut broken = None;
    let options = Options { faults: args.inject.clone(), limit: Duration::from_secs(args.limit) };
    let mut report = |item: &Item, outcome: &Outcome, notes: &[String]| {
        if broken.is_none() {
            broken = ktap.item(item, outcome, notes).err();
        }
        broken.is_none()
    };
    let stopped = conformance::run(&context, items, &options, &mut report);
    if let Some(error) = broken {
        return Err(error.into());
    }
    let totals = ktap.end()?;
    match stopped {
        Some(signal) => {
            let why = format!("stopped by {signal}: not all of the {} items were tested", items.len());
            Err(Stop::Because(why, exit::FAILED))
        }
        None => Ok(totals),
    }
}

/// Runs a helper; the result is the exit status.
pub(crate) fn help(args: &HelperArgs) -> u8 {
    match conformance::helper_main(&args.words) {
        Ok(()) => exit::FINE,
        Err(why) => {
            complain(why);
            exit::INTERNAL
        }
    }
}
