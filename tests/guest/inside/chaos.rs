//! The chaos test on a kernel's driver.

use crate::support::binderperf;

#[test]
#[ignore = "for the guest of `session`"]
fn a_kernel_loses_nothing_among_processes_that_are_killed() {
    let called = binderperf(&["chaos", "--driver", "kernel", "--seconds", "8", "--processes", "3"]).ended(0);
    let words: Vec<&str> = called.stdout.split([' ', ',', ';']).filter(|word| !word.is_empty()).collect();
    for name in ["calls", "nested", "oneways", "objects", "descriptors", "kills", "visits", "frozen"] {
        let count = words.iter().skip_while(|word| **word != name).nth(1);
        let count = count.and_then(|word| word.trim().parse::<u64>().ok());
        assert!(count.is_some_and(|count| count > 0), "{name}: {}", called.stdout);
    }
}
