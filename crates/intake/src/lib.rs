//! Files that another machine sends (a device, a guest, the log of a job): which names are allowed, and how they are written.
//! Not here: their transport (`remote`, `vm`), the place of each (the command line).
//!
//! Nothing that the other machine says leads out of the folder that the user gave, follows a link there, hides itself, or
//! fills this machine without end.
#![forbid(unsafe_code)]

mod arrivals;
mod name;

pub use arrivals::{Arrivals, IntakeError, Place, Placing};
pub use name::Name;

/// Bounds of what is taken from one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files and folders.
    pub entries: usize,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes of output, of both streams.
    pub output: u64,
}

impl Limits {
    /// Many times what any command leaves: the largest recording has 2 GiB.
    pub const USUAL: Self = Self { entries: 10_000, bytes: 8 << 30, output: 4 << 30 };

    /// An error if a command has printed more bytes than that.
    ///
    /// # Errors
    /// [`IntakeError::Output`].
    pub fn check_output(&self, printed: u64) -> Result<(), IntakeError> {
        if printed > self.output { Err(IntakeError::Output(self.output)) } else { Ok(()) }
    }
}
