//! The command `matrix`: the same tests on many kernels, and what each costs relative to the first.
//! Not here: measuring them (`conduct::matrix`, `bench::matrix`), the table (`record::matrix`).

use std::path::PathBuf;
use std::time::Duration;

use bench::matrix::MatrixOptions;
use bench::matrix::kernels::{Kernels, Source, named as kernel, usual_tests, words};
use bench::matrix::presets::Preset;
use clap::{Args, ValueEnum};
use conduct::matrix;
use record::matrix::Matrix;
use record::render::matrix as render;

use super::choice::{self, Table};
use super::output::Sink;
use super::program::Program;
use super::records::metrics;
use super::{A_YEAR_S, CommandResult, Failure, OrExit, exit};

/// Runs of each kernel in each test where time is measured.
const ROUNDS: u32 = 7;

/// Measure the same tests on many kernels: what does each cost relative to the first?
///
/// A kernel that does not boot is a row that says so. A further call with the same --records measures only what is
/// missing.
#[derive(Debug, Args)]
pub(crate) struct MatrixArgs {
    /// Kernels as vm --kernel takes them, separated by commas, each with an optional name before it: NAME=KERNEL.
    /// KERNEL+DRIVER has another driver: a module (.ko), a patch (.patch) or a source's folder, of which one is built,
    /// or the word driver, the kernel's own built alike
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', required_unless_present = "preset", value_parser = kernel)]
    kernels: Vec<(String, String)>,

    /// A set of kernels, and its tests unless others are given; those that are missing are built, which takes minutes each
    #[arg(long, value_name = "SET", value_parser = choice::table(&PRESETS), conflicts_with = "kernels")]
    preset: Option<Preset>,

    /// A test and its flags, in quotes; may be repeated [default: the preset's, else throughput of binder and hwbinder
    /// at 4 B, 4 KiB and 64 KiB]
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, value_parser = words)]
    tests: Vec<Vec<String>>,

    /// Count guest instructions instead of time: one CPU, one boot of each
    #[arg(long, conflicts_with_all = ["rounds", "metric"])]
    icount: bool,

    /// Runs of each kernel in each test [default: 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Flag of vm for all kernels, without its dashes: smp=2
    #[arg(long, value_name = "FLAG[=VALUE]")]
    vm: Vec<String>,

    /// The metric to compare
    #[arg(help_heading = "Comparing", long, value_name = "METRIC", default_value = "median", value_parser = metrics())]
    metric: record::compare::Metric,

    /// Folder for the records
    #[arg(help_heading = "Output", long, value_name = "DIR", default_value = "binderperf-matrix", value_hint = clap::ValueHint::DirPath)]
    records: PathBuf,

    /// Longest time of one run in seconds
    #[arg(long, value_name = "S", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,

    /// Output format
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Form::Text)]
    format: Form,

    /// Write to FILE instead of the standard output
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Tables
    Text,
    /// Tables for a pull request
    Markdown,
    /// A page
    Html,
    /// Every figure
    Json,
}

/// Measures and compares.
pub(crate) fn run(args: &MatrixArgs, program: &Program) -> CommandResult {
    for words in &args.tests {
        (program.understood)(words)
            .map_err(|why| Failure::new(exit::USAGE, format_args!("--tests {:?}: {why}", words.join(" "))))?;
    }
    let kernels = matrix::prepared(args.wanted().or_exit(exit::USAGE)?).or_exit(exit::USAGE)?;
    let options = args.options(&kernels).or_exit(exit::USAGE)?;
    let sink = || args.out.as_deref().map_or_else(Sink::stdout, Sink::file);
    matrix::run(&options, &kernels, args.metric, sink, |found| args.format.of(found))
}

impl Form {
    fn of(self, found: &Matrix) -> Result<String, Failure> {
        Ok(match self {
            Self::Text => render::text(found),
            Self::Markdown => render::markdown(found),
            Self::Html => render::html(found).or_exit(exit::INTERNAL)?,
            Self::Json => render::json(found),
        })
    }
}

impl MatrixArgs {
    /// The kernels, with a name each.
    fn wanted(&self) -> Result<Vec<(String, Source)>, String> {
        let given = || self.kernels.iter().map(|(name, word)| (name.clone(), Source::Given(word.clone())));
        self.preset.map_or_else(|| Ok(given().collect()), Preset::kernels)
    }

    fn options(&self, kernels: &Kernels) -> Result<MatrixOptions, String> {
        let preset = self.preset.map(Preset::tests).unwrap_or_default();
        let tests = match (&self.tests[..], preset) {
            ([], []) => usual_tests(),
            ([], preset) => preset.iter().map(|test| words(test)).collect::<Result<_, _>>()?,
            (given, _) => given.to_vec(),
        };
        Ok(MatrixOptions {
            kernels: kernels.sides(&self.vm),
            tests,
            rounds: if self.icount { 1 } else { self.rounds.unwrap_or(ROUNDS) as usize },
            icount: self.icount,
            folder: self.records.clone(),
            patience: Duration::from_secs(self.patience),
        })
    }
}

/// The sets of kernels.
const PRESETS: Table<Preset, 5> = [
    (Preset::Page, "page", "Checks of the kernel, preemption models, HZ, tracing: what configuration costs"),
    (Preset::Drivers, "drivers", "The driver in C and the one in Rust"),
    (Preset::Versions, "versions", "Debian's 6.1, 6.12 and 7.2"),
    (
        Preset::Sched,
        "sched",
        "Debian's 7.2 with each preemption model of the boot option preempt=, its real-time build, sched_ext; proxy execution",
    ),
    (
        Preset::Inherit,
        "inherit",
        "Priorities: passed on not at all (Rust), nice (C), real-time (C with contrib/kernel/inherit-rt.patch)",
    ),
];
