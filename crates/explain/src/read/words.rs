//! Values in the driver's lines by the word before them: which words a line has depends on the kernel, their order does not.
//! Not here: which line has which words.

use std::str::FromStr;

use crate::system::Id;

/// The word behind another.
pub(super) fn after<'l>(words: &[&'l str], name: &str) -> Option<&'l str> {
    let at = words.iter().position(|word| *word == name)?;
    words.get(at + 1).copied()
}

/// The number behind a word; punctuation at its end is ignored.
pub(super) fn number<N: FromStr>(words: &[&str], name: &str) -> Option<N> {
    whole(after(words, name)?)
}

/// A number, perhaps with punctuation behind it.
pub(super) fn whole<N: FromStr>(word: &str) -> Option<N> {
    word.trim_end_matches([',', ':', '.', ';', ')']).parse().ok()
}

pub(super) fn hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
}

/// Numbers with colons between them.
pub(super) fn parts(word: &str) -> Option<Vec<u64>> {
    word.split(':').map(|part| part.parse().ok()).collect()
}

/// `PID:TID`, or `PID` alone.
pub(super) fn id(word: &str) -> Option<Id> {
    let word = word.trim_end_matches([',', ':', '.']);
    match word.split_once(':') {
        Some((pid, tid)) => Some(Id { pid: pid.parse().ok()?, tid: tid.parse().ok()? }),
        None => Some(Id { pid: word.parse().ok()?, tid: 0 }),
    }
}

/// `DATA-OFFSETS`, in bytes.
pub(super) fn size(word: &str) -> Option<(u64, u64)> {
    let (data, offsets) = word.trim_end_matches(',').split_once('-')?;
    Some((data.parse().ok()?, offsets.parse().ok()?))
}

/// A part of a buffer as the driver rounds it.
pub(super) fn rounded(bytes: u64) -> u64 {
    bytes.saturating_add(7) & !7
}
