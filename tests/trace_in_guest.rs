//! Room: recording a kernel's own binder events, in a guest that this test boots.
//! Not here: what can be recorded on this machine (`trace_record`).

mod support;

use std::fs::File;

use support::{Folder, binderperf};
use trace::event::{Binder, Flavour, Kind};
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
    // Each of two calls is sent, and received, and so is its reply.
    let file = File::open(format!("{out}/t.trace")).expect("as before");
    let (mut sent, mut received) = (0, 0);
    for event in trace::open(file).expect("a recording") {
        match event.kind {
            Kind::Binder(Flavour::C, Binder::Transaction(_)) => sent += 1,
            Kind::Binder(Flavour::C, Binder::Received { .. }) => received += 1,
            _ => {}
        }
    }
    assert!(sent >= ITERATIONS * 2 * 2 && received >= ITERATIONS * 2 * 2, "{sent} sent, {received} received");
    let told = binderperf(&["trace", "info", &format!("{out}/t.trace")]).stdout;
    assert!(told.contains(&format!("{sent} binder_transaction\n")), "{told}");
}
