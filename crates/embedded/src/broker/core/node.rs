//! Node: its counts, the notifications of its owner, its end.
//! Not here: handles (`refs`), the queue of its oneway calls (`oneway`).
//! Facts: contract section 9, OBJ-04.

use std::collections::{BTreeMap, VecDeque};

use abi::codes::{br, flat};

use super::oneway::Oneways;
use crate::rpc::protocol::{ProcId, Returns};
use crate::shm::lease::Tag;

/// Identifies a node; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeKey(pub(super) u64);

/// Kind of a count on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Internal to the owner: delivered objects, calls in flight, the owner's notified state.
    Local,
    /// Held by a handle of another process.
    Remote,
}

/// Consequence of releasing a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Nothing.
    Stays,
    /// The owner must be notified.
    Tell,
    /// The node has no holder left.
    Gone,
}

/// An object of a process that others may call.
#[derive(Debug)]
pub(super) struct Node {
    /// Number of the node in the state files.
    pub(super) debug_id: u32,
    /// `None` once the owner is gone.
    pub(super) owner: Option<ProcId>,
    pub(super) ptr: u64,
    pub(super) cookie: u64,
    pub(super) flags: u32,
    /// Handle of each process that has one.
    pub(super) holders: BTreeMap<ProcId, u32>,
    pub(super) local_strong: u64,
    pub(super) local_weak: u64,
    /// Handles with strong counts.
    pub(super) remote_strong: u64,
    /// State that the owner was last notified of.
    pub(super) has_strong: bool,
    pub(super) has_weak: bool,
    /// Acknowledgements that the owner owes.
    pending_strong: bool,
    pending_weak: bool,
    /// Work that will notify the owner, and whether it is on a thread's queue.
    pub(super) work: Option<(u64, bool)>,
    pub(super) oneways: Oneways,
    /// Number by which its owner marks the buffers of calls from call slots; 0 for none.
    pub(super) tag: u32,
}

/// Tags of a process's nodes.
#[derive(Debug, Default)]
pub(super) struct Tags {
    /// The highest that was ever in use.
    last: u32,
    /// Those in use no more, in the order in which they may be used again.
    free: VecDeque<u32>,
}

impl Tags {
    /// Takes a tag; 0 if each is in use, or `has_buffers`.
    pub(super) fn take(&mut self, has_buffers: impl Fn(u32) -> bool) -> u32 {
        if self.last < Tag::NODES {
            self.last += 1;
            return self.last;
        }
        let at = self.free.iter().position(|tag| !has_buffers(*tag));
        at.and_then(|at| self.free.remove(at)).unwrap_or(0)
    }

    /// Gives a tag back.
    pub(super) fn give(&mut self, tag: u32) {
        if tag != 0 {
            self.free.push_back(tag);
        }
    }
}

impl Node {
    pub(super) fn new(debug_id: u32, owner: ProcId, ptr: u64, cookie: u64, flags: u32) -> Self {
        Self {
            debug_id,
            owner: Some(owner),
            ptr,
            cookie,
            flags,
            holders: BTreeMap::new(),
            local_strong: 0,
            local_weak: 0,
            remote_strong: 0,
            has_strong: false,
            has_weak: false,
            pending_strong: false,
            pending_weak: false,
            work: None,
            oneways: Oneways::default(),
            tag: 0,
        }
    }

    pub(super) fn accepts_fds(&self) -> bool {
        self.flags & flat::ACCEPTS_FDS != 0
    }

    pub(super) fn wants_security_context(&self) -> bool {
        self.flags & flat::TXN_SECURITY_CTX != 0
    }

    fn strong(&self) -> bool {
        self.local_strong > 0 || self.remote_strong > 0
    }

    fn weak(&self) -> bool {
        self.strong() || self.local_weak > 0 || !self.holders.is_empty()
    }

    /// Makes this the context manager's node: held for ever, and its owner is never notified of holders (contract
    /// REF-08).
    pub(super) fn pin(&mut self) {
        self.local_strong += 1;
        self.local_weak += 1;
        self.has_strong = true;
        self.has_weak = true;
    }

    /// Takes a count. Weak counts of handles are the handles themselves.
    pub(super) fn take(&mut self, strong: bool, hold: Hold) {
        match (strong, hold) {
            (true, Hold::Local) => self.local_strong += 1,
            (true, Hold::Remote) => self.remote_strong += 1,
            (false, Hold::Local) => self.local_weak += 1,
            (false, Hold::Remote) => {}
        }
    }

    /// Whether the owner must be notified of a count that its own thread takes by sending the node.
    pub(super) fn is_news(&self, strong: bool) -> bool {
        if strong { !self.has_strong } else { !self.has_weak && self.work.is_none() }
    }

    /// Releases a count.
    pub(super) fn put(&mut self, strong: bool, hold: Hold) -> After {
        let count = match (strong, hold) {
            (true, Hold::Local) => &mut self.local_strong,
            (true, Hold::Remote) => &mut self.remote_strong,
            (false, Hold::Local) => &mut self.local_weak,
            (false, Hold::Remote) => return self.settle(false),
        };
        *count = count.saturating_sub(1);
        self.settle(strong)
    }

    /// Consequence of the present counts after a strong or weak one was released.
    pub(super) fn settle(&self, strong: bool) -> After {
        if self.strong() || (!strong && self.weak()) {
            After::Stays
        } else if self.owner.is_some() && (self.has_strong || self.has_weak) {
            After::Tell
        } else if self.weak() {
            After::Stays
        } else {
            After::Gone
        }
    }

    /// Notifications for the owner's thread that reads the work (contract REF-08, REF-10, REF-12), and whether the
    /// node ends with them.
    pub(super) fn tell(&mut self) -> (Returns, bool) {
        let (strong, weak) = (self.strong(), self.weak());
        let (had_strong, had_weak) = (self.has_strong, self.has_weak);
        if weak && !had_weak {
            self.pending_weak = true;
            self.local_weak += 1;
        }
        if strong && !had_strong {
            self.pending_strong = true;
            self.local_strong += 1;
        }
        (self.has_strong, self.has_weak) = (strong, weak);
        let mut told = Returns::default();
        let changes = [
            (weak && !had_weak, br::INCREFS),
            (strong && !had_strong, br::ACQUIRE),
            (!strong && had_strong, br::RELEASE),
            (!weak && had_weak, br::DECREFS),
        ];
        for (_, word) in changes.into_iter().filter(|(happened, _)| *happened) {
            // At most four returns, and `Returns` holds four.
            told.push(word, [self.ptr, self.cookie]);
        }
        (told, !weak)
    }

    /// The owner acknowledges; false if no acknowledgement was owed.
    pub(super) fn acknowledge(&mut self, strong: bool) -> bool {
        std::mem::take(if strong { &mut self.pending_strong } else { &mut self.pending_weak })
    }

    /// The owner has ended: only handles hold the node now.
    pub(super) fn orphan(&mut self) {
        self.owner = None;
        self.local_strong = 0;
        self.local_weak = 0;
        self.work = None;
        self.oneways = Oneways::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_used_again_as_late_as_possible_and_without_buffers() {
        let mut tags = Tags::default();
        let take = |tags: &mut Tags| tags.take(|_| false);
        assert_eq!([take(&mut tags), take(&mut tags)], [1, 2]);
        tags.give(1);
        assert!((3..=Tag::NODES).all(|tag| take(&mut tags) == tag));
        [7, 9, 0].into_iter().for_each(|tag| tags.give(tag));
        assert_eq!(tags.take(|tag| tag == 1), 7);
        assert_eq!(tags.take(|_| true), 0);
        assert_eq!([take(&mut tags), take(&mut tags), take(&mut tags)], [1, 9, 0]);
    }
}
