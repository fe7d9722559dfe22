//! Options about what a whole test is put under: little memory, clamped utilization, another scheduler.
//! Not here: putting it under them (`bench::constraints`).

use bench::constraints::Wanted;
use clap::Args;

/// Constraints of a test.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct ConstraintArgs {
    /// Keep all processes of the test and the driver's buffers within so much memory, as 64M: needs root and cgroup v2
    #[arg(long, help_heading = "Constraints", value_name = "BYTES", value_parser = size)]
    memory: Option<u64>,

    /// Clamp the utilization that the scheduler assumes of the test's threads, of 1024, as 0:512
    #[arg(long, help_heading = "Constraints", value_name = "MIN:MAX", value_parser = range)]
    uclamp: Option<Range>,

    /// Have sched_ext schedule all ordinary threads of the machine, in one queue: needs root and Linux 6.12 or newer
    #[arg(long, help_heading = "Constraints")]
    sched_ext: bool,
}

/// Least and most utilization.
type Range = [u32; 2];

impl ConstraintArgs {
    /// The constraints that are asked for.
    pub(crate) fn wanted(self) -> Wanted {
        Wanted { memory_bytes: self.memory, utilization: self.uclamp, sched_ext: self.sched_ext }
    }
}

/// Least memory that may be asked for, in bytes: less does not hold this program.
const LEAST: u64 = 8 << 20;

/// A number of bytes such as `67108864`, `64M` or `1G`.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit: Option<u64> = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        "g" | "gib" => Some(1 << 30),
        _ => None,
    };
    let bytes = digits.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    let bytes = bytes.filter(|bytes| (LEAST..=u64::MAX >> 12).contains(bytes));
    bytes.ok_or_else(|| format!("{text:?} is no size of 8M or more such as 64M or 1G"))
}

/// Two numbers such as `0:512`.
fn range(text: &str) -> Result<Range, String> {
    const ALL: u32 = 1024;
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number <= ALL);
    let found = text.split_once(':').and_then(|(min, max)| Some([number(min)?, number(max)?]));
    found
        .filter(|[min, max]| min <= max)
        .ok_or_else(|| format!("{text:?} is no range MIN:MAX within 0:{ALL}, as 0:512"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_ranges_are_read_and_nonsense_is_refused() {
        for (text, bytes) in [("8388608", 8 << 20), ("64M", 64 << 20), ("2GiB", 2 << 30), ("9216k", 9 << 20)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for bad in
            ["", "M", "0", "8191K", "-1M", "1.5G", "64 M", "64X", "18446744073709551615", "99999999999G"]
        {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert_eq!(range("0:1024"), Ok([0, 1024]));
        for bad in ["", "5", "512:0", "0:1025", "-1:5", "a:b", "0:512:3"] {
            assert!(range(bad).is_err(), "{bad}");
        }
    }
}
