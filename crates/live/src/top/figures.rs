//! Figures of one subject: counts, bytes, and a histogram of latencies.
//! Not here: whose they are (`super`).
//! Facts: HdrHistogram with two significant digits: a bucket is at most 1/128 as wide as its values.

use hdrhistogram::Histogram;
use trace::model::{Outcome, Transaction};

/// Largest error of a percentile of latencies, relative to it.
pub const LATENCY_ERROR: f64 = 0.01;

/// Latencies beyond an hour count as one.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Counts, bytes and latencies of a subject in a span.
#[derive(Debug, Default)]
pub struct Figures {
    /// Calls that it received and that ended: answered, delivered or failed.
    pub calls: u64,
    /// Those of them that are oneway.
    pub oneway: u64,
    /// Calls that it made and that ended.
    pub made: u64,
    /// Calls to it that the driver refused, or whose answer never came.
    pub failed: u64,
    /// Bytes of calls to it and of their answers; `None` if no event shows them.
    pub bytes: Option<u64>,
    /// Calls that may lack events; their latency is not counted.
    pub doubtful: u64,
    /// Made with the first latency.
    latencies: Option<Histogram<u32>>,
}

impl Figures {
    /// Counts a call at its caller.
    pub(super) fn made(&mut self, call: &Transaction) {
        self.made += u64::from(is_over(call));
    }

    /// Counts a call at its receiver.
    pub(super) fn served(&mut self, call: &Transaction) {
        if !is_over(call) {
            return;
        }
        self.calls += 1;
        self.oneway += u64::from(call.oneway);
        self.failed += u64::from(has_failed(call));
        self.doubtful += u64::from(call.doubtful);
        if let Some(bytes) = call.bytes() {
            self.bytes = Some(self.bytes.unwrap_or(0).saturating_add(bytes));
        }
        if call.is_sound() && !call.oneway {
            let two_digits = || Histogram::new(2).ok();
            if let Some(latencies) = self.latencies.take().or_else(two_digits) {
                // It grows with its values, up to this one.
                let _ = self.latencies.insert(latencies).record(call.ns().min(LONGEST_NS));
            }
        }
    }

    /// Counts a call of a subject that is neither its caller nor its receiver alone.
    pub(super) fn both(&mut self, call: &Transaction) {
        self.made(call);
        self.served(call);
    }

    /// The latency in ns that this share of the two-way calls did not exceed, within [`LATENCY_ERROR`]; `None` without a
    /// call.
    #[must_use]
    pub fn latency(&self, percent: f64) -> Option<u64> {
        let latencies = self.latencies.as_ref().filter(|latencies| !latencies.is_empty())?;
        Some(latencies.value_at_percentile(percent))
    }

    /// True if nothing was counted.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.calls == 0 && self.made == 0
    }

    pub(super) fn clear(&mut self) {
        let mut latencies = self.latencies.take();
        latencies.iter_mut().for_each(Histogram::reset);
        *self = Self { latencies, ..Self::default() };
    }
}

fn has_failed(call: &Transaction) -> bool {
    matches!(call.outcome, Outcome::Failed | Outcome::Dead | Outcome::Frozen)
}

/// True if the call's end was seen.
fn is_over(call: &Transaction) -> bool {
    has_failed(call) || matches!(call.outcome, Outcome::Replied | Outcome::Delivered)
}
