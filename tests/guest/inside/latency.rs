//! The latency tests on a real driver.
//! Not here: verdicts that need no driver of a kernel's (`latency`), single situations (`inheritance`).

use crate::support::{Called, Folder, binderperf, read};
use record::verdict::{InheritanceVerdict, as_expected};
use record::{Class, DriverKind, HostClass, Level, Run};

/// Runs Android's program of this name; returns its record as well.
fn measured(name: &str, words: &[&str]) -> (Called, Run) {
    let folder = Folder::new(&format!("guest-{name}"));
    let record = folder.path("r.json");
    let called = binderperf(&[&[name, "--aosp-compat=off", "--record", &record], words].concat());
    assert!(std::path::Path::new(&record).exists(), "status {:?}: {}", called.code, called.stderr);
    (called, read(&record))
}

/// Mainline's C driver hands on nice and no policy: Android's verdict is FAIL, and that is what is expected.
fn is_mainlines(called: &Called, run: &Run, iterations: u64) {
    assert!(run.complete, "{:?}: {}", run.incomplete_reason, called.stderr);
    assert_eq!(called.code, Some(1), "{}", called.stderr);
    assert_eq!(run.driver.as_ref().map(|driver| driver.kind), Some(DriverKind::KernelC));
    let test = run.latency().expect("a latency test");
    assert!(test.realtime.is_some_and(|caller| caller.priority == 99), "{:?}", test.realtime_problem);
    assert_eq!(InheritanceVerdict::of(test), InheritanceVerdict::Fail);
    assert_eq!((test.inheritance.measured, as_expected(&test.inheritance)), (Some(Level::Nice), Some(true)));
    for case in &run.cases {
        let latency = case.latency.as_ref().expect("a latency test's case");
        assert_eq!(
            case.measurements().map(|numbers| numbers.iterations).sum::<u64>(),
            iterations,
            "{}",
            case.name
        );
        let want = if latency.class == Class::Fifo { iterations } else { 0 };
        assert_eq!(latency.not_inherited, want, "{}", case.name);
    }
    called.complained("nice is what this driver is known for");
    let emulated = run.host.class == HostClass::Tcg;
    assert_eq!(called.stderr.contains("Emulated machine"), emulated, "{}", called.stderr);
    let json: serde_json::Value = serde_json::from_str(&called.stdout).expect("stdout is JSON");
    assert_eq!(
        (&json["inheritance"], &json["ALL"]["I"]),
        (&"FAIL".into(), &(2 * iterations * u64::from(test.pairs)).into())
    );
}

#[test]
#[ignore = "for the guest of `session`"]
fn hwbinder_on_a_kernels_driver() {
    let (called, run) = measured("libhwbinder_latency", &["-i", "40", "-pair", "2"]);
    is_mainlines(&called, &run, 40);
}

#[test]
#[ignore = "for the guest of `session`"]
fn binder_on_a_kernels_driver() {
    let (called, run) = measured("schd-dbg", &["-i", "100", "-pair", "1"]);
    is_mainlines(&called, &run, 100);
}
