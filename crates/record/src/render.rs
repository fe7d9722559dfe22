//! Renderings of a record, one module each.
//! Not here: writing them, deciding on colours or terminals.

pub mod across;
mod background;
pub mod checkup;
pub mod compare;
pub mod convert;
pub mod crowd;
mod device;
pub mod flavours;
pub mod gbench;
mod grid;
pub mod history;
pub mod inheritance;
pub mod inversion;
pub mod json;
pub mod latency;
pub mod matrix;
mod overload;
pub mod permissions;
mod ratio;
mod recorder;
pub mod report;
pub mod summary;
pub mod targets;
mod verdicts;

use std::borrow::Cow;

/// Text of unknown origin with control characters escaped, so that a record cannot control the terminal that shows
/// it.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let visible = |c: char| -> Cow<'static, str> {
        match c {
            '\n' | '\r' | '\t' => Cow::Borrowed(" "),
            c if c.is_control() => Cow::Owned(c.escape_default().to_string()),
            c => Cow::Owned(c.to_string()),
        }
    };
    Cow::Owned(text.chars().map(visible).collect())
}

/// A CSV cell: control characters escaped, in quotes if it contains a comma or a quote.
pub(crate) fn csv_cell(text: &str) -> String {
    let text = printable(text);
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into_owned() }
}

/// Escapes text for Markdown, including Markdown tables.
fn in_markdown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in printable(text).chars() {
        if "|*`<[\\".contains(letter) {
            shown.push('\\');
        }
        shown.push(letter);
    }
    shown
}
