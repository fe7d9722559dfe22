//! Room: oneway calls to one node: one at a time, the others in line.
//! Not here: their budget (`arena`), how they are sent (`transact`).
//! Facts: contract OW-02, OW-05, OW-12.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::Core;
use super::node::NodeKey;
use super::outside::Outside;
use crate::embedded::protocol::{Delivery, Item, ProcId};

/// What makes a later `TF_UPDATE_TXN` call replace an earlier one to the same node: code, flags,
/// sender's pid.
pub(super) type Likeness = (u32, u32, u32);

#[derive(Debug)]
struct Waiting {
    delivery: Box<Delivery>,
    began_ms: u64,
    /// It may be replaced by a later one that is like it.
    replaceable: Option<Likeness>,
}

/// The oneway calls of a node.
#[derive(Debug, Default)]
pub(super) struct Oneways {
    /// One is delivered, and its buffer not freed.
    busy: bool,
    line: BTreeMap<u64, Waiting>,
    alike: HashMap<Likeness, VecDeque<u64>>,
    last: u64,
}

impl Oneways {
    /// Takes the node's turn; whether it was free.
    pub(super) fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.busy, true)
    }

    fn push(&mut self, delivery: Delivery, began_ms: u64, replaceable: Option<Likeness>) {
        self.last += 1;
        if let Some(likeness) = replaceable {
            self.alike.entry(likeness).or_default().push_back(self.last);
        }
        self.line.insert(self.last, Waiting { delivery: Box::new(delivery), began_ms, replaceable });
    }

    /// The next in line; the turn ends if there is none.
    fn next(&mut self) -> Option<Box<Delivery>> {
        let next = self.line.pop_first();
        self.busy = next.is_some();
        let (_, waiting) = next?;
        if let Some(likeness) = waiting.replaceable {
            self.pop_alike(likeness);
        }
        Some(waiting.delivery)
    }

    /// Takes out the first that a call like this replaces.
    fn replaced_by(&mut self, likeness: Likeness) -> Option<Box<Delivery>> {
        let number = self.pop_alike(likeness)?;
        self.line.remove(&number).map(|waiting| waiting.delivery)
    }

    fn pop_alike(&mut self, likeness: Likeness) -> Option<u64> {
        let line = self.alike.get_mut(&likeness)?;
        let number = line.pop_front();
        if line.is_empty() {
            self.alike.remove(&likeness);
        }
        number
    }

    /// Those who wait, in order, and since when.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (&Delivery, u64)> {
        self.line.values().map(|waiting| (&*waiting.delivery, waiting.began_ms))
    }
}

impl Core {
    /// Puts a oneway call in line behind the one that has the node's turn. `update`: it replaces an
    /// earlier one that is like it.
    pub(super) fn wait_in_line(
        &mut self,
        to: ProcId,
        node: NodeKey,
        delivery: Delivery,
        replaceable: Option<Likeness>,
        update: bool,
        outside: &mut impl Outside,
    ) {
        let Some(oneways) = self.nodes.get_mut(&node).map(|node| &mut node.oneways) else { return };
        let outdated = replaceable.filter(|_| update).and_then(|likeness| oneways.replaced_by(likeness));
        oneways.push(delivery, outside.now_ms(), replaceable);
        if let Some(receiver) = self.procs.get_mut(&to) {
            receiver.waiting_oneways += 1;
            receiver.waiting_oneways -= usize::from(outdated.is_some());
            if let Some(buffer) = receiver.buffers.get_mut(&delivery.buffer) {
                buffer.waiting = true;
            }
        }
        if let Some(outdated) = outdated {
            self.drop_buffer(to, outdated.buffer, outside);
        }
    }

    /// A node's turn is over: the next oneway call goes to its process, to any thread.
    pub(super) fn next_oneway(&mut self, node: NodeKey, outside: &mut impl Outside) {
        let Some(node) = self.nodes.get_mut(&node) else { return };
        let Some(delivery) = node.oneways.next() else { return };
        let Some(owner) = node.owner else { return };
        if let Some(receiver) = self.procs.get_mut(&owner) {
            receiver.waiting_oneways -= 1;
            if let Some(buffer) = receiver.buffers.get_mut(&delivery.buffer) {
                buffer.waiting = false;
            }
        }
        outside.item(owner, Item::Deliver { delivery: *delivery });
    }
}
