//! Room: taking `key=value` words out of an event's text, from left to right.

use super::place;
use crate::event::{Name, Names, Place, Prio, Task};
use crate::number;

/// A text, and how far it was read.
#[derive(Debug)]
pub(super) struct Cut<'t> {
    rest: &'t [u8],
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    // Mostly the key comes next, behind a space at most.
    if text.starts_with(what) {
        return Some(0);
    }
    if text.get(1..).is_some_and(|text| text.starts_with(what)) {
        return Some(1);
    }
    text.windows(what.len()).position(|window| window == what)
}

impl<'t> Cut<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self { rest: text }
    }

    /// What is between a key and the next one; reading goes on at the next one.
    pub(super) fn text(&mut self, key: &[u8], until: &[u8]) -> Option<&'t [u8]> {
        let start = find(self.rest, key)? + key.len();
        let rest = self.rest.get(start..)?;
        let end = rest.windows(until.len()).position(|window| window == until)?;
        self.rest = rest.get(end..)?;
        rest.get(..end)
    }

    /// The word behind a key; reading goes on behind it.
    pub(super) fn word_of(&mut self, key: &[u8]) -> Option<&'t [u8]> {
        let start = find(self.rest, key)? + key.len();
        let rest = self.rest.get(start..)?;
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        self.rest = rest.get(end..)?;
        rest.get(..end)
    }

    pub(super) fn long(&mut self, key: &[u8]) -> Option<i64> {
        number::any(self.word_of(key)?)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the kernel prints some words as longs; the low 32 bits are meant"
    )]
    pub(super) fn int(&mut self, key: &[u8]) -> Option<i32> {
        self.long(key).map(|value| value as i32)
    }

    pub(super) fn word(&mut self, key: &[u8]) -> Option<u32> {
        self.int(key).map(i32::cast_unsigned)
    }

    /// An address, with or without `0x`, perhaps followed by a colon.
    pub(super) fn address(&mut self, key: &[u8]) -> Option<u64> {
        let word = self.word_of(key)?;
        let word = word.strip_suffix(b":").unwrap_or(word);
        number::hex(word.strip_prefix(b"0x").unwrap_or(word))
    }

    /// A place in the kernel's code.
    pub(super) fn place(&mut self, key: &[u8], names: &mut Names) -> Option<Place> {
        let start = find(self.rest, key)? + key.len();
        Some(place(self.rest.get(start..)?, names))
    }

    /// Everything behind a key, as a name.
    pub(super) fn rest(&mut self, key: &[u8], names: &mut Names) -> Option<Name> {
        let start = find(self.rest, key)? + key.len();
        Some(names.intern_bytes(self.rest.get(start..)?.trim_ascii_end()))
    }

    /// What stands in the last round brackets, as a name.
    pub(super) fn bracketed(&mut self, names: &mut Names) -> Option<Name> {
        let text = self.rest.trim_ascii_end().strip_suffix(b")")?;
        let start = text.iter().rposition(|byte| *byte == b'(')?;
        Some(names.intern_bytes(text.get(start + 1..)?))
    }

    /// `COMM:TID [PRIO]` at the start, and what follows it. Names may have colons and spaces.
    pub(super) fn short_task(&mut self, names: &mut Names) -> Option<(Task, &'t [u8])> {
        let bracket = self.rest.windows(2).position(|window| window == b" [")?;
        let (name, rest) = (self.rest.get(..bracket)?.trim_ascii(), self.rest.get(bracket + 2..)?);
        let colon = name.iter().rposition(|byte| *byte == b':')?;
        let close = rest.iter().position(|byte| *byte == b']')?;
        let number = |text: &[u8]| number::any(text).and_then(|value| i32::try_from(value).ok());
        let (tid, prio) = (number(name.get(colon + 1..)?)?, number(rest.get(..close)?)?);
        Some((
            Task { tid, comm: names.intern_bytes(&name[..colon]), prio: Prio(prio) },
            rest.get(close + 1..)?,
        ))
    }
}
