//! The `tracing_on` switch: is tracing on; turn it off at a deadline miss.
//! Not here: starting a trace (`atrace`), reading one (crate `trace`).
//! Facts: `tracing_on` of tracefs, `Documentation/trace/ftrace.rst`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::tracefs::{self, Tracefs};

/// Environment variable with the tracefs folder of the buffer to stop; set by `binderperf trace record` for its
/// command. Unset: the shared buffer.
pub use embedded::trace_events::TRACING as FOLDER_VARIABLE;

/// Environment variable with the tracefs folder that marks are written into, where it is another.
pub use embedded::trace_events::MARKS as MARKS_VARIABLE;

/// Environment variable with the file that the recording is written to.
pub const LOG_VARIABLE: &str = "BINDERPERF_TRACE_LOG";

/// An open `tracing_on` file.
#[derive(Clone, Debug)]
pub struct Switch {
    file: Arc<File>,
}

/// Why tracing cannot be stopped.
#[derive(Debug)]
pub enum SwitchError {
    /// No usable tracefs.
    Missing(String),
    /// Tracing is off; the folder of the buffer.
    Off(PathBuf),
}

impl std::fmt::Display for SwitchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(why) => {
                write!(f, "-trace stops the kernel's tracing at a miss, but tracing is not available: {why}")
            }
            Self::Off(place) => write!(
                f,
                "-trace stops the kernel's tracing at a miss, but tracing is off; start it first, for example: echo 1 > {}",
                place.join("tracing_on").display()
            ),
        }
    }
}

impl From<tracefs::TraceError> for SwitchError {
    fn from(error: tracefs::TraceError) -> Self {
        Self::Missing(error.to_string())
    }
}

/// The folder of the buffer to stop: [`FOLDER_VARIABLE`], or the shared buffer.
pub fn folder() -> Result<PathBuf, SwitchError> {
    match std::env::var_os(FOLDER_VARIABLE) {
        Some(folder) => Ok(Tracefs::among(&[Path::new(&folder)])?.root().to_owned()),
        None => Ok(Tracefs::find()?.root().to_owned()),
    }
}

/// Where a stopped trace can be read: the recorder's file, or the tracefs `trace` file; `None` without tracefs.
#[must_use]
pub fn log() -> Option<PathBuf> {
    match std::env::var_os(LOG_VARIABLE) {
        Some(file) => Some(PathBuf::from(file)),
        None => folder().ok().map(|folder| folder.join("trace")),
    }
}

impl Switch {
    /// Opens the switch of the buffer in this folder.
    pub fn open(folder: &Path) -> Result<Self, SwitchError> {
        let path = folder.join("tracing_on");
        let file = File::options().read(true).write(true).open(&path).map_err(|error| {
            SwitchError::Missing(format!("opening {}: {}", path.display(), sys::errno::describe(&error)))
        })?;
        Ok(Self { file: Arc::new(file) })
    }

    /// Whether tracing is on.
    pub fn is_on(&self) -> io::Result<bool> {
        let mut state = [0];
        Ok(self.file.read_at(&mut state, 0)? == 1 && state != *b"0")
    }

    /// Turns tracing off with one system call; false if that failed.
    #[inline]
    pub fn off(&self) -> bool {
        self.file.write_at(b"0", 0).is_ok()
    }
}

/// The folder of the buffer to stop, if its tracing is on.
pub fn running() -> Result<PathBuf, SwitchError> {
    let folder = folder()?;
    match Switch::open(&folder)?.is_on() {
        Ok(true) => Ok(folder),
        Ok(false) => Err(SwitchError::Off(folder)),
        Err(error) => Err(SwitchError::Missing(sys::errno::describe(&error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Folder;

    #[test]
    fn a_switch_is_found_read_and_put_off() {
        let folder = Folder::new("switch", &[]);
        let missing = Path::new("/no/such/folder");
        assert!(Tracefs::among(&[missing, &folder]).is_err());
        std::fs::write(folder.join("tracing_on"), "1\n").expect("a file");
        let found = Tracefs::among(&[missing, &folder]).expect("there now");
        assert_eq!(found.root(), &*folder);
        let switch = Switch::open(&folder).expect("the file");
        assert!(switch.is_on().expect("readable"));
        assert!(switch.off());
        assert!(!switch.is_on().expect("readable"));
        assert!(SwitchError::Off(folder.to_owned()).to_string().contains("echo 1 >"));
    }
}
