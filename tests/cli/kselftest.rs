//! `contrib/kselftest`: the suite in the form of a kernel's selftests, here on the embedded driver.
//! Not here: the suite (`conformance`).

use std::process::Command;

use crate::support::BINARY;

/// Runs the tests with these words; returns the lines of the tests themselves and whether all held.
fn run_tests(conformance: &str) -> (Vec<String>, bool) {
    let made = Command::new("make")
        .args(["-s", "-C", concat!(env!("CARGO_MANIFEST_DIR"), "/contrib/kselftest"), "run_tests"])
        .arg(format!("BINDERPERF={BINARY}"))
        .arg(format!("CONFORMANCE={conformance}"))
        .arg("CHAOS=--driver embedded --seconds 1 --processes 2")
        .env_remove("MAKEFLAGS")
        .output()
        .expect("make");
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    println!("{text}{}", String::from_utf8_lossy(&made.stderr));
    let is_whole = |item: &str| text.lines().any(|line| line.starts_with(item));
    assert!(is_whole("# selftests: binderperf: conformance.sh"));
    (text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect(), made.status.success())
}

#[test]
fn a_driver_passes_fails_or_is_not_there() {
    let lines = |first: &str| {
        let all = ["TAP version 13", "1..2", first, "ok 2 selftests: binderperf: chaos.sh"];
        all.map(str::to_owned).to_vec()
    };
    let name = "selftests: binderperf: conformance.sh";
    let embedded = "--driver embedded --filter DTH-01,WR-01";
    assert_eq!(run_tests(embedded), (lines(&format!("ok 1 {name}")), true));
    let broken = format!("{embedded} --inject lose-deaths");
    assert_eq!(run_tests(&broken).0[2], format!("not ok 1 {name} # exit=1"));
    assert!(!run_tests(&broken).1);
    assert_eq!(run_tests("--device /dev/no-such-binder").0[2], format!("ok 1 {name} # SKIP"));
}
