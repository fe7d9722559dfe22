//! `binderperf matrix`: kernels beside one another, one of which is none.

use crate::one_guest;
use crate::support::{Folder, binderperf};

#[test]
fn a_kernel_that_does_not_boot_is_a_row_and_a_second_call_measures_nothing_again() {
    let _guest = one_guest();
    let folder = Folder::new("matrix");
    std::fs::write(folder.path("junk"), "no kernel").expect("written");
    let kernels = format!("plain=newest,broken={}", folder.path("junk"));
    let records = folder.path("records");
    let test =
        "throughput binder --driver kernel --controls raw --benchmark_filter=/4$ --benchmark_min_time=200x";
    let words = ["matrix", "--icount", "--kernels", &kernels, "--records", &records, "--tests", test];
    let called = binderperf(&words).ended(3);
    let row = |name: &str| {
        let line = called.stdout.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("no {name}: {}{}", called.stdout, called.stderr))
    };
    assert!(row("plain ").matches(" insns").count() == 2, "{}", called.stdout);
    assert!(row("broken ").contains("is not a bootable kernel"), "{}", called.stdout);
    // With another time limit it is still the same measurement.
    let again = binderperf(&[&words[..], &["--patience", "800"]].concat()).ended(3);
    again.complained("1 run was there from an earlier call");
    assert_eq!(again.stdout, called.stdout);
}
