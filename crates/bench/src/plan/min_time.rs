//! Length of a repetition: a minimum time or a fixed number of iterations.
//! Not here: finding the number of iterations for that time (`crate::run::search`).
//! Facts: `--benchmark_min_time` of Google Benchmark since 1.8: `0.5s`, `100x`; a bare number is seconds, as
//! before 1.8.

use std::fmt;
use std::str::FromStr;

use record::HostClass;

/// Length of a repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MinTime {
    /// Minimum wall-clock time, seconds.
    Seconds(f64),
    /// Exactly this many iterations.
    Iterations(u64),
}

impl Default for MinTime {
    fn default() -> Self {
        Self::Seconds(0.5)
    }
}

impl MinTime {
    /// Returns the default for a machine: half a second, as in Google Benchmark; a tenth of that where
    /// instructions are counted, because every round trip costs the same there and an emulator takes seconds
    /// for half a billion of them.
    #[must_use]
    pub fn usual(class: HostClass) -> Self {
        match class {
            HostClass::Icount => Self::Seconds(0.05),
            _ => Self::default(),
        }
    }
}

/// Maximum number of iterations in one repetition (Google Benchmark's own limit).
pub(crate) const MOST_ITERATIONS: u64 = 1_000_000_000;

impl FromStr for MinTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(count) = text.strip_suffix('x') {
            return match count.parse() {
                Ok(count @ 1..=MOST_ITERATIONS) => Ok(Self::Iterations(count)),
                _ => Err(format!("{text:?} is no count of iterations: use 1x to {MOST_ITERATIONS}x")),
            };
        }
        match text.strip_suffix('s').unwrap_or(text).parse::<f64>() {
            Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(Self::Seconds(seconds)),
            _ => Err(format!("{text:?} is neither a time like 0.5s nor a count like 100x")),
        }
    }
}

impl fmt::Display for MinTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(seconds) => write!(f, "{seconds}s"),
            Self::Iterations(count) => write!(f, "{count}x"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_min_time() {
        for (text, want) in [
            ("0.5s", MinTime::Seconds(0.5)),
            ("2", MinTime::Seconds(2.0)),
            ("1e-3s", MinTime::Seconds(0.001)),
            ("0", MinTime::Seconds(0.0)),
            ("100x", MinTime::Iterations(100)),
        ] {
            assert_eq!(text.parse(), Ok(want), "{text}");
        }
        for bad in ["", "s", "x", "0x", "-1", "1.5x", "nan", "inf", "2000000000x", "10 s", "5ms"] {
            assert!(bad.parse::<MinTime>().is_err(), "{bad}");
        }
    }
}
