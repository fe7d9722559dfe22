//! CPU time that a hypervisor gives to others while this machine wants it (steal).
//! Facts: `Documentation/filesystems/proc.rst` (`stat`), in ticks of `USER_HZ`, which every architecture of Linux with
//! a binder driver shows as 100.

use driver::Root;

use super::parse::total_and_stolen;

/// Nanoseconds per tick of `/proc/stat`.
const TICK_NS: u64 = 10_000_000;

/// Steal time at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Steal {
    ticks: u64,
}

impl Steal {
    /// Reads the steal time of all CPUs; `None` without `/proc/stat`.
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::of(&Root::of_this_machine())
    }

    fn of(root: &Root) -> Option<Self> {
        let (_, ticks) = total_and_stolen(&root.text("proc/stat")?)?;
        Some(Self { ticks })
    }

    /// Returns the steal time from then until now in nanoseconds, exact to 10 ms.
    #[must_use]
    pub fn since_ns(self) -> Option<u64> {
        Some(Self::now()?.ticks.saturating_sub(self.ticks).saturating_mul(TICK_NS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    #[test]
    fn steal_is_read_and_never_negative() {
        let machine =
            Fixture::new("steal", &[("proc/stat", "cpu  1 2 3 4 5 6 7 18446744073709551615 9 10\n")]);
        let ahead = Steal::of(&machine.root()).expect("a line");
        assert_eq!(ahead.since_ns().unwrap_or(0), 0, "a counter that went back is no steal");
        assert!(Steal::of(&Fixture::new("no-steal", &[("proc/stat", "cpu 1\n")]).root()).is_none());
    }
}
