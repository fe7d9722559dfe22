//! Commands in guests.
//! Not here: booting (crate `vm`).

pub mod fuzz;
mod profile;
pub mod run;
pub mod suite;

use std::io::Write;
use std::path::{Path, PathBuf};

use console::progress::StatusLine;
use console::{CommandResult, Failure, complain, exit, tell, terminal};
use intake::{Name, Place};
use store::input;
use store::lock::FolderLock;
use vm::{Options, Sinks};

/// Longest script that is read, in bytes.
const LONGEST_SCRIPT: u64 = 16 << 20;

/// A command, or several, for one guest.
pub struct Job {
    /// The guest and the commands.
    pub options: Options,
    /// Folder for the files that the commands leave.
    pub out: Option<PathBuf>,
    /// File for where the instructions of a call go.
    pub profile: Option<PathBuf>,
    /// The suite that its only command runs, if it does.
    pub suite: Option<suite::Plan>,
}

/// Runs a job; returns the exit status of its commands.
///
/// # Errors
/// The guest did not boot or went down, or an output cannot be written.
pub fn run(job: Job) -> CommandResult {
    let Job { options, out, profile, suite } = job;
    let profile = profile.as_deref().map(profile::Output::open).transpose()?;
    let _lock = FolderLock::of(out.as_deref(), tell)?;
    let mut status_line = StatusLine::default();
    let mut place = out.map(|root| move |name: &Name| Ok(Place::below(&root, name)));
    let mut boot = |options: &Options, stdout: &mut dyn Write| {
        vm::run(
            options,
            &mut Sinks {
                stdout,
                stderr: &mut terminal::passed_on_error(),
                place: place.as_mut().map(|place| place as _),
                progress: &mut |text| status_line.show(text),
            },
        )
    };
    let mut stdout = terminal::passed_on();
    let outcome = match suite {
        Some(plan) => match suite::run(&options, plan, &mut stdout, &mut boot) {
            Ok(suite::End::InGuest(outcome)) => Ok(outcome),
            Ok(suite::End::Here(status)) => return Ok(status),
            Err(error) => Err(error),
        },
        None => boot(&options, &mut stdout),
    };
    drop(stdout);
    status_line.show("");
    match outcome {
        Ok(outcome) => {
            let left = refused(&outcome.refused);
            let told = profile.map_or(Ok(()), |output| output.deliver(&outcome.profiles));
            // The command's own failure says more.
            if outcome.status.exit_code() == exit::FINE {
                told.map(|()| left)
            } else {
                Ok(outcome.status.exit_code())
            }
        }
        // A reader that closed the pipe, as `head` does, is no error.
        Err(error) if error.is_reader_gone() => Ok(exit::FINE),
        Err(error) => Err(error.into()),
    }
}

/// Tells which of a guest's files were not taken; returns the exit status for that.
pub fn refused(names: &[String]) -> u8 {
    if names.is_empty() {
        return exit::FINE;
    }
    complain(format_args!("files with names that are not taken here: {}", names.join(", ")));
    exit::UNABLE
}

/// Reads a script and checks each command's words, before anything is booted.
///
/// # Errors
/// It cannot be read, or a command is not understood.
pub fn script(
    file: &Path,
    understood: fn(&[String]) -> Result<(), String>,
) -> Result<Vec<Vec<String>>, Failure> {
    let path = if file == Path::new("-") { Path::new("/dev/stdin") } else { file };
    let text = input::text(path, LONGEST_SCRIPT, tell)
        .map_err(|error| Failure::of_file(exit::USAGE, "read", file, &error))?;
    let bad = |why: String| Failure::new(exit::USAGE, format!("the script {}: {why}", file.display()));
    let commands = vm::script::parse(&text).map_err(bad)?;
    for words in &commands {
        understood(words).map_err(|why| bad(format!("{}: {why}", words.join(" "))))?;
    }
    Ok(commands)
}
