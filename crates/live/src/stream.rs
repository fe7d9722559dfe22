//! Live events: pages of a private trace instance, merged over the CPUs, rebuilt as transactions.
//! Not here: figures of transactions.
//!
//! ```no_run
//! # fn main() -> Result<(), ftrace::tracefs::TraceError> {
//! # use live::stream::{Settings, Stream};
//! let mut stream = Stream::start(&Settings::of_calls())?;
//! loop {
//!     std::thread::sleep(std::time::Duration::from_millis(100));
//!     stream.poll(&mut |call: &trace::model::Transaction, names: &trace::event::Names| {
//!         println!("{} took {} ns", names.text(call.client.comm), call.ns());
//!     })?;
//! #   break;
//! }
//! println!("{} events were lost", stream.lost()?.all());
//! # Ok(())
//! # }
//! ```

mod kept;

use std::io::Cursor;
use std::path::Path;

use ftrace::categories::{self, Category};
use ftrace::record::live::{Amount, LiveRecorder};
use ftrace::tracefs::{TraceError, divided_kb};
use trace::event::{Event, Names};
use trace::file::Container;
use trace::model::{Model, OpenTransaction, Transaction};
use trace::raw::{LiveReader, RawReader};

use kept::Kept;

/// Longest time from an event to its page, in nanoseconds: a writer that the hypervisor halts in between.
const WINDOW_NS: u64 = 10_000_000;

/// Sizes of all buffers together and of one CPU's, in KB: a busy system writes 10 MB in a second, and may not let the reader run
/// for half of it.
const ALL_KB: u64 = 32 << 10;
const CPU_KB: std::ops::RangeInclusive<u64> = 1024..=8192;

/// Steps of history that the model keeps, about 12 MB.
const STEPS: usize = 1 << 18;

/// Events to record, and those to keep.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Categories of events.
    pub categories: Vec<&'static Category>,
    /// Size of the kernel's buffer in KB per CPU: the events of one CPU between two calls of [`Stream::poll`]. `None`: 32 MB
    /// divided by the machine's CPUs, and 1 to 8 MB for each.
    pub buffer_kb: Option<u64>,
    /// Bytes of the newest pages that [`Stream::save`] can write; 0 keeps none.
    pub keep_bytes: usize,
    /// True if transactions are divided by cause, for which the embedded driver writes all of its events.
    pub causes: bool,
}

impl Settings {
    /// The binder driver's events of calls alone, of which nothing is kept: what figures need. Transactions have no segments.
    #[must_use]
    pub fn of_calls() -> Self {
        Self::of(&["binder_driver"], false)
    }

    /// The events that also tell why a call took its time, of which nothing is kept.
    #[must_use]
    pub fn with_causes() -> Self {
        Self::of(&["binder_driver", "sched", "irq"], true)
    }

    fn of(names: &[&str], causes: bool) -> Self {
        let categories = names.iter().filter_map(|name| categories::named(name)).collect();
        Self { categories, buffer_kb: None, keep_bytes: 0, causes }
    }
}

/// Takes what a stream hands out. A function of an ended transaction is one, too.
pub trait Observer {
    /// An event, before the transactions that end with it.
    fn event(&mut self, _event: &Event, _names: &Names) {}

    /// A transaction that ended.
    fn ended(&mut self, call: &Transaction, names: &Names);
}

impl<F: FnMut(&Transaction, &Names)> Observer for F {
    fn ended(&mut self, call: &Transaction, names: &Names) {
        self(call, names);
    }
}

/// Events that the stream did not see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Overwritten before they were read: [`Stream::poll`] came too late.
    pub overwritten: u64,
    /// Dropped by the kernel.
    pub dropped: u64,
}

impl Lost {
    /// Their number.
    #[must_use]
    pub fn all(self) -> u64 {
        self.overwritten + self.dropped
    }
}

/// A running stream. Its end removes the trace instance.
#[derive(Debug)]
pub struct Stream {
    recorder: LiveRecorder,
    reader: LiveReader,
    model: Model,
    kept: Kept,
}

impl Stream {
    /// Starts to record. What `ftrace::record::live::LiveRecorder::start` says of the embedded driver holds.
    ///
    /// # Errors
    /// [`TraceError::Missing`], [`TraceError::Denied`]: tracing is not available. [`TraceError::Usage`]: the buffers are too
    /// large. [`TraceError::Refused`]: another failure.
    pub fn start(settings: &Settings) -> Result<Self, TraceError> {
        // A CPU that this process may not use has a buffer, too.
        let size_kb = |cpus| settings.buffer_kb.unwrap_or_else(|| divided_kb(ALL_KB, cpus, CPU_KB));
        let of_embedded = if settings.causes { Amount::All } else { Amount::Figures };
        let recorder = LiveRecorder::start(&settings.categories, size_kb, of_embedded)?;
        let unread = |error: String| TraceError::Usage(format!("the formats of events: {error}"));
        let formats = recorder.formats().map_err(|error| unread(error.to_string()))?;
        let file = Container::open(Cursor::new(formats)).map_err(|error| unread(error.to_string()))?;
        Ok(Self {
            recorder,
            reader: LiveReader::behind(RawReader::new(file)),
            model: if settings.causes { Model::bounded(STEPS) } else { Model::of_calls(STEPS) },
            kept: Kept::new(settings.keep_bytes),
        })
    }

    /// Reads what came since the last call, without waiting, and hands it out in the order of time. An event comes out in the
    /// first call that begins 10 ms after it. Where the trace's clock cannot be read, before Linux 3.17, it comes out at once,
    /// and events of several CPUs around a call of this may change places.
    ///
    /// # Errors
    /// [`TraceError::Refused`]: reading failed.
    pub fn poll(&mut self, observer: &mut impl Observer) -> Result<(), TraceError> {
        // Before reading: what is older than this is in the pages that are read now.
        let now = self.clock();
        let (reader, kept) = (&mut self.reader, &mut self.kept);
        self.recorder.read(&mut |cpu, pages| {
            kept.add(cpu, pages);
            reader.push(cpu, pages.to_vec());
        })?;
        self.hand_out(now.map_or(u64::MAX, |now| now.saturating_sub(WINDOW_NS)), observer);
        Ok(())
    }

    /// Hands out what is at hand, also what another CPU's events may precede. For the end, or a stop.
    ///
    /// # Errors
    /// See [`Self::poll`].
    pub fn flush(&mut self, observer: &mut impl Observer) -> Result<(), TraceError> {
        self.poll(observer)?;
        self.hand_out(u64::MAX, observer);
        Ok(())
    }

    fn hand_out(&mut self, until: u64, observer: &mut impl Observer) {
        while let Some(event) = self.reader.next_until(until) {
            let names = self.reader.names();
            observer.event(&event, names);
            self.model.take(&event, names, &mut |call| observer.ended(&call, names));
        }
    }

    fn clock(&self) -> Option<u64> {
        match self.recorder.head().clock.as_str() {
            "boot" => Some(sys::clock::boottime_ns()),
            "mono" => Some(sys::clock::monotonic_ns()),
            _ => None,
        }
    }

    /// Nanoseconds of the trace's clock now, or of its last event where the clock cannot be read.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.clock().or_else(|| self.model.span().map(|(_, last)| last)).unwrap_or(0)
    }

    /// Calls that have not ended, in no order; their times are of the trace clock.
    pub fn open_calls(&self) -> impl Iterator<Item = OpenTransaction> + '_ {
        self.model.open_calls()
    }

    /// The model's names of threads, and phrases for causes.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Names that events and transactions refer to.
    #[must_use]
    pub fn names(&self) -> &Names {
        self.reader.names()
    }

    /// The recorder, for its notes, clock and folder, and to switch it off and on.
    #[must_use]
    pub fn recorder(&self) -> &LiveRecorder {
        &self.recorder
    }

    /// Events that were lost since the begin.
    ///
    /// # Errors
    /// [`TraceError::Usage`]: the recorder has ended.
    pub fn lost(&self) -> Result<Lost, TraceError> {
        let add = |sum: Lost, of: ftrace::record::Counts| Lost {
            overwritten: sum.overwritten + of.overwritten,
            dropped: sum.dropped + of.dropped,
        };
        Ok(self.recorder.counts()?.into_iter().fold(Lost::default(), add))
    }

    /// Writes the newest events, as many as [`Settings::keep_bytes`] allows, into a new file that the analysis opens, whole or
    /// not at all, and synced. They stay kept. Returns the file's size in bytes.
    ///
    /// # Errors
    /// [`TraceError::Output`]: the file could not be written.
    pub fn save(&self, output: &Path) -> Result<u64, TraceError> {
        self.recorder.save(output, self.kept.pages())
    }

    /// The content of the file that [`Self::save`] writes: it can be written after the stream's end.
    ///
    /// # Errors
    /// [`TraceError::Refused`]: memory is short.
    pub fn recording(&self) -> Result<Vec<u8>, TraceError> {
        self.recorder.recording(self.kept.pages())
    }

    /// Ends it; returns what of the trace instance could not be removed, with the reasons.
    #[must_use]
    pub fn end(self) -> Vec<String> {
        self.recorder.end()
    }
}
