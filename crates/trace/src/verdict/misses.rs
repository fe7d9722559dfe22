//! Misses that a test marked in the trace, and the rebuilt calls that they belong to.
//! Not here: writing such marks (crate `bench`), misses of the options' deadline (`verdict`).
//!
//! A caller's clock starts before the transaction and ends after it, so a call can miss its deadline by that clock
//! and meet it by the trace clock.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::MOST_MISSES;
use crate::event::{Event, Kind, Mark};
use crate::model::Transaction;

/// Maximum number of threads whose last call is kept; tests have a few.
const MOST_THREADS: usize = 4096;

/// Miss reported by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedMiss {
    /// Duration of the call by the caller's clock, in nanoseconds.
    pub took_ns: u64,
    /// Deadline that it missed, in nanoseconds.
    pub deadline_ns: u64,
}

/// Calls that may still be reported as a miss, and the slowest of those that were.
#[derive(Clone, Debug, Default)]
pub(super) struct Misses {
    /// Last call with a label, per thread.
    last: HashMap<i32, Transaction>,
    pub(super) misses: Vec<(Transaction, ReportedMiss)>,
    /// Words of marks whose call is not in the trace.
    pub(super) strays: Vec<String>,
}

impl Misses {
    /// Remembers an ended call.
    pub(super) fn ended(&mut self, call: &Transaction) {
        let room = self.last.len() < MOST_THREADS || self.last.contains_key(&call.client.tid);
        if call.label.is_some() && room {
            self.last.insert(call.client.tid, call.clone());
        }
    }

    /// Handles a mark that reports a miss; returns the call that missed.
    pub(super) fn marked(&mut self, event: &Event) -> Option<&Transaction> {
        let Kind::Print(text) = &event.kind else { return None };
        let mark = Mark::parse(text)?;
        let Mark::Own { verb: "miss", rest } = mark else { return None };
        let number = |key| mark.value(key)?.parse().ok();
        let miss = ReportedMiss { took_ns: number("took_ns")?, deadline_ns: number("deadline_ns")? };
        // The mark's words begin with the call's label.
        let begins = |label: &str| rest.strip_prefix(label).is_some_and(|more| more.starts_with(' '));
        let is_it = |call: &Transaction| call.label.as_deref().is_some_and(begins);
        let Some(call) = self.last.remove(&event.tid).filter(is_it) else {
            if self.strays.len() < MOST_MISSES {
                self.strays.push(rest.to_owned());
            }
            return None;
        };
        if self.misses.len() >= 2 * MOST_MISSES {
            self.misses.sort_unstable_by_key(|(_, miss)| std::cmp::Reverse(miss.took_ns));
            self.misses.truncate(MOST_MISSES);
        }
        self.misses.push((call, miss));
        self.misses.last().map(|(call, _)| call)
    }
}
