//! Reads inputs by their content, line by line: each line goes to the reader that knows it.
//! Not here: traces and archives (`open`), what a line of each sort means (the other modules).

mod dump;
mod klog;
mod lines;
mod logcat;
mod names;
mod open;
mod refused;
mod reports;
mod stats;
mod words;

use std::io::{self, Read};

use crate::find;
use crate::finding::{Evidence, Report};
use crate::load::{self, Load};
use crate::source::DriverSource;
use crate::system::{Place, Stamp, System};
use dump::DumpReader;
use klog::KernelLog;
use lines::Lines;
use names::Processes;

pub use open::OpenError;
pub use reports::{FailureReport, REPORT_FAMILY, REPORT_GROUP};

/// Maximum length of a line that is shown, in characters.
const LONGEST_SHOWN: usize = 200;
/// Maximum number of notes on inputs.
const MOST_NOTES: usize = 50;

/// Gathers what inputs tell about one system, and explains it.
#[derive(Debug, Default)]
pub struct Explainer {
    system: System,
    dump: Option<DumpReader>,
    log: KernelLog,
    processes: Processes,
}

impl Explainer {
    /// Creates one without inputs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Names a process.
    pub fn name_process(&mut self, pid: i32, name: &str) {
        names::name(&mut self.system.processes, pid, name);
    }

    /// Adds a note on what is partial or could not be read.
    pub fn note(&mut self, note: impl Into<String>) {
        if self.system.notes.len() < MOST_NOTES {
            self.system.notes.push(note.into());
        }
    }

    /// Reads lines of text. Returns the number of lines that it knows.
    ///
    /// # Errors
    /// Reading failed; what came before is kept.
    pub fn read_lines(&mut self, name: &str, input: impl Read) -> io::Result<u64> {
        let before: u64 = self.system.recognised.values().sum();
        let file = self.add_file(name);
        let mut lines = Lines::new(input);
        let ended = loop {
            match lines.next() {
                Ok(Some(line)) => {
                    let at = Place { file, line: line.number };
                    self.take(&line.text, at);
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.close_dump();
        self.log.end(&mut self.system);
        self.processes.end();
        if lines.cut() > 0 {
            let cut = units::counted(lines.cut(), "line");
            self.note(format!("{name}: {cut} longer than 64 KiB, read up to there"));
        }
        ended.map(|()| self.system.recognised.values().sum::<u64>() - before)
    }

    /// The answer. `source` is that of the C driver which wrote the log.
    #[must_use]
    pub fn explain(&self, source: Option<&DriverSource>) -> Report {
        find::report(&self.system, source)
    }

    /// Load of each process by the last dumps of the driver's state and stats.
    #[must_use]
    pub fn loads(&self) -> Vec<Load> {
        load::loads(&self.system)
    }

    fn add_file(&mut self, name: &str) -> u32 {
        self.system.files.push(units::visible::printable(name).into_owned());
        u32::try_from(self.system.files.len() - 1).unwrap_or(u32::MAX)
    }

    fn know(&mut self, what: &'static str) {
        *self.system.recognised.entry(what).or_default() += 1;
    }

    fn take(&mut self, line: &str, at: Place) {
        if let Some(dump) = &mut self.dump {
            if dump.take(line, at) {
                return self.know(dump_lines(&self.dump));
            }
            self.close_dump();
        }
        if let Some(dump) = DumpReader::begin(line, at) {
            self.dump = Some(dump);
            return self.know(dump_lines(&self.dump));
        }
        if self.processes.take(line, &mut self.system) {
            return self.know("lines with names");
        }
        if let Some(entry) = refused::entry(line) {
            let evidence = Evidence::of(&self.system.files, at, line);
            self.log.take_entry(entry, evidence, &mut self.system);
            return self.know("entries of transaction logs");
        }
        if let Some(report) = FailureReport::of_line(line) {
            let evidence = Evidence::of(&self.system.files, at, line);
            self.system.reports.add(report.refusal(), &Stamp::default(), [evidence]);
            return self.know("reports of the driver over netlink");
        }
        if !logcat::may_know(line) {
            return;
        }
        if self.log.take(line, at, &mut self.system) {
            self.know("lines of the driver in kernel logs");
        } else if logcat::take(line, at, &mut self.system) {
            self.know("lines of Android's log");
        }
    }

    fn close_dump(&mut self) {
        let Some(reader) = self.dump.take() else { return };
        if let Some(note) = reader.note(&self.system.files) {
            self.note(note);
        }
        dump::keep(&mut self.system.dumps, reader);
    }
}

fn dump_lines(dump: &Option<DumpReader>) -> &'static str {
    dump.as_ref().map_or("lines of state files", DumpReader::lines_of)
}

impl Evidence {
    /// A line with its text.
    pub(crate) fn of(files: &[String], at: Place, line: &str) -> Self {
        let text = units::visible::printable(line.trim());
        let short: String = text.chars().take(LONGEST_SHOWN).collect();
        let file = files.get(at.file as usize).cloned().unwrap_or_default();
        Self { file, line: at.line, text: Some(short) }
    }
}

#[cfg(test)]
mod tests;
