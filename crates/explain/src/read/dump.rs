//! Reads the driver's files `state`, `transactions`, `stats` and those of `proc`.
//! Facts: contract DBG-01 to DBG-06. Linux 3.18 has fewer words in most lines; before 6.4 a call has no age; the Rust driver of
//! 7.2 does not end the lines of references. Between processes, threads and nodes only indentation tells what belongs where.

use super::stats;
use super::words::{after, hex, id, number, parts, rounded, whole};
use crate::system::{Buffer, Call, Dump, File, Id, Node, Place, Proc, Ref, Stats, Thread, Way};

/// Maximum number of lines of one dump that are kept.
const MOST_KEPT: u64 = 1 << 20;

/// Beginnings of files.
const TITLES: [(&str, File, bool); 4] = [
    ("binder state:", File::State, true),
    ("binder transactions:", File::Transactions, false),
    ("binder stats:", File::Stats, false),
    ("binder proc state:", File::State, true),
];

/// Lines without indentation that are counters of the whole driver.
const TOTALS: [&str; 7] =
    ["proc:", "thread:", "node:", "ref:", "death:", "transaction:", "transaction_complete:"];

/// Beginnings of lines below a process, each of which may follow a line that was not ended.
const BEGINNINGS: [&str; 6] = ["  ref ", "  buffer ", "  buffer: ", "  node ", "  thread ", "  pending "];

/// Reader of one dump.
#[derive(Debug)]
pub(super) struct DumpReader {
    dump: Dump,
    /// Whether it is of `proc`, where each process has a file.
    single: bool,
    /// Lines kept, and lines that are not.
    kept: u64,
    beyond: u64,
    /// Lines that look like the driver's and say nothing that it knows.
    odd: u64,
    /// Whether the last line was cut off or odd.
    last: Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Known,
    Odd,
}

impl DumpReader {
    /// Begins a dump, if the line does.
    pub(super) fn begin(line: &str, at: Place) -> Option<Self> {
        let new = |file, whole, single| Self {
            dump: Dump { file, at, procs: Vec::new(), dead_nodes: 0, whole },
            single,
            kept: 0,
            beyond: 0,
            odd: 0,
            last: Last::Known,
        };
        if let Some((title, file, whole)) = TITLES.iter().find(|(title, ..)| line.trim_end() == *title) {
            return Some(new(*file, *whole, title.contains("proc")));
        }
        // A part of a file, such as a few processes that somebody sent.
        let pid = line.strip_prefix("proc ").and_then(|pid| pid.trim_end().parse().ok())?;
        let mut part = new(File::State, false, true);
        part.begin_proc(pid, at);
        Some(part)
    }

    /// What its lines are.
    pub(super) fn lines_of(&self) -> &'static str {
        match self.dump.file {
            File::State => "lines of the driver's state",
            File::Transactions => "lines of the driver's transactions",
            File::Stats => "lines of the driver's stats",
        }
    }

    /// Takes a line; `false` if it does not belong to the dump.
    pub(super) fn take(&mut self, line: &str, at: Place) -> bool {
        if line.trim().is_empty() {
            return true;
        }
        if !line.starts_with("  ") {
            return self.take_heading(line, at);
        }
        let mut rest = line;
        loop {
            let next =
                BEGINNINGS.iter().filter_map(|start| rest.get(1..)?.find(start).map(|at| at + 1)).min();
            // In the line of a call, two blanks mean nothing.
            let next = next.filter(|_| !rest.starts_with("    "));
            let (piece, more) = rest.split_at(next.unwrap_or(rest.len()));
            self.take_piece(piece, at);
            if more.is_empty() {
                return true;
            }
            rest = more;
        }
    }

    fn take_heading(&mut self, line: &str, at: Place) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["proc", pid] => match pid.parse() {
                Ok(pid) => self.begin_proc(pid, at),
                Err(_) => return false,
            },
            ["context", name] => {
                if let Some(proc) = self.dump.procs.last_mut() {
                    (*name).clone_into(&mut proc.context);
                }
            }
            ["dead", "nodes:"] => {}
            [name, ..] if TOTALS.contains(name) => {}
            [name, _] if name.starts_with("BC_") || name.starts_with("BR_") => {}
            _ => return false,
        }
        true
    }

    fn begin_proc(&mut self, pid: i32, at: Place) {
        if self.has_room() {
            self.dump.procs.push(Proc { pid, at, ..Proc::default() });
        }
    }

    fn has_room(&mut self) -> bool {
        let has = self.kept < MOST_KEPT;
        *(if has { &mut self.kept } else { &mut self.beyond }) += 1;
        has
    }

    fn take_piece(&mut self, line: &str, at: Place) {
        if !self.has_room() {
            return;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let indent = line.len() - line.trim_start().len();
        let known = match self.dump.procs.last_mut() {
            Some(proc) => take_line(proc, indent, &words, at),
            // Nodes whose owners are gone come first.
            None => {
                self.dump.dead_nodes += u64::from(words.first() == Some(&"node"));
                words.first() == Some(&"node")
            }
        };
        self.last = if known { Last::Known } else { Last::Odd };
        self.odd += u64::from(!known);
    }

    /// What is partial about it.
    pub(super) fn note(&self, files: &[String]) -> Option<String> {
        let Place { file, line } = self.dump.at;
        let name = files.get(file as usize).map_or("", String::as_str);
        let here = format!("{name}:{line}: the driver's {}", self.dump.file.name());
        if self.beyond > 0 {
            return Some(format!(
                "{here}: only the first {MOST_KEPT} lines are used, {} follow",
                self.beyond
            ));
        }
        if self.odd == 1 && self.last == Last::Odd {
            return Some(format!("{here}: its last line breaks off; what was behind it is unknown"));
        }
        (self.odd > 0)
            .then(|| format!("{here}: {} of a form that is not known", units::counted(self.odd, "line")))
    }
}

/// Keeps a dump: the first and the last of each file. Files of `proc` that follow each other are one.
pub(super) fn keep(dumps: &mut Vec<Dump>, reader: DumpReader) {
    let DumpReader { dump, single, .. } = reader;
    if let Some(last) = dumps.last_mut().filter(|last| single && last.file == dump.file)
        && !last.procs.iter().any(|proc| dump.procs.iter().any(|new| same(new, proc)))
    {
        last.procs.extend(dump.procs);
        return;
    }
    let mut of_file = dumps.iter().enumerate().filter(|(_, old)| old.file == dump.file).map(|(at, _)| at);
    if let (Some(_), Some(last)) = (of_file.next(), of_file.next_back()) {
        dumps.remove(last);
    }
    dumps.push(dump);
}

fn same(one: &Proc, other: &Proc) -> bool {
    (one.pid, &one.context) == (other.pid, &other.context)
}

fn take_line(proc: &mut Proc, indent: usize, words: &[&str], at: Place) -> bool {
    match words {
        ["thread", tid, rest @ ..] if indent == 2 => {
            let Some(tid) = whole(tid) else { return false };
            let looper = after(rest, "l").and_then(hex).and_then(|bits| u32::try_from(bits).ok());
            proc.threads.push(Thread { tid, at, looper: looper.unwrap_or(0), calls: Vec::new() });
        }
        ["node", id, rest @ ..] if indent == 2 && !rest.is_empty() => {
            let Some(id) = whole(id) else { return false };
            let holders = rest.iter().skip_while(|word| **word != "proc").skip(1);
            let holders = holders.filter_map(|word| word.parse().ok()).collect();
            // A manager's object is the one without an address.
            let is_manager = ["u", "c"].iter().all(|letter| {
                let address = rest.iter().find_map(|word| word.strip_prefix(letter));
                address.is_some_and(|digits| digits.len() == 16 && hex(digits) == Some(0))
            });
            proc.nodes.push(Node { id, at, holders, is_manager });
        }
        ["ref", _, rest @ ..] if indent == 2 => {
            let Some(node) = number(rest, "node") else { return false };
            let death = after(rest, "d").and_then(hex).is_some_and(|death| death != 0);
            let handle = number(rest, "desc");
            proc.refs.push(Ref { node, handle, dead: rest.contains(&"dead"), death });
        }
        // The Rust driver's buffers have no numbers; many of them have not even a place for one.
        ["buffer:", rest @ ..] if indent == 2 => match buffer(Some(0), rest, at) {
            Some(buffer) => proc.buffers.push(buffer),
            None => return false,
        },
        ["buffer", id, rest @ ..] if indent == 2 => match buffer(whole(id), rest, at) {
            Some(buffer) => proc.buffers.push(buffer),
            None => return false,
        },
        ["has", "dead", ..] | ["has", "cleared", "death", ..] => proc.deaths_waiting += 1,
        ["outgoing" | "incoming" | "bad", ..] | ["pending", "transaction" | "async", ..] => {
            return take_call(proc, indent, words, at);
        }
        ["transaction", "complete"] | ["transaction", "error:", ..] | ["node", "work", ..] | ["has", ..] => {}
        // A part of a file has no title that says which it is.
        _ if indent == 2 => return stats::take(proc.stats.get_or_insert_with(Stats::default), words),
        _ => return false,
    }
    true
}

fn buffer(id: Option<i64>, words: &[&str], at: Place) -> Option<Buffer> {
    let id = id?;
    let sizes = parts(after(words, "size")?)?;
    let bytes = sizes.iter().map(|part| rounded(*part)).sum();
    let place = words.first()?;
    if let Some(pid) = number(words, "pid") {
        let oneway = after(words, "oneway").is_some_and(|word| word != "false");
        let delivered = words.last() == Some(&"allocated");
        return Some(Buffer {
            id,
            at,
            offset: place.parse().ok(),
            bytes,
            delivered,
            sender: Some((pid, oneway)),
        });
    }
    // An address or its hash has all its digits.
    let offset = hex(place).filter(|_| place.len() < 16);
    Some(Buffer { id, at, offset, bytes, delivered: words.last() == Some(&"delivered"), sender: None })
}

fn take_call(proc: &mut Proc, indent: usize, words: &[&str], at: Place) -> bool {
    let way = match words {
        ["outgoing", "transaction", ..] => Way::Outgoing,
        ["incoming", "transaction", ..] => Way::Incoming,
        ["pending", "transaction", ..] => Way::Pending,
        ["pending", "async", "transaction", ..] => Way::Queued,
        // A stack that the driver itself finds wrong.
        ["bad", "transaction", ..] => return true,
        _ => return false,
    };
    let Some(call) = call(way, words, proc.pid, at) else { return false };
    match proc.threads.last_mut() {
        Some(thread) if indent >= 4 && way != Way::Queued => thread.calls.push(call),
        _ => proc.queue.push(call),
    }
    true
}

fn call(way: Way, words: &[&str], pid: i32, at: Place) -> Option<Call> {
    let (from, to) = (id(after(words, "from")?)?, id(after(words, "to")?)?);
    let flags = after(words, "flags").and_then(hex).unwrap_or(0);
    let has = |flag: &str| words.contains(&flag);
    let oneway = flags & 1 != 0 || has("a1") || way == Way::Queued;
    // `r` means a reply where there is `a` as well, else that an answer is wanted.
    let reply = if has("a0") || has("a1") { has("r1") } else { has("r0") && !oneway };
    let age = words.iter().position(|word| *word == "elapsed").and_then(|at| words.get(at + 1));
    let sizes = after(words, "size").and_then(parts).unwrap_or_default();
    let to = if to.pid == 0 { Id { pid, tid: 0 } } else { to };
    Some(Call {
        id: whole(after(words, "transaction")?)?,
        at,
        way,
        from,
        to,
        code: after(words, "code").and_then(hex).and_then(|code| u32::try_from(code).ok()).unwrap_or(0),
        oneway,
        reply,
        age_ms: age.and_then(|age| age.trim_end_matches("ms").parse().ok()),
        node: number(words, "node").unwrap_or(0),
        bytes: sizes.iter().map(|part| rounded(*part)).sum(),
    })
}
