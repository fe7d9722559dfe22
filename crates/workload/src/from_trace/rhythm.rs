//! Whether a call of a thread came by time, or because an earlier one was over.
//! Not here: the times themselves (`super::pauses`).
//!
//! Only a gap between two calls of a thread in which it slept can end by time. A thread with at least [`LEAST_GAPS`] of them has a rhythm
//! if its sleeps, or the times between the ends of its sleeps, are alike: their quartiles differ by at most [`STEADY`] of the
//! median. If the times between are more alike than the sleeps are, it is a timer's rhythm, and all these calls came by
//! time: open loop. If the sleeps are, the thread sleeps for a fixed time behind its call, and its calls depend on the
//! earlier ones: closed loop.
//!
//! Without a rhythm, a call came by time if an interrupt ended the last sleep before it (a timer, a device, a user), or
//! if that sleep was of [`LONG_NS`] or more. Otherwise another thread woke its caller, and the call depends on the
//! earlier ones.
//!
//! The first call of a thread came by time.

use super::pauses::{self, LONGEST_NS, is_sleep, rounded};
use crate::description::Step;
use crate::recording::{Does, Slice};

/// Fewest gaps of a rhythm.
const LEAST_GAPS: usize = 8;
/// Largest spread of a rhythm: the distance of the quartiles, relative to the median.
const STEADY: f64 = 0.1;
/// Sleeps that are waits for something from outside, in ns.
const LONG_NS: u64 = 10_000_000;

/// Rhythm of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rhythm {
    /// A timer's.
    Open,
    /// Sleeps of one length.
    Closed,
    /// None.
    Irregular,
}

/// Time between two calls of a thread.
#[derive(Clone, Debug)]
pub(super) struct Gap {
    slices: Vec<Slice>,
    is_first: bool,
    /// Index of the last sleep.
    sleep: Option<usize>,
}

impl Gap {
    pub(super) fn of(slices: Vec<Slice>, is_first: bool) -> Self {
        let sleep = slices.iter().rposition(is_sleep);
        Self { slices, is_first, sleep }
    }

    fn sleep(&self) -> Option<&Slice> {
        self.slices.get(self.sleep?)
    }

    /// Whether the call at its end came by time.
    fn is_open(&self, rhythm: Rhythm) -> bool {
        let Some(sleep) = self.sleep() else { return false };
        let from_outside = sleep.does == Does::Sleeps { by_interrupt: true } || sleep.ns() >= LONG_NS;
        self.is_first
            || match rhythm {
                Rhythm::Open => true,
                Rhythm::Closed => false,
                Rhythm::Irregular => from_outside,
            }
    }

    /// Steps up to the call that is sent at `sent`, in a load that began at `begin`.
    pub(super) fn steps(&self, rhythm: Rhythm, begin: u64, sent: u64) -> Vec<Step> {
        let sleep = self.sleep.filter(|_| self.is_open(rhythm));
        let Some((at, last)) = sleep.and_then(|at| Some((at, self.slices.get(at)?))) else {
            return match sent.saturating_sub(begin) {
                after if self.is_first && after > 0 => vec![Step::At(to_the_microsecond(after))],
                _ if self.is_first => Vec::new(),
                _ => pauses::of(&self.slices),
            };
        };
        let mut steps = if self.is_first { Vec::new() } else { pauses::of(&self.slices[..at]) };
        // A sleep right before it would only end earlier.
        steps.pop_if(|step| matches!(step, Step::Sleep(_)));
        steps.push(Step::At(to_the_microsecond(last.end.min(sent).saturating_sub(begin))));
        steps.extend(pauses::of(&self.slices[at + 1..]));
        steps
    }
}

impl Rhythm {
    /// Rhythm of a thread with these gaps.
    pub(super) fn of(gaps: &[Gap]) -> Self {
        let sleeps: Vec<&Slice> = gaps.iter().skip(1).filter_map(Gap::sleep).collect();
        if sleeps.len() < LEAST_GAPS {
            return Self::Irregular;
        }
        let lengths = spread(sleeps.iter().map(|sleep| sleep.ns()).collect());
        let between = spread(sleeps.windows(2).map(|two| two[1].end.saturating_sub(two[0].end)).collect());
        match (between, lengths) {
            (between, lengths) if between.min(lengths) > STEADY => Self::Irregular,
            (between, lengths) if between <= lengths => Self::Open,
            _ => Self::Closed,
        }
    }
}

/// Distance of the quartiles, relative to the median.
fn spread(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    let [low, middle, high] = [25.0, 50.0, 75.0].map(|percent| units::percentile(&values, percent));
    match (low, middle, high) {
        (Some(low), Some(middle), Some(high)) if middle > 0 => (high - low) as f64 / middle as f64,
        _ => f64::INFINITY,
    }
}

/// A time after the begin of the load. Three digits of it would be too coarse late in a load.
fn to_the_microsecond(ns: u64) -> u64 {
    let ns = ns.min(LONGEST_NS);
    if ns < 1_000_000 { rounded(ns) } else { (ns + 500) / 1000 * 1000 }
}
