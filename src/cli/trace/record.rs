//! The command `trace record`: its options, output and exit status.
//! Not here: recording (`ftrace::record`).

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ftrace::categories;
use ftrace::record::work::{Ended, Work};
use ftrace::record::{Observer, Plan, Summary, record};
use ftrace::tracefs::TraceError;

use super::ask::AskArgs;
use super::draw::DrawArgs;
use crate::cli::applet::Applet;
use crate::cli::atrace::{known, tell_of_userspace};
use crate::cli::progress::StatusLine;
use crate::cli::{self, A_YEAR_S, Failure, exit, note, status_of};

/// Record trace events while a command runs, in a separate trace buffer
///
/// COMMAND may be `binderperf ...` or one of Android's tools (see `binderperf applet`), which both mean this program, or
/// any other program. A latency test with -trace stops the recording at its first miss.
#[derive(Clone, Debug, Args)]
pub(crate) struct RecordArgs {
    /// The file to write
    #[arg(short = 'o', long, value_name = "FILE", default_value = "binderperf.trace")]
    output: PathBuf,

    /// Size of each CPU's buffer in KB
    #[arg(short = 'b', long, value_name = "KB", default_value_t = 4096, allow_negative_numbers = true)]
    buffer_kb: u64,

    /// Keep only the newest events in the buffers, and read them at the end only
    #[arg(short = 'c', long)]
    circular: bool,

    /// Record for this many seconds
    #[arg(short = 't', long, value_name = "SEC", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S), required_unless_present = "command", conflicts_with = "command")]
    time: Option<u64>,

    /// Categories of events, as listed by `binderperf atrace --list_categories` [default: sched freq idle irq workq sync binder_driver memreclaim]
    categories: Vec<String>,

    /// The command to record
    #[arg(last = true)]
    command: Vec<String>,

    #[command(flatten, next_help_heading = "The page")]
    draw: DrawArgs,

    #[command(flatten, next_help_heading = "The page")]
    ask: AskArgs,
}

/// Records; returns the exit status.
pub(super) fn run(args: &RecordArgs) -> cli::CommandResult {
    let wrong = match &args.draw.html {
        Some(html) if *html == args.output => {
            "the recording and the page cannot be one file; give another to --html"
        }
        None if args.ask.is_particular() => {
            "which calls to tell of matters with --html only; give it a file to write"
        }
        _ => "",
    };
    if !wrong.is_empty() {
        return Err(Failure::new(exit::USAGE, wrong));
    }
    let mut progress = ProgressReporter { line: StatusLine::new() };
    let outcome = args.plan().and_then(|plan| record(&plan, &mut progress));
    progress.line.show("");
    let summary = outcome?;
    note(told(&summary, args));
    let drawn = status_of(args.drawn());
    // The command's status takes precedence over that of its picture.
    Ok(match status(summary.ended) {
        exit::FINE => drawn,
        failed => failed,
    })
}

impl RecordArgs {
    /// Draws the recording, if requested.
    fn drawn(&self) -> cli::CommandResult {
        if self.draw.html.is_none() {
            return Ok(exit::FINE);
        }
        // Only now the file exists, which another spelling of its name could denote.
        self.draw.check(&self.output)?;
        let unreadable = |failure| Failure { status: exit::INTERNAL, ..failure };
        let analysis = self.ask.analyse(&self.output, None).map_err(unreadable)?;
        for slow in &analysis.slow {
            note(format_args!("- {}{}\n", if slow.missed { "MISS " } else { "" }, slow.verdict));
        }
        self.draw.draw(&self.output, &analysis)?;
        Ok(exit::FINE)
    }

    fn plan(&self) -> Result<Plan, TraceError> {
        let usual = || categories::USUAL.map(str::to_owned).to_vec();
        let names = if self.categories.is_empty() { usual() } else { self.categories.clone() };
        let (categories, userspace) = known(&names)?;
        tell_of_userspace(&userspace);
        let work = match (self.time, self.command.as_slice()) {
            (Some(seconds), _) => Work::Time(Duration::from_secs(seconds)),
            (None, [name, words @ ..]) => Work::Command {
                program: program(name)?,
                name: name.clone(),
                words: words.to_vec(),
                silent: false,
            },
            (None, []) => return Err(TraceError::Usage("record what? give -t SEC or a command".to_owned())),
        };
        Ok(Plan {
            categories,
            buffer_kb: self.buffer_kb,
            circular: self.circular,
            output: self.output.clone(),
            work,
        })
    }
}

/// The program that a command's name denotes: this program, for its own names.
fn program(name: &str) -> Result<PathBuf, TraceError> {
    if name != "binderperf" && Applet::named(name).is_none() {
        return Ok(PathBuf::from(name));
    }
    std::env::current_exe()
        .map_err(|error| TraceError::Refused { tried: "finding this program's file".to_owned(), error })
}

fn status(ended: Ended) -> u8 {
    match ended {
        Ended::Time => exit::FINE,
        Ended::Command(status) => {
            let code = status.code().or(status.signal().map(|signal| 128 + signal));
            code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::INTERNAL)
        }
    }
}

/// The message at the end.
fn told(summary: &Summary, args: &RecordArgs) -> String {
    let mut text = String::new();
    if summary.stopped_early {
        text += "recording was stopped before the end, as by a miss\n";
    }
    let events: u64 = summary.cpus.iter().map(|cpu| cpu.events).sum();
    let bytes = summary.bytes;
    text += &format!("{}: {events} events, {bytes} bytes, clock {}\n", args.output.display(), summary.clock);
    for cpu in &summary.cpus {
        let lost = cpu.overwritten + cpu.dropped;
        let lost = match (lost, args.circular) {
            (0, _) => "none lost".to_owned(),
            (_, true) => format!("{} older ones overwritten, {} lost", cpu.overwritten, cpu.dropped),
            (_, false) => format!("{lost} LOST: take larger buffers (-b) or fewer categories"),
        };
        text += &format!("cpu{}: {} events, {} bytes, {lost}\n", cpu.cpu, cpu.events, cpu.bytes);
    }
    for left in &summary.left {
        text += &format!("{left}\n");
    }
    text
}

/// Shows progress on the terminal.
struct ProgressReporter {
    line: StatusLine,
}

impl Observer for ProgressReporter {
    fn begins(&mut self, notes: &[String]) {
        notes.iter().for_each(|line| note(format_args!("{line}\n")));
    }

    fn advanced(&mut self, elapsed: Duration, bytes: u64) {
        self.line.show(&format!("recording: {} s, {} KB", elapsed.as_secs(), bytes / 1024));
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

    fn parsed(words: &str) -> Option<RecordArgs> {
        Whole::try_parse_from(words.split(' ')).ok().map(|whole| whole.args)
    }

    #[test]
    fn what_is_recorded_is_a_time_or_a_command() {
        let args = parsed("x -o f -b 64 sched irq -- libhwbinder_latency -i 5 -trace").expect("a command");
        assert_eq!((args.categories.len(), args.command.len()), (2, 4));
        let plan = args.plan().expect("a plan");
        let Work::Command { program, name, words, .. } = plan.work else { panic!("a command") };
        assert_eq!(program, std::env::current_exe().expect("a test is a program"));
        assert_eq!((name.as_str(), words.len()), ("libhwbinder_latency", 3));
        let plan = parsed("x -t 2").expect("a time").plan().expect("a plan");
        assert_eq!((plan.categories.len(), plan.work), (8, Work::Time(Duration::from_secs(2))));
        assert_eq!(program_of("x -- true"), Some(PathBuf::from("true")));
        for bad in ["x", "x sched", "x -t 0", "x -t 1 -- true", "x -b -1 -t 1"] {
            assert!(parsed(bad).is_none(), "{bad}");
        }
        assert!(matches!(parsed("x nosuch -t 1").expect("words").plan(), Err(TraceError::Usage(_))));
    }

    fn program_of(words: &str) -> Option<PathBuf> {
        match parsed(words)?.plan().ok()?.work {
            Work::Command { program, .. } => Some(program),
            Work::Time(_) => None,
        }
    }
}
