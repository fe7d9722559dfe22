//! State of one process (one open of a context).
//! Not here: its memory and threads, which the core never accesses.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::arena::Arena;
use super::buffer::Buffer;
use super::call_slots::{Bound, ReadyBits};
use super::context::ContextKey;
use super::death::DeathState;
use super::freeze::{Freezing, Watch};
use super::host::Client;
use super::node::{NodeKey, Tags};
use super::refs::Refs;
use super::registrations::Registrations;
use super::work::Subject;

/// Most unfetched descriptors of one receiver.
pub(super) const PINNED_FDS_MAX: usize = 4096;

/// Mapping state of the receiving area, as its owner reported it.
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
    /// The process's own nodes, by ptr.
    pub(super) nodes: BTreeMap<u64, NodeKey>,
    pub(super) tags: Tags,
    /// Meaning of the work numbers in the inbox.
    pub(super) works: HashMap<u64, Subject>,
    pub(super) deaths: Registrations<DeathState>,
    pub(super) watches: Registrations<Watch>,
    /// Calls to this process, and calls that it made.
    pub(super) incoming: BTreeSet<u32>,
    pub(super) outgoing: BTreeSet<u32>,
    /// Oneway calls queued at this process's nodes.
    pub(super) waiting_oneways: usize,
    pub(super) freezing: Freezing,
    pub(super) spam_detection: bool,
    pub(super) max_threads: u32,
    /// Channels of which this process is a side.
    pub(super) channels: BTreeSet<u32>,
    pub(super) ready_bits: ReadyBits,
    /// Binding of handle 0, which needs no reference.
    pub(super) manager_bound: Option<Bound>,
    /// Whether the process has sent a request other than for state files.
    pub(super) acted: bool,
    /// Preassigned number of the next transaction, if requested.
    pub(super) preassigned_number: Option<u32>,
}

impl Proc {
    /// Whether the process only reads state files. Like a reader of the kernel's files it does not appear in them.
    pub(super) fn only_looks(&self) -> bool {
        let empty = self.nodes.is_empty() && self.refs.len() == 0;
        self.client.map_size == 0 && !self.client.call_slots && !self.acted && empty
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
            tags: Tags::default(),
            works: HashMap::new(),
            deaths: Registrations::default(),
            watches: Registrations::default(),
            incoming: BTreeSet::new(),
            outgoing: BTreeSet::new(),
            waiting_oneways: 0,
            freezing: Freezing::default(),
            spam_detection: false,
            max_threads: 0,
            channels: BTreeSet::new(),
            ready_bits: ReadyBits::default(),
            manager_bound: None,
            acted: false,
            preassigned_number: None,
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

    /// Records where the receiving area is mapped, or that it is unmapped for ever (contract OPN-04).
    pub(super) fn map(&mut self, base: u64) {
        self.mapping = match (self.mapping, base) {
            (Mapping::Never, 0) => Mapping::Never,
            (Mapping::Never, base) => Mapping::At(base),
            (Mapping::At(_), 0) => Mapping::Gone,
            (before, _) => before,
        };
    }
}
