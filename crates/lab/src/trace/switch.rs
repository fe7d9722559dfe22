//! Room: the kernel's tracing switch: is it on, and off at the moment of a miss.
//! Not here: starting to trace (`atrace`), or reading a trace.
//! Facts: `tracing_on` of tracefs, `Documentation/trace/ftrace.rst`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::tracefs::{self, Tracefs};

/// The variable that names the folder of the buffer to stop, for what `binderperf trace record` starts: an
/// instance of tracefs. Without it, the buffer that everybody shares is meant.
pub use driver::embedded::marks::TRACING as FOLDER_VARIABLE;

/// The variable that names the file which a recording is written to.
pub const LOG_VARIABLE: &str = "BINDERPERF_TRACE_LOG";

/// The open switch.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    file: Arc<File>,
}

/// Why there is nothing to stop.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// No tracefs, or none that may be used.
    Missing(String),
    /// It is off.
    Off(PathBuf),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(why) => {
                write!(f, "-trace stops the kernel's tracing at a miss, and there is none: {why}")
            }
            Self::Off(place) => write!(
                f,
                "-trace stops the kernel's tracing at a miss, and it is off; first start it, as with: echo 1 > {}",
                place.join("tracing_on").display()
            ),
        }
    }
}

impl From<tracefs::Trouble> for Trouble {
    fn from(trouble: tracefs::Trouble) -> Self {
        Self::Missing(trouble.to_string())
    }
}

/// The folder of the buffer that a miss stops: the one in [`FOLDER_VARIABLE`], or everybody's.
pub(crate) fn folder() -> Result<PathBuf, Trouble> {
    match std::env::var_os(FOLDER_VARIABLE) {
        Some(folder) => Ok(Tracefs::among(&[Path::new(&folder)])?.root().to_owned()),
        None => Ok(Tracefs::find()?.root().to_owned()),
    }
}

/// Where a trace that was stopped can be read: the recorder's file, or tracefs itself; `None` without tracefs.
#[must_use]
pub(crate) fn log() -> Option<PathBuf> {
    match std::env::var_os(LOG_VARIABLE) {
        Some(file) => Some(PathBuf::from(file)),
        None => folder().ok().map(|folder| folder.join("trace")),
    }
}

impl Switch {
    /// Opens the switch of this folder.
    pub(crate) fn open(folder: &Path) -> Result<Self, Trouble> {
        let path = folder.join("tracing_on");
        let file = File::options().read(true).write(true).open(&path).map_err(|error| {
            Trouble::Missing(format!("opening {}: {}", path.display(), sys::errno::describe(&error)))
        })?;
        Ok(Self { file: Arc::new(file) })
    }

    /// Whether tracing is on.
    pub(crate) fn is_on(&self) -> io::Result<bool> {
        let mut state = [0];
        Ok(self.file.read_at(&mut state, 0)? == 1 && state != *b"0")
    }

    /// Stops tracing, with one system call; whether that worked.
    #[inline]
    pub(crate) fn off(&self) -> bool {
        self.file.write_at(b"0", 0).is_ok()
    }
}

/// The folder of a switch that is on.
pub(crate) fn running() -> Result<PathBuf, Trouble> {
    let folder = folder()?;
    match Switch::open(&folder)?.is_on() {
        Ok(true) => Ok(folder),
        Ok(false) => Err(Trouble::Off(folder)),
        Err(error) => Err(Trouble::Missing(sys::errno::describe(&error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_found_read_and_put_off() {
        let folder = std::env::temp_dir().join(format!("binderperf-switch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let missing = Path::new("/no/such/folder");
        assert!(Tracefs::among(&[missing, &folder]).is_err());
        std::fs::write(folder.join("tracing_on"), "1\n").expect("a file");
        let found = Tracefs::among(&[missing, &folder]).expect("there now");
        assert_eq!(found.root(), folder);
        let switch = Switch::open(&folder).expect("the file");
        assert!(switch.is_on().expect("readable"));
        assert!(switch.off());
        assert!(!switch.is_on().expect("readable"));
        std::fs::remove_dir_all(&folder).expect("removed");
        assert!(Trouble::Off(folder).to_string().contains("echo 1 >"));
    }
}
