//! Room: `binderperf conformance` and the suite's own helper processes: typed words to
//! `lab::conformance`.
//! Not here: the tests, the lines they are reported in (`lab::conformance`).

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
        Err((why, status)) => {
            complain(why);
            status
        }
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

fn test(args: &ConformanceArgs, items: &[&Item]) -> Result<Totals, (String, u8)> {
    let no_driver = |error: conformance::OpenError| (error.to_string(), exit::UNABLE);
    let no_output = |error: std::io::Error| (format!("writing the results: {error}"), exit::INTERNAL);
    let wanted = args.driver.wanted().map_err(|why| (why, exit::USAGE))?;
    let located = conformance::find(&wanted).map_err(no_driver)?;
    let context = located.context;
    let mut evidence = conformance::examine(&context).map_err(no_driver)?;
    evidence.findings.push(format!("why this driver: {}", located.reason));
    conformance::check_unmanaged(&context).map_err(|why| (why, exit::UNABLE))?;
    let about = conformance::Subject::describe(&context);
    let mut ktap =
        Ktap::begin(std::io::stdout().lock(), items.len(), &about, &evidence).map_err(no_output)?;
    let mut broken = None;
    let options = Options { faults: args.inject.clone(), limit: Duration::from_secs(args.limit) };
    let mut report = |item: &Item, outcome: &Outcome, notes: &[String]| {
        if broken.is_none() {
            broken = ktap.item(item, outcome, notes).err();
        }
        broken.is_none()
    };
    conformance::run(&context, items, &options, &mut report);
    match broken {
        Some(error) => Err(no_output(error)),
        None => ktap.end().map_err(no_output),
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
