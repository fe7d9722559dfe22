//! Room: which embedded context: a name in a directory that its broker keeps.
//! Not here: being in it (`connection`), the broker.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::connection::EmbeddedConnection;
use super::directory;
use super::line::Line;
use super::process::ioctls::state_text;
use super::protocol::{StateFile, ThreadKey};
use super::settings::{Inherit, Settings};
use super::wire::Hello;
use crate::connection::{Context, OpenOptions};
use crate::error::OpenError;

/// The word that every address of an embedded context begins with.
const SCHEME: &str = "embedded";
/// The directory's name where the user has a directory for such things.
const FOLDER: &str = "binderperf";

/// A context of an embedded driver.
#[derive(Clone, Debug)]
pub struct EmbeddedContext {
    place: Arc<Place>,
    name: String,
    settings: Settings,
    traced: Option<PathBuf>,
}

/// A directory with a broker. A private one is removed with the last that knows of it.
#[derive(Debug)]
struct Place {
    directory: PathBuf,
    private: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.private {
            // Its broker may be about to leave, and removes what is its own.
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

impl EmbeddedContext {
    /// The context of this name in the user's own directory: the one below `$XDG_RUNTIME_DIR`, else
    /// below the directory for temporary files. Nothing is made or opened yet.
    ///
    /// # Errors
    /// It cannot be told who this process's user is.
    pub fn named(name: &str, settings: Settings) -> Result<Self, OpenError> {
        let directory = user_directory().map_err(|source| OpenError::Os {
            path: PathBuf::from("/proc/self"),
            call: "asking for this process's user",
            source,
        })?;
        Ok(Self::at(&directory, name, settings))
    }

    /// The context of this name in a directory; nothing is made or opened yet.
    #[must_use]
    pub fn at(directory: &Path, name: &str, settings: Settings) -> Self {
        let place = Place { directory: directory.to_owned(), private: false };
        Self { place: Arc::new(place), name: name.to_owned(), settings, traced: None }
    }

    /// A context with a directory and a broker of its own, gone with its last clone.
    ///
    /// # Errors
    /// As making a directory for temporary files; its path is too long for a socket.
    pub fn private(name: &str, settings: Settings) -> io::Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        directory::sweep(&std::env::temp_dir());
        loop {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let directory = format!("{}{}-{number}", directory::PRIVATE, std::process::id());
            let directory = std::env::temp_dir().join(directory);
            directory::fits(&directory).map_err(io::Error::other)?;
            match DirBuilder::new().mode(0o700).create(&directory) {
                // Left behind by a process of the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    let place = Arc::new(Place { directory, private: true });
                    return Ok(Self { place, name: name.to_owned(), settings, traced: None });
                }
            }
        }
    }

    /// The same context for processes that take over their callers' priorities in another way.
    #[must_use]
    pub fn with_inherit(&self, inherit: Inherit) -> Self {
        Self { settings: Settings { inherit, ..self.settings }, ..self.clone() }
    }

    /// The same context for connections that write marks into this folder of tracefs, whatever the
    /// environment or the user says ([`super::marks`]). Nothing of that is in the address.
    #[must_use]
    pub fn with_marks(&self, folder: &Path) -> Self {
        Self { traced: Some(folder.to_owned()), ..self.clone() }
    }

    /// Where that is, if it was said.
    pub(super) fn marks(&self) -> Option<&Path> {
        self.traced.as_deref()
    }

    /// What another process needs to open the same context, while this value lives.
    #[must_use]
    pub fn address(&self) -> String {
        let Self { place, name, settings, .. } = self;
        format!("{SCHEME}:{settings}:{name}:{}", place.directory.display())
    }

    /// Reads what [`Self::address`] wrote.
    #[must_use]
    pub fn parse(address: &str) -> Option<Self> {
        // Settings have one colon of their own.
        let [scheme, how, budget, name, directory] = address.splitn(5, ':').collect::<Vec<_>>()[..] else {
            return None;
        };
        let settings = format!("{how}:{budget}").parse().ok()?;
        (scheme == SCHEME && !directory.is_empty()).then(|| Self::at(Path::new(directory), name, settings))
    }

    /// The broker's directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.place.directory
    }

    /// The context's name in it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was chosen.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The text of a state file of the directory's broker, all contexts in it; `None` if no broker
    /// runs there, since then there is nothing to tell.
    ///
    /// # Errors
    /// The broker does not answer, or the directory is not the user's alone.
    pub fn state(&self, which: StateFile) -> Result<Option<String>, OpenError> {
        let hello = Hello { context: self.name.clone(), map_size: 0, lanes: false };
        let Some(line) = Line::open_running(self.directory(), &hello)? else { return Ok(None) };
        let nobody = ThreadKey::NOBODY;
        let os = |source| OpenError::Os {
            path: self.directory().to_owned(),
            call: "asking its broker for its state",
            source,
        };
        state_text(&line, nobody, which).map(Some).map_err(os)
    }

    /// Whether nobody outside this process's family knows of the context.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.place.private
    }
}

/// `$XDG_RUNTIME_DIR/binderperf`, or a directory with the user's number in its name.
pub(super) fn user_directory() -> io::Result<PathBuf> {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(given) if Path::new(&given).is_absolute() => Ok(Path::new(&given).join(FOLDER)),
        _ => {
            let user = fs::metadata("/proc/self")?.uid();
            Ok(std::env::temp_dir().join(format!("{FOLDER}-{user}")))
        }
    }
}

impl Context for EmbeddedContext {
    type Connection = EmbeddedConnection;

    fn open(&self, options: OpenOptions) -> Result<EmbeddedConnection, OpenError> {
        EmbeddedConnection::open(self, options)
    }

    fn describe(&self) -> String {
        match self.is_private() {
            true => format!("the context {} of a private embedded driver", self.name),
            false => {
                format!("the context {} of the embedded driver in {}", self.name, self.directory().display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_the_same_context() {
        let settings = Settings { lanes: false, ..Settings::default() };
        let context = EmbeddedContext::at(Path::new("/a:b/c"), "hwbinder", settings);
        let again = EmbeddedContext::parse(&context.address()).expect("its own address");
        assert_eq!((again.directory(), again.name()), (Path::new("/a:b/c"), "hwbinder"));
        assert_eq!(again.settings(), settings);
        for bad in [
            "/dev/binder",
            "embedded:x:binder:/d",
            "embedded:nice,spin:1,lanes:binder:",
            "embedded:nice:binder:/d",
        ] {
            assert!(EmbeddedContext::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_private_directory_goes_with_its_last_user() {
        let first = EmbeddedContext::private("binder", Settings::default()).expect("a directory");
        let second = first.clone();
        let directory = first.directory().to_owned();
        drop(first);
        assert_eq!(fs::metadata(&directory).expect("still there").mode() & 0o777, 0o700);
        drop(second);
        assert!(!directory.exists());
    }
}
