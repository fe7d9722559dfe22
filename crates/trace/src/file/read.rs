//! Opens a trace file: loads its texts and notes the offsets of its pages.
//! Not here: page contents (`raw`).

use super::{
    CHUNK_HEADER, Head, KIND_END, KIND_FORMAT, KIND_HEAD, KIND_PAGES, LARGEST_PAGE, MAGIC, MOST_CPUS,
    TracefsText, VERSION,
};
use crate::report::{ProblemKind, Report};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

/// Maximum total bytes of texts; the symbols of a large kernel are a tenth of it.
const MOST_TEXT: u64 = 128 << 20;

/// Error of opening a trace.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The source could not be read.
    Io(io::Error),
    /// The source is empty.
    Empty,
    /// Unknown format.
    Foreign {
        /// Description of the format found.
        found: String,
    },
    /// Trace file of an unsupported version.
    Version {
        /// Version in the file.
        found: u32,
    },
    /// Trace with a missing or invalid mandatory element.
    Malformed {
        /// The missing or invalid element.
        detail: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot read the trace: {error}"),
            Self::Empty => f.write_str("the trace is empty; was the recording interrupted?"),
            Self::Foreign { found } => write!(
                f,
                "this is no trace that binderperf reads: {found}; give it a file of its own, a trace of \
                 Perfetto or trace-cmd, or the text of ftrace, atrace or systrace"
            ),
            Self::Version { found } => write!(
                f,
                "the trace has version {found}, this binderperf knows {VERSION}; read it with the binderperf that \
                 wrote it, or a later one"
            ),
            Self::Malformed { detail } => write!(f, "the trace cannot be read: {detail}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Contiguous pages of one CPU in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) pages: u64,
    /// Form and length of compressed pages, which are read all at once.
    pub(super) packed: Option<(Packing, u32)>,
}

/// Form of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Zlib,
    Zstd,
}

impl Packing {
    /// Content of compressed bytes, of exactly this length.
    pub(super) fn unpack(self, packed: &[u8], length: u64) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        match self {
            Self::Zlib => flate2::read::ZlibDecoder::new(packed).take(length).read_to_end(&mut content)?,
            Self::Zstd => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(packed)
                    .map_err(|error| io::Error::other(error.to_string()))?;
                decoder.take(length).read_to_end(&mut content)?
            }
        };
        if content.len() as u64 == length {
            Ok(content)
        } else {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "compressed bytes are cut"))
        }
    }
}

/// Opened trace file. Pages stay in the file until they are read.
#[derive(Debug)]
pub struct Container<R> {
    input: R,
    head: Head,
    formats: Vec<(String, Vec<u8>)>,
    texts: BTreeMap<(u32, u32), Vec<u8>>,
    extents: BTreeMap<u32, VecDeque<Extent>>,
    found: Report,
}

/// Data that the first pass over a file collects.
#[derive(Default)]
struct Scan {
    head: Option<Head>,
    formats: Vec<(String, Vec<u8>)>,
    texts: BTreeMap<(u32, u32), Vec<u8>>,
    extents: BTreeMap<u32, VecDeque<Extent>>,
    text_bytes: u64,
    ended: bool,
    found: Report,
}

impl<R: Read + Seek> Container<R> {
    /// Opens a file: reads its texts and notes where its pages are.
    ///
    /// Truncation or damage behind a valid head is a problem in the [`Report`], not an error.
    ///
    /// # Errors
    /// If it is not a binderperf trace file, has another version, or its head is unusable.
    pub fn open(mut input: R) -> Result<Self, OpenError> {
        let end = input.seek(SeekFrom::End(0))?;
        input.rewind()?;
        if end == 0 {
            return Err(OpenError::Empty);
        }
        let mut start = [0; 12];
        input
            .read_exact(&mut start)
            .map_err(|_| OpenError::Foreign { found: "too short for a trace".into() })?;
        if start[..8] != MAGIC {
            return Err(OpenError::Foreign { found: "it does not begin as one".into() });
        }
        let version = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
        if version != VERSION {
            return Err(OpenError::Version { found: version });
        }
        let mut scan = Scan::default();
        let mut at = start.len() as u64;
        while at < end && !scan.ended {
            let Some(next) = scan.chunk(&mut input, at, end)? else { break };
            at = next;
        }
        if !scan.ended {
            scan.found.note(ProblemKind::Truncated, || {
                "the recording was not ended; later events are missing".into()
            });
        }
        let head = scan.head.ok_or_else(|| OpenError::Malformed { detail: "it has no head".into() })?;
        let Scan { formats, texts, extents, found, .. } = scan;
        Ok(Self { input, head, formats, texts, extents, found })
    }

    /// Replaces `space` with the next whole pages of a CPU, `most` bytes at most; leaves it empty if no pages remain.
    ///
    /// # Errors
    /// I/O errors of the input.
    pub fn read_pages(&mut self, cpu: u32, space: &mut Vec<u8>, most: usize) -> io::Result<()> {
        let size = u64::from(self.head.page_size);
        space.clear();
        let Some(extents) = self.extents.get_mut(&cpu) else { return Ok(()) };
        let Some(first) = extents.front_mut() else { return Ok(()) };
        if let Some((packing, length)) = first.packed {
            let Extent { offset, pages, .. } = *first;
            extents.pop_front();
            let mut packed = vec![0; length as usize];
            self.input.seek(SeekFrom::Start(offset))?;
            self.input.read_exact(&mut packed)?;
            *space = packing.unpack(&packed, pages * size)?;
            return Ok(());
        }
        let pages = first.pages.min((most as u64 / size).max(1));
        self.input.seek(SeekFrom::Start(first.offset))?;
        let bytes = usize::try_from(pages * size).map_err(io::Error::other)?;
        space.resize(bytes, 0);
        first.offset += pages * size;
        first.pages -= pages;
        if first.pages == 0 {
            extents.pop_front();
        }
        self.input.read_exact(space)
    }
}

impl<R> Container<R> {
    /// A file of another frame, whose parts are known.
    pub(super) fn of_parts(
        input: R,
        head: Head,
        formats: Vec<(String, Vec<u8>)>,
        texts: BTreeMap<(u32, u32), Vec<u8>>,
        extents: BTreeMap<u32, VecDeque<Extent>>,
        found: Report,
    ) -> Self {
        Self { input, head, formats, texts, extents, found }
    }

    /// Head of the file, written when the recording started.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Format files, each with its group.
    pub fn formats(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.formats.iter().map(|(group, text)| (group.as_str(), text.as_slice()))
    }

    /// Text of this kind, if present; `cpu` matters for [`TracefsText::Stats`] only.
    #[must_use]
    pub fn text(&self, part: TracefsText, cpu: u32) -> Option<&[u8]> {
        let cpu = if part == TracefsText::Stats { cpu } else { 0 };
        self.texts.get(&(part.kind(), cpu)).map(Vec::as_slice)
    }

    /// CPUs that have pages.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        self.extents.keys().copied()
    }

    /// CPUs that have a text of this kind.
    pub fn cpus_with(&self, part: TracefsText) -> impl Iterator<Item = u32> {
        self.texts.keys().filter(move |(kind, _)| *kind == part.kind()).map(|(_, cpu)| *cpu)
    }

    /// Problems of the file's structure.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.found
    }
}

impl Scan {
    /// Reads the chunk at this offset. Returns the offset of the next one, or `None` if the rest is unreadable.
    fn chunk(&mut self, input: &mut (impl Read + Seek), at: u64, end: u64) -> Result<Option<u64>, OpenError> {
        if end - at < CHUNK_HEADER {
            self.found.note(ProblemKind::Truncated, || format!("in a chunk's header at byte {at}"));
            return Ok(None);
        }
        let mut header = [0; CHUNK_HEADER as usize];
        input.seek(SeekFrom::Start(at))?;
        input.read_exact(&mut header)?;
        let [a, b, c, d, e, f, g, h, length @ ..] = header;
        let (kind, cpu) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        let length = u64::from_le_bytes(length);
        let start = at + CHUNK_HEADER;
        let here = length.min(end - start);
        if here < length {
            self.found.note(ProblemKind::Truncated, || {
                format!("the chunk at byte {at} says {length} bytes, {here} are left")
            });
        }
        match kind {
            KIND_END => self.ended = true,
            KIND_PAGES => self.pages(cpu, start, here),
            _ => self.content(input, kind, cpu, here)?,
        }
        Ok((here == length).then_some(start + here))
    }

    fn pages(&mut self, cpu: u32, offset: u64, bytes: u64) {
        let size = self.head.as_ref().map_or(0, |head| u64::from(head.page_size));
        if size == 0 || cpu >= MOST_CPUS {
            return self.found.note(ProblemKind::Corrupt, || format!("pages of CPU {cpu} at byte {offset}"));
        }
        let pages = bytes / size;
        if pages == 0 {
            return;
        }
        let extents = self.extents.entry(cpu).or_default();
        match extents.back_mut() {
            Some(last) if last.offset + last.pages * size == offset => last.pages += pages,
            _ => extents.push_back(Extent { offset, pages, packed: None }),
        }
    }

    fn content(
        &mut self,
        input: &mut (impl Read + Seek),
        kind: u32,
        cpu: u32,
        length: u64,
    ) -> Result<(), OpenError> {
        let part = TracefsText::ALL.into_iter().find(|part| part.kind() == kind);
        if part.is_none() && !matches!(kind, KIND_HEAD | KIND_FORMAT) {
            // Chunk of a later version, or damage; skipped in both cases.
            self.found.note(ProblemKind::Unsupported, || format!("a chunk of the unknown kind {kind}"));
            return Ok(());
        }
        self.text_bytes = self.text_bytes.saturating_add(length);
        if self.text_bytes > MOST_TEXT || cpu >= MOST_CPUS {
            self.found
                .note(ProblemKind::Corrupt, || format!("a chunk of kind {kind} has {length} bytes of text"));
            return Ok(());
        }
        let mut text = Vec::new();
        input.take(length).read_to_end(&mut text)?;
        match part {
            Some(part) => {
                let cpu = if part == TracefsText::Stats { cpu } else { 0 };
                self.texts.insert((kind, cpu), text);
            }
            None if kind == KIND_HEAD => self.head = Some(head(&text)?),
            None => {
                let Some(line) = text.iter().position(|byte| *byte == b'\n') else {
                    self.found.note(ProblemKind::Corrupt, || "a format without its group".into());
                    return Ok(());
                };
                let body = text.split_off(line + 1);
                text.truncate(line);
                self.formats.push((String::from_utf8_lossy(&text).into_owned(), body));
            }
        }
        Ok(())
    }
}

fn head(text: &[u8]) -> Result<Head, OpenError> {
    let text = String::from_utf8_lossy(text);
    let optional = |key: &str| {
        let line = text.lines().find_map(|line| line.split_once('=').filter(|(name, _)| *name == key));
        line.map(|(_, value)| value)
    };
    let value = |key: &str| {
        optional(key).ok_or_else(|| OpenError::Malformed { detail: format!("its head does not say {key}") })
    };
    let number = |key: &str, most: u32| {
        let text = value(key)?;
        text.parse().ok().filter(|number| (1..=most).contains(number)).ok_or_else(|| OpenError::Malformed {
            detail: format!("its head says {key}={text}, which is not 1 to {most}"),
        })
    };
    Ok(Head {
        clock: value("clock")?.to_owned(),
        page_size: number("page_size", LARGEST_PAGE)?,
        cpus: number("cpus", MOST_CPUS)?,
        kernel: value("kernel")?.to_owned(),
        tick_ns: optional("tick_ns").and_then(|ns| ns.parse().ok()),
        tickless: optional("tickless").unwrap_or_default().split(',').flat_map(str::parse).collect(),
        stolen_ns: optional("stolen_ns").and_then(|ns| ns.parse().ok()),
    })
}
