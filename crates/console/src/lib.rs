//! How a command speaks and ends.
//!
//! - [`terminal`]: the standard streams; [`output`]: these and files as places for a result; [`progress`]: a line that changes.
//! - [`building`]: builds of kernels, which take long.
//! - [`failure`]: exit statuses, and which of them an error means.
//!
//! Not here: the words of the command line, and what a command does.
#![forbid(unsafe_code)]
// Those macros panic if their stream is full or closed; `say` and `note` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod building;
pub mod failure;
pub mod output;
pub mod progress;
pub mod terminal;

pub use failure::{CommandResult, Failure, OrExit, complain, exit, of_process, status_of};
pub use terminal::note;

/// The words that this program was started with.
pub fn command_line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Reports a remark of a library on stderr.
pub fn tell(remark: &str) {
    note(format_args!("{remark}\n"));
}

/// Writes an answer to stdout. A reader that closed the pipe, as `head` does, is no error.
///
/// # Errors
/// It cannot be written.
pub fn say(text: &str) -> CommandResult {
    output::Sink::stdout().deliver(text)?;
    Ok(exit::FINE)
}
