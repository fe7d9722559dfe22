//! Text of unknown origin, as a terminal may get it: what would steer the terminal becomes visible instead.
//! Not here: who writes to terminals (the command line, in one place).
//! Facts: ECMA-48: the controls are U+0000 to U+001F, U+007F and U+0080 to U+009F; ESC begins sequences. Unicode Standard
//! Annex 9: the marks that turn the direction of text around, which makes it read as what it is not.

use std::borrow::Cow;

/// Whether a terminal obeys this character instead of showing it.
#[must_use]
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text of several lines: all that steers a terminal, but line feeds and tabs, as `\u001b`. Such an escape is right inside a
/// string of JSON, too, where the control characters above U+007E may stand as they are.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, |c| (steers(c) && c != '\n' && c != '\t').then(|| escaped(c)))
}

/// The same for a text that stays one line: line feeds, carriage returns and tabs become blanks.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    shown(text, |c| match c {
        '\n' | '\r' | '\t' => Some(" ".to_owned()),
        c => steers(c).then(|| escaped(c)),
    })
}

fn escaped(c: char) -> String {
    format!("\\u{:04x}", u32::from(c))
}

fn shown(text: &str, replaced: impl Fn(char) -> Option<String>) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match replaced(c) {
            Some(other) => shown += &other,
            None => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal() {
        let hostile = "a\u{1b}[2J\u{7}\u{7f}\u{9b}2J\r\u{202e}b\tc\nd";
        assert_eq!(visible(hostile), "a\\u001b[2J\\u0007\\u007f\\u009b2J\\u000d\\u202eb\tc\nd");
        assert_eq!(printable(hostile), "a\\u001b[2J\\u0007\\u007f\\u009b2J \\u202eb c d");
        assert!(!visible(hostile).contains(|c| steers(c) && c != '\n' && c != '\t'));
        assert!(matches!(visible("plain äöü 日本"), Cow::Borrowed(_)));
        let twice = visible(hostile).into_owned();
        assert_eq!(visible(&twice), twice);
    }
}
