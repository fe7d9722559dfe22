//! The command `explain`: why calls failed or never came back, from files or of this machine.
//! Not here: the answer (crate `explain`), where the driver's files are (`backend::state`).

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use backend::state::{DIRECT_CALLS, StateError, StateFile};
use clap::{Args, ValueEnum};
use driver::{Root, kernel_state};
use explain::{DriverSource, Explainer, Finding, Grade, Report};
use live::reports::Reports;
use store::input;
use store::traces::scratch;

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

    /// Source of the kernel that wrote the log: its folder, its drivers/android/binder.c, or debian:VERSION, which is fetched once; turns the line of a failure into the check
    #[arg(long, value_name = "X", value_hint = clap::ValueHint::AnyPath)]
    source: Option<String>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,

    /// Also write the answer as a page, with a picture of who waits for whom
    #[arg(long, value_name = "PAGE", conflicts_with = "watch", value_hint = clap::ValueHint::FilePath)]
    html: Option<PathBuf>,

    /// Exit with 1 from this grade on
    #[arg(long, value_enum, value_name = "GRADE", default_value_t = FailOn::Bad)]
    fail_on: FailOn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Text
    Text,
    /// JSON; with --watch a line for each finding
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    /// Calls fail or do not come back
    Bad,
    /// Also what is about to go wrong, or went wrong once
    Warning,
    /// Anything
    Note,
    /// Never
    Never,
}

impl FailOn {
    pub(super) fn is_met(self, grade: Grade) -> bool {
        match self {
            Self::Bad => grade >= Grade::Bad,
            Self::Warning => grade >= Grade::Warning,
            Self::Note => true,
            Self::Never => false,
        }
    }
}

/// Largest source that is read, in bytes.
const MOST_SOURCE: u64 = 16 << 20;
/// Time after which a call is old.
const AGING: Duration = Duration::from_millis(1100);
/// Note of a gap in the driver's reports.
pub(super) const LOST_REPORTS: &str =
    "the kernel dropped some of the driver's reports over netlink: there were too many at once";
/// Maximum number of findings that --watch remembers.
const MOST_KNOWN: usize = 100_000;

/// Explains.
pub(crate) fn run(args: &ExplainArgs) -> CommandResult {
    let source = args.source.as_deref().map(opened_source).transpose()?;
    if let Some(seconds) = args.watch {
        return watch(args, Duration::from_secs(seconds.into()), source.as_ref());
    }
    let explainer = if args.live { here_once(&args.whose)? } else { from_files(&args.files)? };
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
    if worst.is_some_and(|worst| args.fail_on.is_met(worst)) { exit::FAILED } else { exit::FINE }
}

fn json(report: &Report) -> Result<String, Failure> {
    report.to_json().map_err(|error| {
        Failure::new(exit::INTERNAL, format_args!("could not write the answer as JSON: {error}"))
    })
}

fn opened_source(given: &str) -> Result<DriverSource, Failure> {
    let path = match given.starts_with("debian:") {
        true => super::kernels::source(given).map_err(|error| Failure::new(error.exit_code(), error))?,
        false => PathBuf::from(given),
    };
    let file = if path.is_dir() { path.join("drivers/android/binder.c") } else { path };
    let text = input::bytes(&file, MOST_SOURCE, tell)
        .map_err(|error| Failure::of_file(exit::USAGE, "read", &file, &error))?;
    Ok(DriverSource::new(file.display().to_string(), &String::from_utf8_lossy(&text)))
}

/// Reads files and folders. Of several, those that say nothing are noted; all of them are an error.
fn from_files(paths: &[PathBuf]) -> Result<Explainer, Failure> {
    let mut explainer = Explainer::new();
    let (mut read, mut refused) = (0, Vec::new());
    for path in paths {
        let name = path.display();
        match one(&mut explainer, path) {
            Ok(()) => read += 1,
            Err(why) => refused.push(format!("{name}: {why}")),
        }
    }
    if read == 0 {
        return Err(Failure::new(exit::USAGE, refused.join("\n")));
    }
    refused.into_iter().for_each(|why| explainer.note(format!("not used: {why}")));
    Ok(explainer)
}

fn one(explainer: &mut Explainer, path: &Path) -> Result<(), String> {
    let name = path.display().to_string();
    if path.is_dir() {
        return of_folder(explainer, path, &name);
    }
    let is_stdin = path.as_os_str() == "-";
    let described = |error: io::Error| sys::errno::describe(&error);
    let name = if is_stdin { "standard input".to_owned() } else { name };
    let file = match is_stdin {
        true => spilled(io::stdin().lock()).map_err(described)?,
        false => match input::seekable(path) {
            Ok(file) => file,
            // A pipe is read once.
            Err(_) => spilled(input::stream(path, tell).map_err(described)?).map_err(described)?,
        },
    };
    explainer.read(&name, file, &mut scratch).map_err(|error| error.to_string())
}

/// Copies what can be read only once.
fn spilled(mut input: impl Read) -> io::Result<File> {
    let mut file = scratch()?;
    io::copy(&mut input, &mut file)?;
    Ok(file)
}

const FILES: [StateFile; 4] =
    [StateFile::State, StateFile::Transactions, StateFile::Stats, StateFile::FailedTransactionLog];

/// Reads the driver's files among copies of a machine's files.
fn of_folder(explainer: &mut Explainer, folder: &Path, name: &str) -> Result<(), String> {
    let root = Root::at(folder);
    let (mut read, mut why) = (0, String::new());
    for which in FILES {
        match kernel_state::read(&root, None, which) {
            Ok(Some(text)) => read += lines(explainer, &format!("{name}/{}", which.file_name()), &text),
            Ok(None) => {}
            Err(error) => why = error.to_string(),
        }
    }
    name_processes(explainer, &root);
    if read == 0 { Err(format!("no file of the driver says anything there; {why}")) } else { Ok(()) }
}

pub(super) fn lines(explainer: &mut Explainer, name: &str, text: &str) -> u64 {
    // Memory can be read.
    explainer.read_lines(name, text.as_bytes()).unwrap_or(0)
}

/// Names processes by their command lines, or as the kernel does.
pub(super) fn name_processes(explainer: &mut Explainer, root: &Root) {
    for pid in root.names("proc") {
        let Ok(number) = pid.parse::<i32>() else { continue };
        let command_line = root.text(format!("proc/{pid}/cmdline")).unwrap_or_default();
        let name = explain::process_name(&command_line);
        match name.is_empty() {
            false => explainer.name_process(number, name),
            true => {
                explainer.name_process(number, &root.text(format!("proc/{pid}/comm")).unwrap_or_default())
            }
        }
    }
}

/// Why a driver that is there lacks a file, whatever another driver answered.
fn not_kept(troubles: &[StateError]) -> Option<&StateError> {
    troubles.iter().find(|trouble| matches!(trouble, StateError::NotKept(_)))
}

/// Looks at this machine once; twice where calls are new, so that those that last can be called old.
fn here_once(whose: &Whose) -> Result<Explainer, Failure> {
    let is_direct = |line: &str| {
        let number = line.strip_prefix("    outgoing transaction ").and_then(|rest| rest.split(':').next());
        number.and_then(|number| number.parse().ok()).is_some_and(|number: u32| number >= DIRECT_CALLS)
    };
    let is_new = |line: &str| is_direct(line) && line.contains(" elapsed 0ms");
    let has_new = whose.read(StateFile::State)?.is_ok_and(|text| text.lines().any(is_new));
    if has_new {
        std::thread::sleep(AGING);
    }
    let mut explainer = here(whose, "")?;
    if has_new {
        explainer.note(
            "calls were new: the embedded driver counts the age of a direct call from the first look at it, 1.1 s ago, so a later look, or \
             --watch, says more"
                .to_owned(),
        );
    }
    Ok(explainer)
}

/// Files of this machine's driver at one moment.
#[derive(Clone, Debug)]
pub(super) struct Here {
    /// Its files, each with its name.
    pub(super) files: Vec<(&'static str, String)>,
    /// The files that the driver does not keep, each with the reason.
    pub(super) notes: Vec<String>,
}

impl Here {
    /// Reads these files.
    pub(super) fn read(whose: &Whose, which: &[StateFile]) -> Result<Self, Failure> {
        let mut here = Self { files: Vec::new(), notes: Vec::new() };
        for which in which {
            match whose.read(*which)? {
                Ok(text) => here.files.push((which.file_name(), text)),
                Err(troubles) => match not_kept(&troubles) {
                    Some(why) => here.notes.push(why.to_string()),
                    None => {
                        let all: Vec<String> = troubles.iter().map(ToString::to_string).collect();
                        return Err(Failure::new(exit::UNABLE, all.join("\nbinderperf: ")));
                    }
                },
            }
        }
        Ok(here)
    }

    /// Adds it to what is explained; `folder` is put before the names.
    pub(super) fn add_to(&self, explainer: &mut Explainer, folder: &str) {
        for (name, text) in &self.files {
            lines(explainer, &format!("{folder}{name}"), text);
        }
        self.notes.iter().for_each(|note| explainer.note(note));
    }
}

/// An explainer of this machine as it is now.
fn here(whose: &Whose, reports: &str) -> Result<Explainer, Failure> {
    let mut explainer = Explainer::new();
    let files = [StateFile::State, StateFile::Stats, StateFile::FailedTransactionLog];
    Here::read(whose, &files)?.add_to(&mut explainer, "");
    match host::klog::Watch::whole().and_then(host::klog::Watch::end) {
        Ok(log) => {
            lines(&mut explainer, "/dev/kmsg", &log_text(&log.complaints));
        }
        Err(why) => explainer.note(why.to_string()),
    }
    if !reports.is_empty() {
        lines(&mut explainer, "netlink", reports);
    }
    name_processes(&mut explainer, &Root::of_this_machine());
    Ok(explainer)
}

/// Messages of the kernel's log, one a line.
pub(super) fn log_text<'m>(messages: impl IntoIterator<Item = &'m host::klog::Message>) -> String {
    messages.into_iter().map(|message| format!("{message}\n")).collect()
}

/// Looks again and again, and prints each finding when it is new.
fn watch(args: &ExplainArgs, pause: Duration, source: Option<&DriverSource>) -> CommandResult {
    sys::stop_signal::catch().or_exit(exit::INTERNAL)?;
    let (mut known, mut worst) = (HashSet::new(), None);
    let mut first = true;
    let mut reports = Reports::join();
    loop {
        let text = match &mut reports {
            Ok(reports) => {
                if reports.news().lost {
                    note(format_args!("note: {LOST_REPORTS}\n"));
                }
                reports.newest(usize::MAX)
            }
            Err(_) => String::new(),
        };
        let report = here(&args.whose, &text)?.explain(source);
        if first {
            reports.as_ref().err().into_iter().for_each(|why| note(format_args!("note: {why}\n")));
            report.notes.iter().for_each(|why| note(format_args!("note: {why}\n")));
        }
        for finding in report.findings {
            if known.len() < MOST_KNOWN && known.insert(finding.key.clone()) {
                worst = worst.max(Some(finding.grade));
                say(&shown(args, &finding)?)?;
            }
        }
        first = false;
        let stopped = || sys::stop_signal::received().is_some();
        let begun = std::time::Instant::now();
        while !stopped() && begun.elapsed() < pause {
            std::thread::sleep(Duration::from_millis(50).min(pause));
        }
        if stopped() {
            return Ok(status(args, worst));
        }
    }
}

fn shown(args: &ExplainArgs, finding: &Finding) -> Result<String, Failure> {
    match args.format {
        Form::Text => Ok(format!("{finding}\n")),
        Form::Json => {
            let line = finding.to_json_line();
            line.map_err(|error| {
                Failure::new(exit::INTERNAL, format_args!("could not write the finding as JSON: {error}"))
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_without_the_file_is_one_though_the_other_is_missing() {
        let nobody = || StateError::NoBroker("/tmp/x".into());
        let log = StateFile::FailedTransactionLog;
        let why = [StateError::NotKept(log), nobody()];
        assert!(not_kept(&why).is_some_and(|why| why.to_string().contains("failed_transaction_log")));
        assert!(not_kept(&[nobody()]).is_none(), "no driver at all");
    }
}
