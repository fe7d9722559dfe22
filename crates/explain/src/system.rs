//! What the inputs tell about one system: dumps of the driver's state, failures, other messages, names.
//! Not here: reading (`read`), conclusions (`find`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::hash::Hash;

use crate::finding::Evidence;

/// A line of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Index in [`System::files`].
    pub(crate) file: u32,
    /// Line number, from 1.
    pub(crate) line: u32,
}

/// A thread of a process; 0 for each number that is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) pid: i32,
    pub(crate) tid: i32,
}

/// A moment as the input writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stamp {
    /// Empty if the line has none.
    pub(crate) text: String,
    /// Seconds since boot, of a kernel's stamp.
    pub(crate) seconds: Option<f64>,
}

/// How often something was seen, when, and where it is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) times: u64,
    pub(crate) first: Stamp,
    pub(crate) last: Stamp,
    /// The first of the lines.
    pub(crate) evidence: Vec<Evidence>,
}

/// Maximum number of lines that one finding shows.
pub(crate) const MOST_EVIDENCE: usize = 3;

impl Seen {
    pub(crate) fn add(&mut self, stamp: &Stamp, evidence: impl IntoIterator<Item = Evidence>) {
        if self.times == 0 {
            self.first = stamp.clone();
        }
        self.last = stamp.clone();
        self.times += 1;
        let room = MOST_EVIDENCE.saturating_sub(self.evidence.len());
        self.evidence.extend(evidence.into_iter().take(room));
    }

    /// When and how often, as a clause; empty where nothing tells.
    pub(crate) fn when(&self) -> String {
        let (first, last) = (&self.first, &self.last);
        let at = match (first.text.as_str(), last.text.as_str()) {
            ("", "") => String::new(),
            (first, last) if first == last => format!("at {first}"),
            (first, last) => format!("from {first} to {last}"),
        };
        let span =
            first.seconds.zip(last.seconds).map(|(first, last)| last - first).filter(|span| *span > 0.0);
        let span = span.map_or(String::new(), |span| format!(" ({})", units::duration((span * 1e9).round())));
        match self.times {
            0 | 1 => at,
            times if at.is_empty() => format!("{times} times"),
            times => format!("{times} times, {at}{span}"),
        }
    }
}

/// Maximum number of different things of one sort that are kept.
const MOST_DIFFERENT: usize = 4096;

/// Something that may be seen many times.
pub(crate) trait Alike: Clone {
    /// What is the same in alike things.
    type Key: Eq + Hash;
    fn key(&self) -> Self::Key;
}

/// What was seen, alike things together, in the order of their first lines.
#[derive(Clone, Debug)]
pub(crate) struct Tally<K: Alike> {
    index: HashMap<K::Key, usize>,
    pub(crate) all: Vec<(K, Seen)>,
    /// Lines about further things.
    pub(crate) more: u64,
}

impl<K: Alike> Default for Tally<K> {
    fn default() -> Self {
        Self { index: HashMap::new(), all: Vec::new(), more: 0 }
    }
}

impl<K: Alike> Tally<K> {
    /// Adds a thing; returns its place among all, if there is room.
    pub(crate) fn add(
        &mut self,
        thing: K,
        stamp: &Stamp,
        evidence: impl IntoIterator<Item = Evidence>,
    ) -> Option<usize> {
        let at = match self.index.get(&thing.key()) {
            Some(at) => *at,
            None if self.all.len() >= MOST_DIFFERENT => {
                self.more += 1;
                return None;
            }
            None => {
                self.index.insert(thing.key(), self.all.len());
                self.all.push((thing, Seen::default()));
                self.all.len() - 1
            }
        };
        self.all[at].1.add(stamp, evidence);
        Some(at)
    }
}

impl Tally<Refusal> {
    /// Adds what another log tells about a refusal that was counted before.
    pub(crate) fn learn(&mut self, at: usize, hint: Option<Hint>, stamp: &Stamp, lines: &[Evidence]) {
        let Some((refusal, seen)) = self.all.get_mut(at) else { return };
        refusal.hint = refusal.hint.take().or(hint);
        self.index.insert(refusal.key(), at);
        seen.times -= 1;
        if seen.first.text.is_empty() {
            seen.first = stamp.clone();
        }
        let first = seen.first.clone();
        seen.add(stamp, lines.iter().cloned());
        seen.first = first;
    }
}

/// What a refused transaction was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Sort {
    Call,
    Oneway,
    Reply,
    #[default]
    Unknown,
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Call => "call",
            Self::Oneway => "oneway call",
            Self::Reply => "reply",
            Self::Unknown => "transaction",
        })
    }
}

/// Who wrote of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Driver {
    /// The C driver, or the embedded one.
    #[default]
    C,
    Rust,
}

/// A transaction that the driver refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) boot: u16,
    pub(crate) driver: Driver,
    pub(crate) sort: Sort,
    /// The driver's word for it, such as 29201.
    pub(crate) word: u32,
    /// Negative, or 0 for none; `None` where the kernel does not write it.
    pub(crate) errno: Option<i32>,
    pub(crate) from: Id,
    /// 0 if unknown.
    pub(crate) to: i32,
    pub(crate) code: Option<u32>,
    /// Line of the driver's source; 0 if unknown.
    pub(crate) line: u32,
    /// Called handle or node.
    pub(crate) handle: Option<u32>,
    pub(crate) node: i64,
    /// Bytes of data and offsets.
    pub(crate) size: Option<(u64, u64)>,
    /// What the driver wrote just before about the same thread or buffer.
    pub(crate) hint: Option<Hint>,
}

impl Alike for Refusal {
    type Key = (u16, Driver, Sort, u32, Option<i32>, i32, i32, u32, Option<(u8, usize)>);

    fn key(&self) -> Self::Key {
        let hint = self.hint.as_ref().map(|hint| match hint {
            Hint::Misuse(which) => (0, *which),
            Hint::NoSpace(_) => (1, 0),
            Hint::NoOnewaySpace(_) => (2, 0),
            Hint::NoMapping => (3, 0),
        });
        let Self { boot, driver, sort, word, errno, from, to, line, .. } = self;
        (*boot, *driver, *sort, *word, *errno, from.pid, *to, *line, hint)
    }
}

/// A line of the driver that says which check failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Index in `decode::MISUSES`.
    Misuse(usize),
    /// No gap of this many bytes in the receiver's area.
    NoSpace(u64),
    /// This many bytes do not fit in the receiver's oneway half.
    NoOnewaySpace(u64),
    NoMapping,
}

/// Something else that the driver or Android wrote; alike ones are one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Notice {
    /// The area of a process has no gap for this; without a refusal that tells of it.
    NoSpace {
        boot: u16,
        pid: i32,
        oneway: bool,
    },
    NoMapping {
        boot: u16,
        pid: i32,
    },
    NoPages {
        boot: u16,
        pid: i32,
    },
    /// The driver suspects a sender of spam.
    Spam {
        boot: u16,
        pid: i32,
        sender: i32,
    },
    /// Work that was dropped since its process died.
    Undelivered {
        boot: u16,
        what: &'static str,
    },
    /// An error that the driver gave a caller instead of a reply; nobody (0) if the caller is gone.
    NoReply {
        boot: u16,
        caller: Id,
    },
    /// A receiver's read ended before the transaction could be written into its read buffer.
    NotStored {
        boot: u16,
    },
    /// A receiver could open no descriptor for what it was sent.
    NoDescriptor {
        boot: u16,
    },
    /// A thread or process that ended with calls on its stack.
    EndedInCall {
        boot: u16,
        who: Id,
        incoming: bool,
    },
    /// Index in `decode::MISUSES`; without a refusal that tells of it.
    Misuse {
        boot: u16,
        who: Id,
        which: usize,
    },
    /// A process asked for a mapping and got none.
    NoMap {
        boot: u16,
        pid: i32,
    },
    /// `libbinder`'s word on a pool, with the longest time in ms in [`System::starved_ms`].
    Starved {
        pid: i32,
        threads: u32,
    },
    /// A large transaction.
    Large {
        pid: i32,
        interface: String,
        code: u32,
    },
    /// `FAILED BINDER TRANSACTION`.
    JavaFailed {
        pid: i32,
    },
    TooLarge {
        pid: i32,
    },
    DeadObject {
        pid: i32,
    },
    /// A process holds too many proxies or another's objects.
    TooMany {
        uid: String,
        of: String,
    },
    /// `binder_sample`: a call that took long on a main thread.
    Sample {
        interface: String,
        code: u32,
        by: String,
    },
    /// Android killed it for what it got while frozen.
    KilledFrozen {
        what: String,
    },
    Anr {
        what: String,
    },
}

impl Alike for Notice {
    type Key = Self;

    fn key(&self) -> Self {
        self.clone()
    }
}

/// Where a call is in a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Its caller waits for the answer.
    Outgoing,
    /// A thread serves it.
    Incoming,
    /// Nobody has taken it.
    Pending,
    /// It waits behind an earlier oneway call to its node.
    Queued,
}

/// A transaction under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: i64,
    pub(crate) at: Place,
    pub(crate) way: Way,
    pub(crate) from: Id,
    pub(crate) to: Id,
    pub(crate) code: u32,
    pub(crate) oneway: bool,
    pub(crate) reply: bool,
    /// `None` before Linux 6.4.
    pub(crate) age_ms: Option<u64>,
    pub(crate) node: i64,
    pub(crate) bytes: u64,
}

/// A thread's block in a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) tid: i32,
    pub(crate) at: Place,
    /// Bits of the driver's looper state.
    pub(crate) looper: u32,
    /// Calls that it makes and serves, and what waits for it.
    pub(crate) calls: Vec<Call>,
}

/// Bit of a thread that waits for work; both drivers of the kernel and the embedded one.
const WAITING: u32 = 0x10;

impl Thread {
    pub(crate) fn is_free(&self) -> bool {
        self.looper & WAITING != 0 && self.calls.is_empty()
    }
}

/// A node of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) id: i64,
    pub(crate) at: Place,
    pub(crate) holders: Vec<i32>,
    /// Whether it is a context manager's: handle 0 of its context.
    pub(crate) is_manager: bool,
}

/// A process's hold on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ref {
    pub(crate) node: i64,
    pub(crate) handle: Option<u32>,
    pub(crate) dead: bool,
    pub(crate) death: bool,
}

/// A buffer in a receiver's area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    pub(crate) id: i64,
    pub(crate) at: Place,
    /// Bytes from the area's begin; `None` where the kernel writes an address or a hash.
    pub(crate) offset: Option<u64>,
    pub(crate) bytes: u64,
    /// Whether the receiver has read it.
    pub(crate) delivered: bool,
    /// Sender and whether it is oneway; only the Rust driver names them, of every buffer.
    pub(crate) sender: Option<(i32, bool)>,
}

/// Counters of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    pub(crate) threads: Option<u64>,
    pub(crate) requested: Option<u64>,
    pub(crate) started: Option<u64>,
    pub(crate) most: Option<u64>,
    pub(crate) ready: Option<u64>,
    pub(crate) free_oneway: Option<u64>,
    pub(crate) nodes: Option<u64>,
    pub(crate) refs: Option<u64>,
    pub(crate) buffers: Option<u64>,
    pub(crate) pages: Option<u64>,
    pub(crate) pending: Option<u64>,
    /// Counts of calls sent and received, of `BR_FROZEN_REPLY`, `BR_TRANSACTION_PENDING_FROZEN`, `BR_DEAD_REPLY`, `BR_FAILED_REPLY`,
    /// `BR_ONEWAY_SPAM_SUSPECT`, `BR_DEAD_BINDER`, `BC_DEAD_BINDER_DONE`.
    pub(crate) words: BTreeMap<&'static str, u64>,
}

/// A process's block of one open in a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Proc {
    pub(crate) pid: i32,
    pub(crate) context: String,
    pub(crate) at: Place,
    pub(crate) threads: Vec<Thread>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) refs: Vec<Ref>,
    pub(crate) buffers: Vec<Buffer>,
    /// In the process's queue and in its nodes' queues.
    pub(crate) queue: Vec<Call>,
    /// Death notices that wait to be read or to be acknowledged.
    pub(crate) deaths_waiting: u64,
    pub(crate) stats: Option<Stats>,
}

impl Proc {
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.threads.iter().flat_map(|thread| &thread.calls).chain(&self.queue)
    }
}

/// Which of the driver's files a dump is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum File {
    /// `state`, or the files of `proc/`.
    State,
    Transactions,
    Stats,
}

impl File {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Transactions => "transactions",
            Self::Stats => "stats",
        }
    }
}

/// One reading of a state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dump {
    pub(crate) file: File,
    pub(crate) at: Place,
    pub(crate) procs: Vec<Proc>,
    /// Nodes whose owners are gone and that somebody holds.
    pub(crate) dead_nodes: u64,
    /// Whether it has idle threads, too: only then is a missing thread a missing thread.
    pub(crate) whole: bool,
}

/// A call that a trace shows without an answer, and what it was for.
pub(crate) type TracedCall = trace::verdict::SlowCall;

/// What a trace shows.
#[derive(Clone, Debug)]
pub(crate) struct Traced {
    pub(crate) file: u32,
    pub(crate) unanswered: Vec<TracedCall>,
    pub(crate) failed: Vec<TracedCall>,
    pub(crate) spam: Vec<trace::verdict::OnewaySpam>,
    /// Answered calls among the slowest that waited for a free thread, each with these ns of it.
    pub(crate) starved: Vec<(TracedCall, u64)>,
}

/// All that the inputs tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct System {
    pub(crate) files: Vec<String>,
    pub(crate) processes: HashMap<i32, String>,
    pub(crate) threads: HashMap<i32, String>,
    /// The first and the last dump of each file, in order.
    pub(crate) dumps: Vec<Dump>,
    pub(crate) refusals: Tally<Refusal>,
    /// Refusals that the driver reported over netlink.
    pub(crate) reports: Tally<Refusal>,
    pub(crate) notices: Tally<Notice>,
    /// Longest time in ms that a pool was starved, by pid.
    pub(crate) starved_ms: HashMap<i32, u64>,
    /// Most bytes that were refused or sent, by pid.
    pub(crate) most_bytes: HashMap<i32, u64>,
    /// Longest `binder_sample` in ms, by interface and code.
    pub(crate) slowest_ms: HashMap<(String, u32), u64>,
    /// Processes that Android froze and did not thaw.
    pub(crate) frozen: HashSet<i32>,
    /// Free space and largest gap of an area when a call did not fit, by pid.
    pub(crate) gaps: HashMap<i32, Gaps>,
    pub(crate) traces: Vec<Traced>,
    /// What was recognised, and how many lines of it.
    pub(crate) recognised: BTreeMap<&'static str, u64>,
    /// What is partial.
    pub(crate) notes: Vec<String>,
    pub(crate) boots: u16,
    /// Lines of the driver that the kernel did not write.
    pub(crate) suppressed: u64,
}

/// An area when a buffer did not fit, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    pub(crate) used: u64,
    pub(crate) buffers: u64,
    pub(crate) free: u64,
    pub(crate) largest: u64,
}

impl System {
    /// A process with its name, if anything tells.
    pub(crate) fn process(&self, pid: i32) -> String {
        match self.processes.get(&pid) {
            Some(name) => format!("{name} ({pid})"),
            None if pid == 0 => "a process that is not named".to_owned(),
            None => format!("process {pid}"),
        }
    }

    /// A thread with its names, if anything tells.
    pub(crate) fn thread(&self, id: Id) -> String {
        let Id { pid, tid } = id;
        let thread = self.threads.get(&tid).map_or(String::new(), |name| format!(" {name}"));
        match self.processes.get(&pid) {
            Some(name) => format!("{pid}:{tid}{thread} of {name}"),
            None => format!("{pid}:{tid}{thread}"),
        }
    }

    pub(crate) fn evidence(&self, at: Place) -> Evidence {
        let file = self.files.get(at.file as usize).cloned().unwrap_or_default();
        Evidence { file, line: at.line, text: None }
    }

    /// The last dump of a file.
    pub(crate) fn last(&self, file: File) -> Option<&Dump> {
        self.dumps.iter().rev().find(|dump| dump.file == file)
    }

    /// The first and the last dump of a file, if there are two.
    pub(crate) fn pair(&self, file: File) -> Option<(&Dump, &Dump)> {
        let first = self.dumps.iter().find(|dump| dump.file == file)?;
        self.last(file).filter(|last| last.at != first.at).map(|last| (first, last))
    }

    /// The last counters of a process.
    pub(crate) fn stats(&self, pid: i32, context: &str) -> Option<&Stats> {
        self.proc(File::Stats, pid, context)?.stats.as_ref()
    }

    /// A process's block in the last dump of this file.
    pub(crate) fn proc(&self, file: File, pid: i32, context: &str) -> Option<&Proc> {
        self.last(file)?.procs.iter().find(|proc| proc.pid == pid && proc.context == context)
    }
}
