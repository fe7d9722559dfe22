//! Each process and thread that a command starts says what it is, on the embedded driver.
//! Not here: the same in a guest (`guest::inside::names`).

use crate::support::names::all_named;
use crate::support::{Folder, start, words};

#[track_caller]
fn names(line: &str, wanted: &[&str]) {
    let folder = Folder::new("names");
    let record = folder.path("r.json");
    let line = line.replace("RECORD", &record);
    all_named(start(&words(&line)), wanted);
}

#[test]
fn of_the_latency_tests() {
    let test = "latency hwbinder --driver=embedded -i 100000 --rate=50 -pair 2 --no-scenes --load=cpu:1 --load=irq:1";
    let pairs = ["client 0", "client 1", "server 0", "server 1", "hwservicemanage", "HwBinder:"];
    names(test, &[&pairs[..], &["hog 0 cpu", "hog 1 irq", "broker"]].concat());
}

#[test]
fn of_the_throughput_tests() {
    let long = "--benchmark_min_time=600s --benchmark_filter";
    let binder = format!("throughput binder --driver=embedded --controls=none {long}=binder/4$");
    names(&binder, &["server", "servicemanager", "broker"]);
    for control in ["pipe", "unix", "futex", "eventfd"] {
        let line = format!("throughput binder --driver=embedded --controls={control} {long}={control}/4$");
        names(&line, &[&format!("{control} server")]);
    }
    let many = "applet binderThroughputTest --driver=embedded -w 3 -i 1000000";
    names(many, &["worker 0", "worker 1", "worker 2", "servicemanager", "Binder:", "broker"]);
}

#[test]
fn of_the_other_tests() {
    names("inheritance --driver=embedded", &["scenes", "server 0"]);
    let chaos = "chaos --driver=embedded --seconds=600";
    names(chaos, &["servicemanager", "member 0.0", "caller 0", "reporter", "broker"]);
    names("conformance --driver=embedded", &["test ", "helper manager", "end watcher"]);
}
