//! Nearest-rank percentiles, the text form of durations, rates, sizes and instruction counts, and of text of unknown origin.
//! Not here: the number formats of Google Benchmark's and Android's JSON (`record`).

#![forbid(unsafe_code)]

pub mod typed;
pub mod visible;

/// Rank, from 1, of a nearest-rank percentile among `count` ascending values: the first value that at least `percent`
/// of the values do not exceed. 0 without values.
#[must_use]
pub fn rank(count: u64, percent: f64) -> u64 {
    // Multiplied first: for whole percentages only the division rounds.
    let rank = (percent.clamp(0.0, 100.0) * count as f64 / 100.0).ceil() as u64;
    rank.clamp(count.min(1), count)
}

/// The nearest-rank percentile of ascending values; `None` without values.
pub fn percentile<T: Copy>(ascending: &[T], percent: f64) -> Option<T> {
    let rank = rank(ascending.len() as u64, percent);
    ascending.get(usize::try_from(rank).ok()?.checked_sub(1)?).copied()
}

/// A duration in nanoseconds with three significant digits: `3.08 us`, `41.2 ms`; whole nanoseconds stay whole.
#[must_use]
pub fn duration(ns: f64) -> String {
    let (unit, one) = match ns.abs() {
        size if size < 999.5 && ns.fract() == 0.0 => return format!("{ns:.0} ns"),
        size if size < 999.5 => ("ns", 1.0),
        size if size < 999.5e3 => ("us", 1e3),
        size if size < 999.5e6 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    format!("{} {unit}", significant(ns / one))
}

/// A round duration without trailing zeros, for axes, limits and settings: `100 us`, `2.5 ms`.
#[must_use]
pub fn round_duration(ns: f64) -> String {
    let text = duration(ns);
    match text.split_once(' ') {
        Some((number, unit)) => format!("{} {unit}", without_zeros(number)),
        None => text,
    }
}

/// Calls per second: `1250 calls/s`, `0.5 calls/s`.
#[must_use]
pub fn rate(per_second: f64) -> String {
    if per_second.fract() == 0.0 || per_second >= 99.5 {
        return format!("{per_second:.0} calls/s");
    }
    format!("{} calls/s", without_zeros(&significant(per_second)))
}

/// Bytes per second in decimal units: `114 kB/s`, `2.21 GB/s`.
#[must_use]
pub fn byte_rate(per_second: f64) -> String {
    let (unit, one) = match per_second {
        size if size < 999.5 => ("B/s", 1.0),
        size if size < 999.5e3 => ("kB/s", 1e3),
        size if size < 999.5e6 => ("MB/s", 1e6),
        _ => ("GB/s", 1e9),
    };
    format!("{} {unit}", significant(per_second / one))
}

/// A count with its noun, which takes an `s` unless the count is 1: `1 call`, `2 calls`.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A decimal number without zeros at its end: `2.5`, `100`.
#[must_use]
pub fn without_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// A number of CPU instructions: `812 insns`.
#[must_use]
pub fn instructions(count: f64) -> String {
    format!("{count:.0} {INSTRUCTIONS}")
}

/// Unit of instruction counts.
pub const INSTRUCTIONS: &str = "insns";

/// A size in the largest unit of which it is a whole multiple: `4 B`, `64 KiB`, `1 MiB`.
#[must_use]
pub fn bytes(value: u64) -> String {
    match value {
        _ if value >= 1 << 20 && value.is_multiple_of(1 << 20) => format!("{} MiB", value >> 20),
        _ if value >= 1 << 10 && value.is_multiple_of(1 << 10) => format!("{} KiB", value >> 10),
        _ => format!("{value} B"),
    }
}

/// Three significant digits, without decimals from 100 on.
fn significant(value: f64) -> String {
    match value.abs() {
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_rates_and_counts_are_as_people_write_them() {
        for (per_second, want) in
            [(8.0, "8.00 B/s"), (114_328.0, "114 kB/s"), (305.1e6, "305 MB/s"), (2.214e9, "2.21 GB/s")]
        {
            assert_eq!(byte_rate(per_second), want);
        }
        assert_eq!([0, 1, 2].map(|count| counted(count, "call")), ["0 calls", "1 call", "2 calls"]);
    }

    #[test]
    fn percentiles_are_the_nearest_rank() {
        let thousand: Vec<u64> = (1..=1000).collect();
        for (percent, want) in [(0.0, 1), (7.0, 70), (50.0, 500), (99.0, 990), (99.9, 999), (100.0, 1000)] {
            assert_eq!(percentile(&thousand, percent), Some(want), "{percent}");
        }
        assert_eq!((percentile(&[1, 2], 50.0), percentile(&[1, 2, 3], 50.0)), (Some(1), Some(2)));
        assert_eq!((percentile(&[7], 99.0), percentile(&[7], -3.0)), (Some(7), Some(7)));
        assert_eq!((percentile::<u64>(&[], 50.0), rank(0, 50.0)), (None, 0));
        // Compares every whole percentage of every count with integer arithmetic.
        for count in 1..=1000_u64 {
            for percent in 1..=100_u64 {
                assert_eq!(
                    rank(count, percent as f64),
                    (count * percent).div_ceil(100),
                    "{percent} of {count}"
                );
            }
        }
    }

    #[test]
    fn three_digits_count_and_the_unit_follows() {
        for (ns, want) in [
            (0.0, "0 ns"),
            (7.0, "7 ns"),
            (7.25, "7.25 ns"),
            (812.4, "812 ns"),
            (999.6, "1.00 us"),
            (3_081.0, "3.08 us"),
            (41_240.0, "41.2 us"),
            (99_960.0, "100 us"),
            (999_600.0, "1.00 ms"),
            (2.5e9, "2.50 s"),
            (-1_500.0, "-1.50 us"),
        ] {
            assert_eq!(duration(ns), want);
        }
        assert_eq!([100.0, 100e3, 2.5e6, 30e9].map(round_duration), ["100 ns", "100 us", "2.5 ms", "30 s"]);
        assert_eq!(
            [0.5, 12.34, 1250.0, 1250.4].map(rate),
            ["0.5 calls/s", "12.3 calls/s", "1250 calls/s", "1250 calls/s"]
        );
        assert_eq!(instructions(812.4), "812 insns");
        let sizes = [0, 4, 1023, 1024, 1536, 65_536, 1 << 20].map(bytes);
        assert_eq!(sizes, ["0 B", "4 B", "1023 B", "1 KiB", "1536 B", "64 KiB", "1 MiB"]);
    }
}
