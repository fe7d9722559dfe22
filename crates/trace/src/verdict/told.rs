//! Room: misses that a test marked in the trace itself: which rebuilt call each of them is.
//! Not here: writing such marks (the laboratory's), misses by a deadline that was asked for (`verdict`).
//!
//! A caller's clock runs from before the transaction until after it, so that a call can miss its deadline by that
//! clock and meet it by the trace's.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::event::{Event, Kind, Mark};
use crate::model::Transaction;

/// The most threads whose last call is kept; tests have a few.
const MOST_THREADS: usize = 4096;

/// A miss as the caller told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// How long the call took by the caller's clock.
    pub took_ns: u64,
    /// The deadline that it missed.
    pub deadline_ns: u64,
}

/// Calls that misses may be told of, and those that were.
#[derive(Clone, Debug, Default)]
pub(super) struct Misses {
    /// Each thread's last call with a label.
    last: HashMap<i32, Transaction>,
    pub(super) told: Vec<(Transaction, Told)>,
    /// Words of marks whose call is not in the trace.
    pub(super) strays: Vec<String>,
    most: usize,
}

impl Misses {
    /// At most so many are kept, the slowest.
    pub(super) fn keeping(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// A call has ended.
    pub(super) fn ended(&mut self, call: &Transaction) {
        let room = self.last.len() < MOST_THREADS || self.last.contains_key(&call.client.tid);
        if call.label.is_some() && room {
            self.last.insert(call.client.tid, call.clone());
        }
    }

    /// A mark may tell of a miss; gives the call that missed.
    pub(super) fn marked(&mut self, event: &Event) -> Option<&Transaction> {
        let Kind::Print(text) = &event.kind else { return None };
        let mark = Mark::parse(text)?;
        let Mark::Own { verb: "miss", rest } = mark else { return None };
        let number = |key| mark.value(key)?.parse().ok();
        let told = Told { took_ns: number("took_ns")?, deadline_ns: number("deadline_ns")? };
        // Its words begin with those of the call.
        let begins = |label: &str| rest.strip_prefix(label).is_some_and(|more| more.starts_with(' '));
        let is_it = |call: &Transaction| call.label.as_deref().is_some_and(begins);
        let Some(call) = self.last.remove(&event.tid).filter(is_it) else {
            if self.strays.len() < self.most {
                self.strays.push(rest.to_owned());
            }
            return None;
        };
        if self.told.len() >= 2 * self.most.max(1) {
            self.told.sort_unstable_by_key(|(_, told)| std::cmp::Reverse(told.took_ns));
            self.told.truncate(self.most);
        }
        self.told.push((call, told));
        self.told.last().map(|(call, _)| call)
    }
}
