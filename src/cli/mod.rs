//! Room: the command line's parts, one per subcommand: typed words in, plans out.

use std::fmt::Display;
use std::io::{self, Write};

use lab::run::RunError;

mod ab;
pub(crate) mod applet;
mod atrace;
mod bisect;
mod broker;
mod chaos;
mod choice;
mod compare;
mod completions;
mod conformance;
mod convert;
mod doctor;
mod driver;
mod gate;
mod help;
mod history;
mod inheritance;
mod inversion;
mod latency;
mod lessons;
mod man;
mod output;
mod progress;
mod records;
mod report;
mod run;
mod show;
mod state;
mod throughput;
mod trace;
pub(crate) mod tree;
mod vm;

/// The longest limit in seconds that can be set: later than any run ends, and sums of it never overflow.
pub(crate) const A_YEAR_S: u64 = 365 * 24 * 3600;

/// Exit codes, the same for every command.
pub(crate) mod exit {
    /// All is well.
    pub(crate) const FINE: u8 = 0;
    /// It ran, and its verdict is a failure.
    pub(crate) const FAILED: u8 = 1;
    /// It was called wrongly, or with input that makes no sense.
    pub(crate) const USAGE: u8 = 2;
    /// The environment cannot run it.
    pub(crate) const UNABLE: u8 = 3;
    /// Something of our own went wrong, such as writing the result.
    pub(crate) const INTERNAL: u8 = 4;
}

/// Reads the words of a tool of Android's, called by this name; an exit status if that is all there is to do.
fn parse<P: clap::Parser>(name: &str, words: Vec<String>) -> Result<P, u8> {
    let command = lessons::teach(P::command().bin_name(name.to_owned()), &format!("applet {name}"));
    let matches = command.try_get_matches_from(std::iter::once(name.to_owned()).chain(words));
    matches.and_then(|matches| P::from_arg_matches(&matches)).map_err(|error| {
        if error.use_stderr() {
            note(error);
            return exit::USAGE;
        }
        say(&error.to_string())
    })
}

/// Says why a test could not begin; the exit status for that.
fn cannot_run(error: &RunError) -> u8 {
    complain(error);
    match error {
        RunError::NoDriver(_) | RunError::Unready(_) => exit::UNABLE,
        RunError::NothingToRun { .. } => exit::USAGE,
        RunError::Os(_) => exit::INTERNAL,
    }
}

/// Says what went wrong, on stderr.
fn complain(what: impl Display) {
    note(format_args!("binderperf: {what}\n"));
}

/// Writes to stderr as it is. Nobody could be told that it does not take any.
fn note(text: impl Display) {
    let _ = io::stderr().write_all(text.to_string().as_bytes());
}

/// Writes an answer to stdout; the result is the exit status. A reader that has gone, as `head`
/// does, had enough.
fn say(text: &str) -> u8 {
    let mut stdout = output::Sink::stdout();
    stdout.put(text);
    match stdout.trouble() {
        Some(trouble) => {
            complain(trouble);
            exit::INTERNAL
        }
        None => exit::FINE,
    }
}
