//! Measuring loop in several threads at once, each with a round trip of its own.
//! Not here: the loop of one thread (`super::batch`), what the threads share (`echo::rpc`).

use std::sync::{Mutex, PoisonError};

use record::{CounterKind, Distribution, Measurement, Sampler};

use super::{Halt, Pulse, RoundTrip, Sequence, batch};
use crate::call_error::CallError;

/// Requests of one thread before those of the next.
const APART: u32 = 1 << 26;

/// Makes `iterations` round trips with each of the clients, all at once; the first one's thread is not this one either.
///
/// Returns the measurement of all together: `iterations` and times are sums over the threads, and the counter
/// `calls_per_second` is the sum of their rates. A halt is that of the first thread that has one; the others go on to their end.
pub(crate) fn batch_together<R: RoundTrip + Send>(
    clients: &mut [R],
    iterations: u64,
    sequence: &mut Sequence,
    pulse: &(impl Pulse + Sync),
) -> (Measurement, Option<Halt>) {
    let from = sequence.0;
    sequence.0 = from.wrapping_add(u32::try_from(iterations).unwrap_or(u32::MAX)).wrapping_add(1);
    // Held until all threads are there, so that they begin at once.
    let gate = Mutex::new(());
    let parts: Vec<(Measurement, Option<Halt>)> = std::thread::scope(|scope| {
        let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
        let threads: Vec<_> = (0..)
            .zip(clients)
            .map(|(at, client)| {
                let (gate, mut sequence) = (&gate, Sequence(from.wrapping_add(APART.wrapping_mul(at))));
                let builder = std::thread::Builder::new().name(format!("caller {}", at + 1));
                builder.spawn_scoped(scope, move || {
                    let mut sampler = Sampler::new();
                    drop(gate.lock().unwrap_or_else(PoisonError::into_inner));
                    batch(client, iterations, &mut sequence, &mut sampler, pulse)
                })
            })
            .collect();
        drop(closed);
        let joined =
            threads.into_iter().map(|thread| match thread.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(part)) => part,
                Ok(Err(_)) => (Measurement::default(), Some(Halt::Broken(CallError::Closed))),
                Err(error) => {
                    (Measurement::default(), Some(Halt::Broken(CallError::os("starting a thread")(error))))
                }
            });
        joined.collect()
    });
    let mut halts = Vec::new();
    let mut numbers = Vec::new();
    for (part, halt) in parts {
        numbers.push(part);
        halts.extend(halt);
    }
    (sum(&numbers), halts.into_iter().next())
}

/// The measurements of all threads as one.
fn sum(parts: &[Measurement]) -> Measurement {
    let total = |of: fn(&Measurement) -> u64| parts.iter().map(of).fold(0, u64::saturating_add);
    let rates = parts.iter().filter_map(Measurement::mean_real).filter(|mean| *mean > 0.0);
    let mut all = Measurement {
        iterations: total(|part| part.iterations),
        real_total: total(|part| part.real_total),
        cpu_total: total(|part| part.cpu_total),
        samples: Distribution::merged(parts.iter().map(|part| &part.samples)).unwrap_or_default(),
        ..Measurement::default()
    };
    all.counters.set("calls_per_second", rates.map(|mean| 1e9 / mean).sum(), CounterKind::Rate);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// A call that ends when all threads are in one.
    struct Meeting<'b> {
        meet: &'b Barrier,
        calls: u64,
        broken_from: u64,
        stamps: Vec<u32>,
    }

    impl RoundTrip for Meeting<'_> {
        fn stamp(&mut self, sequence: u32) {
            self.stamps.push(sequence);
        }

        fn call(&mut self) -> Result<(), CallError> {
            self.calls += 1;
            self.meet.wait();
            if self.calls >= self.broken_from { Err(CallError::Closed) } else { Ok(()) }
        }

        fn check(&self) -> Result<(), CallError> {
            Ok(())
        }
    }

    struct Never;

    impl Pulse for Never {
        fn beat(&self, _now_ns: u64) {}

        fn stop(&self) -> bool {
            false
        }
    }

    fn meetings(meet: &Barrier, broken_from: u64) -> Vec<Meeting<'_>> {
        (0..3).map(|_| Meeting { meet, calls: 0, broken_from, stamps: Vec::new() }).collect()
    }

    #[test]
    fn all_threads_call_at_once_and_no_two_requests_are_the_same() {
        let meet = Barrier::new(3);
        let mut clients = meetings(&meet, u64::MAX);
        let mut sequence = Sequence::default();
        for _ in 0..2 {
            let (measured, halt) = batch_together(&mut clients, 10, &mut sequence, &Never);
            assert!(halt.is_none());
            assert_eq!((measured.iterations, measured.samples.count), (30, 30));
            assert_eq!(measured.real_total, measured.samples.sum);
            assert!(measured.counters.find("calls_per_second").expect("a rate").value > 0.0);
        }
        let mut stamps: Vec<u32> = clients.iter().flat_map(|client| client.stamps.clone()).collect();
        stamps.sort_unstable();
        stamps.dedup();
        assert_eq!(stamps.len(), 2 * 3 * 11);
    }

    #[test]
    fn what_was_measured_before_a_break_is_kept() {
        let meet = Barrier::new(3);
        let (measured, halt) = batch_together(&mut meetings(&meet, 8), 10, &mut Sequence::default(), &Never);
        assert!(matches!(halt, Some(Halt::Broken(CallError::Closed))));
        assert_eq!(measured.iterations, 3 * 6);
    }
}
