//! Times and shares as they are typed: `90`, `90s`, `5m`, `1h`; `5%`.
//! Not here: how they are written (`super`).

use std::str::FromStr;
use std::time::Duration;

/// The largest time limit in seconds: longer than any run, and sums never overflow.
pub const A_YEAR_S: u64 = 365 * 24 * 3600;

/// Parses a time such as `90`, `90s`, `5m` or `1h`.
///
/// # Errors
/// It is no such time, or longer than a year.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("{text:?} is no time such as 90s, 5m or 1h")),
    };
    let seconds = digits.parse::<f64>().ok().map(|number| number * unit);
    let seconds = seconds.filter(|seconds| (0.0..=A_YEAR_S as f64).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| format!("{text:?} is no time such as 90s, 5m or 1h"))
}

/// A share, given in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent(
    /// The share, 1 for all.
    pub f64,
);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text).trim_end().parse::<f64>();
        let percent = number.ok().filter(|percent| (0.0..=10_000.0).contains(percent));
        percent.map(|percent| Self(percent / 100.0)).ok_or_else(|| format!("{text:?} is no share such as 5%"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, seconds) in [("90", 90.0), ("1.5s", 1.5), ("5m", 300.0), ("1h", 3600.0), ("0", 0.0)] {
            assert_eq!(duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for bad in ["", "m", "-1", "5 minutes", "1d", "nan", "1e99"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares_are_typed_in_percent() {
        for (text, share) in [("5%", 0.05), ("5", 0.05), ("0.5 %", 0.005), ("150%", 1.5), ("0%", 0.0)] {
            assert_eq!(text.parse(), Ok(Percent(share)), "{text}");
        }
        for bad in ["", "%", "five", "-1%", "nan", "inf%", "5%%"] {
            assert!(bad.parse::<Percent>().is_err(), "{bad}");
        }
    }
}
