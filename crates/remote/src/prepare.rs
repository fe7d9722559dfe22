//! The places of a command's files, before it runs.
//! Not here: which files it has (`placed`).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::placed::Placed;

/// Why what comes back could not be put into its place.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unprepared {
    /// The folder of a machine cannot be made.
    NotMade(PathBuf, io::Error),
    /// There is no such folder.
    Missing(PathBuf),
    /// It is neither a file nor a folder.
    Strange(PathBuf),
    /// The folder is not empty.
    Full(PathBuf),
}

impl fmt::Display for Unprepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMade(path, error) => {
                write!(f, "cannot make {}: {}", path.display(), sys::errno::describe(error))
            }
            Self::Missing(path) => write!(f, "there is no folder {}", path.display()),
            Self::Strange(path) => {
                let why =
                    "is neither a file nor a folder, and what comes back replaces it: name another file";
                write!(f, "{} {why}", path.display())
            }
            Self::Full(path) => {
                let why = "is not empty, and results would mix: give another folder";
                write!(f, "{} {why}", path.display())
            }
        }
    }
}

impl std::error::Error for Unprepared {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotMade(_, error) => Some(error),
            Self::Missing(_) | Self::Strange(_) | Self::Full(_) => None,
        }
    }
}

/// Refuses what would be refused at the end, after minutes of measuring; makes the folders of labels.
///
/// # Errors
/// [`Unprepared`].
pub fn prepare(placed: &Placed, is_labelled: bool) -> Result<(), Unprepared> {
    for path in placed.named() {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if is_labelled {
            std::fs::create_dir_all(parent).map_err(|error| Unprepared::NotMade(parent.to_owned(), error))?;
        }
        if !parent.is_dir() {
            return Err(Unprepared::Missing(parent.to_owned()));
        }
        if path.exists() && !path.is_dir() && !path.is_file() {
            return Err(Unprepared::Strange(path.to_owned()));
        }
        if path.is_dir() && path.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(Unprepared::Full(path.to_owned()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sys::private_folder::PrivateFolder;

    use super::*;
    use crate::placed::{Naming, placed};

    #[test]
    fn what_would_be_refused_at_the_end_is_refused_before() {
        let folder = PrivateFolder::new("prepare").expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let ready = |path: &Path, label: Option<&str>| {
            let words = ["latency", "binder", &format!("--record={}", path.display())].map(str::to_owned);
            let placed = placed(&words, Naming::Below, label).expect("it names a file");
            prepare(&placed, label.is_some())
        };
        assert!(ready(&at("new.json"), None).is_ok());
        assert!(matches!(ready(&at("gone/new.json"), None), Err(Unprepared::Missing(_))));
        assert!(ready(&at("new.json"), Some("adb")).is_ok() && at("adb").is_dir());
        std::fs::create_dir_all(at("full/of")).expect("made");
        assert!(matches!(ready(&at("full"), None), Err(Unprepared::Full(_))));
        assert!(matches!(ready(Path::new("/dev/null"), None), Err(Unprepared::Strange(_))));
    }
}
