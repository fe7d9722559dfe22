//! Room: the kernel's tracing switch: is it on, and off at the moment of a miss.
//! Not here: starting to trace, or reading a trace.
//! Facts: `tracing_on` of tracefs, `Documentation/trace/ftrace.rst`; mounted at `/sys/kernel/tracing`, in
//! older systems below debugfs, where Android's tools look.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where tracefs may be.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The open switch.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    file: Arc<File>,
}

/// Why there is nothing to stop.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// No tracefs, or none that may be used.
    Missing(String),
    /// It is off.
    Off(PathBuf),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(why) => write!(
                f,
                "-trace stops the kernel's tracing at a miss, and there is none: {why}; mount -t tracefs tracefs \
                 /sys/kernel/tracing, and run it as root"
            ),
            Self::Off(place) => write!(
                f,
                "-trace stops the kernel's tracing at a miss, and it is off; first start it, as with: echo 1 > {}",
                place.join("tracing_on").display()
            ),
        }
    }
}

/// The first folder with a switch.
pub(super) fn folder() -> Result<PathBuf, Trouble> {
    folder_among(&PLACES.map(Path::new))
}

fn folder_among(places: &[&Path]) -> Result<PathBuf, Trouble> {
    let found = places.iter().find(|place| place.join("tracing_on").exists());
    found.map(|place| place.to_path_buf()).ok_or_else(|| {
        let places = places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>();
        Trouble::Missing(format!("no tracing_on in {}", places.join(" or ")))
    })
}

impl Switch {
    /// Opens the switch of this folder.
    pub(super) fn open(folder: &Path) -> Result<Self, Trouble> {
        let path = folder.join("tracing_on");
        let file = File::options().read(true).write(true).open(&path).map_err(|error| {
            Trouble::Missing(format!("opening {}: {}", path.display(), sys::errno::describe(&error)))
        })?;
        Ok(Self { file: Arc::new(file) })
    }

    /// Whether tracing is on.
    pub(super) fn is_on(&self) -> io::Result<bool> {
        let mut state = [0];
        Ok(self.file.read_at(&mut state, 0)? == 1 && state != *b"0")
    }

    /// Stops tracing, with one system call; whether that worked.
    #[inline]
    pub(super) fn off(&self) -> bool {
        self.file.write_at(b"0", 0).is_ok()
    }
}

/// The folder of a switch that is on.
pub(super) fn running() -> Result<PathBuf, Trouble> {
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
        assert!(matches!(folder_among(&[missing, &folder]), Err(Trouble::Missing(_))));
        std::fs::write(folder.join("tracing_on"), "1\n").expect("a file");
        assert_eq!(folder_among(&[missing, &folder]), Ok(folder.clone()));
        let switch = Switch::open(&folder).expect("the file");
        assert!(switch.is_on().expect("readable"));
        assert!(switch.off());
        assert!(!switch.is_on().expect("readable"));
        std::fs::remove_dir_all(&folder).expect("removed");
        assert!(Trouble::Off(folder).to_string().contains("echo 1 >"));
    }
}
