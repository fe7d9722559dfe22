//! Opens an input by its content: text, a trace, an archive or packed text.
//! Not here: the formats of traces and archives (crate `trace`).

use std::fmt;
use std::io::{self, Read, Seek};

use trace::cause::Label;
use trace::model::Outcome;
use trace::verdict::{AnalysisOptions, Analyzer};
use trace::{Archive, Gunzip, Scratch};

use super::Explainer;
use crate::system::{Traced, TracedCall};

/// Bytes that are looked at to tell what an input is.
const PREFIX: u64 = 64 << 10;
/// Bytes of a text's beginning without a zero.
const TEXT: usize = 4 << 10;
/// Maximum bytes of packed text that are read.
const MOST_TEXT: u64 = 8 << 30;
/// Number of a trace's slowest calls that are looked at.
const WORST: usize = 256;
/// Maximum number of archives and packings around one another.
const DEEPEST: u32 = 3;

/// Why an input cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Reading failed.
    Io(io::Error),
    /// It is neither text, nor a trace, nor an archive of them.
    Foreign(trace::OpenError),
    /// It is text that says nothing about Binder.
    Nothing,
    /// It is empty.
    Empty,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "reading failed: {}", sys::errno::describe(error)),
            Self::Foreign(error) => error.fmt(f),
            Self::Nothing => f.write_str(
                "none of its lines is about Binder; give a kernel log, the driver's state, transactions, stats or failed \
                 transactions, a bug report, logcat or a trace",
            ),
            Self::Empty => f.write_str("it is empty"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Explainer {
    /// Reads an input, whatever it is. `scratch` makes a file to unpack a binary trace into.
    ///
    /// # Errors
    /// It cannot be read, or has nothing about Binder.
    pub fn read(
        &mut self,
        name: &str,
        input: impl Read + Seek,
        scratch: Scratch<'_>,
    ) -> Result<(), OpenError> {
        self.read_at(name, input, scratch, 0)
    }

    fn read_at(
        &mut self,
        name: &str,
        mut input: impl Read + Seek,
        scratch: Scratch<'_>,
        depth: u32,
    ) -> Result<(), OpenError> {
        let mut start = Vec::new();
        input.rewind()?;
        input.by_ref().take(PREFIX).read_to_end(&mut start)?;
        input.rewind()?;
        if start.is_empty() {
            return Err(OpenError::Empty);
        }
        if start.starts_with(b"PK\x03\x04") && depth < DEEPEST {
            return self.read_archive(name, input, scratch, depth);
        }
        let packed = start.starts_with(&[0x1f, 0x8b]);
        let is_text =
            if packed { begins_as_text(Gunzip::new(&start[..])) } else { begins_as_text(&start[..]) };
        let foreign = match trace::open_with(&mut input, scratch) {
            Ok(reader) => {
                self.read_trace(name, reader);
                return Ok(());
            }
            Err(error) if !is_text => return Err(OpenError::Foreign(error)),
            Err(error) => error,
        };
        input.rewind()?;
        let known = match packed {
            true => self.read_part(name, Gunzip::new(input), MOST_TEXT)?,
            false => self.read_lines(name, input)?,
        };
        match known {
            0 if start.trim_ascii_start().starts_with(b"{") => Err(OpenError::Foreign(foreign)),
            0 => Err(OpenError::Nothing),
            _ => Ok(()),
        }
    }

    /// Reads packed text up to a limit, and as far as it is whole. Returns the number of lines that it knows.
    fn read_part(&mut self, name: &str, input: impl Read, most: u64) -> io::Result<u64> {
        let before: u64 = self.system.recognised.values().sum();
        let mut input = input.take(most);
        match self.read_lines(name, &mut input) {
            Ok(_) if input.limit() == 0 => {
                self.note(format!("{name}: only its first {} MB are read", most >> 20))
            }
            Ok(_) => {}
            Err(error) if self.system.recognised.values().sum::<u64>() > before => {
                self.note(format!("{name} breaks off: {error}"));
            }
            Err(error) => return Err(error),
        }
        Ok(self.system.recognised.values().sum::<u64>() - before)
    }

    fn read_trace(&mut self, name: &str, mut reader: trace::Reader<impl Read + Seek>) {
        let mut analyzer = Analyzer::new(AnalysisOptions { worst: WORST, ..AnalysisOptions::default() });
        while let Some(event) = reader.next() {
            analyzer.take(&event, reader.names());
        }
        let found = analyzer.finish(reader.names(), reader.report());
        let file = self.add_file(name);
        found.problems.iter().for_each(|problem| self.note(format!("{name}: {problem}")));
        *self.system.recognised.entry("events of traces").or_default() += found.events;
        self.system.traces.push(Traced {
            file,
            unanswered: found.unanswered,
            failed: found.failed,
            spam: found.oneway_spam,
            starved: found.slow.into_iter().filter_map(waited_for_a_thread).collect(),
        });
    }

    /// Reads the texts and traces of an archive, such as a bug report.
    fn read_archive(
        &mut self,
        name: &str,
        mut input: impl Read + Seek,
        scratch: Scratch<'_>,
        depth: u32,
    ) -> Result<(), OpenError> {
        let archive = Archive::open(&mut input).map_err(OpenError::Foreign)?;
        let mut known = 0;
        for (index, member) in archive.names().enumerate() {
            let inner = format!("{name}!{member}");
            if Archive::is_trace(member) {
                let unpacked = archive.unpack(index, &mut input, scratch).map_err(OpenError::Foreign);
                let read = unpacked.and_then(|content| {
                    content.damage.into_iter().for_each(|damage| self.note(format!("{inner}: {damage}")));
                    self.read_at(&inner, content.file, scratch, depth + 1)
                });
                match read {
                    Ok(()) => known += 1,
                    Err(error) => self.note(format!("{inner}: {error}")),
                }
                continue;
            }
            if !is_log(member) {
                continue;
            }
            match archive.content(index, &mut input) {
                Ok(content) => match self.read_part(&inner, content, archive.most(index)) {
                    Ok(lines) => known += lines,
                    Err(error) => self.note(format!("{inner}: {error}")),
                },
                Err(error) => self.note(format!("{inner}: {error}")),
            }
        }
        if known == 0 { Err(OpenError::Nothing) } else { Ok(()) }
    }
}

/// A call that waited for a free thread of its server, with the ns of that.
fn waited_for_a_thread(call: TracedCall) -> Option<(TracedCall, u64)> {
    let waits = call.reasons.iter().filter(|reason| reason.cause == Label::NoFreeThread);
    let ns = waits.map(|reason| reason.ns).sum();
    (ns > 0 && call.outcome == Outcome::Replied).then_some((call, ns))
}

/// Whether a file of a bug report can be about Binder: its texts, and those of virtual machines and of the kernel's log.
fn is_log(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let file = lower.rsplit('/').next().unwrap_or(&lower);
    let is_part = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    [".txt", ".log"].iter().any(|end| file.ends_with(end))
        || is_part(&["/anr/", "dmesg", "kmsg", "logcat", "binder_logs/", "debug/binder/", "console-ramoops"])
}

/// Whether the first bytes are text: no byte of them is zero, and at least one can be read.
fn begins_as_text(mut input: impl Read) -> bool {
    let (mut start, mut taken) = ([0; TEXT], 0);
    while taken < TEXT {
        match input.read(&mut start[taken..]) {
            Ok(0) | Err(_) => break,
            Ok(more) => taken += more,
        }
    }
    taken > 0 && !start[..taken].contains(&0)
}
