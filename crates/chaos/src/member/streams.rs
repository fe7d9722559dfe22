//! Numbered oneway calls: what was sent, and whether it arrives in order and exactly once.
//! Facts: contract OW-02 (one node's oneway calls are delivered in the order of sending).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::instance::Instance;

/// A thread of a process, as the sender to one service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sender {
    pub(super) instance: Instance,
    pub(super) thread: u64,
}

/// Calls received by one service.
#[derive(Debug, Default)]
pub(super) struct Received(Mutex<BTreeMap<Sender, u64>>);

impl Received {
    /// Records an arrived call; an error if it is not the next one.
    pub(super) fn note(&self, sender: Sender, number: u64) -> Result<(), String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = all.entry(sender).or_default();
        let expected = *last + 1;
        if number == expected {
            *last = number;
            return Ok(());
        }
        let what = if number < expected { "again, or too late" } else { "and what was before it did not" };
        Err(format!(
            "oneway call {number} of thread {} of {} arrived {what} (expected: {expected})",
            sender.thread, sender.instance
        ))
    }

    /// Number of the last call that arrived.
    pub(super) fn last(&self, sender: Sender) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&sender).copied().unwrap_or_default()
    }
}

/// Calls sent by one thread to one service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) to: Instance,
    pub(super) last: u64,
    /// Last call known to have arrived.
    pub(super) seen: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_and_repetitions_are_noticed() {
        let sender = |thread| Sender { instance: Instance { index: 1, generation: 2 }, thread };
        let received = Received::default();
        for number in 1..=3 {
            assert_eq!(received.note(sender(0), number), Ok(()));
        }
        assert_eq!(received.note(sender(1), 1), Ok(()), "each thread counts for itself");
        assert!(received.note(sender(0), 3).expect_err("twice").contains("again"));
        assert!(received.note(sender(0), 5).expect_err("4 is lost").contains("expected: 4"));
        assert_eq!((received.last(sender(0)), received.last(sender(2))), (3, 0));
    }
}
