//! Figures of the workers of a round.
//! Not here: taking the samples (`role`), printing (`record::render`). The rate counts the completed calls,
//! from the barrier to the end of the last worker; percentiles are of all samples, sorted: the least value
//! that this percentage does not exceed.

use record::render::crowd::PERCENTILES;
use record::{CounterKind, Counters, Distribution, Measurement};

use procgroup::SlotTotals;

/// Exact percentiles, with the names of their counters.
const EXACT: [(f64, &str); 4] =
    [(50.0, "exact_p50"), (90.0, "exact_p90"), (95.0, "exact_p95"), (99.0, "exact_p99")];

/// Sets the counters of the samples that Android's tool takes for percentiles: by an index that is one too high.
pub(super) fn set_androids_percentiles(measured: &mut Measurement, mut samples: Vec<u64>) {
    samples.sort_unstable();
    for (percent, name) in PERCENTILES {
        if let Some(value) = samples.get(samples.len() * percent as usize / 100) {
            measured.counters.set(name, *value as f64, CounterKind::Plain);
        }
    }
}

/// Computes the figures of a round that began at `begin`, from the totals and samples of its clients; calls
/// beyond the capacity have no sample. `None` without calls. Counts calls longer than `expected`.
pub(super) fn measurement(
    begin: u64,
    parts: &[SlotTotals],
    mut samples: Vec<u64>,
    expected: Option<u64>,
) -> Option<Measurement> {
    let total = |of: fn(&SlotTotals) -> u64| parts.iter().map(of).fold(0, u64::saturating_add);
    let calls = total(|part| part.calls);
    let end = parts.iter().map(|part| part.end).max().filter(|_| calls > 0)?;
    let wall = end.saturating_sub(begin);
    samples.sort_unstable();
    let mut counters = Counters::default();
    if wall > 0 {
        counters.set("calls_per_second", calls as f64 * 1e9 / wall as f64, CounterKind::Rate);
    }
    counters.set("wall", wall as f64, CounterKind::Plain);
    for (percent, name) in EXACT {
        if let Some(value) = units::percentile(&samples, percent) {
            counters.set(name, value as f64, CounterKind::Plain);
        }
    }
    if let Some(expected) = expected {
        let longer = samples.len() - samples.partition_point(|sample| *sample <= expected);
        counters.set("expected_max", expected as f64, CounterKind::Plain);
        counters.set("longer", longer as f64, CounterKind::Plain);
    }
    Some(Measurement {
        iterations: calls,
        real_total: total(|part| part.busy),
        cpu_total: total(|part| part.cpu),
        samples: Distribution::of(samples),
        counters,
        ..Measurement::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of clients with these end times and durations.
    fn round(begin: u64, clients: &[(u64, Vec<u64>)], expected: Option<u64>) -> Measurement {
        let part = |(end, samples): &(u64, Vec<u64>)| SlotTotals {
            calls: samples.len() as u64,
            busy: samples.iter().sum(),
            cpu: 7,
            end: *end,
        };
        let parts: Vec<SlotTotals> = clients.iter().map(part).collect();
        let samples = clients.iter().flat_map(|(_, samples)| samples.clone()).collect();
        measurement(begin, &parts, samples, expected).expect("calls")
    }

    fn counter(measured: &Measurement, name: &str) -> f64 {
        measured.counters.find(name).unwrap_or_else(|| panic!("no {name}")).value
    }

    #[test]
    fn the_rate_counts_calls_that_were_made_until_the_last_end() {
        let measured = round(1_000, &[(1_500, vec![100; 30]), (2_000, vec![50; 20])], None);
        assert_eq!(measured.iterations, 50);
        assert_eq!(counter(&measured, "wall"), 1_000.0);
        assert_eq!(counter(&measured, "calls_per_second"), 50.0 * 1e9 / 1_000.0);
        assert_eq!((measured.real_total, measured.cpu_total), (4_000, 14));
        assert_eq!(measured.mean_real(), Some(80.0));
    }

    #[test]
    fn percentiles_are_those_of_all_samples_to_the_unit() {
        // 1 to 1000, shuffled over two clients, each value 1 ms apart and odd.
        let value = |rank: u64| rank * 1_000_001;
        let odd = (1..=1000).rev().filter(|rank| rank % 2 == 1).map(value).collect();
        let even = (1..=1000).filter(|rank| rank % 2 == 0).map(value).collect();
        let measured = round(0, &[(1, odd), (1, even)], Some(value(990)));
        for (name, rank) in
            [("exact_p50", 500), ("exact_p90", 900), ("exact_p95", 950), ("exact_p99", 990), ("longer", 0)]
        {
            let want = if name == "longer" { 10.0 } else { value(rank) as f64 };
            assert_eq!(counter(&measured, name), want, "{name}");
        }
        assert_eq!((measured.samples.min, measured.samples.max), (value(1), value(1000)));
    }

    #[test]
    fn androids_percentile_is_the_sample_after_the_nearest_rank() {
        let mut measured = round(0, &[(1, (1..=100).rev().collect())], None);
        set_androids_percentiles(&mut measured, (1..=100).rev().collect());
        assert_eq!((counter(&measured, "exact_p99"), counter(&measured, "android_p99")), (99.0, 100.0));
        assert_eq!((counter(&measured, "exact_p50"), counter(&measured, "android_p50")), (50.0, 51.0));
    }

    #[test]
    fn few_samples_have_percentiles_too_and_none_have_no_figures() {
        let measured = round(0, &[(10, vec![5])], None);
        assert_eq!((counter(&measured, "exact_p50"), counter(&measured, "exact_p99")), (5.0, 5.0));
        assert!(measured.counters.find("longer").is_none());
        assert_eq!(measurement(0, &[SlotTotals::default()], vec![], None), None);
    }

    #[test]
    fn calls_without_a_sample_count() {
        let more = SlotTotals { calls: 10, busy: 100, cpu: 7, end: 50 };
        let measured = measurement(0, &[more], vec![10; 4], None).expect("calls");
        assert_eq!((measured.iterations, measured.samples.count, measured.mean_real()), (10, 4, Some(10.0)));
    }
}
