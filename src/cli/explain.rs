//! The command `explain`: why calls failed or never came back, from files or of this machine.
//! Not here: the answer (crate `explain`), where the driver's files are (`backend::state`).

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use explain::{DriverSource, Finding, Grade, Report};
use live::findings::{self, Observer};
use live::here::explainer_once;
use store::evidence::from_files;
use store::input;

use super::choice::{self, Table};
use super::state::Whose;
use super::{CommandResult, Failure, OrExit, exit, note, say, tell};

/// Explain why calls failed or never came back: who holds the buffers, who waits for whom
///
/// FILE is, by its content: a kernel log (dmesg, the journal, logcat's kernel buffer); the driver's state, stats, transactions or
/// failed_transaction_log; an Android bug report, as text or zip; logcat; a trace; or a folder with copies of a machine's files.
/// Several files of one system are put together. Two states or stats of one system show what grew.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Logs, state files, bug reports, traces, folders; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "live", value_hint = clap::ValueHint::AnyPath)]
    files: Vec<PathBuf>,

    /// This machine as it is now: the driver's state, and the kernel's log if it may be read
    #[arg(long, conflicts_with = "files")]
    live: bool,

    /// Look again every so many seconds and print each new finding once, until Ctrl-C
    #[arg(long, value_name = "SECONDS", requires = "live", conflicts_with = "files", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    watch: Option<u32>,

    #[command(flatten, next_help_heading = "With --live")]
    whose: Whose,

    /// Source of the kernel that wrote the log: its folder, its drivers/android/binder.c, or debian:VERSION, which is
    /// fetched once; turns the line of a failure into the check
    #[arg(long, value_name = "X", value_hint = clap::ValueHint::AnyPath)]
    source: Option<String>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,

    /// Also write the answer as a page, with a picture of who waits for whom
    #[arg(long, value_name = "PAGE", conflicts_with = "watch", value_hint = clap::ValueHint::FilePath)]
    html: Option<PathBuf>,

    /// Exit with 1 from this grade on
    #[arg(long, value_parser = choice::table(&GRADES), value_name = "GRADE", default_value = "bad")]
    fail_on: FailOn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Text
    Text,
    /// JSON; with --watch a line for each finding
    Json,
}

/// The lowest grade that is meant; none if none is.
pub(super) type FailOn = Option<Grade>;

/// Grades from which on something is meant.
pub(super) const GRADES: Table<FailOn, 4> = [
    (Some(Grade::Bad), "bad", "Calls fail or do not come back"),
    (Some(Grade::Warning), "warning", "Also what is about to go wrong, or went wrong once"),
    (Some(Grade::Note), "note", "Anything"),
    (None, "never", "Never"),
];

/// Largest source that is read, in bytes.
const MOST_SOURCE: u64 = 16 << 20;

/// Explains.
pub(crate) fn run(args: &ExplainArgs) -> CommandResult {
    let source = args.source.as_deref().map(opened_source).transpose()?;
    if let Some(seconds) = args.watch {
        return watch(args, Duration::from_secs(seconds.into()), source.as_ref());
    }
    let explainer = match args.live {
        true => explainer_once(&args.whose.source()?)?,
        false => from_files(&args.files, tell)?,
    };
    let report = explainer.explain(source.as_ref());
    if let Some(path) = &args.html {
        let page = report.to_html().or_exit(exit::INTERNAL)?;
        sys::draft::write(path, &page)
            .map_err(|error| Failure::of_file(exit::USAGE, "write", path, &error))?;
    }
    say(&match args.format {
        Form::Text => report.to_string(),
        Form::Json => json(&report)?,
    })?;
    Ok(status(args, report.worst()))
}

fn status(args: &ExplainArgs, worst: Option<Grade>) -> u8 {
    let is_met = |worst| args.fail_on.is_some_and(|grade| worst >= grade);
    if worst.is_some_and(is_met) { exit::FAILED } else { exit::FINE }
}

fn json(report: &Report) -> Result<String, Failure> {
    report.to_json().map_err(|error| {
        Failure::new(exit::INTERNAL, format_args!("could not write the answer as JSON: {error}"))
    })
}

fn opened_source(given: &str) -> Result<DriverSource, Failure> {
    let path = match given.starts_with("debian:") {
        true => console::building::source(given)?,
        false => PathBuf::from(given),
    };
    let file = if path.is_dir() { path.join("drivers/android/binder.c") } else { path };
    let text = input::bytes(&file, MOST_SOURCE, tell)
        .map_err(|error| Failure::of_file(exit::USAGE, "read", &file, &error))?;
    Ok(DriverSource::new(file.display().to_string(), &String::from_utf8_lossy(&text)))
}

/// Looks again and again, and prints each finding when it is new.
fn watch(args: &ExplainArgs, pause: Duration, source: Option<&DriverSource>) -> CommandResult {
    sys::stop_signal::catch().or_exit(exit::INTERNAL)?;
    let worst = findings::watch(&args.whose.source()?, pause, source, &mut Reporter(args.format))?;
    Ok(status(args, worst))
}

/// Prints findings.
struct Reporter(Form);

impl Observer for Reporter {
    type Error = Failure;

    fn remark(&mut self, remark: &str) {
        note(format_args!("note: {remark}\n"));
    }

    fn found(&mut self, finding: &Finding) -> Result<(), Failure> {
        let why = |error| {
            Failure::new(exit::INTERNAL, format_args!("could not write the finding as JSON: {error}"))
        };
        say(&match self.0 {
            Form::Text => format!("{finding}\n"),
            Form::Json => finding.to_json_line().map_err(why)?,
        })
        .map(drop)
    }
}
