//! Trace instances: making one, whose each is, and removing those that killed recorders left.
//! Not here: the files of an instance (`tracefs`), what is recorded in it (`record`).
//! Facts: `Documentation/trace/ftrace.rst` (instances; `EBUSY` from `rmdir` while one of its files is open); `flock(2)`: a lock
//! ends with the process that holds it; `pid_namespaces(7)`.
//!
//! A recorder's instance is named after its process, and the recorder holds a lock on the instance's folder. Where the
//! lock is free and the process has ended, the recorder was killed. Instances with other names are somebody else's: they
//! are listed, and never changed.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sys::file_lock::lock_within;

use crate::process::Process;
use crate::tracefs::{Buffer, TraceError, Tracefs};

/// Prefix of the name of a recorder's instance; [`Recorder::suffix`] follows.
const PREFIX: &str = "binderperf-record-";

/// Longest wait for the lock of a new instance, which others may open where tracefs is readable for all.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// Age below which the instance of a recorder in another pid namespace counts as in use: it may not be locked yet.
const YOUNG: Duration = Duration::from_secs(10);

/// Pause between two attempts to remove an instance.
const PAUSE: Duration = Duration::from_millis(50);

/// The process that an instance is named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Recorder {
    process: Process,
    /// Number of its pid namespace; `None` if unknown.
    namespace: Option<u64>,
}

impl Recorder {
    fn own() -> Self {
        Self { process: Process::own(), namespace: own_namespace() }
    }

    /// `PID-START-NAMESPACE`, the last where it is known.
    fn suffix(&self) -> String {
        let namespace = self.namespace.map(|number| format!("-{number}")).unwrap_or_default();
        format!("{}{namespace}", self.process.suffix())
    }

    /// Parses the name of an instance; `None` if it is no recorder's.
    fn of_name(name: &str) -> Option<Self> {
        let suffix = name.strip_prefix(PREFIX)?;
        let second = suffix.match_indices('-').nth(1).map(|(at, _)| at);
        let (process, namespace) = match second {
            Some(at) => (&suffix[..at], Some(suffix[at + 1..].parse().ok()?)),
            None => (suffix, None),
        };
        Some(Self { process: Process::of_suffix(process)?, namespace })
    }

    /// Whether the recorder of the instance in this folder still runs, as far as this process can tell.
    fn runs(&self, folder: &Path) -> bool {
        let visible = self.namespace.is_none() || self.namespace == own_namespace();
        if visible && !self.process.has_ended() {
            return true;
        }
        match File::open(folder).map(|folder| folder.try_lock_shared()) {
            Ok(Ok(())) => !visible && is_young(folder),
            Ok(Err(TryLockError::WouldBlock)) => true,
            // A tracefs without locks, or one that may be listed only: the process can tell.
            Ok(Err(TryLockError::Error(_))) | Err(_) => !visible,
        }
    }
}

/// The number of this process's pid namespace.
fn own_namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid").ok().map(|file| file.ino())
}

fn is_young(folder: &Path) -> bool {
    let made = fs::metadata(folder).and_then(|folder| folder.modified());
    // A time in the future is of a clock that was set back.
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age < YOUNG))
}

/// Whose a trace instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A recorder of this program that runs.
    Running {
        /// Its pid, in its own pid namespace.
        pid: u32,
    },
    /// A recorder of this program that was killed.
    Killed {
        /// Its pid, in its own pid namespace.
        pid: u32,
    },
    /// Another program.
    Other,
}

/// A trace instance that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: Owner,
    /// Its buffer.
    pub buffer: Buffer,
}

/// The pid in the name of an instance that a recorder of this program made; `None` for other names.
#[must_use]
pub fn recorder_pid(name: &str) -> Option<u32> {
    Recorder::of_name(name).map(|recorder| recorder.process.pid)
}

/// All instances, sorted by name; none where tracefs has none or may not be read.
#[must_use]
pub fn list(tracefs: &Tracefs) -> Vec<Found> {
    let entries = fs::read_dir(folder(tracefs)).into_iter().flatten().flatten();
    let mut found: Vec<Found> = entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let owner = match Recorder::of_name(&name) {
                Some(recorder) if recorder.runs(&entry.path()) => {
                    Owner::Running { pid: recorder.process.pid }
                }
                Some(recorder) => Owner::Killed { pid: recorder.process.pid },
                None => Owner::Other,
            };
            Found { name, owner, buffer: Buffer::at(&entry.path()) }
        })
        .collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

fn folder(tracefs: &Tracefs) -> PathBuf {
    tracefs.root().join("instances")
}

/// The instance of a killed recorder, after the attempt to remove it.
#[derive(Debug)]
pub struct Leftover {
    /// Its name.
    pub name: String,
    /// The pid of its recorder, in the recorder's pid namespace.
    pub pid: u32,
    /// Why it is still there; it no longer records then.
    pub stays: Option<TraceError>,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, pid, stays } = self;
        match stays {
            None => {
                write!(f, "removed the trace instance {name}, which a killed recorder (process {pid}) left")
            }
            Some(why) => write!(
                f,
                "stopped the trace instance {name}, which a killed recorder (process {pid}) left; the next command tries to \
                 remove it: {why}"
            ),
        }
    }
}

/// Removes the instances of killed recorders. Retries this long where a file of one is still open.
#[must_use]
pub fn remove_leftovers(tracefs: &Tracefs, patience: Duration) -> Vec<Leftover> {
    let leftover = |found: Found| {
        let Owner::Killed { pid } = found.owner else { return None };
        let buffer = &found.buffer;
        // Without the right to stop it, there is nothing to do or to say.
        if let Err(TraceError::Denied { .. }) = buffer.write("tracing_on", "0") {
            return None;
        }
        // One that cannot be removed costs nothing any more.
        for (knob, value) in [("events/enable", "0"), ("buffer_size_kb", "1")] {
            let _ = buffer.write(knob, value);
        }
        let stays = match remove(buffer.folder(), patience) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Some(TraceError::refused(format!("removing {}", buffer.folder().display()))(error))
            }
            _ => None,
        };
        Some(Leftover { name: found.name, pid, stays })
    };
    list(tracefs).into_iter().filter_map(leftover).collect()
}

/// Removes an instance; retries this long while it is busy.
fn remove(folder: &Path, patience: Duration) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && start.elapsed() < patience => {
                std::thread::sleep(PAUSE);
            }
            // Another process removes it at this moment.
            Err(error) if error.raw_os_error() == Some(sys::errno::ENODEV) => return Ok(()),
            result => return result,
        }
    }
}

/// This process's trace instance, removed when dropped.
#[derive(Debug)]
pub struct Instance {
    buffer: Buffer,
    removed: bool,
    /// Locked while this process lives.
    _lock: File,
}

impl Instance {
    /// Makes it.
    ///
    /// # Errors
    /// [`TraceError::Denied`]; [`TraceError::Refused`]: no support for instances, no memory, or this process has one.
    pub fn new(tracefs: &Tracefs) -> Result<Self, TraceError> {
        let folder = folder(tracefs).join(format!("{PREFIX}{}", Recorder::own().suffix()));
        let failed = |tried: &str, error| {
            TraceError::of(format!("{tried} the trace instance {}", folder.display()), &folder, error)
        };
        fs::create_dir(&folder).map_err(|error| failed("making", error))?;
        let locked = File::open(&folder).and_then(|lock| {
            // For a moment somebody who looks whether this process lives may hold it.
            lock_within(&lock, LOCK_PATIENCE)?;
            Ok(lock)
        });
        match locked {
            Ok(lock) => Ok(Self { buffer: Buffer::at(&folder), removed: false, _lock: lock }),
            Err(error) => {
                let _ = fs::remove_dir(&folder);
                Err(failed("locking", error))
            }
        }
    }

    /// The instance's buffer.
    #[must_use]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Removes the instance and its events. Retries this long while one of its files is open.
    ///
    /// # Errors
    /// [`TraceError::Refused`]; `EBUSY`: one of its files is open.
    pub fn remove(mut self, patience: Duration) -> Result<(), TraceError> {
        let folder = self.buffer.folder().to_owned();
        remove(&folder, patience)
            .map_err(TraceError::refused(format!("removing the trace instance {}", folder.display())))?;
        self.removed = true;
        Ok(())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.removed {
            let _ = self.buffer.write("tracing_on", "0");
            // One that cannot be removed now is removed by a later command.
            let _ = fs::remove_dir(self.buffer.folder());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Folder;

    /// A folder that looks like a tracefs with this instance.
    fn with(name: &str, instance: &str) -> (Folder, Tracefs) {
        let folder = Folder::new(name, &[("tracing_on", "1\n")]);
        fs::create_dir_all(folder.join("instances").join(instance)).expect("a folder");
        let tracefs = Tracefs::among(&[&folder]).expect("it has tracing_on");
        (folder, tracefs)
    }

    fn owner(tracefs: &Tracefs) -> Owner {
        list(tracefs).pop().expect("one instance").owner
    }

    /// A recorder whose process has ended, with a pid that another one has now.
    fn ended() -> Recorder {
        let process = Process::of_suffix(&format!("{}-1", std::process::id())).expect("a process");
        Recorder { process, ..Recorder::own() }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let recorder = Recorder { process: ended().process, namespace: Some(7) };
        for recorder in [recorder, Recorder { namespace: None, ..recorder }] {
            assert_eq!(Recorder::of_name(&format!("{PREFIX}{}", recorder.suffix())), Some(recorder));
        }
        for other in [
            "vendor",
            "binderperf-test-1",
            "binderperf-record-x",
            "binderperf-record-1-2-x",
            "binderperf-record-1",
        ] {
            assert_eq!(Recorder::of_name(other), None, "{other}");
        }
    }

    #[test]
    fn a_recorder_runs_while_its_process_does_and_a_pid_used_again_is_another() {
        let (_folder, tracefs) = with("instances-own", &format!("{PREFIX}{}", Recorder::own().suffix()));
        let pid = std::process::id();
        assert_eq!(owner(&tracefs), Owner::Running { pid });
        let (_folder, tracefs) = with("instances-reused", &format!("{PREFIX}{}", ended().suffix()));
        assert_eq!(owner(&tracefs), Owner::Killed { pid });
    }

    #[test]
    fn a_lock_tells_of_a_recorder_whose_process_cannot_be_seen() {
        let elsewhere = Recorder { namespace: Some(7), ..ended() };
        let name = format!("{PREFIX}{}", elsewhere.suffix());
        let (folder, tracefs) = with("instances-lock", &name);
        let pid = std::process::id();
        assert_eq!(owner(&tracefs), Owner::Running { pid }, "it may have been made just now");
        let place = File::open(folder.join("instances").join(&name)).expect("a folder");
        let old = std::time::SystemTime::now() - 2 * YOUNG;
        place.set_modified(old).expect("one's own");
        assert_eq!(owner(&tracefs), Owner::Killed { pid });
        place.lock().expect("free");
        assert_eq!(owner(&tracefs), Owner::Running { pid });
    }

    #[test]
    fn leftovers_are_removed_and_nothing_else() {
        let (folder, tracefs) = with("instances-sweep", &format!("{PREFIX}{}", ended().suffix()));
        let own = format!("{PREFIX}{}", Recorder::own().suffix());
        for name in [own.as_str(), "vendor"] {
            fs::create_dir(folder.join("instances").join(name)).expect("a folder");
        }
        let gone = remove_leftovers(&tracefs, Duration::ZERO);
        assert!(matches!(gone.as_slice(), [Leftover { stays: None, .. }]), "{gone:?}");
        let left: Vec<String> = list(&tracefs).into_iter().map(|found| found.name).collect();
        assert_eq!(left, [own.as_str(), "vendor"]);
    }
}
