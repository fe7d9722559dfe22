//! Room: `--perfetto OUT`: the file, made only when the trace could be opened, and never over the trace itself.
//! Not here: what is written (`trace::perfetto`).

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use trace::event::{Event, Names};
use trace::file::Head;
use trace::model::Transaction;
use trace::perfetto::Exporter;
use trace::verdict::{Analyst, Met, Told};

use crate::cli::{exit, note};

/// The file to be written.
pub(super) struct Export {
    path: PathBuf,
    exporter: Option<Exporter<BufWriter<File>>>,
    met: Vec<(Transaction, Option<Told>)>,
}

impl Export {
    /// Whether this path may be written to while that trace is read.
    pub(super) fn check(path: &Path, trace: &File) -> Result<Self, (u8, String)> {
        let same = |trace: &File| -> io::Result<bool> {
            let (trace, out) = (trace.metadata()?, std::fs::metadata(path)?);
            Ok((trace.dev(), trace.ino()) == (out.dev(), out.ino()))
        };
        // Where there is no such file, it is not the trace.
        if same(trace).unwrap_or(false) {
            return Err((exit::USAGE, format!("{}: this is the trace that is read", path.display())));
        }
        Ok(Self { path: path.to_owned(), exporter: None, met: Vec::new() })
    }

    /// Makes the file; a bad path shows before the trace is read.
    pub(super) fn begin(&mut self, head: Option<&Head>) -> Result<(), (u8, String)> {
        let file = File::create(&self.path).map_err(|error| self.trouble(&error))?;
        self.exporter = Some(Exporter::new(BufWriter::with_capacity(256 << 10, file), head));
        Ok(())
    }

    /// Takes the next event, and gives it to the analyst.
    pub(super) fn take(&mut self, event: &Event, analyst: &mut Analyst, names: &Names) {
        let all = &mut self.met;
        analyst.take_with(event, names, &mut |met| all.push(kept(met)));
        if let Some(exporter) = &mut self.exporter {
            exporter.event(event, names);
        }
        self.write_calls(analyst, names);
    }

    /// Writes the rest and says what was written.
    pub(super) fn finish(mut self, analyst: &mut Analyst, names: &Names) -> Result<(), (u8, String)> {
        let all = &mut self.met;
        analyst.end_with(names, &mut |met| all.push(kept(met)));
        self.write_calls(analyst, names);
        let Some(exporter) = self.exporter.take() else { return Ok(()) };
        let written = exporter.finish().map_err(|error| self.trouble(&error))?;
        let path = self.path.display();
        note(format_args!("{path}: {} calls, {} bytes, for ui.perfetto.dev\n", written.calls, written.bytes));
        if written.undrawn > 0 {
            note(format_args!(
                "{path}: {} more are without their causes, too many at once\n",
                written.undrawn
            ));
        }
        Ok(())
    }

    fn write_calls(&mut self, analyst: &Analyst, names: &Names) {
        for (call, told) in self.met.drain(..) {
            let Some(exporter) = &mut self.exporter else { return };
            let slow = analyst.tell_miss(&call, told, names);
            match (slow, told) {
                (Some(slow), Some(_)) => exporter.miss(&call, &slow),
                (slow, _) => exporter.call(&call, slow.as_ref(), names),
            }
        }
    }

    fn trouble(&self, error: &io::Error) -> (u8, String) {
        let why = lab::describe_errno(error);
        (exit::INTERNAL, format!("could not write {}: {why}", self.path.display()))
    }
}

fn kept(met: Met<'_>) -> (Transaction, Option<Told>) {
    match met {
        Met::Ended(call) => (call.clone(), None),
        Met::Missed(call, told) => (call.clone(), Some(told)),
    }
}
