//! A private trace instance whose pages are read while they come, and never wait for a reader.
//! Not here: what the pages contain, and who keeps them (crate `live`).

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

pub use embedded::trace_events::Amount;
use sys::draft::Draft;
use trace::file::{Head, TracefsText, Writer};

use super::pages::Pipe;
use super::{Counts, LET_GO, others, prepare, stats, write_formats, write_names};
use crate::categories::{self, Category};
use crate::instances::Instance;
use crate::tracefs::{Buffer, TraceError, Tracefs, check_size};

/// A recorder that runs; its instance is removed when it is dropped.
#[derive(Debug)]
pub struct LiveRecorder {
    tracefs: Tracefs,
    instance: Option<Instance>,
    /// Whether this recorder asks the processes of the embedded driver for their events.
    announced: bool,
    events: Vec<String>,
    notes: Vec<String>,
    cpus: Vec<u32>,
    head: Head,
    pipes: Vec<Pipe>,
    /// Batches of pages that a buffer may hold, so that one reading ends.
    most_batches: usize,
}

impl LiveRecorder {
    /// Starts to record these categories. `size_kb` takes the number of CPUs with a buffer and returns the size of each, in KB.
    /// Processes of this user that open the embedded driver from now on write `of_embedded` of their events into it, unless
    /// another recorder asked for them before.
    ///
    /// # Errors
    /// [`TraceError::Missing`], [`TraceError::Denied`]: tracing is not available. [`TraceError::Usage`]: the buffers are too
    /// large, or this process records already. [`TraceError::Refused`]: another failure. No instance is left behind.
    pub fn start(
        categories: &[&'static Category],
        size_kb: impl FnOnce(usize) -> u64,
        of_embedded: Amount,
    ) -> Result<Self, TraceError> {
        let tracefs = Tracefs::find()?;
        let cpus = tracefs.global().cpus()?;
        let buffer_kb = size_kb(cpus.len());
        check_size(buffer_kb, cpus.len())?;
        let mut notes = Vec::from_iter(others(&tracefs));
        let found = categories::find(&tracefs.global(), categories);
        notes.extend(found.notes);
        let instance = Instance::new(&tracefs)?;
        let buffer = instance.buffer();
        prepare(buffer, buffer_kb, &found.events)?;
        let head = super::head(buffer, &cpus)?;
        let page_bytes = head.page_size as usize;
        let pipes = cpus.iter().map(|cpu| Pipe::open(buffer, *cpu, page_bytes)).collect::<Result<_, _>>()?;
        let most_batches =
            (buffer_kb * 1024).div_ceil((page_bytes * super::pages::BATCH) as u64) as usize + 1;
        buffer.write("tracing_on", "1")?;
        let wanted = categories.iter().any(|category| category.is_of_binder());
        let announced = wanted && announce(buffer, of_embedded, &mut notes);
        Ok(Self {
            tracefs,
            instance: Some(instance),
            announced,
            events: found.events,
            notes,
            cpus,
            head,
            pipes,
            most_batches,
        })
    }

    fn buffer(&self) -> Result<&Buffer, TraceError> {
        let ended = || TraceError::Usage("the recorder has ended".to_owned());
        self.instance.as_ref().map(Instance::buffer).ok_or_else(ended)
    }

    /// Notes about categories, other users of tracing, and processes whose events it does not get.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The tracefs folder that takes marks.
    ///
    /// # Errors
    /// [`TraceError::Usage`]: it has ended.
    pub fn folder(&self) -> Result<&Path, TraceError> {
        self.buffer().map(Buffer::folder)
    }

    /// Facts of the recording: its clock and the size of a page.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// A recording with the formats of all events, and without any event.
    ///
    /// # Errors
    /// Those of memory alone.
    pub fn formats(&self) -> io::Result<Vec<u8>> {
        let mut writer = Writer::create(Vec::new(), &self.head)?;
        write_formats(&self.tracefs, &self.events, &mut writer)?;
        writer.finish()
    }

    /// Passes on the pages that came since the last call, each CPU's oldest first, without waiting. What comes meanwhile may
    /// be left for the next call, so that this one ends.
    ///
    /// # Errors
    /// [`TraceError::Refused`]: reading failed.
    pub fn read(&mut self, take: &mut impl FnMut(u32, &[u8])) -> Result<(), TraceError> {
        let failed = TraceError::refused("reading the trace buffer");
        for pipe in &mut self.pipes {
            let cpu = pipe.cpu();
            for _ in 0..self.most_batches {
                if !pipe.batch(&mut |pages| take(cpu, pages)).map_err(&failed)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Event counts per CPU since the begin; bytes are not counted.
    ///
    /// # Errors
    /// [`TraceError::Usage`]: it has ended.
    pub fn counts(&self) -> Result<Vec<Counts>, TraceError> {
        let buffer = self.buffer()?;
        Ok(self.cpus.iter().map(|cpu| Counts::read(*cpu, &stats(buffer, *cpu), 0)).collect())
    }

    /// Stops recording or goes on; costs nothing while it is stopped.
    ///
    /// # Errors
    /// [`TraceError::Denied`], [`TraceError::Refused`].
    pub fn switch(&self, on: bool) -> Result<(), TraceError> {
        self.buffer()?.write("tracing_on", if on { "1" } else { "0" })
    }

    /// Writes these pages, of each CPU the oldest first, into a new file that the analysis opens, whole or not at all, and
    /// synced. Returns its size in bytes.
    ///
    /// # Errors
    /// [`TraceError::Output`]: the file could not be written.
    pub fn save<'p>(
        &self,
        output: &Path,
        pages: impl Iterator<Item = (u32, &'p [u8])>,
    ) -> Result<u64, TraceError> {
        let failed = TraceError::output(output);
        let buffer = self.buffer()?;
        let draft = Draft::new(output).map_err(&failed)?;
        let write = |file: File| self.write(buffer, file, pages)?.metadata().map(|file| file.len());
        let bytes = draft.file().try_clone().and_then(write).map_err(&failed)?;
        draft.commit().map_err(&failed)?;
        Ok(bytes)
    }

    /// The content of the file that [`Self::save`] writes.
    ///
    /// # Errors
    /// [`TraceError::Usage`]: it has ended. [`TraceError::Refused`]: memory is short.
    pub fn recording<'p>(&self, pages: impl Iterator<Item = (u32, &'p [u8])>) -> Result<Vec<u8>, TraceError> {
        self.write(self.buffer()?, Vec::new(), pages)
            .map_err(TraceError::refused("keeping the newest events"))
    }

    fn write<'p, W: Write>(
        &self,
        buffer: &Buffer,
        out: W,
        pages: impl Iterator<Item = (u32, &'p [u8])>,
    ) -> io::Result<W> {
        let mut writer = Writer::create(out, &self.head)?;
        write_formats(&self.tracefs, &self.events, &mut writer)?;
        for (cpu, pages) in pages {
            writer.pages(cpu, pages)?;
        }
        write_names(&self.tracefs, &mut writer)?;
        for cpu in &self.cpus {
            writer.text(TracefsText::Stats, *cpu, stats(buffer, *cpu).as_bytes())?;
        }
        writer.finish()
    }

    /// Ends the recording and removes its instance; returns what could not be removed, with the reasons.
    #[must_use]
    pub fn end(mut self) -> Vec<String> {
        self.let_go()
    }

    fn let_go(&mut self) -> Vec<String> {
        let Some(instance) = self.instance.take() else { return Vec::new() };
        let buffer = instance.buffer();
        let mut left = Vec::new();
        if std::mem::take(&mut self.announced)
            && embedded::trace_events::requested().as_deref() == Some(buffer.folder())
        {
            let withdrawn = embedded::trace_events::withdraw();
            left.extend(withdrawn.err().map(|error| format!("withdrawing the request for events: {error}")));
        }
        self.pipes.clear();
        // Processes of the embedded driver may have it open for as long as they live; meanwhile it takes no events and no room.
        for (knob, value) in [("tracing_on", "0"), ("events/enable", "0"), ("buffer_size_kb", "1")] {
            left.extend(buffer.write(knob, value).err().map(|error| error.to_string()));
        }
        let removed = instance.remove(LET_GO);
        left.extend(removed.err().map(|error| format!("{error}; a later command removes it")));
        left
    }
}

impl Drop for LiveRecorder {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Asks processes of the embedded driver for their events; returns whether nobody else had, and adds to the notes why not.
fn announce(buffer: &Buffer, amount: Amount, notes: &mut Vec<String>) -> bool {
    if let Some(folder) = embedded::trace_events::requested() {
        notes.push(format!(
            "another recorder asked for the embedded driver's events, in {}; they are not seen here",
            folder.display()
        ));
        return false;
    }
    let asked = embedded::trace_events::announce(buffer.folder(), amount);
    notes.extend(
        asked.as_ref().err().map(|error| format!("the embedded driver's events are not seen: {error}")),
    );
    asked.is_ok()
}
