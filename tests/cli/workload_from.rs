//! `binderperf workload from`, `figures` and `distance` as their users meet them: recorded traces, a trace whose names
//! are a secret, and what cannot be described.
//! Not here: the rules (`crates/workload`), running a description.

use std::fmt::Write;

use crate::support::{Folder, binderperf, fixture, refused};

/// A thread's name that must stay in the trace.
const SECRET: &str = "alices-phone";

/// Text of ftrace: so many calls of a server that works for so long.
fn trace(calls: u32, works_us: u64) -> String {
    let (mut text, mut us) = ("# tracer: nop\n#\n".to_owned(), 1_000_000_u64);
    for id in (1..).step_by(2).take(calls as usize) {
        let mut event = |after: u64, tid: u32, event: &str| {
            us += after;
            let (seconds, rest) = (us / 1_000_000, us % 1_000_000);
            let _ = writeln!(text, "  {SECRET}-{tid} [{:03}] d..2. {seconds}.{rest:06}: {event}", tid % 2);
        };
        let sent = |id: u32, to: u32, thread: u32| {
            let reply = u32::from(thread > 0);
            format!(
                "binder_transaction: transaction={id} dest_node={} dest_proc={to} dest_thread={thread} reply={reply} flags=0x10 code=0x1",
                5 * (1 - reply)
            )
        };
        let buffer = |id: u32, size: u32| {
            format!(
                "binder_transaction_alloc_buf: transaction={id} data_size={size} offsets_size=0 extra_buffers_size=0"
            )
        };
        let received = |id: u32| format!("binder_transaction_received: transaction={id}");
        event(20, 101, &sent(id, 200, 0));
        event(1, 101, &buffer(id, 96));
        event(3, 200, &received(id));
        event(works_us + u64::from(id % 5), 200, &sent(id + 1, 101, 101));
        event(1, 200, &buffer(id + 1, 8));
        event(4, 101, &received(id + 1));
    }
    text
}

#[test]
fn a_trace_becomes_a_text_without_its_names() {
    let folder = Folder::new("workload-from");
    let file = folder.write("secret.txt", trace(50, 30));
    let text = binderperf(&["workload", "from", &file]).ended(0).stdout;
    for line in ["binderperf workload 1", "process p1", "process p2", "  call p2 96>8", "    work 3"] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line}: {text}");
    }
    for name in [SECRET, "secret", "101", "200"] {
        assert!(!text.contains(name), "{name}: {text}");
    }
    let out = folder.path("load");
    binderperf(&["workload", "from", &file, "-o", &out]).ended(0).printed_nothing();
    assert_eq!(crate::support::contents(&out), text);
    binderperf(&["workload", "from", &file, "--calls", "3"])
        .ended(0)
        .printed("47 calls that were more than asked for");
    binderperf(&["workload", "from", &file, "--half", "first"])
        .ended(0)
        .printed("25 calls that came at another time");
}

#[test]
fn figures_and_distances_are_those_of_the_traces() {
    let folder = Folder::new("workload-distance");
    let file = |name: &str, works_us| folder.write(name, trace(200, works_us));
    let (one, alike, slower) = (file("one.txt", 100), file("alike.txt", 103), file("slower.txt", 310));
    let json = binderperf(&["workload", "figures", &one, "--json"]).ended(0).json();
    let all = &json["figures"][0];
    assert_eq!((all["calls"].as_u64(), all["most_at_once"].as_u64()), (Some(200), Some(1)));
    assert!(all["switches"].is_null(), "{all}");
    binderperf(&["workload", "figures", &one]).ended(0).printed("p1 -> p2").printed("200");
    let distance = |words: &[&str]| binderperf(&[&["workload", "distance"], words].concat());
    distance(&[&one, &alike, "--within", "1.2"]).ended(0).printed("latency, distribution").printed("halves");
    distance(&[&one, &slower, "--within", "1.5"]).ended(1).complained("further than 1.5: latency p50");
    distance(&[&one, &slower]).ended(0).printed("no sched_switch");
    let json = distance(&[&one, &slower, "--json"]).ended(0).json();
    let row = json["scopes"][0]["rows"]
        .as_array()
        .and_then(|rows| rows.iter().find(|row| row["figure"] == "service p50"));
    let factor = row.and_then(|row| row["factor"].as_f64()).expect("a factor");
    assert!((2.9..3.2).contains(&factor), "{factor}");
    distance(&[&one, &alike, "--half", "second", "--within", "1.2"])
        .ended(1)
        .complained("further than 1.2: calls");
}

#[test]
fn a_recorded_trace_of_either_driver_is_described() {
    for name in ["perfetto/c-both.pftrace", "perfetto/rust-both.pftrace", "binder-c.txt"] {
        binderperf(&["workload", "from", &fixture(name)])
            .ended(0)
            .printed("binderperf workload 1\n# Made of a trace");
        binderperf(&["workload", "figures", &fixture(name)]).ended(0).printed("p2 -> p1");
    }
}

#[test]
fn what_cannot_be_described_is_refused_with_the_reason() {
    let folder = Folder::new("workload-refused");
    let (some, text) = (folder.write("some.txt", trace(3, 10)), folder.write("text", "no trace\n"));
    let cut = trace(1, 10).lines().take(5).collect::<Vec<_>>().join("\n");
    let cut = folder.write("cut.txt", cut);
    refused(
        binderperf,
        &[
            (&["workload", "from", "/no/such/file"], "/no/such/file: "),
            (&["workload", "from", &text], "none of its first lines is an event"),
            (&["workload", "from", &cut], "no call of this trace is whole"),
            (
                &["workload", "from", &some, "--from", "100"],
                "none of them is among those that were asked for",
            ),
            (&["workload", "from", &some, "--from", "soon"], "no number of seconds"),
            (&["workload", "from", &some, "--processes", "10001"], "10001 is not in 1..=10000"),
            (&["workload", "distance", &some, &cut], "no call of this trace is whole"),
            (&["workload", "distance", &some, &some, "--within", "0.5"], "no factor from 1"),
            (&["workload", "distance", &some], "<REPLAY>"),
        ],
    );
    binderperf(&["workload", "from", &some, "-o", "/no/such/folder/out"])
        .ended(4)
        .complained("/no/such/folder/out");
}
