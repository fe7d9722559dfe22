//! Schedule of calls at a rate.
//! Not here: waiting for it, and the delay of a call (`super::caller`).

/// Schedule of the calls of one class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    begin: u64,
    /// Interval between two calls of any class, in ns.
    period: f64,
    /// Number of periods before the next call of this class, and between two of its calls.
    next: u64,
    step: u64,
}

impl Pace {
    /// Schedule of one of `classes` classes, which take turns and together make `rate_hz` calls per second
    /// from `begin` on. `turn` is 0 for the class that comes first.
    pub(super) fn new(begin: u64, rate_hz: f64, turn: usize, classes: usize) -> Self {
        Self { begin, period: 1e9 / rate_hz, next: turn as u64 + 1, step: classes as u64 }
    }

    /// Returns the time of the next call.
    pub(super) fn next(&mut self) -> u64 {
        let periods = self.next;
        self.next += self.step;
        // Below 2^53 ns, which is 104 days, a float is exact.
        self.begin.saturating_add((periods as f64 * self.period) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_evenly_spaced_whatever_calls_take() {
        let mut alone = Pace::new(5, 1000.0, 0, 1);
        assert_eq!([alone.next(), alone.next()], [1_000_005, 2_000_005]);
        let mut turns = [0, 1].map(|turn| Pace::new(0, 1000.0, turn, 2));
        let moments: Vec<u64> =
            (0..2).flat_map(|_| turns.each_mut().map(|pace| pace.next() / 1_000_000)).collect();
        assert_eq!(moments, [1, 2, 3, 4], "both together keep the rate");
    }
}
