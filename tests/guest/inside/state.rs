//! `binderperf state` on a kernel's driver.

use crate::support::binderperf;

#[test]
#[ignore = "for the guest of `session`"]
fn the_drivers_own_account_is_shown() {
    for (word, head) in [("state", "binder state:\n"), ("stats", "binder stats:\n")] {
        let called = binderperf(&["state", word]).ended(0);
        assert!(called.stdout.starts_with(head), "{word}: {}", called.stdout);
    }
}
