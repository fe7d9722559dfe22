//! What a probe, a script in a page, has told: boxes in pixels, texts.
//! Not here: what is wrong with it (each page's `checks`).

use serde_json::Value;

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} of {value}"))
}

pub(crate) fn word<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}"))
}

pub(crate) fn overlap(one: &Value, other: &Value) -> bool {
    let apart = |low: &str, high: &str| {
        number(one, high) <= number(other, low) || number(other, high) <= number(one, low)
    };
    !apart("left", "right") && !apart("top", "bottom")
}
