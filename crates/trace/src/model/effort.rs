//! Limits what all calls together may cost to a multiple of the trace's events, so that no trace costs more than in proportion
//! to its length.
//! Not here: the limits of one call (`divide`, `follow`).
//!
//! The time of a call is cut along the history of its threads. Calls that overlap share that history, and a trace may have
//! any number of calls open at one time, so the sum is limited and not only each call.

use std::cell::Cell;

/// Maximum number of calls within one another whose segments are told apart; what is deeper is one segment.
pub(super) const MOST_NESTED: u8 = 16;
/// Segments that each event allows. Traces of real systems have one to five.
const SEGMENTS: u64 = 32;
/// Steps of histories that each event allows to be looked at.
const STEPS: u64 = 256;
/// Events that are granted in advance, for calls at the begin of a trace.
const GRANTED: u64 = 1 << 12;

/// What is left of both.
#[derive(Clone, Debug)]
pub(super) struct Effort {
    segments: Cell<u64>,
    steps: Cell<u64>,
    /// Whether either was refused since [`Effort::was_refused`] was asked last.
    refused: Cell<bool>,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            segments: Cell::new(GRANTED * SEGMENTS),
            steps: Cell::new(GRANTED * STEPS),
            refused: Cell::new(false),
        }
    }
}

impl Effort {
    /// Counts an event of the trace.
    pub(super) fn event(&self) {
        self.segments.set(self.segments.get().saturating_add(SEGMENTS));
        self.steps.set(self.steps.get().saturating_add(STEPS));
    }

    /// Takes a step; `false` if none is left.
    pub(super) fn step(&self) -> bool {
        self.take(&self.steps)
    }

    /// Takes a segment; `false` if none is left.
    pub(super) fn segment(&self) -> bool {
        self.take(&self.segments)
    }

    /// Whether nothing is left of either.
    pub(super) fn is_spent(&self) -> bool {
        let spent = self.steps.get() == 0 || self.segments.get() == 0;
        self.refused.set(self.refused.get() || spent);
        spent
    }

    /// Whether anything was refused since the last question.
    pub(super) fn was_refused(&self) -> bool {
        self.refused.replace(false)
    }

    fn take(&self, from: &Cell<u64>) -> bool {
        match from.get().checked_sub(1) {
            Some(left) => {
                from.set(left);
                true
            }
            None => {
                self.refused.set(true);
                false
            }
        }
    }
}

/// What a model did not follow to its end, so that a trace costs only in proportion to its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Calls of which a part was not divided by cause, or whose waits were not followed: too many calls were open at one time.
    pub calls: u64,
    /// Calls with nested calls so deep that their segments are one.
    pub deep: u64,
}

impl LeftOut {
    /// In words, as problems of the trace.
    pub(crate) fn words(self) -> impl Iterator<Item = String> {
        let calls = (self.calls > 0).then(|| {
            let calls = units::counted(self.calls, "call");
            format!("too many calls were open at one time: the causes of {calls} are in part not told")
        });
        let deep = (self.deep > 0).then(|| {
            let calls = units::counted(self.deep, "call");
            format!("what was nested more than {MOST_NESTED} calls deep is not told apart, in {calls}")
        });
        calls.into_iter().chain(deep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_events_allow_is_all_there_is() {
        let effort = Effort::default();
        let segments = |effort: &Effort| (0..).take_while(|_| effort.segment()).count() as u64;
        assert_eq!(segments(&effort), GRANTED * SEGMENTS);
        assert!(effort.was_refused() && !effort.was_refused() && effort.is_spent());
        effort.event();
        effort.event();
        assert!(!effort.is_spent());
        assert_eq!(segments(&effort), 2 * SEGMENTS);
        assert!(effort.step(), "steps are counted apart");
    }
}
