//! A trace written for Perfetto while it is read: the file is begun only once the trace is open, and never over the trace itself.
//! Not here: what is written (`trace::perfetto`).

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use sys::draft::Draft;
use trace::event::{Event, Names};
use trace::file::Head;
use trace::model::Transaction;
use trace::perfetto::Exporter;
use trace::verdict::{Analyzer, ReportedMiss, TransactionEvent};

use crate::input::is_same_file;
use crate::{StoreError, Tell};

/// The output file.
pub(crate) struct Export {
    path: PathBuf,
    exporter: Option<(Exporter<BufWriter<File>>, Draft)>,
    met: Vec<(Transaction, Option<ReportedMiss>)>,
}

impl Export {
    /// Checks that this path may be written while that trace is read.
    pub(crate) fn check(path: &Path, trace: &Path) -> Result<Self, StoreError> {
        if is_same_file(trace, path) {
            let why = format!("{}: this is the trace that is read", path.display());
            return Err(StoreError::Unusable(why));
        }
        Ok(Self { path: path.to_owned(), exporter: None, met: Vec::new() })
    }

    /// Begins the file; a bad path is reported before the trace is read.
    pub(crate) fn begin(&mut self, head: Option<&Head>) -> Result<(), StoreError> {
        let begun = || {
            let draft = Draft::new(&self.path)?;
            Ok((draft.file().try_clone()?, draft))
        };
        let (file, draft) = begun().map_err(|error| self.trouble(error))?;
        self.exporter = Some((Exporter::new(BufWriter::with_capacity(256 << 10, file), head), draft));
        Ok(())
    }

    /// Writes the next event and passes it to the analysis.
    pub(crate) fn take(&mut self, event: &Event, analyzer: &mut Analyzer, names: &Names) {
        let all = &mut self.met;
        analyzer.take_with(event, names, &mut |met| all.push(kept(met)));
        if let Some((exporter, _)) = &mut self.exporter {
            exporter.event(event, names);
        }
        self.write_calls(analyzer, names);
    }

    /// Writes the rest, and tells what is in the file.
    pub(crate) fn finish(
        mut self,
        analyzer: &mut Analyzer,
        names: &Names,
        tell: Tell,
    ) -> Result<(), StoreError> {
        while let Some(call) = analyzer.end_next(names) {
            self.met.push((call, None));
            self.write_calls(analyzer, names);
        }
        let Some((exporter, draft)) = self.exporter.take() else { return Ok(()) };
        let written = exporter.finish().and_then(|written| draft.commit().map(|()| written));
        let written = written.map_err(|error| self.trouble(error))?;
        let path = self.path.display();
        tell(&format!("{path}: {} calls, {} bytes, for ui.perfetto.dev", written.calls, written.bytes));
        if written.undrawn > 0 {
            tell(&format!("{path}: {} more are without their causes, too many at once", written.undrawn));
        }
        Ok(())
    }

    fn write_calls(&mut self, analyzer: &Analyzer, names: &Names) {
        for (call, told) in self.met.drain(..) {
            let Some((exporter, _)) = &mut self.exporter else { return };
            let slow = analyzer.describe_miss(&call, told, names);
            match (slow, told) {
                (Some(slow), Some(_)) => exporter.miss(&call, &slow),
                (slow, _) => exporter.call(&call, slow.as_ref(), names),
            }
        }
    }

    fn trouble(&self, error: io::Error) -> StoreError {
        StoreError::unwritten_as(format!("could not write {}", self.path.display()), error)
    }
}

fn kept(met: TransactionEvent<'_>) -> (Transaction, Option<ReportedMiss>) {
    match met {
        TransactionEvent::Ended(call) => (call.clone(), None),
        TransactionEvent::Missed(call, told) => (call.clone(), Some(told)),
    }
}
