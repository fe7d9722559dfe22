//! Queue of oneway calls to one node: one is delivered at a time.
//! Not here: whose queue, and the delivery (`deliver_oneway`), the budget (`arena`).
//! Facts: contract OW-02, OW-05, OW-12.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::rpc::protocol::Delivery;

/// Key of `TF_UPDATE_TXN`: a later call replaces a queued call to the same node with equal code, flags and sender
/// pid.
pub(super) type ReplaceKey = (u32, u32, u32);

#[derive(Debug)]
struct Waiting {
    delivery: Box<Delivery>,
    began_ms: u64,
    /// A later call with the same key may replace this one.
    replaceable: Option<ReplaceKey>,
}

/// The oneway calls of a node.
#[derive(Debug, Default)]
pub(super) struct Oneways {
    /// One call is delivered, and its buffer is not freed yet.
    busy: bool,
    line: BTreeMap<u64, Waiting>,
    alike: HashMap<ReplaceKey, VecDeque<u64>>,
    last: u64,
}

impl Oneways {
    /// Marks a call as delivered; false if another one is.
    pub(super) fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.busy, true)
    }

    /// Queues a call that arrived then; one with the same key may replace it.
    pub(super) fn push(&mut self, delivery: Delivery, began_ms: u64, replaceable: Option<ReplaceKey>) {
        self.last += 1;
        if let Some(key) = replaceable {
            self.alike.entry(key).or_default().push_back(self.last);
        }
        self.line.insert(self.last, Waiting { delivery: Box::new(delivery), began_ms, replaceable });
    }

    /// Takes the next queued call; the node is idle if there is none.
    pub(super) fn next(&mut self) -> Option<Box<Delivery>> {
        let next = self.line.pop_first();
        self.busy = next.is_some();
        let (_, waiting) = next?;
        if let Some(key) = waiting.replaceable {
            self.pop_alike(key);
        }
        Some(waiting.delivery)
    }

    /// Removes the first queued call that a call with this key replaces.
    pub(super) fn replaced_by(&mut self, key: ReplaceKey) -> Option<Box<Delivery>> {
        let number = self.pop_alike(key)?;
        self.line.remove(&number).map(|waiting| waiting.delivery)
    }

    fn pop_alike(&mut self, key: ReplaceKey) -> Option<u64> {
        let line = self.alike.get_mut(&key)?;
        let number = line.pop_front();
        if line.is_empty() {
            self.alike.remove(&key);
        }
        number
    }

    /// Queued calls in order, with their arrival times.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (&Delivery, u64)> {
        self.line.values().map(|waiting| (&*waiting.delivery, waiting.began_ms))
    }
}
