//! Small inputs after public reports, each with what must be said of it.
//! Not here: the rules behind the answers (the modules' own tests).

use std::fs::File;
use std::io::{self, Cursor};
use std::path::Path;

use explain::{DriverSource, Explainer, Finding, Grade, Kind, Report};

fn no_scratch() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Explains files of this repository.
fn explained(paths: &[&str]) -> Report {
    let mut explainer = Explainer::new();
    for path in paths {
        let file = File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path);
        let name = path.rsplit('/').next().expect("a name");
        explainer.read(name, file, &mut no_scratch).expect(path);
    }
    explainer.explain(None)
}

/// Explains a text.
fn of_text(text: &str) -> Report {
    let mut explainer = Explainer::new();
    explainer.read("input", Cursor::new(text.as_bytes()), &mut no_scratch).expect("it says something");
    explainer.explain(None)
}

/// The finding that has all these words.
fn with<'r>(report: &'r Report, words: &[&str]) -> &'r Finding {
    let has = |finding: &&Finding| words.iter().all(|word| finding.to_string().contains(word));
    report.findings.iter().find(has).unwrap_or_else(|| panic!("no finding with {words:?} in:\n{report}"))
}

#[test]
fn each_line_of_a_kernels_log_is_said_in_words() {
    let report = explained(&["fixtures/dmesg.txt"]);
    let manager =
        with(&report, &["call from 4120:4120", "PING", "BR_DEAD_REPLY, EINVAL; 29189/-22", "dmesg.txt:2"]);
    assert_eq!((manager.contract.as_slice(), manager.grade), (&["TX-07"][..], Grade::Warning));
    assert!(manager.why[0].contains("handle 0 has no context manager"), "{manager}");
    let full =
        with(&report, &["844:1535 to process 5591", "87,696 B", "ENOSPC; 29201/-28", "no gap of 87,696 B"]);
    assert_eq!((full.grade, full.pids[0], full.evidence.len()), (Grade::Bad, 5591, 2));
    assert_eq!(full.contract, ["BUF-04"], "not the oneway half: {full}");
    let oneway = with(&report, &["process 6019 has no space left for oneway calls", "1,368 B"]);
    assert_eq!((oneway.kind, oneway.contract.as_slice()), (Kind::BufferSpace, &["OW-06"][..]));
    let frozen = with(&report, &["from 3556:3556", "BR_FROZEN_REPLY, 29202/0", "is frozen"]);
    assert_eq!((frozen.kind, frozen.contract.as_slice()), (Kind::Frozen, &["FRZ-01", "TX-22"][..]));
    with(&report, &["transaction was dropped undelivered", "its process died", "74227"]);
    with(&report, &["process 64345 has no mapping"]);
    assert_eq!(report.findings.len(), 6, "{report}");
}

#[test]
fn of_two_lines_before_a_refusal_the_one_that_says_why_counts() {
    let log = "[1.0] binder: 71:71 got transaction to invalid handle, 4000\n\
               [1.0] binder: 71:71 cannot find target node\n\
               [1.0] binder: 71:71 transaction call to 0:0 failed 9/29201/-22, code 1 size 0-0 line 3253\n";
    // The same refusal in the driver's own log, before and behind the kernel's.
    let entry =
        "9: call  from 71:71 to 0:0 context binder node 0 handle 4000 size 0:0 ret 29201/-22 l=3253\n";
    for text in [log.to_owned(), format!("{entry}{log}"), format!("{log}{entry}")] {
        let report = of_text(&text);
        let [refused] = report.findings.as_slice() else { panic!("{report}") };
        assert_eq!(refused.contract, ["TX-08"], "{report}");
        assert!(!refused.when.contains("2 times"), "{report}");
    }
}

#[test]
fn circles_that_came_back_into_the_waiting_thread_are_not_taken_for_a_binder_deadlock() {
    let report = explained(&["fixtures/transactions_deadlock.txt"]);
    let [circles] = report.findings.as_slice() else { panic!("{report}") };
    assert_eq!((circles.grade, circles.kind), (Grade::Bad, Kind::Deadlock));
    for words in [
        "2 circles",
        "800:800 -> 808:815 -> 800:800",
        "808:808 -> 800:807 -> 808:808",
        "all for over 61.2 s",
        "which the driver permits",
        "most likely each thread holds a lock",
    ] {
        assert!(circles.to_string().contains(words), "{words}: {circles}");
    }
    assert_eq!(circles.pids, [800, 808]);
    assert_eq!(circles.evidence.len(), 4, "{circles}");
}

#[test]
fn threads_that_take_no_work_while_they_wait_are_a_deadlock() {
    // Each pool's only thread waits for the other pool.
    let call = |from: &str, to: &str| {
        format!(
            "transaction 7{from}: 0 from {from}:{from} to {to}:0 code 1 flags 10 pri 0:120 a0 r0 elapsed 5000ms"
        )
    };
    let proc = |own: &str, other: &str| {
        format!(
            "proc {own}\ncontext binder\n  thread {own}: l 12 need_return 0 tr 0\n    outgoing {}\n  pending {} node 3 size 4:0 offset 0\n",
            call(own, other),
            call(other, own)
        )
    };
    let text = format!("binder state:\n{}{}", proc("10", "20"), proc("20", "10"));
    let report = of_text(&text);
    let deadlock = with(&report, &["deadlock: 2 threads wait for each other: 10:10 -> 20:20 -> 10:10"]);
    assert_eq!((deadlock.grade, deadlock.pids.as_slice()), (Grade::Bad, &[10, 20][..]));
    // A second thread of one pool is free: it will take the call.
    let free = text.replace(
        "  pending transaction 720",
        "  thread 11: l 11 need_return 0 tr 0\n  pending transaction 720",
    );
    assert!(
        free != text && !of_text(&free).findings.iter().any(|finding| finding.kind == Kind::Deadlock),
        "{}",
        of_text(&free)
    );
    // Calls of this moment are no deadlock yet.
    let young = of_text(&text.replace("5000ms", "3ms"));
    assert_eq!(with(&young, &["perhaps a deadlock", "look again"]).grade, Grade::Note);
}

#[test]
fn a_pool_at_its_limit_and_a_full_half_are_found_in_the_stats() {
    let report = explained(&["../doctor/src/tests/field/snap2/sys/kernel/debug/binder/stats"]);
    let pool =
        with(&report, &["process 4271 has no free binder thread", "15 of 15 are started", "9 calls wait"]);
    assert_eq!((pool.kind, pool.grade), (Kind::StarvedPool, Grade::Warning));
    let half = with(&report, &["process 6019 has 2,024 B left for oneway calls", "is not in these stats"]);
    assert_eq!((half.kind, half.grade), (Kind::BufferSpace, Grade::Warning));
    assert_eq!(report.findings.len(), 2, "{report}");
}

#[test]
fn a_process_without_an_area_has_no_full_half() {
    let stats = |buffers: &str, pages: &str| {
        format!(
            "binder stats:\nproc 7\ncontext binder\n  threads: 1\n  free async space 0\n  buffers: {buffers}\n{pages}\
             proc 8\ncontext binder\n  threads: 1\n  free async space 520192\n  buffers: 0\n  pages: 0:2:252\n"
        )
    };
    for (buffers, pages) in [("0", "  pages: 0:0:0\n"), ("0", "")] {
        let report = of_text(&stats(buffers, pages));
        assert!(report.findings.is_empty(), "{report}");
    }
    // Another open device of the same process has one.
    let other =
        "proc 7\ncontext binder\n  threads: 1\n  free async space 520192\n  buffers: 0\n  pages: 0:2:252\n";
    for text in [
        stats("0", "  pages: 0:0:0\n") + other,
        format!("binder stats:\n{other}") + &stats("0", "  pages: 0:0:0\n")[14..],
    ] {
        let report = of_text(&text);
        assert!(report.findings.is_empty(), "{report}");
    }
    with(&of_text(&stats("9", "")), &["process 7 has 0 B left for oneway calls"]);
    with(&of_text(&stats("9", "  pages: 2:0:252\n")), &["process 7 has 0 B left", "of 520,192 B"]);
}

#[test]
fn a_trace_says_which_calls_failed_and_which_nobody_answered() {
    let failed = explained(&["../trace/fixtures/cases/failed.txt"]);
    assert_eq!(failed.findings.len(), 3, "{failed}");
    assert_eq!(with(&failed, &["BR_FAILED_REPLY", "client 100", "at 10.0000"]).grade, Grade::Bad);
    assert_eq!(with(&failed, &["BR_DEAD_REPLY", "Binder:200_1 201"]).pids, [200, 100]);
    assert_eq!(with(&failed, &["BR_FROZEN_REPLY"]).kind, Kind::Frozen);
    let hang = explained(&["../trace/fixtures/cases/hang.txt"]);
    let call = with(&hang, &["IFoo.bar", "unanswered after 8.00 s", "monitor held by worker 210"]);
    assert_eq!((call.kind, call.grade), (Kind::Wait, Grade::Bad));
}

#[test]
fn a_call_that_waited_for_a_busy_servers_only_thread_is_a_warning() {
    let report = explained(&["../trace/fixtures/cases/starved.txt"]);
    let pool =
        with(&report, &["all binder threads of", "200", "a call waited, up to 800 ms", "busy with call 1"]);
    assert_eq!(
        (pool.kind, pool.grade, pool.pids.as_slice()),
        (Kind::StarvedPool, Grade::Warning, &[200][..])
    );
    assert_eq!(report.findings.len(), 1, "{report}");
}

#[test]
fn the_source_says_which_check_failed() {
    let log = "[1.0] binder: 5:6 transaction call to 7:0 failed 9/29201/-22, code 3 size 88-8 line 4\n";
    let mut explainer = Explainer::new();
    explainer.read_lines("log", log.as_bytes()).expect("memory");
    let without = explainer.explain(None);
    assert!(without.findings[0].why[0].contains("one of these checks"), "{without}");
    assert!(without.to_string().contains("--source"), "{without}");
    let source = DriverSource::new(
        "binder.c",
        "static void carry(int a)\n{\n\tif (a > limit) {\n\t\tline = __LINE__;\n\t}\n}\n",
    );
    let text = explainer.explain(Some(&source)).to_string();
    assert!(text.contains("line 4 of binder.c, in carry: refused because `a > limit` held"), "{text}");
}
