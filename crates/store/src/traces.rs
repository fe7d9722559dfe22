//! Traces that a command reads, packed or not, once to answer and once to draw.
//! Not here: the formats, the answers and the pictures (crate `trace`), a trace for Perfetto (`perfetto`).

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use sys::folder::Folder;
use trace::event::{Event, Names};
use trace::file::OpenError;
use trace::picture::{PictureCollector, PictureData};
use trace::verdict::{Analysis, AnalysisOptions, Analyzer};

use crate::input;
use crate::perfetto::Export;
use crate::{StoreError, Tell};

/// Makes a nameless file in the folder for temporary ones.
///
/// # Errors
/// The folder takes none.
pub fn scratch() -> io::Result<File> {
    Folder::open(&std::env::temp_dir())?.nameless_file()
}

/// Opens a trace. One that must be unpacked first is, in a [`scratch`] file.
///
/// # Errors
/// It is no trace, or cannot be unpacked.
pub fn open<R: Read + Seek>(input: R) -> Result<trace::Reader<R>, OpenError> {
    trace::open_with(input, &mut scratch)
}

/// Reads a trace to its end; the error has no path.
///
/// # Errors
/// It cannot be read.
pub fn each(trace: &Path, mut take: impl FnMut(&Event, &Names)) -> Result<trace::Reader<File>, String> {
    let file = input::seekable(trace).map_err(|error| sys::errno::describe(&error))?;
    let mut reader = open(file).map_err(|error| error.to_string())?;
    while let Some(event) = reader.next() {
        take(&event, reader.names());
    }
    Ok(reader)
}

/// Reads a trace to its end and answers, on the way writing a file for Perfetto, if one is asked for.
///
/// # Errors
/// The trace cannot be read, or that file cannot be written or is the trace.
pub fn answer(
    question: AnalysisOptions,
    trace: &Path,
    perfetto: Option<&Path>,
    tell: Tell,
) -> Result<Analysis, StoreError> {
    let unreadable = |why: String| StoreError::Unusable(format!("{}: {why}", trace.display()));
    let file = input::seekable(trace).map_err(|error| unreadable(sys::errno::describe(&error)))?;
    let mut export = perfetto.map(|path| Export::check(path, trace)).transpose()?;
    let mut reader = open(file).map_err(|error| unreadable(error.to_string()))?;
    if let Some(export) = &mut export {
        export.begin(reader.head())?;
    }
    let mut analyzer = Analyzer::new(question);
    while let Some(event) = reader.next() {
        match &mut export {
            Some(export) => export.take(&event, &mut analyzer, reader.names()),
            None => analyzer.take(&event, reader.names()),
        }
    }
    if let Some(export) = export {
        export.finish(&mut analyzer, reader.names(), tell)?;
    }
    Ok(analyzer.finish(reader.names(), reader.report()))
}

/// The second reading of a trace: what is seen of the most pairs at work, and of so many slow calls.
///
/// # Errors
/// It cannot be read again.
pub fn scenes(
    trace: &Path,
    analysis: &Analysis,
    most: usize,
) -> Result<(Option<PictureData>, Vec<PictureData>), OpenError> {
    let mut reader = open(input::seekable(trace)?)?;
    let mut watch = PictureCollector::new(analysis, most);
    while let Some(event) = reader.next() {
        watch.take(&event, reader.names());
    }
    Ok(watch.finish(reader.names()))
}
