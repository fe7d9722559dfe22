//! Exit statuses, and how a command ends: with one of them, or by an error that means one.
//! Not here: errors themselves (each library's own).

use std::fmt::{self, Display};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use bench::ab::RunFailure;
use bench::inheritance::InheritanceError;
use bench::run::RunError;
use bench::tracing::CheckError;
use ftrace::tracefs::TraceError;
use live::here::NoState;
use live::watch::WatchError;
use store::StoreError;
use vm::VmError;
use vm::build::BuildError;

use crate::terminal::note;

/// Exit codes, the same for every command.
pub mod exit {
    /// Success.
    pub const FINE: u8 = 0;
    /// It ran, and its verdict is a failure.
    pub const FAILED: u8 = 1;
    /// Wrong usage or invalid input.
    pub const USAGE: u8 = 2;
    /// The environment cannot run it.
    pub const UNABLE: u8 = 3;
    /// An internal failure, such as an output that could not be written.
    pub const INTERNAL: u8 = 4;
}

/// How a command ends: with an exit status, or because of an error.
pub type CommandResult = Result<u8, Failure>;

/// An error that ends a command.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub status: u8,
    /// None if it was already printed.
    pub message: Option<String>,
}

impl Failure {
    /// The error with this status and message.
    pub fn new(status: u8, message: impl Display) -> Self {
        Self { status, message: Some(message.to_string()) }
    }

    /// The error of a file or folder: `cannot DO PATH: ERROR`.
    pub fn of_file(status: u8, act: &str, path: &Path, error: &io::Error) -> Self {
        Self::new(status, format_args!("cannot {act} {}: {}", path.display(), sys::errno::describe(error)))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
pub fn in_lines(NoState(troubles): &NoState) -> String {
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

impl From<RunFailure> for Failure {
    fn from(error: RunFailure) -> Self {
        let status = match error {
            RunFailure::Usage(_) => exit::USAGE,
            RunFailure::Here(_) => exit::INTERNAL,
            _ => exit::UNABLE,
        };
        Self::new(status, error)
    }
}

impl From<InheritanceError> for Failure {
    fn from(error: InheritanceError) -> Self {
        let status = match error {
            InheritanceError::NotEmbedded => exit::USAGE,
            _ => exit::UNABLE,
        };
        Self::new(status, error)
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        let status = match error {
            TraceError::Usage(_) => exit::USAGE,
            TraceError::Output { .. } => exit::INTERNAL,
            TraceError::Missing { .. }
            | TraceError::Denied { .. }
            | TraceError::InUse { .. }
            | TraceError::Recorder(_)
            | TraceError::Refused { .. } => exit::UNABLE,
        };
        Self::new(status, error)
    }
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Tracing(error) => error.into(),
            CheckError::Unready(_) => Self::new(exit::UNABLE, error),
        }
    }
}

impl From<WatchError> for Failure {
    fn from(error: WatchError) -> Self {
        let status = match error {
            WatchError::NoTarget(_) => exit::USAGE,
            WatchError::Unable(_) => exit::UNABLE,
            _ => exit::INTERNAL,
        };
        Self::new(status, error)
    }
}

impl From<VmError> for Failure {
    fn from(error: VmError) -> Self {
        Self::new(error.exit_code(), error)
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Self::new(error.exit_code(), error)
    }
}

/// Makes any error one that ends the command with an exit status.
pub trait OrExit<T> {
    /// The value, or the error with this status.
    ///
    /// # Errors
    /// There is none.
    fn or_exit(self, status: u8) -> Result<T, Failure>;
}

impl<T, E: Display> OrExit<T> for Result<T, E> {
    fn or_exit(self, status: u8) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(status, error))
    }
}

/// The exit status that a shell would show of a program that ended.
pub fn of_process(ended: ExitStatus) -> u8 {
    let code = ended.code().or(ended.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::INTERNAL)
}

/// Reports the error that ended a command, if one did; returns the exit status.
pub fn status_of(result: CommandResult) -> u8 {
    result.unwrap_or_else(|Failure { status, message }| {
        message.into_iter().for_each(complain);
        status
    })
}

/// Reports an error on stderr.
pub fn complain(what: impl Display) {
    note(format_args!("binderperf: {what}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_whose_it_is_by_its_status() {
        let status = |failure: Failure| failure.status;
        assert_eq!(status(TraceError::Usage("x".to_owned()).into()), exit::USAGE);
        assert_eq!(status(TraceError::Recorder("x".to_owned()).into()), exit::UNABLE);
        assert_eq!(Err::<(), _>("x").or_exit(exit::INTERNAL).map_err(status), Err(exit::INTERNAL));
        assert_eq!([ExitStatus::from_raw(3 << 8), ExitStatus::from_raw(9)].map(of_process), [3, 128 + 9]);
        let gone = io::Error::from(io::ErrorKind::NotFound);
        let failure = Failure::of_file(exit::USAGE, "read", Path::new("/x"), &gone);
        assert!(failure.to_string().starts_with("cannot read /x: "), "{failure}");
    }
}
