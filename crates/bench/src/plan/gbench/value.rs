//! Parsers for the value after a flag's `=`.
//! Not here: which flag has which (`super`).

use record::formats::gbench::{Format, TimeUnit};

use super::Color;

/// Maximum number of repetitions that fit a readable record.
const MOST_REPETITIONS: u32 = 10_000;

/// Parses on or off; a flag without a value is on.
pub(super) fn switch(text: Option<&str>) -> Result<bool, String> {
    let Some(text) = text else { return Ok(true) };
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" => Ok(true),
        "false" | "f" | "no" | "n" | "off" | "0" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

pub(super) fn color(text: Option<&str>) -> Result<Color, String> {
    if text.is_some_and(|text| text.eq_ignore_ascii_case("auto")) {
        return Ok(Color::Auto);
    }
    match switch(text) {
        Ok(true) => Ok(Color::Yes),
        Ok(false) => Ok(Color::No),
        Err(_) => Err(format!("{:?} is none of auto, true, false", text.unwrap_or_default())),
    }
}

pub(super) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
        _ => Err(format!("{text:?} is no number of seconds")),
    }
}

pub(super) fn count(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(count @ 1..=MOST_REPETITIONS) => Ok(count),
        _ => Err(format!("{text:?} is no number from 1 to {MOST_REPETITIONS}")),
    }
}

pub(super) fn format(text: &str) -> Result<Format, String> {
    match text {
        "console" => Ok(Format::Console),
        "json" => Ok(Format::Json),
        "csv" => Ok(Format::Csv),
        _ => Err(format!("{text:?} is none of console, json, csv")),
    }
}

pub(super) fn time_unit(text: &str) -> Result<Option<TimeUnit>, String> {
    match text {
        "" => Ok(None),
        "ns" => Ok(Some(TimeUnit::Ns)),
        "us" => Ok(Some(TimeUnit::Us)),
        "ms" => Ok(Some(TimeUnit::Ms)),
        "s" => Ok(Some(TimeUnit::S)),
        _ => Err(format!("{text:?} is none of ns, us, ms, s")),
    }
}

pub(super) fn list(text: &str) -> Vec<String> {
    text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Parses `key=value,key=value`; a value may contain further `=`.
pub(super) fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let pair = |part: &str| match part.split_once('=') {
        // Android's test runner takes any key with this ending for a measured time.
        Some((key, _)) if key.ends_with("time") => {
            Err(format!("the key {key:?} ends in \"time\", which harnesses take for a measurement"))
        }
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{part:?} is not KEY=VALUE")),
    };
    text.split(',').filter(|part| !part.is_empty()).map(pair).collect()
}
