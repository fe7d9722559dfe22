//! Parts of a round trip, each alone within this process: one copy of the vector, and writing and reading
//! either flavour's parcels.
//! Not here: the parcels' steps (the crate `steps`).

use std::hint::black_box;

use steps::Steps;

use super::Payload;
use crate::call_error::CallError;
use crate::measure::RoundTrip;

/// Calls per sample within one process: the clock then adds less than a nanosecond to each.
pub(super) const CALLS_PER_SAMPLE: u64 = 64;
/// Maximum bytes copied per sample, so that an interrupt spoils only one of many samples.
const BYTES_PER_SAMPLE: usize = 1 << 16;

fn calls_per_sample(len: usize) -> u64 {
    (BYTES_PER_SAMPLE / len.max(1)).clamp(1, CALLS_PER_SAMPLE as usize) as u64
}

/// One copy of the vector into existing memory.
#[derive(Debug)]
pub(crate) struct Copying(Payload);

impl Copying {
    /// Creates one for vectors of `len` bytes.
    #[must_use]
    pub(crate) fn new(len: usize) -> Self {
        Self(Payload::new(len))
    }
}

impl RoundTrip for Copying {
    fn stamp(&mut self, sequence: u32) {
        self.0.stamp(sequence);
    }

    fn call(&mut self) -> Result<(), CallError> {
        black_box(&mut self.0.received).copy_from_slice(black_box(&self.0.sent));
        Ok(())
    }

    fn check(&self) -> Result<(), CallError> {
        self.0.check()
    }

    fn calls_per_sample(&self) -> u64 {
        calls_per_sample(self.0.sent.len())
    }
}

/// The cost of a call's parcels alone.
pub(crate) struct Serialising<S> {
    steps: S,
    len: usize,
}

impl<S: Steps> Serialising<S> {
    /// Creates one for vectors of `len` bytes.
    pub(crate) fn new(steps: S, len: usize) -> Self {
        Self { steps, len }
    }
}

impl<S: Steps> RoundTrip for Serialising<S> {
    // The same bytes each time: no step could cache them between calls.
    fn stamp(&mut self, _sequence: u32) {}

    fn call(&mut self) -> Result<(), CallError> {
        black_box(&mut self.steps).call();
        Ok(())
    }

    fn check(&self) -> Result<(), CallError> {
        match self.steps.came_back() {
            true => Ok(()),
            false => Err(CallError::Refused("the vector did not come back as it was sent".to_owned())),
        }
    }

    fn calls_per_sample(&self) -> u64 {
        calls_per_sample(self.len)
    }
}
