//! String interning: events carry small numbers instead of strings. And the names of processes and threads that a trace's
//! tables have beside its events: process trees, `saved_cmdlines`.
//! Not here: printed text, which seldom repeats (`Kind::Print`).

use crate::hash::FastHash;
use std::collections::HashMap;
use std::sync::Arc;

use units::visible::printable;

/// Interned name in a reader's [`Names`]. Not comparable between readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(u32);

impl Name {
    /// Unknown name; its text is empty.
    pub const NONE: Self = Self(0);

    /// Whether the name is known.
    #[must_use]
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }

    /// Index for tables beside [`Names`]: dense, from 0.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Maximum bytes kept of one name. Thread names have at most 15, symbols rarely over 60.
const LONGEST: usize = 256;

/// Maximum number of names; only a forged trace has more. Further names become [`Name::NONE`].
const MOST: usize = 1 << 20;

/// Maximum bytes of all names together.
const MOST_BYTES: usize = 64 << 20;

/// Table of all names that a reader met. A name's text and its key share their bytes.
#[derive(Clone, Debug)]
pub struct Names {
    texts: Vec<Arc<str>>,
    by_bytes: HashMap<Arc<[u8]>, Name, FastHash>,
    bytes: usize,
    /// Processes and threads of the trace's tables.
    pub(crate) known: KnownTasks,
}

impl Default for Names {
    fn default() -> Self {
        Self { texts: vec!["".into()], by_bytes: HashMap::default(), bytes: 0, known: KnownTasks::default() }
    }
}

impl Names {
    /// Interns a name. The empty name is [`Name::NONE`].
    pub fn intern(&mut self, name: &str) -> Name {
        self.intern_bytes(name.as_bytes())
    }

    /// Interns bytes that may not be UTF-8: replaces invalid sequences, makes what steers a terminal visible
    /// ([`printable`]), and cuts long names.
    pub fn intern_bytes(&mut self, name: &[u8]) -> Name {
        let name = &name[..name.len().min(LONGEST)];
        if name.is_empty() {
            return Name::NONE;
        }
        if let Some(found) = self.by_bytes.get(name) {
            return *found;
        }
        let room = self.texts.len() < MOST && self.bytes + name.len() <= MOST_BYTES;
        let Some(next) = u32::try_from(self.texts.len()).ok().filter(|_| room) else {
            return Name::NONE;
        };
        // A line feed in a name would begin a line of its own in every text about it.
        let text: Arc<str> = printable(&String::from_utf8_lossy(name)).into();
        let key = if text.as_bytes() == name { text.clone().into() } else { name.into() };
        self.bytes += name.len().max(text.len());
        self.texts.push(text);
        self.by_bytes.insert(key, Name(next));
        Name(next)
    }

    /// Text of a name; empty for [`Name::NONE`].
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        self.texts.get(name.index()).map_or("", |text| text)
    }
}

/// Maximum number of processes and of threads remembered.
const MOST_KNOWN: usize = 1 << 20;

/// Thread of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownThread {
    pub(crate) comm: Name,
    pub(crate) pid: Option<i32>,
}

/// Processes and threads of a trace's tables. The last entry of a number counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownTasks {
    processes: HashMap<i32, Name, FastHash>,
    threads: HashMap<i32, KnownThread, FastHash>,
}

impl KnownTasks {
    pub(crate) fn set_process(&mut self, pid: i32, command: Name) {
        if pid > 0
            && command.is_some()
            && (self.processes.len() < MOST_KNOWN || self.processes.contains_key(&pid))
        {
            self.processes.insert(pid, command);
        }
    }

    pub(crate) fn set_thread(&mut self, tid: i32, comm: Name, pid: Option<i32>) {
        if tid <= 0 || (self.threads.len() >= MOST_KNOWN && !self.threads.contains_key(&tid)) {
            return;
        }
        let known = self.threads.entry(tid).or_default();
        if comm.is_some() {
            known.comm = comm;
        }
        known.pid = pid.or(known.pid);
    }

    pub(crate) fn process(&self, pid: i32) -> Name {
        self.processes.get(&pid).copied().unwrap_or_default()
    }

    pub(crate) fn thread(&self, tid: i32) -> KnownThread {
        self.threads.get(&tid).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number() {
        let mut names = Names::default();
        assert_eq!(names.intern(""), Name::NONE);
        let one = names.intern("Binder:12_1");
        let two = names.intern("kworker/0:2");
        assert_ne!(one, two);
        assert_eq!(names.intern("Binder:12_1"), one);
        assert_eq!(names.text(two), "kworker/0:2");
        assert_eq!(names.intern("kworker/0:2"), two);
        assert!(one.is_some() && !Name::NONE.is_some());
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_apart() {
        let mut names = Names::default();
        let one = names.intern_bytes(b"a\xff");
        let two = names.intern_bytes(b"a\xfe");
        assert_ne!(one, two);
        assert_eq!(names.text(one), "a\u{fffd}");
        let forged = names.intern_bytes(b"a\n0 calls late\x1b[2J");
        assert_eq!(names.text(forged), "a 0 calls late\\u001b[2J", "a name begins no line");
        let long = names.intern_bytes(&[b'x'; 1000]);
        assert_eq!(names.text(long).len(), LONGEST);
    }
}
