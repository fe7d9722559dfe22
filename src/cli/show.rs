//! The command `show`: renders a stored record.

use std::path::PathBuf;

use bench::plan::gbench::Color;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use record::Run;
use record::formats::gbench::{Format, Options, context, replay};
use record::render::crowd::lines;
use record::render::summary::summary;
use record::render::{latency, printable};
use store::records::read_all;

use super::output::in_color;
use super::{CommandResult, Failure, exit, say, tell};

/// Show a stored record, as tables or for other programs
///
/// Also the results of other programs: Google Benchmark's JSON, and what binderThroughputTest, hwbinderThroughputTest, schd-dbg and
/// libhwbinder_latency print.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The record
    file: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = Shown::Any(Form::Summary))]
    format: Shown,
}

/// Output formats of a stored record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// A format for any record.
    Any(Form),
    /// A format for latency tests only.
    Latency(LatencyForm),
}

impl ValueEnum for Shown {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Any(Form::Summary),
            Self::Any(Form::Console),
            Self::Any(Form::Json),
            Self::Any(Form::GbenchJson),
            Self::Any(Form::Csv),
            Self::Any(Form::Lines),
            Self::Latency(LatencyForm::LatencyJson),
            Self::Latency(LatencyForm::LatencyTable),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Any(form) => form.to_possible_value(),
            Self::Latency(form) => form.to_possible_value(),
        }
    }
}

/// Output formats of a latency test's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LatencyForm {
    /// The JSON of Android's latency tests, with everything in the record
    LatencyJson,
    /// The table of a latency test
    LatencyTable,
}

/// Output formats of any record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// The table that `run` prints at its end
    Summary,
    /// Google Benchmark's table
    Console,
    /// The record itself
    Json,
    /// Google Benchmark's JSON
    GbenchJson,
    /// Google Benchmark's CSV
    Csv,
    /// The lines of Android's throughput tests with many workers
    Lines,
}

/// Shows the record.
pub(crate) fn run(arguments: &ShowArgs) -> CommandResult {
    for run in read_all(&arguments.file, tell)? {
        show(arguments, &run)?;
    }
    Ok(exit::FINE)
}

/// Shows one run.
fn show(arguments: &ShowArgs, run: &Run) -> CommandResult {
    match arguments.format {
        Shown::Any(form) => say(&form.of(run)),
        Shown::Latency(_) if run.latency().is_none() => {
            let (path, test) = (arguments.file.display(), printable(&run.plan.test));
            let why = format!("{path} is not of a latency test but of {test:?}: use --format=summary");
            Err(Failure::new(exit::USAGE, why))
        }
        Shown::Latency(LatencyForm::LatencyJson) => {
            say(&latency::json(run, &latency::Options { verbose: true, raw: true, android: false }))
        }
        Shown::Latency(LatencyForm::LatencyTable) => say(&latency::table(run)),
    }
}

impl Form {
    /// A record in this format.
    pub(super) fn of(self, run: &Run) -> String {
        let as_gbench = |format| {
            let color = format == Format::Console && in_color(Color::Auto);
            replay(run, &Options { format, color, ..Options::default() })
        };
        match self {
            Self::Summary => summary(run, ""),
            Self::Console => context(run) + &as_gbench(Format::Console),
            Self::Json => run.to_json(),
            Self::GbenchJson => as_gbench(Format::Json),
            Self::Csv => as_gbench(Format::Csv),
            Self::Lines => lines(run),
        }
    }
}
