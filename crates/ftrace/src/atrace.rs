//! Recording in the shared buffer, started and stopped as Android's `atrace` does, but with all settings restored
//! afterwards.
//! Not here: command-line flags (`cli`), recording in a private instance (`record`).
//! Facts: frameworks/native `cmds/atrace/atrace.cpp` (Android 14): order of steps, clock, clock sync marker, dump.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::categories::{self, Category};
use super::changes::{Changes, state_file};
use super::process::Process;
use super::tracefs::{Buffer, TraceError, Tracefs, check_size};

/// Events and buffers of a recording.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Categories of kernel events.
    pub categories: Vec<&'static Category>,
    /// Kernel functions to trace.
    pub functions: Vec<String>,
    /// Buffer size per CPU, in KB.
    pub buffer_kb: u64,
    /// Whether new events overwrite the oldest ones in a full buffer.
    pub overwrite: bool,
    /// Whether the recording continues after this process ends.
    pub lasting: bool,
}

/// The shared buffer and the file with its former settings.
#[derive(Debug)]
pub struct Session {
    buffer: Buffer,
    state: PathBuf,
}

const FUNCTION_OPTIONS: [&str; 4] =
    ["funcgraph-abstime", "funcgraph-cpu", "funcgraph-proc", "funcgraph-flat"];

impl Session {
    /// A session on this machine's tracefs.
    ///
    /// # Errors
    /// [`TraceError::Missing`], [`TraceError::Denied`].
    pub fn new() -> Result<Self, TraceError> {
        Ok(Self { buffer: Tracefs::find()?.global(), state: state_file() })
    }

    /// The shared buffer.
    #[must_use]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Starts recording with an empty buffer; returns notes about incomplete categories.
    ///
    /// # Errors
    /// [`TraceError::InUse`]: another tool records. [`TraceError::Usage`]: the buffer is too large, or the kernel
    /// lacks a function. Others: tracefs failed, and all changes were restored.
    pub fn start(&self, plan: &Plan) -> Result<Vec<String>, TraceError> {
        check_size(plan.buffer_kb, self.buffer.cpus()?.len())?;
        let keeper = if plan.lasting { None } else { Some(Process::own()) };
        let mut changes = match self.known()? {
            Some(changes) => changes,
            None => {
                self.refuse_if_in_use()?;
                Changes::none(&self.buffer, keeper)
            }
        };
        let found = categories::find(&self.buffer, &plan.categories);
        let begun = self.begin(plan, &found.events, &mut changes);
        if let Err(error) = begun {
            // The first error is reported.
            let _ = changes.put_back(&self.state);
            return Err(error);
        }
        let mut notes = found.notes;
        // Kernel events are recorded even if this fails.
        let told = if plan.categories.iter().any(|category| category.is_of_binder()) {
            changes.announce(&self.buffer, &self.state)
        } else {
            changes.withdraw(&self.state)
        };
        notes.extend(told.err().map(|error| format!("binder_driver: {error}")));
        Ok(notes)
    }

    /// The saved changes of an earlier `--async_start`; those of a crashed recorder are restored first.
    fn known(&self) -> Result<Option<Changes>, TraceError> {
        match Changes::load(&self.state)? {
            Some(changes) if changes.are_left_to_a_command() => Ok(Some(changes)),
            Some(changes) => {
                refuse_if_held(&changes)?;
                changes.put_back(&self.state).map(|()| None)
            }
            None => Ok(None),
        }
    }

    fn refuse_if_in_use(&self) -> Result<(), TraceError> {
        match use_of(&self.buffer)? {
            Some(sign) => Err(TraceError::InUse { sign }),
            None => Ok(()),
        }
    }

    fn begin(&self, plan: &Plan, events: &[String], changes: &mut Changes) -> Result<(), TraceError> {
        let buffer = &self.buffer;
        let mut values = vec![("tracing_on".to_owned(), "0".to_owned())];
        let mut set = |knob: &str, value: &str| values.push((knob.to_owned(), value.to_owned()));
        set("options/overwrite", if plan.overwrite { "1" } else { "0" });
        let (in_use, preferred) = buffer.clocks()?;
        if let Some(clock) = preferred.filter(|clock| *clock != in_use) {
            set("trace_clock", clock);
        }
        set("buffer_size_kb", &plan.buffer_kb.to_string());
        for option in ["options/print-tgid", "options/record-tgid"].iter().filter(|option| buffer.has(option))
        {
            set(option, "1");
        }
        let already = enabled(buffer)?;
        for event in already.iter().filter(|event| !events.contains(event)) {
            set(&enable(event), "0");
        }
        for event in events {
            set(&enable(event), "1");
        }
        changes.make(buffer, &values, &self.state)?;
        self.record_functions(&plan.functions, changes)?;
        // CPUs start recording one by one; events from before the last one started are cleared.
        changes.make(buffer, &[("tracing_on".to_owned(), "1".to_owned())], &self.state)?;
        buffer.clear()?;
        self.mark_clocks();
        Ok(())
    }

    fn record_functions(&self, functions: &[String], changes: &mut Changes) -> Result<(), TraceError> {
        if functions.is_empty() {
            return Ok(());
        }
        let buffer = &self.buffer;
        let available = buffer.read("available_tracers")?;
        // With durations if possible, else with start times only.
        let tracer = ["function_graph", "function"]
            .into_iter()
            .find(|tracer| {
                available.split(' ').any(|word| word == *tracer) && buffer.has("set_ftrace_filter")
            })
            .ok_or_else(|| TraceError::Usage("-k: this kernel records no calls of functions".to_owned()))?;
        let filter = ("set_ftrace_filter".to_owned(), functions.join("\n"));
        changes.make(buffer, &[filter], &self.state).map_err(|error| match error {
            TraceError::Refused { error, .. } if error.kind() == io::ErrorKind::InvalidInput => {
                TraceError::Usage(format!("-k: this kernel has no function {}", functions.join(" or ")))
            }
            other => other,
        })?;
        changes.make(buffer, &[("current_tracer".to_owned(), tracer.to_owned())], &self.state)?;
        // These options exist only once the tracer is set.
        let options = FUNCTION_OPTIONS.map(|option| format!("options/{option}"));
        let values: Vec<_> =
            options.into_iter().filter(|option| buffer.has(option)).map(|it| (it, "1".to_owned())).collect();
        changes.make(buffer, &values, &self.state)
    }

    /// Writes clock sync events, so that readers can align logs that use other clocks. Failures are ignored.
    fn mark_clocks(&self) {
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let monotonic = sys::clock::monotonic_ns();
        let real = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let write = |text: String| {
            File::options()
                .write(true)
                .open(self.buffer.folder().join("trace_marker"))
                .and_then(|mut marker| marker.write_all(text.as_bytes()))
        };
        let _ = write(format!("trace_event_clock_sync: parent_ts={}\n", seconds(monotonic)));
        let _ = write(format!("trace_event_clock_sync: realtime_ts={}\n", real.as_millis()));
    }

    /// Refuses to stop or read another tool's recording.
    ///
    /// # Errors
    /// [`TraceError::InUse`]: another tool's recording. [`TraceError::Usage`]: no recording.
    pub fn must_be_ours(&self) -> Result<(), TraceError> {
        let usage = |text: &str| Err(TraceError::Usage(text.to_owned()));
        match Changes::load(&self.state)? {
            Some(changes) if changes.are_left_to_a_command() => Ok(()),
            Some(changes) => {
                refuse_if_held(&changes)?;
                usage(
                    "the last recorder crashed; `binderperf trace restore` restores the settings that it changed",
                )
            }
            None => {
                self.refuse_if_in_use()?;
                usage("no recording was begun with --async_start, or it has been ended")
            }
        }
    }

    /// Stops recording; the events are kept.
    ///
    /// # Errors
    /// [`TraceError::Denied`], [`TraceError::Refused`].
    pub fn stop(&self) -> Result<(), TraceError> {
        self.buffer.write("tracing_on", "0")
    }

    /// Copies the events as text without removing them; returns the number of bytes.
    ///
    /// # Errors
    /// [`TraceError::Refused`]; [`TraceError::Output`] for `name`.
    pub fn dump(&self, output: &mut dyn Write, name: &Path) -> Result<u64, TraceError> {
        let path = self.buffer.folder().join("trace");
        let reading = TraceError::refused(format!("reading {}", path.display()));
        let mut file = File::open(&path).map_err(&reading)?;
        let mut bytes = vec![0; 1 << 18];
        let mut all = 0;
        loop {
            let count = match file.read(&mut bytes) {
                Ok(0) => return Ok(all),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(reading(error)),
            };
            output.write_all(&bytes[..count]).map_err(TraceError::output(name))?;
            all += count as u64;
        }
    }

    /// Copies the events as zlib-compressed text.
    ///
    /// # Errors
    /// Those of [`dump`](Self::dump).
    pub fn dump_compressed(&self, output: &mut dyn Write, name: &Path) -> Result<u64, TraceError> {
        // Fastest level: somebody waits, and trace text compresses well at any level.
        let mut compressing = ZlibEncoder::new(output, Compression::fast());
        let bytes = self.dump(&mut compressing, name)?;
        compressing.finish().map_err(TraceError::output(name))?;
        Ok(bytes)
    }

    /// Copies events as text while they arrive, removing them from the buffer, until a signal.
    ///
    /// # Errors
    /// Those of [`dump`](Self::dump).
    pub fn stream(&self, output: &mut dyn Write, name: &Path) -> Result<(), TraceError> {
        let path = self.buffer.folder().join("trace_pipe");
        let reading = TraceError::refused(format!("reading {}", path.display()));
        let mut pipe = File::open(&path).map_err(&reading)?;
        let epoll = sys::epoll::Epoll::new().map_err(&reading)?;
        epoll.add(pipe.as_fd(), 0).map_err(&reading)?;
        let mut bytes = vec![0; 1 << 16];
        let mut ready = Vec::new();
        while sys::stop_signal::received().is_none() {
            match epoll.wait(&mut ready, 200) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(reading(error)),
                _ if ready.is_empty() => continue,
                _ => {}
            }
            match pipe.read(&mut bytes) {
                Ok(count) => output
                    .write_all(&bytes[..count])
                    .and_then(|()| output.flush())
                    .map_err(TraceError::output(name))?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(reading(error)),
            }
        }
        Ok(())
    }

    /// Restores the settings from before the recording and empties the buffer; false if there was nothing to restore.
    ///
    /// # Errors
    /// [`TraceError::Denied`], [`TraceError::Refused`]: some settings are not restored; the state file is kept.
    /// [`TraceError::InUse`]: the recorder still runs.
    pub fn restore(&self) -> Result<bool, TraceError> {
        let Some(changes) = Changes::load(&self.state)? else { return Ok(false) };
        refuse_if_held(&changes)?;
        self.stop()?;
        self.buffer.clear()?;
        changes.put_back(&self.state).map(|()| true)
    }
}

/// Refuses changes that another live process restores at its end.
fn refuse_if_held(changes: &Changes) -> Result<(), TraceError> {
    match changes.keeper() {
        Some(keeper) if keeper != Process::own() => {
            Err(TraceError::InUse { sign: format!("process {} with this program", keeper.pid) })
        }
        _ => Ok(()),
    }
}

fn enable(event: &str) -> String {
    format!("events/{event}/enable")
}

/// The enabled events, as `GROUP/EVENT`.
fn enabled(buffer: &Buffer) -> Result<Vec<String>, TraceError> {
    let text = buffer.read("set_event")?;
    // A filter by module is listed as `GROUP:EVENT:mod:NAME`, which is no event's name.
    Ok(text
        .lines()
        .map(|line| line.trim().replace(':', "/"))
        .filter(|event| buffer.has(&enable(event)))
        .collect())
}

/// Evidence that another tool records in this buffer.
///
/// # Errors
/// [`TraceError::Denied`], [`TraceError::Refused`].
pub fn use_of(buffer: &Buffer) -> Result<Option<String>, TraceError> {
    let tracer = buffer.read("current_tracer")?;
    if tracer != "nop" {
        return Ok(Some(format!("its tracer is {tracer}")));
    }
    let events = enabled(buffer)?;
    Ok(match events.as_slice() {
        [] => None,
        [one] => Some(format!("its event {one} is on")),
        [first, rest @ ..] => Some(format!("its event {first} and {} more are on", rest.len())),
    })
}
