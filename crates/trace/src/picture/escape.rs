//! Room: text of a trace in a page: it may be anything, and must stay text.
//! Not here: what is written.

use std::fmt::{self, Write};

/// Text for an element or an attribute in quotes.
///
/// Control characters have no place in a page, and those that turn the direction of writing would let a name
/// rearrange the sentence around it: each becomes U+FFFD.
pub(super) struct Escaped<'t>(pub(super) &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(' ')?,
                '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}' => {
                    f.write_char('\u{fffd}')?;
                }
                _ if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {
                    f.write_char('\u{fffd}')?;
                }
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// The first so many characters, and an ellipsis if there are more.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup() {
        let hostile = "</title><script>alert('x')</script>&\"\u{202e}\u{1}\n";
        let escaped = Escaped(hostile).to_string();
        assert!(!escaped.contains(['<', '>', '"', '\'', '\u{202e}', '\u{1}', '\n']), "{escaped}");
        assert_eq!(Escaped("a & b").to_string(), "a &amp; b");
        assert_eq!(Escaped("Binder:12_1").to_string(), "Binder:12_1");
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(cut("Binder:12_1", 11), "Binder:12_1");
        assert_eq!(cut("Binder:12_1", 5), "Bind…");
        assert_eq!(cut("äöü", 2), "ä…");
    }
}
