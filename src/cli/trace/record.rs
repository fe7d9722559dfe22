//! Room: `binderperf trace record`: words into a plan, counts into lines.
//! Not here: recording (`lab::trace::record`).

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lab::trace::categories;
use lab::trace::record::work::{Ended, Work};
use lab::trace::record::{Observer, Plan, Summary, record};
use lab::trace::tracefs::Trouble;

use super::ask::AskArgs;
use super::draw::DrawArgs;
use crate::cli::applet::Applet;
use crate::cli::atrace::{known, tell_of_userspace};
use crate::cli::progress::StatusLine;
use crate::cli::{A_YEAR_S, complain, exit, note};

/// Record while a command runs, in a trace buffer of its own
///
/// COMMAND may be `binderperf ...` or one of Android's tools (see `binderperf applet`), which mean this program, or any
/// other. A latency test with -trace stops the recording at its first miss.
#[derive(Clone, Debug, Args)]
pub(crate) struct RecordArgs {
    /// The file to write
    #[arg(short = 'o', long, value_name = "FILE", default_value = "binderperf.trace")]
    output: PathBuf,

    /// Size of each CPU's buffer in KB
    #[arg(short = 'b', long, value_name = "KB", default_value_t = 4096, allow_negative_numbers = true)]
    buffer_kb: u64,

    /// Keep only the newest events, as many as the buffers hold, and touch nothing until the end
    #[arg(short = 'c', long)]
    circular: bool,

    /// Record for so many seconds
    #[arg(short = 't', long, value_name = "SEC", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S), required_unless_present = "command", conflicts_with = "command")]
    time: Option<u64>,

    /// Categories of events, as `binderperf atrace --list_categories` has them [default: sched freq idle irq workq sync binder_driver memreclaim]
    categories: Vec<String>,

    /// The command to record
    #[arg(last = true)]
    command: Vec<String>,

    #[command(flatten, next_help_heading = "The page")]
    draw: DrawArgs,

    #[command(flatten, next_help_heading = "The page")]
    ask: AskArgs,
}

/// Records; the result is the exit status.
pub(super) fn run(args: &RecordArgs) -> u8 {
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
        complain(wrong);
        return exit::USAGE;
    }
    let mut teller = Teller { line: StatusLine::new() };
    let outcome = args.plan().and_then(|plan| record(&plan, &mut teller));
    teller.line.show("");
    match outcome {
        Ok(summary) => {
            note(told(&summary, args));
            let ended = status(summary.ended);
            // What the command came to goes before what became of its picture.
            match args.drawn() {
                exit::FINE => ended,
                trouble if ended == exit::FINE => trouble,
                _ => ended,
            }
        }
        Err(trouble) => {
            complain(&trouble);
            super::status(&trouble)
        }
    }
}

impl RecordArgs {
    /// Draws what was recorded, if that was asked for; the result is the exit status.
    fn drawn(&self) -> u8 {
        if self.draw.html.is_none() {
            return exit::FINE;
        }
        // Only now is there a file that another spelling of its name could mean.
        if let Err(status) = self.draw.check(&self.output) {
            return status;
        }
        let analysis = match self.ask.analyse(&self.output, None) {
            Ok(analysis) => analysis,
            Err((_, why)) => {
                complain(why);
                return exit::INTERNAL;
            }
        };
        for slow in &analysis.slow {
            note(format_args!("- {}{}\n", if slow.missed { "MISS " } else { "" }, slow.verdict));
        }
        self.draw.draw(&self.output, &analysis)
    }

    fn plan(&self) -> Result<Plan, Trouble> {
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
            (None, []) => return Err(Trouble::Usage("record what? give -t SEC or a command".to_owned())),
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

/// The file that a command's name means: for names that are ours, this program.
fn program(name: &str) -> Result<PathBuf, Trouble> {
    if name != "binderperf" && Applet::named(name).is_none() {
        return Ok(PathBuf::from(name));
    }
    std::env::current_exe()
        .map_err(|error| Trouble::Refused { tried: "finding this program's file".to_owned(), error })
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

/// What there is to say at the end.
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

/// Tells how far it is.
struct Teller {
    line: StatusLine,
}

impl Observer for Teller {
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
        assert!(matches!(parsed("x nosuch -t 1").expect("words").plan(), Err(Trouble::Usage(_))));
    }

    fn program_of(words: &str) -> Option<PathBuf> {
        match parsed(words)?.plan().ok()?.work {
            Work::Command { program, .. } => Some(program),
            Work::Time(_) => None,
        }
    }
}
