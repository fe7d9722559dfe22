//! Room: opening a trace by what is in it.
//! Not here: reading any of the forms.
//! Facts: `TRACE:` before atrace's text, and zlib behind it with `-z`; a `trace.dat` begins 0x17 0x08 0x44.

use crate::event::{Event, Names};
use crate::file::{Container, Head, MAGIC, OpenError};
use crate::raw::RawReader;
use crate::report::Report;
use crate::text::{Input, TextReader, looks_like_trace};
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use std::io::{Read, Seek, SeekFrom};

/// How much of a file is looked at to find out what it is, in bytes.
const PREFIX: u64 = 64 << 10;

/// A trace of any form: an iterator of its events.
///
/// Take events with `while let Some(event) = reader.next()`, which leaves [`Reader::names`] usable.
#[derive(Debug)]
pub struct Reader<R>(Form<R>);

#[derive(Debug)]
enum Form<R> {
    Raw(Box<RawReader<R>>),
    Text(Box<TextReader<Input<R>>>),
}

/// Opens a trace, whatever wrote it: a file of ours, or ftrace's text, plain, in HTML or compressed.
///
/// # Errors
/// If it is none of these, or cannot be read. What is wrong behind a sound beginning is in the [`Report`].
pub fn open<R: Read + Seek>(mut input: R) -> Result<Reader<R>, OpenError> {
    input.rewind()?;
    let mut start = Vec::new();
    (&mut input).take(PREFIX).read_to_end(&mut start)?;
    input.rewind()?;
    if start.is_empty() {
        return Err(OpenError::Empty);
    }
    if start.starts_with(&MAGIC) {
        return Ok(Reader(Form::Raw(Box::new(RawReader::new(Container::open(input)?)))));
    }
    if start.starts_with(&[0x1f, 0x8b]) {
        let mut inside = Vec::new();
        // A prefix of a compressed file ends in an error, behind what it gave.
        let _ = MultiGzDecoder::new(start.as_slice()).take(PREFIX).read_to_end(&mut inside);
        let html = form_of_text(&inside)?;
        return Ok(text(Input::Gzip(Box::new(MultiGzDecoder::new(input))), html));
    }
    if let Some(offset) = behind_trace_word(&start) {
        let behind = start.get(offset..).unwrap_or_default();
        if is_zlib(behind) {
            input.seek(SeekFrom::Start(offset as u64))?;
            return Ok(text(Input::Zlib(Box::new(ZlibDecoder::new(input))), false));
        }
    }
    let html = form_of_text(&start)?;
    Ok(text(Input::Plain(input), html))
}

fn text<R: Read>(input: Input<R>, html: bool) -> Reader<R> {
    Reader(Form::Text(Box::new(TextReader::new(input, html))))
}

/// Whether a text is HTML.
fn form_of_text(start: &[u8]) -> Result<bool, OpenError> {
    let found = |found: &str| Err(OpenError::Foreign { found: found.to_owned() });
    if start.starts_with(&[0x17, 0x08, 0x44]) {
        return found("it is a trace.dat of trace-cmd, of which it reads what trace-cmd report prints");
    }
    let bare = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let begins = |word: &[u8]| bare.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    if begins(b"<!doctype html") || begins(b"<html") {
        return Ok(true);
    }
    if begins(b"{") || begins(b"[{") {
        return found("it is JSON");
    }
    // Before binary is told from text: a damaged byte must not cost the whole trace.
    if looks_like_trace(bare) || behind_trace_word(start).is_some() {
        return Ok(false);
    }
    if start.contains(&0) {
        return found("it is binary, perhaps a protobuf trace of Perfetto");
    }
    found("it is text, but none of its first lines is an event")
}

/// Where atrace's text begins: behind a line `TRACE:`.
fn behind_trace_word(start: &[u8]) -> Option<usize> {
    let near = start.get(..4096).unwrap_or(start);
    let at = near.windows(7).position(|window| window == b"TRACE:\n");
    if let Some(at) = at.filter(|at| *at == 0 || near.get(at - 1) == Some(&b'\n')) {
        return Some(at + 7);
    }
    // Through a terminal, as adb shell gives it.
    let at = near.windows(8).position(|window| window == b"TRACE:\r\n");
    at.filter(|at| *at == 0 || near.get(at - 1) == Some(&b'\n')).map(|at| at + 8)
}

/// Fact: RFC 1950, section 2.2: method 8, and the check over the first two bytes.
fn is_zlib(bytes: &[u8]) -> bool {
    let [method, flags, ..] = bytes else { return false };
    method & 0x0f == 8 && (u16::from(*method) << 8 | u16::from(*flags)).is_multiple_of(31)
}

impl<R: Read + Seek> Reader<R> {
    /// The names that events carry the numbers of.
    pub fn names(&self) -> &Names {
        match &self.0 {
            Form::Raw(reader) => reader.names(),
            Form::Text(reader) => reader.names(),
        }
    }

    /// What was met so far; whole after the last event.
    pub fn report(&self) -> &Report {
        match &self.0 {
            Form::Raw(reader) => reader.report(),
            Form::Text(reader) => reader.report(),
        }
    }

    /// What a file of ours says of the recording. Texts say nothing.
    pub fn head(&self) -> Option<&Head> {
        match &self.0 {
            Form::Raw(reader) => Some(reader.head()),
            Form::Text(_) => None,
        }
    }
}

impl<R: Read + Seek> Iterator for Reader<R> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        match &mut self.0 {
            Form::Raw(reader) => reader.next(),
            Form::Text(reader) => reader.next(),
        }
    }
}
