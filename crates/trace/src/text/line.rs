//! Parser of one line of text: thread, CPU, time, event name, and the event's own text.

use crate::event::Context;
use crate::number;
use crate::symbol;

/// Bytes in which the bracket of the CPU is looked for; a thread's name and number have some 50.
const LONGEST_HEAD: usize = 256;

/// Parsed line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Line<'l> {
    /// Event.
    Event(EventLine<'l>),
    /// Events lost on this CPU; their number, if known.
    Lost { cpu: u32, count: Option<u64> },
    /// Older events of this CPU were overwritten; its events begin here.
    Started { cpu: u32 },
    /// Number of events kept and written; the difference is lost.
    Written { kept: u64, written: u64 },
    /// Comment, heading, or empty line.
    Quiet,
    /// Any other line.
    Strange,
}

/// Line of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EventLine<'l> {
    pub(super) comm: &'l [u8],
    pub(super) tid: i32,
    pub(super) tgid: Option<i32>,
    pub(super) cpu: u32,
    pub(super) context: Context,
    pub(super) ts: u64,
    /// Whether the stamp is a count: of a clock whose unit the text does not tell.
    pub(super) counts: bool,
    pub(super) name: &'l [u8],
    pub(super) text: &'l [u8],
}

/// Whether the beginning of a file is ftrace's text.
pub(crate) fn looks_like_trace(start: &[u8]) -> bool {
    start.split(|byte| *byte == b'\n').any(|line| {
        line.starts_with(b"# tracer:")
            || matches!(parse(line.trim_ascii_end()), Line::Event(_) | Line::Lost { .. })
    })
}

/// Parses a line without its line end.
pub(super) fn parse(line: &[u8]) -> Line<'_> {
    match line.trim_ascii_start().first() {
        None => return Line::Quiet,
        Some(b'#') => return comment(line.trim_ascii_start()),
        _ => {}
    }
    if let Some(found) = event(line) {
        return Line::Event(found);
    }
    lost(line).unwrap_or_else(|| if is_heading(line) { Line::Quiet } else { Line::Strange })
}

/// `CPU:1 [LOST 12 EVENTS]`, `CPU:1 [LOST EVENTS]`, and trace-cmd's `CPU:1 [12 EVENTS DROPPED]`.
fn lost(line: &[u8]) -> Option<Line<'_>> {
    let (cpu, rest) = number::decimal(line.trim_ascii_start().strip_prefix(b"CPU:")?)?;
    let inner = rest.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    let words = inner.strip_prefix(b"LOST").or_else(|| inner.strip_suffix(b"DROPPED"))?;
    let words = words.trim_ascii().strip_suffix(b"EVENTS")?.trim_ascii();
    let count = number::decimal(words).map(|(count, _)| count);
    Some(Line::Lost { cpu: u32::try_from(cpu).ok()?, count })
}

/// Whether it is one of the other lines that trace-cmd and atrace write.
fn is_heading(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let known: [&[u8]; 8] = [
        b"cpus=",
        b"version",
        b"CPU ",
        b"TRACE:",
        b"capturing trace",
        b"trace-cmd",
        b"overriding",
        b"VERSION",
    ];
    known.iter().any(|start| line.starts_with(start)) || line == b"done"
}

fn comment(line: &[u8]) -> Line<'_> {
    let text = line.trim_ascii_start();
    let bare = text.strip_prefix(b"#").map_or(text, |text| text.trim_ascii_start());
    if let Some(rest) = bare.strip_prefix(b"entries-in-buffer/entries-written:")
        && let Some((kept, rest)) = number::decimal(rest.trim_ascii_start())
        && let Some((written, _)) = rest.strip_prefix(b"/").and_then(number::decimal)
    {
        return Line::Written { kept, written };
    }
    let started = text.strip_prefix(b"##### CPU ").and_then(number::decimal);
    match started {
        Some((cpu, rest)) if rest.starts_with(b" buffer started") => {
            u32::try_from(cpu).map_or(Line::Strange, |cpu| Line::Started { cpu })
        }
        _ => Line::Quiet,
    }
}

fn event(line: &[u8]) -> Option<EventLine<'_>> {
    // Thread names may contain brackets, so every bracket that could hold the CPU is tried.
    let head = line.get(..LONGEST_HEAD).unwrap_or(line);
    let mut from = 0;
    loop {
        let bracket = from + head.get(from..)?.iter().position(|byte| *byte == b'[')?;
        from = bracket + 1;
        if bracket > 0
            && line.get(bracket - 1) == Some(&b' ')
            && let Some((cpu, rest)) = number::decimal(line.get(from..)?.trim_ascii_start())
            && let Some(rest) = rest.strip_prefix(b"]")
            && let Some(found) = around(line.get(..bracket)?, u32::try_from(cpu).ok()?, rest)
        {
            return Some(found);
        }
    }
}

fn around<'l>(before: &'l [u8], cpu: u32, behind: &'l [u8]) -> Option<EventLine<'l>> {
    let before = before.trim_ascii();
    let (of_perf, (comm, tid, tgid)) = match task(before) {
        Some(task) => (false, task),
        None => (true, task_of_perf(before)?),
    };
    let (word, rest) = word(behind)?;
    // The flags column is optional (`nolatency` of old kernels, trace-cmd, perf).
    let (flags, stamp, rest) = match word.strip_suffix(b":") {
        Some(stamp) => {
            let (flags, stamp) = stamp.split_at(flags_before(stamp));
            (flags, stamp, rest)
        }
        None => {
            let (stamp, rest) = self::word(rest)?;
            (word, stamp.strip_suffix(b":")?, rest)
        }
    };
    let ts = number::seconds(stamp)?;
    let rest = rest.trim_ascii_start();
    // perf writes the group before the name: `sched:sched_switch: ...`.
    let rest = match rest.iter().position(|byte| *byte == b':') {
        Some(colon) if of_perf => rest.get(colon + 1..)?,
        _ => rest,
    };
    let colon = rest.iter().position(|byte| *byte == b':')?;
    let (name, text) = rest.split_at(colon);
    if name.is_empty() || name.contains(&b' ') {
        return None;
    }
    let name = symbol::bare(name);
    let text = text.get(1..)?;
    let text = text.strip_prefix(b" ").unwrap_or(text);
    // trace-cmd pads with spaces behind the name.
    let text = if name == b"tracing_mark_write" || name == b"print" { text } else { text.trim_ascii_start() };
    let counts = !stamp.contains(&b'.');
    Some(EventLine { comm, tid, tgid, cpu, context: Context::of_text(flags), ts, counts, name, text })
}

/// Number of flag columns directly before a stamp, as old kernels print a time of three digits: four of them, or five of which
/// the last is no digit.
fn flags_before(stamp: &[u8]) -> usize {
    match stamp {
        [first, ..] if first.is_ascii_digit() => 0,
        [_, _, _, _, fifth, ..] if fifth.is_ascii_digit() => 4,
        _ => 5.min(stamp.len()),
    }
}

/// Whether a line that is no event looks like one: it has a CPU in brackets, and a colon behind it.
pub(super) fn looks_like_event(line: &[u8]) -> bool {
    let head = line.get(..LONGEST_HEAD).unwrap_or(line);
    let brackets = head.iter().enumerate().filter(|(_, byte)| **byte == b'[');
    let brackets = brackets.filter(|(at, _)| *at > 0 && head[at - 1] == b' ');
    let cpus = brackets.filter_map(|(at, _)| number::decimal(head.get(at + 1..)?.trim_ascii_start()));
    let mut behind = cpus.filter_map(|(_, rest)| rest.strip_prefix(b"]"));
    behind.any(|rest| rest.contains(&b':') && rest.iter().any(u8::is_ascii_digit))
}

fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// `Binder:48_1-50      (     48)`: name, thread, optional process, which is `-----` when unknown.
fn task(text: &[u8]) -> Option<(&[u8], i32, Option<i32>)> {
    let (text, tgid) = match text.strip_suffix(b")") {
        Some(inside) => {
            let open = inside.iter().rposition(|byte| *byte == b'(')?;
            let tgid = inside.get(open + 1..)?.trim_ascii();
            let tgid = number::any(tgid).and_then(|tgid| i32::try_from(tgid).ok());
            (inside.get(..open)?.trim_ascii_end(), tgid)
        }
        None => (text, None),
    };
    let dash = text.iter().rposition(|byte| *byte == b'-')?;
    let tid = number::any(text.get(dash + 1..)?).and_then(|tid| i32::try_from(tid).ok())?;
    let comm = without_buffer(text.get(..dash)?);
    (tid >= 0).then_some((comm, tid, tgid.filter(|_| tid != 0)))
}

/// Longest name of a thread, in bytes.
const LONGEST_COMM: usize = 15;

/// A thread's name without the name of a trace-cmd buffer before it: `binder:          client`.
fn without_buffer(comm: &[u8]) -> &[u8] {
    let colon = comm.iter().position(|byte| *byte == b':' || *byte == b' ');
    match colon.map(|colon| comm.split_at(colon)) {
        Some((_, [b':', b' ', rest @ ..])) if comm.len() > LONGEST_COMM => rest.trim_ascii_start(),
        _ => comm,
    }
}

/// `Binder:200_1    201` of `perf script`: name, thread, with `-F pid,tid` the process before it: `200/201`.
fn task_of_perf(text: &[u8]) -> Option<(&[u8], i32, Option<i32>)> {
    let space = text.iter().rposition(|byte| *byte == b' ')?;
    let (comm, ids) = (text.get(..space)?.trim_ascii_end(), text.get(space + 1..)?);
    let id = |digits: &[u8]| number::any(digits).and_then(|id| i32::try_from(id).ok());
    let (tgid, tid) = match ids.iter().position(|byte| *byte == b'/') {
        Some(slash) => (Some(id(&ids[..slash])?), id(&ids[slash + 1..])?),
        None => (None, id(ids)?),
    };
    (tid >= 0 && !comm.is_empty()).then_some((comm, tid, tgid.filter(|_| tid != 0)))
}
