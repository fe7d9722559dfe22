//! Tracefs: its mount point, and the files of a trace buffer.
//! Not here: which events to record (`categories`), what to restore (`changes`), private buffers (`instances`).
//! Facts: `Documentation/trace/ftrace.rst` (files, clocks); `MemAvailable`,
//! `proc_meminfo(5)`. Mounted at `/sys/kernel/tracing`; older
//! systems, and Android's tools, use debugfs.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Possible mount points.
pub(crate) const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Clocks, best first. `boot` also counts while the machine is suspended and is the same on all CPUs.
const CLOCKS: [&str; 3] = ["boot", "mono", "global"];

/// Why tracing cannot be used as requested.
#[derive(Debug)]
pub enum TraceError {
    /// No tracefs was found.
    Missing {
        /// The attempts, and their results.
        why: String,
    },
    /// Tracefs exists but this user has no access.
    Denied {
        /// The folder or file that was denied.
        place: PathBuf,
    },
    /// Another tool records in the shared buffer.
    InUse {
        /// The evidence for that.
        sign: String,
    },
    /// The request is invalid.
    Usage(String),
    /// A tracefs operation failed.
    Refused {
        /// The operation.
        tried: String,
        /// The error.
        error: io::Error,
    },
    /// Perfetto's recorder is missing or failed.
    Recorder(String),
    /// Writing the recording failed.
    Output {
        /// The output file.
        place: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { why } => {
                write!(f, "no tracefs: {why}; as root: mount -t tracefs tracefs {}", PLACES[0])
            }
            Self::Denied { place } => {
                let reason = match sys::identity::effective_uid() {
                    0 => "lockdown or the container denies it even to root",
                    _ => "run as root",
                };
                write!(f, "no access to {}, which tracing needs: {reason}", place.display())
            }
            Self::InUse { sign } => write!(
                f,
                "another tool is tracing in the shared buffer ({sign}); stop it first, or \
                 record in a private buffer: binderperf trace record"
            ),
            Self::Usage(what) | Self::Recorder(what) => f.write_str(what),
            Self::Refused { tried, error } => write!(f, "{tried}: {}", sys::errno::describe(error)),
            Self::Output { place, error } => {
                write!(f, "could not write {}: {}", place.display(), sys::errno::describe(error))
            }
        }
    }
}

impl std::error::Error for TraceError {}

impl TraceError {
    /// Maps the error of an operation.
    pub(crate) fn refused(tried: impl Into<String>) -> impl Fn(io::Error) -> Self {
        let tried = tried.into();
        move |error| Self::Refused { tried: tried.clone(), error }
    }

    /// Maps the error of writing this file.
    pub(crate) fn output(place: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |error| Self::Output { place: place.to_owned(), error }
    }

    /// The error of an operation on this file or folder.
    pub(crate) fn of(tried: String, path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied { place: path.to_owned() },
            _ => Self::Refused { tried, error },
        }
    }
}

/// Size in KB of the buffer of each of these CPUs, so that all together have `all_kb` and each is within `cpu_kb`.
#[must_use]
pub fn divided_kb(all_kb: u64, cpus: usize, cpu_kb: RangeInclusive<u64>) -> u64 {
    (all_kb / cpus.max(1) as u64).clamp(*cpu_kb.start(), *cpu_kb.end())
}

/// Checks a size before it is set: the kernel would otherwise allocate all available memory.
///
/// # Errors
/// [`TraceError::Usage`].
pub fn check_size(kb: u64, cpus: usize) -> Result<(), TraceError> {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = host::parse::kibibytes(&memory, "MemAvailable").map(|bytes| bytes / 1024);
    fits(kb, cpus, available)
}

fn fits(kb: u64, cpus: usize, available_kb: Option<u64>) -> Result<(), TraceError> {
    if kb == 0 {
        return Err(TraceError::Usage("a trace buffer of 0 KB records nothing".to_owned()));
    }
    let all = kb.saturating_mul(u64::try_from(cpus).unwrap_or(u64::MAX));
    match available_kb {
        Some(available) if all > available / 2 => Err(TraceError::Usage(format!(
            "{kb} KB of trace buffer for each of {cpus} CPUs exceed half of the {available} KB of available memory; use at \
             most {} KB",
            available / 2 / cpus.max(1) as u64
        ))),
        _ => Ok(()),
    }
}

/// A mounted tracefs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracefs {
    root: PathBuf,
}

impl Tracefs {
    /// Finds tracefs. As root it is mounted if necessary, and stays mounted.
    ///
    /// # Errors
    /// [`TraceError::Missing`], [`TraceError::Denied`].
    pub fn find() -> Result<Self, TraceError> {
        match Self::mounted() {
            Err(TraceError::Missing { why }) => mount(&why),
            other => other,
        }
    }

    /// Finds a tracefs that is mounted, and mounts none.
    ///
    /// # Errors
    /// [`TraceError::Missing`], [`TraceError::Denied`].
    pub fn mounted() -> Result<Self, TraceError> {
        Self::among(&PLACES.map(Path::new))
    }

    /// The first of these folders that has a `tracing_on` file.
    pub(super) fn among(places: &[&Path]) -> Result<Self, TraceError> {
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
            Some(place) => TraceError::Denied { place },
            None => TraceError::Missing { why: format!("no tracing_on in {}", places.join(" or ")) },
        })
    }

    /// The mount point.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The shared (global) buffer.
    #[must_use]
    pub fn global(&self) -> Buffer {
        Buffer { folder: self.root.clone() }
    }
}

fn mount(why: &str) -> Result<Tracefs, TraceError> {
    let point = Path::new(PLACES[0]);
    if sys::identity::effective_uid() != 0 || !point.is_dir() {
        return Err(TraceError::Missing { why: why.to_owned() });
    }
    match sys::kernel::mount("tracefs", point, "") {
        Ok(()) => Tracefs::among(&[point]),
        Err(error) => Err(TraceError::Missing {
            why: format!("{why}, and mounting it: {}", sys::errno::describe(&error)),
        }),
    }
}

/// Reads a tracefs file with large reads: `events/header_page` does not support partial reads.
///
/// # Errors
/// The read error.
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

/// The files of one trace buffer, global or of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    folder: PathBuf,
}

impl Buffer {
    /// The buffer in this folder.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The buffer's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the buffer has this file.
    #[must_use]
    pub fn has(&self, knob: &str) -> bool {
        self.folder.join(knob).exists()
    }

    /// The content of a file, without trailing white space.
    ///
    /// # Errors
    /// [`TraceError::Denied`], [`TraceError::Refused`].
    pub fn read(&self, knob: &str) -> Result<String, TraceError> {
        let path = self.folder.join(knob);
        let text = fs::read_to_string(&path)
            .map_err(|error| TraceError::of(format!("reading {}", path.display()), &path, error))?;
        Ok(text.trim_end().to_owned())
    }

    /// Writes a file in one system call.
    ///
    /// # Errors
    /// [`TraceError::Denied`], [`TraceError::Refused`].
    pub fn write(&self, knob: &str, value: &str) -> Result<(), TraceError> {
        let path = self.folder.join(knob);
        // Not created if missing: then this kernel lacks the feature. Truncation is what clears `trace` and the
        // filters.
        let file = File::options().write(true).truncate(true).open(&path);
        file.and_then(|mut file| file.write_all(format!("{value}\n").as_bytes()))
            .map_err(|error| TraceError::of(format!("writing {value:?} to {}", path.display()), &path, error))
    }

    /// Clears the recorded events.
    ///
    /// # Errors
    /// [`TraceError::Denied`], [`TraceError::Refused`].
    pub fn clear(&self) -> Result<(), TraceError> {
        self.write("trace", "")
    }

    /// The clock in use, and the preferred one: the first of boot, mono and global that this kernel has.
    ///
    /// # Errors
    /// [`TraceError::Denied`], [`TraceError::Refused`].
    pub fn clocks(&self) -> Result<(String, Option<&'static str>), TraceError> {
        let text = self.read("trace_clock")?;
        let in_use = chosen_clock(&text).unwrap_or("local").to_owned();
        let has =
            |clock: &&&str| text.split_whitespace().any(|word| word.trim_matches(['[', ']']) == **clock);
        Ok((in_use, CLOCKS.iter().find(has).copied()))
    }

    /// Size of one read of `trace_pipe_raw`, in bytes; one page unless the kernel reports otherwise.
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

    /// The folder of the buffer's events.
    #[must_use]
    pub fn events_folder(&self) -> PathBuf {
        self.folder.join("events")
    }

    /// The CPUs that have a buffer, sorted.
    ///
    /// # Errors
    /// [`TraceError::Denied`], [`TraceError::Refused`].
    pub fn cpus(&self) -> Result<Vec<u32>, TraceError> {
        let path = self.folder.join("per_cpu");
        let entries = fs::read_dir(&path)
            .map_err(|error| TraceError::of(format!("listing {}", path.display()), &path, error))?;
        let number = |name: String| name.strip_prefix("cpu")?.parse().ok();
        let mut cpus: Vec<u32> = entries
            .flatten()
            .filter_map(|entry| number(entry.file_name().to_string_lossy().into_owned()))
            .collect();
        cpus.sort_unstable();
        Ok(cpus)
    }
}

/// The word in brackets: the selected clock.
pub(crate) fn chosen_clock(text: &str) -> Option<&str> {
    text.split('[').nth(1)?.split(']').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Folder;

    #[test]
    fn a_tracefs_that_is_not_there_is_said_with_what_to_do() {
        let nowhere = Path::new("/no/such/folder");
        let error = Tracefs::among(&[nowhere]).expect_err("not there").to_string();
        assert!(error.contains("/no/such/folder") && error.contains("mount -t tracefs"), "{error}");
    }

    #[test]
    fn the_clock_in_brackets_is_in_use_and_boot_is_preferred() {
        assert_eq!(chosen_clock("local [global] boot"), Some("global"));
        let folder = Folder::new("clocks", &[]);
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
    }

    #[test]
    fn buffers_share_a_size_within_limits() {
        for (cpus, kb) in [(0, 800), (1, 800), (4, 250), (5, 200), (64, 100)] {
            assert_eq!(divided_kb(1000, cpus, 100..=800), kb, "{cpus} CPUs");
        }
    }

    #[test]
    fn sizes_that_would_take_the_machine_are_refused() {
        assert!(fits(8000, 8, Some(1_000_000)).is_ok());
        assert!(fits(8000, 8, None).is_ok());
        for (kb, cpus) in [(0, 1), (600_000, 1), (70_000, 8), (u64::MAX, 8)] {
            assert!(matches!(fits(kb, cpus, Some(1_000_000)), Err(TraceError::Usage(_))), "{kb}");
        }
    }
}
