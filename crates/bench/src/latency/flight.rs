//! Flight recording of the slowest calls of a test: which calls are worth a recording, and their files.
//! Not here: the recorder (`ftrace::record::flight`), the pause of all callers (`procgroup::block`).
//!
//! The first pair that breaks, or gets no reply for a second, ends the recorder: its events up to there show what was not
//! answered, or failed, and later ones would drive them out.
//!
//! A client that made such a call asks for a pause, in which no pair makes a call. Only then the recorder is stopped,
//! saved and started again, so a recording has the whole of each call, and saving disturbs no call.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ftrace::record::flight::FlightRecorder;
use procgroup::SharedBlock;
use record::{Class, Miss, Recorder, SavedCall, StoppedPair};

use super::notes;

/// Calls of each class with a recording: the worst one, and another miss.
const MOST: usize = 2;
/// Time that callers have to rest; one that hangs must not hold up the others.
const PATIENCE: Duration = Duration::from_millis(200);

/// The longest times of each class so far, longest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Slowest([[u64; MOST]; 2]);

impl Slowest {
    /// Takes the next call; returns true if it is worth a recording: the worst of its class until now, or one of its
    /// worst misses.
    pub(super) fn takes(&mut self, class: Class, took: u64, deadline: u64) -> bool {
        let longest = &mut self.0[class as usize];
        let rank = longest.partition_point(|other| *other >= took);
        let worth = rank == 0 || took > deadline && rank < MOST;
        if worth {
            longest[rank..].rotate_right(1);
            longest[rank] = took;
        }
        worth
    }
}

/// Keeps the recordings of a test.
pub(super) struct RecordingKeeper {
    recorder: FlightRecorder,
    /// Path of the recordings without the call's name.
    prefix: PathBuf,
    deadline: u64,
    slowest: Slowest,
    kept: Vec<SavedCall>,
    trouble: Option<String>,
    paused: Option<Instant>,
    /// The pair that stopped, and the recorder with it.
    stopped_at: Option<u32>,
}

impl RecordingKeeper {
    /// Prepares the recorder, or says why there is none.
    pub(super) fn prepare(prefix: PathBuf, deadline: u64) -> Result<Self, String> {
        let recorder = FlightRecorder::prepare().map_err(|error| error.to_string())?;
        Ok(Self {
            recorder,
            prefix,
            deadline,
            slowest: Slowest::default(),
            kept: Vec::new(),
            trouble: None,
            paused: None,
            stopped_at: None,
        })
    }

    /// Starts the recorder.
    pub(super) fn start(&self) -> Result<(), String> {
        self.recorder.start().map_err(|error| error.to_string())
    }

    /// The tracefs folder of the recorder.
    pub(super) fn folder(&self) -> PathBuf {
        self.recorder.folder()
    }

    /// The recorder's memory for the events of calls, if it has one.
    pub(super) fn records(&self) -> Option<PathBuf> {
        self.recorder.records()
    }

    /// During a pause: saves the recording once all callers rest or have finished `step`, and ends the pause.
    pub(super) fn paused(&mut self, block: &mut SharedBlock, clients: &[u32], step: u32) {
        let since = *self.paused.get_or_insert_with(Instant::now);
        let rests = |client: &u32| block.rests(*client) || block.done(*client) >= step;
        if !clients.iter().all(rests) && !sys::patience::is_over(since, PATIENCE) {
            return;
        }
        self.paused = None;
        let asked = |(pair, client): (u32, &u32)| notes::slow_call(&block.notes(*client), pair);
        let calls: Vec<Miss> = (0..).zip(clients).filter_map(asked).collect();
        self.keep(&calls);
        block.resume();
    }

    /// Stops the recorder for good, as this pair stopped; the others go on without it.
    pub(super) fn stop_at(&mut self, pair: u32) {
        if self.stopped_at.is_none() {
            self.stopped_at = Some(pair);
            if let Err(error) = self.recorder.stop() {
                self.trouble = Some(error.to_string());
            }
        }
    }

    fn keep(&mut self, calls: &[Miss]) {
        if self.stopped_at.is_some() {
            return;
        }
        let (slowest, deadline) = (&mut self.slowest, self.deadline);
        let worth: Vec<&Miss> =
            calls.iter().filter(|call| slowest.takes(call.class, call.took, deadline)).collect();
        let Some(first) = worth.first().filter(|_| self.trouble.is_none()) else { return };
        let Miss { pair, class, iteration, .. } = first;
        let name = self.prefix.file_name().unwrap_or_default().to_string_lossy();
        let file = format!("{name}-{}-{pair}-{iteration}.bptrace", class.name());
        if let Err(error) = self.recorder.save(&self.prefix.with_file_name(&file)) {
            self.trouble = Some(error.to_string());
            return;
        }
        let saved = worth.into_iter().map(|call| SavedCall {
            call: *call,
            missed: call.took > deadline,
            file: file.clone(),
            cause: String::new(),
        });
        self.kept.extend(saved);
        self.drop_superseded();
    }

    /// Removes the recordings of calls that are among the slowest no more.
    fn drop_superseded(&mut self) {
        self.kept.sort_by_key(|saved| std::cmp::Reverse(saved.call.took));
        let mut seen = [0; 2];
        let (kept, rest): (Vec<_>, Vec<_>) = self.kept.drain(..).partition(|saved| {
            let rank = &mut seen[saved.call.class as usize];
            *rank += 1;
            *rank == 1 || saved.missed && *rank <= MOST
        });
        for old in rest.iter().filter(|old| kept.iter().all(|saved| saved.file != old.file)) {
            let _ = fs::remove_file(self.prefix.with_file_name(&old.file));
        }
        self.kept = kept;
    }

    /// Ends the recorder, saves what it holds of a pair that stopped, and names the causes. All workers must have ended.
    pub(super) fn finish(self) -> Recorder {
        let Self { mut recorder, prefix, mut kept, mut trouble, stopped_at, .. } = self;
        let name = prefix.file_name().unwrap_or_default().to_string_lossy();
        let stopped = stopped_at.and_then(|pair| {
            let file = format!("{name}-stopped-{pair}.bptrace");
            match recorder.save(&prefix.with_file_name(&file)) {
                Ok(()) => Some(StoppedPair { pair, file }),
                Err(error) => {
                    trouble = trouble.take().or(Some(error.to_string()));
                    None
                }
            }
        });
        drop(recorder);
        for saved in &mut kept {
            saved.cause = cause(&prefix.with_file_name(&saved.file), &saved.label());
        }
        Recorder { saved: kept, stopped, trouble, ..Recorder::default() }
    }
}

/// The cause of a call in a sentence, or why it cannot be told.
fn cause(recording: &std::path::Path, label: &str) -> String {
    let analysis = File::open(recording)
        .map_err(|error| sys::errno::describe(&error))
        .and_then(|file| trace::verdict::of_call(file, label).map_err(|error| error.to_string()));
    match analysis {
        Ok(analysis) => match analysis.slow.into_iter().next() {
            Some(slow) => slow.verdict,
            None => "the recording does not hold the call".to_owned(),
        },
        Err(why) => format!("the recording cannot be read: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_call_and_the_worst_misses_are_worth_a_recording() {
        let mut slowest = Slowest::default();
        let mut takes = |class, took| slowest.takes(class, took, 100);
        assert!(takes(Class::Fifo, 5), "the first call is the worst until now");
        assert!(!takes(Class::Fifo, 4) && !takes(Class::Fifo, 5) && takes(Class::Fifo, 50));
        assert!(takes(Class::Other, 10), "each class has its own");
        assert!(takes(Class::Fifo, 900) && takes(Class::Fifo, 700) && takes(Class::Fifo, 800));
        assert!(!takes(Class::Fifo, 750), "there are two that are worse");
        assert!(takes(Class::Fifo, 850) && !takes(Class::Fifo, 820) && takes(Class::Fifo, 901));
    }
}
