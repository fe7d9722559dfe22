//! The kernel driver's state and stats files: finding and reading them.
//! Not here: what the text means (`contract/state.md`), another driver's account (`backend::state`).
//! Facts: contract FS-07 and section 19; `/proc/self/mounts`. On either driver every folder of such
//! files tells of all contexts, not only of the instance's own.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sys::binderfs::PrivateBinderfs;

use crate::Root;
use crate::absence::Absence;
use crate::error::OpenError;

/// One of the driver's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateFile {
    /// Processes with threads, nodes, references, buffers and calls under way.
    #[default]
    State,
    /// Counters.
    Stats,
    /// Calls under way only.
    Transactions,
    /// The last calls, ended or not (C driver only).
    TransactionLog,
    /// The last calls that failed (C driver only).
    FailedTransactionLog,
}

/// Each file with the word a user types and its name in the driver's folder.
const FILES: [(StateFile, &str, &str); 5] = [
    (StateFile::State, "state", "state"),
    (StateFile::Stats, "stats", "stats"),
    (StateFile::Transactions, "transactions", "transactions"),
    (StateFile::TransactionLog, "log", "transaction_log"),
    (StateFile::FailedTransactionLog, "failed", "failed_transaction_log"),
];

impl StateFile {
    /// The file's name in the driver's folder.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        FILES.iter().find(|(file, ..)| *file == self).map_or("state", |(_, _, name)| name)
    }
}

impl FromStr for StateFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = FILES.iter().find(|(_, word, name)| *word == text || *name == text);
        found.map(|(file, ..)| *file).ok_or_else(|| {
            format!("no such account {text:?}; there are {}", FILES.map(|(_, word, _)| word).join(", "))
        })
    }
}

impl fmt::Display for StateFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FILES.iter().find(|(file, ..)| file == self).map_or("state", |(_, word, _)| word))
    }
}

/// Why the driver's account could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum StateError {
    /// The folder is there, or may be, but this user may not look.
    Denied {
        /// The path.
        path: PathBuf,
        /// `EACCES` or `EPERM`.
        source: io::Error,
    },
    /// The driver is there and shows its files nowhere.
    NotMounted {
        /// The places that were looked at.
        looked_for: Vec<PathBuf>,
        /// The command that makes them appear.
        remedy: &'static str,
    },
    /// The kernel has no driver.
    NoDriver {
        /// Why, and the way to one.
        why: Absence,
    },
    /// The driver could not be opened, or its broker not asked.
    Open(OpenError),
    /// The driver keeps no such file.
    NotKept(StateFile),
    /// No broker of the embedded driver runs in this directory.
    NoBroker(PathBuf),
    /// Reading failed.
    Os {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::NoBroker(directory) => write!(
                f,
                "nobody uses the embedded driver in {}: no broker runs there; name its directory with --context-dir, \
                 or start one with `binderperf broker`",
                directory.display()
            ),
            Self::NotKept(which) => write!(
                f,
                "the driver keeps no {}: only the C driver does; ask for state, stats or transactions",
                which.file_name()
            ),
            Self::Denied { path, source } => write!(
                f,
                "may not read the driver's account {}: {}; run as root",
                path.display(),
                sys::errno::describe(source)
            ),
            Self::NotMounted { looked_for, remedy } => {
                let places: Vec<_> = looked_for.iter().map(|path| path.display().to_string()).collect();
                write!(
                    f,
                    "the driver's account is not to be seen: looked for {}; as root: {remedy}",
                    places.join(", ")
                )
            }
            Self::NoDriver { why } => write!(f, "no binder driver that could account for itself: {why}"),
            Self::Os { path, source } => {
                write!(f, "reading {} failed: {}", path.display(), sys::errno::describe(source))
            }
        }
    }
}

impl std::error::Error for StateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Denied { source, .. } | Self::Os { source, .. } => Some(source),
            Self::Open(error) => Some(error),
            _ => None,
        }
    }
}

/// Mount points of a file system, from the machine's list of mounts.
fn mounted(root: &Root, kind: &str) -> Vec<PathBuf> {
    let mounts = root.text("proc/self/mounts").unwrap_or_default();
    let places = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, found) = (words.next()?, words.next()?);
        // The list writes a blank as \040; other characters it escapes are not found in such paths.
        (found == kind).then(|| PathBuf::from(place.replace("\\040", " ").trim_start_matches('/')))
    });
    places.collect()
}

/// Where debugfs and binderfs are usually mounted: copies of a machine's files often lack its list of mounts.
const USUAL: [&str; 2] = ["sys/kernel/debug/binder", "dev/binderfs/binder_logs"];

/// Folders that may hold the driver's files, best first: of the device's own instance of binderfs,
/// of debugfs, of any other instance, and the usual places.
fn folders(root: &Root, device: Option<&Path>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(device) = device {
        // Not `canonicalize`: a detached instance has no path but the one through `/proc/PID/fd`.
        let target = fs::read_link(device).map_or_else(
            |_| device.to_owned(),
            |target| device.parent().unwrap_or(Path::new("/")).join(target),
        );
        found.extend(target.parent().map(|instance| instance.join("binder_logs")));
    }
    found.extend(mounted(root, "debugfs").into_iter().map(|place| place.join("binder")));
    found.extend(mounted(root, "binder").into_iter().map(|place| place.join("binder_logs")));
    let unnamed = USUAL.map(PathBuf::from).into_iter().filter(|usual| !found.contains(usual));
    let unnamed: Vec<PathBuf> = unnamed.collect();
    found.extend(unnamed);
    found
}

/// Reads one of the driver's files of the machine with these files. `Ok(None)`: the driver accounts for itself but
/// keeps no such file.
///
/// # Errors
/// The missing mount or right.
pub fn read(root: &Root, device: Option<&Path>, which: StateFile) -> Result<Option<String>, StateError> {
    read_named(root, device, which.file_name())
}

/// [`read`] of the file with this name in the driver's folder.
fn read_named(root: &Root, device: Option<&Path>, name: &str) -> Result<Option<String>, StateError> {
    let looked_for = folders(root, device);
    let mut denied = None;
    for folder in &looked_for {
        let path = root.path(folder.join(name));
        // Whole: the state of a busy machine is long.
        match fs::read(&path) {
            Ok(text) => return Ok(Some(String::from_utf8_lossy(&text).into_owned())),
            Err(source) => match source.kind() {
                io::ErrorKind::PermissionDenied => denied = denied.or(Some((path, source))),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {}
                _ => return Err(StateError::Os { path, source }),
            },
        }
        // Not asked of the root: a copy of what was asked for needs no state, which is long.
        if root.folder().join(folder).join(StateFile::State.file_name()).exists() {
            return Ok(None);
        }
    }
    if let Some((path, source)) = denied {
        return Err(StateError::Denied { path, source });
    }
    let remedy = match Absence::find(root) {
        Absence::BinderfsNotMounted => {
            "mkdir -p /dev/binder-state && mount -t binder -o stats=global binder /dev/binder-state"
        }
        Absence::NoDeviceNode { .. } => "mount -t debugfs debugfs /sys/kernel/debug",
        why => return Err(StateError::NoDriver { why }),
    };
    let looked_for = looked_for.iter().map(|folder| Path::new("/").join(folder)).collect();
    Err(StateError::NotMounted { looked_for, remedy })
}

/// [`read`] for this machine; where nothing is mounted but binderfs may be, through a detached
/// instance of it that is gone again afterwards.
///
/// # Errors
/// See [`read`].
pub fn read_here(device: Option<&Path>, which: StateFile) -> Result<Option<String>, StateError> {
    read_named_here(device, which.file_name())
}

/// [`read_here`] of the file with this name in the driver's folder, as `state_hashed`.
///
/// # Errors
/// See [`read`].
pub fn read_named_here(device: Option<&Path>, name: &str) -> Result<Option<String>, StateError> {
    let root = Root::of_this_machine();
    match read_named(&root, device, name) {
        Err(StateError::NotMounted { looked_for, remedy }) => {
            match PrivateBinderfs::with_options(&[("stats", "global")]) {
                Ok(instance) => read_named(&root, Some(&instance.path("binder-control")), name),
                Err(_) => Err(StateError::NotMounted { looked_for, remedy }),
            }
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Fixture;

    fn read_in(
        machine: &Fixture,
        device: Option<&str>,
        which: StateFile,
    ) -> Result<Option<String>, StateError> {
        read(&machine.root(), device.map(|path| machine.path().join(path)).as_deref(), which)
    }

    const MOUNTS: &str = "debugfs /sys/kernel/debug debugfs rw 0 0\nbinder /dev/binderfs binder rw 0 0\n";

    #[test]
    fn the_devices_own_instance_comes_first_then_debugfs_then_others() {
        let all = Fixture::new(
            "state-all",
            &[
                ("proc/self/mounts", MOUNTS),
                ("sys/kernel/debug/binder/state", "debugfs"),
                ("dev/binderfs/binder_logs/state", "binderfs"),
                ("mine/binder_logs/state", "mine"),
                ("mine/binder", ""),
            ],
        );
        let link = all.path().join("dev/linked");
        std::os::unix::fs::symlink("../mine/binder", link).expect("link");
        for (device, want) in [
            (Some("mine/binder"), "mine"),
            (Some("dev/linked"), "mine"),
            (Some("dev/binderfs/binder"), "binderfs"),
            (Some("dev/other"), "debugfs"),
            (None, "debugfs"),
        ] {
            assert_eq!(
                read_in(&all, device, StateFile::State).expect("readable").as_deref(),
                Some(want),
                "{device:?}"
            );
        }
        assert_eq!(
            read_in(&all, None, StateFile::TransactionLog).expect("readable"),
            None,
            "no such file here"
        );
        let one = Fixture::new(
            "state-one",
            &[("proc/self/mounts", MOUNTS), ("dev/binderfs/binder_logs/stats", "binderfs")],
        );
        assert_eq!(read_in(&one, None, StateFile::Stats).expect("readable").as_deref(), Some("binderfs"));
    }

    #[test]
    fn where_nothing_is_to_be_seen_the_way_to_it_is_told() {
        for (name, files, want) in [
            ("no-logs", &[("proc/filesystems", "nodev\tbinder\n")][..], "-o stats=global"),
            ("no-debugfs", &[("proc/misc", " 58 binder\n")], "mount -t debugfs"),
            ("no-driver", &[("proc/sys/kernel/osrelease", "6.1.0\n")], "no binder driver"),
        ] {
            let machine = Fixture::new(&format!("state-{name}"), files);
            let text = read_in(&machine, None, StateFile::State).expect_err(name).to_string();
            assert!(text.contains(want), "{name}: {text}");
        }
        let folder = Fixture::new(
            "state-broken",
            &[("proc/self/mounts", MOUNTS), ("sys/kernel/debug/binder/state/file", "no file")],
        );
        let error = read_in(&folder, None, StateFile::State).expect_err("a folder is no file");
        assert!(matches!(error, StateError::Os { .. }) && error.to_string().contains("EISDIR"), "{error}");
    }

    #[test]
    fn a_missing_right_is_told_apart() {
        let source = io::Error::from_raw_os_error(13);
        let text = StateError::Denied { path: "/x/state".into(), source }.to_string();
        assert!(text.contains("/x/state") && text.contains("EACCES") && text.contains("root"), "{text}");
    }

    #[test]
    fn each_file_goes_by_its_word_and_its_name() {
        for (file, word, name) in FILES {
            assert_eq!((word.parse(), name.parse()), (Ok(file), Ok(file)));
            assert_eq!((file.to_string().as_str(), file.file_name()), (word, name));
        }
        assert!("".parse::<StateFile>().is_err());
    }
}
