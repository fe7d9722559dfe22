//! Applets: the names of Android's tools by which this program can be called.
//! Facts: Android's documentation calls the binder throughput test `libbinder_benchmark`; its test harness
//! knows Google Benchmark's flags only, so a call with nothing but those means that tool.

use bench::plan::Flavour;
use bench::plan::gbench;
use bench::plan::request::Test;
use clap::{Args, Command, CommandFactory};

use super::atrace;
use super::latency;
use super::program::Program;
use super::throughput::{self, hwbinder, workers};
use super::{CommandResult, Failure, exit, help, parse};

/// An Android tool that this program implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applet {
    /// The binder throughput test.
    Benchmark,
    /// The hwbinder throughput test.
    HwbinderBenchmark,
    /// The sum of two numbers.
    AddInts,
    /// The binder throughput test with many workers.
    Workers,
    /// The same for hwbinder.
    HwbinderWorkers,
    /// The hwbinder latency test.
    Latency,
    /// The same for hwbinder.
    HwbinderLatency,
    /// The recorder of trace events.
    Atrace,
}

impl Applet {
    /// Each with its name, in the order of the variants.
    pub(super) const ALL: [(Self, &'static str); 8] = [
        (Self::Benchmark, "libbinder_benchmark"),
        (Self::HwbinderBenchmark, "libhwbinder_benchmark"),
        (Self::AddInts, "binderAddInts"),
        (Self::Workers, "binderThroughputTest"),
        (Self::HwbinderWorkers, "hwbinderThroughputTest"),
        (Self::Latency, "schd-dbg"),
        (Self::HwbinderLatency, "libhwbinder_latency"),
        (Self::Atrace, "atrace"),
    ];

    pub(super) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find_map(|(applet, known)| (known == name).then_some(applet))
    }

    /// Runs it with its flags. A benchmark has no controls by default: a harness expects Android's names only.
    pub(crate) fn start(self, words: Vec<String>) -> CommandResult {
        match self {
            Self::Benchmark => Ok(throughput::benchmark(Test::Binder, self.name(), words, "none")),
            Self::HwbinderBenchmark => Ok(throughput::benchmark(Test::Hwbinder, self.name(), words, "none")),
            Self::AddInts => Ok(throughput::benchmark(Test::AddInts, self.name(), words, "none")),
            Self::Workers => workers::run(parse(self.name(), words)?, true),
            Self::HwbinderWorkers => hwbinder::run(parse(self.name(), words)?, true),
            Self::Latency => latency::test(Flavour::Binder, self.name(), words),
            Self::HwbinderLatency => latency::test(Flavour::Hwbinder, self.name(), words),
            Self::Atrace => atrace::run(self.name(), words),
        }
    }
}

/// All names.
pub(super) fn names() -> Vec<String> {
    Applet::ALL.map(|(_, name)| name.to_owned()).into()
}

impl Applet {
    /// The definition that parses its flags.
    fn definition(self) -> Command {
        let definition = match self {
            Self::Benchmark => throughput::own::definition(Test::Binder),
            Self::HwbinderBenchmark => throughput::own::definition(Test::Hwbinder),
            Self::AddInts => throughput::own::definition(Test::AddInts),
            Self::Workers => workers::WorkersArgs::command(),
            Self::HwbinderWorkers => hwbinder::HwbinderArgs::command(),
            Self::Latency => latency::TestArgs::command().about(latency::ABOUT_BINDER),
            Self::HwbinderLatency => latency::TestArgs::command().about(latency::ABOUT_HWBINDER),
            Self::Atrace => atrace::Words::command(),
        };
        definition.name(self.name())
    }
}

/// Act as a tool of Android's, by its name and with its flags
///
/// A link to this program by such a name acts as that tool, and so does the name as the first word. With only Google
/// Benchmark's flags this program acts as libbinder_benchmark, for harnesses that know no other flags.
#[derive(Clone, Debug, Args)]
#[command(disable_help_flag = true, subcommand_value_name = "TOOL", subcommand_help_heading = "Tools")]
pub(super) struct AppletArgs {
    /// The tool's name, then its flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// The definition that parses `applet`: a subcommand per tool.
pub(super) fn definition() -> Command {
    Command::new("applet").subcommands(Applet::ALL.map(|(applet, _)| applet.definition()))
}

/// The applet that a call selects: by the program's name, by the first word, or by having Google Benchmark's
/// flags only; and its arguments.
pub(crate) fn parse_applet<'w>(program: &str, words: &'w [String]) -> Option<(Applet, &'w [String])> {
    let name = program.rsplit('/').next().unwrap_or(program);
    if let Some(applet) = Applet::named(name) {
        return Some((applet, words));
    }
    if let [first, rest @ ..] = words
        && let Some(applet) = Applet::named(first)
    {
        return Some((applet, rest));
    }
    let only_flags = !words.is_empty() && words.iter().all(|word| gbench::looks_like_one(word));
    only_flags.then_some((Applet::Benchmark, words))
}

/// Runs the applet that the first word names.
pub(super) fn run(args: AppletArgs, program: &Program) -> CommandResult {
    let names = names().join(", ");
    let mut words = args.words.into_iter();
    let first = words.next();
    match first.as_deref() {
        Some(word @ ("--help" | "-h")) => help::print_help(&["applet"], word == "-h", program),
        Some(name) if let Some(applet) = Applet::named(name) => applet.start(words.collect()),
        other => {
            let found = other.map_or("no name".to_owned(), |name| format!("{name:?}"));
            Err(Failure::new(exit::USAGE, format_args!("there are the applets {names}; found {found}")))
        }
    }
}

impl AppletArgs {
    /// Parses the arguments that the tree passed on.
    pub(super) fn check(&self) -> Result<(), String> {
        let (name, words) = self.words.split_first().ok_or("no tool is named")?;
        Applet::named(name).ok_or_else(|| format!("no tool {name:?}"))?.check(words.to_vec())
    }
}

impl Applet {
    /// Parses its arguments without running it.
    pub(super) fn check(self, words: Vec<String>) -> Result<(), String> {
        let words = match self {
            Self::Benchmark => return throughput::check(Test::Binder, words),
            Self::HwbinderBenchmark => return throughput::check(Test::Hwbinder, words),
            Self::AddInts => return throughput::check(Test::AddInts, words),
            Self::Latency | Self::HwbinderLatency => latency::modern(words),
            Self::Workers | Self::HwbinderWorkers | Self::Atrace => words,
        };
        let words = std::iter::once(self.name().to_owned()).chain(words);
        self.definition().try_get_matches_from(words).map(drop).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_its_tool_wherever_it_stands() {
        let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let flags = strings(&["-w", "4"]);
        assert_eq!(parse_applet("/x/binderThroughputTest", &flags), Some((Applet::Workers, &flags[..])));
        assert_eq!(
            parse_applet("hwbinderThroughputTest", &flags),
            Some((Applet::HwbinderWorkers, &flags[..]))
        );
        let words = strings(&["binderThroughputTest", "-w", "4"]);
        assert_eq!(parse_applet("binderperf", &words), Some((Applet::Workers, &flags[..])));
        let gbench = strings(&["--benchmark_list_tests"]);
        assert_eq!(parse_applet("x", &gbench), Some((Applet::Benchmark, &gbench[..])));
        assert_eq!(parse_applet("libhwbinder_benchmark", &[]), Some((Applet::HwbinderBenchmark, &[][..])));
        assert_eq!(parse_applet("schd-dbg", &flags), Some((Applet::Latency, &flags[..])));
        assert_eq!(parse_applet("/system/bin/atrace", &flags), Some((Applet::Atrace, &flags[..])));
        assert_eq!(
            parse_applet("x/libhwbinder_latency", &flags),
            Some((Applet::HwbinderLatency, &flags[..]))
        );
        assert_eq!(parse_applet("libbinder_benchmark", &[]), Some((Applet::Benchmark, &[][..])));
        assert_eq!(parse_applet("binderperf", &flags), None);
    }
}
