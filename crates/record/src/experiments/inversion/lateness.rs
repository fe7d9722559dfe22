//! Decides whether calls suffered from priority inversion.
//! Not here: making the calls (`bench::inversion`), showing the verdict (`text`).
//!
//! A server that does not inherit its caller's priority waits behind the hogs for as long as the scheduler lets them
//! run: some hundred us to several ticks of 1 to 10 ms. A server that inherits runs at once. So a call is late if it
//! took more than twice the reference's median and exceeds that median by more than a wake-up can take. A row is
//! inverted if many of its calls are late, and many more than of the reference. The reference has the same hogs and
//! the same disturbances of a shared machine, which therefore cancel out. If the reference itself is late compared
//! with the calls without hogs, and is so nearly as often as a server that was not raised, then something other than
//! the server waits behind the hogs, such as a process of the driver; in that case the calls without hogs are the
//! reference. A reference that is late now and then was disturbed by the machine.

/// A late call takes more than this many times the reference's median,
pub const LATE_FACTOR: u64 = 2;
/// and at least this many ns more than it.
pub const LATE_BY: u64 = 250_000;
/// Least share of late calls, beyond the reference's share, that counts as inversion.
pub const INVERTED_SHARE: f64 = 0.1;
/// Fewest calls that allow a verdict.
pub const LEAST_CALLS: u64 = 20;

/// The longest time in ns that is not late, given the median of the reference or of the calls without hogs, whichever
/// is less.
#[must_use]
pub fn limit(usual: u64) -> u64 {
    usual.saturating_mul(LATE_FACTOR).max(usual.saturating_add(LATE_BY))
}

/// The number of calls, and of late ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lateness {
    /// All calls.
    pub calls: u64,
    /// Calls beyond the limit.
    pub late: u64,
}

impl Lateness {
    /// Counts these times in ns.
    pub fn of(times: &[u64], limit: u64) -> Lateness {
        let late = times.iter().filter(|time| **time > limit).count();
        Lateness { calls: times.len() as u64, late: late as u64 }
    }

    /// The share of late calls; `None` below [`LEAST_CALLS`].
    pub fn share(self) -> Option<f64> {
        (self.calls >= LEAST_CALLS).then(|| self.late as f64 / self.calls as f64)
    }

    /// Whether these calls are inverted, given those of the reference; `None` if either has too few.
    pub fn is_inverted(self, reference: Lateness) -> Option<bool> {
        Some(self.share()? >= reference.share()? + INVERTED_SHARE)
    }

    /// Whether these calls, of a server that was raised by hand, wait behind the hogs all the same: they are inverted
    /// given those without hogs, as are those of a server that was not raised, and late at least half as often as these.
    pub fn waits_although_raised(self, quiet: Lateness, not_raised: Lateness) -> Option<bool> {
        let inverted = self.is_inverted(quiet)? && not_raised.is_inverted(quiet)?;
        Some(inverted && self.share()? >= not_raised.share()? / 2.0)
    }

    /// Whether these calls are inverted, given a reference that the machine may have disturbed. `None`: late compared with
    /// the calls without hogs, and not compared with such a reference.
    pub fn is_inverted_beyond(self, reference: Lateness, quiet: Lateness) -> Option<bool> {
        match (self.is_inverted(reference)?, self.is_inverted(quiet)?, reference.is_inverted(quiet)?) {
            (true, _, _) => Some(true),
            (false, true, true) => None,
            (false, _, _) => Some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(times: &[u64], reference: &[u64]) -> Option<bool> {
        let mut sorted = reference.to_vec();
        sorted.sort_unstable();
        let limit = limit(sorted.get(sorted.len() / 2).copied().unwrap_or(0));
        Lateness::of(times, limit).is_inverted(Lateness::of(reference, limit))
    }

    fn times(fast: usize, slow: usize, slow_ns: u64) -> Vec<u64> {
        let fast = (0..fast).map(|at| 20_000 + 10 * at as u64);
        fast.chain((0..slow).map(|_| slow_ns)).collect()
    }

    #[test]
    fn calls_that_wait_for_ticks_are_inversion_and_single_bubbles_are_not() {
        let reference = times(100, 0, 0);
        assert_eq!(judged(&times(10, 90, 3_000_000), &reference), Some(true));
        assert_eq!(judged(&times(85, 15, 1_000_000), &reference), Some(true));
        assert_eq!(judged(&times(100, 0, 0), &reference), Some(false));
        assert_eq!(judged(&times(97, 3, 30_000_000), &reference), Some(false), "a noisy host");
        assert_eq!(judged(&times(0, 100, 60_000), &reference), Some(false), "slower, yet no tick");
    }

    #[test]
    fn what_the_reference_suffers_as_well_is_none() {
        let reference = times(80, 20, 5_000_000);
        assert_eq!(judged(&times(75, 25, 5_000_000), &reference), Some(false));
        assert_eq!(judged(&times(50, 50, 5_000_000), &reference), Some(true));
    }

    #[test]
    fn slow_machines_are_judged_by_their_own_pace() {
        // An emulated guest: 900 us each.
        let reference = vec![900_000; 50];
        assert_eq!(judged(&[1_700_000; 50], &reference), Some(false));
        assert_eq!(judged(&[9_000_000; 50], &reference), Some(true));
        assert_eq!((limit(20_000), limit(900_000), limit(u64::MAX)), (270_000, 1_800_000, u64::MAX));
    }

    #[test]
    fn a_raised_server_waits_only_if_it_is_late_nearly_as_often_as_one_that_was_not() {
        let of = |late| Lateness { calls: 80, late };
        assert_eq!(
            of(14).waits_although_raised(of(3), of(69)),
            Some(false),
            "the host took the CPU now and then"
        );
        assert_eq!(of(60).waits_although_raised(of(3), of(69)), Some(true));
        assert_eq!(of(14).waits_although_raised(of(3), of(20)), Some(true));
        assert_eq!(of(60).waits_although_raised(of(58), of(69)), Some(false), "no later than without hogs");
        assert_eq!(of(60).waits_although_raised(of(3), Lateness { calls: 2, late: 2 }), None);
        assert_eq!(of(9).waits_although_raised(of(0), of(0)), Some(false), "nobody waits behind these hogs");
    }

    #[test]
    fn a_disturbed_reference_hides_no_inversion() {
        let of = |late| Lateness { calls: 80, late };
        assert_eq!(of(69).is_inverted_beyond(of(14), of(3)), Some(true));
        assert_eq!(of(38).is_inverted_beyond(of(35), of(0)), None, "half of the calls are late");
        assert_eq!(of(10).is_inverted_beyond(of(14), of(3)), Some(false));
        assert_eq!(of(5).is_inverted_beyond(of(3), of(3)), Some(false));
    }

    #[test]
    fn few_calls_tell_nothing() {
        assert_eq!(judged(&[9_000_000; 19], &times(100, 0, 0)), None);
        assert_eq!(judged(&times(100, 0, 0), &[20_000; 19]), None);
        assert_eq!(judged(&[], &[]), None);
    }
}
