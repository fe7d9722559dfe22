//! Room: the binder throughput test on a real driver, in guests that these tests boot.
//! Not here: flags, outputs and exit statuses that need no driver (`throughput`).

mod support;

use std::sync::{Mutex, PoisonError};

use record::{CaseKind, ClockUnit, DriverKind, HostClass, Outcome, Run};
use support::{Called, Folder, binderperf, read};

/// Guests boot one after the other: emulated CPUs want real ones.
static ONE_GUEST: Mutex<()> = Mutex::new(());

/// Runs `throughput binder` in a guest; the record that it leaves comes back.
fn in_guest(folder: &Folder, lane: &[&str], words: &[&str]) -> (Called, Run) {
    let _guest = ONE_GUEST.lock().unwrap_or_else(PoisonError::into_inner);
    let out = folder.path("out");
    let command = ["--out", &out, "--", "throughput", "binder", "--record=r.json"];
    let called = binderperf(&[&["vm"], lane, &command[..], words].concat());
    let record = format!("{out}/r.json");
    assert!(std::path::Path::new(&record).exists(), "status {:?}: {}", called.code, called.stderr);
    (called, read(&record))
}

fn failure<'r>(run: &'r Run, case: &str) -> &'r str {
    match &run.case(case).expect(case).repetitions[0].outcome {
        Outcome::Failed { reason, .. } => reason,
        other => panic!("{case} did not fail: {other:?}"),
    }
}

#[test]
fn all_fifteen_cases_beside_their_controls() {
    let folder = Folder::new("guest-all");
    let words = ["--controls=all", "--benchmark_min_time=20x", "--benchmark_format=json"];
    let (called, run) = in_guest(&folder, &["--smp", "2"], &words);
    assert_eq!(called.code, Some(0), "{}", called.stderr);
    assert!(run.complete);
    assert!(matches!(run.host.class, HostClass::Tcg | HostClass::Kvm), "{:?}", run.host.class);
    assert_eq!(run.host.host_name, "guest");
    let driver = run.driver.as_ref().expect("a driver served");
    assert_eq!(driver.protocol_version, 8);
    let tests: Vec<_> = run.cases.iter().filter(|case| case.kind == CaseKind::Test).collect();
    let payloads: Vec<u64> = tests.iter().map(|case| case.payload_bytes).collect();
    assert_eq!(payloads, (2..=16).map(|power| 1 << power).collect::<Vec<u64>>());
    for case in tests {
        let measured = case.measurements().next().unwrap_or_else(|| panic!("{} failed", case.name));
        assert_eq!(measured.iterations, 20, "{}", case.name);
        assert!(measured.real_total > 0 && measured.cpu_total > 0, "{}", case.name);
    }
    let json: serde_json::Value = serde_json::from_str(&called.stdout).expect("stdout is JSON");
    let rows = json["benchmarks"].as_array().expect("rows");
    let binder: Vec<_> = rows
        .iter()
        .filter(|row| row["name"].as_str().is_some_and(|name| name.starts_with("BM_sendVec_binder/")))
        .collect();
    assert_eq!(binder.len(), 15);
    for row in binder {
        for ratio in ["x_pipe", "x_unix", "x_futex", "x_spin", "x_raw"] {
            assert!(row[ratio].as_f64().is_some_and(|value| value > 0.0), "{ratio} in {row}");
        }
    }
}

#[test]
fn a_service_that_breaks_fails_its_case_only() {
    let folder = Folder::new("guest-faults");
    let fault = |kind: &str, payload: u32| format!("--fault={kind}=BM_sendVec_binder/{payload}");
    let words = [
        "--controls=none",
        "--device=binder",
        "--android=12",
        "--benchmark_filter=/(4|8|16|32|64)$",
        "--benchmark_min_time=20x",
        "--patience=3",
        &fault("kill-server", 8),
        &fault("corrupt-reply", 16),
        &fault("hang-server", 32),
    ];
    let (called, run) = in_guest(&folder, &[], &words);
    assert_eq!(called.code, Some(1), "{}", called.stderr);
    assert!(run.complete, "every case was tried");
    assert!(run.driver.as_ref().is_some_and(|driver| driver.opened.starts_with("/dev/")), "{:?}", run.driver);
    let killed = failure(&run, "BM_sendVec_binder/8");
    assert!(killed.contains("SIGABRT") && killed.contains("BR_DEAD_REPLY"), "{killed}");
    assert!(failure(&run, "BM_sendVec_binder/16").contains("byte 15"));
    assert!(failure(&run, "BM_sendVec_binder/32").contains("in 3 s"));
    for payload in [4, 64] {
        let case = run.case(&format!("BM_sendVec_binder/{payload}")).expect("planned");
        assert_eq!(case.measurements().map(|measured| measured.iterations).sum::<u64>(), 20);
    }
}

/// Giving up on a case ends the service manager, too; whether the next case finds it just gone is a
/// matter of moments, so there are several.
#[test]
fn no_case_suffers_from_the_hang_of_the_one_before() {
    let folder = Folder::new("guest-hangs");
    let hang = |payload: u32| format!("--fault=hang-server=BM_sendVec_binder/{payload}");
    let words = [
        "--controls=none",
        "--device=binder",
        "--benchmark_filter=/(4|8|16|32|64|128|256|512)$",
        "--benchmark_min_time=20x",
        "--patience=2",
        &hang(4),
        &hang(16),
        &hang(64),
        &hang(256),
    ];
    let (called, run) = in_guest(&folder, &[], &words);
    assert_eq!(called.code, Some(1), "{}", called.stderr);
    for payload in [8, 32, 128, 512] {
        let case = run.case(&format!("BM_sendVec_binder/{payload}")).expect("planned");
        let iterations = case.measurements().map(|measured| measured.iterations).sum::<u64>();
        assert_eq!(iterations, 20, "{payload}: {}", called.stdout);
    }
}

/// Both flavours on a real driver, each in a context of its own, and without IPC.
#[test]
fn all_three_families() {
    let folder = Folder::new("guest-families");
    let _guest = ONE_GUEST.lock().unwrap_or_else(PoisonError::into_inner);
    let out = folder.path("out");
    let words = ["throughput", "all", "--record=r.json", "--controls=raw", "--benchmark_min_time=20x"];
    let called = binderperf(&[&["vm", "--out", &out, "--"][..], &words].concat());
    assert_eq!(called.code, Some(0), "{}", called.stderr);
    let run = read(&format!("{out}/r.json"));
    for family in ["raw", "binder", "binderize", "passthrough"] {
        let family = format!("BM_sendVec_{family}");
        let of_family = run.cases.iter().filter(|case| case.family == family);
        let measured = of_family.filter(|case| case.measurements().all(|numbers| numbers.iterations == 20));
        assert_eq!(measured.count(), 15, "{family}: {}", called.stdout);
    }
}

/// On the device that Debian's driver makes by itself, with a service manager of ours.
#[test]
fn hwbinder_on_its_own_device_and_its_faults() {
    let folder = Folder::new("guest-hwbinder");
    let _guest = ONE_GUEST.lock().unwrap_or_else(PoisonError::into_inner);
    let out = folder.path("out");
    let fault = |kind: &str, payload: u32| format!("--fault={kind}=BM_sendVec_binderize/{payload}");
    let (killed, corrupt) = (fault("kill-server", 8), fault("corrupt-reply", 65536));
    let words = [
        "throughput",
        "hwbinder",
        "--record=r.json",
        "--controls=none",
        "--device=hwbinder",
        "--benchmark_filter=/(4|8|64|65536)$",
        "--benchmark_min_time=20x",
        &killed,
        &corrupt,
    ];
    let called = binderperf(&[&["vm", "--out", &out, "--"][..], &words].concat());
    assert_eq!(called.code, Some(1), "{}", called.stderr);
    let run = read(&format!("{out}/r.json"));
    assert!(
        run.driver.as_ref().is_some_and(|driver| driver.opened.ends_with("hwbinder")),
        "{:?}",
        run.driver
    );
    assert!(failure(&run, "BM_sendVec_binderize/8").contains("SIGABRT"));
    assert!(failure(&run, "BM_sendVec_binderize/65536").contains("byte 65535"));
    for payload in [4, 64] {
        let case = run.case(&format!("BM_sendVec_binderize/{payload}")).expect("planned");
        assert_eq!(case.measurements().map(|measured| measured.iterations).sum::<u64>(), 20);
    }
}

/// The cases whose median differs by 1 % or more between two runs, and how.
fn changed_medians(first: &Run, again: &Run) -> Vec<String> {
    let median =
        |run: &Run, name: &str| run.case(name).and_then(record::Case::median_real).expect("measured");
    let changes = first.cases.iter().filter_map(|case| {
        let (before, after) = (median(first, &case.name), median(again, &case.name));
        let change = after / before - 1.0;
        (change.abs() >= 0.01)
            .then(|| format!("{}: median {before} and {after} instructions ({change:+.4})", case.name))
    });
    changes.collect()
}

/// The run, had each round trip cost so many thousandths more.
fn costlier(run: &Run, thousandths: u64) -> Run {
    let mut run = run.clone();
    for repetition in run.cases.iter_mut().flat_map(|case| &mut case.repetitions) {
        if let Outcome::Measured(measured) = &mut repetition.outcome {
            let samples = &mut measured.samples;
            let more = |value: u64| value + value * thousandths / 1000;
            (samples.min, samples.max) = (more(samples.min), more(samples.max));
            for bucket in &mut samples.buckets {
                bucket.0 = more(bucket.0);
            }
        }
    }
    run
}

/// Medians, not means: up to a third of a pipe's round trips take a shorter way through the kernel, more
/// in one repetition and fewer in the next, which moves their mean by up to 6 %.
#[test]
fn counted_instructions_are_the_same_from_boot_to_boot() {
    let folder = Folder::new("guest-counted");
    let words =
        ["--controls=pipe,raw", "--benchmark_filter=/4$", "--benchmark_repetitions=5", "--max=x_raw=1000"];
    let mut boots = Vec::new();
    for _ in 0..2 {
        let (called, run) = in_guest(&folder, &["--icount"], &words);
        assert_eq!(called.code, Some(0), "{}", called.stderr);
        assert_eq!((run.clock.unit, run.host.class), (ClockUnit::Instructions, HostClass::Icount));
        assert!(called.stdout.contains("insns") && !called.stdout.contains(" ns "), "{}", called.stdout);
        assert!(called.stderr.contains("x_raw is "), "{}", called.stderr);
        boots.push(run);
    }
    assert_eq!(changed_medians(&boots[0], &boots[1]), [""; 0]);
    let slower = changed_medians(&boots[0], &costlier(&boots[1], 20));
    assert_eq!(
        slower.len(),
        boots[0].cases.len(),
        "a boot that costs 2 % more is seen in each case: {slower:?}"
    );
}

#[test]
fn a_limit_that_is_exceeded_fails_the_run() {
    let folder = Folder::new("guest-limit");
    let words =
        ["--controls=pipe", "--benchmark_filter=/4$", "--benchmark_min_time=50x", "--max=x_pipe=0.001"];
    let (called, run) = in_guest(&folder, &[], &words);
    assert_eq!(called.code, Some(1), "{}", called.stderr);
    assert!(called.stderr.contains("EXCEEDED"), "{}", called.stderr);
    assert!(run.complete && !run.any_failed(), "all was measured");
}

#[test]
fn run_ends_with_a_summary_records_and_a_report() {
    let _guest = ONE_GUEST.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new("guest-run");
    let out = folder.path("out");
    let called = binderperf(&["run", "--quick", "--vm", "--out", &out]);
    assert_eq!(called.code, Some(0), "{}{}", called.stdout, called.stderr);
    for line in
        ["binder throughput", "hwbinder throughput", "binder latency", "hwbinder latency", "report.html"]
    {
        assert!(called.stdout.contains(line), "{line}: {}", called.stdout);
    }
    for name in ["throughput.json", "latency-binder.json", "latency-hwbinder.json"] {
        let run = read(&format!("{out}/{name}"));
        assert!(
            run.complete && run.driver.is_some_and(|driver| driver.kind != DriverKind::Embedded),
            "{name}"
        );
    }
    let page = std::fs::read_to_string(format!("{out}/report.html")).expect("a report");
    assert!(page.contains("what they waited for"), "slow calls were recorded in the guest");
    assert_eq!(binderperf(&["show", &format!("{out}/throughput.json")]).code, Some(0));
}
