//! The node table: this process's objects by ptr and cookie.
//! Not here: serving calls (`serve`), scheduling attributes (`scheduling`), other processes' objects (`proxy`).
//! Locks: `slots`, held for a few loads and stores; no user code runs and no user value is dropped under it.
//! Facts: contract REF-08..REF-12, OBJ-03..OBJ-06, CTX-03.
//!
//! A node lives while this process holds a [`Node`] (for instance in a parcel) or the driver reports strong references.
//! Its ptr is never reused, so that a return about an old node cannot hit a new one; its cookie is the slot index.
//! Several threads may handle the driver's returns out of order; counts instead of flags make the result correct.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use abi::{Cookie, NodePtr};

use crate::runtime::serve::Serve;

/// A reference to one of this process's own nodes.
#[derive(Clone)]
pub struct Node {
    inner: Arc<NodeInner>,
}

struct NodeInner {
    ptr: NodePtr,
    cookie: Cookie,
    flags: u32,
    object: Box<dyn Serve>,
    nodes: Weak<Nodes>,
}

impl Node {
    /// The ptr by which the driver names it.
    #[must_use]
    pub fn ptr(&self) -> NodePtr {
        self.inner.ptr
    }

    /// The cookie that the driver returns with each call.
    #[must_use]
    pub fn cookie(&self) -> Cookie {
        self.inner.cookie
    }

    /// The `FLAT_BINDER_FLAG_*` word it is sent with.
    #[must_use]
    pub fn flags(&self) -> u32 {
        self.inner.flags
    }

    pub(crate) fn object(&self) -> &dyn Serve {
        &*self.inner.object
    }

    pub(crate) fn into_any(self) -> Arc<dyn Any> {
        self.inner
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Node {}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({})", self.inner.ptr.0)
    }
}

impl Drop for NodeInner {
    fn drop(&mut self) {
        if let Some(nodes) = self.nodes.upgrade() {
            nodes.vacate(self.ptr, self.cookie);
        }
    }
}

struct Slot {
    /// 0 in a vacant slot; also the context manager's, which alone has slot 0.
    ptr: u64,
    node: Weak<NodeInner>,
    /// Kept while the driver reports strong references.
    held: Option<Node>,
    strong: i32,
    weak: i32,
}

impl Slot {
    const fn vacant() -> Self {
        Self { ptr: 0, node: Weak::new(), held: None, strong: 0, weak: 0 }
    }
}

struct Slots {
    /// Slot 0 is the context manager's.
    slots: Vec<Slot>,
    vacant: Vec<usize>,
    last_ptr: u64,
}

/// The nodes of one process.
pub(crate) struct Nodes {
    slots: RwLock<Slots>,
}

impl Nodes {
    pub(crate) fn new() -> Arc<Self> {
        let slots = Slots { slots: vec![Slot::vacant()], vacant: Vec::new(), last_ptr: 0 };
        Arc::new(Self { slots: RwLock::new(slots) })
    }

    // Nothing panics under the lock, so a poisoned one still holds a consistent table.
    fn read(&self) -> RwLockReadGuard<'_, Slots> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Slots> {
        self.slots.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a node; the result keeps it alive.
    pub(crate) fn publish(self: &Arc<Self>, object: Box<dyn Serve>, flags: u32) -> Node {
        let mut table = self.write();
        table.last_ptr += 1;
        let ptr = table.last_ptr;
        let index = table.vacant.pop().unwrap_or(table.slots.len());
        let inner = NodeInner {
            ptr: NodePtr(ptr),
            cookie: Cookie(index as u64),
            flags,
            object,
            nodes: Arc::downgrade(self),
        };
        let node = Node { inner: Arc::new(inner) };
        let slot = Slot { ptr, node: Arc::downgrade(&node.inner), ..Slot::vacant() };
        match table.slots.get_mut(index) {
            Some(vacant) => *vacant = slot,
            None => table.slots.push(slot),
        }
        node
    }

    /// The context manager's node (ptr 0, cookie 0): the driver never reports references to it, so
    /// it is held until [`Self::clear`]. Returns the one that was there.
    pub(crate) fn publish_manager(
        self: &Arc<Self>,
        object: Box<dyn Serve>,
        flags: u32,
    ) -> (Node, Option<Node>) {
        let inner =
            NodeInner { ptr: NodePtr(0), cookie: Cookie(0), flags, object, nodes: Arc::downgrade(self) };
        let node = Node { inner: Arc::new(inner) };
        let previous = self.write().slots[0].held.replace(node.clone());
        (node, previous)
    }

    /// Puts back what [`Self::publish_manager`] replaced; returns what that had put there.
    pub(crate) fn restore_manager(&self, previous: Option<Node>) -> Option<Node> {
        std::mem::replace(&mut self.write().slots[0].held, previous)
    }

    /// Whether this process has the context manager's node.
    pub(crate) fn has_manager(&self) -> bool {
        self.read().slots[0].held.is_some()
    }

    /// The node that a return or an object names.
    pub(crate) fn find(&self, ptr: NodePtr, cookie: Cookie) -> Option<Node> {
        let table = self.read();
        let slot = table.slots.get(usize::try_from(cookie.0).ok()?).filter(|slot| slot.ptr == ptr.0)?;
        match &slot.held {
            Some(node) => Some(node.clone()),
            None => slot.node.upgrade().map(|inner| Node { inner }),
        }
    }

    fn with_slot<T>(&self, ptr: NodePtr, cookie: Cookie, change: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        let mut table = self.write();
        let index = usize::try_from(cookie.0).ok().filter(|index| *index != 0)?;
        table.slots.get_mut(index).filter(|slot| slot.ptr == ptr.0).map(change)
    }

    /// `BR_INCREFS`
    pub(crate) fn increfs(&self, ptr: NodePtr, cookie: Cookie) {
        self.with_slot(ptr, cookie, |slot| slot.weak += 1);
    }

    /// `BR_DECREFS`
    pub(crate) fn decrefs(&self, ptr: NodePtr, cookie: Cookie) {
        self.with_slot(ptr, cookie, |slot| slot.weak -= 1);
    }

    /// `BR_ACQUIRE`: the driver holds a strong reference. Returns a surplus reference, to be dropped without the
    /// lock.
    #[must_use = "dropping it may run user code"]
    pub(crate) fn acquire(&self, ptr: NodePtr, cookie: Cookie) -> Option<Node> {
        self.with_slot(ptr, cookie, |slot| {
            slot.strong += 1;
            let node = slot.node.upgrade().map(|inner| Node { inner });
            if slot.strong > 0 && slot.held.is_none() {
                std::mem::replace(&mut slot.held, node)
            } else {
                node
            }
        })
        .flatten()
    }

    /// `BR_RELEASE`: the driver's strong reference is gone. Returns the table's reference, the node's last perhaps.
    #[must_use = "dropping it may run user code"]
    pub(crate) fn release(&self, ptr: NodePtr, cookie: Cookie) -> Option<Node> {
        self.with_slot(ptr, cookie, |slot| {
            slot.strong -= 1;
            if slot.strong <= 0 { slot.held.take() } else { None }
        })
        .flatten()
    }

    /// Strong and weak references that the driver has reported and not taken back.
    pub(crate) fn counts(&self, node: &Node) -> (i32, i32) {
        let table = self.read();
        let slot = table.slots.get(node.cookie().0 as usize).filter(|slot| slot.ptr == node.ptr().0);
        slot.map_or((0, 0), |slot| (slot.strong, slot.weak))
    }

    fn vacate(&self, ptr: NodePtr, cookie: Cookie) {
        let index = cookie.0 as usize;
        if index == 0 {
            return;
        }
        let mut table = self.write();
        if let Some(slot) = table.slots.get_mut(index).filter(|slot| slot.ptr == ptr.0) {
            *slot = Slot::vacant();
            table.vacant.push(index);
        }
    }

    /// Drops every reference held for the driver: the process serves no more.
    pub(crate) fn clear(&self) {
        let held: Vec<Node> = self.write().slots.iter_mut().filter_map(|slot| slot.held.take()).collect();
        drop(held);
    }
}
