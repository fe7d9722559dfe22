//! A machine as seen by the probes: its files, live or copied into a folder, and its facts.
//! Not here: the meaning of files (probes), copying them (`save`), facts that are in no file (`facts`).
//! Unreadable files are reported with the reason.

use std::cell::OnceCell;
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use driver::Root;
use driver::kernel_config::KernelConfig;
use driver::root::LONGEST;
use sys::private_folder::{self, PrivateFolder};

use super::archive;
use super::facts::{self, Facts};

/// File systems that may not be mounted where files were read or copied, inner ones first: that a file of one is missing
/// says something only if others of it are there.
const FILE_SYSTEMS: [&str; 6] =
    ["sys/kernel/debug", "sys/kernel/tracing", "sys/fs/cgroup", "sys/devices/system/cpu", "sys", "proc"];

/// Part of the name of the folder in which a snapshot is made, until it is whole.
pub(super) const PART: &str = "snapshot";

/// A machine's files and facts.
#[derive(Debug)]
pub struct Snapshot {
    root: Root,
    /// Folder or archive as the user named it.
    name: String,
    /// The folder of an archive's files, kept while they are read.
    _unpacked: Option<PrivateFolder>,
    live: bool,
    /// Whether a missing file is known not to exist; false for a folder copied by hand.
    complete: bool,
    facts: Facts,
    config: OnceCell<Option<KernelConfig>>,
}

/// Why a value is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unavailable {
    /// The file does not exist.
    Absent(String),
    /// The file could not be read.
    Failed(String, String),
    /// The content is malformed.
    Malformed(String, String),
    /// The value was not measured.
    NotMeasured(&'static str),
    /// Not shown by the files that were read; holds the whole sentence.
    NotShown(String),
}

impl Unavailable {
    pub(super) fn absent(path: impl Into<String>) -> Self {
        Self::Absent(path.into())
    }

    pub(super) fn malformed(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Malformed(path.into(), why.into())
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(path) => write!(f, "there is no /{path}"),
            Self::Failed(path, why) => write!(f, "/{path} cannot be read: {why}"),
            Self::Malformed(path, why) => write!(f, "/{path} makes no sense: {why}"),
            Self::NotMeasured(what) => write!(f, "{what} was not measured"),
            Self::NotShown(why) => f.write_str(why),
        }
    }
}

/// Why a folder is not a snapshot.
#[derive(Debug)]
pub enum SnapshotError {
    /// The folder or archive cannot be read.
    Unreadable(PathBuf, io::Error),
    /// It contains neither facts nor a kernel's files.
    NotOne(PathBuf),
    /// It contains a part of a snapshot.
    Unfinished(PathBuf),
    /// The facts are malformed.
    BadFacts(PathBuf, String),
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, error) => {
                write!(f, "cannot look into {}: {}", path.display(), sys::errno::describe(error))
            }
            Self::NotOne(path) => write!(
                f,
                "{} is not a snapshot of a machine: it has neither {} nor proc/version; make one there with `binderperf \
                 doctor --save DIR`, or without binderperf: `binderperf doctor --collect | ssh HOST sh > host.tar`",
                path.display(),
                facts::FILE
            ),
            Self::Unfinished(path) => write!(
                f,
                "{} is a part of a snapshot only: `binderperf doctor --save` was killed there, or is at work; remove it, and \
                 save the machine again",
                path.display()
            ),
            Self::BadFacts(path, why) => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl Snapshot {
    /// This machine, with these facts.
    #[must_use]
    pub fn live(facts: Facts) -> Self {
        Self::new(Root::of_this_machine(), true, Some(facts))
    }

    /// A folder with copied files, made by `--save` or by hand, or the archive of `--collect`.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn open(place: &Path) -> Result<Self, SnapshotError> {
        let unreadable = |error| SnapshotError::Unreadable(place.to_owned(), error);
        let unpacked = match fs::metadata(place).map_err(unreadable)?.is_dir() {
            true => None,
            false => Some(archive::unpack(place).map_err(unreadable)?),
        };
        let folder = unpacked.as_ref().map_or(place, PrivateFolder::path);
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            if private_folder::is_named(&entry.map_err(unreadable)?.file_name(), PART) {
                return Err(SnapshotError::Unfinished(place.to_owned()));
            }
        }
        let root = Root::at(folder);
        let bad = |why| SnapshotError::BadFacts(folder.join(facts::FILE), why);
        let facts = match root.bytes(facts::FILE) {
            Ok((text, _)) => Some(Facts::parse(&String::from_utf8_lossy(&text)).map_err(bad)?),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if !["proc/version", "proc/sys/kernel/osrelease"].iter().any(|file| root.path(file).is_file())
                {
                    return Err(SnapshotError::NotOne(place.to_owned()));
                }
                None
            }
            Err(error) => return Err(bad(sys::errno::describe(&error))),
        };
        let name = place.display().to_string();
        Ok(Self { name, _unpacked: unpacked, ..Self::new(root, false, facts) })
    }

    fn new(root: Root, live: bool, facts: Option<Facts>) -> Self {
        let (complete, facts) = (facts.is_some(), facts.unwrap_or_default());
        let name = String::new();
        Self { root, name, _unpacked: None, live, complete, facts, config: OnceCell::new() }
    }

    /// Whether this is the machine that the program runs on.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// The folder or archive, as the user named it; empty for this machine.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether a missing file is known not to exist.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// The machine's facts.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The machine's files.
    pub(super) fn root(&self) -> &Root {
        &self.root
    }

    /// A file's text, trimmed; may be empty.
    pub(super) fn text(&self, path: &str) -> Result<String, Unavailable> {
        if let Some(text) = self.facts.texts.get(path) {
            return Ok(text.trim().to_owned());
        }
        if let Some(why) = self.facts.unreadable.get(path) {
            return Err(Unavailable::Failed(path.to_owned(), why.clone()));
        }
        match self.root.bytes(path) {
            Ok((_, true)) => {
                Err(Unavailable::Failed(path.to_owned(), format!("it is longer than {LONGEST} bytes")))
            }
            Ok((text, false)) => Ok(String::from_utf8_lossy(&text).trim().to_owned()),
            Err(error) => Err(match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Unavailable::absent(path),
                _ => Unavailable::Failed(path.to_owned(), sys::errno::describe(&error)),
            }),
        }
    }

    /// Whether a file that is missing is known not to exist.
    pub(super) fn shows_absence(&self, path: &str) -> bool {
        let has = |system: &&&str| path.strip_prefix(**system).is_some_and(|rest| rest.starts_with('/'));
        self.complete && FILE_SYSTEMS.iter().find(has).is_none_or(|system| self.is_mounted(system))
    }

    /// Whether anything of a file system of the machine is to be seen.
    fn is_mounted(&self, system: &str) -> bool {
        match self.live {
            // An empty folder is a mount point without a mount.
            true => !self.root.names(system).is_empty() && self.root.exists(system),
            false => self.root.exists(system),
        }
    }

    /// A file's text; `None` if the machine has no such file.
    pub(super) fn maybe(&self, path: &str) -> Result<Option<String>, Unavailable> {
        match self.text(path) {
            Ok(text) => Ok(Some(text)),
            Err(Unavailable::Absent(_)) if self.shows_absence(path) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A file that holds a single value.
    pub(super) fn value<T: FromStr>(&self, path: &str) -> Result<T, Unavailable> {
        let text = self.text(path)?;
        text.parse().map_err(|_| {
            Unavailable::malformed(path, format!("{:?} is not a valid value", shorten(&text, 40)))
        })
    }

    /// A file that holds a single value; `None` if the machine has no such file.
    pub(super) fn maybe_value<T: FromStr>(&self, path: &str) -> Result<Option<T>, Unavailable> {
        match self.value(path) {
            Ok(value) => Ok(Some(value)),
            Err(Unavailable::Absent(_)) if self.shows_absence(path) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The target of a link. In a folder of copied files, a file contains it.
    pub(super) fn link(&self, path: &str) -> Result<String, Unavailable> {
        match fs::read_link(self.root.path(path)) {
            Ok(target) => Ok(target.display().to_string()),
            Err(_) => self.text(path),
        }
    }

    /// Names in a folder that consist of this prefix and a number: `cpu0`, `cpu1`.
    pub(super) fn numbered(&self, folder: &str, word: &str) -> Result<Vec<String>, Unavailable> {
        let names = self.root.numbered(folder, word);
        let path = format!("{folder}/{word}*");
        match names.is_empty() && !self.shows_absence(&path) {
            true => Err(Unavailable::Absent(path)),
            false => Ok(names),
        }
    }

    /// The kernel's configuration.
    pub(super) fn config(&self) -> Result<&KernelConfig, Unavailable> {
        let found = self.config.get_or_init(|| KernelConfig::find(&self.root));
        found
            .as_ref()
            .ok_or_else(|| Unavailable::absent("proc/config.gz, and no /boot/config of this kernel"))
    }

    /// `uname -r`; empty if unknown.
    #[must_use]
    pub fn release(&self) -> String {
        self.text("proc/sys/kernel/osrelease").ok().or_else(|| self.release_of_version()).unwrap_or_default()
    }

    fn release_of_version(&self) -> Option<String> {
        self.text("proc/version").ok()?.strip_prefix("Linux version ")?.split(' ').next().map(str::to_owned)
    }
}

/// The start of a text, on one line.
pub(super) fn shorten(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}
