//! The text form of a load: one statement or step to a line, two spaces of indentation for what belongs to the line above.
//! Not here: writing it (`print`), what the words mean (`description`, `docs/workload.md`).

use std::collections::HashMap;
use std::fmt;

use crate::description::{
    Call, Carries, Expected, Measured, Process, Scheduling, Step, Thread, Turns, Workload,
};
use crate::is_name;

/// First line of a description.
pub const HEADER: &str = "binderperf workload 1";
/// Name of the process that measures; it is not started.
pub const MEASURING: &str = "measuring";

/// Calls within calls, at most.
const DEEPEST: usize = 32;
/// Processes with their copies, at most.
pub const MOST_PROCESSES: u64 = 10_000;
/// Lines, at most.
const MOST_LINES: usize = 2_000_000;
/// Bytes of a request or reply, at most.
const LARGEST: u64 = 8 << 20;
/// Times and counts, at most.
const MOST: u64 = 1_000_000_000;
/// Longest duration: a day, in ns.
const LONGEST_NS: u64 = 86_400_000_000_000;

/// Why a text is no description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Its line, from 1.
    pub line: usize,
    /// The fault.
    pub why: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for ParseError {}

/// A line that says something.
struct Line<'t> {
    number: usize,
    depth: usize,
    text: &'t str,
}

impl Line<'_> {
    fn error(&self, why: impl Into<String>) -> ParseError {
        ParseError { line: self.number, why: why.into() }
    }
}

/// The words of a line after its first.
struct Words<'l, 't> {
    line: &'l Line<'t>,
    rest: std::str::SplitWhitespace<'t>,
}

impl<'t> Words<'_, 't> {
    fn next(&mut self) -> Option<&'t str> {
        self.rest.next()
    }

    fn word(&mut self, what: &str) -> Result<&'t str, ParseError> {
        self.next().ok_or_else(|| self.line.error(format!("{what} is missing")))
    }

    fn number<N: TryFrom<u64>>(&mut self, what: &str, most: u64) -> Result<N, ParseError> {
        let word = self.word(what)?;
        number(word, most)
            .ok_or_else(|| self.line.error(format!("{what} is a number up to {most}, not {word:?}")))
    }

    fn end(mut self) -> Result<(), ParseError> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(self.line.error(format!("{word:?} is too much here"))),
        }
    }
}

fn number<N: TryFrom<u64>>(word: &str, most: u64) -> Option<N> {
    word.parse().ok().filter(|value| *value <= most).and_then(|value| N::try_from(value).ok())
}

/// Reads a duration such as `12.5us` in ns.
fn duration(word: &str) -> Option<u64> {
    let digits = word.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (amount, unit) = word.split_at(digits);
    let places = match unit {
        "ns" => 0,
        "us" => 3,
        "ms" => 6,
        "s" => 9,
        _ => return None,
    };
    let (whole, part) = amount.split_once('.').unwrap_or((amount, ""));
    if part.len() > places || whole.is_empty() || amount.ends_with('.') {
        return None;
    }
    let ns = format!("{whole}{part:0<places$}").parse().ok()?;
    (ns <= LONGEST_NS).then_some(ns)
}

/// Where a step is, which decides which ones are possible.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Thread,
    Receiver,
    Measured,
}

/// Reads a description.
///
/// # Errors
/// [`ParseError`]: the first line that is wrong.
pub fn parse(text: &str) -> Result<Workload, ParseError> {
    let (notes, lines) = lines(text)?;
    let Some((first, mut rest)) = lines.split_first().filter(|(first, _)| first.text == HEADER) else {
        return Err(ParseError { line: 1, why: format!("a description begins with the line {HEADER:?}") });
    };
    if first.depth > 0 {
        return Err(first.error("the first line is not indented"));
    }
    let mut parser = Parser { names: HashMap::new(), workload: Workload { notes, ..Workload::default() } };
    parser.find_processes(rest)?;
    while let Some((line, behind)) = rest.split_first() {
        if line.depth > 0 {
            return Err(line.error("nothing above it takes an indented line"));
        }
        let steps = behind.iter().take_while(|line| line.depth > 0).count();
        let (body, next) = behind.split_at(steps);
        parser.statement(line, body)?;
        rest = next;
    }
    let workload = parser.workload;
    match workload.measured.is_none() && workload.threads.is_empty() {
        true => Err(ParseError { line: first.number, why: "no thread does anything".to_owned() }),
        false => Ok(workload),
    }
}

/// The lines that say something, and the comments above all of them.
fn lines(text: &str) -> Result<(Vec<String>, Vec<Line<'_>>), ParseError> {
    let (mut notes, mut lines) = (Vec::new(), Vec::new());
    for (number, whole) in (1..).zip(text.lines()) {
        let text = whole.trim();
        match text.strip_prefix('#') {
            Some(note) if lines.len() <= 1 => notes.push(note.strip_prefix(' ').unwrap_or(note).to_owned()),
            Some(_) => {}
            None if text.is_empty() => {}
            None => {
                let spaces = whole.len() - whole.trim_start_matches(' ').len();
                let line = Line { number, depth: spaces / 2, text };
                if !spaces.is_multiple_of(2) || whole[spaces..].starts_with('\t') {
                    return Err(line.error("indent by two spaces for each level"));
                }
                if lines.len() >= MOST_LINES {
                    return Err(line.error(format!("more than {MOST_LINES} lines")));
                }
                lines.push(line);
            }
        }
    }
    Ok((notes, lines))
}

struct Parser<'t> {
    names: HashMap<&'t str, usize>,
    workload: Workload,
}

impl<'t> Parser<'t> {
    /// Takes the processes first, because steps name those that come later, too.
    fn find_processes(&mut self, lines: &[Line<'t>]) -> Result<(), ParseError> {
        let mut all = 0;
        for line in lines.iter().filter(|line| line.depth == 0) {
            let mut words = Words { line, rest: line.text.split_whitespace() };
            if words.next() != Some("process") {
                continue;
            }
            let name = words.word("the process's name")?;
            if !is_name(name) {
                return Err(line.error("a name has letters, digits, '.', '_' and '-', 64 at most"));
            }
            let mut process = Process { name: name.to_owned(), copies: 1, pool: 0 };
            while let Some(word) = words.next() {
                match word {
                    "copies" => process.copies = words.number("the number of copies", MOST_PROCESSES)?,
                    "pool" => process.pool = words.number("the pool", 1_000)?,
                    _ => return Err(line.error(format!("a process has copies and pool, not {word:?}"))),
                }
            }
            all += u64::from(process.copies);
            if all > MOST_PROCESSES {
                return Err(line.error(format!("more than {MOST_PROCESSES} processes")));
            }
            if name == MEASURING && process.copies != 1 {
                return Err(line.error("one process measures"));
            }
            if self.names.insert(name, self.workload.processes.len()).is_some() {
                return Err(line.error(format!("there are two processes {name}")));
            }
            self.workload.processes.push(process);
        }
        Ok(())
    }

    fn process(&self, words: &mut Words<'_, 't>) -> Result<usize, ParseError> {
        let name = words.word("the process")?;
        self.names.get(name).copied().ok_or_else(|| words.line.error(format!("no process is named {name:?}")))
    }

    fn statement(&mut self, line: &Line<'t>, body: &[Line<'t>]) -> Result<(), ParseError> {
        let mut words = Words { line, rest: line.text.split_whitespace() };
        match words.next().unwrap_or_default() {
            "process" => match body.first() {
                None => return Ok(()),
                Some(line) => return Err(line.error("a process has no steps; its threads have")),
            },
            "thread" => {
                let thread = self.thread(words, body)?;
                self.workload.threads.push(thread);
                return Ok(());
            }
            part @ ("once" | "before" | "measure" | "after") => {
                words.end()?;
                let steps = self.steps(body, 1, Place::Measured)?;
                if steps.is_empty() {
                    return Err(line.error(format!("{part} has no steps")));
                }
                let measured = self.workload.measured.get_or_insert_with(Measured::default);
                let into = match part {
                    "once" => &mut measured.once,
                    "before" => &mut measured.before,
                    "measure" => &mut measured.measure,
                    _ => &mut measured.after,
                };
                match into.is_empty() {
                    true => *into = steps,
                    false => return Err(line.error(format!("there are two parts {part}"))),
                }
            }
            word => {
                let known = "process, thread, once, before, measure and after";
                return Err(
                    line.error(format!("a line without indentation begins with {known}, not {word:?}"))
                );
            }
        }
        Ok(())
    }

    fn thread(&self, mut words: Words<'_, 't>, body: &[Line<'t>]) -> Result<Thread, ParseError> {
        let line = words.line;
        let process = self.process(&mut words)?;
        if self.workload.processes[process].name == MEASURING {
            return Err(line.error("the measuring process has once, before, measure and after, no thread"));
        }
        let (mut scheduling, mut turns) = (Scheduling::Inherited, Turns::Times(1));
        while let Some(word) = words.next() {
            match word {
                "nice" => {
                    let value = words.word("the nice value")?.parse().ok();
                    let nice = value.filter(|nice| (-20..=19).contains(nice));
                    scheduling = Scheduling::Nice(nice.ok_or_else(|| line.error("nice is -20 to 19"))?);
                }
                "fifo" => scheduling = Scheduling::Fifo(words.number("the priority", 99)?),
                "rr" => scheduling = Scheduling::RoundRobin(words.number("the priority", 99)?),
                "times" => turns = Turns::Times(words.number("the number of times", MOST)?),
                "forever" => turns = Turns::Forever,
                "on-release" => turns = Turns::OnRelease,
                _ => {
                    let known = "nice, fifo, rr, times, forever and on-release";
                    return Err(line.error(format!("a thread has {known}, not {word:?}")));
                }
            }
        }
        if matches!(scheduling, Scheduling::Fifo(0) | Scheduling::RoundRobin(0)) {
            return Err(line.error("a real-time priority is 1 to 99"));
        }
        let steps = self.steps(body, 1, Place::Thread)?;
        match steps.is_empty() {
            true => Err(line.error("the thread has no steps")),
            false => Ok(Thread { process, scheduling, turns, steps }),
        }
    }

    /// Reads steps at this depth, and those below calls.
    fn steps(&self, mut lines: &[Line<'t>], depth: usize, place: Place) -> Result<Vec<Step>, ParseError> {
        let mut steps = Vec::new();
        while let Some((line, behind)) = lines.split_first() {
            if line.depth != depth {
                return Err(line.error("it is indented further than the line above takes"));
            }
            if depth > DEEPEST {
                return Err(line.error(format!("more than {DEEPEST} calls within one another")));
            }
            let below = behind.iter().take_while(|line| line.depth > depth).count();
            let (body, next) = behind.split_at(below);
            let mut step = self.step(line, place)?;
            match (&mut step, body.first()) {
                (_, None) => {}
                (Step::Call(call), Some(_)) => call.served = self.steps(body, depth + 1, Place::Receiver)?,
                (_, Some(line)) => return Err(line.error("only a call has steps of its receiver below it")),
            }
            steps.push(step);
            lines = next;
        }
        Ok(steps)
    }

    fn step(&self, line: &Line<'t>, place: Place) -> Result<Step, ParseError> {
        let mut words = Words { line, rest: line.text.split_whitespace() };
        let word = words.next().unwrap_or_default();
        let only = |places: &[Place]| match places.contains(&place) {
            true => Ok(()),
            false => Err(line.error(format!("{word} is no step for this place"))),
        };
        let time = |words: &mut Words<'_, 't>| {
            let word = words.word("the duration")?;
            duration(word)
                .ok_or_else(|| line.error(format!("a duration is like 12.5us, up to a day, not {word:?}")))
        };
        let step = match word {
            "call" | "oneway" => {
                let step = self.call(words, word == "oneway")?;
                return match &step {
                    Step::Call(call) if place == Place::Receiver && call.carries.handles > 0 => {
                        Err(line.error("a receiver keeps no objects that its call could pass on as handles"))
                    }
                    _ => Ok(step),
                };
            }
            "work" => Step::Work(time(&mut words)?),
            "sleep" => Step::Sleep(time(&mut words)?),
            "at" => only(&[Place::Thread]).and_then(|()| Ok(Step::At(time(&mut words)?)))?,
            "hold" => only(&[Place::Receiver]).map(|()| Step::Hold)?,
            _ => {
                only(&[Place::Thread, Place::Measured])?;
                self.other(word, &mut words, place)?
            }
        };
        words.end().map(|()| step)
    }

    /// A step that no receiver makes.
    fn other(&self, word: &str, words: &mut Words<'_, 't>, place: Place) -> Result<Step, ParseError> {
        let count = |words: &mut Words<'_, 't>| words.number("the number", 1_000_000);
        Ok(match word {
            "fetch" => Step::Fetch { from: self.process(words)?, count: count(words)? },
            "link" => Step::Link,
            "unlink" => Step::Unlink,
            "forget" => Step::Forget,
            "register" => Step::Register(count(words)?),
            "subscribe" => Step::Subscribe,
            "look-up" => Step::LookUp(self.process(words)?),
            "list" => Step::List,
            _ if place != Place::Measured => {
                return Err(words.line.error(format!("{word:?} is no step of a thread")));
            }
            "open" => Step::Open,
            "close" => Step::Close,
            "release" => Step::Release(self.process(words)?),
            "finished" => Step::Finished(self.process(words)?),
            "served" => Step::Served { process: self.process(words)?, calls: count(words)? },
            "notified" => Step::Notified { process: self.process(words)?, notices: count(words)? },
            "kill" => Step::Kill(self.process(words)?),
            "start" => Step::Start(self.process(words)?),
            "freeze" => Step::Freeze(self.process(words)?),
            "thaw" => Step::Thaw(self.process(words)?),
            "stop" => Step::Stop(self.process(words)?),
            "continue" => Step::Continue(self.process(words)?),
            "reclaim" => Step::Reclaim,
            _ => return Err(words.line.error(format!("{word:?} is no step"))),
        })
    }

    fn call(&self, mut words: Words<'_, 't>, oneway: bool) -> Result<Step, ParseError> {
        let line = words.line;
        let to = self.process(&mut words)?;
        let sizes = words.word("the size in bytes")?;
        let form = if oneway { "64" } else { "64>16" };
        let bad = || line.error(format!("the size in bytes is like {form}, up to {LARGEST}, not {sizes:?}"));
        let (request, reply) = match oneway {
            true => (sizes, "0"),
            false => sizes.split_once('>').ok_or_else(bad)?,
        };
        let size = |word: &str| number::<u32>(word, LARGEST).ok_or_else(bad);
        let (request, reply) = (size(request)?, size(reply)?);
        let (mut carries, mut times, mut expected) = (Carries::default(), 1, Expected::Taken);
        while let Some(word) = words.next() {
            let mut count = || words.number("the number", 100_000);
            match word {
                "fds" => carries.descriptors = count()?,
                "new" => carries.new_objects = count()?,
                "known" => carries.known_objects = count()?,
                "handles" => carries.handles = count()?,
                "weak" => carries.weak = true,
                "times" => times = words.number("the number of times", MOST)?,
                "refused" => expected = Expected::Refused,
                "maybe-refused" => expected = Expected::Either,
                _ => {
                    let known = "fds, new, known, handles, weak, times, refused and maybe-refused";
                    return Err(line.error(format!("a call has {known}, not {word:?}")));
                }
            }
        }
        if carries.weak && !carries.has_objects() {
            return Err(line.error("weak goes with new, known or handles"));
        }
        Ok(Step::Call(Call { to, oneway, request, reply, carries, times, expected, served: Vec::new() }))
    }
}

#[cfg(test)]
mod tests;
