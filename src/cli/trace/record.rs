//! The command `trace record`: its options.
//! Not here: recording (`conduct::tracing`).

use std::path::PathBuf;

use clap::Args;
use conduct::tracing::{Job, Via};

use super::ask::AskArgs;
use super::draw::DrawArgs;
use crate::cli::applet::Applet;
use crate::cli::choice::{self, Table};
use crate::cli::{A_YEAR_S, CommandResult, Failure, exit};

/// Record trace events while a command runs, in a separate trace buffer
///
/// COMMAND may be `binderperf ...` or one of Android's tools (see `binderperf applet`), which both mean this program, or
/// any other program. A latency test with -trace stops the recording at its first miss.
#[derive(Clone, Debug, Args)]
pub(crate) struct RecordArgs {
    /// The file to write [default: binderperf.trace; by perfetto: binderperf.pftrace]
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Who records: tracefs, which needs root, or Perfetto's own recorder, which the user shell of a phone may run
    #[arg(long, value_parser = choice::table(&WAYS), value_name = "WAY", default_value = "tracefs")]
    via: Via,

    /// With --via perfetto: keep the newest events only, end at the command's first miss (or its exit status 1), and
    /// without one keep nothing
    #[arg(long, conflicts_with = "time")]
    until_miss: bool,

    /// With --via perfetto: application whose trace sections are recorded, * for all; may be repeated
    #[arg(long, value_name = "NAME")]
    app: Vec<String>,

    /// Size of each CPU's buffer in KB
    #[arg(short = 'b', long, value_name = "KB", default_value_t = 4096, allow_negative_numbers = true)]
    buffer_kb: u64,

    /// Keep only the newest events in the buffers, and read them at the end only
    #[arg(short = 'c', long)]
    circular: bool,

    /// With --via tracefs: write marks of the command into the shared buffer, too, for another recorder at the same
    /// time (Linux 6.16 or later)
    #[arg(long, conflicts_with = "time")]
    shared_marks: bool,

    /// Record for this many seconds
    #[arg(short = 't', long, value_name = "SEC", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S), required_unless_present = "command", conflicts_with = "command")]
    time: Option<u64>,

    /// Categories of events, as listed by `binderperf atrace --list_categories` [default: sched freq idle irq workq
    /// sync binder_driver memreclaim]
    categories: Vec<String>,

    /// The command to record
    #[arg(last = true)]
    command: Vec<String>,

    #[command(flatten, next_help_heading = "The page")]
    draw: DrawArgs,

    #[command(flatten, next_help_heading = "The page")]
    ask: AskArgs,
}

/// Who records.
const WAYS: Table<Via, 2> = [
    (Via::Tracefs, "tracefs", "This program, in a private buffer of tracefs"),
    (Via::Perfetto, "perfetto", "Perfetto's recorder"),
];

/// Records; returns the exit status.
pub(super) fn run(args: &RecordArgs) -> CommandResult {
    if args.draw.drawing().is_none() && args.ask.is_particular() {
        let why = "which calls to tell of matters with --html only; give it a file to write";
        return Err(Failure::new(exit::USAGE, why));
    }
    args.job().run()
}

impl RecordArgs {
    fn job(&self) -> Job {
        let is_own = |name: &String| name == manual::NAME || Applet::named(name).is_some();
        Job {
            via: self.via,
            output: self.output.clone(),
            until_miss: self.until_miss,
            applications: self.app.clone(),
            buffer_kb: self.buffer_kb,
            circular: self.circular,
            shared_marks: self.shared_marks,
            seconds: self.time,
            categories: self.categories.clone(),
            command: self.command.clone(),
            is_own: self.command.first().is_some_and(is_own),
            drawing: self.draw.drawing(),
            question: self.ask.question(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Whole {
        #[command(flatten)]
        args: RecordArgs,
    }

    fn parsed(words: &str) -> Option<Job> {
        Whole::try_parse_from(words.split(' ')).ok().map(|whole| whole.args.job())
    }

    #[test]
    fn what_is_recorded_is_a_time_or_a_command() {
        let job = parsed("x -o f -b 64 sched irq -- libhwbinder_latency -i 5 -trace").expect("a command");
        assert_eq!((job.categories.len(), job.command.len(), job.is_own), (2, 4, true));
        assert_eq!(parsed("x -t 2").expect("a time").seconds, Some(2));
        assert!(!parsed("x -- true").expect("another program").is_own);
        for bad in ["x", "x sched", "x -t 0", "x -t 1 -- true", "x -b -1 -t 1"] {
            assert!(parsed(bad).is_none(), "{bad}");
        }
    }
}
