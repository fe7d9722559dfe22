//! Contexts and their managers.
//! Not here: calls of handle 0 (`transact`), counting it (`count`).
//! Facts: contract section 12, IOC-04, IOC-05, REF-08.

use std::sync::Arc;

use abi::layout::{FlatBinderObject, NodeInfoForRef};

use super::Core;
use super::host::Host;
use super::node::NodeKey;
use crate::rpc::protocol::ProcId;
use sys::errno::{EBUSY, EINVAL, EPERM};

/// Identifies a context inside the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ContextKey(pub(super) u32);

/// Most contexts without processes whose managers' uids are remembered.
const REMEMBERED_MAX: usize = 1024;

/// Binder context: the processes of one device.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) name: Arc<str>,
    pub(super) manager: Option<NodeKey>,
    /// Effective uid of the first manager, kept for ever (contract CTX-02).
    manager_euid: Option<u32>,
    pub(super) procs: usize,
}

impl Core {
    /// Context of this name; the first open creates it.
    pub(super) fn enter_context(&mut self, name: &str) -> ContextKey {
        if let Some((key, context)) = self.contexts.iter_mut().find(|(_, context)| &*context.name == name) {
            context.procs += 1;
            return *key;
        }
        self.last_context += 1;
        let key = ContextKey(self.last_context);
        let made = Context { name: name.into(), manager: None, manager_euid: None, procs: 1 };
        self.contexts.insert(key, made);
        key
    }

    /// Removes a process. A context that never had a manager is forgotten.
    pub(super) fn leave_context(&mut self, key: ContextKey) {
        let Some(context) = self.contexts.get_mut(&key) else { return };
        context.procs -= 1;
        if context.procs > 0 {
            return;
        }
        if context.manager_euid.is_none() {
            self.contexts.remove(&key);
        } else if self.contexts.len() > REMEMBERED_MAX
            && let Some(oldest) = self.contexts.iter().find(|(_, c)| c.procs == 0).map(|(key, _)| *key)
        {
            self.contexts.remove(&oldest);
        }
    }

    /// The manager's node in the context of a process.
    pub(super) fn manager_of(&self, proc: ProcId) -> Option<NodeKey> {
        self.contexts.get(&self.procs.get(&proc)?.context)?.manager
    }

    /// `BINDER_SET_CONTEXT_MGR(_EXT)`; an errno, 0 for none.
    pub(super) fn become_manager(&mut self, proc: ProcId, node: &FlatBinderObject) -> i32 {
        let Some(asker) = self.procs.get(&proc) else { return EINVAL };
        let (key, euid) = (asker.context, asker.client.euid);
        let known = asker.nodes.get(&node.binder).copied();
        let Some(context) = self.contexts.get_mut(&key) else { return EINVAL };
        if context.manager.is_some() {
            return EBUSY;
        }
        if *context.manager_euid.get_or_insert(euid) != euid {
            return EPERM;
        }
        let made = match known {
            Some(node) => Ok(node),
            None => self.node_of(proc, node.binder, node.cookie, node.flags),
        };
        let manager = match made {
            Ok(manager) => manager,
            Err(errno) => return errno,
        };
        if let Some(node) = self.nodes.get_mut(&manager) {
            node.pin();
        }
        if let Some(context) = self.contexts.get_mut(&key) {
            context.manager = Some(manager);
        }
        0
    }

    /// `BINDER_GET_NODE_INFO_FOR_REF`: strong and weak count of the node.
    pub(super) fn node_info_for_ref(
        &self,
        proc: ProcId,
        info: &NodeInfoForRef,
        host: &impl Host,
    ) -> Result<[u64; 2], i32> {
        if *info != (NodeInfoForRef { handle: info.handle, ..Default::default() }) {
            return Err(EINVAL);
        }
        let manager = self.manager_of(proc).and_then(|node| self.nodes.get(&node));
        if manager.is_none_or(|node| node.owner != Some(proc)) {
            return Err(EPERM);
        }
        let held = self.procs.get(&proc).and_then(|p| p.refs.get(info.handle));
        let held = held.filter(|held| held.strong > 0).ok_or(EINVAL)?;
        let node = self.nodes.get(&held.node).ok_or(EINVAL)?;
        let in_slots = node.owner.map_or(0, |owner| self.slot_calls_to(owner, held.node, host));
        Ok([node.local_strong + node.remote_strong + in_slots, node.local_weak])
    }

    /// `BINDER_GET_NODE_DEBUG_INFO`: ptr, cookie and whether the owner knows of strong and weak holders, of the node
    /// with the lowest ptr above `above`; zeroes if none is left.
    pub(super) fn node_debug_info(&self, proc: ProcId, above: u64) -> [u64; 4] {
        let lowest = (std::ops::Bound::Excluded(above), std::ops::Bound::Unbounded);
        let next = self.procs.get(&proc).and_then(|p| p.nodes.range(lowest).next());
        match next.and_then(|(_, key)| self.nodes.get(key)) {
            Some(node) => [node.ptr, node.cookie, node.has_strong.into(), node.has_weak.into()],
            None => [0; 4],
        }
    }
}
