//! Nodes, handles of other processes to them, notifications of owners.
//! Facts: contract REF-01 to REF-13, OBJ-03, OBJ-06 to OBJ-08, OBJ-16, OBJ-17, CTX-03.

use super::buffers::Chain;
use super::{EINVAL, Id, Ref, Reference, Returned, Work};
use crate::steps::Object;

/// Strong or weak count.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    strong: u32,
    weak: u32,
}

impl Counts {
    fn of(&mut self, strong: bool) -> &mut u32 {
        if strong { &mut self.strong } else { &mut self.weak }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// `None` once the process is gone.
    pub(super) owner: Option<usize>,
    pub(super) ptr: u64,
    /// Handles with a strong count, and handles at all.
    handles: Counts,
    /// Buffers, and acknowledgements that are owed.
    held: Counts,
    /// State that the owner was notified of.
    told_strong: bool,
    told_weak: bool,
    /// Notifications that it has not acknowledged.
    unacknowledged: [bool; 2],
    /// The node is queued as [`Work::Node`].
    queued: bool,
    /// A oneway call is delivered, others wait for it (contract OW-02).
    pub(super) busy: bool,
    pub(super) waiting: std::collections::VecDeque<Id>,
}

impl Node {
    fn is_strong(&self) -> bool {
        self.handles.strong + self.held.strong > 0
    }

    fn is_weak(&self) -> bool {
        self.handles.weak + self.held.weak > 0 || self.is_strong()
    }
}

impl Reference {
    /// The manager is never notified (contract REF-08): it counts as notified for ever.
    pub(super) fn make_manager_node(&mut self, proc: usize) -> Id {
        let id = self.id();
        let held = Counts { strong: 1, weak: 1 };
        let node = Node { owner: Some(proc), held, told_strong: true, told_weak: true, ..Node::default() };
        self.nodes.insert(id, node);
        self.procs[proc].nodes.insert(0, id);
        id
    }

    fn node_of(&mut self, proc: usize, ptr: u64) -> Id {
        if let Some(id) = self.procs[proc].nodes.get(&ptr) {
            return *id;
        }
        let id = self.id();
        self.nodes.insert(id, Node { owner: Some(proc), ptr, ..Node::default() });
        self.procs[proc].nodes.insert(ptr, id);
        id
    }

    /// A handle's node, if the process has it with such a count.
    pub(super) fn held_by(&self, proc: usize, handle: u32, strong: bool) -> Option<Id> {
        let found = self.procs[proc].refs.get(&handle)?;
        (!strong || found.strong > 0).then_some(found.node)
    }

    /// Takes a count on the process's handle to a node, made if necessary; `teller` is the thread that notifies the
    /// owner of a first holder (contract REF-09).
    fn give(&mut self, proc: usize, node: Id, strong: bool, teller: Option<(usize, usize)>) -> u32 {
        let lowest = u32::from(self.manager != Some(node));
        let refs = &mut self.procs[proc].refs;
        let known = refs.iter().find(|(_, held)| held.node == node).map(|(handle, _)| *handle);
        let handle = known.unwrap_or_else(|| {
            let free = (lowest..).find(|number| !refs.contains_key(number)).expect("few handles");
            refs.insert(free, Ref { node, ..Ref::default() });
            free
        });
        if known.is_none() {
            self.node(node).handles.weak += 1;
        }
        self.raise(proc, handle, strong, teller);
        handle
    }

    pub(super) fn node(&mut self, id: Id) -> &mut Node {
        self.nodes.get_mut(&id).expect("a node that is named is there")
    }

    fn raise(&mut self, proc: usize, handle: u32, strong: bool, teller: Option<(usize, usize)>) {
        let held = self.procs[proc].refs.get_mut(&handle).expect("just found");
        let (node, count) = (held.node, if strong { &mut held.strong } else { &mut held.weak });
        *count += 1;
        if *count > 1 {
            return;
        }
        if strong {
            self.node(node).handles.strong += 1;
        }
        let Some((proc, thread)) = teller else { return };
        let it = self.node(node);
        let news = if strong { !it.told_strong } else { !it.told_weak && !it.queued };
        if news {
            self.unqueue(node);
            self.node(node).queued = true;
            self.procs[proc].threads[thread].todo.push_back(Work::Node(node));
        }
    }

    fn unqueue(&mut self, node: Id) {
        let Some(it) = self.nodes.get_mut(&node) else { return };
        it.queued = false;
        if let Some(owner) = it.owner {
            let owner = &mut self.procs[owner];
            owner.queue.retain(|work| *work != Work::Node(node));
            for thread in &mut owner.threads {
                thread.todo.retain(|work| *work != Work::Node(node));
                thread.urgent &= !thread.todo.is_empty();
            }
        }
    }

    /// Releases a count; an invalid release is ignored (contract REF-03).
    fn lower(&mut self, proc: usize, handle: u32, strong: bool) {
        let Some(held) = self.procs[proc].refs.get_mut(&handle) else { return };
        let node = held.node;
        let count = if strong { &mut held.strong } else { &mut held.weak };
        if *count == 0 {
            return;
        }
        *count -= 1;
        let (last, over) = (*count == 0, held.strong + held.weak == 0);
        if strong && last {
            self.node(node).handles.strong -= 1;
            self.let_go(node, true);
        }
        if over {
            self.forget(proc, handle);
        }
    }

    /// A handle without counts ends, with its registration (contract REF-02, DTH-07).
    pub(super) fn forget(&mut self, proc: usize, handle: u32) {
        let Some(held) = self.procs[proc].refs.remove(&handle) else { return };
        if let Some(death) = held.death {
            self.drop_death(proc, death);
        }
        if held.strong > 0 {
            self.node(held.node).handles.strong -= 1;
            self.let_go(held.node, true);
        }
        self.node(held.node).handles.weak -= 1;
        self.let_go(held.node, false);
    }

    /// After a release: notifies the owner, or removes a node without holders.
    fn let_go(&mut self, node: Id, strong: bool) {
        let Some(it) = self.nodes.get_mut(&node) else { return };
        // An owner without news is not notified; the contract does not say that it is.
        let still = if strong { it.is_strong() } else { it.is_weak() };
        if still {
            return;
        }
        match it.owner {
            // Also if a thread was to be notified of a holder that has ended (contract REF-12).
            Some(owner) if it.told_strong || it.told_weak => self.queue_node(owner, node),
            _ if !it.is_weak() => self.remove_node(node),
            _ => {}
        }
    }

    fn queue_node(&mut self, owner: usize, node: Id) {
        if !self.procs[owner].queue.contains(&Work::Node(node)) {
            self.unqueue(node);
            self.node(node).queued = true;
            self.procs[owner].queue.push_back(Work::Node(node));
        }
    }

    fn remove_node(&mut self, node: Id) {
        self.unqueue(node);
        let Some(it) = self.nodes.remove(&node) else { return };
        if let Some(owner) = it.owner {
            self.procs[owner].nodes.remove(&it.ptr);
        }
    }

    /// A buffer holds its target and the nodes in it.
    pub(super) fn hold(&mut self, node: Id, strong: bool) {
        *self.node(node).held.of(strong) += 1;
    }

    pub(super) fn unhold(&mut self, node: Id, strong: bool) {
        // Nodes end with their process, regardless of holders.
        if let Some(it) = self.nodes.get_mut(&node) {
            *it.held.of(strong) -= 1;
            self.let_go(node, strong);
        }
    }

    /// A notification has the state at its read (contract REF-10).
    pub(super) fn tell_of(&mut self, id: Id, returns: &mut Vec<Returned>) {
        let it = self.node(id);
        it.queued = false;
        let (strong, weak, ptr) = (it.is_strong(), it.is_weak(), it.ptr);
        let was = (it.told_strong, it.told_weak);
        (it.told_strong, it.told_weak) = (strong, weak);
        let owner = it.owner.expect("only living owners are told");
        if weak && !was.1 {
            it.unacknowledged[0] = true;
            it.held.weak += 1;
            returns.push(Returned::Increfs(ptr));
            self.procs[owner].owed.push_back((ptr, false));
        }
        if strong && !was.0 {
            let it = self.node(id);
            it.unacknowledged[1] = true;
            it.held.strong += 1;
            returns.push(Returned::Acquire(ptr));
            self.procs[owner].owed.push_back((ptr, true));
        }
        if !strong && was.0 {
            returns.push(Returned::Release(ptr));
        }
        if !weak && was.1 {
            returns.push(Returned::Decrefs(ptr));
        }
        if !weak {
            self.remove_node(id);
        }
    }

    /// Acknowledgement (contract REF-11, REF-12).
    pub(super) fn acknowledge(&mut self, proc: usize, ptr: u64, strong: bool) {
        if self.procs[proc].owed.front() == Some(&(ptr, strong)) {
            self.procs[proc].owed.pop_front();
        }
        let Some(node) = self.procs[proc].nodes.get(&ptr).copied() else { return };
        if std::mem::take(&mut self.node(node).unacknowledged[usize::from(strong)]) {
            self.unhold(node, strong);
        }
    }

    /// `BC_ACQUIRE` and the like.
    pub(super) fn count(&mut self, proc: usize, handle: u32, strong: bool, up: bool) -> Result<(), i32> {
        if !up {
            self.lower(proc, handle, strong);
            return Ok(());
        }
        // Taking a count makes handle 0 (contract REF-05, REF-07).
        if let Some(manager) = self.manager.filter(|_| handle == 0) {
            if self.node(manager).owner == Some(proc) {
                return Err(EINVAL);
            }
            self.give(proc, manager, strong, None);
            return Ok(());
        }
        // A weak handle is not promoted (contract REF-04).
        if self.held_by(proc, handle, strong).is_some() {
            self.raise(proc, handle, strong, None);
        }
        Ok(())
    }

    /// Translates each object for the receiver; `None` if one is refused, and then nothing is left of the others
    /// (contract OBJ-03 to OBJ-08).
    pub(super) fn translate(
        &mut self,
        from: (usize, usize),
        to: usize,
        objects: &[Object],
    ) -> Option<Vec<Object>> {
        let mut arrived = Vec::new();
        let mut chain = Chain::default();
        for (index, object) in objects.iter().enumerate() {
            let made = match *object {
                Object::Buffer { len, parent } => {
                    chain.add(index, len, parent).then_some(Object::Buffer { len, parent })
                }
                Object::Node { ptr, weak } => {
                    let node = self.node_of(from.0, ptr);
                    let handle = self.give(to, node, !weak, Some(from));
                    Some(Object::Handle { handle, weak })
                }
                Object::Handle { handle, weak } => {
                    self.held_by(from.0, handle, !weak).map(|node| match self.node(node).owner {
                        Some(owner) if owner == to => {
                            self.hold(node, !weak);
                            Object::Node { ptr: self.node(node).ptr, weak }
                        }
                        _ => Object::Handle { handle: self.give(to, node, !weak, None), weak },
                    })
                }
            };
            let Some(made) = made else {
                self.drop_objects(to, &arrived);
                return None;
            };
            arrived.push(made);
        }
        Some(arrived)
    }

    /// Releases the counts of a buffer.
    pub(super) fn drop_objects(&mut self, at: usize, objects: &[Object]) {
        for object in objects {
            match *object {
                Object::Handle { handle, weak } => self.lower(at, handle, !weak),
                Object::Node { ptr, weak } => {
                    if let Some(node) = self.procs[at].nodes.get(&ptr).copied() {
                        self.unhold(node, !weak);
                    }
                }
                Object::Buffer { .. } => {}
            }
        }
    }

    /// Ends a node's owner; handles to the node stay.
    pub(super) fn orphan(&mut self, node: Id) {
        let it = self.node(node);
        (it.owner, it.queued, it.held) = (None, false, Counts::default());
        it.waiting.clear();
        if it.handles.weak == 0 {
            self.nodes.remove(&node);
        }
    }
}
