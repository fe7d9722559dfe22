//! Cause of a worker's death, derived from its exit status and its error output.
//! Not here: detecting the death (`group`).
//! Facts: texts of Rust's standard library (`alloc::handle_alloc_error`, the alternate signal stack of a new
//! thread).

/// Messages with which Rust's runtime ends a process without memory: for a value, a thread's signal stack,
/// its guard page.
const NO_MEMORY: [&str; 3] =
    ["memory allocation of", "failed to allocate an alternative stack", "failed to allocate a guard page"];

/// Describes how a process ended, with the reason if its error output holds one: the last message, or lack of
/// memory.
pub(super) fn cause(end: &str, complaints: &str) -> String {
    if end.contains("SIGXCPU") {
        return format!("{end}: a real-time thread ran longer than its limit without sleeping");
    }
    if let Some(line) = complaints.lines().find(|line| NO_MEMORY.iter().any(|words| line.contains(words))) {
        let limit = match sys::limits::address_space() {
            Ok(Some(limit)) => format!("its address space is limited to {} KiB, see ulimit -v", limit >> 10),
            _ => {
                "its address space is not limited, so the machine or its control group has no more".to_owned()
            }
        };
        return format!("out of memory: {limit}; {end}: {line}");
    }
    match complaints.lines().rfind(|line| !line.trim().is_empty()) {
        Some(line) => format!("{end}: {line}"),
        None => end.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_without_memory_is_said_to_have_had_none() {
        let said =
            "thread 'x' panicked at y:\nfailed to allocate an alternative stack: Cannot allocate memory";
        for complaints in [said, "memory allocation of 64 bytes failed\n"] {
            let cause = cause("signal: 6 (SIGABRT)", complaints);
            assert!(cause.starts_with("out of memory: its address space is"), "{cause}");
            assert!(cause.contains("signal: 6 (SIGABRT): ") && cause.contains("alloc"), "{cause}");
        }
        assert_eq!(cause("signal: 6", "a\nit broke\n\n"), "signal: 6: it broke");
        assert_eq!(cause("signal: 9", ""), "signal: 9");
        assert!(cause("signal: 24 (SIGXCPU)", "").contains("without sleeping"));
    }
}
