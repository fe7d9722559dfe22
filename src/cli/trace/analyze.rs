//! The command `trace analyze`: prints why calls were slow, as text or JSON.
//! Not here: the selection of calls (`ask`), the analysis (`trace::verdict`), pages (`draw`), files for Perfetto (`perfetto`).

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::ask::AskArgs;
use super::draw::DrawArgs;
use crate::cli::{CommandResult, Failure, OrExit, exit, say};

/// Show what slow Binder transactions waited for
///
/// FILE is a recording of `trace record`, a trace of Perfetto, a trace.dat of trace-cmd, or ftrace's text from any
/// machine: a `trace` file, atrace, systrace's HTML, the output of `trace-cmd report` and `perf script`, also packed by gzip or
/// in a zip archive such as a bug report. It needs binder_transaction and binder_transaction_received; with sched_switch and
/// sched_waking it can name causes. Deadline misses that a latency test of binderperf marked are always shown.
#[derive(Clone, Debug, Args)]
pub(crate) struct AnalyzeArgs {
    /// The trace
    file: PathBuf,

    #[command(flatten, next_help_heading = "Which calls")]
    ask: AskArgs,

    #[command(flatten, next_help_heading = "The page")]
    draw: DrawArgs,

    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,

    /// Also write a trace for ui.perfetto.dev: the events, and the selected calls with their causes
    #[arg(long, value_name = "OUT")]
    perfetto: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Text
    Text,
    /// JSON: everything except what only the pictures of --html need
    Json,
}

/// Analyses the trace; returns the exit status.
pub(super) fn run(args: &AnalyzeArgs) -> CommandResult {
    let drawing = args.draw.drawing();
    drawing.as_ref().map_or(Ok(()), |drawing| drawing.check(&args.file))?;
    let analysis = args.ask.analyse(&args.file, args.perfetto.as_deref())?;
    let json = || analysis.to_json().map_err(|error| format!("could not write the answer as JSON: {error}"));
    say(&match args.format {
        Form::Text => analysis.to_string(),
        Form::Json => json().or_exit(exit::INTERNAL)?,
    })?;
    drawing.map_or(Ok(()), |drawing| drawing.draw(&args.file, &analysis))?;
    let counts = analysis.counts;
    if counts.calls + counts.oneway + counts.failed + counts.cut == 0 {
        if counts.scenes > 0 {
            let why = "all calls in this trace are of inheritance scenes; give --scenes";
            return Err(Failure::new(exit::USAGE, why));
        }
        let why = match args.ask.selects_all() {
            true => {
                "this trace has no transaction; it needs the events binder_transaction and binder_transaction_received"
            }
            false => "no transaction in this trace was asked for: leave out what selects some (see --help)",
        };
        return Err(Failure::new(exit::USAGE, why));
    }
    Ok(if counts.missed > 0 { exit::FAILED } else { exit::FINE })
}
