//! The text of a program, one step a line: written, and read back from anybody's file.
//! Not here: what the steps mean (`program`).
//!
//! `p1.t0 call 0 code=7 flags=0x10 data=8 [node 1, handle 2 weak, buf 16 in 0 at 8]; acquire 1; read`. A `#` begins a comment.

use std::fmt;
use std::str::FromStr;

use abi::codes::CommandWord;

use crate::program::{
    Action, Command, MOST_STEPS, Object, PLAIN, PROCS, Program, ROOM, Read, Step, THREADS, Transaction,
    fields,
};

/// Longest text in bytes of a plain part or a scattered buffer that a program may ask for.
const LONGEST_PART: u32 = 1 << 20;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}.t{} {}", self.proc, self.thread, self.action)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(size) => write!(f, "open {size}"),
            Self::Close => f.write_str("close"),
            Self::Kill => f.write_str("kill"),
            Self::Manager => f.write_str("manager"),
            Self::MaxThreads(count) => write!(f, "max-threads {count}"),
            Self::ThreadExit => f.write_str("thread-exit"),
            Self::Version => f.write_str("version"),
            Self::Freeze(proc, on) => write!(f, "{} p{proc}", if *on { "freeze" } else { "thaw" }),
            Self::FrozenInfo(proc) => write!(f, "frozen-info p{proc}"),
            Self::NodeInfo(handle) => write!(f, "node-info {handle}"),
            Self::NodeDebug(above) => write!(f, "node-debug {above}"),
            Self::ExtendedError => f.write_str("extended-error"),
            Self::Spam(on) => write!(f, "spam-detection {}", u8::from(*on)),
            Self::Poll => f.write_str("poll"),
            Self::Signal(thread) => write!(f, "signal t{thread}"),
            Self::Fork(action) => write!(f, "fork {action}"),
            Self::Exec => f.write_str("exec"),
            Self::Schedule(seed) => write!(f, "schedule {seed}"),
            Self::Exchange(commands, read) => {
                let commands = commands.iter().map(ToString::to_string);
                let all: Vec<String> = commands.chain(read.map(|read| read.to_string())).collect();
                f.write_str(&all.join("; "))
            }
        }
    }
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.waits { "wait" } else { "read" })?;
        if self.room == ROOM { Ok(()) } else { write!(f, " {}", self.room) }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transaction(Some(handle), what) => write!(f, "call {handle}{what}"),
            Self::Transaction(None, what) => write!(f, "reply{what}"),
            Self::Free(at) => write!(f, "free {at}"),
            Self::Plain(code, numbers) => {
                let (word, _) = PLAIN.iter().find(|(_, of)| of == code).ok_or(fmt::Error)?;
                f.write_str(word)?;
                numbers[..count(*code)].iter().try_for_each(|number| write!(f, " {number}"))
            }
            Self::Word(word) => write!(f, "word {word:#x}"),
        }
    }
}

impl fmt::Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " code={}", self.code)?;
        if self.flags != 0 {
            write!(f, " flags={:#x}", self.flags)?;
        }
        for (name, value) in [
            ("data", self.plain),
            ("cut", self.cut),
            ("skew", self.skew),
            ("clip", self.clip),
            ("short", self.short),
        ] {
            if value != 0 {
                write!(f, " {name}={value}")?;
            }
        }
        if self.objects.is_empty() {
            return Ok(());
        }
        let objects: Vec<String> = self.objects.iter().map(ToString::to_string).collect();
        write!(f, " [{}]", objects.join(", "))
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weakly = |weak: bool| if weak { " weak" } else { "" };
        match *self {
            Self::Node { ptr, weak } => write!(f, "node {ptr}{}", weakly(weak)),
            Self::Handle { handle, weak } => write!(f, "handle {handle}{}", weakly(weak)),
            Self::Fd(number) => write!(f, "fd {number}"),
            Self::Buffer { len, parent: None } => write!(f, "buf {len}"),
            Self::Buffer { len, parent: Some((parent, at)) } => write!(f, "buf {len} in {parent} at {at}"),
            Self::Fds { count, parent: (parent, at) } => write!(f, "fds {count} in {parent} at {at}"),
        }
    }
}

/// How many numbers of a plain command are in its text: a node's cookie follows from its ptr.
fn count(code: u32) -> usize {
    match CommandWord(code).payload_len() {
        0 => 0,
        12 => 2,
        _ => 1,
    }
}

impl FromStr for Program {
    type Err = String;

    /// Reads a program; the error names the line.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut steps = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            steps.push(line.parse().map_err(|why| format!("line {}: {why}", number + 1))?);
            if steps.len() > MOST_STEPS {
                return Err(format!("a program has at most {MOST_STEPS} steps"));
            }
        }
        Ok(Self { steps })
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let (who, what) = line.split_once(' ').ok_or("a step is a thread and what it does: p0.t0 read")?;
        let (proc, thread) = thread(who)?;
        Ok(Self { proc, thread, action: what.trim().parse()? })
    }
}

/// Process and thread by a thread's name, such as `p1.t0`.
pub(crate) fn thread(name: &str) -> Result<(usize, usize), String> {
    let (proc, thread) =
        name.split_once('.').ok_or_else(|| format!("{name:?} is no thread such as p0.t0"))?;
    Ok((below('p', proc, PROCS)?, below('t', thread, THREADS)?))
}

/// The number of `p1` or `t1`.
fn below(letter: char, word: &str, most: usize) -> Result<usize, String> {
    let number: Option<usize> = word.strip_prefix(letter).and_then(|number| number.parse().ok());
    number
        .filter(|number| *number < most)
        .ok_or_else(|| format!("{word:?} is not one of {letter}0 to {letter}{}", most - 1))
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(match words[..] {
            ["open", size] => Self::Open(at_most(size, 8 << 20)?),
            ["close"] => Self::Close,
            ["kill"] => Self::Kill,
            ["manager"] => Self::Manager,
            ["max-threads", count] => Self::MaxThreads(number(count)?),
            ["thread-exit"] => Self::ThreadExit,
            ["version"] => Self::Version,
            ["freeze", proc] => Self::Freeze(below('p', proc, PROCS)?, true),
            ["thaw", proc] => Self::Freeze(below('p', proc, PROCS)?, false),
            ["frozen-info", proc] => Self::FrozenInfo(below('p', proc, PROCS)?),
            ["node-info", handle] => Self::NodeInfo(number(handle)?),
            ["node-debug", above] => Self::NodeDebug(number(above)?),
            ["extended-error"] => Self::ExtendedError,
            ["spam-detection", on] => Self::Spam(at_most(on, 1)? == 1),
            ["poll"] => Self::Poll,
            ["signal", thread] => Self::Signal(below('t', thread, THREADS)?),
            ["exec"] => Self::Exec,
            ["fork", ..] => {
                let action: Self = text.trim_start().strip_prefix("fork").unwrap_or_default().parse()?;
                if !action.can_be_forked() {
                    return Err(format!("a child cannot {action}"));
                }
                Self::Fork(Box::new(action))
            }
            ["schedule", seed] => Self::Schedule(number(seed)?),
            _ => exchange(text)?,
        })
    }
}

fn exchange(text: &str) -> Result<Action, String> {
    let (mut commands, mut read) = (Vec::new(), None);
    for part in text.split(';').map(str::trim) {
        if read.is_some() {
            return Err("a read ends its step".to_owned());
        }
        let words: Vec<&str> = part.split_whitespace().collect();
        let waits = match words.first() {
            Some(&"read") => false,
            Some(&"wait") => true,
            _ => {
                commands.push(part.parse()?);
                continue;
            }
        };
        let room = match words[1..] {
            [] => ROOM,
            [room] => at_most(room, 1 << 16)?,
            _ => return Err(format!("{part:?}: a read has one number, its room in bytes")),
        };
        read = Some(Read { room, waits });
    }
    Ok(Action::Exchange(commands, read))
}

impl FromStr for Command {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (head, objects) = match text.split_once('[') {
            None => (text, None),
            Some((head, rest)) => {
                let inside = rest.trim_end().strip_suffix(']');
                (head, Some(inside.ok_or_else(|| format!("{text:?}: no ] ends the objects"))?))
            }
        };
        let words: Vec<&str> = head.split_whitespace().collect();
        let plain = match words[..] {
            ["call", handle, ref rest @ ..] => {
                return Ok(Self::Transaction(Some(number(handle)?), transaction(rest, objects)?));
            }
            ["reply", ref rest @ ..] => return Ok(Self::Transaction(None, transaction(rest, objects)?)),
            ["free", at] => Self::Free(number(at)?),
            ["word", word] => Self::Word(number(word)?),
            [word, ref numbers @ ..] => {
                let is_it = |(name, code): &&(&str, u32)| *name == word && count(*code) == numbers.len();
                let found = PLAIN.iter().find(is_it);
                let (_, code) = found.ok_or_else(|| format!("{text:?} is no command"))?;
                plain(*code, numbers)?
            }
            [] => return Err(format!("{text:?} is no command")),
        };
        if objects.is_some() { Err(format!("{text:?} has no objects")) } else { Ok(plain) }
    }
}

fn plain(code: u32, words: &[&str]) -> Result<Command, String> {
    let mut numbers = [0; 2];
    for ((place, word), (_, size)) in numbers.iter_mut().zip(words).zip(fields(code, [0; 2])) {
        *place = if size == 4 { number::<u32>(word)?.into() } else { number(word)? };
    }
    Ok(Command::Plain(code, numbers))
}

fn transaction(words: &[&str], objects: Option<&str>) -> Result<Transaction, String> {
    let mut made = Transaction::default();
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("{word:?} is not NAME=NUMBER"))?;
        match name {
            "code" => made.code = number(value)?,
            "flags" => made.flags = number(value)?,
            "data" => made.plain = at_most(value, LONGEST_PART)?,
            "cut" => made.cut = number(value)?,
            "skew" => made.skew = number(value)?,
            "clip" => made.clip = number(value)?,
            "short" => made.short = number(value)?,
            _ => {
                return Err(format!("a call has code, flags, data, cut, skew, clip and short, not {name:?}"));
            }
        }
    }
    if let Some(objects) = objects {
        made.objects = objects.split(',').map(str::parse).collect::<Result<_, _>>()?;
    }
    Ok(made)
}

impl FromStr for Object {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(match words[..] {
            ["node", ptr] => Self::Node { ptr: number(ptr)?, weak: false },
            ["node", ptr, "weak"] => Self::Node { ptr: number(ptr)?, weak: true },
            ["handle", handle] => Self::Handle { handle: number(handle)?, weak: false },
            ["handle", handle, "weak"] => Self::Handle { handle: number(handle)?, weak: true },
            ["fd", number_] => Self::Fd(number(number_)?),
            ["buf", len] => Self::Buffer { len: at_most(len, LONGEST_PART)?, parent: None },
            ["buf", len, "in", parent, "at", at] => {
                let parent = Some((number(parent)?, number(at)?));
                Self::Buffer { len: at_most(len, LONGEST_PART)?, parent }
            }
            ["fds", count, "in", parent, "at", at] => {
                Self::Fds { count: number(count)?, parent: (number(parent)?, number(at)?) }
            }
            _ => return Err(format!("{:?} is no object", text.trim())),
        })
    }
}

fn number<T: TryFrom<u64>>(word: &str) -> Result<T, String> {
    let read = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => word.parse(),
    };
    let fits = read.ok().and_then(|number| T::try_from(number).ok());
    fits.ok_or_else(|| format!("{word:?} is no number that fits here"))
}

fn at_most(word: &str, most: u32) -> Result<u32, String> {
    let number: u32 = number(word)?;
    if number <= most { Ok(number) } else { Err(format!("{number} is more than {most}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_read_as_it_is_written() {
        for seed in 0..300 {
            let program = crate::generate::program(seed);
            let text = program.to_string();
            assert_eq!(text.parse::<Program>().as_ref(), Ok(&program), "{text}");
        }
    }

    #[test]
    fn a_line_that_is_no_step_is_named_with_its_reason() {
        for (bad, why) in [
            ("p0", "a step is a thread"),
            ("p0.t0 fork close", "a child cannot close"),
            ("p0.t0 fork fork poll", "a child cannot fork poll"),
            ("p0.t0 fork wait", "a child cannot wait"),
            ("p9.t0 read", "is not one of p0 to p3"),
            ("p0.t7 read", "is not one of t0 to t2"),
            ("p0.t0 dance", "is no command"),
            ("p0.t0 read; free 0", "a read ends its step"),
            ("p0.t0 read 1 2", "a read has one number"),
            ("p0.t0 call", "is no command"),
            ("p0.t0 call x", "is no number"),
            ("p0.t0 call 1 size=3", "not \"size\""),
            ("p0.t0 call 1 [node 1", "no ] ends"),
            ("p0.t0 call 1 [snail 1]", "is no object"),
            ("p0.t0 free 1 [node 1]", "has no objects"),
            ("p0.t0 call 1 data=99999999", "is more than"),
            ("p0.t0 call 99999999999", "is no number that fits"),
        ] {
            let error = format!("# x\n{bad}\n").parse::<Program>().expect_err(bad);
            assert!(error.starts_with("line 2: ") && error.contains(why), "{bad}: {error}");
        }
        let long = "p0.t0 read\n".repeat(MOST_STEPS + 1);
        assert!(long.parse::<Program>().expect_err("long").contains("at most"));
    }
}
