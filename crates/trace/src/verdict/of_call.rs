//! Analysis of a single call that a test's marks name.

use std::io::{Read, Seek};

use super::{Analysis, AnalysisOptions, Analyzer, Counts, Filter, Sum};
use crate::file::OpenError;

/// Calls whose labels contain the wanted one, such as number 12's and 120's.
const ALIKE: usize = 1 << 12;

/// Analyses one call of a trace: the one with this label, e.g. `pair=0 class=fifo number=12`. The result has no sums, and
/// no call if the trace does not hold it whole.
///
/// # Errors
/// The trace cannot be read.
pub fn of_call<R: Read + Seek>(file: R, label: &str) -> Result<Analysis, OpenError> {
    let mut reader = crate::open(file)?;
    let filter = Filter { mark: Some(label.to_owned()), ..Filter::default() };
    let mut analyzer = Analyzer::new(AnalysisOptions { worst: ALIKE, filter, ..AnalysisOptions::default() });
    while let Some(event) = reader.next() {
        analyzer.take(&event, reader.names());
    }
    let mut analysis = analyzer.finish(reader.names(), reader.report());
    analysis.slow.retain(|slow| slow.label.as_deref() == Some(label));
    let count = |holds: bool| if holds { analysis.slow.len() as u64 } else { 0 };
    let missed = analysis.slow.iter().any(|slow| slow.missed);
    analysis.counts = Counts { calls: count(true), missed: count(missed), ..Counts::default() };
    // Misses that were reported before the recording began are not its faults.
    analysis.problems = reader.report().problems.iter().map(ToString::to_string).collect();
    Ok(Analysis {
        unanswered: Vec::new(),
        failed: Vec::new(),
        oneway_spam: Vec::new(),
        all: Sum::default(),
        slowest: Sum::default(),
        oneway: Sum::default(),
        behind: Vec::new(),
        busiest: None,
        ..analysis
    })
}
