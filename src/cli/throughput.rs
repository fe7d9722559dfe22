//! Room: `throughput`: which test; and `throughput binder`: words into a plan, a run into its outputs and an exit status.
//! Not here: Google Benchmark's flags (`lab::plan::gbench`), printing rows (`report`).

mod crowd;
mod flavours;
mod hwbinder;
mod own;
mod report;
mod scaling;
mod serialisation;
mod speed;
mod workers;

use clap::Args;
use lab::plan::Plan;
use lab::plan::gbench::{self, Flags, Question};
use lab::run::RunError;
use record::Run;
use record::render::gbench::{FOLLOWED_VERSION, Format};

use super::output::Sink;
use super::{complain, exit, note, say};
use own::Own;
pub(crate) use own::Test;
use report::Report;

/// Measure throughput: binder, hwbinder (with Google Benchmark's flags), workers, scaling, ...: `throughput --help`
#[derive(Clone, Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct ThroughputArgs {
    /// The test, then its flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Runs the test that the first word names.
pub(crate) fn run(args: ThroughputArgs) -> u8 {
    let mut words = args.words.into_iter();
    match words.next().as_deref() {
        Some("binder") => benchmark(Test::Binder, "binderperf throughput binder", words.collect(), "default"),
        Some("hwbinder") => {
            benchmark(Test::Hwbinder, "binderperf throughput hwbinder", words.collect(), "default")
        }
        Some("all") => benchmark(Test::All, "binderperf throughput all", words.collect(), "default"),
        Some("compare-flavours") => flavours::run("binderperf throughput compare-flavours", words.collect()),
        Some("workers") => workers("binderperf throughput workers", words.collect()),
        Some("hwbinder-workers") => {
            hwbinder_workers("binderperf throughput hwbinder-workers", words.collect())
        }
        Some("scaling") => scaling::run("binderperf throughput scaling", words.collect()),
        Some("embedded-speed") => speed::run(words.collect()),
        Some("serialisation") => serialisation::run(words.collect()),
        Some("--help" | "-h") => say(&overview()),
        other => {
            let found = other.map_or("nothing".to_owned(), |name| format!("{name:?}"));
            complain(format_args!("which throughput test? found {found}"));
            note(overview());
            exit::USAGE
        }
    }
}

/// The tests, and what each is.
const TESTS: [(&str, &str); 9] = [
    ("binder", "one client and one service, 4 B to 64 KiB, beside other ways; Android's libbinder_benchmark"),
    ("hwbinder", "the same through hwbinder, or in one process; Android's libhwbinder_benchmark"),
    ("all", "both, and without IPC"),
    ("compare-flavours", "what binder, hwbinder and no IPC cost, and what each cost is made of"),
    ("workers", "many workers that call each other; Android's binderThroughputTest"),
    ("hwbinder-workers", "many workers and services; Android's hwbinderThroughputTest"),
    ("scaling", "1, 2, 4, ... pairs, and clients of one service"),
    ("serialisation", "what writing and reading a call's arguments costs, without a driver"),
    ("embedded-speed", "the embedded driver beside this machine's floor, with its targets"),
];

fn overview() -> String {
    let lines: String = TESTS.iter().map(|(name, what)| format!("  {name:<17} {what}\n")).collect();
    format!(
        "Usage: binderperf throughput TEST [FLAGS]\n\nTests:\n{lines}\n\
         Flags of each: binderperf throughput TEST --help\n"
    )
}

fn usage(test: Test, name: &str) -> String {
    format!("Usage: {name}\n{}{}", gbench::usage(), own::usage(test))
}

/// A throughput test with Google Benchmark's flags, called by this name, with these words and, unless they
/// say otherwise, these controls.
pub(crate) fn benchmark(test: Test, name: &str, words: Vec<String>, controls: &str) -> u8 {
    let compatible = words.iter().any(|word| word == own::COMPATIBLE);
    let call = match Call::parse(test, words, controls) {
        Ok(call) => call,
        Err(why) => {
            complain(why);
            note(usage(test, name));
            return if compatible { exit::FAILED } else { exit::USAGE };
        }
    };
    let end = match call.flags.question {
        Some(Question::Help) => answer(&usage(test, name)),
        Some(Question::Version) => {
            let version = env!("CARGO_PKG_VERSION");
            answer(&format!("binderperf {version} (Google Benchmark {FOLLOWED_VERSION})\n"))
        }
        None if call.flags.list_tests => call.list(),
        None => call.measure(),
    };
    if compatible { end.compatible_code() } else { end.code() }
}

/// The binder throughput test with many workers, called by this name.
pub(crate) fn workers(name: &str, words: Vec<String>) -> u8 {
    workers::run(name, words)
}

/// The hwbinder throughput test with many workers, called by this name.
pub(crate) fn hwbinder_workers(name: &str, words: Vec<String>) -> u8 {
    hwbinder::run(name, words)
}

/// How a call went.
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

    /// Google Benchmark knows one failure, and neither a failed case nor an empty filter is it.
    fn compatible_code(self) -> u8 {
        match self {
            Self::Fine | Self::NothingMatched | Self::CaseFailed => exit::FINE,
            Self::Unwritten | Self::Broken | Self::GateFailed | Self::Stopped => exit::FAILED,
            Self::Unable => exit::UNABLE,
        }
    }
}

/// Everything typed, understood.
struct Call {
    flags: Flags,
    own: Own,
    plan: Plan,
}

impl Call {
    fn parse(test: Test, words: Vec<String>, controls: &str) -> Result<Self, String> {
        let command_line = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let variable = |name: &str| std::env::var(name).ok();
        let (flags, rest) = Flags::parse(words, variable).map_err(|error| error.to_string())?;
        let own = Own::parse(rest, controls)?;
        let plan = own.plan(test, &flags, command_line)?;
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
        // Told now, as it may be a slip of the pen, and again at the end: a run in between is worth
        // its result on the standard output. Google Benchmark does not begin.
        if let Some(end) = tell_troubles(&outputs.all().collect::<Vec<_>>())
            && self.own.gbench_compat
        {
            return end;
        }
        if !self.flags.perf_counters.is_empty() {
            note("Performance counters not supported.\n");
        }
        let mut report = Report::new(self, &mut outputs);
        let run = match lab::run::execute(&self.plan, &mut report) {
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
        if outputs.are_unwanted() {
            return End::Fine;
        }
        if let Some(file) = &mut outputs.record {
            file.put(&run.to_json());
        }
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
    if say(text) == exit::FINE { End::Fine } else { End::Unwritten }
}

fn nothing_matched(error: &RunError) -> End {
    // Word for word what Google Benchmark says, as harnesses look for it.
    note(format_args!("{error}\n"));
    End::NothingMatched
}

/// Says what could not be written.
fn tell_troubles(sinks: &[&Sink]) -> Option<End> {
    let troubles: Vec<String> = sinks.iter().filter_map(|sink| sink.trouble()).collect();
    troubles.iter().for_each(complain);
    (!troubles.is_empty()).then_some(End::Unwritten)
}

/// Where the results go.
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
            out: call.flags.out.as_deref().map(Sink::file),
            record: call.own.record.as_deref().map(Sink::file),
        }
    }

    /// Whether the one reader of the result has gone.
    fn are_unwanted(&self) -> bool {
        self.stdout.is_closed() && self.out.is_none() && self.record.is_none()
    }

    fn all(&self) -> impl Iterator<Item = &Sink> {
        std::iter::once(&self.stdout).chain(&self.out).chain(&self.record)
    }
}

/// Whether Google Benchmark prints its block of facts for a format.
fn has_context(format: Format) -> bool {
    format != Format::Json
}
