//! Room: `binderperf trace analyze`: words into a question, its answer as text or JSON.
//! Not here: the answer (`trace::verdict`), files for Perfetto (`perfetto`).

use std::fs::File;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trace::verdict::{Analysis, Analyst, Filter, Question};

use super::draw::DrawArgs;
use super::perfetto::Export;
use crate::cli::{complain, exit, say};

/// Say what slow Binder transactions waited for
///
/// FILE is a recording of `trace record`, or ftrace's text from any machine: a `trace` file, atrace, systrace's HTML,
/// what `trace-cmd report` prints. It needs binder_transaction and binder_transaction_received; with sched_switch and
/// sched_waking it can say why. Misses that a latency test of binderperf's marked in it are told in any case. Exit status 1
/// if there is one, or a call was longer than --deadline-us.
#[derive(Clone, Debug, Args)]
pub(crate) struct AnalyzeArgs {
    /// The trace
    file: PathBuf,

    /// Tell of every call that took longer than this
    #[arg(long, value_name = "N")]
    deadline_us: Option<u64>,

    /// Tell of the slowest N calls
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    worst: u32,

    /// Only calls from or to this thread or process; more than one may be given
    #[arg(long, value_name = "N")]
    pid: Vec<i32>,

    /// Only calls from or to threads with this in their name
    #[arg(long, value_name = "TEXT")]
    comm: Option<String>,

    /// Only calls that a test of binderperf's marked as its own
    #[arg(long)]
    own: bool,

    #[command(flatten)]
    draw: DrawArgs,

    /// What to print
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,

    /// Write the trace for ui.perfetto.dev, too: its events, and the calls asked for with their causes
    #[arg(long, value_name = "OUT")]
    perfetto: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Reads the trace and answers; the result is the exit status.
pub(super) fn run(args: &AnalyzeArgs) -> u8 {
    if let Err(status) = args.draw.check(&args.file) {
        return status;
    }
    let analysis = match analyse(args) {
        Ok(analysis) => analysis,
        Err((status, why)) => {
            complain(why);
            return status;
        }
    };
    let text = match args.format {
        Form::Text => analysis.to_string(),
        Form::Json => match analysis.to_json() {
            Ok(json) => json,
            Err(error) => {
                complain(format_args!("could not write the answer as JSON: {error}"));
                return exit::INTERNAL;
            }
        },
    };
    let printed = say(&text);
    if printed != exit::FINE {
        return printed;
    }
    let drawn = args.draw.draw(&args.file, &analysis);
    if drawn != exit::FINE {
        return drawn;
    }
    let counts = analysis.counts;
    if counts.calls + counts.oneway + counts.failed + counts.cut == 0 {
        complain(
            "no transaction in this trace was asked for; it needs the events binder_transaction and binder_transaction_received",
        );
        return exit::USAGE;
    }
    if counts.missed > 0 { exit::FAILED } else { exit::FINE }
}

fn analyse(args: &AnalyzeArgs) -> Result<Analysis, (u8, String)> {
    let unreadable = |why: &dyn std::fmt::Display| (exit::USAGE, format!("{}: {why}", args.file.display()));
    let file = File::open(&args.file).map_err(|error| unreadable(&lab::describe_errno(&error)))?;
    let mut export = args.perfetto.as_deref().map(|path| Export::check(path, &file)).transpose()?;
    let mut reader = trace::open(file).map_err(|error| unreadable(&error))?;
    if let Some(export) = &mut export {
        export.begin(reader.head())?;
    }
    let mut analyst = Analyst::new(Question {
        deadline_ns: args.deadline_us.map(|us| us.saturating_mul(1000)),
        worst: args.worst as usize,
        filter: Filter { pids: args.pid.clone(), comm: args.comm.clone(), own: args.own },
    });
    while let Some(event) = reader.next() {
        match &mut export {
            Some(export) => export.take(&event, &mut analyst, reader.names()),
            None => analyst.take(&event, reader.names()),
        }
    }
    if let Some(export) = export {
        export.finish(&mut analyst, reader.names())?;
    }
    Ok(analyst.finish(reader.names(), reader.report()))
}
