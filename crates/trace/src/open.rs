//! Opens a trace and detects its format from the content.
//! Not here: reading the formats.
//! Facts: atrace's text begins behind `TRACE:`, with `-z` zlib data follows.

use crate::event::{Event, Names};
use crate::file::{Container, DAT_MAGIC, Head, MAGIC, OpenError};
use crate::gunzip::Gunzip;
use crate::pftrace::{self, PerfettoReader};
use crate::raw::RawReader;
use crate::report::{ProblemKind, Report};
use crate::text::quoted::{Quoted, find_from};
use crate::text::{TextReader, looks_like_trace};
use crate::unpack::{self, Scratch, Unpacked};
use flate2::read::ZlibDecoder;
use std::io::{self, Read, Seek, SeekFrom};

/// Class of the scripts of a page that hold a trace.
const TRACE_DATA: &[u8] = b"class=\"trace-data\"";
/// Maximum number of packings around one another.
const MOST_PACKINGS: usize = 3;

/// Bytes read to detect the format.
const PREFIX: u64 = 64 << 10;

/// Beginnings of other files that are taken for traces.
/// Facts: the formats' own descriptions; a Fuchsia trace begins with the record of its magic number.
const FOREIGN: [(&[u8], &str); 7] = [
    (b"\x10\x00\x04\x46\x78\x54\x16\x00", "it is a trace of Fuchsia (.fxt), which has no binder events"),
    (
        b"PERFILE2",
        "it is a perf.data of perf or simpleperf; record with `binderperf trace record` or Perfetto",
    ),
    (b"\x28\xb5\x2f\xfd", "it is packed by zstd; unpack it first: zstd -d"),
    (b"\xfd7zXZ\x00", "it is packed by xz; unpack it first: xz -d"),
    (b"BZh", "it is packed by bzip2; unpack it first: bzip2 -d"),
    (b"\xc1\x1f\xfc\xc1", "it is a stream of CTF, of LTTng or babeltrace, which has no binder events"),
    (b"\x7fELF", "it is a program"),
];

/// Reader of a trace in any format: an iterator of its events.
///
/// Take events with `while let Some(event) = reader.next()`, which leaves [`Reader::names`] usable.
#[derive(Debug)]
pub struct Reader<R>(Form<R>);

#[derive(Debug)]
enum Form<R> {
    Raw(Box<RawReader<Unpacked<R>>>),
    Perfetto(Box<PerfettoReader<Unpacked<R>>>),
    Text(Box<TextReader<Input<Unpacked<R>>>>),
}

/// Text source: plain, zlib (from `atrace -z`), gzip, or a string of a script or of JSON.
#[derive(Debug)]
enum Input<R> {
    Plain(R),
    Zlib(Box<ZlibDecoder<R>>),
    Gzip(Box<Gunzip<R>>),
    Quoted(Box<Quoted<R>>),
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(space),
            Self::Zlib(input) => input.read(space),
            Self::Gzip(input) => input.read(space),
            Self::Quoted(input) => input.read(space),
        }
    }
}

/// Opens a trace: a binderperf file, a `trace.dat` of trace-cmd, a Perfetto trace, or ftrace's text, plain, in HTML, in JSON or
/// compressed.
///
/// # Errors
/// If the format is unknown or reading fails. A binary trace that is packed is refused: [`open_with`] reads it. Problems
/// behind a valid start are in the [`Report`].
pub fn open<R: Read + Seek>(input: R) -> Result<Reader<R>, OpenError> {
    open_with(input, &mut || Err(io::ErrorKind::Unsupported.into()))
}

/// [`open`], also of a trace packed by gzip or in a zip archive, which is unpacked into the file that `scratch` makes.
///
/// # Errors
/// As [`open`], and those of `scratch`.
pub fn open_with<R: Read + Seek>(input: R, scratch: Scratch<'_>) -> Result<Reader<R>, OpenError> {
    let (mut input, mut damages) = (Unpacked::Direct(input), Vec::new());
    for _ in 0..=MOST_PACKINGS {
        let start = prefix(&mut input)?;
        let content = if start.starts_with(&[0x1f, 0x8b]) {
            match gzipped_text(&start)? {
                Some(html) => {
                    let reader = text(Input::Gzip(Box::new(Gunzip::new(input))), html);
                    return Ok(reader.behind(damages));
                }
                None => unpack::gzip(input, scratch)?,
            }
        } else if start.starts_with(b"PK\x03\x04") {
            unpack::zip(input, scratch)?
        } else {
            return match open_plain(input, &start) {
                Ok(reader) => Ok(reader.behind(damages)),
                Err(error) => Err(of_part(error, damages)),
            };
        };
        damages.extend(content.damage);
        input = Unpacked::File(content.file);
    }
    Err(foreign("it is packed again and again"))
}

/// Why what was unpacked is no trace, if it may be no trace because it is not the whole.
fn of_part(error: OpenError, mut damages: Vec<String>) -> OpenError {
    match damages.pop() {
        Some(damage) => OpenError::Malformed { detail: format!("{damage}; {error}") },
        None => error,
    }
}

/// Beginning of a source, which is then at its begin.
fn prefix(input: &mut (impl Read + Seek)) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    input.rewind()?;
    input.by_ref().take(PREFIX).read_to_end(&mut start)?;
    input.rewind()?;
    Ok(start)
}

/// Whether what gzip packed is text that can be read as it comes, and then whether it is HTML. `None` if it must be unpacked
/// first.
fn gzipped_text(start: &[u8]) -> Result<Option<bool>, OpenError> {
    let mut inside = Vec::new();
    // A prefix of a compressed file ends in an error; the bytes before it are used.
    let read = Gunzip::new(start).take(PREFIX).read_to_end(&mut inside);
    let packed = inside.starts_with(&[0x1f, 0x8b]) || inside.starts_with(b"PK\x03\x04");
    let binary =
        inside.starts_with(&MAGIC) || inside.starts_with(&DAT_MAGIC) || pftrace::looks_like_trace(&inside);
    // Of these the place of the trace is looked for first.
    let page = begins(&inside, b"{")
        || begins(&inside, b"[{")
        || begins(&inside, b"<!doctype html")
        || begins(&inside, b"<html");
    let text = inside.windows(TRACE_DATA.len()).any(|bytes| bytes == TRACE_DATA);
    if packed || binary || (page && !text) {
        return Ok(None);
    }
    match (form_of_text(&inside), read) {
        (Ok(html), _) => Ok(Some(html)),
        // This is all of the file.
        (Err(_), Err(fault)) if (start.len() as u64) < PREFIX => {
            let without = match inside.len() {
                0 => "nothing of it can be unpacked".to_owned(),
                bytes => format!("the {bytes} bytes that can be unpacked have no event"),
            };
            Err(OpenError::Malformed { detail: format!("{fault}, and {without}") })
        }
        (Err(_), Ok(0)) => Err(OpenError::Empty),
        (Err(error), _) => Err(error),
    }
}

fn open_plain<R: Read + Seek>(mut input: Unpacked<R>, start: &[u8]) -> Result<Reader<R>, OpenError> {
    if start.is_empty() {
        return Err(OpenError::Empty);
    }
    if start.starts_with(&MAGIC) {
        return Ok(Reader(Form::Raw(Box::new(RawReader::new(Container::open(input)?)))));
    }
    if start.starts_with(&DAT_MAGIC) {
        return Ok(Reader(Form::Raw(Box::new(RawReader::new(Container::open_trace_dat(input)?)))));
    }
    if let Some(offset) = behind_trace_word(start) {
        let behind = start.get(offset..).unwrap_or_default();
        if is_zlib(behind) {
            input.seek(SeekFrom::Start(offset as u64))?;
            return Ok(text(Input::Zlib(Box::new(ZlibDecoder::new(input))), false));
        }
    }
    if pftrace::looks_like_trace(start) {
        return Ok(Reader(Form::Perfetto(Box::new(PerfettoReader::open(input)?))));
    }
    if begins(start, b"{") || begins(start, b"[{") {
        return match Quoted::find(input, b"\"systemTraceEvents\"", b':')? {
            Ok(quoted) => Ok(text(Input::Quoted(Box::new(quoted)), false)),
            Err(_) => Err(foreign(JSON)),
        };
    }
    let html = form_of_text(start)?;
    if html && find_from(&mut input, 0, TRACE_DATA)?.is_none() {
        return Ok(match Quoted::find(input, b"linuxPerfData", b'=')? {
            Ok(quoted) => text(Input::Quoted(Box::new(quoted)), false),
            Err(mut input) => {
                input.rewind()?;
                text(Input::Plain(input), true)
            }
        });
    }
    input.rewind()?;
    Ok(text(Input::Plain(input), html))
}

const JSON: &str =
    "it is JSON without systemTraceEvents, perhaps a trace of Chrome, which has no events of the kernel";

fn foreign(found: &str) -> OpenError {
    OpenError::Foreign { found: found.to_owned() }
}

/// Text without the mark of its encoding and without spaces before it.
fn bare(start: &[u8]) -> &[u8] {
    start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start()
}

fn begins(start: &[u8], word: &[u8]) -> bool {
    bare(start).get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

fn text<R: Read>(input: Input<Unpacked<R>>, html: bool) -> Reader<R> {
    Reader(Form::Text(Box::new(TextReader::new(input, html))))
}

/// Whether a text is HTML.
fn form_of_text(start: &[u8]) -> Result<bool, OpenError> {
    let found = |found: &str| Err(foreign(found));
    if begins(start, b"<!doctype html") || begins(start, b"<html") {
        return Ok(true);
    }
    if begins(start, b"{") || begins(start, b"[{") {
        return found(JSON);
    }
    if let Some((_, what)) = FOREIGN.iter().find(|(magic, _)| start.starts_with(magic)) {
        return found(what);
    }
    // Check for trace text before binary data: one damaged byte must not reject the whole trace.
    if looks_like_trace(bare(start)) || behind_trace_word(start).is_some() {
        return Ok(false);
    }
    if start.contains(&0) {
        return found("it is binary, of a form that it does not know");
    }
    found("it is text, but none of its first lines is an event")
}

/// Offset of atrace's text: behind a line `TRACE:`, which a terminal such as `adb shell` may end in two characters.
fn behind_trace_word(start: &[u8]) -> Option<usize> {
    let near = start.get(..4096).unwrap_or(start);
    ["TRACE:\n", "TRACE:\r\n"].iter().find_map(|line| {
        let at = near.windows(line.len()).position(|window| window == line.as_bytes())?;
        (at == 0 || near.get(at - 1) == Some(&b'\n')).then_some(at + line.len())
    })
}

/// Fact: RFC 1950, section 2.2: method 8, and the checksum of the first two bytes.
fn is_zlib(bytes: &[u8]) -> bool {
    let [method, flags, ..] = bytes else { return false };
    method & 0x0f == 8 && (u16::from(*method) << 8 | u16::from(*flags)).is_multiple_of(31)
}

impl<R: Read + Seek> Reader<R> {
    /// This reader, whose input came out of packings with these damages.
    fn behind(mut self, damages: Vec<String>) -> Self {
        let report = match &mut self.0 {
            Form::Raw(reader) => reader.report_mut(),
            Form::Perfetto(reader) => reader.report_mut(),
            Form::Text(reader) => reader.report_mut(),
        };
        damages.into_iter().for_each(|damage| report.note_apart(ProblemKind::Corrupt, damage));
        self
    }

    /// Names that the events refer to.
    pub fn names(&self) -> &Names {
        match &self.0 {
            Form::Raw(reader) => reader.names(),
            Form::Perfetto(reader) => reader.names(),
            Form::Text(reader) => reader.names(),
        }
    }

    /// Report so far; complete after the last event.
    pub fn report(&self) -> &Report {
        match &self.0 {
            Form::Raw(reader) => reader.report(),
            Form::Perfetto(reader) => reader.report(),
            Form::Text(reader) => reader.report(),
        }
    }

    /// Header of a binderperf file or a `trace.dat`; `None` for others.
    pub fn head(&self) -> Option<&Head> {
        match &self.0 {
            Form::Raw(reader) => Some(reader.head()),
            Form::Perfetto(_) | Form::Text(_) => None,
        }
    }
}

impl<R: Read + Seek> Iterator for Reader<R> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        match &mut self.0 {
            Form::Raw(reader) => reader.next(),
            Form::Perfetto(reader) => reader.next(),
            Form::Text(reader) => reader.next(),
        }
    }
}
