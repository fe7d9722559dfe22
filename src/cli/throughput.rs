//! The command `throughput`, and its tests in Google Benchmark's dialect: `binder`, `hwbinder` and `all`.
//! Not here: Google Benchmark's flags (`bench::plan::gbench`), running it (`conduct::gbench`).

mod crowd;
mod flavours;
pub(super) mod hwbinder;
pub(super) mod own;
pub(super) mod rounds;
mod scaling;
pub(super) mod workers;

use bench::plan::gbench::{Flags, InfoRequest};
use bench::plan::request::Test;
use clap::{Args, Command, Subcommand};
use conduct::gbench::{Call, answer};
use manual::help_text::add_to;
use record::formats::gbench::FOLLOWED_VERSION;

use super::on_words::with_flags;
use super::{CommandResult, command_line, complain, exit, note};
use own::{Own, about};

/// Measure the cost of binder and hwbinder calls, of one pair or many at once
///
/// Payloads of 4 B to 64 KiB go to a service and back, compared with other ways of communication (controls) on the same
/// machine: a ratio says more than a time. `binder` and `hwbinder` take Google Benchmark's flags.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "TEST", subcommand_help_heading = "Tests")]
pub(super) struct ThroughputArgs {
    #[command(subcommand)]
    test: Wanted,
}

#[derive(Debug, Subcommand)]
enum Wanted {
    #[command(about = about(Test::Binder))]
    Binder(Dialect),
    #[command(about = about(Test::Hwbinder))]
    Hwbinder(Dialect),
    #[command(about = about(Test::All))]
    All(Dialect),
    #[command(about = about(Test::Ping))]
    Ping(Dialect),
    #[command(name = "addints", about = about(Test::AddInts))]
    AddInts(Dialect),
    #[command(about = about(Test::Rpc))]
    Rpc(Dialect),
    CompareFlavours(flavours::FlavoursArgs),
    Workers(workers::WorkersArgs),
    HwbinderWorkers(hwbinder::HwbinderArgs),
    Scaling(scaling::ScalingArgs),
}

/// Arguments in Google Benchmark's dialect.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
struct Dialect {
    /// The test's flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Runs the named test.
pub(super) fn run(args: ThroughputArgs) -> CommandResult {
    let measure = |test: Test, dialect: Dialect| {
        let name = format!("binderperf {}", test.title());
        Ok(benchmark(test, &name, dialect.words, test.controls()))
    };
    match args.test {
        Wanted::Binder(dialect) => measure(Test::Binder, dialect),
        Wanted::Hwbinder(dialect) => measure(Test::Hwbinder, dialect),
        Wanted::All(dialect) => measure(Test::All, dialect),
        Wanted::Ping(dialect) => measure(Test::Ping, dialect),
        Wanted::AddInts(dialect) => measure(Test::AddInts, dialect),
        Wanted::Rpc(dialect) => measure(Test::Rpc, dialect),
        Wanted::CompareFlavours(args) => flavours::run(&args),
        Wanted::Workers(args) => workers::run(args, false),
        Wanted::HwbinderWorkers(args) => hwbinder::run(args, false),
        Wanted::Scaling(args) => scaling::run(args),
    }
}

impl ThroughputArgs {
    /// Parses the arguments that the tree passed on.
    pub(super) fn check(&self) -> Result<(), String> {
        match &self.test {
            Wanted::Binder(dialect) => check(Test::Binder, dialect.words.clone()),
            Wanted::Hwbinder(dialect) => check(Test::Hwbinder, dialect.words.clone()),
            Wanted::All(dialect) => check(Test::All, dialect.words.clone()),
            Wanted::Ping(dialect) => check(Test::Ping, dialect.words.clone()),
            Wanted::AddInts(dialect) => check(Test::AddInts, dialect.words.clone()),
            Wanted::Rpc(dialect) => check(Test::Rpc, dialect.words.clone()),
            _ => Ok(()),
        }
    }
}

/// Reads a test's words, and leaves it at that.
pub(super) fn check(test: Test, words: Vec<String>) -> Result<(), String> {
    parsed(test, words, test.controls()).map(drop)
}

/// The definition that parses the arguments of a test in Google Benchmark's dialect, by its name.
pub(super) fn definition(name: &str) -> Option<Command> {
    let test = Test::EACH.into_iter().find(|test| test.word() == name)?;
    Some(own::definition(test))
}

/// The definition of a test called by this name, with its help text.
fn called(test: Test, name: &str) -> Command {
    let path = name.strip_prefix("binderperf ").map_or_else(|| format!("applet {name}"), str::to_owned);
    add_to(own::definition(test).bin_name(name.to_owned()), &path, with_flags)
}

/// Runs a throughput test with Google Benchmark's flags, called by this name, with these arguments and these default
/// controls.
pub(crate) fn benchmark(test: Test, name: &str, words: Vec<String>, controls: &str) -> u8 {
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let (compatible, brief) = (has(own::COMPATIBLE), has("-h"));
    let (own, call) = match parsed(test, words, controls) {
        Ok(call) => call,
        Err(why) => {
            complain(why);
            note(format_args!("{}\nMore: {name} --help\n", called(test, name).render_usage()));
            return if compatible { exit::FAILED } else { exit::USAGE };
        }
    };
    let end = match call.flags.question {
        Some(InfoRequest::Help) if brief => answer(&called(test, name).render_help().to_string()),
        Some(InfoRequest::Help) => answer(&called(test, name).render_long_help().to_string()),
        Some(InfoRequest::Version) => {
            let version = env!("CARGO_PKG_VERSION");
            answer(&format!("binderperf {version} (Google Benchmark {FOLLOWED_VERSION})\n"))
        }
        None if call.flags.list_tests => call.list(),
        None => call.measure(|| own.enter_place()),
    };
    if compatible { end.compatible_code() } else { end.code() }
}

/// Reads a test's words.
fn parsed(test: Test, words: Vec<String>, controls: &str) -> Result<(Own, Call), String> {
    let variable = |name: &str| std::env::var(name).ok();
    let (flags, rest) = Flags::parse(words, variable).map_err(|error| error.to_string())?;
    let own = Own::parse(rest, controls)?;
    let plan = own.plan(test, &flags, command_line())?;
    let call = Call {
        flags,
        plan,
        gates: own.max.clone(),
        constraints: own.constraints.wanted(),
        record: own.record.clone(),
        is_compatible: own.gbench_compat,
        for_a_copy: own.progress,
    };
    Ok((own, call))
}
