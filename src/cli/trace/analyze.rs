//! Room: `binderperf trace analyze`: the answer to a question, as text or JSON.
//! Not here: the question (`ask`), the answer (`trace::verdict`), pages (`draw`), files for Perfetto (`perfetto`).

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::ask::AskArgs;
use super::draw::DrawArgs;
use crate::cli::{complain, exit, say};

/// Say what slow Binder transactions waited for
///
/// FILE is a recording of `trace record`, or ftrace's text from any machine: a `trace` file, atrace, systrace's HTML,
/// what `trace-cmd report` prints. It needs binder_transaction and binder_transaction_received; with sched_switch and
/// sched_waking it can say why. Misses that a latency test of binderperf's marked in it are told in any case.
#[derive(Clone, Debug, Args)]
pub(crate) struct AnalyzeArgs {
    /// The trace
    file: PathBuf,

    #[command(flatten, next_help_heading = "Which calls")]
    ask: AskArgs,

    #[command(flatten, next_help_heading = "The page")]
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
    /// For programs: all of it, but not what only the pictures of --html need
    Json,
}

/// Reads the trace and answers; the result is the exit status.
pub(super) fn run(args: &AnalyzeArgs) -> u8 {
    if let Err(status) = args.draw.check(&args.file) {
        return status;
    }
    let analysis = match args.ask.analyse(&args.file, args.perfetto.as_deref()) {
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
