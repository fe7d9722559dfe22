//! The command `top`: what Binder does right now.
//! Not here: figures and rows (crate `live`), the screen and tables for pipes (crate `screen`).

use std::io::IsTerminal;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use backend::state::StateFile;
use clap::{Args, ValueEnum};
use live::here::look;
use live::session::{Session, Snapshot};
use live::stream::Settings;
use live::top::By;
use live::top::column::Column;
use screen::view::{View, opened_by};
use screen::{PAUSE, text};

use super::choice::{self, Table};
use super::output::Sink;
use super::state::Whose;
use super::{CommandResult, Failure, OrExit, exit, note, terminal};

/// Show what Binder does right now: calls, latencies and backlogs of processes, threads, methods and pairs
///
/// On a terminal: 1 to 4 or Tab choose processes, threads, methods or pairs; s sorts by the next column, / filters, Enter shows one
/// process, p pauses, w writes the newest events into a recording, q ends. Elsewhere it prints a table for each interval.
#[derive(Clone, Debug, Args)]
pub(crate) struct TopArgs {
    /// Time of one interval in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    interval: f64,

    /// End after so many intervals
    #[arg(short = 'n', long, value_name = "COUNT")]
    count: Option<NonZeroU64>,

    /// Print tables, on a terminal, too
    #[arg(long, help_heading = "Output")]
    batch: bool,

    /// Output without a terminal: tables, or a line of JSON for each interval
    #[arg(long, value_enum, default_value_t = Form::Text, help_heading = "Output")]
    format: Form,

    /// Whose figures are shown first
    #[arg(long, value_parser = choice::table(&SUBJECTS), default_value = "processes", help_heading = "What is shown")]
    by: By,

    /// Sort by this column: name, pid, calls/s, made/s, p50, p99, bytes/s, failed, oneway, buffers, busy, oldest, deaths
    #[arg(long, value_name = "COLUMN", default_value = "calls/s", value_parser = str::parse::<Column>, help_heading = "What is shown")]
    sort: Column,

    /// Show only rows with this text in their name or number
    #[arg(long, value_name = "TEXT", default_value = "", help_heading = "What is shown")]
    filter: String,

    /// Most rows of a table
    #[arg(long, value_name = "COUNT", default_value_t = 20, help_heading = "Output")]
    rows: usize,

    /// Share of one CPU that looking may cost, in percent; above it intervals get longer, then events are left out
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    max_overhead: f64,

    /// Write the newest events, 16 MB, into this recording at the end: binder's alone, so it has no causes
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    save: Option<PathBuf>,

    #[command(flatten, next_help_heading = "Driver whose state is shown")]
    whose: Whose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Tables
    Text,
    /// A line for each interval
    Json,
}

/// Whose figures are shown.
const SUBJECTS: Table<By, 4> = [
    (By::Processes, "processes", "Processes"),
    (By::Threads, "threads", "Threads"),
    (By::Methods, "methods", "Methods of nodes"),
    (By::Pairs, "pairs", "Caller and called process"),
];

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "seconds are 0.1 to 3600".to_owned())
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: Option<f64> = text.parse().ok().filter(|percent| (0.01..=100.0).contains(percent));
    percent.ok_or_else(|| "a share of one CPU is 0.01 to 100 percent".to_owned())
}

/// Bytes of the newest events that can be written.
const KEPT: usize = 16 << 20;

/// Shows.
pub(crate) fn run(args: &TopArgs) -> CommandResult {
    sys::stop_signal::catch().or_exit(exit::INTERNAL)?;
    sys::stop_signal::catch_hangup().or_exit(exit::INTERNAL)?;
    // Words that no driver can have end it now, and not as a note.
    let source = args.whose.source()?;
    let state = source.read(StateFile::State);
    let settings = Settings { keep_bytes: KEPT, ..Settings::of_calls() };
    let interval = Duration::from_secs_f64(args.interval);
    let mut session = Session::begin(&settings, interval, args.max_overhead / 100.0, look(&source));
    if let (Some(untraced), Err(troubles)) = (session.untraced(), &state) {
        let mut all: Vec<String> = troubles.iter().map(ToString::to_string).collect();
        all.push(untraced.to_owned());
        return Err(Failure::new(exit::UNABLE, all.join("\nbinderperf: ")));
    }
    let view = View::new(args.by, args.sort, &args.filter);
    let has_keys = terminal::is_terminal() && std::io::stdin().is_terminal();
    let shown = match has_keys && !args.batch && args.format == Form::Text {
        true => screen::run(&mut session, view, args.count).or_exit(exit::UNABLE).map(|()| exit::FINE),
        false => batch(args, &mut session, &view),
    };
    let saved = args.save.as_ref().map(|path| session.save(path).map(|_| path));
    session.end().iter().for_each(|left| note(format_args!("note: {left}\n")));
    let status = shown?;
    if let Some(saved) = saved {
        let path = saved.or_exit(exit::INTERNAL)?;
        note(format_args!("{}\n", opened_by(path)));
    }
    Ok(status)
}

fn stopped() -> bool {
    sys::stop_signal::received().is_some()
}

/// Prints each interval.
fn batch(args: &TopArgs, session: &mut Session<'_>, view: &View) -> CommandResult {
    let mut left = args.count.map(NonZeroU64::get);
    let mut out = Sink::stdout();
    let failed = |error| Failure::new(exit::UNABLE, error);
    while left != Some(0) {
        while !stopped() && !session.left().is_zero() {
            std::thread::sleep(session.left().min(PAUSE));
            session.poll().map_err(failed)?;
        }
        let snapshot = session.snapshot(stopped() || left == Some(1)).map_err(failed)?;
        let text = match args.format {
            Form::Text => text::of(&snapshot, view, args.rows),
            Form::Json => json(&snapshot)?,
        };
        out.put(&text);
        if let Some(trouble) = out.trouble() {
            return Err(Failure::new(exit::INTERNAL, trouble));
        }
        if stopped() || out.is_closed() {
            break;
        }
        left = left.map(|left| left - 1);
    }
    Ok(exit::FINE)
}

fn json(snapshot: &Snapshot) -> Result<String, Failure> {
    let line = serde_json::to_string(snapshot).or_exit(exit::INTERNAL)?;
    Ok(line + "\n")
}
