//! What the embedded driver writes into a trace, looked at as a reader of traces would: every event in its
//! thread, in order, and whole calls among many processes. And that nothing is written unless it was asked for.
//! Not here: each event's text (section 18 of the conformance suite).
//!
//! Each test records in an instance of tracefs of its own, and says so where that cannot be made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use needs::{Lack, Need, need};

use crate::support::{BINARY, Called, Folder, call, contents, realtime, words};

const ASKED: &str = "BINDERPERF_TRACING";

/// One test at a time: they take all CPUs, and a patient wait must not fail for that.
static ONE: Mutex<()> = Mutex::new(());

/// An instance of tracefs.
struct Instance(PathBuf);

impl Instance {
    fn new(name: &str) -> Result<Self, Lack> {
        let place = Path::new("/sys/kernel/tracing/instances");
        let folder = place.join(format!("binderperf-test-{}-{name}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| {
            Need::Tracefs.lacks(format_args!("no instance in {}: {error}", place.display()))
        })?;
        let instance = Self(folder);
        // A count, not a time: events of several CPUs are in order.
        for (file, value) in [("trace_clock", "counter"), ("buffer_size_kb", "65536"), ("tracing_on", "1")] {
            fs::write(instance.0.join(file), value).expect("an instance takes its settings");
        }
        Ok(instance)
    }

    fn folder(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }

    fn marks(&self) -> Vec<Mark> {
        let text = contents(self.0.join("trace"));
        for cpu in fs::read_dir(self.0.join("per_cpu")).expect("a folder per CPU").flatten() {
            let stats = contents(cpu.path().join("stats"));
            assert!(stats.lines().any(|line| line == "overrun: 0"), "too small a buffer: {stats}");
        }
        text.lines().filter(|line| !line.starts_with('#')).map(Mark::read).collect()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // It is in use until the last process with an open marker is gone.
        let start = Instant::now();
        while fs::remove_dir(&self.0).is_err() && !sys::patience::is_over(start, Duration::from_secs(10)) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// One mark.
#[derive(Debug)]
struct Mark {
    tid: u32,
    name: String,
    fields: BTreeMap<String, String>,
    text: String,
}

impl Mark {
    fn read(line: &str) -> Self {
        let (who, rest) = line.split_once('[').expect("a CPU");
        let (_, tid) = who.trim().rsplit_once('-').expect("a thread");
        let (_, text) =
            rest.split_once(": tracing_mark_write: ").unwrap_or_else(|| panic!("no mark: {line}"));
        let (name, text) = text.split_once(": ").unwrap_or_else(|| panic!("no event: {line}"));
        let pairs = text.split(' ').filter_map(|pair| pair.split_once('='));
        Self {
            tid: tid.parse().expect("a number"),
            name: name.to_owned(),
            fields: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            text: text.to_owned(),
        }
    }

    fn number(&self, field: &str) -> u32 {
        let value = self.fields.get(field).unwrap_or_else(|| panic!("no {field} in {self:?}"));
        match value.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).expect("a number"),
            None => value.parse().expect("a number"),
        }
    }
}

/// What is found by following every call through a trace.
#[derive(Debug, Default)]
struct Found {
    calls: usize,
    nested: usize,
    oneways: usize,
    replies: usize,
    /// Transactions that nobody received.
    lost: BTreeSet<u32>,
    /// Calls that another thread received than the one that they were for: right only if that one waits no more, as
    /// somebody in the chain of calls between was killed.
    astray: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Calling(u32),
    Serving(u32),
}

/// Follows every call, and fails where a transaction is received before it is sent, or twice, a reply by another
/// thread than it was for, where two have one number, or where a reply is not that of the call being served.
fn follow(marks: &[Mark]) -> Found {
    let mut found = Found::default();
    let mut sent: BTreeMap<u32, &Mark> = BTreeMap::new();
    let mut answers: BTreeMap<u32, u32> = BTreeMap::new();
    let mut stacks: BTreeMap<u32, Vec<Level>> = BTreeMap::new();
    // Calls that a thread is about to reply to. If the caller is gone, no transaction follows.
    let mut answering: BTreeMap<u32, u32> = BTreeMap::new();
    for mark in marks {
        let id = || mark.number("transaction");
        let stack = stacks.entry(mark.tid).or_default();
        match mark.name.as_str() {
            "binder_transaction" => {
                assert!(id() > 0 && id() <= i32::MAX as u32, "{mark:?}");
                assert!(sent.insert(id(), mark).is_none(), "two transactions have one number: {mark:?}");
                found.lost.insert(id());
                if mark.number("reply") == 1 {
                    let call = answering.remove(&mark.tid).unwrap_or_else(|| panic!("no reply: {mark:?}"));
                    // 0: the caller's thread has left the context.
                    let to = mark.number("dest_thread");
                    assert!(to == 0 || to == sent[&call].tid, "to its caller: {mark:?}");
                    assert_eq!(mark.number("dest_node"), 0, "{mark:?}");
                    answers.insert(id(), call);
                    found.replies += 1;
                } else {
                    assert_ne!(mark.number("dest_node"), 0, "{mark:?}");
                    if mark.number("flags") & 1 == 1 {
                        found.oneways += 1;
                    } else {
                        found.nested += usize::from(!stack.is_empty());
                        found.calls += 1;
                        stack.push(Level::Calling(id()));
                    }
                }
            }
            "binder_transaction_received" => {
                let call = sent.get(&id()).unwrap_or_else(|| panic!("received before it was sent: {mark:?}"));
                assert!(found.lost.remove(&id()), "received twice: {mark:?}");
                let thread = call.number("dest_thread");
                let meant = thread == 0 || thread == mark.tid;
                assert!(meant || call.number("reply") == 0, "for another thread: {call:?}, {mark:?}");
                found.astray += usize::from(!meant);
                match answers.get(&id()) {
                    Some(call) => assert_eq!(stack.pop(), Some(Level::Calling(*call)), "{mark:?}"),
                    None if call.number("flags") & 1 == 0 => stack.push(Level::Serving(id())),
                    None => {}
                }
            }
            "binder_command" if mark.text.contains("BC_REPLY") => {
                let Some(Level::Serving(call)) = stack.pop() else { panic!("no call is served: {mark:?}") };
                answering.insert(mark.tid, call);
            }
            // A call that ends without a reply, or was never begun.
            "binder_return"
                if ["DEAD_REPLY", "FAILED_REPLY", "FROZEN_REPLY"]
                    .iter()
                    .any(|end| mark.text.ends_with(end)) =>
            {
                stack.pop_if(|top| matches!(top, Level::Calling(_)));
            }
            _ => {}
        }
    }
    found
}

/// Runs the program, traced into this instance.
fn traced(instance: &Instance, words: &[&str]) -> Called {
    let _guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    call(BINARY, words, &[(ASKED, instance.folder())]).ended(0)
}

/// A test whose calls all meet their deadline.
const LATENCY: &str = "latency hwbinder --driver embedded --no-scenes -i 50 -pair 2 -deadline_us 3600000000";

#[test]
fn every_call_of_a_latency_test_can_be_followed() {
    for direct in ["on", "off"] {
        let instance = need!(Instance::new(&format!("latency-{direct}")));
        traced(&instance, &words(&format!("{LATENCY} --direct {direct}")));
        let marks = instance.marks();
        let found = follow(&marks);
        // Two pairs, two threads each, 50 calls; what comes before and after is more.
        assert!(found.calls >= 200 && found.replies >= 200, "--direct={direct}: {found:?}");
        assert!(
            found.lost.is_empty(),
            "--direct={direct}: sent to a process that lives, and lost: {found:?}"
        );
        assert_eq!(found.astray, 0, "--direct={direct}: nobody was killed: {found:?}");
        // Each buffer that was taken is delivered and given back, or its receiver is gone by now.
        let of = |name: &str| -> BTreeMap<u32, &str> {
            let named = marks.iter().filter(|mark| mark.name == name);
            named.map(|mark| (mark.number("transaction"), mark.text.as_str())).collect()
        };
        let (taken, released) = (of("binder_transaction_alloc_buf"), of("binder_transaction_buffer_release"));
        assert!(released.len() >= 400, "--direct={direct}: {} buffers were given back", released.len());
        for (id, text) in released {
            assert_eq!(taken.get(&id), Some(&text), "--direct={direct}: its sizes are as when it was taken");
        }
    }
}

#[test]
fn calls_among_processes_that_are_killed_can_be_followed() {
    for direct in ["on", "off"] {
        let instance = need!(Instance::new(&format!("chaos-{direct}")));
        let words =
            ["chaos", "--driver", "embedded", "--direct", direct, "--seconds", "1", "--processes", "3"];
        traced(&instance, &words);
        let found = follow(&instance.marks());
        assert!(found.nested > 0 && found.oneways > 0, "--direct={direct}: {found:?}");
        assert!(found.replies > 0 && found.replies <= found.calls, "--direct={direct}: {found:?}");
        // Few are killed just then.
        assert!(found.astray * 10 <= found.nested, "--direct={direct}: {found:?}");
    }
}

#[test]
fn a_priority_that_is_passed_on_is_traced() {
    let instance = need!(Instance::new("priority"));
    need!(realtime());
    traced(&instance, &words(&format!("{LATENCY} --inherit rt")));
    let marks = instance.marks();
    let changes: Vec<_> = marks.iter().filter(|mark| mark.name == "binder_set_priority").collect();
    // `old=N => new=N`: the kernel's numbers, real-time ones below 100.
    let [up, down] = [true, false].map(|up| {
        let goes = |mark: &&&Mark| (mark.number("old") >= 100) == up && (mark.number("new") < 100) == up;
        changes.iter().filter(goes).count()
    });
    assert!(up > 0 && down > 0, "raised {up} times, taken back {down} times: {changes:?}");
    let threads: BTreeSet<u32> =
        marks.iter().filter(|mark| mark.name == "binder_transaction_received").map(|mark| mark.tid).collect();
    assert!(changes.iter().all(|mark| threads.contains(&mark.number("thread"))), "{changes:?}");
}

#[test]
fn nothing_is_written_unless_it_was_asked_for() {
    let instance = need!(Instance::new("asked"));
    let folder = Folder::new("marks-asked");
    let run = |variables: &[(&str, &str)]| {
        let _guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        call(BINARY, &words(LATENCY), variables).ended(0);
        let marks = instance.marks().len();
        fs::write(instance.0.join("trace"), "").expect("a trace is emptied");
        marks
    };
    let place = folder.path("binderperf");
    let own = ("XDG_RUNTIME_DIR", place.strip_suffix("/binderperf").expect("as made"));
    fs::DirBuilder::new().mode(0o700).create(&place).expect("a directory");
    assert_eq!(run(&[own]), 0, "tracing is on, and nobody asked for marks");
    // As `embedded::trace_events::announce` leaves it.
    let announcement = Path::new(&place).join("tracing");
    fs::write(&announcement, instance.folder()).expect("a file");
    fs::set_permissions(&announcement, Permissions::from_mode(0o600)).expect("one's own");
    assert!(run(&[own]) > 1000, "announced to all processes of the user");
    assert_eq!(run(&[own, (ASKED, "")]), 0, "an empty word is a refusal");
    fs::remove_file(&announcement).expect("there");
    assert_eq!(run(&[own]), 0, "the announcement was withdrawn");
    assert_eq!(run(&[own, (ASKED, "/no/such/folder")]), 0, "and a call fails for no trace");
    fs::write(instance.0.join("tracing_on"), "0").expect("off");
    assert_eq!(run(&[own, (ASKED, instance.folder())]), 0, "asked for while tracing is off");
}

/// Of one call from thread 1 to thread 2, and its reply.
const GOOD: [&str; 5] = [
    "1 binder_transaction: transaction=7 dest_node=3 dest_proc=2 dest_thread=0 reply=0 flags=0x10 code=0x1",
    "2 binder_transaction_received: transaction=7",
    "2 binder_command: cmd=0x40406301 BC_REPLY",
    "2 binder_transaction: transaction=8 dest_node=0 dest_proc=1 dest_thread=1 reply=1 flags=0x0 code=0x0",
    "1 binder_transaction_received: transaction=8",
];

fn made_up(lines: &[impl AsRef<str>]) -> Vec<Mark> {
    let line = |line: &str| {
        let (tid, text) = line.split_once(' ').expect("a thread");
        Mark::read(&format!("  name-{tid} [000] ..... 5: tracing_mark_write: {text}"))
    };
    lines.iter().map(|text| line(text.as_ref())).collect()
}

#[test]
fn a_trace_that_is_wrong_is_found_out() {
    let good = follow(&made_up(&GOOD));
    assert_eq!((good.calls, good.replies, good.lost.len()), (1, 1, 0));
    let unreceived = follow(&made_up(&GOOD[..4]));
    assert_eq!(unreceived.lost, BTreeSet::from([8]));
    assert_eq!(good.astray, 0);
    let mended = |place: usize, from: &str, to: &str| {
        let mut lines = GOOD.map(str::to_owned);
        lines[place] = lines[place].replace(from, to);
        lines.to_vec()
    };
    let swapped = vec![GOOD[1], GOOD[0], GOOD[2], GOOD[3], GOOD[4]];
    let wrong: [(&str, Vec<String>); 6] = [
        ("received before it was sent", swapped.into_iter().map(str::to_owned).collect()),
        ("one number twice", mended(3, "transaction=8", "transaction=7")),
        ("no number", mended(0, "transaction=7", "transaction=0")),
        ("a reply to somebody else", mended(3, "dest_thread=1", "dest_thread=5")),
        ("received by somebody else", mended(4, "1 binder", "5 binder")),
        ("no reply to anything", mended(2, "BC_REPLY", "BC_FREE_BUFFER")),
    ];
    let astray = follow(&made_up(&mended(0, "dest_thread=0", "dest_thread=9")));
    assert_eq!(astray.astray, 1, "a call that another thread received is counted");
    for (what, lines) in wrong {
        let marks = made_up(&lines);
        let followed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| follow(&marks)));
        assert!(followed.is_err(), "{what} was not found out");
    }
}
