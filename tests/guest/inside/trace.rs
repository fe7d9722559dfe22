//! Recording a kernel's own binder events.
//! Not here: what can be recorded on this machine (`trace_record` of `tests/cli`).

use std::fs::File;

use crate::support::{Folder, binderperf, contents, ends_with_the_miss, stopped_at};
use trace::event::{Binder, Flavour, Kind};
use trace::file::Container;

#[test]
#[ignore = "for the guest of `session`"]
fn binders_events_are_recorded_while_a_test_runs() {
    const ITERATIONS: u64 = 50;
    let folder = Folder::new("guest-trace");
    let trace = folder.path("t.trace");
    let test = ["schd-dbg", "-i", "50", "-pair", "1", "--no-scenes"];
    let record = ["trace", "record", "-o", &trace, "binder_driver", "--"];
    let called = binderperf(&[&record[..], &test].concat());
    assert!(called.stderr.contains("t.trace: "), "status {:?}: {}", called.code, called.stderr);
    let recording = Container::open(File::open(&trace).expect("a file")).expect("a recording");
    assert!(recording.report().is_whole(), "{:?}", recording.report());
    let has = |event: &str| {
        let name = format!("name: {event}\n");
        let formats: Vec<_> = recording.formats().collect();
        formats.iter().any(|(group, text)| *group == "binder" && text.starts_with(name.as_bytes()))
    };
    assert!(has("binder_transaction") && has("binder_transaction_received"));
    // Each of two calls is sent, and received, and so is its reply.
    let file = File::open(&trace).expect("as before");
    let (mut sent, mut received) = (0, 0);
    for event in trace::open(file).expect("a recording") {
        match event.kind {
            Kind::Binder(Flavour::C, Binder::Transaction(_)) => sent += 1,
            Kind::Binder(Flavour::C, Binder::Received { .. }) => received += 1,
            _ => {}
        }
    }
    assert!(sent >= ITERATIONS * 2 * 2 && received >= ITERATIONS * 2 * 2, "{sent} sent, {received} received");
    let told = binderperf(&["trace", "info", &trace]).stdout;
    assert!(told.contains(&format!("{sent} binder_transaction\n")), "{told}");
}

/// The documented session on the kernel's driver.
#[test]
#[ignore = "for the guest of `session`"]
fn the_documented_session_names_the_missed_call() {
    let run = |words: &str| binderperf(&words.split(' ').collect::<Vec<_>>());
    let called = run("atrace --async_start -b 8000 -c sched idle workq binder_driver sync freq");
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "capturing trace..."), "{}", called.stderr);
    let ours = "libhwbinder_latency --aosp-compat=off -trace -i 50000 -pair 3";
    let test = |deadline: &str| run(&format!("{ours} -deadline_us {deadline}"));
    let called = run("libhwbinder_latency -deadline_us 60000000 -trace -i 20 -pair 3 --no-scenes");
    assert!(!called.stderr.contains("deadline triggered"), "{}", called.stderr);
    let called = test("100").ended(1);
    let log = "/sys/kernel/tracing/trace";
    called.complained(format!("deadline triggered: halt & stop trace\nlog:{log}\n"));
    let switch = contents("/sys/kernel/tracing/tracing_on");
    assert_eq!(switch.trim(), "0");
    let (named, words) = stopped_at(&called.stdout);
    let why = run(&format!("trace analyze {log}")).ended(1);
    let is_it = |line: &str| line.starts_with("- MISS ") && line.contains(&format!("{named}: call "));
    assert!(why.stdout.lines().any(is_it), "{named}: {}", why.stdout);
    let recorded = contents(log);
    ends_with_the_miss(&recorded, &words);
    for name in ["client 0", "fifo-caller 0", "HwBinder:"] {
        assert!(recorded.contains(&format!("next_comm={name}")), "nobody in the trace is called {name}");
    }
    assert_eq!(run("atrace --async_stop -o /dev/null").code, Some(0));
}
