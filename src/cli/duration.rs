//! A length of time as typed: `90`, `90s`, `5m`, `1h`.

use std::time::Duration;

use super::A_YEAR_S;

/// Parses a time such as `90`, `90s`, `5m` or `1h`.
///
/// # Errors
/// It is no such time, or longer than a year.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
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
}
