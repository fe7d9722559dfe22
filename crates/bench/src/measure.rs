//! Measuring loop: the code between two clock readings, and around them.
//! Not here: the cases and their number (`crate::run`), the ways to send bytes (`echo`), the CPUs of both sides
//! (`same_cpu`), many threads (`together`).
//! Facts: only the round trip lies between the two readings of a sample; storing the sample, stamping the
//! next request and checking for a stop happen outside of them.

pub(crate) mod echo;
pub(crate) mod same_cpu;
pub(crate) mod together;

use record::{Distribution, Measurement, Sampler};
use sys::clock::{monotonic_ns, thread_cpu_ns};

use crate::call_error::CallError;
use crate::plan::MOST_ITERATIONS;

/// A way to send a byte vector to another process and get it back.
pub(crate) trait RoundTrip {
    /// Makes the next request differ from all before it. Not timed.
    fn stamp(&mut self, sequence: u32);

    /// Sends the vector and receives the reply. Timed.
    ///
    /// # Errors
    /// [`CallError`]; the conversation is over then.
    fn call(&mut self) -> Result<(), CallError>;

    /// Checks that the last reply equals the last request, byte for byte; makes one more call where replies
    /// are not kept. Not timed.
    ///
    /// # Errors
    /// [`CallError::Corrupt`].
    fn check(&self) -> Result<(), CallError>;

    /// CPU time that this thread used since the beginning for what is no call, in ns.
    fn untimed_cpu_ns(&self) -> u64 {
        0
    }

    /// Samples that are worth their time: what comes before each may take far longer than the sample.
    fn most_samples(&self) -> u64 {
        MOST_ITERATIONS
    }

    /// Calls per sample: more than one where a single call would cost less than the clock.
    fn calls_per_sample(&self) -> u64 {
        1
    }
}

impl<R: RoundTrip + ?Sized> RoundTrip for Box<R> {
    fn stamp(&mut self, sequence: u32) {
        (**self).stamp(sequence);
    }

    fn call(&mut self) -> Result<(), CallError> {
        (**self).call()
    }

    fn check(&self) -> Result<(), CallError> {
        (**self).check()
    }

    fn calls_per_sample(&self) -> u64 {
        (**self).calls_per_sample()
    }

    fn untimed_cpu_ns(&self) -> u64 {
        (**self).untimed_cpu_ns()
    }

    fn most_samples(&self) -> u64 {
        (**self).most_samples()
    }
}

/// Progress and stop flag of the loop, both plain atomics.
pub(crate) trait Pulse {
    /// Reports a round trip, which ended at this time of the monotonic clock.
    fn beat(&self, now_ns: u64);
    /// Returns true if the loop must stop at once.
    fn stop(&self) -> bool;
}

impl Pulse for procgroup::Watchdog {
    fn beat(&self, _now_ns: u64) {
        self.beat();
    }

    fn stop(&self) -> bool {
        sys::stop_signal::received().is_some()
    }
}

/// Reason for the early end of a batch.
#[derive(Debug)]
pub(crate) enum Halt {
    /// A round trip failed.
    Broken(CallError),
    /// A stop was requested.
    Stopped,
}

/// Counter of the requests sent, which makes them distinct.
#[derive(Debug, Default)]
pub(crate) struct Sequence(u32);

impl Sequence {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(1);
        self.0
    }
}

/// Makes `iterations` round trips and takes a sample of each, or of several at once if the round trip asks
/// for it. An untimed one precedes them; its reply and the last one are compared with their requests.
///
/// Returns the measurement, complete or up to the halt.
pub(crate) fn batch<R: RoundTrip>(
    round_trip: &mut R,
    iterations: u64,
    sequence: &mut Sequence,
    sampler: &mut Sampler,
    pulse: &impl Pulse,
) -> (Measurement, Option<Halt>) {
    sampler.clear();
    if let Err(error) = first(round_trip, sequence.next()) {
        return (Measurement::default(), Some(Halt::Broken(error)));
    }
    let (at_once, mut made, mut real_total) = (round_trip.calls_per_sample(), 0, 0);
    let cpu_ns = |round_trip: &R| thread_cpu_ns() - round_trip.untimed_cpu_ns();
    let cpu_start = cpu_ns(round_trip);
    let mut halt = None;
    let marks = sys::mark::is_wanted();
    while made < iterations {
        let calls = at_once.min(iterations - made);
        round_trip.stamp(sequence.next());
        if marks {
            sys::mark::mark();
        }
        let start = monotonic_ns();
        let result = several(round_trip, calls, marks);
        let end = monotonic_ns();
        if let Err(error) = result {
            halt = Some(Halt::Broken(error));
            break;
        }
        sampler.record((end - start) / calls);
        made += calls;
        real_total += end - start;
        pulse.beat(end);
        if pulse.stop() {
            halt = Some(Halt::Stopped);
            break;
        }
    }
    let cpu_total = cpu_ns(round_trip) - cpu_start;
    if !matches!(halt, Some(Halt::Broken(_)))
        && let Err(error) = round_trip.check()
    {
        halt = Some(Halt::Broken(error));
    }
    let samples = sampler.distribution();
    (Measurement { iterations: made, real_total, cpu_total, samples, ..Measurement::default() }, halt)
}

/// Builds a measurement from single durations; `None` without any.
pub(crate) fn of_samples(times: &[u64], cpu_total: u64) -> Option<Measurement> {
    (!times.is_empty()).then(|| Measurement {
        iterations: times.len() as u64,
        real_total: times.iter().copied().fold(0, u64::saturating_add),
        cpu_total,
        samples: Distribution::of(times.iter().copied()),
        ..Measurement::default()
    })
}

/// Makes `calls` calls, at least one.
fn several<R: RoundTrip>(round_trip: &mut R, calls: u64, marks: bool) -> Result<(), CallError> {
    for _ in 1..calls {
        round_trip.call()?;
        if marks {
            sys::mark::mark();
        }
    }
    round_trip.call()
}

fn first<R: RoundTrip>(round_trip: &mut R, sequence: u32) -> Result<(), CallError> {
    round_trip.stamp(sequence);
    round_trip.call()?;
    round_trip.check()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Answers from memory, wrong from some call on.
    struct Fake {
        stamps: Vec<u32>,
        calls: u64,
        broken_from: u64,
        corrupt_from: u64,
    }

    impl RoundTrip for Fake {
        fn stamp(&mut self, sequence: u32) {
            self.stamps.push(sequence);
        }

        fn call(&mut self) -> Result<(), CallError> {
            self.calls += 1;
            if self.calls >= self.broken_from { Err(CallError::Closed) } else { Ok(()) }
        }

        fn check(&self) -> Result<(), CallError> {
            let corrupt = self.calls >= self.corrupt_from;
            if corrupt { Err(CallError::Corrupt { sent: 4, received: 4, at: 0 }) } else { Ok(()) }
        }
    }

    const FINE: Fake = Fake { stamps: Vec::new(), calls: 0, broken_from: u64::MAX, corrupt_from: u64::MAX };

    struct StopAfter(Cell<u64>);

    impl Pulse for StopAfter {
        fn beat(&self, _now_ns: u64) {
            self.0.set(self.0.get() - 1);
        }

        fn stop(&self) -> bool {
            self.0.get() == 0
        }
    }

    fn run(fake: &mut Fake, iterations: u64, stop_after: u64) -> (Measurement, Option<Halt>) {
        let pulse = StopAfter(Cell::new(stop_after));
        batch(fake, iterations, &mut Sequence::default(), &mut Sampler::new(), &pulse)
    }

    #[test]
    fn a_batch_counts_its_iterations_and_makes_one_more() {
        let mut fake = FINE;
        let (measured, halt) = run(&mut fake, 10, 100);
        assert!(halt.is_none());
        assert_eq!((measured.iterations, measured.samples.count, fake.calls), (10, 10, 11));
        assert_eq!(measured.real_total, measured.samples.sum, "the time is the sum of the samples");
        assert_eq!(fake.stamps, (1..=11).collect::<Vec<u32>>(), "no two requests are the same");
    }

    /// A round trip with samples of ten calls.
    struct Quick(Fake);

    impl RoundTrip for Quick {
        fn stamp(&mut self, sequence: u32) {
            self.0.stamp(sequence);
        }

        fn call(&mut self) -> Result<(), CallError> {
            self.0.call()
        }

        fn check(&self) -> Result<(), CallError> {
            self.0.check()
        }

        fn calls_per_sample(&self) -> u64 {
            10
        }
    }

    #[test]
    fn a_sample_of_several_calls_is_the_time_of_one() {
        let mut quick = Quick(FINE);
        let pulse = StopAfter(Cell::new(100));
        let (measured, halt) = batch(&mut quick, 25, &mut Sequence::default(), &mut Sampler::new(), &pulse);
        assert!(halt.is_none());
        assert_eq!((measured.iterations, measured.samples.count, quick.0.calls), (25, 3, 26));
        assert!(measured.samples.sum <= measured.real_total, "samples are of a single call");
    }

    #[test]
    fn what_was_measured_before_a_break_is_kept() {
        let (measured, halt) = run(&mut Fake { broken_from: 8, ..FINE }, 10, 100);
        assert_eq!(measured.iterations, 6);
        assert!(matches!(halt, Some(Halt::Broken(CallError::Closed))));
    }

    #[test]
    fn the_first_and_the_last_reply_are_checked() {
        let (measured, halt) = run(&mut Fake { corrupt_from: 1, ..FINE }, 10, 100);
        assert!(matches!(halt, Some(Halt::Broken(CallError::Corrupt { .. }))));
        assert_eq!(measured.iterations, 0);
        let (measured, halt) = run(&mut Fake { corrupt_from: 11, ..FINE }, 10, 100);
        assert!(matches!(halt, Some(Halt::Broken(CallError::Corrupt { .. }))));
        assert_eq!(measured.iterations, 10);
    }

    #[test]
    fn a_stop_is_obeyed_after_the_running_call() {
        let (measured, halt) = run(&mut { FINE }, 10, 3);
        assert_eq!(measured.iterations, 3);
        assert!(matches!(halt, Some(Halt::Stopped)));
    }
}
