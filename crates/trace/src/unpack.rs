//! Unpacks what a reader must be able to seek in: a binary trace packed by gzip, the trace in a zip archive, such as a bug
//! report.
//! Not here: text packed by gzip, which is read as it comes (`open`).
//! Facts: APPNOTE.TXT of PKWARE, sections 4.3.7, 4.3.12 and 4.3.16. A bug report of Android has its trace below
//! `FS/data/misc/perfetto-traces`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use flate2::CrcReader;
use flate2::read::DeflateDecoder;

use crate::file::OpenError;
use crate::gunzip::Gunzip;

/// Maximum content: this, and so many times the packed bytes. Traces shrink to a tenth or so.
const MOST_CONTENT: u64 = 64 << 20;
const MOST_TIMES: u64 = 256;
/// Maximum number of files of an archive that are looked at.
const MOST_FILES: usize = 1 << 16;
/// Maximum bytes of an archive's table of files.
const LONGEST_TABLE: u64 = 16 << 20;
/// Maximum number of names in a message.
const MOST_TOLD: usize = 5;

/// Makes an empty file to unpack into, which nobody else sees and which goes when it is closed.
pub type Scratch<'s> = &'s mut dyn FnMut() -> io::Result<File>;

/// The source of a trace, or what was unpacked from it.
#[derive(Debug)]
pub(crate) enum Unpacked<R> {
    Direct(R),
    File(File),
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Direct(input) => input.read(space),
            Self::File(file) => file.read(space),
        }
    }
}

impl<R: Seek> Seek for Unpacked<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Direct(input) => input.seek(to),
            Self::File(file) => file.seek(to),
        }
    }
}

fn foreign(found: impl Into<String>) -> OpenError {
    OpenError::Foreign { found: found.into() }
}

/// What was unpacked, and what is wrong with it if it is not the whole that was packed.
#[derive(Debug)]
pub struct Content {
    /// The content, from its beginning.
    pub file: File,
    /// Why it is not the whole that was packed.
    pub damage: Option<String>,
}

/// Unpacks a file packed by gzip. One that breaks off is unpacked as far as it goes.
pub(crate) fn gzip(mut input: impl Read + Seek, scratch: Scratch<'_>) -> Result<Content, OpenError> {
    let packed = input.seek(SeekFrom::End(0))?;
    input.rewind()?;
    let file = scratch().map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => {
            foreign("it is a binary trace packed by gzip; unpack it first: gzip -d")
        }
        _ => error.into(),
    })?;
    spill(Gunzip::new(input), packed, file)
}

fn most_content(packed: u64) -> u64 {
    MOST_CONTENT.saturating_add(MOST_TIMES.saturating_mul(packed))
}

/// Copies content into a file.
fn spill(mut content: impl Read, packed: u64, mut file: File) -> Result<Content, OpenError> {
    let mut damage = None;
    let most = most_content(packed);
    let (mut space, mut total) = (vec![0; 256 << 10], 0_u64);
    loop {
        let taken = match content.read(&mut space) {
            Ok(0) => break,
            Ok(taken) => taken,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // What came before is read.
            Err(error) if total > 0 => {
                damage = Some(format!("it was packed, and cannot be unpacked behind {total} bytes: {error}"));
                break;
            }
            Err(error) => return Err(error.into()),
        };
        total += taken as u64;
        if total > most {
            let detail = format!("its {packed} packed bytes hold more than {} MB", most >> 20);
            return Err(OpenError::Malformed { detail });
        }
        file.write_all(&space[..taken])?;
    }
    file.rewind()?;
    Ok(Content { file, damage })
}

/// File in an archive.
#[derive(Debug)]
struct Entry {
    name: String,
    method: u16,
    checksum: u32,
    packed: u64,
    header: u64,
}

/// Table of a zip archive.
#[derive(Debug)]
pub struct Archive {
    entries: Vec<Entry>,
}

impl Archive {
    /// Reads an archive's table.
    ///
    /// # Errors
    /// It breaks off, or is none.
    pub fn open(input: &mut (impl Read + Seek)) -> Result<Self, OpenError> {
        table(input).map(|entries| Self { entries })
    }

    /// Names of its files, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// Whether a file's name is one that recorders give to traces.
    #[must_use]
    pub fn is_trace(name: &str) -> bool {
        is_trace(name)
    }

    /// The most bytes that are unpacked of a file; more is an attack or an accident.
    #[must_use]
    pub fn most(&self, index: usize) -> u64 {
        most_content(self.entries.get(index).map_or(0, |entry| entry.packed))
    }

    /// The content of a file, unpacked as it is read.
    ///
    /// # Errors
    /// It is not where it should be, or packed in another way.
    pub fn content<'i, R: Read + Seek>(
        &self,
        index: usize,
        input: &'i mut R,
    ) -> Result<Box<dyn Read + 'i>, OpenError> {
        let entry =
            self.entries.get(index).ok_or_else(|| foreign("it is a zip archive without that file"))?;
        let broken =
            || foreign(format!("it is a zip archive in which {} is not where it should be", entry.name));
        let mut header = [0; 30];
        input.seek(SeekFrom::Start(entry.header))?;
        input.read_exact(&mut header).map_err(|_| broken())?;
        if !header.starts_with(b"PK\x03\x04") {
            return Err(broken());
        }
        let behind = u64::from(u16_at(&header, 26)) + u64::from(u16_at(&header, 28));
        input.seek(SeekFrom::Start(entry.header + 30 + behind))?;
        let content = input.take(entry.packed);
        match entry.method {
            0 => Ok(Box::new(content)),
            8 => Ok(Box::new(DeflateDecoder::new(content))),
            other => Err(foreign(format!(
                "it is a zip archive in which {} is packed by method {other}; take it out: unzip",
                entry.name
            ))),
        }
    }

    /// Unpacks a file into one that `scratch` makes.
    ///
    /// # Errors
    /// As [`Archive::content`], and those of `scratch`.
    pub fn unpack(
        &self,
        index: usize,
        input: &mut (impl Read + Seek),
        scratch: Scratch<'_>,
    ) -> Result<Content, OpenError> {
        let file = scratch().map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => foreign("it is a zip archive; take the trace out of it"),
            _ => error.into(),
        })?;
        let mut content = CrcReader::new(self.content(index, input)?);
        let Some(entry) = self.entries.get(index) else { return spill(content, 0, file) };
        let mut unpacked = spill(&mut content, entry.packed, file)?;
        if content.crc().sum() != entry.checksum {
            let damage = || format!("{} in the archive does not have its checksum", entry.name);
            unpacked.damage.get_or_insert_with(damage);
        }
        Ok(unpacked)
    }
}

/// Unpacks the trace in a zip archive.
pub(crate) fn zip(mut input: impl Read + Seek, scratch: Scratch<'_>) -> Result<Content, OpenError> {
    let archive = Archive::open(&mut input)?;
    let is_one = |index: &usize| is_trace(&archive.entries[*index].name);
    let traces: Vec<usize> = (0..archive.entries.len()).filter(is_one).collect();
    let index = match (traces.as_slice(), archive.entries.len()) {
        ([one], _) => *one,
        ([], 1) => 0,
        _ => {
            let traces: Vec<&Entry> = traces.iter().map(|index| &archive.entries[*index]).collect();
            return Err(unclear(&archive.entries, &traces));
        }
    };
    archive.unpack(index, &mut input, scratch)
}

/// Why it is not clear which file of an archive is meant.
fn unclear(entries: &[Entry], traces: &[&Entry]) -> OpenError {
    let names = |entries: &mut dyn Iterator<Item = &Entry>| {
        entries.take(MOST_TOLD).map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    if traces.is_empty() {
        let names = names(&mut entries.iter());
        return foreign(format!("it is a zip archive without a trace, of {} files: {names}", entries.len()));
    }
    let all = names(&mut traces.iter().copied());
    foreign(format!("it is a zip archive with {} traces; take one out with unzip: {all}", traces.len()))
}

/// Whether a file's name is one that recorders give to traces.
fn is_trace(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let ends = [
        ".pftrace",
        ".perfetto-trace",
        ".perfetto",
        ".ptrace",
        ".bptrace",
        ".dat",
        ".atrace",
        ".ctrace",
        ".systrace",
        ".trace",
    ];
    ends.iter().any(|end| name.ends_with(end)) || name.ends_with("trace.html")
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// Files of an archive, by the table at its end.
fn table(input: &mut (impl Read + Seek)) -> Result<Vec<Entry>, OpenError> {
    let broken = || foreign("it is a zip archive that breaks off, or of more than 4 GB; unpack it first");
    let end = input.seek(SeekFrom::End(0))?;
    // The end record, and a comment of up to 64 KB.
    let from = end.saturating_sub((64 << 10) + 22);
    let mut last = Vec::new();
    input.seek(SeekFrom::Start(from))?;
    input.by_ref().read_to_end(&mut last)?;
    let at = last.windows(4).rposition(|bytes| bytes == b"PK\x05\x06").ok_or_else(broken)?;
    let record = last.get(at..at + 22).ok_or_else(broken)?;
    let (length, start) = (u64::from(u32_at(record, 12)), u64::from(u32_at(record, 16)));
    if start + length > from + at as u64 || length > LONGEST_TABLE {
        return Err(broken());
    }
    let mut table = Vec::new();
    input.seek(SeekFrom::Start(start))?;
    input.by_ref().take(length).read_to_end(&mut table)?;
    let (mut rest, mut entries) = (table.as_slice(), Vec::new());
    while rest.starts_with(b"PK\x01\x02") && entries.len() < MOST_FILES {
        let lengths = [28, 30, 32].map(|at| usize::from(u16_at(rest, at)));
        let name = rest.get(46..46 + lengths[0]).ok_or_else(broken)?;
        let name = String::from_utf8_lossy(name).into_owned();
        if !name.ends_with('/') {
            let (method, checksum) = (u16_at(rest, 10), u32_at(rest, 16));
            let (packed, header) = (u32_at(rest, 20).into(), u32_at(rest, 42).into());
            entries.push(Entry { name, method, checksum, packed, header });
        }
        rest = rest.get(46 + lengths.iter().sum::<usize>()..).ok_or_else(broken)?;
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder};
    use std::io::Cursor;

    /// An archive of these files, deflated.
    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut out, mut table) = (Vec::new(), Vec::new());
        for (name, content) in files {
            let mut packer = DeflateEncoder::new(Vec::new(), Compression::default());
            packer.write_all(content).expect("memory");
            let packed = packer.finish().expect("memory");
            let mut sum = flate2::Crc::new();
            sum.update(content);
            let sum = sum.sum().to_le_bytes();
            let size = |content: &[u8]| u32::try_from(content.len()).expect("small").to_le_bytes();
            let length = u16::try_from(name.len()).expect("short").to_le_bytes();
            let common =
                [b"\0\0\x08\0\0\0\0\0".as_slice(), &sum, &size(&packed), &size(content), &length, b"\0\0"]
                    .concat();
            let header = size(&out);
            table.extend(
                [
                    b"PK\x01\x02\x14\0\x14\0".as_slice(),
                    &common,
                    b"\0\0\0\0\0\0\0\0\0\0",
                    &header,
                    name.as_bytes(),
                ]
                .concat(),
            );
            out.extend([b"PK\x03\x04\x14\0".as_slice(), &common, name.as_bytes(), &packed].concat());
        }
        let (at, length) =
            (u32::try_from(out.len()).expect("small"), u32::try_from(table.len()).expect("small"));
        out.extend(&table);
        let count = u16::try_from(files.len()).expect("few").to_le_bytes();
        out.extend(
            [
                b"PK\x05\x06\0\0\0\0".as_slice(),
                &count,
                &count,
                &length.to_le_bytes(),
                &at.to_le_bytes(),
                b"\0\0",
            ]
            .concat(),
        );
        out
    }

    fn scratch() -> io::Result<File> {
        let path = std::env::temp_dir().join(format!(
            "trace-unpack-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(path).map(|()| file)
    }

    fn events(bytes: Vec<u8>) -> Result<usize, String> {
        let reader = crate::open_with(Cursor::new(bytes), &mut scratch).map_err(|error| error.to_string())?;
        Ok(reader.count())
    }

    fn gzipped(content: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(content).expect("memory");
        packer.finish().expect("memory")
    }

    const SCHED: &[u8] = include_bytes!("../fixtures/sched.bptrace");

    #[test]
    fn a_packed_trace_is_read_as_the_trace() {
        let want = events(SCHED.to_vec()).expect("a fixture");
        assert!(want > 10);
        let text = b"# tracer: nop\n a-1 [000] .... 1.000000: x: a\n";
        for (what, bytes, events_there) in [
            ("gzip", gzipped(SCHED), want),
            ("gzip twice", gzipped(&gzipped(SCHED)), want),
            ("the only file", archive(&[("anything", SCHED)]), want),
            (
                "a bug report",
                archive(&[
                    ("version.txt", b"2.0"),
                    ("FS/data/misc/perfetto-traces/bugreport/systrace.pftrace", SCHED),
                ]),
                want,
            ),
            ("packed in an archive", archive(&[("a.trace.gz", &gzipped(SCHED)), ("readme", b"x")]), want),
            ("text", archive(&[("a.systrace", text), ("readme", b"x")]), 1),
        ] {
            assert_eq!(events(bytes), Ok(events_there), "{what}");
        }
    }

    #[test]
    fn what_is_not_clear_or_broken_is_said() {
        let two = archive(&[("a.pftrace", SCHED), ("b/c.perfetto-trace", SCHED)]);
        let none = archive(&[("a.png", b"x"), ("b.txt", b"y")]);
        let bomb = gzipped(&[SCHED, &vec![0; 160 << 20]].concat());
        for (bytes, want) in [
            (two.clone(), "with 2 traces; take one out with unzip: a.pftrace, b/c.perfetto-trace"),
            (none, "without a trace, of 2 files: a.png, b.txt"),
            (two[..two.len() / 2].to_vec(), "breaks off"),
            (bomb, "hold more than"),
        ] {
            let error = events(bytes).expect_err(want);
            assert!(error.contains(want), "{error}");
        }
        let without = crate::open(Cursor::new(gzipped(SCHED))).expect_err("nowhere to unpack").to_string();
        assert!(without.contains("unpack it first"), "{without}");
    }

    #[test]
    fn what_is_not_what_was_packed_is_said() {
        let text: Vec<u8> =
            (0..9).flat_map(|at| format!(" a-1 [000] .... 1.00000{at}: x: a\n").into_bytes()).collect();
        let report = |bytes: Vec<u8>| {
            let mut reader = crate::open_with(Cursor::new(bytes), &mut scratch).expect("a trace");
            reader.by_ref().for_each(drop);
            reader.report().to_string()
        };
        assert!(!report(gzipped(SCHED)).contains("damaged"), "whole");
        let mut sum = gzipped(SCHED);
        let at = sum.len() - 8;
        sum[at] ^= 1;
        assert!(report(sum).contains("cannot be unpacked behind"), "the checksum of gzip");
        for (name, content) in [("a.bptrace", SCHED), ("a.systrace", text.as_slice())] {
            let mut archive = archive(&[(name, content)]);
            assert!(!report(archive.clone()).contains("damaged"), "{name}");
            // The checksum in the table, behind the packed file.
            let at = archive.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").expect("a table") + 16;
            archive[at] ^= 1;
            let told = report(archive);
            assert!(told.contains(&format!("{name} in the archive does not have its checksum")), "{told}");
        }
    }

    #[test]
    fn any_damage_of_an_archive_ends_in_order() {
        let whole = archive(&[("a.pftrace", SCHED), ("b.txt", b"y")]);
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..300 {
            let mut damaged = whole.clone();
            for _ in 0..random.usize(1..10) {
                let at = damaged.len() - 1 - random.usize(..200.min(damaged.len()));
                damaged[at] = random.u8(..);
            }
            let _ = events(damaged);
        }
    }
}
