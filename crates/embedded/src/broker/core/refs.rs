//! Handle table of a process: lowest free number first, each handle refers to a node.
//! Not here: the effect of counts on the node (`count`).
//! Facts: contract REF-01, REF-02, OBJ-08.

use std::collections::{BTreeSet, HashMap};

use super::call_slots::Bound;
use super::node::NodeKey;

/// Ref: one process's hold on a node.
#[derive(Debug)]
pub(super) struct Ref {
    /// Number of the ref in the state files.
    pub(super) debug_id: u32,
    pub(super) node: NodeKey,
    pub(super) strong: u64,
    pub(super) weak: u64,
    /// Death registration, a number of `Proc::deaths`.
    pub(super) death: Option<u64>,
    /// Freeze registration, a number of `Proc::watches`.
    pub(super) freeze: Option<u64>,
    /// Binding, if calls to this handle may go through a call slot.
    pub(super) bound: Option<Bound>,
}

/// All handles of a process.
#[derive(Debug)]
pub(super) struct Refs {
    table: Vec<Option<Ref>>,
    free: BTreeSet<u32>,
    by_node: HashMap<NodeKey, u32>,
}

impl Refs {
    pub(super) fn new() -> Self {
        Self { table: vec![None], free: BTreeSet::from([0]), by_node: HashMap::new() }
    }

    pub(super) fn get(&self, handle: u32) -> Option<&Ref> {
        self.table.get(handle as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, handle: u32) -> Option<&mut Ref> {
        self.table.get_mut(handle as usize)?.as_mut()
    }

    pub(super) fn handle_of(&self, node: NodeKey) -> Option<u32> {
        self.by_node.get(&node).copied()
    }

    /// Makes a handle without counts for a node that has none; only the manager's node may have 0.
    pub(super) fn add(&mut self, node: NodeKey, manager: bool, debug_id: u32) -> u32 {
        let lowest = u32::from(!manager);
        let handle = match self.free.range(lowest..).next().copied() {
            Some(handle) => {
                self.free.remove(&handle);
                handle
            }
            None => {
                self.table.push(None);
                (self.table.len() - 1) as u32
            }
        };
        let made = Ref { debug_id, node, strong: 0, weak: 0, death: None, freeze: None, bound: None };
        self.table[handle as usize] = Some(made);
        self.by_node.insert(node, handle);
        handle
    }

    pub(super) fn remove(&mut self, handle: u32) -> Option<Ref> {
        let gone = self.table.get_mut(handle as usize)?.take()?;
        self.by_node.remove(&gone.node);
        self.free.insert(handle);
        Some(gone)
    }

    /// All handles in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Ref)> {
        self.table.iter().enumerate().filter_map(|(handle, r)| Some((handle as u32, r.as_ref()?)))
    }

    pub(super) fn len(&self) -> usize {
        self.by_node.len()
    }
}
