//! Room: the broker of a context directory, a process that is to its clients what a kernel's driver
//! is. What it decides is [`core`]'s.
//! Not here: its clients' end (`super::line`), starting it on demand (`super::start`).

pub mod core;

use std::fmt;
use std::path::{Path, PathBuf};

/// How long a broker stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Until its last client is gone.
    LastClient,
    /// Until it is told to stop (SIGINT, SIGTERM).
    UntilStopped,
}

/// Why a broker could not serve.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// Another one serves that directory.
    Running {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory may not be used, as text for people.
    Directory(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running { directory } => {
                write!(
                    f,
                    "{} has a broker already; stop that one, or name another directory",
                    directory.display()
                )
            }
            Self::Directory(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for RunError {}

/// Serves a directory; `ready` is called once it listens.
///
/// # Errors
/// See [`RunError`].
pub fn run(directory: &Path, _lifetime: Lifetime, _ready: impl FnOnce()) -> Result<(), RunError> {
    super::directory::ensure(directory).map_err(|error| RunError::Directory(error.to_string()))?;
    Err(RunError::Directory("this build has no broker yet".to_owned()))
}
