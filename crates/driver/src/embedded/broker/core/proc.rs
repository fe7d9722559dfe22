//! Room: what the core keeps of one process (one open of a context).
//! Not here: its memory and threads, which the core never sees.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::arena::Arena;
use super::buffer::Buffer;
use super::context::ContextKey;
use super::death::Deaths;
use super::freeze::{Freezing, Watches};
use super::lanes::{Bits, Bound};
use super::node::NodeKey;
use super::outside::Client;
use super::refs::Refs;
use super::work::Subject;

/// Most nodes, unanswered calls each way and registrations that one process may have: far beyond
/// any use, so that a process gone wild cannot make the broker eat up the machine.
pub(super) const LIMIT: usize = 1 << 18;

/// Most descriptors that may wait for one receiver.
pub(super) const PINNED_FDS_MAX: usize = 4096;

/// The receiving area as its owner says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mapping {
    Never,
    At(u64),
    Gone,
}

#[derive(Debug)]
pub(super) struct Proc {
    pub(super) client: Client,
    pub(super) context: ContextKey,
    pub(super) mapping: Mapping,
    pub(super) arena: Arena,
    pub(super) buffers: BTreeMap<u64, Buffer>,
    pub(super) pinned_fds: usize,
    pub(super) refs: Refs,
    /// Its own nodes by ptr.
    pub(super) nodes: BTreeMap<u64, NodeKey>,
    /// What the work numbers in its inbox mean.
    pub(super) works: HashMap<u64, Subject>,
    pub(super) deaths: Deaths,
    pub(super) watches: Watches,
    /// Calls that others wait for, and calls of its own.
    pub(super) incoming: BTreeSet<u32>,
    pub(super) outgoing: BTreeSet<u32>,
    /// Oneway calls that wait for their turn at its nodes.
    pub(super) waiting_oneways: usize,
    pub(super) freezing: Freezing,
    pub(super) spam_detection: bool,
    pub(super) max_threads: u32,
    /// Channels it has an end of.
    pub(super) channels: BTreeSet<u32>,
    pub(super) bits: Bits,
    /// Lanes for handle 0, which needs no reference.
    pub(super) manager_bound: Option<Bound>,
    /// It asked for more than texts.
    pub(super) acted: bool,
    /// The number of its next transaction, if it asked for that.
    pub(super) foretold: Option<u32>,
}

impl Proc {
    /// Whether it only asks for the texts, as a reader of the kernel's files does, and so is not part
    /// of them.
    pub(super) fn only_looks(&self) -> bool {
        let empty = self.nodes.is_empty() && self.refs.len() == 0;
        self.client.map_size == 0 && !self.client.lanes && !self.acted && empty
    }

    pub(super) fn new(client: Client, context: ContextKey) -> Self {
        Self {
            mapping: Mapping::Never,
            arena: Arena::new(client.map_size),
            client,
            context,
            buffers: BTreeMap::new(),
            pinned_fds: 0,
            refs: Refs::new(),
            nodes: BTreeMap::new(),
            works: HashMap::new(),
            deaths: Deaths::default(),
            watches: Watches::default(),
            incoming: BTreeSet::new(),
            outgoing: BTreeSet::new(),
            waiting_oneways: 0,
            freezing: Freezing::default(),
            spam_detection: false,
            max_threads: 0,
            channels: BTreeSet::new(),
            bits: Bits::default(),
            manager_bound: None,
            acted: false,
            foretold: None,
        }
    }

    /// Address of the receiving area; `None` if transactions cannot be received (contract OPN-09,
    /// OPN-10).
    pub(super) fn base(&self) -> Option<u64> {
        match self.mapping {
            Mapping::At(base) if self.client.map_size > 0 => Some(base),
            _ => None,
        }
    }

    /// A client says where its area is mapped, or that it is gone for good (contract OPN-04).
    pub(super) fn map(&mut self, base: u64) {
        self.mapping = match (self.mapping, base) {
            (Mapping::Never, 0) => Mapping::Never,
            (Mapping::Never, base) => Mapping::At(base),
            (Mapping::At(_), 0) => Mapping::Gone,
            (before, _) => before,
        };
    }
}
