//! Delivered buffers: the counts that they hold, and freeing them.
//! Facts: contract BUF-05 to BUF-07, OW-02, OW-05, OBJ-08.

use std::os::fd::OwnedFd;

use super::Core;
use super::arena::Arena;
use super::host::Host;
use super::node::{Hold, NodeKey};
use crate::rpc::protocol::ProcId;

/// Count that an object in a delivered buffer holds until the buffer is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// A count on the receiver's own node.
    Node { node: NodeKey, strong: bool },
    /// A count on a handle of the receiver.
    Handle { handle: u32, strong: bool },
}

/// One buffer.
#[derive(Debug)]
pub(super) struct Buffer {
    /// Number of the buffer's transaction.
    pub(super) transaction: u32,
    pub(super) data_size: u64,
    pub(super) offsets_size: u64,
    pub(super) extra: u64,
    /// The called node, held strongly (contract REF-13); `None` for a reply.
    pub(super) target: Option<NodeKey>,
    pub(super) oneway: bool,
    /// Zero the buffer when it is freed.
    pub(super) clear: bool,
    /// A queued oneway call: not the receiver's yet.
    pub(super) waiting: bool,
    pub(super) held: Vec<Held>,
    /// Descriptors that have not been fetched yet.
    pub(super) fds: Vec<OwnedFd>,
}

impl Core {
    /// `BC_FREE_BUFFER`: frees a delivered buffer, ignores anything else (contract BUF-05).
    pub(super) fn free_buffer(&mut self, proc: ProcId, offset: u64, host: &mut impl Host) {
        let handed = self.procs.get(&proc).and_then(|p| p.buffers.get(&offset)).filter(|b| !b.waiting);
        let Some(buffer) = handed else { return };
        let next_of = buffer.target.filter(|_| buffer.oneway);
        if let Some(node) = next_of {
            self.next_oneway(node, host);
        }
        self.drop_buffer(proc, offset, host);
    }

    /// Frees a buffer and releases all that it holds.
    pub(super) fn drop_buffer(&mut self, proc: ProcId, offset: u64, host: &mut impl Host) {
        let Some(owner) = self.procs.get_mut(&proc) else { return };
        let Some(buffer) = owner.buffers.remove(&offset) else { return };
        owner.pinned_fds -= buffer.fds.len();
        self.buffer_of.remove(&buffer.transaction);
        if buffer.clear {
            let len = owner.arena.len_of(offset).unwrap_or(0);
            host.zero(proc, offset, len);
        }
        self.with_arena(proc, host, |arena| arena.free(offset));
        self.let_go(proc, buffer.target, &buffer.held, host);
    }

    /// Changes a process's arena while its lease is suspended.
    pub(super) fn with_arena<T>(
        &mut self,
        proc: ProcId,
        host: &mut impl Host,
        change: impl FnOnce(&mut Arena) -> T,
    ) -> Option<T> {
        let owner = self.procs.get_mut(&proc)?;
        // Once it is given up nothing is placed there any more.
        let is_mapped = owner.base().is_some();
        let arena = &mut owner.arena;
        let leased = is_mapped && host.suspend_lease(proc).map(|placed| arena.count_placed(placed)).is_some();
        let changed = change(arena);
        if leased {
            host.resume_lease(proc, arena);
        }
        Some(changed)
    }

    /// Releases the counts that a buffer held.
    pub(super) fn let_go(
        &mut self,
        proc: ProcId,
        target: Option<NodeKey>,
        held: &[Held],
        host: &mut impl Host,
    ) {
        if let Some(node) = target {
            self.put_node(node, true, Hold::Local, host);
        }
        for held in held {
            match *held {
                Held::Node { node, strong } => self.put_node(node, strong, Hold::Local, host),
                Held::Handle { handle, strong } => {
                    self.put_handle(proc, handle, strong, host);
                }
            }
        }
    }

    /// Takes the descriptors of a transaction; empty the second time.
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
