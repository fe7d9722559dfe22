//! The numbers of the protocol, each a type of its own so that two cannot be swapped.
//! Not here: what they name (`ipc`), how they are encoded (`command`, `returns`).

use std::fmt;

/// One process's number for its ref on a node. 0 is the context manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u32);

impl Handle {
    /// The context manager of the opened context.
    pub const CONTEXT_MANAGER: Self = Self(0);
}

/// The owner's address-like name for its node (`flat_binder_object.binder`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodePtr(pub u64);

/// A word that the driver stores and gives back (node, death or freeze cookie); only the process
/// that chose it interprets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cookie(pub u64);

/// Where a delivered buffer starts in the receiver's mapping; the argument of `BC_FREE_BUFFER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferAddress(pub u64);

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for BufferAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
