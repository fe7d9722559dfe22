//! Room: a transaction's bytes in its receiver's area: what they hold on to, and giving them back.
//! Not here: how they come to be (`carry`), where they lie (`arena`).
//! Facts: contract BUF-05 to BUF-07, OW-02, OW-05, OBJ-08.

use std::os::fd::OwnedFd;

use super::Core;
use super::node::{Hold, NodeKey};
use super::outside::Outside;
use crate::embedded::protocol::ProcId;

/// What an object in a delivered buffer holds until the buffer is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// A node of the receiver's own.
    Node { node: NodeKey, strong: bool },
    /// A count on a handle of the receiver.
    Handle { handle: u32, strong: bool },
}

/// One buffer.
#[derive(Debug)]
pub(super) struct Buffer {
    /// The transaction that it came with.
    pub(super) transaction: u32,
    pub(super) data_size: u64,
    pub(super) offsets_size: u64,
    pub(super) extra: u64,
    /// The node that was called, held strongly (contract REF-13); `None` for a reply.
    pub(super) target: Option<NodeKey>,
    pub(super) oneway: bool,
    /// Zero it when it is freed.
    pub(super) clear: bool,
    /// A oneway call that waits for its turn: not the receiver's yet.
    pub(super) waiting: bool,
    pub(super) held: Vec<Held>,
    /// Descriptors that were not fetched yet.
    pub(super) fds: Vec<OwnedFd>,
}

impl Core {
    /// `BC_FREE_BUFFER`: anything but a buffer that was handed over is ignored (contract BUF-05).
    pub(super) fn free_buffer(&mut self, proc: ProcId, offset: u64, outside: &mut impl Outside) {
        let handed = self.procs.get(&proc).and_then(|p| p.buffers.get(&offset)).filter(|b| !b.waiting);
        let Some(buffer) = handed else { return };
        let next_of = buffer.target.filter(|_| buffer.oneway);
        if let Some(node) = next_of {
            self.next_oneway(node, outside);
        }
        self.drop_buffer(proc, offset, outside);
    }

    /// Gives a buffer back with all that it holds.
    pub(super) fn drop_buffer(&mut self, proc: ProcId, offset: u64, outside: &mut impl Outside) {
        let Some(owner) = self.procs.get_mut(&proc) else { return };
        let Some(buffer) = owner.buffers.remove(&offset) else { return };
        let len = owner.arena.free(offset).unwrap_or(0);
        owner.pinned_fds -= buffer.fds.len();
        self.buffer_of.remove(&buffer.transaction);
        if buffer.clear {
            outside.zero(proc, offset, len);
        }
        self.let_go(proc, buffer.target, &buffer.held, outside);
    }

    /// Gives up what a buffer held.
    pub(super) fn let_go(
        &mut self,
        proc: ProcId,
        target: Option<NodeKey>,
        held: &[Held],
        outside: &mut impl Outside,
    ) {
        if let Some(node) = target {
            self.put_node(node, true, Hold::Local, outside);
        }
        for held in held {
            match *held {
                Held::Node { node, strong } => self.put_node(node, strong, Hold::Local, outside),
                Held::Handle { handle, strong } => {
                    self.put_handle(proc, handle, strong, outside);
                }
            }
        }
    }

    /// Hands over the descriptors of a transaction, once.
    pub fn take_fds(&mut self, proc: ProcId, transaction: u32) -> Vec<OwnedFd> {
        let Some(&(owner, offset)) = self.buffer_of.get(&transaction) else { return Vec::new() };
        let Some(receiver) = self.procs.get_mut(&proc).filter(|_| owner == proc) else { return Vec::new() };
        match receiver.buffers.get_mut(&offset) {
            Some(buffer) if !buffer.waiting => {
                let fds = std::mem::take(&mut buffer.fds);
                receiver.pinned_fds -= fds.len();
                fds
            }
            _ => Vec::new(),
        }
    }
}
