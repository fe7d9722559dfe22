//! Reader of text traces: parses line by line and tracks lost events.

use super::line::{self, EventLine, Line};
use crate::event::{Event, Kind, Name, Names};
use crate::fields;
use crate::report::{ProblemKind, Report};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};

/// Read buffer size in bytes.
const WINDOW: usize = 256 << 10;

/// Maximum line length in bytes; ftrace cuts its lines at some kilobytes.
const LONGEST: u64 = 64 << 10;

/// Maximum number of CPUs whose clocks are checked.
const MOST_CPUS: usize = 8192;

/// Reader of ftrace's text: an iterator of its events in their order. Memory does not grow with the text.
#[derive(Debug)]
pub struct TextReader<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    number: u64,
    names: Names,
    report: Report,
    /// Last time of each CPU.
    last: HashMap<u32, u64>,
    /// Name of the idle task, which kernels print differently.
    idle: Name,
    /// Time of the last event, for lines without one.
    ts: u64,
    /// The heading gave the number of overwritten events.
    overwritten: bool,
    html: Option<Html>,
    done: bool,
}

/// Position in an HTML file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Html {
    Before,
    /// In a script of the class trace-data, of which no line was seen yet.
    Begun,
    /// In one of ftrace's text.
    Inside,
    /// In one of something else: what another tracer recorded beside it, as JSON.
    Foreign,
    After,
}

impl<R: Read> TextReader<R> {
    /// Creates a reader; of an HTML file it reads the `trace-data` scripts.
    pub fn new(input: R, html: bool) -> Self {
        let mut names = Names::default();
        let idle = names.intern("<idle>");
        Self {
            input: BufReader::with_capacity(WINDOW, input),
            line: Vec::new(),
            number: 0,
            names,
            report: Report::default(),
            last: HashMap::new(),
            idle,
            ts: 0,
            overwritten: false,
            html: html.then_some(Html::Before),
            done: false,
        }
    }

    /// Names that the events refer to.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Report so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Report, for what was found before the trace itself.
    pub(crate) fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }

    /// Reads a line into `self.line`, without its end; `false` at the end of the input.
    fn read_line(&mut self) -> bool {
        self.line.clear();
        let mut limited = (&mut self.input).take(LONGEST);
        match limited.read_until(b'\n', &mut self.line) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => {
                // Truncated compressed input ends here, too.
                let number = self.number;
                self.report.note(ProblemKind::Truncated, || format!("behind line {number}: {error}"));
                self.done = true;
                return !self.line.is_empty();
            }
        }
        self.number += 1;
        if self.line.ends_with(b"\n") {
            self.line.pop();
            if self.line.ends_with(b"\r") {
                self.line.pop();
            }
        } else if self.line.len() as u64 >= LONGEST && matches!(self.html, None | Some(Html::Inside)) {
            // Outside its trace a page has lines of any length: its scripts.
            let number = self.number;
            self.report
                .note(ProblemKind::StrangeLine, || format!("line {number} is longer than {LONGEST} bytes"));
        }
        true
    }

    /// Whether this line of an HTML file belongs to the trace; removes the tags around it.
    fn enter(&mut self) -> bool {
        match self.html {
            None => true,
            Some(Html::Begun) => match self.line.trim_ascii_start().first() {
                None => false,
                Some(first) => {
                    let foreign = matches!(first, b'{' | b'[');
                    self.html = Some(if foreign { Html::Foreign } else { Html::Inside });
                    self.enter()
                }
            },
            Some(inside @ (Html::Inside | Html::Foreign)) => {
                if let Some(end) = find(&self.line, b"</script") {
                    self.line.truncate(end);
                    self.html = Some(Html::After);
                }
                inside == Html::Inside
            }
            Some(Html::Before | Html::After) => {
                let Some(tag) = find(&self.line, b"class=\"trace-data\"") else { return false };
                let behind = self.line[tag..].iter().position(|byte| *byte == b'>').map(|end| tag + end + 1);
                self.line.drain(..behind.unwrap_or(self.line.len()));
                self.html = Some(Html::Begun);
                self.enter()
            }
        }
    }

    /// Event of the current line, if it is one.
    fn event(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let event = match line::parse(&line) {
            Line::Event(found) => Some(self.found(&found)),
            Line::Lost { cpu, count } => {
                self.report.lose(count);
                Some(Event::lost(self.ts, cpu, count))
            }
            Line::Started { cpu } => {
                if !self.overwritten {
                    self.report.lose(None);
                }
                Some(Event::lost(self.ts, cpu, None))
            }
            Line::Written { kept, written } => {
                // Some recorders write the heading before the buffer is read, with 0 kept.
                if kept > 0 && written > kept {
                    self.overwritten = true;
                    self.report.lose(Some(written - kept));
                }
                None
            }
            Line::Quiet => None,
            Line::Strange => {
                // Before the first event any text may stand, such as shell or adb output.
                if self.report.events > 0 || line::looks_like_event(&line) {
                    let (number, end) = (self.number, line.len().min(60));
                    let text = || format!("line {number}: {}", String::from_utf8_lossy(&line[..end]));
                    self.report.note(ProblemKind::StrangeLine, text);
                }
                None
            }
        };
        self.line = line;
        event
    }

    fn found(&mut self, line: &EventLine<'_>) -> Event {
        let EventLine { tid, tgid, cpu, context, ts, .. } = *line;
        self.report.events += 1;
        self.ts = ts;
        if line.counts {
            let (number, name) = (self.number, String::from_utf8_lossy(line.name));
            let text = || {
                format!(
                    "{ts} in line {number}, {name}, is no time in seconds; 1 ns is assumed to be one of its units"
                )
            };
            self.report.note(ProblemKind::OtherClock, text);
        }
        if self.last.len() < MOST_CPUS || self.last.contains_key(&cpu) {
            let last = self.last.insert(cpu, ts).unwrap_or(0);
            if ts < last {
                let number = self.number;
                let text = || format!("by {} ns to {ts} ns on cpu {cpu}, line {number}", last - ts);
                self.report.note(ProblemKind::ClockBackwards, text);
            }
        }
        let comm = match line.comm {
            _ if tid == 0 => self.idle,
            // The kernel lost the name.
            b"<...>" => Name::NONE,
            comm => self.names.intern_bytes(comm),
        };
        let kind = fields::parse(line.name, line.text, &mut self.names).unwrap_or_else(|| {
            let name = String::from_utf8_lossy(line.name);
            self.report
                .note_apart(ProblemKind::MissingField, format!("the text of {name} is of an unknown form"));
            Kind::Other { name: self.names.intern_bytes(line.name) }
        });
        Event { ts, cpu, tid, tgid, comm, context, kind }
    }
}

impl<R: Read> Iterator for TextReader<R> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        while !self.done {
            if !self.read_line() {
                self.done = true;
                match self.html {
                    Some(Html::Before) => self.report.note(ProblemKind::Unsupported, || {
                        "this page has no script of the class trace-data".into()
                    }),
                    Some(Html::Begun | Html::Inside | Html::Foreign) => {
                        self.report.note(ProblemKind::Truncated, || "the page ends within its trace".into());
                    }
                    _ => {}
                }
                return None;
            }
            if self.enter()
                && let Some(event) = self.event()
            {
                return Some(event);
            }
        }
        None
    }
}

fn find(line: &[u8], what: &[u8]) -> Option<usize> {
    line.windows(what.len()).position(|window| window == what)
}
