//! `binderperf explain` as its users meet it. Not here: what is found in which input (crate `explain`).

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use crate::support::{BINARY, Folder, binderperf, end, signal, start, wait_until};

const LOG: &str = "[1.0] binder: 5:6 transaction call to 7:0 failed 9/29201/-28, code 3 size 88-0 line 4\n\
                   [2.0] binder: 5:6 transaction call to 8:0 failed 10/29202/0, code 3 size 88-0 line 9\n";

#[test]
fn files_are_explained_and_the_grade_decides_the_status() {
    let folder = Folder::new("explain");
    let log = folder.path("dmesg.txt");
    fs::write(&log, LOG).expect("written");
    binderperf(&["explain", &log]).ended(1).printed("ENOSPC; 29201/-28").printed("dmesg.txt:1");
    binderperf(&["explain", &log, "--fail-on", "never"]).ended(0).printed("BUF-04");
    let frozen = folder.path("frozen.txt");
    fs::write(&frozen, LOG.lines().last().expect("a line")).expect("written");
    binderperf(&["explain", &frozen]).ended(0).printed("is frozen");
    binderperf(&["explain", &frozen, "--fail-on", "warning"]).ended(1);
    let called = binderperf(&["explain", &log, "--format", "json"]).ended(1);
    let answer: serde_json::Value = serde_json::from_str(&called.stdout).expect("JSON");
    assert_eq!(answer["findings"][0]["grade"], "bad");
    assert_eq!(answer["findings"][0]["pids"], serde_json::json!([7, 5]));
}

#[test]
fn an_input_that_says_nothing_is_refused_and_another_beside_it_is_used() {
    let folder = Folder::new("explain-bad");
    let (text, junk, empty) = (folder.path("text"), folder.path("junk"), folder.path("empty"));
    fs::write(&text, "hello\n").expect("written");
    fs::write(&junk, [0_u8, 1, 2, 255].repeat(1000)).expect("written");
    fs::write(&empty, "").expect("written");
    for (path, why) in
        [(&text, "none of its lines is about Binder"), (&junk, "it is binary"), (&empty, "it is empty")]
    {
        binderperf(&["explain", path]).ended(2).complained(why).printed_nothing();
    }
    binderperf(&["explain", &folder.path("none")]).ended(2).complained("ENOENT");
    let log = folder.path("dmesg.txt");
    fs::write(&log, LOG).expect("written");
    binderperf(&["explain", &junk, &log]).ended(1).printed("not used: ").printed("29201/-28");
}

#[test]
fn standard_input_and_a_folder_of_a_machines_files_are_read() {
    let mut child = Command::new(BINARY)
        .args(["explain", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("a pipe").write_all(LOG.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(1) && text.contains("standard input:1: "), "{text}");
    let snapshot = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/doctor/src/tests/field/snap2");
    binderperf(&["explain", snapshot]).ended(0).printed("process 4271 has no free binder thread");
}

#[test]
fn without_a_driver_to_look_at_live_says_so() {
    let folder = Folder::new("explain-live");
    binderperf(&["explain", "--live", "--context-dir", &folder.path("none")])
        .ended(3)
        .complained("nobody uses the embedded driver in ");
    binderperf(&["explain"]).ended(2);
    binderperf(&["explain", "--watch", "1", "x"]).ended(2);
}

#[test]
fn a_busy_system_without_faults_gives_no_bad_finding() {
    let folder = Folder::new("explain-busy");
    let context = folder.path("context");
    // Processes are killed and paused.
    let words = ["chaos", "--driver=embedded", "--seconds=600", "--context-dir", &context];
    let chaos = start(&words);
    let mut looks = 0;
    wait_until("three looks at a busy system", || {
        let called = binderperf(&["explain", "--live", "--context-dir", &context]);
        // Before it has begun there is no broker.
        if called.stderr.is_empty() {
            looks += u32::from(called.ended(0).stdout.contains("lines of the driver's state"));
        }
        looks == 3
    });
    let mut watch = start(&["explain", "--live", "--watch=1", "--format=json", "--context-dir", &context]);
    // Calls of processes that were killed have failed.
    let mut line = String::new();
    let output = watch.stdout.as_mut().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("a finding");
    let finding: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(finding["grade"], "warning", "{line}");
    signal(watch.id(), "INT");
    end(watch).ended(0);
    signal(chaos.id(), "INT");
    end(chaos).printed("nothing had failed until then");
}

#[test]
fn a_page_and_a_record_of_reports_over_netlink() {
    let folder = Folder::new("explain-page");
    let record = folder.path("reports.jsonl");
    let line = r#"{"name":"report","msg":{"error":29201,"context":"binder","from-pid":41,"from-tid":42,"to-pid":7,"is-reply":false,"flags":17,"code":3,"data-size":100}}"#;
    fs::write(&record, format!("{line}\n")).expect("written");
    let page = folder.path("page.html");
    binderperf(&["explain", &record, "--html", &page])
        .ended(1)
        .printed("refused a oneway call from 41:42 to process 7, code 3: BR_FAILED_REPLY")
        .printed("has no errno");
    let html = fs::read_to_string(&page).expect("a page");
    assert!(html.contains("refused a oneway call from 41:42") && html.contains("</html>"), "{html}");
    // The log of the same refusal says more.
    let log = folder.path("dmesg.txt");
    let text = "[1.0] binder: 41:42 transaction async to 7:0 failed 9/29201/-28, code 3 size 100-0 line 4\n";
    fs::write(&log, text).expect("written");
    let called = binderperf(&["explain", &record, &log]).ended(1);
    called.printed("ENOSPC");
    assert!(!called.stdout.contains("2. "), "{}", called.stdout);
    let called = binderperf(&["explain", &log, "--source", "debian:new"]);
    called.ended(2).complained("a version is as in debian:7.2");
}

#[test]
fn a_report_has_the_calls_of_its_recordings_that_failed() {
    let folder = Folder::new("explain-report");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let copy = |from: &str, to: &str| fs::copy(format!("{root}{from}"), folder.path(to)).expect(from);
    copy("tests/golden/latency.json", "latency.json");
    let page = folder.path("page.html");
    let of = |words: &str| {
        binderperf(&["report", &folder.path(""), "-o", &page]).ended(0);
        fs::read_to_string(&page).expect("a page").contains(words)
    };
    let title = "Calls that failed or were not answered";
    assert!(!of(title));
    copy("crates/trace/fixtures/cases/failed.txt", "trace.bptrace");
    assert!(of(title) && of("BR_FAILED_REPLY"));
}
