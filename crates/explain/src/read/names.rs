//! Names of processes and threads: lists of `ps`, virtual machines' traces, Android's log.
//! Facts: a bug report has `ps -A -T -Z -O ...`, older ones `ps -P` and `ps -t -p -P`; each begins with a line of column names.
//! ART's traces have `----- pid N at ... -----` and `Cmd line: NAME`, a thread's line `"NAME" ...` and below it `sysTid=N`.

use std::collections::HashMap;

use crate::system::System;

/// Maximum number of names of processes, and of threads.
const MOST: usize = 1 << 17;
/// Maximum length of a name in bytes.
const LONGEST: usize = 200;

/// Names a process or thread. A later name replaces an earlier one: numbers are used again.
pub(super) fn name(names: &mut HashMap<i32, String>, number: i32, name: &str) {
    let name = name.trim();
    if number > 0
        && !name.is_empty()
        && name.len() <= LONGEST
        && (names.len() < MOST || names.contains_key(&number))
    {
        names.insert(number, units::visible::printable(name).into_owned());
    }
}

/// Reader of such lists.
#[derive(Debug, Default)]
pub(super) struct Processes {
    columns: Option<Columns>,
    /// Process of the virtual machine's trace.
    pid: Option<i32>,
    /// Thread of it, without its number so far.
    thread: Option<String>,
}

/// Indices of the columns of a list.
#[derive(Clone, Copy, Debug)]
struct Columns {
    pid: usize,
    tid: Option<usize>,
    /// The last column: it may have blanks.
    name: usize,
}

impl Processes {
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// Takes a line; returns whether it names something.
    pub(super) fn take(&mut self, line: &str, system: &mut System) -> bool {
        if let Some(columns) = self.columns {
            let words: Vec<&str> = line.split_whitespace().collect();
            if take_row(columns, &words, system) {
                return true;
            }
            self.columns = None;
        }
        if line.starts_with(['U', 'L', 'P', ' ']) && line.contains("PID") {
            self.columns = heading(line);
            if self.columns.is_some() {
                return true;
            }
        }
        self.take_trace(line, system)
    }

    fn take_trace(&mut self, line: &str, system: &mut System) -> bool {
        if let Some(rest) = line.strip_prefix("----- pid ") {
            self.pid = rest.split(' ').next().and_then(|pid| pid.parse().ok());
            return false;
        }
        if line.starts_with("----- end") {
            *self = Self::default();
            return false;
        }
        let Some(pid) = self.pid else { return false };
        if let Some(command) = line.strip_prefix("Cmd line: ") {
            name(&mut system.processes, pid, command.split(' ').next().unwrap_or_default());
            return true;
        }
        if let Some(quoted) = line.strip_prefix('"') {
            self.thread = quoted.split_once('"').map(|(name, _)| name.to_owned());
        } else if let Some((_, number)) = line.split_once("sysTid=")
            && let Some(thread) = self.thread.take()
        {
            let number =
                number.split(|c: char| !c.is_ascii_digit()).next().and_then(|number| number.parse().ok());
            name(&mut system.threads, number.unwrap_or(0), &thread);
            return true;
        }
        false
    }
}

fn heading(line: &str) -> Option<Columns> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let last = *words.last()?;
    let is_name = ["NAME", "CMD", "COMMAND", "ARGS", "CMDLINE"].iter().any(|name| last.starts_with(name));
    let column = |name: &str| words.iter().position(|word| *word == name);
    is_name.then_some(())?;
    Some(Columns { pid: column("PID")?, tid: column("TID").or(column("LWP")), name: words.len() - 1 })
}

fn take_row(columns: Columns, words: &[&str], system: &mut System) -> bool {
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<i32>().ok());
    let (Some(pid), Some(last)) = (number(columns.pid), words.get(columns.name..)) else { return false };
    let (Some(first), last) = (last.first(), last.join(" ")) else { return false };
    match columns.tid.map(number) {
        None => name(&mut system.processes, pid, first),
        Some(Some(tid)) => {
            // The list has the names of threads; that of the first is the process's.
            let names = if tid == pid { &mut system.processes } else { &mut system.threads };
            name(names, tid, &last);
        }
        Some(None) => return false,
    }
    true
}
