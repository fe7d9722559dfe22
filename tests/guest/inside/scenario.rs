//! Scenarios and a replay on a kernel's driver.

use crate::support::{Folder, binderperf, read};
use record::Outcome;

#[test]
#[ignore = "for the guest of `session`"]
fn scenarios_are_measured_on_a_kernels_driver() {
    let folder = Folder::new("guest-scenario");
    let record = folder.path("r.json");
    const FILTER: &str = "--benchmark_filter=BM_(oneway_(send/16|full)|descriptors/64|objects_(known|link)/10|buffers_(full/99|refused)|\
        death_notices/100|freeze_.*|pool_nested4|register_notify/10|sizes_large/1000000|cold_(open|pages/65536))$";
    let few = "--benchmark_min_time=2x";
    binderperf(&[
        "scenario",
        "all",
        FILTER,
        few,
        "--driver",
        "kernel",
        "--controls",
        "none",
        "--record",
        &record,
    ])
    .ended(0);
    let run = read(&record);
    assert_eq!(run.cases.len(), 20);
    for case in &run.cases {
        let Outcome::Measured(measured) = &case.repetitions[0].outcome else { panic!("{case:?}") };
        assert_eq!(measured.iterations, 2, "{}", case.name);
    }
}

#[test]
#[ignore = "for the guest of `session`"]
fn a_load_is_carried_out_on_a_kernels_driver() {
    let folder = Folder::new("guest-workload");
    let (load, record) = (folder.path("load.txt"), folder.path("r.json"));
    let text = "binderperf workload 1\nprocess a copies 3\nprocess b pool 3\nthread a times 4\n  call b 96>8 known 2\n    call a 4>4\n      \
        work 10us\n  oneway b 100\n";
    std::fs::write(&load, text).expect("written");
    binderperf(&["workload", "run", &load, "--driver", "kernel", "--record", &record]).ended(0);
    let run = read(&record);
    for name in ["a:b", "b:a", "a:b/oneway"] {
        let case = run.case(name).unwrap_or_else(|| panic!("no case {name}"));
        let Outcome::Measured(measured) = &case.repetitions[0].outcome else { panic!("{case:?}") };
        assert_eq!(measured.iterations, 12, "{name}");
    }
}
