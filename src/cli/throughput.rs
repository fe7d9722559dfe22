//! The command `throughput`, and its tests in Google Benchmark's dialect: `binder`, `hwbinder` and `all`.
//! Not here: Google Benchmark's flags (`bench::plan::gbench`), printing rows (`report`).

mod crowd;
mod flavours;
pub(super) mod hwbinder;
pub(super) mod own;
mod report;
pub(super) mod rounds;
mod scaling;
pub(super) mod workers;

use bench::plan::Plan;
use bench::plan::gbench::{Flags, InfoRequest};
use bench::plan::request::Test;
use bench::run::RunError;
use clap::{Args, Command, Subcommand};
use record::Run;
use record::formats::gbench::{FOLLOWED_VERSION, Format};

use super::output::Sink;
use super::{CommandResult, command_line, complain, exit, help_text, note, say, status_of};
use own::{Own, about};
use report::Report;

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
    Call::parse(test, words, test.controls()).map(drop)
}

/// The definition that parses the arguments of a test in Google Benchmark's dialect, by its name.
pub(super) fn definition(name: &str) -> Option<Command> {
    let test = Test::EACH.into_iter().find(|test| test.word() == name)?;
    Some(own::definition(test))
}

/// The definition of a test called by this name, with its help text.
fn called(test: Test, name: &str) -> Command {
    let path = name.strip_prefix("binderperf ").map_or_else(|| format!("applet {name}"), str::to_owned);
    help_text::add_to(own::definition(test).bin_name(name.to_owned()), &path)
}

/// Runs a throughput test with Google Benchmark's flags, called by this name, with these arguments and these default
/// controls.
pub(crate) fn benchmark(test: Test, name: &str, words: Vec<String>, controls: &str) -> u8 {
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let (compatible, brief) = (has(own::COMPATIBLE), has("-h"));
    let call = match Call::parse(test, words, controls) {
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
        None => call.measure(),
    };
    if compatible { end.compatible_code() } else { end.code() }
}

/// How a call of the test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Fine,
    NothingMatched,
    CaseFailed,
    GateFailed,
    Stopped,
    Unable,
    Unwritten,
    Broken,
}

impl End {
    fn code(self) -> u8 {
        match self {
            Self::Fine => exit::FINE,
            Self::NothingMatched => exit::USAGE,
            Self::CaseFailed | Self::GateFailed | Self::Stopped => exit::FAILED,
            Self::Unable => exit::UNABLE,
            Self::Unwritten | Self::Broken => exit::INTERNAL,
        }
    }

    /// Google Benchmark's exit status: neither a failed case nor an empty filter is a failure.
    fn compatible_code(self) -> u8 {
        match self {
            Self::Fine | Self::NothingMatched | Self::CaseFailed => exit::FINE,
            Self::Unwritten | Self::Broken | Self::GateFailed | Self::Stopped => exit::FAILED,
            Self::Unable => exit::UNABLE,
        }
    }
}

/// The parsed arguments.
struct Call {
    flags: Flags,
    own: Own,
    plan: Plan,
}

impl Call {
    fn parse(test: Test, words: Vec<String>, controls: &str) -> Result<Self, String> {
        let variable = |name: &str| std::env::var(name).ok();
        let (flags, rest) = Flags::parse(words, variable).map_err(|error| error.to_string())?;
        let own = Own::parse(rest, controls)?;
        let plan = own.plan(test, &flags, command_line())?;
        Ok(Self { flags, own, plan })
    }

    fn list(&self) -> End {
        let names: Vec<String> = self.plan.cases().into_iter().map(|planned| planned.case.name).collect();
        if names.is_empty() {
            return nothing_matched(&RunError::nothing_to_run(&self.plan));
        }
        answer(&report::list(&names, self.flags.format))
    }

    fn measure(&self) -> End {
        let mut outputs = Outputs::open(self);
        // Reported now, as it may be a typing error, and again at the end: the run is worth its
        // result on the standard output. Google Benchmark does not begin.
        if let Some(end) = tell_troubles(&outputs.all().collect::<Vec<_>>())
            && self.own.gbench_compat
        {
            return end;
        }
        if !self.flags.perf_counters.is_empty() {
            note("Performance counters not supported.\n");
        }
        let sides = match self.own.enter_place() {
            Ok(sides) => sides,
            Err(why) => {
                complain(why);
                return End::Unable;
            }
        };
        let mut report = Report::new(self, &mut outputs);
        let plan = Plan { sides, ..self.plan.clone() };
        let held = self.own.constraints.wanted();
        let run = match held.held(|| bench::run::execute(&plan, &mut report)) {
            Ok(run) => run,
            Err(error @ RunError::NothingToRun { .. }) => return nothing_matched(&error),
            Err(error @ (RunError::NoDriver(_) | RunError::Unready(_))) => {
                complain(error);
                return End::Unable;
            }
            Err(error) => {
                complain(error);
                return End::Broken;
            }
        };
        report.finish(&run);
        if let Some(memory) = run.constraints.as_ref().and_then(|held| held.memory.as_ref()) {
            note(format_args!("{}\n", memory.line()));
        }
        if outputs.are_unwanted() {
            return End::Fine;
        }
        outputs.keep(&run);
        let end = self.verdict(&run);
        let all: Vec<&Sink> = outputs.all().collect();
        tell_troubles(&all).unwrap_or(end)
    }

    fn verdict(&self, run: &Run) -> End {
        let mut end = if run.any_failed() { End::CaseFailed } else { End::Fine };
        for verdict in self.own.max.iter().flat_map(|gate| gate.judge(run)) {
            note(format_args!("{verdict}\n"));
            if !verdict.is_kept() {
                end = End::GateFailed;
            }
        }
        if let Some(reason) = &run.incomplete_reason {
            complain(format_args!("{reason}; what was measured until then is kept"));
            end = End::Stopped;
        }
        end
    }
}

/// Writes an answer instead of a result.
fn answer(text: &str) -> End {
    if status_of(say(text)) == exit::FINE { End::Fine } else { End::Unwritten }
}

fn nothing_matched(error: &RunError) -> End {
    // Google Benchmark's exact words, which harnesses look for.
    note(format_args!("{error}\n"));
    End::NothingMatched
}

/// Reports outputs that failed.
fn tell_troubles(sinks: &[&Sink]) -> Option<End> {
    let troubles: Vec<String> = sinks.iter().filter_map(|sink| sink.trouble()).collect();
    troubles.iter().for_each(complain);
    (!troubles.is_empty()).then_some(End::Unwritten)
}

/// The outputs of a test.
struct Outputs {
    stdout: Sink,
    out: Option<Sink>,
    record: Option<Sink>,
}

impl Outputs {
    /// Opens them all, before anything is measured.
    fn open(call: &Call) -> Self {
        Self {
            stdout: Sink::stdout(),
            out: call.flags.out.as_deref().map(Sink::in_parts),
            record: call.own.record.as_deref().map(Sink::file),
        }
    }

    /// Puts the files in their places.
    fn keep(&mut self, run: &Run) {
        if let Some(out) = &mut self.out {
            out.keep(run.complete);
        }
        if let Some(record) = &mut self.record {
            record.keep_record(run);
        }
    }

    /// Whether nothing reads or keeps the result any more.
    fn are_unwanted(&self) -> bool {
        self.stdout.is_closed() && self.out.is_none() && self.record.is_none()
    }

    fn all(&self) -> impl Iterator<Item = &Sink> {
        std::iter::once(&self.stdout).chain(&self.out).chain(&self.record)
    }
}

/// Whether Google Benchmark prints its context for a format.
fn has_context(format: Format) -> bool {
    format != Format::Json
}
