//! Room: how many events a CPU's buffer took, handed on and lost, as the kernel counts them.
//! Facts: `per_cpu/cpuN/stats`, `tracing_stats_read` of `kernel/trace/trace.c`.

/// One CPU's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Which CPU.
    pub cpu: u32,
    /// Events that are in the file.
    pub events: u64,
    /// Events whose place newer ones took before they were read.
    pub overwritten: u64,
    /// Events for which there was no room.
    pub dropped: u64,
    /// Bytes of pages in the file.
    pub bytes: u64,
}

impl Counts {
    /// Reads a CPU's account of itself; what a kernel does not say counts as none.
    #[must_use]
    pub fn read(cpu: u32, stats: &str, bytes: u64) -> Self {
        let number = |name: &str| {
            let line = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        Self {
            cpu,
            events: number("read events"),
            overwritten: number("overrun"),
            dropped: number("dropped events") + number("commit overrun"),
            bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let stats = "entries: 5\noverrun: 4\ncommit overrun: 1\nbytes: 400\noldest event ts:     1.5\nnow ts: 2.5\n\
                     dropped events: 2\nread events: 98\n";
        let counts = Counts::read(3, stats, 8192);
        assert_eq!(counts, Counts { cpu: 3, events: 98, overwritten: 4, dropped: 3, bytes: 8192 });
        assert_eq!(Counts::read(0, "", 0), Counts::default());
    }
}
