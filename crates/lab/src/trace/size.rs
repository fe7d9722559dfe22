//! Room: sizes of trace buffers: what one says, and what may be asked for.
//! Not here: setting them (`atrace`, `record`).
//! Facts: `buffer_size_kb`, `Documentation/trace/ftrace.rst`; `MemAvailable`, `proc_meminfo(5)`.

use std::fs;

use super::tracefs::Trouble;

/// The number that restores a buffer's size: what it grows to when first used is what it is worth.
#[must_use]
pub fn size_kb(text: &str) -> Option<u64> {
    // `7 (expanded: 1408)`
    let number = text.split("expanded:").nth(1).map_or(text, |rest| rest.trim_end_matches(')'));
    number.trim().parse().ok()
}

/// Checks a size before the kernel is asked for it, which would take all memory that there is.
///
/// # Errors
/// [`Trouble::Usage`].
pub fn check_size(kb: u64, cpus: usize) -> Result<(), Trouble> {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = memory.lines().find_map(|line| {
        line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    fits(kb, cpus, available)
}

fn fits(kb: u64, cpus: usize, available_kb: Option<u64>) -> Result<(), Trouble> {
    if kb == 0 {
        return Err(Trouble::Usage("a trace buffer of 0 KB records nothing".to_owned()));
    }
    let all = kb.saturating_mul(u64::try_from(cpus).unwrap_or(u64::MAX));
    match available_kb {
        Some(available) if all > available / 2 => Err(Trouble::Usage(format!(
            "{kb} KB of trace buffer for each of {cpus} CPUs is more than half of the {available} KB of memory that are \
             free; at most {} KB",
            available / 2 / cpus.max(1) as u64
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unused_buffers_size_is_what_it_would_grow_to() {
        assert_eq!(
            (size_kb("7 (expanded: 1408)"), size_kb("8000"), size_kb("X")),
            (Some(1408), Some(8000), None)
        );
    }

    #[test]
    fn sizes_that_would_take_the_machine_are_refused() {
        assert!(fits(8000, 8, Some(1_000_000)).is_ok());
        assert!(fits(8000, 8, None).is_ok());
        for (kb, cpus) in [(0, 1), (600_000, 1), (70_000, 8), (u64::MAX, 8)] {
            assert!(matches!(fits(kb, cpus, Some(1_000_000)), Err(Trouble::Usage(_))), "{kb}");
        }
    }
}
