//! Room: a recording in the buffer that everybody shares, begun and ended as Android's `atrace` does it, but put
//! back to what was there before.
//! Not here: its flags (the command line), a recording in a buffer of one's own (`record`).
//! Facts: frameworks/native `cmds/atrace/atrace.cpp` (Android 14): order of steps, clock, clock marker, dump.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::categories::{self, Category};
use super::changes::{Changes, state_file};
use super::process::Process;
use super::size::check_size;
use super::tracefs::{Buffer, Tracefs, Trouble};

/// What to record.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Categories of kernel events.
    pub categories: Vec<&'static Category>,
    /// Kernel functions whose calls to record.
    pub functions: Vec<String>,
    /// Size of the buffer of each CPU, in KB.
    pub buffer_kb: u64,
    /// Whether new events take the place of the oldest in a full buffer.
    pub overwrite: bool,
    /// Whether the recording outlives this process.
    pub lasting: bool,
}

/// The shared buffer, and where its former state is kept.
#[derive(Debug)]
pub struct Session {
    buffer: Buffer,
    state: PathBuf,
}

const FUNCTION_OPTIONS: [&str; 4] =
    ["funcgraph-abstime", "funcgraph-cpu", "funcgraph-proc", "funcgraph-flat"];

impl Session {
    /// Of this machine's tracefs.
    ///
    /// # Errors
    /// [`Trouble::Missing`], [`Trouble::Denied`].
    pub fn new() -> Result<Self, Trouble> {
        Ok(Self { buffer: Tracefs::find()?.global(), state: state_file() })
    }

    /// The buffer.
    #[must_use]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Begins to record, with an empty buffer; gives what there is to say of the categories.
    ///
    /// # Errors
    /// [`Trouble::InUse`]: somebody else records there. [`Trouble::Usage`]: a buffer too large, a function that this kernel
    /// does not have. Others: tracefs refused; what was changed is put back.
    pub fn start(&self, plan: &Plan) -> Result<Vec<String>, Trouble> {
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
        if let Err(trouble) = begun {
            // The first trouble is the one to tell of.
            let _ = changes.put_back(&self.state);
            return Err(trouble);
        }
        let mut notes = found.notes;
        // Where it cannot be done, there still is the rest.
        let told = if plan.categories.iter().any(|category| category.is_of_binder()) {
            changes.announce(&self.buffer, &self.state)
        } else {
            changes.withdraw(&self.state)
        };
        notes.extend(told.err().map(|trouble| format!("binder_driver: {trouble}")));
        Ok(notes)
    }

    /// Changes that were made by us and wait; those of one that crashed are put back first.
    fn known(&self) -> Result<Option<Changes>, Trouble> {
        match Changes::load(&self.state)? {
            Some(changes) if changes.are_left_to_a_command() => Ok(Some(changes)),
            Some(changes) => match changes.keeper() {
                Some(keeper) => Err(held_by(keeper)),
                None => changes.put_back(&self.state).map(|()| None),
            },
            None => Ok(None),
        }
    }

    fn refuse_if_in_use(&self) -> Result<(), Trouble> {
        match use_of(&self.buffer)? {
            Some(sign) => Err(Trouble::InUse { sign }),
            None => Ok(()),
        }
    }

    fn begin(&self, plan: &Plan, events: &[String], changes: &mut Changes) -> Result<(), Trouble> {
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
        // Each CPU begins by itself; what one of them has from before the others did is of no use.
        changes.make(buffer, &[("tracing_on".to_owned(), "1".to_owned())], &self.state)?;
        buffer.clear()?;
        self.mark_clocks();
        Ok(())
    }

    fn record_functions(&self, functions: &[String], changes: &mut Changes) -> Result<(), Trouble> {
        if functions.is_empty() {
            return Ok(());
        }
        let buffer = &self.buffer;
        let available = buffer.read("available_tracers")?;
        // With how long each took, or at least when.
        let tracer = ["function_graph", "function"]
            .into_iter()
            .find(|tracer| {
                available.split(' ').any(|word| word == *tracer) && buffer.has("set_ftrace_filter")
            })
            .ok_or_else(|| Trouble::Usage("-k: this kernel records no calls of functions".to_owned()))?;
        let filter = ("set_ftrace_filter".to_owned(), functions.join("\n"));
        changes.make(buffer, &[filter], &self.state).map_err(|trouble| match trouble {
            Trouble::Refused { error, .. } if error.kind() == io::ErrorKind::InvalidInput => {
                Trouble::Usage(format!("-k: this kernel has no function {}", functions.join(" or ")))
            }
            other => other,
        })?;
        changes.make(buffer, &[("current_tracer".to_owned(), tracer.to_owned())], &self.state)?;
        // They exist since the line above.
        let options = FUNCTION_OPTIONS.map(|option| format!("options/{option}"));
        let values: Vec<_> =
            options.into_iter().filter(|option| buffer.has(option)).map(|it| (it, "1".to_owned())).collect();
        changes.make(buffer, &values, &self.state)
    }

    /// Says which time of other clocks this moment has, so that a reader can bring logs together. A trace
    /// without it is a trace, too.
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

    /// Refuses what would end or read somebody else's recording.
    ///
    /// # Errors
    /// [`Trouble::InUse`]: it is somebody else's. [`Trouble::Usage`]: there is none.
    pub fn must_be_ours(&self) -> Result<(), Trouble> {
        match Changes::load(&self.state)? {
            Some(changes) if changes.are_left_to_a_command() => return Ok(()),
            Some(changes) => match changes.keeper() {
                Some(keeper) => return Err(held_by(keeper)),
                None => {
                    return Err(Trouble::Usage(
                        "the last recording ended by a crash; `binderperf trace restore` puts back what it changed"
                            .to_owned(),
                    ));
                }
            },
            None => self.refuse_if_in_use()?,
        }
        Err(Trouble::Usage("no recording was begun with --async_start, or it has been ended".to_owned()))
    }

    /// Stops recording; what was recorded stays.
    ///
    /// # Errors
    /// [`Trouble::Denied`], [`Trouble::Refused`].
    pub fn stop(&self) -> Result<(), Trouble> {
        self.buffer.write("tracing_on", "0")
    }

    /// Hands on what was recorded as text; gives its bytes. Reading it does not remove it.
    ///
    /// # Errors
    /// [`Trouble::Refused`]; [`Trouble::Output`] for `name`.
    pub fn dump(&self, output: &mut dyn Write, name: &Path) -> Result<u64, Trouble> {
        let path = self.buffer.folder().join("trace");
        let reading = |error| Trouble::Refused { tried: format!("reading {}", path.display()), error };
        let mut file = File::open(&path).map_err(reading)?;
        let mut bytes = vec![0; 1 << 18];
        let mut all = 0;
        loop {
            let count = match file.read(&mut bytes) {
                Ok(0) => return Ok(all),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(reading(error)),
            };
            let writing = |error| Trouble::Output { place: name.to_owned(), error };
            output.write_all(&bytes[..count]).map_err(writing)?;
            all += count as u64;
        }
    }

    /// The same, compressed with zlib.
    ///
    /// # Errors
    /// As for [`dump`](Self::dump).
    pub fn dump_compressed(&self, output: &mut dyn Write, name: &Path) -> Result<u64, Trouble> {
        // As fast as it gets: somebody waits, and this text shrinks well at any level.
        let mut compressing = ZlibEncoder::new(output, Compression::fast());
        let bytes = self.dump(&mut compressing, name)?;
        compressing.finish().map_err(|error| Trouble::Output { place: name.to_owned(), error })?;
        Ok(bytes)
    }

    /// Hands on what is recorded as text, as it comes, and removes it from the buffer; until a signal.
    ///
    /// # Errors
    /// As for [`dump`](Self::dump).
    pub fn stream(&self, output: &mut dyn Write, name: &Path) -> Result<(), Trouble> {
        let path = self.buffer.folder().join("trace_pipe");
        let reading = |error| Trouble::Refused { tried: format!("reading {}", path.display()), error };
        let mut pipe = File::open(&path).map_err(reading)?;
        let epoll = sys::epoll::Epoll::new().map_err(reading)?;
        epoll.add(pipe.as_fd(), 0).map_err(reading)?;
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
                    .map_err(|error| Trouble::Output { place: name.to_owned(), error })?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(reading(error)),
            }
        }
        Ok(())
    }

    /// Puts back what was there before the recording, with an empty buffer; whether there was anything to put back.
    ///
    /// # Errors
    /// [`Trouble::Denied`], [`Trouble::Refused`]: some of it is not back; the state file stays.
    /// [`Trouble::InUse`]: its recorder is at work.
    pub fn restore(&self) -> Result<bool, Trouble> {
        let Some(changes) = Changes::load(&self.state)? else { return Ok(false) };
        match changes.keeper() {
            Some(keeper) if keeper != Process::own() => {
                return Err(held_by(keeper));
            }
            _ => {}
        }
        self.stop()?;
        self.buffer.clear()?;
        changes.put_back(&self.state).map(|()| true)
    }
}

fn held_by(keeper: Process) -> Trouble {
    Trouble::InUse { sign: format!("process {} with this program", keeper.pid) }
}

fn enable(event: &str) -> String {
    format!("events/{event}/enable")
}

/// `GROUP/EVENT` of those that are on.
fn enabled(buffer: &Buffer) -> Result<Vec<String>, Trouble> {
    let text = buffer.read("set_event")?;
    // A filter by module stands there as `GROUP:EVENT:mod:NAME`, without an event of that name.
    Ok(text
        .lines()
        .map(|line| line.trim().replace(':', "/"))
        .filter(|event| buffer.has(&enable(event)))
        .collect())
}

/// By what is to be seen that somebody records in this buffer.
///
/// # Errors
/// [`Trouble::Denied`], [`Trouble::Refused`].
pub fn use_of(buffer: &Buffer) -> Result<Option<String>, Trouble> {
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
