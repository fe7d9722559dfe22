//! Reference counting: handles of a process, counts of handles and buffers on nodes, notifications of owners.
//! Not here: the counters themselves (`node`, `refs`).
//! Facts: contract section 9.

use abi::codes::bc;

use super::Core;
use super::LIMIT;
use super::host::Host;
use super::node::{After, Hold, Node, NodeKey};
use super::work::{Queue, Subject};
use crate::rpc::protocol::{ProcId, Returns, ThreadKey};
use sys::errno::{EINVAL, ENOMEM};

impl Core {
    /// `BC_INCREFS`, `BC_ACQUIRE`, `BC_RELEASE`, `BC_DECREFS`; returns an errno, 0 for none. An invalid count is
    /// ignored (contract REF-03).
    pub(super) fn count(&mut self, proc: ProcId, command: u32, handle: u32, host: &mut impl Host) -> i32 {
        let (up, strong) = match command {
            bc::INCREFS => (true, false),
            bc::ACQUIRE => (true, true),
            bc::RELEASE => (false, true),
            bc::DECREFS => (false, false),
            _ => return EINVAL,
        };
        if !up {
            self.put_handle(proc, handle, strong, host);
            return 0;
        }
        if handle == 0
            && let Some(manager) = self.manager_of(proc)
        {
            if self.nodes.get(&manager).is_some_and(|node| node.owner == Some(proc)) {
                return EINVAL;
            }
            if self.take_handle_of(proc, manager, strong, None, host).is_ok() {
                return 0;
            }
        }
        self.take_handle(proc, handle, strong);
        0
    }

    /// Takes a count on an existing handle; a weak handle does not become strong (contract REF-04).
    fn take_handle(&mut self, proc: ProcId, handle: u32, strong: bool) {
        let Some(held) = self.procs.get_mut(&proc).and_then(|p| p.refs.get_mut(handle)) else { return };
        match strong {
            true if held.strong > 0 => held.strong += 1,
            // Not even if others hold the node strongly.
            true => {}
            false => held.weak += 1,
        }
    }

    /// Takes a count on a process's handle for a node; makes the handle if there is none. `sender`: the owner's
    /// thread that sends the node; it is notified if the node had no holder.
    pub(super) fn take_handle_of(
        &mut self,
        proc: ProcId,
        key: NodeKey,
        strong: bool,
        sender: Option<ThreadKey>,
        host: &mut impl Host,
    ) -> Result<u32, i32> {
        let manager = self.manager_of(proc) == Some(key);
        let (Some(holder), Some(node)) = (self.procs.get_mut(&proc), self.nodes.get_mut(&key)) else {
            return Err(EINVAL);
        };
        let pinned = manager && node.has_strong;
        let known = holder.refs.handle_of(key);
        let held = known.and_then(|handle| holder.refs.get(handle));
        let first = held.is_none_or(|held| if strong { held.strong == 0 } else { held.weak == 0 });
        if strong && first && sender.is_none() && node.remote_strong == 0 && !pinned {
            return Err(EINVAL);
        }
        if known.is_none() && holder.refs.len() >= LIMIT {
            return Err(ENOMEM);
        }
        let handle = match known {
            Some(handle) => handle,
            None => {
                self.totals.refs += 1;
                let handle = holder.refs.add(key, manager, self.ids.take());
                node.holders.insert(proc, handle);
                handle
            }
        };
        if let Some(held) = holder.refs.get_mut(handle) {
            *(if strong { &mut held.strong } else { &mut held.weak }) += 1;
        }
        if first {
            node.take(strong, Hold::Remote);
            if let Some(thread) = sender
                && node.is_news(strong)
            {
                self.queue_node(key, Queue::Deferred(thread), host);
            }
        }
        Ok(handle)
    }

    /// Releases a count on a handle, which ends with its last count (contract REF-02).
    pub(super) fn put_handle(&mut self, proc: ProcId, handle: u32, strong: bool, host: &mut impl Host) {
        let Some(held) = self.procs.get_mut(&proc).and_then(|p| p.refs.get_mut(handle)) else { return };
        let count = if strong { &mut held.strong } else { &mut held.weak };
        if *count == 0 {
            return;
        }
        *count -= 1;
        let last = *count == 0;
        let (node, gone) = (held.node, held.strong == 0 && held.weak == 0);
        if strong && last {
            self.unbind_handle(proc, handle, host);
            self.put_node(node, true, Hold::Remote, host);
        }
        if gone {
            self.drop_handle(proc, handle, host);
        }
    }

    /// Ends a handle with its counts and registrations (contract DTH-07).
    pub(super) fn drop_handle(&mut self, proc: ProcId, handle: u32, host: &mut impl Host) {
        self.unbind_handle(proc, handle, host);
        let Some(holder) = self.procs.get_mut(&proc) else { return };
        let Some(gone) = holder.refs.remove(handle) else { return };
        let death = gone.death.and_then(|death| holder.deaths.remove(death));
        let watch = gone.freeze.and_then(|watch| holder.watches.remove(watch));
        for work in [death, watch].into_iter().flatten() {
            holder.works.remove(&work);
        }
        if gone.strong > 0 {
            self.put_node(gone.node, true, Hold::Remote, host);
        }
        if let Some(node) = self.nodes.get_mut(&gone.node) {
            node.holders.remove(&proc);
        }
        self.put_node(gone.node, false, Hold::Remote, host);
    }

    /// Takes an internal count on a node.
    pub(super) fn take_node(&mut self, key: NodeKey, strong: bool) {
        if let Some(node) = self.nodes.get_mut(&key) {
            node.take(strong, Hold::Local);
        }
    }

    /// Releases a count on a node.
    pub(super) fn put_node(&mut self, key: NodeKey, strong: bool, hold: Hold, host: &mut impl Host) {
        let Some(node) = self.nodes.get_mut(&key) else { return };
        match node.put(strong, hold) {
            After::Stays => {}
            After::Tell => {
                if !matches!(node.work, Some((_, false))) {
                    self.queue_node(key, Queue::Proc, host);
                }
            }
            After::Gone => self.remove_node(key),
        }
    }

    /// The owner's node with this ptr; made if there is none (contract OBJ-04, OBJ-05).
    pub(super) fn node_of(
        &mut self,
        owner: ProcId,
        ptr: u64,
        cookie: u64,
        flags: u32,
    ) -> Result<NodeKey, i32> {
        let Some(proc) = self.procs.get_mut(&owner) else { return Err(EINVAL) };
        if let Some(&key) = proc.nodes.get(&ptr) {
            let same = self.nodes.get(&key).is_some_and(|node| node.cookie == cookie);
            return if same { Ok(key) } else { Err(EINVAL) };
        }
        if proc.nodes.len() >= LIMIT {
            return Err(ENOMEM);
        }
        self.last_node += 1;
        let key = NodeKey(self.last_node);
        proc.nodes.insert(ptr, key);
        self.nodes.insert(key, Node::new(self.ids.take(), owner, ptr, cookie, flags));
        Ok(key)
    }

    /// Removes a node that was made for sending but has no holder after all.
    pub(super) fn settle_node(&mut self, key: NodeKey, host: &mut impl Host) {
        self.put_node(key, false, Hold::Remote, host);
    }

    /// `BC_INCREFS_DONE`, `BC_ACQUIRE_DONE`; returns an errno, 0 for none (contract REF-11).
    pub(super) fn count_done(
        &mut self,
        proc: ProcId,
        command: u32,
        [ptr, cookie]: [u64; 2],
        host: &mut impl Host,
    ) -> i32 {
        let strong = match command {
            bc::ACQUIRE_DONE => true,
            bc::INCREFS_DONE => false,
            _ => return EINVAL,
        };
        let Some(&key) = self.procs.get(&proc).and_then(|p| p.nodes.get(&ptr)) else { return 0 };
        let due = self.nodes.get_mut(&key).is_some_and(|n| n.cookie == cookie && n.acknowledge(strong));
        if due {
            self.put_node(key, strong, Hold::Local, host);
        }
        0
    }

    /// Returns for the owner's thread that reads a node's work.
    pub(super) fn tell_of_node(&mut self, key: NodeKey) -> Returns {
        let Some(node) = self.nodes.get_mut(&key) else { return Returns::default() };
        node.work = None;
        let (told, over) = node.tell();
        if over {
            self.remove_node(key);
        }
        told
    }

    /// Queues work that notifies the owner of a node; work already queued elsewhere moves.
    fn queue_node(&mut self, key: NodeKey, queue: Queue, host: &mut impl Host) {
        let Some(node) = self.nodes.get_mut(&key) else { return };
        let Some(owner) = node.owner else { return };
        if let Some((work, _)) = node.work.take() {
            self.retract(owner, work);
        }
        let work = self.post(owner, Subject::Node(key), queue, host);
        if let Some(node) = self.nodes.get_mut(&key) {
            node.work = work.map(|work| (work, queue != Queue::Proc));
        }
    }

    fn remove_node(&mut self, key: NodeKey) {
        let is_dead = self.nodes.get(&key).is_some_and(|node| node.owner.is_none());
        if is_dead && self.faults.keeps_dead_nodes {
            return;
        }
        let Some(node) = self.nodes.remove(&key) else { return };
        let Some(owner) = node.owner.and_then(|owner| self.procs.get_mut(&owner)) else { return };
        owner.nodes.remove(&node.ptr);
        owner.tags.give(node.tag);
        if let Some((work, _)) = node.work {
            owner.works.remove(&work);
        }
    }
}
