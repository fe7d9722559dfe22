//! Room: numbers as a report writes them: three digits that count, with their unit.
//! Not here: tables.

use crate::schema::{ClockUnit, Run};

/// A reading of a run's clock: `3.08 us`, `41.2 ms`, `812 insns`.
pub(super) fn time(run: &Run, value: f64) -> String {
    match run.clock.unit {
        ClockUnit::Instructions => format!("{value:.0} insns"),
        ClockUnit::Ns => nanoseconds(value),
    }
}

/// `3.08 us`.
pub(super) fn nanoseconds(value: f64) -> String {
    let (unit, one) = match value.abs() {
        v if v < 999.5 => ("ns", 1.0),
        v if v < 999.5e3 => ("us", 1e3),
        v if v < 999.5e6 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    format!("{} {unit}", digits(value / one))
}

/// Three digits that count, none behind the point of what is large.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// `4 B`, `64 KiB`, `1 MiB`; what is no round number of a larger unit stays in the smaller one.
pub(super) fn bytes(value: u64) -> String {
    match value {
        v if v >= 1 << 20 && v.is_multiple_of(1 << 20) => format!("{} MiB", v >> 20),
        v if v >= 1 << 10 && v.is_multiple_of(1 << 10) => format!("{} KiB", v >> 10),
        v => format!("{v} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_count_and_the_unit_follows() {
        for (value, want) in [
            (0.0, "0.00 ns"),
            (812.4, "812 ns"),
            (999.6, "1.00 us"),
            (3_081.0, "3.08 us"),
            (41_240.0, "41.2 us"),
            (999_600.0, "1.00 ms"),
            (2.5e9, "2.50 s"),
        ] {
            assert_eq!(nanoseconds(value), want);
        }
        let sizes = [0, 4, 1023, 1024, 1536, 65_536, 1 << 20].map(bytes);
        assert_eq!(sizes, ["0 B", "4 B", "1023 B", "1 KiB", "1536 B", "64 KiB", "1 MiB"]);
    }
}
