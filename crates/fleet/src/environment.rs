//! Variables of this program's environment that its copy on another machine has, too.

use std::collections::BTreeMap;

use ftrace::switch::{FOLDER_VARIABLE, LOG_VARIABLE, MARKS_VARIABLE};
use vm::{CLASS_VARIABLE, KERNEL_VARIABLE};

/// Variables that are passed to the copy: binderperf's, Google Benchmark's, and Rust's.
const PASSED_ON: [&str; 3] = ["BINDERPERF_", "BENCHMARK_", "RUST_"];

/// Variables that are not passed: the other machine has a host class and a kernel of its own, and neither this
/// one's recording nor its ways to other machines are there.
const NOT_OURS_THERE: [&str; 9] = [
    profile::PORT_VARIABLE,
    CLASS_VARIABLE,
    KERNEL_VARIABLE,
    FOLDER_VARIABLE,
    LOG_VARIABLE,
    MARKS_VARIABLE,
    host::ON_VARIABLE,
    remote::ADB_VARIABLE,
    remote::SSH_VARIABLE,
];

/// The part of the environment that is passed to a guest, or to another machine.
pub fn passed_on() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| {
            !NOT_OURS_THERE.contains(&name.as_str())
                && PASSED_ON.iter().any(|prefix| name.starts_with(prefix))
        })
        .collect()
}
