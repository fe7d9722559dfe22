//! Errors of building a kernel.
//! Not here: booting one (`crate::error`).

use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::error::{Below, Quoted, VmError};

use super::dropped::Dropped;

/// Everything that can keep a kernel from being built. `Display` says what was tried, what failed and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Fetching, unpacking or keeping failed.
    #[error(transparent)]
    Vm(#[from] VmError),
    /// The source is none, or cannot be built as it is.
    #[error("no kernel can be built from '{given}': {why}")]
    Source {
        /// The source as given.
        given: String,
        /// The reason.
        why: String,
    },
    /// Programs that build a kernel are missing.
    #[error("{who} cannot build this kernel; missing:{}\n{remedy}", Below(programs))]
    Missing {
        /// The tools that build with them.
        who: String,
        /// Each, with the package that has it.
        programs: Vec<String>,
        /// The remedy.
        remedy: String,
    },
    /// Kconfig did not take options.
    #[error("this source does not take these options:{}", Below(.0))]
    Options(Vec<Dropped>),
    /// A patch does not apply.
    #[error("{} does not apply: {said}", file.display())]
    Patch {
        /// The patch's file.
        file: PathBuf,
        /// The first complaint.
        said: String,
    },
    /// The file system has too little room.
    #[error(
        "too little room in {}: {} free, the build may take {}; `binderperf vm kernels --clean` removes sources and objects of \
         earlier builds",
        folder.display(), Gb(*free), Gb(*needed)
    )]
    Space {
        /// A folder on it.
        folder: PathBuf,
        /// Bytes that the build may take.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The build filled the file system.
    #[error("the build ended because no space is left on the device (ENOSPC); its log: {}", log.display())]
    Full {
        /// The build's log.
        log: PathBuf,
    },
    /// A step of the build failed.
    #[error("{step} failed; its log: {}; the first error:{}", log.display(), Quoted(first))]
    Failed {
        /// The step.
        step: String,
        /// The build's log.
        log: PathBuf,
        /// The log's first error.
        first: String,
    },
    /// A signal of this name asked this process to stop.
    #[error("stopped by {0}; the next build goes on from here")]
    Stopped(&'static str),
}

impl BuildError {
    /// Wraps an I/O error of the build's own files.
    pub(super) fn host(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let wrap = VmError::host(doing);
        move |source| Self::Vm(wrap(source))
    }

    /// Exit status: 1 the source does not build, or a signal stopped the build; 2 bad input; 3 something is missing here.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failed { .. } | Self::Stopped(_) => 1,
            Self::Source { .. } | Self::Options(_) | Self::Patch { .. } => 2,
            Self::Missing { .. } | Self::Space { .. } | Self::Full { .. } => 3,
            Self::Vm(error) => error.exit_code(),
        }
    }

    /// Whether another commit of the same source might do better.
    #[must_use]
    pub fn is_of_the_source(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::Options(_) | Self::Patch { .. })
    }
}

/// Bytes in GB.
struct Gb(u64);

impl fmt::Display for Gb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} GB", self.0 as f64 / 1e9)
    }
}
