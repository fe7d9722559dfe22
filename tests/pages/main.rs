//! The pages that binderperf writes, rendered by a browser on a phone, on a desk, in light and dark, and on paper.
//! Not here: the geometry in numbers (`trace::picture`'s and `record::render::report`'s tests).
//!
//! Each check is also seen to object: a page is broken in one way, and must be found broken in that way.

mod browser;
mod picture;
mod probed;
mod report;
#[path = "../support/mod.rs"]
mod support;

/// The first piece of the page after `from` up to `to`, with what stands before it in the line.
fn piece<'p>(page: &'p str, from: &str, to: &str) -> &'p str {
    let begin = page.find(from).unwrap_or_else(|| panic!("{from} is in the page"));
    let end = page[begin..].find(to).unwrap_or_else(|| panic!("{to} comes after {from}"));
    &page[begin..begin + end + to.len()]
}

/// How much two colours, as a browser tells them, differ, as WCAG 2 has it: 1 to 21.
fn contrast(one: &str, other: &str) -> f64 {
    let luminance = |color: &str| {
        let digits = color.trim_start_matches("rgb(").trim_end_matches(')');
        let parts: Vec<f64> = digits.split(',').map(|part| part.trim().parse().expect("a colour")).collect();
        let linear = |part: f64| {
            let part = part / 255.0;
            if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(parts[0]) + 0.7152 * linear(parts[1]) + 0.0722 * linear(parts[2])
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}
