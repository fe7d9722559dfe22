//! A view of what happens now, interval by interval: events, the driver's state, the view's own cost.
//! Not here: showing it, reading the driver's state.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use explain::{Finding, Load};
use ftrace::tracefs::TraceError;
use serde::Serialize;
use trace::model::OpenTransaction;

use crate::stream::{Lost, Settings, Stream};
use crate::top::budget::{Budget, Level};
use crate::top::rows::{self, Row, State};
use crate::top::worst::Worst;
use crate::top::{By, MOST, Subject, Top};

/// One look at the driver's state.
#[derive(Clone, Debug, Default)]
pub struct Looked {
    /// The load of each process.
    pub loads: Vec<Load>,
    /// Findings, worst first.
    pub findings: Vec<Finding>,
    /// Facts that the driver does not tell, each with the reason.
    pub notes: Vec<String>,
}

/// Reads the driver's state, or says why it cannot.
pub type Look<'l> = Box<dyn FnMut() -> Result<Looked, String> + 'l>;

/// The figures of an interval.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Seconds since the begin of the view.
    pub at_s: f64,
    /// Seconds of the interval.
    pub span_s: f64,
    /// Word of the level: the sources of the figures.
    pub level: &'static str,
    /// Calls that ended in the interval; `None` where nothing is traced.
    pub calls: Option<u64>,
    /// Calls of them that may lack events.
    pub doubtful: Option<u64>,
    /// Events that were lost since the begin.
    pub lost: Option<u64>,
    /// Share of one CPU that the view took in the interval, 0 to 1.
    pub own_cpu: f64,
    /// Processes.
    pub processes: Vec<Row>,
    /// Threads.
    pub threads: Vec<Row>,
    /// Methods of nodes.
    pub methods: Vec<Row>,
    /// Pairs of processes.
    pub pairs: Vec<Row>,
    /// Findings, worst first; `None` where the driver's state cannot be read.
    pub findings: Option<Vec<Finding>>,
    /// Notes of blank or partial figures, with the reasons.
    pub notes: Vec<String>,
    /// The slowest calls.
    #[serde(skip)]
    pub worst: Worst,
}

impl Snapshot {
    /// The rows of a kind of subjects.
    #[must_use]
    pub fn rows(&self, by: By) -> &[Row] {
        match by {
            By::Processes => &self.processes,
            By::Threads => &self.threads,
            By::Methods => &self.methods,
            By::Pairs => &self.pairs,
        }
    }

    fn rows_mut(&mut self, by: By) -> &mut Vec<Row> {
        match by {
            By::Processes => &mut self.processes,
            By::Threads => &mut self.threads,
            By::Methods => &mut self.methods,
            By::Pairs => &mut self.pairs,
        }
    }
}

/// A running view.
pub struct Session<'l> {
    stream: Option<Stream>,
    /// Why there is no stream.
    untraced: Option<String>,
    /// The newest events of a stream that has ended, as a recording.
    recording: Option<Vec<u8>>,
    top: Top,
    look: Look<'l>,
    before: Option<Vec<Load>>,
    budget: Budget,
    interval: Duration,
    begin: Instant,
    span_begin: Instant,
    cpu_begin: u64,
    notes: Vec<String>,
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("stream", &self.stream)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

impl<'l> Session<'l> {
    /// Begins a view with this interval, which may cost this share of one CPU, 0 to 1. Without the right to trace it goes on
    /// without events, and its notes say why.
    #[must_use]
    pub fn begin(settings: &Settings, interval: Duration, most: f64, look: Look<'l>) -> Self {
        let (stream, untraced, notes) = match Stream::start(settings) {
            Ok(stream) => {
                let notes = stream.recorder().notes().to_vec();
                (Some(stream), None, notes)
            }
            Err(error) => (None, Some(error.to_string()), Vec::new()),
        };
        let now = Instant::now();
        Self {
            stream,
            untraced,
            recording: None,
            top: Top::default(),
            look,
            before: None,
            budget: Budget::new(most),
            interval,
            begin: now,
            span_begin: now,
            cpu_begin: sys::clock::thread_cpu_ns(),
            notes,
        }
    }

    /// Why no events are read; `None` if they are.
    #[must_use]
    pub fn untraced(&self) -> Option<&str> {
        self.untraced.as_deref()
    }

    /// Time until the interval ends.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.budget.level().interval(self.interval).saturating_sub(self.span_begin.elapsed())
    }

    /// Takes the events that came. Call it ten times a second, or the kernel's buffer overflows.
    ///
    /// # Errors
    /// [`TraceError::Refused`]: reading failed.
    pub fn poll(&mut self) -> Result<(), TraceError> {
        match &mut self.stream {
            Some(stream) => stream.poll(&mut self.top),
            None => Ok(()),
        }
    }

    /// Ends the interval and begins the next one. The last one also has what came in the last 10 ms.
    ///
    /// # Errors
    /// [`TraceError::Refused`]: reading failed.
    pub fn snapshot(&mut self, is_last: bool) -> Result<Snapshot, TraceError> {
        match &mut self.stream {
            Some(stream) if is_last => stream.flush(&mut self.top)?,
            _ => self.poll()?,
        }
        let mut notes = self.notes.clone();
        let looked = match (self.look)() {
            Ok(mut looked) => {
                notes.append(&mut looked.notes);
                Some(looked)
            }
            Err(why) => {
                notes.push(format!(
                    "ONEWAY of older calls, BUFFERS, BUSY, OLDEST of older calls and DEATHS are blank: {why}"
                ));
                None
            }
        };
        if let Some(why) = &self.untraced {
            notes.push(format!("latencies, bytes, threads, methods and pairs are blank, and calls are counted by the driver: {why}"));
        }
        let span = self.span_begin.elapsed();
        let (looked, findings): (Option<Vec<Load>>, _) =
            looked.map(|looked| (looked.loads, looked.findings)).unzip();
        let open: Option<Vec<OpenTransaction>> =
            self.stream.as_ref().map(|stream| of_living(stream.open_calls(), looked.as_deref()));
        let state = State {
            loads: looked.as_deref(),
            before: self.before.as_deref(),
            open: open.as_deref(),
            now: self.stream.as_ref().map_or(0, Stream::now),
            span,
        };
        let lost = self.stream.as_ref().and_then(|stream| stream.lost().ok()).map(Lost::all);
        if let Some(lost) = lost.filter(|lost| *lost > 0) {
            notes
                .push(format!("{} lost since the begin: figures are too low", units::counted(lost, "event")));
        }
        let traced = self.stream.is_some();
        let mut snapshot = Snapshot {
            at_s: self.begin.elapsed().as_secs_f64(),
            span_s: span.as_secs_f64(),
            level: if traced { self.budget.level().word() } else { Level::Counters.word() },
            calls: traced.then_some(self.top.all().calls),
            doubtful: traced.then_some(self.top.all().doubtful),
            lost,
            own_cpu: 0.0,
            processes: Vec::new(),
            threads: Vec::new(),
            methods: Vec::new(),
            pairs: Vec::new(),
            findings,
            notes,
            worst: self.top.worst().clone(),
        };
        for by in By::ALL {
            *snapshot.rows_mut(by) = rows::rows(&mut self.top, by, &state);
        }
        if snapshot.processes.iter().any(|row| row.subject == Some(Subject::Others)) {
            snapshot.notes.push(format!(
                "more than {MOST} processes had calls: those of some are in the row `others`, and their figures are blank"
            ));
        }
        self.before = looked;
        self.top.next_span();
        self.span_begin = Instant::now();
        let cpu = sys::clock::thread_cpu_ns();
        snapshot.own_cpu =
            (cpu - std::mem::replace(&mut self.cpu_begin, cpu)) as f64 / span.as_nanos().max(1) as f64;
        self.keep_to_budget(&mut snapshot);
        Ok(snapshot)
    }

    fn keep_to_budget(&mut self, snapshot: &mut Snapshot) {
        let Some(level) = self.budget.take(snapshot.own_cpu) else { return };
        let cost = format!("this view took {:.1} % of a CPU, over --max-overhead", snapshot.own_cpu * 100.0);
        let note = match level {
            Level::Counters => {
                let why = format!("{cost}, so tracing is off");
                if let Some(stream) = self.stream.take() {
                    match stream.recording() {
                        Ok(recording) => self.recording = Some(recording),
                        Err(error) => self.notes.push(error.to_string()),
                    }
                    self.notes.extend(stream.end());
                }
                self.untraced = Some(why.clone());
                why
            }
            _ => {
                let why =
                    format!("{cost}, so an interval is {:.0} s", level.interval(self.interval).as_secs_f64());
                self.notes.push(why.clone());
                why
            }
        };
        snapshot.notes.push(note);
    }

    /// Writes the newest events into a recording, those before the end of tracing where the budget ended it; returns its size
    /// in bytes.
    ///
    /// # Errors
    /// [`TraceError::Usage`]: nothing was traced. [`TraceError::Output`]: the file could not be written.
    pub fn save(&self, output: &Path) -> Result<u64, TraceError> {
        match (&self.stream, &self.recording) {
            (Some(stream), _) => stream.save(output),
            (None, Some(recording)) => match sys::draft::write(output, recording) {
                Ok(()) => Ok(recording.len() as u64),
                Err(error) => Err(TraceError::Output { place: output.to_owned(), error }),
            },
            (None, None) => {
                Err(TraceError::Usage("nothing is traced, so there is nothing to write".to_owned()))
            }
        }
    }

    /// Ends it; returns what could not be restored, with the reasons.
    #[must_use]
    pub fn end(self) -> Vec<String> {
        self.stream.map(Stream::end).unwrap_or_default()
    }
}

/// Calls that somebody waits for, and oneway calls: a caller is there by the driver's state or by `/proc`, and of one that was
/// killed in a call the trace shows no end.
fn of_living(open: impl Iterator<Item = OpenTransaction>, loads: Option<&[Load]>) -> Vec<OpenTransaction> {
    let mut lives: HashMap<i32, bool> = loads.unwrap_or(&[]).iter().map(|load| (load.pid, true)).collect();
    let mut is_there =
        |pid: i32| *lives.entry(pid).or_insert_with(|| Path::new("/proc").join(pid.to_string()).exists());
    open.filter(|call| call.oneway || call.client_tgid.is_none_or(&mut is_there)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use needs::{Need, need};
    use trace::event::{Event, Kind};

    use super::*;

    #[test]
    fn calls_of_processes_that_are_gone_are_left_out() {
        let own = std::process::id().cast_signed();
        let call = |client_tgid| OpenTransaction {
            debug_id: 1,
            node: 1,
            code: 1,
            oneway: false,
            client: 1,
            client_tgid,
            to_proc: 1,
            server: None,
            begin: 0,
            received: None,
            doubtful: false,
        };
        let calls = || [Some(own), Some(-7), Some(-8), None].map(call).into_iter();
        let of = |loads: Option<&[Load]>| -> Vec<_> {
            of_living(calls(), loads).iter().map(|call| call.client_tgid).collect()
        };
        assert_eq!(of(None), [Some(own), None]);
        let load = Load { pid: -8, ..Load::default() };
        assert_eq!(of(Some(&[load])), [Some(own), Some(-8), None]);
    }

    #[test]
    fn events_from_before_the_end_of_tracing_can_be_written_after_it() {
        let settings = Settings { keep_bytes: 1 << 20, ..Settings::of_calls() };
        let look = Box::new(|| Ok(Looked::default()));
        let mut session = Session::begin(&settings, Duration::ZERO, -1.0, look);
        let untraced = session.untraced().map(str::to_owned);
        need!(untraced.map_or(Ok(()), |why| Err(Need::Tracefs.lacks(why))));
        let folder = session.stream.as_ref().and_then(|stream| stream.recorder().folder().ok());
        let marker = folder.expect("it runs").join("trace_marker");
        let mark = "binder_transaction_received: transaction=7";
        std::fs::write(marker, mark).expect("marked");
        let levels: Vec<&str> = (0..5).map(|_| session.snapshot(false).expect("read").level).collect();
        assert_eq!(levels, ["full", "full", "slower", "slower", "counters"]);
        let own = sys::private_folder::PrivateFolder::new("session").expect("a folder");
        let place = own.path().join("saved.bptrace");
        let bytes = session.save(&place).expect("written");
        let saved = std::fs::read(&place).expect("there");
        assert_eq!(saved.len() as u64, bytes);
        let mut reader = trace::open(Cursor::new(saved)).expect("a trace");
        let is_mark = |event: &Event| matches!(event.kind, Kind::Binder(..));
        assert_eq!(std::iter::from_fn(|| reader.next()).filter(is_mark).count(), 1);
        assert_eq!(session.end(), [""; 0]);
    }
}
