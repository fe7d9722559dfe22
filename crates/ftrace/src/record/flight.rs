//! Flight recorder: a private trace instance that overwrites its oldest events and is saved whenever asked.
//! Not here: when to save (crate `bench`), a recording from begin to end (`super`).

use std::path::{Path, PathBuf};

use embedded::trace_events::records::Taken;
use sys::draft::Draft;
use trace::file::{Head, Writer};

use super::calls::{self, Calls};
use super::pages::{Pipe, Shared};
use super::{enable, let_go, prepare, write_end, write_formats};
use crate::categories::{self, Category};
use crate::instances::Instance;
use crate::tracefs::{Buffer, TraceError, Tracefs, check_size, divided_kb};

/// Categories that name causes; each other one would only cost time.
const CATEGORIES: [&str; 5] = ["sched", "irq", "idle", "freq", "binder_driver"];
/// Sizes of all buffers together and of one CPU's, in KB. A call of many ms leaves some hundred KB.
const ALL_KB: u64 = 16 << 10;
const CPU_KB: std::ops::RangeInclusive<u64> = 256..=1024;

/// A running flight recorder; removed on drop. Processes that keep its files open must have ended by then.
#[derive(Debug)]
pub struct FlightRecorder {
    tracefs: Tracefs,
    /// `None` only while it is dropped.
    instance: Option<Instance>,
    events: Vec<String>,
    cpus: Vec<u32>,
    head: Head,
    calls: Calls,
}

impl FlightRecorder {
    /// Makes it, without recording yet.
    ///
    /// # Errors
    /// [`TraceError::Missing`], [`TraceError::Denied`]: tracing is not available. [`TraceError::Usage`]: this program is
    /// being recorded by another one, or memory is short. [`TraceError::Refused`]: another failure.
    pub fn prepare() -> Result<Self, TraceError> {
        if let Some(folder) = embedded::trace_events::requested() {
            return Err(TraceError::Usage(format!(
                "another recorder asked for this program's events, in {}; it is left alone",
                folder.display()
            )));
        }
        let tracefs = Tracefs::find()?;
        let cpus = tracefs.global().cpus()?;
        let kb = divided_kb(ALL_KB, cpus.len(), CPU_KB);
        check_size(kb, cpus.len())?;
        let wanted: Vec<&Category> = CATEGORIES.iter().filter_map(|name| categories::named(name)).collect();
        let events = categories::find(&tracefs.global(), &wanted).events;
        let instance = Instance::new(&tracefs)?;
        let buffer = instance.buffer();
        prepare(buffer, kb, &[])?;
        let head = super::head(buffer, &cpus)?;
        let calls = Calls::create(&head.clock);
        Ok(Self { tracefs, instance: Some(instance), events, cpus, head, calls })
    }

    /// Starts recording.
    ///
    /// # Errors
    /// [`TraceError::Denied`], [`TraceError::Refused`].
    pub fn start(&self) -> Result<(), TraceError> {
        let buffer = self.buffer()?;
        enable(buffer, &self.events)?;
        self.go_on(buffer)
    }

    fn go_on(&self, buffer: &Buffer) -> Result<(), TraceError> {
        buffer.write("tracing_on", "1")?;
        self.calls.start();
        Ok(())
    }

    fn buffer(&self) -> Result<&Buffer, TraceError> {
        let ended = || TraceError::Usage("the flight recorder has ended".to_owned());
        self.instance.as_ref().map(Instance::buffer).ok_or_else(ended)
    }

    /// The tracefs folder that takes marks.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.buffer().map(|buffer| buffer.folder().to_owned()).unwrap_or_default()
    }

    /// Path of the memory that takes the embedded driver's events of calls, for `EmbeddedContext::with_records`; `None` where
    /// they must be marks in [`Self::folder`].
    #[must_use]
    pub fn records(&self) -> Option<PathBuf> {
        self.calls.path()
    }

    /// Stops recording; the events that are held can still be saved.
    ///
    /// # Errors
    /// [`TraceError::Denied`], [`TraceError::Refused`].
    pub fn stop(&self) -> Result<(), TraceError> {
        self.calls.stop();
        self.buffer()?.write("tracing_on", "0")
    }

    /// Stops, writes all events that are held into a new file, whole or not at all, and starts again without them.
    ///
    /// # Errors
    /// [`TraceError::Output`]: the file could not be written. [`TraceError::Denied`], [`TraceError::Refused`].
    pub fn save(&mut self, output: &Path) -> Result<(), TraceError> {
        self.stop()?;
        // Taken in any case: what is there belongs to no later recording.
        let taken = self.calls.take();
        let buffer = self.buffer()?;
        let saved = self.write(buffer, &taken, output);
        let cleared = buffer.clear();
        self.go_on(buffer)?;
        saved.and(cleared)
    }

    fn write(&self, buffer: &Buffer, taken: &Taken, output: &Path) -> Result<(), TraceError> {
        let failed = TraceError::output(output);
        let draft = Draft::new(output).map_err(&failed)?;
        let file = draft.file().try_clone().map_err(&failed)?;
        let writer = Writer::create(file, &self.head).map_err(&failed)?;
        let shared = Shared::new(writer, output);
        shared.write(|writer| write_formats(&self.tracefs, &self.events, writer));
        for cpu in &self.cpus {
            let mut pipe = Pipe::open(buffer, *cpu, self.head.page_size as usize)?;
            pipe.drain(&shared).map_err(TraceError::refused("reading the trace buffer"))?;
        }
        calls::write(taken, &shared);
        write_end(&self.tracefs, buffer, &self.cpus, &shared);
        shared.finish()?;
        // The callers rest only until this is done.
        draft.commit_unsynced().map_err(failed)
    }
}

impl Drop for FlightRecorder {
    fn drop(&mut self) {
        if let Some(instance) = self.instance.take() {
            let _ = instance.buffer().write("tracing_on", "0");
            // What is left is removed by the next command.
            let_go(instance);
        }
    }
}
