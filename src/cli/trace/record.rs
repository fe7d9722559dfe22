//! The command `trace record`: its options, output and exit status.
//! Not here: recording (`ftrace::record`).

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ftrace::categories::{self, Category, known, of_userspace};
use ftrace::perfetto::PerfettoConfig;
use ftrace::record::perfetto::{self, PerfettoPlan, PerfettoSummary};
use ftrace::record::work::{Ended, Work};
use ftrace::record::{Observer, Plan, record};
use ftrace::tracefs::{TraceError, check_size};

use super::ask::AskArgs;
use super::draw::DrawArgs;
use crate::cli::applet::Applet;
use crate::cli::progress::StatusLine;
use crate::cli::{self, A_YEAR_S, Failure, OrExit, exit, note, status_of};

/// Perfetto's buffer of a recording that is written to its file all the time, in KB.
const STREAM_KB: u64 = 32_768;

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
    #[arg(long, value_enum, value_name = "WAY", default_value_t = Via::Tracefs)]
    via: Via,

    /// With --via perfetto: keep the newest events only, end at the command's first miss (or its exit status 1), and without one keep nothing
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

    /// With --via tracefs: write marks of the command into the shared buffer, too, for another recorder at the same time (Linux 6.16 or later)
    #[arg(long, conflicts_with = "time")]
    shared_marks: bool,

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

/// Who records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Via {
    /// This program, in a private buffer of tracefs
    Tracefs,
    /// Perfetto's recorder
    Perfetto,
}

/// Records; returns the exit status.
pub(super) fn run(args: &RecordArgs) -> cli::CommandResult {
    let wrong = match &args.draw.html {
        Some(html) if *html == args.output() => {
            "the recording and the page cannot be one file; give another to --html"
        }
        _ if args.via == Via::Tracefs && (args.until_miss || !args.app.is_empty()) => {
            "--until-miss and --app are of --via perfetto"
        }
        _ if args.via == Via::Perfetto && args.shared_marks => "--shared-marks is of --via tracefs",
        None if args.ask.is_particular() => {
            "which calls to tell of matters with --html only; give it a file to write"
        }
        _ => "",
    };
    if !wrong.is_empty() {
        return Err(Failure::new(exit::USAGE, wrong));
    }
    let mut progress = ProgressReporter { line: StatusLine::default() };
    let (ended, drawn) = match args.via {
        Via::Tracefs => {
            let outcome = args.plan().and_then(|plan| record(&plan, &mut progress));
            progress.line.show("");
            let summary = outcome?;
            note(summary.told(&args.output(), args.circular));
            (summary.ended, status_of(args.drawn()))
        }
        Via::Perfetto => {
            let outcome = args.by_perfetto(&mut progress);
            progress.line.show("");
            let summary = outcome?;
            (summary.ended, status_of(args.told_by_perfetto(summary)))
        }
    };
    // The command's status takes precedence over that of its picture.
    Ok(match status(ended) {
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
        let output = self.output();
        self.draw.check(&output)?;
        let analysis = self.ask.analyse(&output, None).or_exit(exit::INTERNAL)?;
        for slow in &analysis.slow {
            note(format_args!("- {}{}\n", if slow.missed { "MISS " } else { "" }, slow.verdict));
        }
        self.draw.draw(&output, &analysis)?;
        Ok(exit::FINE)
    }

    fn output(&self) -> PathBuf {
        let usual = match self.via {
            Via::Tracefs => "binderperf.trace",
            Via::Perfetto => "binderperf.pftrace",
        };
        self.output.clone().unwrap_or_else(|| PathBuf::from(usual))
    }

    /// The categories of the kernel, and those of Android's frameworks.
    fn known(&self) -> Result<(Vec<&'static Category>, Vec<&str>), TraceError> {
        match self.categories.is_empty() {
            true => known(&categories::USUAL),
            false => known(&self.categories),
        }
    }

    fn work(&self) -> Result<Work, TraceError> {
        Ok(match (self.time, self.command.as_slice()) {
            (Some(seconds), _) => Work::Time(Duration::from_secs(seconds)),
            (None, [name, words @ ..]) => Work::Command {
                program: program(name)?,
                name: name.clone(),
                words: words.to_vec(),
                silent: false,
            },
            (None, []) => return Err(TraceError::Usage("record what? give -t SEC or a command".to_owned())),
        })
    }

    fn plan(&self) -> Result<Plan, TraceError> {
        let (categories, userspace) = self.known()?;
        of_userspace(&userspace).iter().for_each(|remark| cli::tell(remark));
        Ok(Plan {
            categories,
            buffer_kb: self.buffer_kb,
            circular: self.circular,
            output: self.output(),
            work: self.work()?,
            shared_marks: self.shared_marks,
        })
    }

    fn by_perfetto(&self, progress: &mut ProgressReporter) -> Result<PerfettoSummary, TraceError> {
        let (categories, userspace) = self.known()?;
        let applications: Vec<&str> = self.app.iter().map(String::as_str).collect();
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        check_size(self.buffer_kb, cpus)?;
        let newest = self.circular || self.until_miss;
        let ring_kb = self.buffer_kb.saturating_mul(cpus as u64);
        let config = PerfettoConfig {
            categories: &categories,
            userspace: &userspace,
            applications: &applications,
            buffer_kb: if newest { ring_kb } else { STREAM_KB.max(ring_kb) },
            seconds: None,
            until_miss: self.until_miss,
            stream: !newest,
            kernel_buffer_kb: (!newest).then_some(self.buffer_kb),
        };
        let (output, work) = (self.output(), self.work()?);
        perfetto::record(&PerfettoPlan { config, output: &output, work: &work }, progress)
    }

    /// Tells what was recorded, and draws it.
    fn told_by_perfetto(&self, summary: PerfettoSummary) -> cli::CommandResult {
        let output = self.output();
        if summary.missed {
            note("recording was stopped before the end, as by a miss\n");
        }
        let Some(bytes) = summary.bytes else {
            note("nothing was missed: no recording is kept\n");
            return Ok(exit::FINE);
        };
        let opened = File::open(&output).map_err(|error| sys::errno::describe(&error));
        let opened = opened.and_then(|file| trace::open(file).map_err(|error| error.to_string()));
        let mut reader =
            opened.map_err(|why| format!("{}: {why}", output.display())).or_exit(exit::INTERNAL)?;
        reader.by_ref().for_each(drop);
        let report = reader.report();
        note(format_args!("{}: {bytes} bytes by perfetto, {report}\n", output.display()));
        if report.events == 0 {
            let why = "the recording has no event of the kernel: does traced_probes run, as a user who may use tracefs?";
            return Err(Failure::new(exit::UNABLE, why));
        }
        self.drawn()
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
