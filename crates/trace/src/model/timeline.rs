//! Step function over time, kept as far back as its past may be needed.
//! Not here: the meaning of the values.

use std::collections::VecDeque;

/// Maximum number of steps at one time. A clock that stands still, or went back, has more; the last of them counts.
const MOST_AT_ONCE: usize = 32;

/// Step function of time. The last step holds until the next one.
#[derive(Clone, Debug)]
pub(crate) struct Timeline<T> {
    steps: VecDeque<(u64, T)>,
}

impl<T> Default for Timeline<T> {
    fn default() -> Self {
        Self { steps: VecDeque::new() }
    }
}

impl<T: Copy + PartialEq> Timeline<T> {
    /// Sets the value from `ts` on. A time before the last step counts as that step's time. Returns the number of
    /// steps added: 0 if the value did not change.
    pub(crate) fn push(&mut self, ts: u64, value: T) -> usize {
        let ts = match self.steps.back() {
            Some((_, last)) if *last == value => return 0,
            Some((at, _)) => ts.max(*at),
            None => ts,
        };
        let earlier = self.steps.len().checked_sub(MOST_AT_ONCE).and_then(|at| self.steps.get(at));
        if earlier.is_some_and(|(at, _)| *at == ts)
            && let Some((_, last)) = self.steps.back_mut()
        {
            *last = value;
            return 0;
        }
        if self.steps.is_empty() {
            // Most threads of a trace have a step or two.
            self.steps.reserve_exact(2);
        }
        self.steps.push_back((ts, value));
        1
    }

    /// Number of steps.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Current value.
    pub(crate) fn last(&self) -> Option<T> {
        self.steps.back().map(|(_, value)| *value)
    }

    /// Corrects the last step or the one before, whichever `change` accepts first.
    pub(crate) fn amend_last_two(&mut self, mut change: impl FnMut(&mut T) -> bool) {
        for (_, value) in self.steps.iter_mut().rev().take(2) {
            if change(value) {
                return;
            }
        }
    }

    /// Drops the steps that queries of `before` or later do not need. Returns the number of steps dropped.
    pub(crate) fn forget(&mut self, before: u64) -> usize {
        let mut dropped = 0;
        while self.steps.get(1).is_some_and(|(ts, _)| *ts <= before) {
            self.steps.pop_front();
            dropped += 1;
        }
        dropped
    }

    /// Value at this time; `None` before the first step.
    pub(crate) fn at(&self, ts: u64) -> Option<T> {
        let after = self.steps.partition_point(|(start, _)| *start <= ts);
        after.checked_sub(1).and_then(|index| self.steps.get(index)).map(|(_, value)| *value)
    }

    /// Steps after this time, without the one that holds then.
    pub(crate) fn after(&self, ts: u64) -> impl Iterator<Item = (u64, T)> + '_ {
        let after = self.steps.partition_point(|(start, _)| *start <= ts);
        self.steps.range(after..).copied()
    }

    /// Cuts `from..to` where the value changes: start, end, value. Covers the range without gap or overlap; the value
    /// is `None` before the first step.
    pub(crate) fn slices(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64, Option<T>)> + '_ {
        let mut index = self.steps.partition_point(|(start, _)| *start <= from);
        let mut at = from;
        std::iter::from_fn(move || {
            while at < to {
                let value = index.checked_sub(1).and_then(|held| self.steps.get(held)).map(|step| step.1);
                let end = self.steps.get(index).map_or(to, |(start, _)| (*start).min(to));
                index += 1;
                if end > at {
                    let start = std::mem::replace(&mut at, end);
                    return Some((start, end, value));
                }
            }
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_what_was_asked_for() {
        let mut line = Timeline::default();
        for (ts, value) in [(10, 'a'), (20, 'b'), (20, 'c'), (30, 'c'), (40, 'd')] {
            line.push(ts, value);
        }
        let cut = |from, to| line.slices(from, to).collect::<Vec<_>>();
        assert_eq!(cut(0, 25), [(0, 10, None), (10, 20, Some('a')), (20, 25, Some('c'))]);
        assert_eq!(cut(35, 50), [(35, 40, Some('c')), (40, 50, Some('d'))]);
        assert!(cut(20, 20).is_empty());
        assert_eq!((line.at(9), line.at(10), line.at(99)), (None, Some('a'), Some('d')));
        assert_eq!(line.after(20).collect::<Vec<_>>(), [(40, 'd')]);
    }

    #[test]
    fn what_is_asked_for_is_not_forgotten() {
        let mut line = Timeline::default();
        for ts in 0..100_u64 {
            line.push(ts, ts);
        }
        assert_eq!(line.forget(50), 50);
        assert_eq!((line.at(50), line.at(49)), (Some(50), None));
        assert_eq!(line.slices(50, 52).count(), 2);
    }

    #[test]
    fn a_clock_that_stands_still_costs_no_memory() {
        let mut line = Timeline::default();
        line.push(5, 0);
        let steps: usize = (1..10_000).map(|value| line.push(10, value)).sum();
        assert_eq!(steps, MOST_AT_ONCE);
        assert_eq!((line.at(9), line.at(10)), (Some(0), Some(9999)));
    }

    #[test]
    fn a_clock_that_goes_backwards_is_held() {
        let mut line = Timeline::default();
        line.push(10, 'a');
        line.push(5, 'b');
        assert_eq!(line.slices(0, 20).collect::<Vec<_>>(), [(0, 10, None), (10, 20, Some('b'))]);
    }
}
