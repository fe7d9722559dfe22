//! Errors of opening a context.

use std::fmt;
use std::io;
use std::path::PathBuf;

use sys::private_folder::shown;

use crate::absence::Absence;

/// Errors of opening a device node without a driver.
pub const NO_DRIVER: [&str; 3] = ["ENODEV", "ENXIO", "ESRCH"];

/// Whether this error of opening a device node says that no driver stands behind it.
#[must_use]
pub fn is_driverless(error: &io::Error) -> bool {
    error.raw_os_error().and_then(sys::errno::name).is_some_and(|name| NO_DRIVER.contains(&name))
}

/// Why a context could not be opened. Each `Display` says what was tried, what came back, what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// No device of this name exists.
    Absent {
        /// The places that were looked at.
        looked_for: Vec<PathBuf>,
        /// Why there is none, and the way to one.
        why: Absence,
    },
    /// The device exists but may not be opened.
    Denied {
        /// The device.
        path: PathBuf,
        /// `EACCES` or `EPERM`.
        source: io::Error,
    },
    /// The device's node belongs to no driver.
    Driverless {
        /// The device.
        path: PathBuf,
        /// One of [`NO_DRIVER`].
        source: io::Error,
        /// Why there is no driver, and the way to one.
        why: Absence,
    },
    /// The device speaks another protocol.
    Version {
        /// The device.
        path: PathBuf,
        /// Its answer.
        found: i32,
    },
    /// The embedded driver cannot be used.
    Embedded {
        /// Its directory.
        directory: PathBuf,
        /// The operation, its error, the remedy.
        why: String,
    },
    /// A directory of its own for the embedded driver cannot be made.
    NoDirectory {
        /// The place, the error, the remedy.
        source: io::Error,
    },
    /// A system call failed.
    Os {
        /// The device.
        path: PathBuf,
        /// The operation that failed.
        call: &'static str,
        /// The error.
        source: io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent { looked_for, why } => {
                let places: Vec<_> = looked_for.iter().map(|path| path.display().to_string()).collect();
                write!(f, "no binder device: looked for {}; {why}", places.join(", "))
            }
            Self::Denied { path, source } => write!(
                f,
                "may not open {}: {}; run as root, or give this user read and write permission on it",
                path.display(),
                sys::errno::describe(source)
            ),
            Self::Driverless { path, source, why } => write!(
                f,
                "{} is a device node without a driver: open gave {}; {why}",
                shown(path),
                sys::errno::describe(source)
            ),
            Self::Version { path, found } => write!(
                f,
                "{} speaks binder protocol {found}, this tool speaks {}; a 32-bit kernel interface (7) is not \
                 supported",
                path.display(),
                abi::PROTOCOL_VERSION
            ),
            Self::Embedded { directory, why } => {
                write!(f, "the embedded driver in {} cannot be used: {why}", shown(directory))
            }
            Self::NoDirectory { source } => write!(f, "the embedded driver has no place: {source}"),
            Self::Os { path, call, source } => {
                write!(f, "{call} on {} failed: {}", shown(path), sys::errno::describe(source))
            }
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Denied { source, .. }
            | Self::Driverless { source, .. }
            | Self::NoDirectory { source }
            | Self::Os { source, .. } => Some(source),
            Self::Absent { .. } | Self::Version { .. } | Self::Embedded { .. } => None,
        }
    }
}
