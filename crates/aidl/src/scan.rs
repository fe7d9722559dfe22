//! A first look at a file's text: its documentation comments, which the grammar skips, and how deeply its brackets nest.

use std::collections::BTreeMap;

use crate::error::Fault;
use crate::tree::At;

/// Brackets inside each other that are taken. The parser calls itself for each.
const DEEPEST: usize = 64;

/// Documentation comments by where they end.
#[derive(Debug, Default)]
pub(crate) struct Comments(BTreeMap<usize, Vec<String>>);

impl Comments {
    /// The comment in front of what begins at `offset`, as lines.
    pub(crate) fn before(&self, text: &str, offset: usize) -> Vec<String> {
        let Some((end, lines)) = self.0.range(..=offset).next_back() else { return Vec::new() };
        let is_next = text[*end..offset].trim().is_empty();
        if is_next { lines.clone() } else { Vec::new() }
    }
}

/// Looks through a file.
///
/// # Errors
/// Its brackets nest too deeply.
pub(crate) fn scan(text: &str, file: usize) -> Result<Comments, Fault> {
    let mut comments = Comments::default();
    let (mut at, mut deep, mut angles) = (0, 0_usize, 0);
    while let Some(byte) = text.as_bytes().get(at) {
        let rest = &text.as_bytes()[at..];
        let past = |end: &str, from: usize| {
            text[at + from..].find(end).map_or(text.len(), |found| at + from + found + end.len())
        };
        at = match byte {
            b'/' if rest.starts_with(b"//") => past("\n", 2),
            b'/' if rest.starts_with(b"/*") => {
                let end = past("*/", 2);
                if rest.starts_with(b"/**") && end > at + 4 {
                    comments.0.insert(end, lines(&text[at..end]));
                }
                end
            }
            b'"' => past("\"", 1),
            b'\'' => at + character(&text[at..]).unwrap_or(1),
            b'<' if rest.starts_with(b"<<") => at + 2,
            _ => {
                match byte {
                    b'(' | b'[' | b'{' => deep += 1,
                    b')' | b']' | b'}' => deep = deep.saturating_sub(1),
                    b'<' => angles += 1,
                    _ => {}
                }
                // A `<` between expressions closes nowhere.
                if matches!(byte, b';' | b'{' | b'}') {
                    angles = 0;
                }
                if deep.max(angles) > DEEPEST {
                    let what = format!("more than {DEEPEST} brackets inside each other");
                    return Err(Fault::new(At { file, offset: at }, what, "write it flatter"));
                }
                at + 1
            }
        };
    }
    Ok(comments)
}

/// The length of the character that a text begins with, in its quotes.
fn character(text: &str) -> Option<usize> {
    let (at, _) = text.char_indices().nth(2).filter(|(_, letter)| *letter == '\'')?;
    Some(at + 1)
}

/// A comment's lines without the marks around them. Indentation goes, and code fences: `rustdoc` would run what they mark.
fn lines(comment: &str) -> Vec<String> {
    let inside = comment.trim_start_matches("/**").trim_end_matches("*/");
    let plain = |line: &str| {
        let line = line.trim();
        line.strip_prefix('*').unwrap_or(line).trim().replace("```", "'''").replace("~~~", "'''")
    };
    let lines: Vec<String> = inside.lines().map(plain).collect();
    let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(lines.len());
    let last = lines.iter().rposition(|line| !line.is_empty()).map_or(first, |last| last + 1);
    lines[first..last].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_belongs_to_what_follows_it() {
        let text =
            "/** One.\n *\n *     Two ```x```.\n * ~~~\n */ // more\n a /** Three. */ b \"/** no */\" /**/ c";
        let comments = scan(text, 0).expect("flat");
        let before = |word: &str| comments.before(text, text.find(word).expect("it is there"));
        assert_eq!(
            comments.before(text, text.find(" // more").expect("there") + 1),
            ["One.", "", "Two '''x'''.", "'''"]
        );
        assert_eq!(before("b \""), ["Three."]);
        assert!(before(" c").is_empty() && before("a /**").is_empty() && comments.0.len() == 2);
    }

    #[test]
    fn quotes_and_brackets_as_characters_are_neither() {
        let text = "'\"' /** One. */ a '\"' ''' \"'\" /** Two. */ b 'é' 'x";
        let comments = scan(text, 0).expect("flat");
        let before = |word: &str| comments.before(text, text.find(word).expect("it is there"));
        assert_eq!((before("a '"), before("b 'é")), (vec!["One.".to_owned()], vec!["Two.".to_owned()]));
        assert!(scan(&"'(' '<' ".repeat(100), 0).is_ok());
        assert!(scan(&format!("'\"' {}", "(".repeat(65)), 0).is_err());
    }

    #[test]
    fn deep_nesting_is_refused() {
        for open in ["(", "[", "{", "A<"] {
            assert!(scan(&open.repeat(64), 0).is_ok(), "{open}");
            assert!(scan(&open.repeat(65), 0).is_err(), "{open}");
        }
        assert!(scan(&"a = 1 << 2 | ".repeat(100), 0).is_ok() && scan(&"x < y;".repeat(100), 0).is_ok());
    }
}
