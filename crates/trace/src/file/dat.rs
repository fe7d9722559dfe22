//! Opens a `trace.dat` of trace-cmd: the same pages and texts as our own file, in another frame.
//! Not here: page contents (`raw`).
//! Facts: the manual pages trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5), and files of trace-cmd 3.1.6. A compressed
//! section is its packed and its full length and the bytes; a compressed CPU's data is the number of such pieces before
//! them.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Seek, SeekFrom};

use units::visible::printable;

use super::read::{Extent, Packing};
use super::{Container, Head, LARGEST_PAGE, MOST_CPUS, OpenError, TracefsText};
use crate::report::{ProblemKind, Report};

/// Bytes at the start of a file.
pub(crate) const DAT_MAGIC: [u8; 10] = *b"\x17\x08\x44tracing";

/// Maximum total bytes of texts.
const MOST_TEXT: u64 = 128 << 20;
/// Maximum number of option sections, of formats, and of compressed pieces of all CPUs.
const MOST_SECTIONS: usize = 4096;
const MOST_FORMATS: usize = 1 << 16;
const MOST_PIECES: u32 = 1 << 21;
/// Maximum length in bytes of a group's name, which each of its formats has.
const LONGEST_GROUP: usize = 256;
/// Maximum total in bytes of the largest pieces of all CPUs, unpacked: of each CPU one is held.
/// Fact: trace-cmd packs ten pages together.
const MOST_HELD: u64 = 512 << 20;

/// Options.
const CPU_STATISTICS: u16 = 2;
const BUFFER: u16 = 3;
const CLOCK: u16 = 4;
const UNAME: u16 = 5;
const HEADER: u16 = 16;
const FTRACE_EVENTS: u16 = 17;
const EVENTS: u16 = 18;
const SYMBOLS: u16 = 19;
const PRINTK: u16 = 20;
const COMMANDS: u16 = 21;
const TGIDS: u16 = 23;

/// Reader of a byte string's numbers and texts.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, length: u64) -> Option<&'b [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }
    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }
    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }
    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }
    /// Text up to a zero.
    fn text(&mut self) -> Option<&'b [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.take(end as u64)?;
        self.take(1)?;
        Some(text)
    }
    /// Text with its length of 8 bytes before it.
    fn long_text(&mut self) -> Option<&'b [u8]> {
        let length = self.u64()?;
        self.take(length)
    }
}

/// A file that is being opened.
struct Dat<R> {
    input: R,
    end: u64,
    packing: Option<Packing>,
    head: Head,
    formats: Vec<(String, Vec<u8>)>,
    texts: BTreeMap<(u32, u32), Vec<u8>>,
    extents: BTreeMap<u32, VecDeque<Extent>>,
    found: Report,
    text_bytes: u64,
    /// Whether the main buffer was met.
    has_main: bool,
    /// Bytes of the file that the CPUs claim, each for itself; number of compressed pieces; largest ones in all.
    claimed: u64,
    pieces: u32,
    held: u64,
}

fn malformed(detail: impl Into<String>) -> OpenError {
    OpenError::Malformed { detail: detail.into() }
}

impl<R: Read + Seek> Container<R> {
    /// Opens a `trace.dat` of version 6 or 7: reads its texts and notes where its pages are.
    ///
    /// # Errors
    /// If it is of another version, of a big-endian machine, or its head is damaged.
    pub fn open_trace_dat(mut input: R) -> Result<Self, OpenError> {
        let end = input.seek(SeekFrom::End(0))?;
        let mut dat = Dat {
            input,
            end,
            packing: None,
            head: Head { clock: "local".into(), kernel: "unknown".into(), ..Head::default() },
            formats: Vec::new(),
            texts: BTreeMap::new(),
            extents: BTreeMap::new(),
            found: Report::default(),
            text_bytes: 0,
            has_main: false,
            claimed: 0,
            pieces: 0,
            held: 0,
        };
        dat.read()?;
        let Dat { input, head, formats, texts, extents, found, .. } = dat;
        Ok(Self::of_parts(input, head, formats, texts, extents, found))
    }
}

impl<R: Read + Seek> Dat<R> {
    /// Counts bytes of texts.
    fn charge(&mut self, length: u64) -> Result<(), OpenError> {
        self.text_bytes = self.text_bytes.saturating_add(length);
        if self.text_bytes > MOST_TEXT {
            return Err(malformed(format!("its texts have more than {} MB", MOST_TEXT >> 20)));
        }
        Ok(())
    }

    fn bytes(&mut self, at: u64, length: u64) -> Result<Vec<u8>, OpenError> {
        self.charge(length)?;
        if at.saturating_add(length) > self.end {
            return Err(malformed(format!("the {length} bytes at byte {at} are not in the file")));
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| malformed("a section is too long"))?];
        self.input.seek(SeekFrom::Start(at))?;
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn read(&mut self) -> Result<(), OpenError> {
        // The head is short; version 6 goes on with its texts.
        let start = self.bytes(0, self.end.min(256))?;
        let mut head = Bytes(&start);
        let broken = || malformed("its head breaks off");
        head.take(DAT_MAGIC.len() as u64).ok_or_else(broken)?;
        let version = String::from_utf8_lossy(head.text().ok_or_else(broken)?).into_owned();
        let order = head.take(2).ok_or_else(broken)?;
        if order[0] != 0 {
            return Err(malformed("it is of a big-endian machine"));
        }
        self.head.page_size =
            head.u32().filter(|size| (16..=LARGEST_PAGE).contains(size)).ok_or_else(broken)?;
        match version.as_str() {
            "6" => {
                let at = (start.len() - head.0.len()) as u64;
                self.version_6(at)
            }
            "7" => {
                let name = head.text().ok_or_else(broken)?;
                self.packing = match name {
                    b"zlib" => Some(Packing::Zlib),
                    b"zstd" => Some(Packing::Zstd),
                    _ => None,
                };
                head.text().ok_or_else(broken)?;
                let options = head.u64().ok_or_else(broken)?;
                self.version_7(options)
            }
            other => {
                Err(malformed(format!("it is a trace.dat of version {other}; versions 6 and 7 are read")))
            }
        }
    }

    /// Version 6: all texts in a row, then options, then where each CPU's pages are.
    fn version_6(&mut self, at: u64) -> Result<(), OpenError> {
        // The texts have no length in all; pages begin behind them.
        let bytes = self.bytes(at, (self.end - at).min(MOST_TEXT / 2))?;
        let mut rest = Bytes(&bytes);
        let broken = || malformed("its texts break off");
        self.header(&mut rest).ok_or_else(broken)?;
        self.ftrace_events(&mut rest).ok_or_else(broken)?;
        self.events(&mut rest).ok_or_else(broken)?;
        for part in [TracefsText::Symbols, TracefsText::PrintkFormats] {
            let length = rest.u32().ok_or_else(broken)?;
            self.text(part, 0, rest.take(length.into()).ok_or_else(broken)?);
        }
        let commands = rest.long_text().ok_or_else(broken)?;
        self.text(TracefsText::SavedCmdlines, 0, commands);
        self.head.cpus = rest.u32().filter(|cpus| (1..=MOST_CPUS).contains(cpus)).ok_or_else(broken)?;
        let mut kind = rest.take(10).ok_or_else(broken)?;
        if kind.starts_with(b"options") {
            while let Some(option) = rest.u16().filter(|option| *option != 0) {
                let length = rest.u32().ok_or_else(broken)?;
                self.option(option, rest.take(length.into()).ok_or_else(broken)?, false)?;
            }
            kind = rest.take(10).ok_or_else(broken)?;
        }
        if !kind.starts_with(b"flyrecord") {
            return Err(malformed("it holds text and no events; give the text itself"));
        }
        for cpu in 0..self.head.cpus {
            let (Some(at), Some(length)) = (rest.u64(), rest.u64()) else { return Err(broken()) };
            self.pages(cpu, at, length)?;
        }
        Ok(())
    }

    /// Version 7: options that say where the sections are.
    fn version_7(&mut self, mut at: u64) -> Result<(), OpenError> {
        let broken = || malformed("its options break off");
        for _ in 0..MOST_SECTIONS {
            if at == 0 {
                return Ok(());
            }
            let bytes = self.section(at)?;
            let mut rest = Bytes(&bytes);
            at = loop {
                let option = rest.u16().ok_or_else(broken)?;
                let length = rest.u32().ok_or_else(broken)?;
                let data = rest.take(length.into()).ok_or_else(broken)?;
                if option == 0 {
                    break Bytes(data).u64().unwrap_or(0);
                }
                self.option(option, data, true)?;
            };
        }
        Err(malformed("its options have no end"))
    }

    /// Content of a section of version 7.
    fn section(&mut self, at: u64) -> Result<Vec<u8>, OpenError> {
        let header = self.bytes(at, 16)?;
        let mut header = Bytes(&header);
        let broken = || malformed(format!("the section at byte {at} breaks off"));
        let (_, flags, _, length) = (header.u16(), header.u16(), header.u32(), header.u64());
        let (flags, length) = (flags.ok_or_else(broken)?, length.ok_or_else(broken)?);
        let bytes = self.bytes(at + 16, length)?;
        if flags & 1 == 0 {
            return Ok(bytes);
        }
        let mut packed = Bytes(&bytes);
        let (short, full) = (packed.u32().ok_or_else(broken)?, packed.u32().ok_or_else(broken)?);
        let packing = self.packing.ok_or_else(|| malformed("its compression is unknown"))?;
        self.charge(full.into())?;
        Ok(packing.unpack(packed.take(short.into()).ok_or_else(broken)?, full.into())?)
    }

    fn option(&mut self, option: u16, data: &[u8], in_sections: bool) -> Result<(), OpenError> {
        let broken = || malformed(format!("its option {option} breaks off"));
        match option {
            CPU_STATISTICS => self.statistics(data),
            UNAME => {
                let text = String::from_utf8_lossy(data);
                // `Linux NAME RELEASE ...`, or the release alone.
                let release = text.trim_end_matches('\0').split(' ').nth(2).unwrap_or(&text).to_owned();
                self.head.kernel = printable(release.trim_end_matches('\0')).into_owned();
            }
            CLOCK => {
                let text = String::from_utf8_lossy(data);
                let clock = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                if let Some((clock, _)) = clock {
                    self.head.clock = printable(clock).into_owned();
                }
            }
            BUFFER if in_sections => self.buffer(data).ok_or_else(broken)??,
            // Version 6 has only instances there.
            BUFFER => self.instance(data.get(8..).unwrap_or_default()),
            HEADER | FTRACE_EVENTS | EVENTS | SYMBOLS | PRINTK | COMMANDS | TGIDS if in_sections => {
                let at = Bytes(data).u64().ok_or_else(broken)?;
                let content = self.section(at)?;
                self.part(option, &content).ok_or_else(broken)?;
            }
            TGIDS => self.text(TracefsText::SavedTgids, 0, data),
            _ => {}
        }
        Ok(())
    }

    fn part(&mut self, option: u16, content: &[u8]) -> Option<()> {
        let mut rest = Bytes(content);
        match option {
            HEADER => self.header(&mut rest)?,
            FTRACE_EVENTS => self.ftrace_events(&mut rest)?,
            EVENTS => self.events(&mut rest)?,
            SYMBOLS | PRINTK => {
                let length = rest.u32()?;
                let part = if option == SYMBOLS { TracefsText::Symbols } else { TracefsText::PrintkFormats };
                self.text(part, 0, rest.take(length.into())?);
            }
            _ => {
                let part =
                    if option == COMMANDS { TracefsText::SavedCmdlines } else { TracefsText::SavedTgids };
                let text = rest.long_text()?;
                self.text(part, 0, text);
            }
        }
        Some(())
    }

    /// Says that an instance's buffer is left out.
    fn instance(&mut self, name: &[u8]) {
        let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
        let told = format!("the buffer of the instance {name} is left out");
        self.found.note_apart(ProblemKind::Unsupported, told);
    }

    /// Where a buffer's pages are. Only the main one, which has no name, is read.
    fn buffer(&mut self, data: &[u8]) -> Option<Result<(), OpenError>> {
        let mut rest = Bytes(data);
        let section = rest.u64()?;
        let name = rest.text()?;
        if !name.is_empty() || std::mem::replace(&mut self.has_main, true) {
            self.instance(name);
            return Some(Ok(()));
        }
        self.head.clock = printable(&String::from_utf8_lossy(rest.text()?)).into_owned();
        self.head.page_size = rest.u32().filter(|size| (16..=LARGEST_PAGE).contains(size))?;
        self.head.cpus = rest.u32().filter(|cpus| *cpus <= MOST_CPUS)?.max(1);
        let flags = match self.bytes(section, 16) {
            Ok(header) => Bytes(header.get(2..)?).u16()?,
            Err(error) => return Some(Err(error)),
        };
        for _ in 0..self.head.cpus {
            let Some(cpu) = rest.u32() else { break };
            let (at, length) = (rest.u64()?, rest.u64()?);
            let noted =
                if flags & 1 == 0 { self.pages(cpu, at, length) } else { self.pieces(cpu, at, length) };
            if let Err(error) = noted {
                return Some(Err(error));
            }
        }
        Some(Ok(()))
    }

    /// Counts bytes of a CPU's pages. The CPUs share the file: all of them together have at most its length.
    fn claim(&mut self, cpu: u32, length: u64) -> bool {
        self.claimed = self.claimed.saturating_add(length);
        if self.claimed > self.end {
            self.found.note(ProblemKind::Corrupt, || format!("the pages of cpu {cpu} are those of others"));
        }
        self.claimed <= self.end
    }

    /// Notes pages of a CPU.
    fn pages(&mut self, cpu: u32, at: u64, length: u64) -> Result<(), OpenError> {
        let here = length.min(self.end.saturating_sub(at));
        if here < length {
            self.found.note(ProblemKind::Truncated, || {
                format!("cpu {cpu} has {length} bytes at byte {at}, {here} are left")
            });
        }
        let pages = here / u64::from(self.head.page_size);
        if pages > 0 && cpu < MOST_CPUS && self.claim(cpu, here) {
            self.extents.entry(cpu).or_default().push_back(Extent { offset: at, pages, packed: None });
        }
        Ok(())
    }

    /// Notes compressed pages of a CPU.
    fn pieces(&mut self, cpu: u32, at: u64, length: u64) -> Result<(), OpenError> {
        if length == 0 || cpu >= MOST_CPUS {
            return Ok(());
        }
        let packing = self.packing.ok_or_else(|| malformed("its compression is unknown"))?;
        let count = Bytes(&self.bytes(at, 4)?).u32().unwrap_or(0);
        let (mut at, end) = (at + 4, at.saturating_add(length));
        let mut largest = 0;
        for _ in 0..count {
            if at.saturating_add(8) > self.end.min(end) {
                self.found.note(ProblemKind::Truncated, || format!("in the pages of cpu {cpu}"));
                break;
            }
            let sizes = self.bytes(at, 8)?;
            self.text_bytes -= 8;
            let mut sizes = Bytes(&sizes);
            let (short, full) = (sizes.u32().unwrap_or(0), sizes.u32().unwrap_or(0));
            let pages = u64::from(full / self.head.page_size);
            if at + 8 + u64::from(short) > self.end {
                self.found.note(ProblemKind::Truncated, || format!("in the pages of cpu {cpu}"));
                break;
            }
            if !self.claim(cpu, 8 + u64::from(short)) {
                break;
            }
            self.pieces += 1;
            self.held += u64::from(full).saturating_sub(largest);
            largest = largest.max(full.into());
            if self.pieces > MOST_PIECES || self.held > MOST_HELD {
                self.found.note(ProblemKind::Unsupported, || {
                    format!(
                        "the compressed pages of cpu {cpu} are too many or too large; the rest is left out"
                    )
                });
                break;
            }
            let extent = Extent { offset: at + 8, pages, packed: Some((packing, short)) };
            if pages > 0 {
                self.extents.entry(cpu).or_default().push_back(extent);
            }
            at += 8 + u64::from(short);
        }
        Ok(())
    }

    fn header(&mut self, rest: &mut Bytes<'_>) -> Option<()> {
        for part in [TracefsText::HeaderPage, TracefsText::HeaderEvent] {
            rest.text()?;
            let text = rest.long_text()?;
            self.text(part, 0, text);
        }
        Some(())
    }

    fn ftrace_events(&mut self, rest: &mut Bytes<'_>) -> Option<()> {
        for _ in 0..rest.u32()? {
            self.format("ftrace", rest.long_text()?)?;
        }
        Some(())
    }

    fn events(&mut self, rest: &mut Bytes<'_>) -> Option<()> {
        for _ in 0..rest.u32()? {
            let group = String::from_utf8_lossy(rest.text()?).into_owned();
            for _ in 0..rest.u32()? {
                self.format(&group, rest.long_text()?)?;
            }
        }
        Some(())
    }

    fn format(&mut self, group: &str, text: &[u8]) -> Option<()> {
        if self.formats.len() >= MOST_FORMATS || group.len() > LONGEST_GROUP {
            return None;
        }
        self.formats.push((group.to_owned(), text.to_vec()));
        Some(())
    }

    fn text(&mut self, part: TracefsText, cpu: u32, text: &[u8]) {
        self.texts.insert((part.kind(), cpu), text.to_vec());
    }

    /// Statistics of one CPU: `CPU: N`, then what the kernel's file has.
    fn statistics(&mut self, text: &[u8]) {
        let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let cpu = first.strip_prefix(b"CPU:").and_then(|cpu| crate::number::decimal(cpu.trim_ascii()));
        if let Some(cpu) = cpu.and_then(|(cpu, _)| u32::try_from(cpu).ok()).filter(|cpu| *cpu < MOST_CPUS) {
            self.text(TracefsText::Stats, cpu, text);
        }
    }
}

#[cfg(test)]
mod tests;
