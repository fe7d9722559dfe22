//! `binderperf ab` with kernels for sides, in guests that it boots: counted instructions of the same kernel twice, and
//! a side that does not boot.
//! Not here: everything else about sides (`ab`).

use crate::support::{Folder, binderperf, read};

const TEST: [&str; 6] = [
    "--",
    "throughput",
    "binder",
    "--driver=kernel",
    "--benchmark_filter=binder/4$",
    "--benchmark_min_time=200x",
];

#[test]
#[ignore = "an accuracy: make alone"]
fn one_boot_of_each_side_tells_that_a_kernel_is_itself() {
    let _guest = crate::one_guest();
    let folder = Folder::new("ab-kernels");
    let records = folder.path("records");
    let words = ["ab", "--icount", "--a", "kernel=newest", "--b", "kernel=newest", "--records", &records];
    let called = binderperf(&[&words[..], &TEST].concat()).ended(0);
    assert!(called.stdout.contains("insns"), "counted, not timed: {}", called.stdout);
    called.printed("No difference");
    let [a, b] = ["a-001", "b-001"].map(|name| {
        let run = read(&format!("{records}/{name}.json"));
        run.case("BM_sendVec_binder/4").and_then(record::Case::median_real).expect("a median")
    });
    assert!((a / b - 1.0).abs() < 0.01, "{a} and {b} instructions");
}

#[test]
fn a_kernel_that_does_not_boot_is_reported_and_the_other_side_kept() {
    let _guest = crate::one_guest();
    let folder = Folder::new("ab-no-kernel");
    let (records, bad) = (folder.path("records"), folder.path("bzImage"));
    std::fs::write(&bad, "no kernel").expect("a file");
    let side = format!("kernel={bad}");
    let words = ["ab", "--icount", "--a", "kernel=newest", "--b", &side, "--records", &records];
    let called = binderperf(&[&words[..], &TEST].concat());
    assert!(matches!(called.code, Some(2 | 3)), "{:?} {}", called.code, called.stderr);
    called.complained("is not a bootable kernel");
    assert!(!read(&format!("{records}/a-001.json")).cases.is_empty(), "the other side was measured");
}
