//! Why a file could not be used, by who must act.

use std::fmt;
use std::io;
use std::path::Path;

use intake::IntakeError;

/// Why a file could not be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// A wrong input, or a place that cannot take results; the text names it and says why.
    Unusable(String),
    /// An input on which an act failed.
    Unread(FileError),
    /// An output on which an act failed.
    Unwritten(FileError),
    /// A file out of another one could not be put into its place.
    Intake(IntakeError),
}

/// An act on a file or folder that failed.
#[derive(Debug)]
pub struct FileError {
    /// As in `cannot read FILE`.
    tried: String,
    error: io::Error,
}

impl StoreError {
    /// An input on which this act failed, as in `read`.
    #[must_use]
    pub fn unread(act: &str, path: &Path, error: io::Error) -> Self {
        Self::Unread(FileError { tried: format!("cannot {act} {}", path.display()), error })
    }

    /// An output on which this act failed, as in `write to`.
    #[must_use]
    pub fn unwritten(act: &str, path: &Path, error: io::Error) -> Self {
        Self::unwritten_as(format!("cannot {act} {}", path.display()), error)
    }

    /// An output on which this failed, in words that end with its name.
    #[must_use]
    pub fn unwritten_as(tried: String, error: io::Error) -> Self {
        Self::Unwritten(FileError { tried, error })
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(why) => f.write_str(why),
            Self::Unread(failed) | Self::Unwritten(failed) => failed.fmt(f),
            Self::Intake(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.tried, sys::errno::describe(&self.error))
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unusable(_) => None,
            Self::Unread(failed) | Self::Unwritten(failed) => Some(&failed.error),
            Self::Intake(error) => Some(error),
        }
    }
}
