//! Identity of an embedded context: a name, and the directory of its broker. `connection`: an open one.
//! Not here: the broker (`broker`).

mod connection;

pub use connection::EmbeddedConnection;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sys::private_folder::PrivateFolder;

use super::broker_connection::BrokerConnection;
use super::client::ioctls::state_text;
use super::directory;
use super::rpc::framing::Hello;
use super::rpc::protocol::{StateFile, ThreadKey};
use super::settings::{Inherit, Settings};
use super::trace_events::Amount;
use driver::connection::{Context, OpenOptions};
use driver::error::OpenError;

/// Variable with the address of a context, for the library that is preloaded into unmodified programs: their devices are the
/// contexts in its directory, with its settings.
pub const SHIM_VARIABLE: &str = "BINDERPERF_SHIM";

/// Scheme word of every address of an embedded context.
const SCHEME: &str = "embedded";

/// A context of an embedded driver.
#[derive(Clone, Debug)]
pub struct EmbeddedContext {
    broker: Arc<BrokerDirectory>,
    name: String,
    settings: Settings,
    traced: Option<(PathBuf, Amount)>,
    /// Path of the records that take the events of calls.
    records: Option<PathBuf>,
}

/// Directory of a broker. A private one is removed when the last value that refers to it is dropped.
#[derive(Debug)]
struct BrokerDirectory {
    directory: PathBuf,
    private: Option<PrivateFolder>,
}

impl EmbeddedContext {
    /// The context of this name in the user's own directory: below `$XDG_RUNTIME_DIR`, else below the directory for
    /// temporary files. Nothing is created or opened yet.
    #[must_use]
    pub fn named(name: &str, settings: Settings) -> Self {
        Self::at(&directory::of_user(), name, settings)
    }

    /// The context of this name in a directory. Nothing is created or opened yet.
    #[must_use]
    pub fn at(directory: &Path, name: &str, settings: Settings) -> Self {
        let broker = BrokerDirectory { directory: directory.to_owned(), private: None };
        Self { broker: Arc::new(broker), name: name.to_owned(), settings, traced: None, records: None }
    }

    /// A context with its own directory and broker, removed with its last clone.
    ///
    /// # Errors
    /// The temporary directory cannot be created, or its path is too long for a socket.
    pub fn private(name: &str, settings: Settings) -> io::Result<Self> {
        let folder = PrivateFolder::new(directory::KIND)?;
        // By name, because the broker may end after this process.
        let directory = folder.named().to_owned();
        directory::fits(&directory).map_err(|why| {
            io::Error::other(format!("{} cannot be used: {why}", sys::private_folder::shown(&directory)))
        })?;
        let broker = Arc::new(BrokerDirectory { directory, private: Some(folder) });
        Ok(Self { broker, name: name.to_owned(), settings, traced: None, records: None })
    }

    /// This context with another priority inheritance.
    #[must_use]
    pub fn with_inherit(&self, inherit: Inherit) -> Self {
        Self { settings: Settings { inherit, ..self.settings }, ..self.clone() }
    }

    /// This context for connections that write trace events into this tracefs directory, whatever the environment or
    /// the user's announcement says ([`crate::trace_events`]). The address does not contain it.
    #[must_use]
    pub fn with_marks(&self, folder: &Path, amount: Amount) -> Self {
        Self { traced: Some((folder.to_owned(), amount)), ..self.clone() }
    }

    /// This context for connections that write the events of calls into these records
    /// ([`crate::trace_events::records::CallRecords`]) rather than into the tracefs directory of [`Self::with_marks`],
    /// without which it has no effect. Connections that cannot open the records write marks.
    #[must_use]
    pub fn with_records(&self, path: &Path) -> Self {
        Self { records: Some(path.to_owned()), ..self.clone() }
    }

    /// The path set with [`Self::with_records`].
    pub(super) fn records(&self) -> Option<&Path> {
        self.records.as_deref()
    }

    /// The tracefs directory and the events set with [`Self::with_marks`].
    pub(super) fn marks(&self) -> Option<(&Path, Amount)> {
        self.traced.as_ref().map(|(folder, amount)| (folder.as_path(), *amount))
    }

    /// Address with which another process opens this context, valid while this value lives.
    #[must_use]
    pub fn address(&self) -> String {
        let Self { broker, name, settings, .. } = self;
        format!("{SCHEME}:{settings}:{name}:{}", broker.directory.display())
    }

    /// Parses an [`Self::address`].
    #[must_use]
    pub fn parse(address: &str) -> Option<Self> {
        // The settings contain one colon themselves.
        let [scheme, how, budget, name, directory] = address.splitn(5, ':').collect::<Vec<_>>()[..] else {
            return None;
        };
        let settings = format!("{how}:{budget}").parse().ok()?;
        (scheme == SCHEME && !directory.is_empty()).then(|| Self::at(Path::new(directory), name, settings))
    }

    /// The broker's directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.broker.directory
    }

    /// The context's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The driver's options.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Text of a state file of the directory's broker, with all its contexts; `None` if no broker runs.
    ///
    /// # Errors
    /// The broker does not answer, or other users have access to the directory.
    pub fn state(&self, which: StateFile) -> Result<Option<String>, OpenError> {
        let hello = Hello { context: self.name.clone(), call_slots: false, pid: 0 };
        let Some(line) = BrokerConnection::open_running(self.directory(), &hello)? else { return Ok(None) };
        let nobody = ThreadKey::NOBODY;
        let os = |source| OpenError::Os {
            path: self.directory().to_owned(),
            call: "asking its broker for its state",
            source,
        };
        state_text(&line, nobody, which).map(Some).map_err(os)
    }

    /// Whether the directory is private to this process and its children.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.broker.private.is_some()
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

    fn options(&self) -> String {
        let directory = self.directory();
        let usual = !self.is_private() && directory == directory::of_user();
        let place = if usual { String::new() } else { format!(" --context-dir {}", directory.display()) };
        format!("--driver embedded --device {}{place}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn an_address_names_the_same_context() {
        let settings = Settings { call_slots: false, ..Settings::default() };
        let context = EmbeddedContext::at(Path::new("/a:b/c"), "hwbinder", settings);
        let again = EmbeddedContext::parse(&context.address()).expect("its own address");
        assert_eq!((again.directory(), again.name()), (Path::new("/a:b/c"), "hwbinder"));
        assert_eq!(again.settings(), settings);
        for bad in [
            "/dev/binder",
            "embedded:x:binder:/d",
            "embedded:nice,spin:1,direct:binder:",
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
        assert_eq!(std::fs::metadata(&directory).expect("still there").mode() & 0o777, 0o700);
        drop(second);
        assert!(!directory.exists());
    }
}
