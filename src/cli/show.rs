//! The command `show`: renders a stored record.

use std::path::PathBuf;

use bench::plan::gbench::Color;
use clap::Args;
use clap::builder::TypedValueParser;
use record::Run;
use record::formats::gbench::{Format, Options, context, replay};
use record::render::crowd::lines;
use record::render::summary::summary;
use record::render::{latency, printable};
use store::records::read_all;

use super::choice::{self, Table};
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
    #[arg(long, value_parser = choice::table(ALL), default_value = "summary")]
    format: Form,
}

/// Output formats of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Summary,
    Console,
    Json,
    GbenchJson,
    Csv,
    Lines,
    /// For latency tests only.
    LatencyJson,
    LatencyTable,
}

/// All formats, those of any record first.
const ALL: &Table<Form, 8> = &[
    (Form::Summary, "summary", "The table that `run` prints at its end"),
    (Form::Console, "console", "Google Benchmark's table"),
    (Form::Json, "json", "The record itself"),
    (Form::GbenchJson, "gbench-json", "Google Benchmark's JSON"),
    (Form::Csv, "csv", "Google Benchmark's CSV"),
    (Form::Lines, "lines", "The lines of Android's throughput tests with many workers"),
    (Form::LatencyJson, "latency-json", "The JSON of Android's latency tests, with everything in the record"),
    (Form::LatencyTable, "latency-table", "The table of a latency test"),
];

/// Formats of any record.
pub(super) fn forms() -> impl TypedValueParser<Value = Form> {
    choice::table(&ALL[..6])
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
    let is_of_latency = matches!(arguments.format, Form::LatencyJson | Form::LatencyTable);
    if is_of_latency && run.latency().is_none() {
        let (path, test) = (arguments.file.display(), printable(&run.plan.test));
        let why = format!("{path} is not of a latency test but of {test:?}: use --format=summary");
        return Err(Failure::new(exit::USAGE, why));
    }
    say(&arguments.format.of(run))
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
            Self::LatencyJson => {
                latency::json(run, &latency::Options { verbose: true, raw: true, android: false })
            }
            Self::LatencyTable => latency::table(run),
        }
    }
}
