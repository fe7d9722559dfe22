//! The throughput tests with many workers on a kernel's driver.

use crate::support::{Called, Folder, binderperf, read};

fn rate(called: &Called) -> f64 {
    let rest = called.stdout.split_once("iterations per sec: ").expect("a rate").1;
    rest.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
}

#[test]
#[ignore = "for the guest of `session`"]
fn many_workers_on_a_kernels_driver() {
    let folder = Folder::new("workers-guest");
    let record = folder.path("r.json");
    let words = ["throughput", "scaling", "--driver=kernel", "-P", "4", "-i", "50", "--record", &record];
    let called = binderperf(&words).ended(0);
    let run = read(&record);
    assert!(run.complete, "{}", called.stdout);
    assert_eq!(run.cases.len(), 3 * 4);
    assert!(run.cases.iter().all(|case| case.measurements().count() == 1), "{}", called.stdout);
    let test = ["binderThroughputTest", "-w", "4", "-i", "100", "-s", "4096", "-t"];
    let called = binderperf(&test).ended(0);
    assert!(rate(&called) > 0.0, "{}", called.stdout);
    let called = binderperf(&["hwbinderThroughputTest", "-w", "3", "-i", "100"]).ended(0);
    assert!(rate(&called) > 0.0, "{}", called.stdout);
    let killed = ["throughput", "workers", "--fault=kill-server=worker2", "-w", "3", "-i", "100000"];
    binderperf(&killed).ended(1).complained("worker 2 died");
}
