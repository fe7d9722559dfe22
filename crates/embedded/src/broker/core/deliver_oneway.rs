//! Oneway calls on their way to a process: queued at their node, delivered one after another.
//! Not here: the queue (`oneway`), the budget (`arena`), sending (`transact`).
//! Facts: contract OW-02, OW-05, OW-12.

use super::Core;
use super::host::Host;
use super::node::NodeKey;
use super::oneway::ReplaceKey;
use crate::rpc::protocol::{Delivery, Item, ProcId};

impl Core {
    /// Queues a oneway call behind the delivered one. `update`: it replaces an earlier call with the same key.
    pub(super) fn wait_in_line(
        &mut self,
        to: ProcId,
        node: NodeKey,
        delivery: Delivery,
        replaceable: Option<ReplaceKey>,
        update: bool,
        host: &mut impl Host,
    ) {
        let Some(oneways) = self.nodes.get_mut(&node).map(|node| &mut node.oneways) else { return };
        let outdated = replaceable.filter(|_| update).and_then(|key| oneways.replaced_by(key));
        oneways.push(delivery, host.now_ms(), replaceable);
        if let Some(receiver) = self.procs.get_mut(&to) {
            receiver.waiting_oneways += 1;
            receiver.waiting_oneways -= usize::from(outdated.is_some());
            if let Some(buffer) = receiver.buffers.get_mut(&delivery.buffer) {
                buffer.waiting = true;
            }
        }
        if let Some(outdated) = outdated {
            self.drop_buffer(to, outdated.buffer, host);
        }
    }

    /// Delivers a node's next oneway call to its process, for any thread.
    pub(super) fn next_oneway(&mut self, node: NodeKey, host: &mut impl Host) {
        let Some(node) = self.nodes.get_mut(&node) else { return };
        let Some(delivery) = node.oneways.next() else { return };
        let Some(owner) = node.owner else { return };
        if let Some(receiver) = self.procs.get_mut(&owner) {
            receiver.waiting_oneways -= 1;
            if let Some(buffer) = receiver.buffers.get_mut(&delivery.buffer) {
                buffer.waiting = false;
            }
        }
        host.item(owner, Item::Deliver { delivery: *delivery });
    }
}
