//! Room: whether calls suffered from priority inversion.
//! Not here: making them (`lab::inversion`), showing the verdict (`crate::render::inversion`).
//!
//! A server that does not inherit its caller's priority waits behind hogs for what the scheduler gives them:
//! from some hundred us to several ticks of 1 to 10 ms. One that does is run at once. So a call counts as
//! late when it took twice as long as the reference's usual one and longer by more than any wake-up
//! takes; and a row is inverted when many of its calls are late, and many more than of the reference. The
//! reference has the same hogs and meets the same disturbances of a shared machine, which so cancel out. If its
//! calls are late themselves, beside those without hogs, somebody else than the server waits behind the hogs,
//! such as a process of the driver's own; then the calls without hogs are the reference.

/// A late call takes more than so many times the reference's median ...
pub const LATE_FACTOR: u64 = 2;
/// ... and so many ns more than it.
pub const LATE_BY: u64 = 250_000;
/// So large a share of late calls, beyond the reference's, is inversion.
pub const INVERTED_SHARE: f64 = 0.1;
/// With fewer calls nothing is told.
pub const LEAST_CALLS: u64 = 20;

/// What a call may take before it counts as late, by the usual time in ns: the median of the reference or of the
/// calls without hogs, whichever is less.
#[must_use]
pub fn limit(usual: u64) -> u64 {
    usual.saturating_mul(LATE_FACTOR).max(usual.saturating_add(LATE_BY))
}

/// Calls, and how many of them were late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lateness {
    /// All.
    pub calls: u64,
    /// Those beyond the limit.
    pub late: u64,
}

impl Lateness {
    /// Of these times.
    pub fn of(times: &[u64], limit: u64) -> Lateness {
        let late = times.iter().filter(|time| **time > limit).count();
        Lateness { calls: times.len() as u64, late: late as u64 }
    }

    /// The share of late calls; `None` with too few calls.
    pub fn share(self) -> Option<f64> {
        (self.calls >= LEAST_CALLS).then(|| self.late as f64 / self.calls as f64)
    }

    /// Whether this is inversion beside such a reference; `None` when either has too few calls.
    pub fn is_inverted(self, reference: Lateness) -> Option<bool> {
        Some(self.share()? >= reference.share()? + INVERTED_SHARE)
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
        // Emulated: 900 us each.
        let reference = vec![900_000; 50];
        assert_eq!(judged(&[1_700_000; 50], &reference), Some(false));
        assert_eq!(judged(&[9_000_000; 50], &reference), Some(true));
        assert_eq!((limit(20_000), limit(900_000), limit(u64::MAX)), (270_000, 1_800_000, u64::MAX));
    }

    #[test]
    fn few_calls_tell_nothing() {
        assert_eq!(judged(&[9_000_000; 19], &times(100, 0, 0)), None);
        assert_eq!(judged(&times(100, 0, 0), &[20_000; 19]), None);
        assert_eq!(judged(&[], &[]), None);
    }
}
