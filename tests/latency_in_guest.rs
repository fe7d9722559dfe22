//! Room: the latency tests on a real driver, in guests that these tests boot.
//! Not here: verdicts that need no driver of a kernel's (`latency`), single situations (`inheritance`).

mod support;

use std::sync::{Mutex, PoisonError};

use record::verdict::{Inherited, as_expected};
use record::{Class, DriverKind, HostClass, Level, Run};
use support::{Called, Folder, binderperf, read};

/// Guests boot one after the other: emulated CPUs want real ones.
static ONE_GUEST: Mutex<()> = Mutex::new(());

/// Runs Android's program of this name in a guest; the record that it leaves comes back.
fn in_guest(name: &str, words: &[&str]) -> (Called, Run) {
    let _guest = ONE_GUEST.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new(&format!("guest-{name}"));
    let out = folder.path("out");
    let called = binderperf(&[&["vm", "--out", &out, "--", name, "--record=r.json"], words].concat());
    let record = format!("{out}/r.json");
    assert!(std::path::Path::new(&record).exists(), "status {:?}: {}", called.code, called.stderr);
    (called, read(&record))
}

/// Mainline's C driver hands on nice and no policy: Android's verdict is FAIL, and that is what is expected.
fn is_mainlines(called: &Called, run: &Run, iterations: u64) {
    assert!(run.complete, "{:?}: {}", run.incomplete_reason, called.stderr);
    assert_eq!(called.code, Some(1), "{}", called.stderr);
    assert_eq!(run.driver.as_ref().map(|driver| driver.kind), Some(DriverKind::KernelC));
    let test = run.latency.as_ref().expect("a latency test");
    assert!(test.realtime.is_some_and(|caller| caller.priority == 99), "{:?}", test.realtime_problem);
    assert_eq!(Inherited::of(test), Inherited::Fail);
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
    assert!(called.stderr.contains("nice is what this driver is known for"), "{}", called.stderr);
    let emulated = run.host.class == HostClass::Tcg;
    assert_eq!(called.stderr.contains("Emulated machine"), emulated, "{}", called.stderr);
    let json: serde_json::Value = serde_json::from_str(&called.stdout).expect("stdout is JSON");
    assert_eq!(
        (&json["inheritance"], &json["ALL"]["I"]),
        (&"FAIL".into(), &(2 * iterations * u64::from(test.pairs)).into())
    );
}

#[test]
fn hwbinder_on_a_kernels_driver() {
    let (called, run) = in_guest("libhwbinder_latency", &["-i", "40", "-pair", "2"]);
    is_mainlines(&called, &run, 40);
}

#[test]
fn binder_on_a_kernels_driver() {
    let (called, run) = in_guest("schd-dbg", &["-i", "100", "-pair", "1"]);
    is_mainlines(&called, &run, 100);
}
