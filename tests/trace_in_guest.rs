//! Room: recording a kernel's own binder events, in a guest that this test boots.
//! Not here: what can be recorded on this machine (`trace_record`).

mod support;

use std::fs::File;

use support::{Folder, binderperf, call, ends_with_the_miss, stopped_at};
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

/// The documented session on the kernel's driver: this very program is what runs in the guest, where process 1 is the
/// one that it calls.
#[test]
fn the_documented_session_names_the_missed_call() {
    let this = std::env::current_exe().expect("a test is a program");
    let this = this.to_str().expect("UTF-8");
    let inside = [this, "the_session_itself", "--exact", "--ignored", "--nocapture"];
    let called = binderperf(&[&["vm", "--exec"], &inside[..]].concat());
    assert_eq!(called.code, Some(0), "{}\n{}", called.stdout, called.stderr);
    assert!(called.stdout.contains("the call that missed was named"), "{}", called.stdout);
}

#[test]
#[ignore = "it is for the guest that the test above boots"]
fn the_session_itself() {
    let run = |words: &str| call("/proc/1/exe", &words.split(' ').collect::<Vec<_>>(), &[]);
    let called = run("atrace --async_start -b 8000 -c sched idle workq binder_driver sync freq");
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "capturing trace..."), "{}", called.stderr);
    let test =
        |deadline: &str| run(&format!("libhwbinder_latency -deadline_us {deadline} -trace -i 50000 -pair 3"));
    let called = run("libhwbinder_latency -deadline_us 60000000 -trace -i 20 -pair 3 --no-scenes");
    assert!(!called.stderr.contains("deadline triggered"), "{}", called.stderr);
    let called = test("100");
    assert_eq!(called.code, Some(1), "{}", called.stderr);
    let log = "/sys/kernel/tracing/trace";
    assert!(
        called.stderr.contains(&format!("deadline triggered: halt & stop trace\nlog:{log}\n")),
        "{}",
        called.stderr
    );
    let switch = std::fs::read_to_string("/sys/kernel/tracing/tracing_on").expect("tracefs");
    assert_eq!(switch.trim(), "0");
    let (named, words) = stopped_at(&called.stdout);
    let why = run(&format!("trace analyze {log}"));
    assert_eq!(why.code, Some(1), "{}", why.stderr);
    let is_it = |line: &str| line.starts_with("- MISS ") && line.contains(&format!("{named}: call "));
    assert!(why.stdout.lines().any(is_it), "{named}: {}", why.stdout);
    ends_with_the_miss(&std::fs::read_to_string(log).expect("tracefs"), &words);
    assert_eq!(run("atrace --async_stop -o /dev/null").code, Some(0));
    println!("{}\nthe call that missed was named", why.stdout);
}
