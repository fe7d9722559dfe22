//! The throughput tests on a real driver.
//! Not here: options, outputs and exit statuses that need no driver (`throughput` of `tests/cli`).

use crate::support::{Called, Folder, binderperf, read, throughput};
use record::{CaseKind, HostClass, Outcome, Run};

/// Runs `throughput binder`; returns its record as well.
fn measured(folder: &Folder, words: &[&str]) -> (Called, Run) {
    let record = folder.path("r.json");
    let called = throughput(&[&["--record", &record], words].concat());
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
#[ignore = "for the guest of `session`"]
fn all_fifteen_cases_beside_their_controls() {
    let folder = Folder::new("guest-all");
    let words = ["--controls=all", "--benchmark_min_time=20x", "--benchmark_format=json"];
    let (called, run) = measured(&folder, &words);
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
#[ignore = "for the guest of `session`"]
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
    let (called, run) = measured(&folder, &words);
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
#[ignore = "for the guest of `session`"]
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
    let (called, run) = measured(&folder, &words);
    assert_eq!(called.code, Some(1), "{}", called.stderr);
    for payload in [8, 32, 128, 512] {
        let case = run.case(&format!("BM_sendVec_binder/{payload}")).expect("planned");
        let iterations = case.measurements().map(|measured| measured.iterations).sum::<u64>();
        assert_eq!(iterations, 20, "{payload}: {}", called.stdout);
    }
}

/// Both flavours on a real driver, each in a context of its own, and without IPC.
#[test]
#[ignore = "for the guest of `session`"]
fn all_three_families() {
    let folder = Folder::new("guest-families");
    let record = format!("--record={}", folder.path("r.json"));
    let words = ["throughput", "all", &record, "--controls=raw", "--benchmark_min_time=20x"];
    let called = binderperf(&words).ended(0);
    let run = read(&folder.path("r.json"));
    for family in ["raw", "binder", "binderize", "passthrough"] {
        let family = format!("BM_sendVec_{family}");
        let of_family = run.cases.iter().filter(|case| case.family == family);
        let measured = of_family.filter(|case| case.measurements().all(|numbers| numbers.iterations == 20));
        assert_eq!(measured.count(), 15, "{family}: {}", called.stdout);
    }
}

/// On the device that Debian's driver makes by itself, with a service manager of ours.
#[test]
#[ignore = "for the guest of `session`"]
fn hwbinder_on_its_own_device_and_its_faults() {
    let folder = Folder::new("guest-hwbinder");
    let record = format!("--record={}", folder.path("r.json"));
    let fault = |kind: &str, payload: u32| format!("--fault={kind}=BM_sendVec_binderize/{payload}");
    let (killed, corrupt) = (fault("kill-server", 8), fault("corrupt-reply", 65536));
    let words = [
        "throughput",
        "hwbinder",
        &record,
        "--controls=none",
        "--device=hwbinder",
        "--benchmark_filter=/(4|8|64|65536)$",
        "--benchmark_min_time=20x",
        &killed,
        &corrupt,
    ];
    binderperf(&words).ended(1);
    let run = read(&folder.path("r.json"));
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

#[test]
#[ignore = "for the guest of `session`"]
fn a_limit_that_is_exceeded_fails_the_run() {
    let folder = Folder::new("guest-limit");
    let words =
        ["--controls=pipe", "--benchmark_filter=/4$", "--benchmark_min_time=50x", "--max=x_pipe=0.001"];
    let (called, run) = measured(&folder, &words);
    assert_eq!(called.code, Some(1), "{}", called.stderr);
    called.complained("EXCEEDED");
    assert!(run.complete && !run.any_failed(), "all was measured");
}
