//! Entries of `transaction_log` and `failed_transaction_log`.
//! Facts: contract DBG-04. Linux 3.18 writes no result.

use super::words::{after, id, number, parts, whole};
use crate::system::{Driver, Refusal, Sort};

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Number of the transaction, the same in both files and in the kernel's log.
    pub(super) id: i64,
    /// `None` if the driver did not refuse it, or does not say.
    pub(super) refusal: Option<Refusal>,
}

/// Reads a line as an entry.
pub(super) fn entry(line: &str) -> Option<Entry> {
    if !line.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let [number_word, sort, "from", from, "to", to, ..] = words.as_slice() else { return None };
    let entry_id = number_word.strip_suffix(':')?.parse().ok()?;
    let sort = match *sort {
        "call" => Sort::Call,
        "async" => Sort::Oneway,
        "reply" => Sort::Reply,
        _ => return None,
    };
    let (from, to) = (id(from)?, id(to)?);
    let result = after(&words, "ret").and_then(|result| {
        let (word, errno) = result.split_once('/')?;
        Some((word.parse::<u32>().ok()?, errno.parse::<i32>().ok()?))
    });
    let sizes = after(&words, "size").and_then(parts).unwrap_or_default();
    let line = words.iter().find_map(|word| word.strip_prefix("l=")).and_then(whole);
    let refusal = result.filter(|(word, _)| *word != 0).map(|(word, errno)| Refusal {
        driver: Driver::C,
        sort,
        word,
        errno: Some(errno),
        from,
        to: to.pid,
        line: line.unwrap_or(0),
        handle: number(&words, "handle"),
        node: number(&words, "node").unwrap_or(0),
        size: sizes.first().copied().zip(sizes.get(1).copied()),
        ..Refusal::default()
    });
    Some(Entry { id: entry_id, refusal })
}
