//! Boots the guest that the tests of `inside` share: this very program runs there, with those tests only.

use crate::one_guest;
use crate::support::binderperf;

#[test]
fn tests_on_a_kernels_driver() {
    let _guest = one_guest();
    let this = std::env::current_exe().expect("a test is a program");
    let this = this.to_str().expect("UTF-8");
    let tests = ["inside::", "--ignored", "--test-threads=1", "--show-output"];
    let called =
        binderperf(&[&["vm", "--smp", "2", "--timeout", "3600", "--exec", this], &tests[..]].concat());
    assert_eq!(called.code, Some(0), "{}\n{}", called.stdout, called.stderr);
    called.stdout.lines().filter(|line| line.starts_with("SKIPPED: ")).for_each(|line| println!("{line}"));
    let passed = called.stdout.lines().filter(|line| line.ends_with(" ... ok")).count();
    assert!(passed >= 15, "{passed} tests passed in the guest: {}", called.stdout);
}
