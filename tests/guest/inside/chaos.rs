//! The chaos test on a kernel's driver.

use std::collections::BTreeSet;

use crate::support::binderperf;

/// Counts that must not stay 0: a short test on a slow machine may miss one by chance.
const COUNTS: [&str; 8] =
    ["calls", "nested", "oneways", "objects", "descriptors", "kills", "visits", "frozen"];
const MOST_TESTS: usize = 3;

#[test]
#[ignore = "for the guest of `session`"]
fn a_kernel_loses_nothing_among_processes_that_are_killed() {
    let mut missing = BTreeSet::from(COUNTS);
    let mut last = String::new();
    for _ in 0..MOST_TESTS {
        let called =
            binderperf(&["chaos", "--driver", "kernel", "--seconds", "8", "--processes", "3"]).ended(0);
        let words: Vec<&str> = called.stdout.split([' ', ',', ';']).filter(|word| !word.is_empty()).collect();
        missing.retain(|name| {
            let count = words.iter().skip_while(|word| *word != name).nth(1);
            count.and_then(|word| word.trim().parse().ok()).is_none_or(|count: u64| count == 0)
        });
        if missing.is_empty() {
            return;
        }
        last = called.stdout;
    }
    panic!("{missing:?} stayed 0 in {MOST_TESTS} tests: {last}");
}
