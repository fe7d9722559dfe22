//! Scenarios and a replay on a kernel's driver.

use crate::support::{Folder, binderperf, read, wait_until};
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

#[test]
#[ignore = "for the guest of `session`"]
fn little_memory_takes_the_drivers_buffers_and_enough_does_not() {
    let folder = Folder::new("guest-memory");
    let (load, record) = (folder.path("load.txt"), folder.path("r.json"));
    let text = "binderperf workload 1\nprocess s pool 3\nprocess c copies 6\nthread c times 40\n  call s 4>900000\n  call s 4>4\n  sleep 20ms\n";
    std::fs::write(&load, text).expect("written");
    let within = |bytes: u64| {
        let limit = bytes.to_string();
        let words = ["workload", "run", &load, "--driver", "kernel", "--memory", &limit, "--record", &record];
        binderperf(&words).ended(0).printed("Memory of at most ");
        read(&record).constraints.and_then(|held| held.memory).expect("it was limited")
    };
    let enough = within(1 << 30);
    assert_eq!(
        (enough.buffer_pages_reclaimed, enough.buffer_pages_refaulted, enough.killed),
        (0, 0, Some(0))
    );
    assert!(enough.buffers_peak_bytes > 3 << 20, "{enough:?}");
    let charged = enough.peak_bytes.expect("a kernel that says so");
    // Pages come back only if calls are left behind the look that had them reclaimed, which a busy machine may make late.
    let mut little = (0..5).map(|_| within(charged + enough.buffers_peak_bytes / 2));
    let little = little.find(|held| held.buffer_pages_refaulted > 0).expect("reclaimed pages come back");
    assert!(little.buffer_pages_reclaimed > 0, "{little:?}");
    let left = std::fs::read_dir("/sys/fs/cgroup").expect("mounted").flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("binderperf-")).count();
    assert_eq!(left, 0, "a group is gone after its test");
}

#[test]
#[ignore = "for the guest of `session`"]
fn a_load_without_memory_ends_with_its_reason() {
    let folder = Folder::new("guest-no-memory");
    let (load, record) = (folder.path("load.txt"), folder.path("r.json"));
    let text = "binderperf workload 1\nprocess s\nprocess c copies 40\nthread c times 3\n  call s 64>64\n";
    std::fs::write(&load, text).expect("written");
    let words = ["workload", "run", &load, "--driver", "kernel", "--memory", "12M", "--record", &record];
    binderperf(&words).ended(1).printed("INCOMPLETE: ");
    let held = read(&record).constraints.and_then(|held| held.memory).expect("it was limited");
    assert!(held.killed > Some(0), "{held:?}");
}

#[test]
#[ignore = "for the guest of `session`"]
fn utilization_is_clamped_and_recorded() {
    let folder = Folder::new("guest-uclamp");
    let record = folder.path("r.json");
    let words =
        ["throughput", "binder", "--benchmark_filter=/4$", "--benchmark_min_time=5x", "--controls", "none"];
    let held = ["--driver", "kernel", "--uclamp", "0:256", "--record", &record];
    binderperf(&[&words[..], &held].concat()).ended(0);
    let run = read(&record);
    assert_eq!(run.constraints.and_then(|held| held.utilization), Some([0, 256]));
}

#[test]
#[ignore = "for the guest of `session`"]
fn sched_ext_schedules_a_test_and_nothing_after_it() {
    let folder = Folder::new("guest-sched-ext");
    let record = folder.path("r.json");
    let shown = |file: &str| {
        std::fs::read_to_string(format!("/sys/kernel/sched_ext/{file}")).expect("the kernel has it")
    };
    // Schedulers that were put in force so far.
    let count = || shown("enable_seq").trim().parse::<u64>().expect("a number");
    let before = count();
    let words =
        ["throughput", "binder", "--benchmark_filter=/4$", "--benchmark_min_time=5x", "--controls", "none"];
    binderperf(&[&words[..], &["--driver", "kernel", "--sched-ext", "--record", &record]].concat()).ended(0);
    assert!(read(&record).constraints.is_some_and(|held| held.sched_ext));
    assert_eq!(count(), before + 1);
    wait_until("the usual scheduler is back", || shown("state").trim() == "disabled");
}
