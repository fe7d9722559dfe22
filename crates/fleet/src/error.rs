//! Why the files of a harness could not be written.

use std::fmt;
use std::io;

use console::{Failure, exit};
use store::StoreError;
use vm::VmError;

/// Why the files of a harness could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum FleetError {
    /// Options that do not go together, or a program for no device; the text says why.
    Unusable(String),
    /// A file that could not be used.
    File(StoreError),
    /// There is no guest for the job.
    Guest(VmError),
    /// A page of the harness could not be made of its template.
    Template(String),
    /// The program tar, which packs the test, cannot be run.
    NoTar(io::Error),
    /// It ran and failed; the text has its message.
    NotPacked(String),
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(why) | Self::Template(why) | Self::NotPacked(why) => f.write_str(why),
            Self::File(error) => error.fmt(f),
            Self::Guest(error) => error.fmt(f),
            Self::NoTar(error) => {
                write!(f, "the program tar, which packs the test: {}", sys::errno::describe(error))
            }
        }
    }
}

impl std::error::Error for FleetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(error) => Some(error),
            Self::Guest(error) => Some(error),
            Self::NoTar(error) => Some(error),
            Self::Unusable(_) | Self::Template(_) | Self::NotPacked(_) => None,
        }
    }
}

impl From<StoreError> for FleetError {
    fn from(error: StoreError) -> Self {
        Self::File(error)
    }
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        let status = match error {
            FleetError::Unusable(_) => exit::USAGE,
            FleetError::File(error) => return error.into(),
            FleetError::Guest(error) => return error.into(),
            FleetError::NoTar(_) => exit::UNABLE,
            _ => exit::INTERNAL,
        };
        Self::new(status, error)
    }
}
