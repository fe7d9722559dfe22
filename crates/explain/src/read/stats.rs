//! The driver's counters of a process.
//! Facts: contract DBG-05, DBG-06; `pages:` is missing before Linux 4.14, `ready threads` in the Rust driver.

use super::words::whole;
use crate::system::Stats;

/// Counted words that findings and loads use.
const WORDS: [&str; 11] = [
    "BC_TRANSACTION",
    "BC_TRANSACTION_SG",
    "BR_TRANSACTION",
    "BR_TRANSACTION_SEC_CTX",
    "BR_FROZEN_REPLY",
    "BR_TRANSACTION_PENDING_FROZEN",
    "BR_DEAD_REPLY",
    "BR_FAILED_REPLY",
    "BR_ONEWAY_SPAM_SUSPECT",
    "BR_DEAD_BINDER",
    "BC_DEAD_BINDER_DONE",
];

/// Takes a line without its indentation; returns whether it is one of counters.
pub(super) fn take(stats: &mut Stats, words: &[&str]) -> bool {
    match words {
        ["threads:", count] => stats.threads = whole(count),
        ["requested", "threads:", share] => {
            let (asked, most) = share.split_once('/').unwrap_or((share, ""));
            let (requested, started) = asked.split_once('+').unwrap_or((asked, ""));
            (stats.requested, stats.started, stats.most) = (whole(requested), whole(started), whole(most));
        }
        ["ready", "threads", count] => stats.ready = whole(count),
        ["free", "async" | "oneway", "space" | "space:", count] => stats.free_oneway = whole(count),
        ["nodes:", count, ..] => stats.nodes = whole(count),
        ["refs:", count, ..] => stats.refs = whole(count),
        ["buffers:", count] => stats.buffers = whole(count),
        ["pages:", counts] => {
            let counts = counts.split(':').map(|count| count.parse::<u64>().ok());
            stats.pages = counts.sum::<Option<u64>>();
        }
        ["pending" | "outstanding", "transactions:", count] => stats.pending = whole(count),
        ["pages", "high", "watermark:", _] => {}
        [word, count] if word.starts_with("BC_") || word.starts_with("BR_") => {
            let name = word.trim_end_matches(':');
            let known = WORDS.iter().find(|known| **known == name);
            if let (Some(known), Some(count)) = (known, whole(count)) {
                stats.words.insert(known, count);
            }
        }
        _ => return false,
    }
    true
}
