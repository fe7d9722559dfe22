//! Search for the number of iterations of a repetition.
//! Not here: making them (`crate::measure`).
//! Facts: the algorithm of Google Benchmark 1.9.5: start with one; while a trial is shorter than the minimum
//! time, predict from its rate and add 40 %, but trust the rate only once a trial took a tenth of that time,
//! and grow tenfold until then. Unlike it we use wall-clock time in every case, because most of a round
//! trip's time is spent in another process.

use crate::plan::MOST_ITERATIONS;

/// Returns the iterations of the next trial; `None` if the last one was long enough.
pub(super) fn next(iterations: u64, seconds: f64, min_seconds: f64) -> Option<u64> {
    if seconds >= min_seconds || iterations >= MOST_ITERATIONS {
        return None;
    }
    let significant = seconds / min_seconds > 0.1;
    let factor = if significant { min_seconds * 1.4 / seconds.max(1e-9) } else { 10.0 };
    let predicted = (factor * iterations as f64).max(iterations as f64 + 1.0).round();
    // The cast saturates at the maximum of u64.
    Some((predicted as u64).min(MOST_ITERATIONS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_trial() {
        for (why, iterations, seconds, want) in [
            ("long enough", 10, 0.5, None),
            ("too short to tell", 10, 0.01, Some(100)),
            ("just at a tenth", 10, 0.05, Some(100)),
            ("predicted with 40 % on top", 1000, 0.25, Some(2800)),
            ("a clock that stood still", 1, 0.0, Some(10)),
            ("nearly there", 1, 0.499, Some(2)),
            ("the limit", MOST_ITERATIONS, 0.0, None),
            ("up to the limit", MOST_ITERATIONS / 2, 0.0, Some(MOST_ITERATIONS)),
        ] {
            assert_eq!(next(iterations, seconds, 0.5), want, "{why}");
        }
        assert_eq!(next(1, 0.0, 0.0), None, "no least time: one trial");
    }

    #[test]
    fn a_search_ends_for_every_pace() {
        for pace in [1e-9, 1e-6, 1e-3, 0.3] {
            let (mut iterations, mut trials) = (1, 1);
            while let Some(more) = next(iterations, iterations as f64 * pace, 0.5) {
                assert!(more > iterations);
                (iterations, trials) = (more, trials + 1);
            }
            assert!(trials <= 12, "{trials} trials at {pace} s");
            assert!(iterations as f64 * pace >= 0.5 || iterations == MOST_ITERATIONS);
        }
    }
}
