//! The commands, one file for each, and what they share: exit statuses and messages.

use std::fmt::Display;
use std::io;
use std::path::Path;

use bench::run::RunError;
use live::here::NoState;
use store::StoreError;

use terminal::note;

mod ab;
pub(crate) mod applet;
mod atrace;
mod background;
mod bisect;
mod broker;
mod chaos;
mod choice;
mod compare;
mod completions;
mod conformance;
mod constraints;
mod convert;
mod doctor;
mod driver;
mod duration;
mod exact;
mod experiment;
mod explain;
mod fleet;
mod fuzz;
mod gate;
mod grouping;
mod help;
mod help_text;
mod history;
mod inheritance;
mod inversion;
mod kernels;
mod kpi;
mod latency;
pub(crate) mod leftovers;
mod man;
mod manager_place;
mod matrix;
mod measure;
pub(crate) mod on;
mod on_words;
mod output;
mod overload;
mod place;
mod program;
mod progress;
mod records;
mod report;
mod run;
mod scenario;
mod servicemanager;
mod services;
mod shim;
mod show;
mod state;
mod terminal;
mod throughput;
mod top;
mod trace;
pub(crate) mod tree;
mod vm;
mod watch;
mod workload;

/// The largest time limit in seconds: longer than any run, and sums never overflow.
pub(crate) const A_YEAR_S: u64 = 365 * 24 * 3600;

/// Exit codes, the same for every command.
pub(crate) mod exit {
    /// Success.
    pub(crate) const FINE: u8 = 0;
    /// It ran, and its verdict is a failure.
    pub(crate) const FAILED: u8 = 1;
    /// Wrong usage or invalid input.
    pub(crate) const USAGE: u8 = 2;
    /// The environment cannot run it.
    pub(crate) const UNABLE: u8 = 3;
    /// An internal failure, such as an output that could not be written.
    pub(crate) const INTERNAL: u8 = 4;
}

/// How a command ends: with an exit status, or because of an error.
type CommandResult = Result<u8, Failure>;

/// An error that ends a command.
pub(crate) struct Failure {
    status: u8,
    /// None if it was already printed.
    message: Option<String>,
}

impl Failure {
    fn new(status: u8, message: impl Display) -> Self {
        Self { status, message: Some(message.to_string()) }
    }

    /// The error of a file or folder: `cannot DO PATH: ERROR`.
    fn of_file(status: u8, act: &str, path: &Path, error: &io::Error) -> Self {
        Self::new(status, format_args!("cannot {act} {}: {}", path.display(), sys::errno::describe(error)))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message.as_deref().unwrap_or_default())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let status = match error {
            StoreError::Unwritten(_) | StoreError::Intake(_) => exit::INTERNAL,
            _ => exit::USAGE,
        };
        Self::new(status, error)
    }
}

impl From<NoState> for Failure {
    fn from(why: NoState) -> Self {
        Self::new(exit::UNABLE, in_lines(&why))
    }
}

/// Why there is no driver to look at, a line of this program for each.
fn in_lines(NoState(troubles): &NoState) -> String {
    let all: Vec<String> = troubles.iter().map(ToString::to_string).collect();
    all.join("\nbinderperf: ")
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let status = match error {
            RunError::NoDriver(_) | RunError::Unready(_) => exit::UNABLE,
            RunError::NothingToRun { .. } => exit::USAGE,
            RunError::Os(_) => exit::INTERNAL,
        };
        Self::new(status, error)
    }
}

/// Makes any error one that ends the command with an exit status.
trait OrExit<T> {
    fn or_exit(self, status: u8) -> Result<T, Failure>;
}

impl<T, E: Display> OrExit<T> for Result<T, E> {
    fn or_exit(self, status: u8) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(status, error))
    }
}

/// Reports the error that ended a command, if one did; returns the exit status.
pub(crate) fn status_of(result: CommandResult) -> u8 {
    result.unwrap_or_else(|Failure { status, message }| {
        message.into_iter().for_each(complain);
        status
    })
}

/// Parses the arguments of an Android tool called by this name. An answer such as `--help` ends the command, too.
fn parse<P: clap::Parser>(name: &str, words: Vec<String>) -> Result<P, Failure> {
    let command = help_text::add_to(P::command().bin_name(name.to_owned()), &format!("applet {name}"));
    let matches = command.try_get_matches_from(std::iter::once(name.to_owned()).chain(words));
    matches.and_then(|matches| P::from_arg_matches(&matches)).map_err(|error| {
        if error.use_stderr() {
            note(error);
            return Failure { status: exit::USAGE, message: None };
        }
        Failure { status: status_of(say(&error.to_string())), message: None }
    })
}

/// The words that this program was started with.
fn command_line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Reports an error on stderr.
fn complain(what: impl Display) {
    note(format_args!("binderperf: {what}\n"));
}

/// Reports a remark of a library on stderr.
fn tell(remark: &str) {
    note(format_args!("{remark}\n"));
}

/// Writes an answer to stdout. A reader that closed the pipe, as `head` does, is no error.
fn say(text: &str) -> CommandResult {
    output::Sink::stdout().deliver(text)?;
    Ok(exit::FINE)
}
