//! `throughput ping` and `latency ping`: calls that any object answers, of a manager and of another program's service.

use std::process::Child;

use crate::support::{Folder, binderperf, read, signal, with_servers};
use record::Outcome;

const FEW: &str = "--benchmark_min_time=50x";

#[test]
fn a_manager_is_pinged_without_a_service() {
    for (more, cases) in
        [(&[][..], &["BM_ping/0", "BM_interface/0"][..]), (&["--flavour", "hwbinder"], &["BM_hwping/0"])]
    {
        let folder = Folder::new("ping");
        let record = folder.path("r.json");
        let words = ["throughput", "ping", "--driver", "embedded", FEW, "--record", &record];
        let called = binderperf(&[&words[..], more].concat()).ended(0);
        let run = read(&record);
        for case in cases {
            called.printed(case);
            let measured = &run.case(case).expect(case).repetitions[0].outcome;
            assert!(matches!(measured, Outcome::Measured(result) if result.iterations == 50), "{measured:?}");
        }
        // The floor of a call without payload, beside it.
        called.printed("x_futex=");
    }
}

/// Starts another program with a service, in a context below the folder. Returns it, the service's name, and the options
/// that lead there.
fn other_program(folder: &Folder) -> (Child, String, [String; 6]) {
    let context = folder.path("context");
    let place = ["--driver", "embedded", "--context-dir", &context, "--device", "binder"];
    let words = ["throughput", "binder", "--benchmark_filter=binder/4$", "--benchmark_min_time=3600s"];
    let (other, _) = with_servers(&[&words[..], &place].concat());
    let name = format!("binderperf.sendvec.{}", other.id());
    (other, name, place.map(str::to_owned))
}

#[test]
fn a_service_of_another_program_is_pinged_and_a_missing_one_named() {
    let folder = Folder::new("ping-service");
    let (mut other, name, place) = other_program(&folder);
    let ping = |name: &str| {
        let words = ["throughput", "ping", "--controls", "none", FEW, "--service", name];
        binderperf(&[&words[..], &place.each_ref().map(String::as_str)].concat())
    };
    ping(&name).ended(0).printed("BM_interface/0");
    let nobody = ping("binderperf.nobody").ended(3);
    nobody.complained("nobody serves binderperf.nobody").complained("another release's dialect: --android");
    let words =
        ["throughput", "ping", "--flavour", "hwbinder", "--controls", "none", FEW, "--service", "a@1.0::I/x"];
    let other_flavour = binderperf(&[&words[..], &place.each_ref().map(String::as_str)].concat()).ended(3);
    other_flavour.complained("one of binder, which speaks another dialect: --device hwbinder");
    signal(other.id(), "KILL");
    other.wait().expect("it ends");
    let private = ["throughput", "ping", "--driver", "embedded", "--device", "private", "--service", "x"];
    binderperf(&private).ended(2).complained("nobody has registered --service in a private context");
}

#[test]
fn another_programs_service_is_looked_for_at_another_programs_manager() {
    let folder = Folder::new("ping-unmanaged");
    for test in ["throughput", "latency"] {
        let context = folder.path(test);
        let words = [
            test,
            "ping",
            "--driver",
            "embedded",
            "--context-dir",
            &context,
            "--device",
            "binder",
            "--service",
            "x",
        ];
        binderperf(&words).ended(3).complained("no service manager");
    }
}

#[test]
fn single_pings_have_the_figures_of_a_latency_test_but_those_that_only_a_server_knows() {
    for flavour in ["binder", "hwbinder"] {
        let folder = Folder::new("latency-ping");
        let record = folder.path("r.json");
        let words =
            ["latency", "ping", "--driver", "embedded", "--flavour", flavour, "-i", "60", "-pair", "2"];
        let more = ["--deadline_us", "60000000", "--raw-data", "--format", "json", "--record", &record];
        let called = binderperf(&[&words[..], &more].concat()).ended(0);
        let json = called.json();
        assert_eq!((&json["P1"]["other_ms"]["miss"], &json["pinged"]), (&0.into(), &"".into()), "{flavour}");
        assert!(json["ALL"]["R"].is_null() && json["ALL"]["bubble"]["other"].is_null(), "{json}");
        let run = read(&record);
        let test = run.latency().expect("a latency test");
        assert_eq!((test.pinged.as_deref(), test.word()), (Some(""), "ping"));
        for case in &run.cases {
            let latency = case.latency.as_ref().expect("a case of a latency test");
            let wanted = if case.name.ends_with("fifo") && test.realtime.is_none() { 0 } else { 60 };
            assert!(latency.untold && latency.raw.len() == wanted, "{}", case.name);
        }
        let shown = binderperf(&["show", &record]).ended(0);
        shown.printed("by its ping");
        assert!(!shown.stdout.contains("inheritance"), "{}", shown.stdout);
    }
    let missed = ["latency", "ping", "--driver=embedded", "--service=x", "--device=private"];
    binderperf(&missed).ended(2).complained("nobody has registered --service in a private context");
}

#[test]
fn a_service_of_another_program_is_pinged_call_by_call() {
    let folder = Folder::new("latency-ping-service");
    let (mut other, name, place) = other_program(&folder);
    let ping = |name: &str| {
        let words = ["latency", "ping", "-i", "20", "--deadline-us", "1", "--service", name];
        binderperf(&[&words[..], &place.each_ref().map(String::as_str)].concat())
    };
    // A miss is a figure, not a failure.
    ping(&name).ended(0).printed(format!("{name} of binder, by its ping"));
    ping("binderperf.nobody").ended(3).complained("nobody serves binderperf.nobody");
    signal(other.id(), "KILL");
    other.wait().expect("it ends");
}
