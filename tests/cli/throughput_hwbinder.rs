//! The hwbinder throughput test by both its names, on the embedded driver and without any.
//! Not here: the same on a real driver (`guest::throughput`), what all throughput tests share
//! (`throughput`).

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{BINARY, Called, Folder, binderperf, call, read, recorded, throughput};
use record::{Outcome, Run};

const FEW: &str = "--benchmark_min_time=50x";

/// `throughput hwbinder` on the embedded driver.
fn embedded(words: &[&str]) -> Called {
    let fixed = ["throughput", "hwbinder", "--driver=embedded", FEW];
    binderperf(&[&fixed, words].concat())
}

fn failure<'r>(run: &'r Run, case: &str) -> &'r str {
    match &run.case(case).expect(case).repetitions[0].outcome {
        Outcome::Failed { reason, .. } => reason,
        other => panic!("{case} did not fail: {other:?}"),
    }
}

fn names(called: &Called) -> Vec<String> {
    let json: serde_json::Value = serde_json::from_str(&called.stdout).expect("stdout is JSON");
    let rows = json["benchmarks"].as_array().expect("rows");
    rows.iter().filter_map(|row| row["name"].as_str()).map(str::to_owned).collect()
}

#[test]
fn all_fifteen_payloads_go_there_and_back() {
    let (called, run) = recorded(0, embedded, &["--controls=raw", "--benchmark_format=json"]);
    let payloads: Vec<u64> = run
        .cases
        .iter()
        .filter(|case| case.family == "BM_sendVec_binderize" && case.measurements().count() == 1)
        .map(|case| case.payload_bytes)
        .collect();
    assert_eq!(payloads, (2..=16).map(|power| 1 << power).collect::<Vec<u64>>());
    assert_eq!(run.plan.test, "throughput hwbinder");
    assert!(run.driver.is_some_and(|driver| driver.details().contains("hwbinder")), "its own context");
    assert!(called.stdout.contains("x_raw"), "bare exchanges took place in the same context");
}

#[test]
fn android_s_name_takes_its_flag() {
    let folder = Folder::new("hw-applet");
    let link = folder.path("libhwbinder_benchmark");
    std::os::unix::fs::symlink(BINARY, &link).expect("a link");
    let json = "--benchmark_format=json";
    let filter = "--benchmark_filter=/(4|1024)$";
    for (words, family) in [
        (&[][..], "binderize"),
        (&["-m", "BINDERIZE"], "binderize"),
        (&["-m", "PASSTHROUGH"], "passthrough"),
        (&["-mPASSTHROUGH"], "passthrough"),
    ] {
        let words = [words, &[json, filter, FEW]].concat();
        let called = call(&link, &words, &[("BINDERPERF_DRIVER", "embedded")]).ended(0);
        let want = [4, 1024].map(|payload| format!("BM_sendVec_{family}/{payload}"));
        assert_eq!(names(&called), want, "{words:?}: no controls unless asked");
        let by_word = binderperf(
            &[&["applet", "libhwbinder_benchmark", "--benchmark_list_tests"], &words[..]].concat(),
        );
        assert_eq!(names(&by_word), want, "{words:?}");
    }
}

#[test]
fn without_ipc_no_driver_is_needed() {
    let called = binderperf(&[
        "throughput",
        "hwbinder",
        "--driver=kernel",
        "--device=/dev/no-such-device",
        "-m",
        "PASSTHROUGH",
        "--controls=memcpy,parcel,hwparcel",
        "--benchmark_filter=/(4|65536)$",
        FEW,
        "--benchmark_format=json",
    ])
    .ended(0);
    let families = ["memcpy", "parcel", "hwparcel", "passthrough"];
    let want: Vec<String> = families
        .iter()
        .flat_map(|family| [4, 65536].map(|payload| format!("BM_sendVec_{family}/{payload}")))
        .collect();
    assert_eq!(names(&called), want);
}

#[test]
fn a_service_that_breaks_fails_its_case_only() {
    let folder = Folder::new("hw-faults");
    let record = folder.path("r.json");
    let fault = |kind: &str, payload: u32| format!("--fault={kind}=BM_sendVec_binderize/{payload}");
    embedded(&[
        "--controls=none",
        "--benchmark_filter=/(4|8|16|32|64)$",
        "--patience=2",
        &fault("kill-server", 8),
        &fault("corrupt-reply", 16),
        &fault("hang-server", 32),
        &format!("--record={record}"),
    ])
    .ended(1);
    let run = read(&record);
    assert!(run.complete, "every case was tried");
    let killed = failure(&run, "BM_sendVec_binderize/8");
    assert!(killed.contains("SIGABRT") && killed.contains("BR_DEAD_REPLY"), "{killed}");
    let corrupt = failure(&run, "BM_sendVec_binderize/16");
    assert!(corrupt.contains("byte 15"), "{corrupt}");
    assert!(failure(&run, "BM_sendVec_binderize/32").contains("in 2 s"));
    for payload in [4, 64] {
        let case = run.case(&format!("BM_sendVec_binderize/{payload}")).expect("planned");
        assert_eq!(case.measurements().map(|measured| measured.iterations).sum::<u64>(), 50);
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (words, says) in [
        (&["-m"][..], "-m"),
        (&["-m", "passthrough"], "BINDERIZE, PASSTHROUGH"),
        (&["-m", "BOTH"], "BINDERIZE, PASSTHROUGH"),
        (&["--android=12"], "--android"),
        (&["-m", "PASSTHROUGH", "--service=x"], "--service"),
        (&["--service=x", "--device=private"], "--device"),
        (&["--controls=none", "--max=x_pipe=3"], "--controls pipe"),
    ] {
        embedded(words).ended(2).complained(says).printed_nothing();
    }
    let binder = throughput(&["-m", "PASSTHROUGH"]).ended(2);
    binder.complained("throughput binder");
    binderperf(&["throughput", "all", "--device=/dev/binder"]).ended(2).complained("a context of its own");
}

#[test]
fn what_is_not_there_is_named() {
    binderperf(&["throughput", "hwbinder", "--device=/dev/no-such-device"])
        .ended(3)
        .complained("/dev/no-such-device");
    let folder = Folder::new("hw-nobody");
    let nobody =
        embedded(&["--service=nobody", &format!("--context-dir={}", folder.path("context"))]).ended(3);
    let says = "no service manager (of hwbinder: hwservicemanager) came to this context within ";
    assert!(nobody.stderr.contains(says), "nobody manages that context: {}", nobody.stderr);
}

#[test]
fn flavours_are_compared_in_one_run() {
    let folder = Folder::new("flavours");
    let record = folder.path("r.json");
    let compare = |words: &[&str]| {
        binderperf(&[&["throughput", "compare-flavours", "--driver=embedded"][..], words].concat())
    };
    let called =
        compare(&["-s", "65536,4,4", "--rounds=2", "-i", "20", &format!("--record={record}")]).ended(0);
    let run = read(&record);
    assert_eq!((run.cases.len(), run.plan.random_interleaving), (24, true), "12 ways at 2 payloads");
    for case in &run.cases {
        let skipped = |outcome: &Outcome| matches!(outcome, Outcome::Skipped { .. });
        let spins_alone = case.family == "BM_sendVec_spin" && skipped(&case.repetitions[0].outcome);
        assert!(case.measurements().count() == 2 || spins_alone, "{}", case.name);
    }
    for says in [
        "hwbinder/binder",
        "driver*",
        "copy*/memcpy",
        "* is a difference of two medians",
        "Waking each other",
    ] {
        called.printed(says);
    }
    let limits = called.stdout.lines().filter(|line| line.ends_with(": met") || line.ends_with(": MISSED"));
    assert_eq!(limits.count(), 2, "{}", called.stdout);
    assert_eq!(binderperf(&["show", &record]).stdout, called.stdout, "the table is a view of the record");
    for (words, says) in [
        (&["-s", "2000000"][..], "the limit is 517632 B"),
        (&["-s", "-4"], "-4"),
        (&["--rounds=0"], "rounds"),
        (&["--device=hwbinder"], "a context of its own"),
    ] {
        compare(words).ended(2).complained(says);
    }
    let extremes =
        compare(&["-s", "0,517632", "--rounds=2", "-i", "20", &format!("--record={record}")]).ended(0);
    assert!(!extremes.stdout.contains("Waking each other costs  "), "{}", extremes.stdout);
    for case in &read(&record).cases {
        // A socket may not take the large one either, and spinning needs two CPUs.
        let may_be_left_out = ["BM_sendVec_unix", "BM_sendVec_spin"].contains(&&*case.family);
        let left_out = case.measurements().count() == 0;
        assert!(may_be_left_out || left_out == (case.name == "BM_sendVec_pipe/0"), "{}", case.name);
    }
    let fault = "--fault=kill-server=BM_sendVec_binderize/4";
    let broken = compare(&["-s", "4", "--rounds=1", "-i", "20", fault]).ended(1);
    assert!(broken.stdout.contains("SIGABRT"), "a case that broke is told: {}", broken.stdout);
}

/// A run goes on beside the ones that look for services.
#[test]
fn others_services_are_waited_for_by_name() {
    let folder = Folder::new("hw-others");
    let context = format!("--context-dir={}", folder.path("context"));
    let long =
        ["throughput", "hwbinder", "--driver=embedded", "--benchmark_min_time=3600s", "--controls=none"];
    let mut other = Command::new(BINARY)
        .args(long)
        .arg(&context)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let service = format!("--service=binderperf.sendvec.{}", other.id());
    let one = ["--controls=none", "--benchmark_filter=/64$", &context];
    let measured = (0..40).map(|_| embedded(&[&one[..], &[&service]].concat()));
    let measured = measured
        .inspect(|_| std::thread::sleep(Duration::from_millis(50)))
        .find(|called| called.code == Some(0));
    let nobody = embedded(&[&one[..], &["--service=nobody"]].concat());
    other.kill().and_then(|()| other.wait()).expect("it was running");
    assert!(measured.is_some_and(|called| called.stdout.contains("BM_sendVec_binderize/64")));
    assert_eq!(nobody.code, Some(3), "{}", nobody.stderr);
    let says =
        "nobody serves android.hardware.tests.libhwbinder@1.0::IBenchmark/nobody: not registered within ";
    nobody.complained(says);
}
