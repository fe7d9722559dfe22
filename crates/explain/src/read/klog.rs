//! Lines of the drivers in kernel logs, whatever wrote the log: `dmesg` with any stamp, the journal, logcat's kernel buffer.
//! Not here: what the lines mean (`decode`).
//! Facts: `drivers/android/binder.c`, `binder_alloc.c`, Linux 3.18 to 7.2: the tag is the module's name (`binder_linux`,
//! `binder_dkms` where it is one), and the line of a refusal follows that of the check, which may name thread and process in
//! either order. Rust driver: `thread.rs`, `transaction.rs`, `error.rs`; the tag is `rust_binder` or `binder`.

use std::collections::{HashMap, VecDeque};

use super::refused::Entry;
use super::words::{after, id, number, rounded, size, whole};
use crate::decode;
use crate::finding::Evidence;
use crate::system::{Driver, Gaps, Hint, Id, Notice, Place, Refusal, Sort, Stamp, System};

/// Maximum number of lines between a check's line and its refusal's.
const MOST_BETWEEN: usize = 8;
/// Longest time between them in seconds.
const LONGEST_BETWEEN: f64 = 0.02;
/// Maximum number of transactions that are known by number.
const MOST_IDS: usize = 1 << 16;

/// Tags of the C driver's lines; of the Rust driver's, what follows `rust_`.
const TAGS: [&str; 5] = ["binder", "binder_alloc", "binder_linux", "binder_dkms", "binder_mod"];

/// A line of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Message {
    Refused {
        id: Option<i64>,
        refusal: Refusal,
    },
    /// Says which check fails; the refusal follows. `pid` is the receiver, or the sender of a misuse.
    Check {
        who: Id,
        hint: Hint,
    },
    Area(Gaps),
    Notice(Notice),
    /// Nothing that matters.
    Other,
}

/// A check without a refusal so far.
#[derive(Clone, Debug)]
struct Waiting {
    who: Id,
    hint: Hint,
    stamp: Stamp,
    evidence: Evidence,
}

/// Reader of kernel logs.
#[derive(Debug, Default)]
pub(super) struct KernelLog {
    boot: u16,
    last_seconds: Option<f64>,
    waiting: VecDeque<Waiting>,
    /// Transactions by number, with their places among the refusals.
    ids: HashMap<(u16, i64), Option<usize>>,
    last_full: Option<i32>,
}

impl KernelLog {
    /// Takes an entry of one of the driver's logs: the kernel's log may have the same transaction.
    pub(super) fn take_entry(&mut self, entry: Entry, evidence: Evidence, system: &mut System) {
        let Some(refusal) = entry.refusal else {
            self.remember(entry.id, None);
            return;
        };
        if !self.ids.contains_key(&(self.boot, entry.id)) {
            let at = system.refusals.add(refusal, &Stamp::default(), [evidence]);
            self.remember(entry.id, at);
        }
    }

    fn remember(&mut self, id: i64, at: Option<usize>) {
        if self.ids.len() < MOST_IDS {
            self.ids.entry((self.boot, id)).or_insert(at);
        }
    }

    /// Takes a line; returns whether it is a driver's.
    pub(super) fn take(&mut self, line: &str, at: Place, system: &mut System) -> bool {
        if let Some(more) = suppressed(line) {
            system.suppressed += more;
            return true;
        }
        let Some((before, driver, text)) = split(line) else { return false };
        let stamp = stamp(before);
        if let Some(seconds) = stamp.seconds {
            self.boot += u16::from(self.last_seconds.is_some_and(|last| seconds + 1.0 < last));
            self.last_seconds = Some(seconds);
            system.boots = system.boots.max(self.boot + 1);
        }
        let evidence = Evidence::of(&system.files, at, line);
        match parse(text, driver, self.boot) {
            Message::Refused { id, refusal } => self.refused(id, refusal, &stamp, evidence, system),
            Message::Check { who, hint } => {
                self.last_full = matches!(hint, Hint::NoSpace(_) | Hint::NoOnewaySpace(_)).then_some(who.pid);
                if let Hint::NoSpace(bytes) | Hint::NoOnewaySpace(bytes) = hint {
                    let most = system.most_bytes.entry(who.pid).or_default();
                    *most = bytes.max(*most);
                }
                self.waiting.push_back(Waiting { who, hint, stamp, evidence });
                if self.waiting.len() > MOST_BETWEEN {
                    self.give_up(system);
                }
            }
            Message::Area(gaps) => {
                if let Some(pid) = self.last_full.take() {
                    system.gaps.insert(pid, gaps);
                }
            }
            Message::Notice(notice) => {
                system.notices.add(notice, &stamp, [evidence]);
            }
            Message::Other => {}
        }
        true
    }

    /// Ends a log.
    pub(super) fn end(&mut self, system: &mut System) {
        while !self.waiting.is_empty() {
            self.give_up(system);
        }
        self.last_seconds = None;
        self.last_full = None;
    }

    /// Adds a refusal with the line of its check, if that came just before.
    fn refused(
        &mut self,
        id: Option<i64>,
        mut refusal: Refusal,
        stamp: &Stamp,
        evidence: Evidence,
        system: &mut System,
    ) {
        refusal.boot = self.boot;
        let mut lines = Vec::new();
        let explains = |check: &Waiting| check.explains(&refusal, stamp);
        let exact = self.waiting.iter().rposition(|check| explains(check) && !check.hint.is_vague());
        let vague = self.waiting.iter().rposition(|check| explains(check) && check.hint.is_vague());
        // The one that is behind goes first, so that the other keeps its place.
        let mut found: Vec<Waiting> = [exact.max(vague), exact.min(vague)]
            .into_iter()
            .flatten()
            .filter_map(|at| self.waiting.remove(at))
            .collect();
        found.sort_by_key(|check| check.hint.is_vague());
        for check in found {
            if refusal.to == 0 && !matches!(check.hint, Hint::Misuse(_)) {
                refusal.to = check.who.pid;
            }
            refusal.hint = refusal.hint.take().or(Some(check.hint));
            lines.push(check.evidence);
        }
        lines.push(evidence);
        match id.and_then(|id| self.ids.get(&(self.boot, id)).copied()) {
            Some(known) => {
                known
                    .into_iter()
                    .for_each(|at| system.refusals.learn(at, refusal.hint.take(), stamp, &lines));
            }
            None => {
                let at = system.refusals.add(refusal, stamp, lines);
                id.into_iter().for_each(|id| self.remember(id, at));
            }
        }
    }

    /// Makes the oldest check a notice: no refusal follows.
    fn give_up(&mut self, system: &mut System) {
        let Some(Waiting { who, hint, stamp, evidence }) = self.waiting.pop_front() else { return };
        let (boot, pid) = (self.boot, who.pid);
        let notice = match hint {
            Hint::Misuse(which) => Notice::Misuse { boot, who, which },
            Hint::NoSpace(_) => Notice::NoSpace { boot, pid, oneway: false },
            Hint::NoOnewaySpace(_) => Notice::NoSpace { boot, pid, oneway: true },
            Hint::NoMapping => Notice::NoMapping { boot, pid },
        };
        system.notices.add(notice, &stamp, [evidence]);
    }
}

impl Hint {
    /// "Cannot find target node" is also written behind a line that says why.
    fn is_vague(&self) -> bool {
        matches!(self, Self::Misuse(which) if decode::MISUSES.get(*which).is_some_and(|misuse| misuse.item == "TX-07"))
    }
}

impl Waiting {
    fn explains(&self, refusal: &Refusal, stamp: &Stamp) -> bool {
        let near = self.stamp.seconds.zip(stamp.seconds);
        if near.is_some_and(|(check, refusal)| (refusal - check).abs() > LONGEST_BETWEEN) {
            return false;
        }
        let is_receiver = refusal.to == 0 || refusal.to == self.who.pid;
        let fits = |bytes: u64| {
            let least = refusal.size.map(|(data, offsets)| (rounded(data) + rounded(offsets)).max(8));
            least.is_none_or(|least| bytes >= least)
        };
        let no_space = refusal.errno == Some(-sys::errno::ENOSPC);
        // Linux 3.18 writes no errno.
        let unwritten = refusal.errno.is_none() && refusal.word == decode::FAILED_REPLY;
        match self.hint {
            Hint::Misuse(_) => {
                let Id { pid, tid } = refusal.from;
                self.who.pid == 0
                    || (pid, tid) == (self.who.pid, self.who.tid)
                    || (tid, pid) == (self.who.pid, self.who.tid)
            }
            Hint::NoSpace(bytes) | Hint::NoOnewaySpace(bytes) => {
                (no_space || unwritten) && is_receiver && fits(bytes)
            }
            Hint::NoMapping => (refusal.errno == Some(-sys::errno::ESRCH) || unwritten) && is_receiver,
        }
    }
}

/// Number of the driver's lines that the kernel did not write.
/// Facts: `lib/ratelimit.c`; the C driver passes its lines through functions of their own, each with at most 10 lines in 5 s.
fn suppressed(line: &str) -> Option<u64> {
    let (before, _) = line.split_once(" callbacks suppressed")?;
    let (function, count) = before.rsplit_once(": ")?;
    function.rsplit([' ', ']']).next()?.starts_with("binder_").then(|| count.parse().ok())?
}

/// What is before the driver's tag, which driver it is, and its text.
fn split(line: &str) -> Option<(&str, Driver, &str)> {
    let mut from = 0;
    while let Some(found) = line.get(from..)?.find("binder") {
        let at = from + found;
        let begin = if line[..at].ends_with("rust_") { at - 5 } else { at };
        let rest = &line[at..];
        let tag = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let known = TAGS.contains(&&rest[..tag]);
        let text = rest[tag..].trim_start_matches(' ').strip_prefix(": ").filter(|_| known);
        let apart =
            line[..begin].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && !"_.-/".contains(c));
        if let (true, Some(text)) = (apart, text) {
            let driver = if begin < at { Driver::Rust } else { Driver::C };
            return Some((&line[..begin], driver, text));
        }
        from = at + tag;
    }
    None
}

/// The moment in what is before a tag.
fn stamp(before: &str) -> Stamp {
    let mut brackets =
        before.split('[').skip(1).filter_map(|part| part.split_once(']')).map(|(inside, _)| inside.trim());
    let seconds =
        brackets.clone().find_map(|inside| inside.parse::<f64>().ok()).filter(|seconds| *seconds >= 0.0);
    if let Some(seconds) = seconds {
        return Stamp { text: format!("{seconds:.6} s"), seconds: Some(seconds) };
    }
    if let Some(date) = brackets.find(|inside| inside.matches(':').count() == 2) {
        return Stamp { text: date.to_owned(), seconds: None };
    }
    let words: Vec<&str> = before.split_whitespace().take(3).collect();
    let clock = words.iter().position(|word| word.matches(':').count() >= 2);
    let text = clock.map_or(String::new(), |clock| words[..=clock].join(" "));
    Stamp { text, seconds: None }
}

fn parse(text: &str, driver: Driver, boot: u16) -> Message {
    let words: Vec<&str> = text.split_whitespace().collect();
    refused(text, &words, driver)
        .or_else(|| alloc(text, &words, boot))
        .or_else(|| dead(text, &words, boot))
        .or_else(|| misuse(text, &words))
        .unwrap_or(Message::Other)
}

fn refused(text: &str, words: &[&str], driver: Driver) -> Option<Message> {
    if driver == Driver::Rust || text.contains("failed BR_") || text.contains(" failed: ") {
        return rust_refused(text, words);
    }
    let (from, sort, to, result) = match words {
        [from, "transaction", "failed", result, ..] => (from, "", None, result),
        [from, "transaction", sort, "to", to, "failed", result, ..] => (from, *sort, Some(to), result),
        _ => return None,
    };
    let mut numbers = result.trim_end_matches(',').split('/').map(|number| number.parse::<i64>().ok());
    let (id, word, errno) = match (numbers.next()?, numbers.next(), numbers.next()) {
        (word, None, _) => (None, word, None),
        (word, Some(errno), None) => (None, word, errno),
        (id, Some(word), Some(errno)) => (id, word, errno),
    };
    let refusal = Refusal {
        driver: Driver::C,
        sort: sort_of(sort),
        word: u32::try_from(word?).ok()?,
        errno: errno.and_then(|errno| i32::try_from(errno).ok()),
        ..common(from, to.copied(), words)?
    };
    Some(Message::Refused { id, refusal })
}

fn sort_of(word: &str) -> Sort {
    match word {
        "call" => Sort::Call,
        "async" => Sort::Oneway,
        "reply" => Sort::Reply,
        _ => Sort::Unknown,
    }
}

/// What the lines of all drivers have.
fn common(from: &str, to: Option<&str>, words: &[&str]) -> Option<Refusal> {
    let to = to.and_then(id).unwrap_or_default();
    Some(Refusal {
        from: id(from)?,
        to: to.pid,
        code: number(words, "code"),
        line: number(words, "line").unwrap_or(0),
        size: after(words, "size").and_then(size),
        ..Refusal::default()
    })
}

/// Facts: Linux 7.2 writes an errno's name for `BR_FAILED_REPLY`, `Error(NUMBER)` where the kernel has no names, else the word,
/// and does not say whether a transaction is oneway; Android's kernels write the word with its source.
fn rust_refused(text: &str, words: &[&str]) -> Option<Message> {
    let of = |name: &str| {
        let name = name.trim_end_matches([',', '}']);
        let number = name.strip_prefix("Error(").and_then(|number| number.trim_end_matches(')').parse().ok());
        decode::errno_of(name).or(number).or_else(|| name.parse().ok().map(i32::abs))
    };
    let named = words.iter().find(|word| word.starts_with("BR_")).map(|name| name.trim_end_matches(','));
    let (word, errno) = match (named, words) {
        (Some(name), _) => (decode::word_of(name)?, after(words, "source:").and_then(of)),
        (None, [.., "failed:", errno]) => (decode::FAILED_REPLY, Some(of(errno)?)),
        (None, _) => return None,
    };
    let (from, sort, to) = match words {
        [from, "transaction", "to", to, "failed:", ..] => (*from, Sort::Unknown, Some(*to)),
        [from, "transaction", sort, "to", to, "failed", ..] => (*from, sort_of(sort), Some(*to)),
        [from, "reply", "to", to, "failed:", ..] => (*from, Sort::Reply, Some(*to)),
        _ if text.contains("ransaction failed: BR_") => {
            let pid = words.iter().find_map(|word| word.strip_prefix("my_pid:"));
            (pid.unwrap_or("0"), Sort::Unknown, None)
        }
        _ => return None,
    };
    let errno = Some(errno.map_or(0, |errno| -errno));
    let refusal = Refusal { driver: Driver::Rust, sort, word, errno, ..common(from, to, words)? };
    Some(Message::Refused { id: None, refusal })
}

fn alloc(text: &str, words: &[&str], boot: u16) -> Option<Message> {
    if text.starts_with("allocated:") {
        let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
        let [used, buffers, _, free, _, largest] = numbers.collect::<Vec<u64>>()[..] else { return None };
        return Some(Message::Area(Gaps { used, buffers, free, largest }));
    }
    let pid: i32 = words.first().and_then(|word| whole(word))?;
    let who = Id { pid, tid: 0 };
    let bytes = number(words, "size").unwrap_or(0);
    let check = |hint| Some(Message::Check { who, hint });
    if text.ends_with("no address space") {
        return check(Hint::NoSpace(bytes));
    }
    if text.contains("no async space left") {
        return check(Hint::NoOnewaySpace(bytes));
    }
    if text.contains("binder_alloc_buf") && text.contains("no vma") {
        return check(Hint::NoMapping);
    }
    if text.contains("spamming oneway") {
        let sender = number(words, "pid").unwrap_or(0);
        return Some(Message::Notice(Notice::Spam { boot, pid, sender }));
    }
    let no_pages = text.contains("failed for page")
        || text.contains("failed to insert page")
        || text.contains("failed to map page");
    no_pages.then_some(Message::Notice(Notice::NoPages { boot, pid }))
}

fn dead(text: &str, words: &[&str], boot: u16) -> Option<Message> {
    let notice = match words {
        ["undelivered", "transaction", ..] if text.contains("fd fixups failed") => {
            Notice::NoDescriptor { boot }
        }
        ["undelivered", "transaction", ..]
            if text.contains("put_user failed") || text.contains("copy_to_user failed") =>
        {
            Notice::NotStored { boot }
        }
        ["undelivered", "transaction", id, ..] if whole::<i64>(id).is_some() => {
            Notice::Undelivered { boot, what: "transaction" }
        }
        ["undelivered", "death", ..] => Notice::Undelivered { boot, what: "death notice" },
        ["undelivered", ..] => Notice::Undelivered { boot, what: "completion or error" },
        ["send", "failed", "reply", "for", "transaction", ..] => {
            Notice::NoReply { boot, caller: after(words, "to").and_then(id).unwrap_or_default() }
        }
        ["release", who, "transaction", ..] | [who, "release", "transaction", ..]
            if text.contains("still active") =>
        {
            Notice::EndedInCall { boot, who: id(who)?, incoming: words.contains(&"in,") }
        }
        _ if words.first().is_some_and(|first| first.contains("mmap")) && text.contains("failed") => {
            Notice::NoMap { boot, pid: words.get(1).and_then(|pid| whole(pid))? }
        }
        _ => return None,
    };
    Some(Message::Notice(notice))
}

fn misuse(text: &str, words: &[&str]) -> Option<Message> {
    let which = decode::misuse(text)?;
    let who = words.first().and_then(|word| id(word)).unwrap_or_default();
    Some(Message::Check { who, hint: Hint::Misuse(which) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> Refusal {
        let (_, driver, text) = split(line).expect(line);
        match parse(text, driver, 0) {
            Message::Refused { refusal, .. } => refusal,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_refusal_is_read_as_each_kernel_writes_it() {
        let old = refusal("[ 5639.082417] binder: 293352:305065 transaction failed 29201, size 66160-8");
        assert_eq!(
            (old.word, old.errno, old.from, old.size),
            (29201, None, Id { pid: 293_352, tid: 305_065 }, Some((66160, 8)))
        );
        let middle = refusal(
            "<6>[1.5] (3)[12:binder]binder: 844:1535 transaction failed 29189/-22, size 88-0 line 3270",
        );
        assert_eq!((middle.word, middle.errno, middle.line), (29189, Some(-22), 3270));
        let new = refusal(
            "Nov 26 17:00:01 host kernel: binder: 4120:4121 transaction async to 7:0 failed 9/29201/-28, code 5 size 1-2 line 3142",
        );
        assert_eq!((new.sort, new.to, new.code, new.line), (Sort::Oneway, 7, Some(5), 3142));
        let rust =
            refusal("[1.0] rust_binder: Transaction failed: BR_FAILED_REPLY { source: EINVAL } my_pid:77");
        assert_eq!((rust.driver, rust.word, rust.errno, rust.from.pid), (Driver::Rust, 29201, Some(-22), 77));
        let rust = refusal(
            "[1.0] rust_binder: 77:78 transaction call to 5:0 failed BR_FAILED_REPLY { source: ENOSPC }, code 3 size 9-0",
        );
        assert_eq!(
            (rust.sort, rust.errno, rust.from.tid, rust.to, rust.code),
            (Sort::Call, Some(-28), 78, 5, Some(3))
        );
        for errno in ["ENOENT", "Error(2)"] {
            let rust = refusal(&format!("[1.0] rust_binder: 77:78 transaction to 5 failed: {errno}"));
            assert_eq!((rust.word, rust.errno, rust.from.tid, rust.to), (29201, Some(-2), 78, 5), "{errno}");
        }
        let rust =
            refusal("11-26 17:00:01.123     0     0 W rust_binder: 7:8 reply to 9 failed: BR_DEAD_REPLY");
        assert_eq!((rust.sort, rust.word, rust.errno, rust.to), (Sort::Reply, 29189, Some(0), 9));
    }

    #[test]
    fn lines_that_the_kernel_held_back_are_counted() {
        for (line, count) in [
            ("[   41.55] binder_user_error: 17 callbacks suppressed", Some(17)),
            ("<4>[1.0]binder_debug: 3 callbacks suppressed", Some(3)),
            ("[1.0] net_ratelimit: 3 callbacks suppressed", None),
            ("[1.0] binder_debug: x callbacks suppressed", None),
        ] {
            assert_eq!(suppressed(line), count, "{line}");
        }
    }

    #[test]
    fn the_moment_is_read_as_each_tool_writes_it() {
        for (before, text, seconds) in [
            ("[ 2451.5] ", "2451.500000 s", Some(2451.5)),
            ("<6>[   12.5] [T77] ", "12.500000 s", Some(12.5)),
            ("[Thu Nov 26 17:00:01 2026] ", "Thu Nov 26 17:00:01 2026", None),
            ("Nov 26 17:00:01 host kernel: ", "Nov 26 17:00:01", None),
            ("11-26 17:00:01.123     0     0 I ", "11-26 17:00:01.123", None),
            ("2026-11-26T17:00:01+00:00 host kernel: ", "2026-11-26T17:00:01+00:00", None),
            ("", "", None),
        ] {
            assert_eq!(stamp(before), Stamp { text: text.to_owned(), seconds }, "{before}");
        }
    }

    #[test]
    fn only_lines_of_a_driver_have_its_tag() {
        for line in [
            "libbinder: x",
            "JavaBinder: x",
            "/dev/binder: x",
            "binderfs mounted",
            "a binder:x",
            "I binder_sample: x",
        ] {
            assert!(split(line).is_none(), "{line}");
        }
        for line in [
            "binder: x",
            "[1] binder_alloc: x",
            "kernel: binder_dkms: x",
            "I binder  : x",
            "W rust_binder: x",
        ] {
            assert!(split(line).is_some(), "{line}");
        }
    }
}
