//! Room: a machine as its files, read live or from a folder of copied ones; every probe sees only this.
//! Not here: what the files mean (the probes), copying them (`save`), facts that no file tells (`facts`).
//! What cannot be read is told with its reason, and no file is read beyond [`LONGEST`].

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, OnceLock, PoisonError};

use driver::kernel_config::KernelConfig;

use super::facts::{self, Facts};
use crate::host::Root;

/// The most that is read of one file. The longest of interest are a busy driver's state and
/// `/proc/interrupts` of a machine with hundreds of CPUs.
pub(super) const LONGEST: u64 = 4 << 20;

/// A machine's files and what was found out about it besides.
#[derive(Debug)]
pub struct Snapshot {
    root: PathBuf,
    live: bool,
    /// Whether a file that is not here is not on the machine either; not so in a folder copied by hand.
    complete: bool,
    facts: Facts,
    config: OnceLock<Option<KernelConfig>>,
    /// Every file that was asked for: what a snapshot must hold.
    asked: Mutex<BTreeSet<String>>,
}

/// Why a file tells nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// There is no such file.
    Absent(String),
    /// It is there, or may be, and could not be read.
    Failed(String, String),
    /// It was read and makes no sense.
    Nonsense(String, String),
    /// It was not measured.
    NotMeasured(&'static str),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(path) => write!(f, "there is no /{path}"),
            Self::Failed(path, why) => write!(f, "/{path} cannot be read: {why}"),
            Self::Nonsense(path, why) => write!(f, "/{path} makes no sense: {why}"),
            Self::NotMeasured(what) => write!(f, "{what} was not measured"),
        }
    }
}

/// What a folder given as a snapshot is not.
#[derive(Debug)]
pub enum NoSnapshot {
    /// It cannot be looked into.
    Unreadable(PathBuf, io::Error),
    /// It holds neither our own list of facts nor a kernel's files.
    NotOne(PathBuf),
    /// The list of facts cannot be understood.
    BadFacts(PathBuf, String),
}

impl fmt::Display for NoSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, error) => {
                write!(f, "cannot look into {}: {}", path.display(), sys::errno::describe(error))
            }
            Self::NotOne(path) => write!(
                f,
                "{} is no snapshot of a machine: it has neither {} nor proc/version; make one there with `binderperf \
                 doctor --save DIR`",
                path.display(),
                facts::FILE
            ),
            Self::BadFacts(path, why) => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for NoSnapshot {}

impl Snapshot {
    /// This machine, with what was found out about it.
    #[must_use]
    pub fn live(facts: Facts) -> Self {
        Self::new(PathBuf::from("/"), true, Some(facts))
    }

    /// A folder of files copied from a machine: by `--save`, or by hand.
    ///
    /// # Errors
    /// [`NoSnapshot`].
    pub fn open(folder: &Path) -> Result<Self, NoSnapshot> {
        fs::read_dir(folder).map_err(|error| NoSnapshot::Unreadable(folder.to_owned(), error))?;
        let path = folder.join(facts::FILE);
        let facts = match read_capped(&path) {
            Ok((text, _)) => {
                Some(Facts::parse(&text).map_err(|why| NoSnapshot::BadFacts(path.clone(), why))?)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if !["proc/version", "proc/sys/kernel/osrelease"]
                    .iter()
                    .any(|file| folder.join(file).is_file())
                {
                    return Err(NoSnapshot::NotOne(folder.to_owned()));
                }
                None
            }
            Err(error) => return Err(NoSnapshot::BadFacts(path.clone(), sys::errno::describe(&error))),
        };
        Ok(Self::new(folder.to_owned(), false, facts))
    }

    fn new(root: PathBuf, live: bool, facts: Option<Facts>) -> Self {
        let (complete, facts) = (facts.is_some(), facts.unwrap_or_default());
        Self { root, live, complete, facts, config: OnceLock::new(), asked: Mutex::new(BTreeSet::new()) }
    }

    /// Whether this is the machine that the program runs on.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Whether a file that is not here is not on the machine either.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// What was found out besides files.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The folder that stands for the machine's `/`.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The same, for what `host` reads of it.
    pub(super) fn as_root(&self) -> Root {
        Root::at(self.root.clone())
    }

    /// A file's text without the white space around it; may be empty.
    pub(super) fn text(&self, path: &str) -> Result<String, Unread> {
        self.note(path);
        if let Some(text) = self.facts.texts.get(path) {
            return Ok(text.trim().to_owned());
        }
        if let Some(why) = self.facts.unreadable.get(path) {
            return Err(Unread::Failed(path.to_owned(), why.clone()));
        }
        match read_capped(&self.root.join(path)) {
            Ok((_, true)) => {
                Err(Unread::Failed(path.to_owned(), format!("it is longer than {LONGEST} bytes")))
            }
            Ok((text, false)) => Ok(text.trim().to_owned()),
            Err(error) => Err(match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Unread::Absent(path.to_owned()),
                _ => Unread::Failed(path.to_owned(), sys::errno::describe(&error)),
            }),
        }
    }

    /// The same; `None` where the machine has no such file.
    pub(super) fn maybe(&self, path: &str) -> Result<Option<String>, Unread> {
        match self.text(path) {
            Ok(text) => Ok(Some(text)),
            Err(Unread::Absent(_)) if self.complete => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A file that holds one value and nothing else.
    pub(super) fn value<T: FromStr>(&self, path: &str) -> Result<T, Unread> {
        let text = self.text(path)?;
        text.parse()
            .map_err(|_| Unread::Nonsense(path.to_owned(), format!("{:?} is no value", shorten(&text, 40))))
    }

    /// The same; `None` where the machine has no such file.
    pub(super) fn maybe_value<T: FromStr>(&self, path: &str) -> Result<Option<T>, Unread> {
        match self.value(path) {
            Ok(value) => Ok(Some(value)),
            Err(Unread::Absent(_)) if self.complete => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What a link points at; in a folder of copied files it is a file that says so.
    pub(super) fn link(&self, path: &str) -> Result<String, Unread> {
        match fs::read_link(self.root.join(path)) {
            Ok(target) => {
                self.note(path);
                Ok(target.display().to_string())
            }
            Err(_) => self.text(path),
        }
    }

    /// The names in a folder, sorted; numbers in them by value. Empty where there is none.
    pub(super) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.take(MOST_NAMES).filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by_cached_key(|name| {
            (name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(), number(name))
        });
        names
    }

    /// Names in a folder that are this word and a number, by number: `cpu0`, `cpu1`.
    pub(super) fn numbered(&self, folder: &str, word: &str) -> Result<Vec<String>, Unread> {
        let is = |name: &String| {
            name.strip_prefix(word)
                .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let names: Vec<String> = self.names(folder).into_iter().filter(is).collect();
        match names.is_empty() && !self.complete {
            true => Err(Unread::Absent(format!("{folder}/{word}*"))),
            false => Ok(names),
        }
    }

    /// Whether there is such a file or folder.
    pub(super) fn exists(&self, path: &str) -> bool {
        self.note(path);
        self.root.join(path).symlink_metadata().is_ok()
    }

    /// The kernel's configuration.
    pub(super) fn config(&self) -> Result<&KernelConfig, Unread> {
        let found = self.config.get_or_init(|| KernelConfig::find(&self.root));
        found
            .as_ref()
            .ok_or_else(|| Unread::Absent("proc/config.gz, and no /boot/config of this kernel".to_owned()))
    }

    /// `uname -r`; empty if it is not known.
    #[must_use]
    pub fn release(&self) -> String {
        self.text("proc/sys/kernel/osrelease").ok().or_else(|| self.release_of_version()).unwrap_or_default()
    }

    fn release_of_version(&self) -> Option<String> {
        self.text("proc/version").ok()?.strip_prefix("Linux version ")?.split(' ').next().map(str::to_owned)
    }

    fn note(&self, path: &str) {
        if cfg!(test) {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
        }
    }

    /// Every file that was asked for so far; only kept in tests.
    #[cfg(test)]
    pub(super) fn asked(&self) -> BTreeSet<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Entries of one folder that are looked at.
const MOST_NAMES: usize = 10_000;

fn number(name: &str) -> u64 {
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.parse().unwrap_or(0)
}

/// At most [`LONGEST`] bytes of a file as text, and whether there would have been more. Only regular files
/// are read: a pipe in a folder of copied files would never end.
pub(super) fn read_capped(path: &Path) -> io::Result<(String, bool)> {
    let kind = fs::metadata(path)?;
    if kind.is_dir() {
        return Err(io::Error::from(ErrorKind::IsADirectory));
    }
    if !kind.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LONGEST + 1).read_to_end(&mut bytes)?;
    let longer = bytes.len() as u64 > LONGEST;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), longer))
}

/// The start of a text, on one line.
pub(super) fn shorten(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}
