//! Room: what it means that a worker ended, from what it complained of.
//! Not here: noticing it (`team`).
//! Facts: texts of Rust's standard library (`alloc::handle_alloc_error`, the stack for signals of a new thread).

/// What Rust's runtime says of a process that it ends as there is no memory: for a value, a thread's
/// stack for signals, its guard page.
const NO_MEMORY: [&str; 3] =
    ["memory allocation of", "failed to allocate an alternative stack", "failed to allocate a guard page"];

/// How a process ended, with why if it said so: what it complained of last, or that it had no memory.
pub(super) fn cause(end: &str, complaints: &str) -> String {
    if let Some(line) = complaints.lines().find(|line| NO_MEMORY.iter().any(|words| line.contains(words))) {
        let limit = match sys::address_space::limit() {
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
    }
}
