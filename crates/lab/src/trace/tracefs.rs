//! Room: tracefs: where it is, and the files of one trace buffer.
//! Not here: which events to record (`categories`), what to put back (`changes`).
//! Facts: `Documentation/trace/ftrace.rst` (files, instances, clocks). It is mounted at `/sys/kernel/tracing`, in
//! older systems below debugfs, where Android's tools look.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Where tracefs may be.
pub(crate) const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Clocks by preference: the first counts on while the machine sleeps and is the same on all CPUs.
const CLOCKS: [&str; 3] = ["boot", "mono", "global"];

/// Why tracing cannot be used as wanted.
#[derive(Debug)]
pub enum Trouble {
    /// There is no tracefs to be seen.
    Missing {
        /// What was looked for, and what came of it.
        why: String,
    },
    /// It is there, and this user may not use it.
    Denied {
        /// Its folder, or the file in it.
        place: PathBuf,
    },
    /// Somebody else records in the buffer that all share.
    InUse {
        /// By what that is seen.
        sign: String,
    },
    /// What was asked for makes no sense.
    Usage(String),
    /// A file of tracefs, or another part of the system, refused.
    Refused {
        /// What was tried.
        tried: String,
        /// What came back.
        error: io::Error,
    },
    /// Writing what was recorded failed.
    Output {
        /// Where to.
        place: PathBuf,
        /// What came back.
        error: io::Error,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { why } => {
                write!(f, "no tracefs: {why}; as root: mount -t tracefs tracefs {}", PLACES[0])
            }
            Self::Denied { place } => {
                let whom = match sys::identity::effective_uid() {
                    0 => "which is refused even to root here, by lockdown or the container",
                    _ => "which this user has not; run it as root",
                };
                write!(f, "tracing needs the right to use {}, {whom}", place.display())
            }
            Self::InUse { sign } => write!(
                f,
                "somebody else is tracing in the buffer that all share ({sign}), and is left alone; end that first, or \
                 record in a buffer of one's own: binderperf trace record"
            ),
            Self::Usage(what) => f.write_str(what),
            Self::Refused { tried, error } => write!(f, "{tried}: {}", sys::errno::describe(error)),
            Self::Output { place, error } => {
                write!(f, "could not write {}: {}", place.display(), sys::errno::describe(error))
            }
        }
    }
}

impl std::error::Error for Trouble {}

impl Trouble {
    /// Whether somebody else has it in use at this moment.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Refused { error, .. } if error.kind() == io::ErrorKind::ResourceBusy)
    }

    fn of(tried: String, path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied { place: path.to_owned() },
            _ => Self::Refused { tried, error },
        }
    }
}

/// A mounted tracefs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracefs {
    root: PathBuf,
}

impl Tracefs {
    /// Finds it. Root gets it mounted where the kernel has made a folder for it; it stays mounted.
    ///
    /// # Errors
    /// [`Trouble::Missing`], [`Trouble::Denied`].
    pub fn find() -> Result<Self, Trouble> {
        match Self::among(&PLACES.map(Path::new)) {
            Err(Trouble::Missing { why }) => mount(&why),
            other => other,
        }
    }

    /// The first of these folders with a switch for tracing.
    pub(super) fn among(places: &[&Path]) -> Result<Self, Trouble> {
        let mut denied = None;
        for place in places {
            match fs::metadata(place.join("tracing_on")) {
                Ok(_) => return Ok(Self { root: place.to_path_buf() }),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    denied.get_or_insert_with(|| place.to_path_buf());
                }
                Err(_) => {}
            }
        }
        let places = places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>();
        Err(match denied {
            Some(place) => Trouble::Denied { place },
            None => Trouble::Missing { why: format!("no tracing_on in {}", places.join(" or ")) },
        })
    }

    /// Its folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The buffer that everybody shares.
    #[must_use]
    pub fn global(&self) -> Buffer {
        Buffer { folder: self.root.clone() }
    }

    /// Makes a buffer of one's own.
    ///
    /// # Errors
    /// [`Trouble::Denied`]; [`Trouble::Refused`]: the kernel has no instances, no memory, or one of that name.
    pub fn instance(&self, name: &str) -> Result<Instance, Trouble> {
        let folder = self.root.join("instances").join(name);
        fs::create_dir(&folder).map_err(|error| {
            Trouble::of(format!("making the tracing instance {}", folder.display()), &folder, error)
        })?;
        Ok(Instance { buffer: Buffer { folder }, removed: false })
    }

    /// Removes instances of this prefix whose maker, told by `is_dead` from the rest of the name, is gone; gives
    /// the names of those that could not be removed.
    pub fn sweep(&self, prefix: &str, is_dead: impl Fn(&str) -> bool) -> Vec<String> {
        let mut left = Vec::new();
        for entry in fs::read_dir(self.root.join("instances")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.strip_prefix(prefix).is_some_and(&is_dead) {
                let buffer = Buffer { folder: entry.path() };
                // What cannot be removed at least stops.
                let _ = buffer.write("tracing_on", "0");
                if fs::remove_dir(entry.path()).is_err() {
                    left.push(name);
                }
            }
        }
        left
    }
}

fn mount(why: &str) -> Result<Tracefs, Trouble> {
    let point = Path::new(PLACES[0]);
    if sys::identity::effective_uid() != 0 || !point.is_dir() {
        return Err(Trouble::Missing { why: why.to_owned() });
    }
    match sys::mount::mount("tracefs", point, "") {
        Ok(()) => Tracefs::among(&[point]),
        Err(error) => {
            Err(Trouble::Missing { why: format!("{why}, and mounting it: {}", sys::errno::describe(&error)) })
        }
    }
}

/// Reads a file of tracefs. `events/header_page` is in the first read or not at all, so that must be a large one.
///
/// # Errors
/// The system's.
pub fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut text, mut room) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut room) {
            Ok(0) => return Ok(text),
            Ok(count) => text.extend_from_slice(room.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The files of one trace buffer: everybody's, or an instance's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    folder: PathBuf,
}

impl Buffer {
    /// Of this folder.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Where its files are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it has a file of this name.
    #[must_use]
    pub fn has(&self, knob: &str) -> bool {
        self.folder.join(knob).exists()
    }

    /// What a file says, without the end of its line.
    ///
    /// # Errors
    /// [`Trouble::Denied`], [`Trouble::Refused`].
    pub fn read(&self, knob: &str) -> Result<String, Trouble> {
        let path = self.folder.join(knob);
        let text = fs::read_to_string(&path)
            .map_err(|error| Trouble::of(format!("reading {}", path.display()), &path, error))?;
        Ok(text.trim_end().to_owned())
    }

    /// Writes to a file, in one system call.
    ///
    /// # Errors
    /// [`Trouble::Denied`], [`Trouble::Refused`].
    pub fn write(&self, knob: &str, value: &str) -> Result<(), Trouble> {
        let path = self.folder.join(knob);
        // Never made: what is not there, this kernel does not have. Opening it to be emptied is what empties
        // `trace` and the filters.
        let file = File::options().write(true).truncate(true).open(&path);
        file.and_then(|mut file| file.write_all(format!("{value}\n").as_bytes()))
            .map_err(|error| Trouble::of(format!("writing {value:?} to {}", path.display()), &path, error))
    }

    /// Forgets what was recorded.
    ///
    /// # Errors
    /// [`Trouble::Denied`], [`Trouble::Refused`].
    pub fn clear(&self) -> Result<(), Trouble> {
        self.write("trace", "")
    }

    /// The clock in use, and the one to prefer: boot, mono or global, whichever comes first in this kernel.
    ///
    /// # Errors
    /// [`Trouble::Denied`], [`Trouble::Refused`].
    pub fn clocks(&self) -> Result<(String, Option<&'static str>), Trouble> {
        let text = self.read("trace_clock")?;
        let in_use = chosen_clock(&text).unwrap_or("local").to_owned();
        let has =
            |clock: &&&str| text.split_whitespace().any(|word| word.trim_matches(['[', ']']) == **clock);
        Ok((in_use, CLOCKS.iter().find(has).copied()))
    }

    /// What a reader of `trace_pipe_raw` gets at a time, in bytes: a page, where the kernel does not say other.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        let kb = self.read("buffer_subbuf_size_kb").ok().and_then(|text| text.parse::<usize>().ok());
        // Header sizes are in `events/header_page`: `field: char data; offset:16; size:4080; signed:1;`
        let from_header = || {
            let text = read_whole(&self.events_folder().join("header_page")).ok()?;
            let text = String::from_utf8_lossy(&text);
            let line = text.lines().find(|line| line.contains(" data;"))?;
            let number = |key: &str| line.split(key).nth(1)?.split(';').next()?.trim().parse::<usize>().ok();
            Some(number("offset:")? + number("size:")?)
        };
        kb.map(|kb| kb * 1024).or_else(from_header).unwrap_or(4096)
    }

    /// Where its events are.
    #[must_use]
    pub fn events_folder(&self) -> PathBuf {
        self.folder.join("events")
    }

    /// The CPUs with a buffer, sorted.
    ///
    /// # Errors
    /// [`Trouble::Denied`], [`Trouble::Refused`].
    pub fn cpus(&self) -> Result<Vec<u32>, Trouble> {
        let path = self.folder.join("per_cpu");
        let entries = fs::read_dir(&path)
            .map_err(|error| Trouble::of(format!("listing {}", path.display()), &path, error))?;
        let number = |name: String| name.strip_prefix("cpu")?.parse().ok();
        let mut cpus: Vec<u32> = entries
            .flatten()
            .filter_map(|entry| number(entry.file_name().to_string_lossy().into_owned()))
            .collect();
        cpus.sort_unstable();
        Ok(cpus)
    }
}

/// The word in brackets.
fn chosen_clock(text: &str) -> Option<&str> {
    text.split('[').nth(1)?.split(']').next()
}

/// A buffer of one's own, gone when dropped.
#[derive(Debug)]
pub struct Instance {
    buffer: Buffer,
    removed: bool,
}

impl Instance {
    /// Its files.
    #[must_use]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Removes it, with what it holds.
    ///
    /// # Errors
    /// It, and [`Trouble::Refused`]; with `EBUSY` somebody has one of its files open.
    pub fn remove(mut self) -> Result<(), (Self, Trouble)> {
        let folder = self.buffer.folder.display().to_string();
        match fs::remove_dir(&self.buffer.folder) {
            Ok(()) => {
                self.removed = true;
                Ok(())
            }
            Err(error) => Err((
                self,
                Trouble::Refused { tried: format!("removing the tracing instance {folder}"), error },
            )),
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.removed {
            let _ = self.buffer.write("tracing_on", "0");
            // What cannot be removed now, a later start's sweep removes.
            let _ = fs::remove_dir(&self.buffer.folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracefs_that_is_not_there_is_said_with_what_to_do() {
        let nowhere = Path::new("/no/such/folder");
        let trouble = Tracefs::among(&[nowhere]).expect_err("not there").to_string();
        assert!(trouble.contains("/no/such/folder") && trouble.contains("mount -t tracefs"), "{trouble}");
    }

    #[test]
    fn the_clock_in_brackets_is_in_use_and_boot_is_preferred() {
        assert_eq!(chosen_clock("local [global] boot"), Some("global"));
        let folder = std::env::temp_dir().join(format!("binderperf-clocks-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let buffer = Buffer::at(&folder);
        for (text, want) in [
            ("[local] global counter uptime perf mono mono_raw boot tai\n", ("local", Some("boot"))),
            ("local [global] mono_raw mono\n", ("global", Some("mono"))),
            ("local [global] uptime\n", ("global", Some("global"))),
            ("[local]\n", ("local", None)),
        ] {
            fs::write(folder.join("trace_clock"), text).expect("a file");
            let (in_use, preferred) = buffer.clocks().expect("readable");
            assert_eq!((in_use.as_str(), preferred), want);
        }
        assert!(buffer.write("no_such_knob", "1").is_err() && !buffer.has("no_such_knob"), "nothing is made");
        fs::remove_dir_all(&folder).expect("removed");
    }
}
