//! `binderperf conformance` and the suite's own helper processes: typed words to
//! `conformance`.
//! Not here: the tests, the lines they are reported in (`conformance`).

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use conformance::{self, Drivers, Ended, Fault, Item, Ktap, Options, Outcome, Totals};

use super::driver::DriverArgs;
use super::terminal;
use super::{A_YEAR_S, CommandResult, Failure, OrExit, exit, say};

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

    /// Seconds (more on a busy machine) after which an item counts as hanging
    #[arg(long, value_name = "S", default_value_t = 60, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    limit: u64,

    /// Test the items in a random order, the same for each SEED; each must end as it does alone
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,

    /// End behind the first item that fails
    #[arg(long)]
    stop_at_failure: bool,

    /// Behave as kselftest does: each item of the plan has a line however the run ends, and the exit status is 4 where nothing could be tested
    #[arg(long)]
    for_ci: bool,

    /// Clear this file of the driver's before each item, and show its text after it
    #[arg(long, value_name = "FILE", hide = true)]
    read_after: Option<PathBuf>,

    /// Go on after results that were written before: how many passed, failed, were skipped, differed
    #[arg(long, value_name = "COUNTS", hide = true)]
    resume: Option<Totals>,

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

impl ConformanceArgs {
    /// The items in the order of the run.
    pub(crate) fn items(&self) -> Vec<&'static Item> {
        let mut items = conformance::select(&self.filter);
        if let Some(seed) = self.shuffle {
            conformance::shuffle(&mut items, seed);
        }
        items
    }

    /// Whether it ends behind the first item that fails.
    pub(crate) fn stops_at_failure(&self) -> bool {
        self.stop_at_failure
    }

    /// Whether it only lists the items.
    pub(crate) fn is_list(&self) -> bool {
        self.list
    }
}

/// Runs the suite.
pub(crate) fn run(args: &ConformanceArgs) -> CommandResult {
    let items = args.items();
    if items.is_empty() {
        let why = "in its number or title; see binderperf conformance --list";
        return Err(Failure::new(exit::USAGE, format_args!("no item has {:?} {why}", args.filter)));
    }
    if args.list {
        return say(&items.into_iter().map(listed).collect::<String>());
    }
    match test(args, &items) {
        Ok(Totals { failed: 1.., .. }) => Ok(exit::FAILED),
        Ok(Totals { passed: 0, differing: 0, .. }) if args.for_ci => Ok(KSELFTEST_SKIP),
        Ok(_) => Ok(exit::FINE),
        // A reader that closed the pipe, as `head` does, is no error.
        Err(Stop::Unread) => Ok(exit::FINE),
        Err(Stop::Because(failure)) if args.for_ci && failure.status == exit::UNABLE => {
            Err(Failure { status: KSELFTEST_SKIP, ..failure })
        }
        Err(Stop::Because(failure)) => Err(failure),
    }
}

/// The exit status by which kselftest knows a test that could not run.
const KSELFTEST_SKIP: u8 = 4;

/// Why not all items were tested.
enum Stop {
    /// Nobody reads the results any more.
    Unread,
    /// This error.
    Because(Failure),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Unread;
        }
        let what = sys::errno::describe(&error);
        let why = format!("could not write all of the result to standard output: {what}");
        Failure::new(exit::INTERNAL, why).into()
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Because(failure)
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

fn test(args: &ConformanceArgs, items: &[&'static Item]) -> Result<Totals, Stop> {
    let wanted = args.driver.wanted().or_exit(exit::USAGE)?;
    // Before the first process is started. Without the handlers a signal kills this process, and nothing worse.
    let _ = sys::stop_signal::catch();
    let located = conformance::find(&wanted).or_exit(exit::UNABLE)?;
    let context = conformance::Subject::from(located.context);
    let mut evidence = conformance::examine(&context).or_exit(exit::UNABLE)?;
    evidence.findings.push(format!("why this driver: {}", located.reason));
    conformance::check_unmanaged(&context).or_exit(exit::UNABLE)?;
    let about = context.describe();
    evidence.findings.extend(args.shuffle.map(|seed| format!("order of the items: --shuffle {seed}")));
    let mut ktap = match args.resume {
        Some(totals) => Ktap::resume(terminal::own(), &evidence, totals),
        None => Ktap::begin(terminal::own(), items.len(), &about, &evidence)?,
    };
    let rest = &items[args.resume.map_or(0, Totals::all).min(items.len())..];
    let mut broken = None;
    let options = Options {
        faults: args.inject.clone(),
        limit: Duration::from_secs(args.limit),
        stop_at_failure: args.stop_at_failure,
        read_after: args.read_after.clone(),
    };
    let mut ran = 0;
    let mut report = |item: &Item, outcome: &Outcome, notes: &[String]| {
        if broken.is_none() {
            broken = ktap.item(item, outcome, notes).err();
            ran += 1;
        }
        broken.is_none()
    };
    let ended = conformance::run(&context, rest, &options, &mut report);
    if let Some(error) = broken {
        return Err(error.into());
    }
    let why = match ended {
        Ended::Done => return Ok(ktap.end()?),
        Ended::Failed(id) => format!("{id} failed"),
        Ended::Stuck(id) => format!("{id} hangs in the kernel"),
        Ended::Stopped(signal) => format!("stopped by {signal}"),
    };
    if args.for_ci {
        ktap.skip(&rest[ran..], &why)?;
    }
    // Who follows a run in a guest takes the totals for its end.
    if args.for_ci || !matches!(ended, Ended::Stuck(_)) {
        ktap.end()?;
    }
    let why = format!("{why}: not all of the {} items were tested", items.len());
    Err(Failure::new(exit::FAILED, why).into())
}

/// Runs a helper.
pub(crate) fn help(args: &HelperArgs) -> CommandResult {
    conformance::helper_main(&args.words).or_exit(exit::INTERNAL)?;
    Ok(exit::FINE)
}
