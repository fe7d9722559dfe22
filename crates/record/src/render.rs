//! Room: a `Run` as something to look at; one submodule per look.
//! Not here: writing it anywhere, deciding on colours or terminals.

pub mod checkup;
pub mod compare;
pub mod convert;
pub mod crowd;
pub mod flavours;
pub mod gbench;
mod grid;
pub mod history;
pub mod inheritance;
pub mod inversion;
pub mod json;
pub mod latency;
mod ratio;
pub mod report;
pub mod summary;

use std::borrow::Cow;

/// Text of unknown origin with its control characters made visible, so that a record cannot
/// steer the terminal that shows it.
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

/// Text that Markdown shows as it is, in a table too.
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
