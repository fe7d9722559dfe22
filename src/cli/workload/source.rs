//! The trace that a command reads, and the part of it.
//! Not here: recordings (crate `workload`).

use std::path::Path;

use clap::Args;
use store::traces::each;
use workload::recording::{Half, Recorder, Recording, Selection};

use crate::cli::choice::{self, Table};
use crate::cli::{Failure, OrExit, exit};

/// Which part of a trace.
#[derive(Clone, Debug, Args)]
pub(super) struct PartArgs {
    /// Leave out calls that were sent before this time, in seconds from the trace's first event
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    from: Option<u64>,

    /// Leave out calls that were sent at this time or later
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    to: Option<u64>,

    /// Only one half of the calls, by time: one to describe, the other to judge by
    #[arg(long, value_parser = choice::table(&HALVES))]
    half: Option<Half>,
}

/// Halves of a trace.
const HALVES: Table<Half, 2> =
    [(Half::First, "first", "The first half"), (Half::Second, "second", "The second half")];

impl PartArgs {
    /// Selection of this part.
    pub(super) fn selection(&self) -> Selection {
        Selection { from_ns: self.from, to_ns: self.to, half: self.half, ..Selection::default() }
    }

    /// Whether it is a half.
    pub(super) fn is_half(&self) -> bool {
        self.half.is_some()
    }
}

/// Reads seconds as nanoseconds.
fn seconds(text: &str) -> Result<u64, String> {
    let seconds = text.trim_end_matches('s').parse::<f64>().ok();
    let ns =
        seconds.filter(|seconds| (0.0..1e9).contains(seconds)).map(|seconds| (seconds * 1e9).round() as u64);
    ns.ok_or_else(|| format!("{text:?} is no number of seconds"))
}

/// Reads a trace of any form.
pub(super) fn recording(path: &Path) -> Result<Recording, Failure> {
    let mut recorder = Recorder::default();
    let reader = of_trace(path, each(path, |event, names| recorder.take(event, names)))?;
    Ok(recorder.finish(reader.names()))
}

/// An error of a trace, with its path.
pub(super) fn of_trace<T, E: std::fmt::Display>(path: &Path, result: Result<T, E>) -> Result<T, Failure> {
    result.map_err(|why| format!("{}: {why}", path.display())).or_exit(exit::USAGE)
}
