//! Room: an object to call, wherever it lives.

use std::os::unix::fs::MetadataExt;

use crate::node::Node;
use crate::proxy::Proxy;

/// A binder: one of this process's own nodes, or a proxy for another's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binder {
    /// Ours: calls run on the calling thread, without the driver.
    Local(Node),
    /// Theirs.
    Remote(Proxy),
}

impl Binder {
    /// The proxy, if the object is another process's.
    #[must_use]
    pub fn proxy(&self) -> Option<&Proxy> {
        match self {
            Self::Local(_) => None,
            Self::Remote(proxy) => Some(proxy),
        }
    }

    /// The node, if the object is ours.
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        match self {
            Self::Local(node) => Some(node),
            Self::Remote(_) => None,
        }
    }
}

impl From<Node> for Binder {
    fn from(node: Node) -> Self {
        Self::Local(node)
    }
}

impl From<Proxy> for Binder {
    fn from(proxy: Proxy) -> Self {
        Self::Remote(proxy)
    }
}

/// The owner of this process's own entry in procfs is its effective user; 0 without procfs.
pub(crate) fn own_euid() -> u32 {
    std::fs::metadata("/proc/self").map_or(0, |entry| entry.uid())
}
