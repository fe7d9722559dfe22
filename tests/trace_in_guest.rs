//! Room: recording a kernel's own binder events, in a guest that this test boots.
//! Not here: what can be recorded on this machine (`trace_record`).

mod support;

use std::fs::File;

use support::{Folder, binderperf};
use trace::file::Container;

#[test]
fn binders_events_are_recorded_while_a_test_runs() {
    const ITERATIONS: u64 = 50;
    let folder = Folder::new("guest-trace");
    let out = folder.path("out");
    let test = ["schd-dbg", "-i", "50", "-pair", "1", "--no-scenes", "--record=r.json"];
    let record = ["vm", "--out", &out, "--", "trace", "record", "-o", "t.trace", "binder_driver", "--"];
    let called = binderperf(&[&record[..], &test].concat());
    assert!(called.stderr.contains("t.trace: "), "status {:?}: {}", called.code, called.stderr);
    let trace =
        Container::open(File::open(format!("{out}/t.trace")).expect("it comes back")).expect("a recording");
    assert!(trace.report().is_whole(), "{:?}", trace.report());
    let has = |event: &str| {
        let name = format!("name: {event}\n");
        let formats: Vec<_> = trace.formats().collect();
        formats.iter().any(|(group, text)| *group == "binder" && text.starts_with(name.as_bytes()))
    };
    assert!(has("binder_transaction") && has("binder_transaction_received"));
    // Only binder's events were on. Each of two calls is sent, and received, and so is its reply.
    let before = called.stderr.split(" events, ").next().expect("text").rsplit(' ').next();
    let events: u64 = before.and_then(|number| number.parse().ok()).expect("a count");
    assert!(events >= ITERATIONS * 2 * 4, "{events}: {}", called.stderr);
}
