//! An object to call: own or another process's, and its form in a payload.
//! Facts: contract OBJ-03, OBJ-06, OBJ-08.

use std::any::Any;

use abi::codes::object;
use abi::layout::FlatBinderObject;
use abi::{Cookie, Handle, NodePtr};

use crate::error::TransactError;
use crate::runtime::Runtime;
use crate::runtime::node::Node;
use crate::runtime::proxy::Proxy;
use crate::runtime::proxy::death::DeathLink;
use crate::runtime::serve::Serve;
use crate::status_code::StatusCode;

/// A binder: one of this process's own nodes, or a proxy for another process's object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binder {
    /// An own node: calls run on the calling thread, without the driver.
    Local(Node),
    /// Another process's object.
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

    /// The node, if the object is this process's own.
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        match self {
            Self::Local(node) => Some(node),
            Self::Remote(_) => None,
        }
    }

    /// The code behind an object of this process and of this flavour.
    pub(crate) fn served<S: Serve>(&self) -> Option<&S> {
        let object: &dyn Any = self.node()?.object();
        object.downcast_ref()
    }

    /// The object that a delivered `flat_binder_object` names.
    pub(crate) fn delivered(runtime: &dyn Runtime, flat: &FlatBinderObject) -> Result<Self, StatusCode> {
        match flat.kind {
            object::BINDER => {
                let node = runtime.shared().nodes.find(NodePtr(flat.binder), Cookie(flat.cookie));
                node.map(Self::Local).ok_or(StatusCode::DEAD_OBJECT)
            }
            object::HANDLE => {
                let handle = Handle(flat.binder as u32);
                Ok(Self::Remote(runtime.shared().proxies.proxy(runtime.hold(), handle)))
            }
            _ => Err(StatusCode::BAD_TYPE),
        }
    }

    /// The `flat_binder_object` that sends this object; `remote_flags` go with a handle, a node has its own.
    pub(crate) fn flat(&self, remote_flags: u32) -> FlatBinderObject {
        match self {
            Self::Local(node) => FlatBinderObject {
                kind: object::BINDER,
                flags: node.flags(),
                binder: node.ptr().0,
                cookie: node.cookie().0,
            },
            Self::Remote(proxy) => FlatBinderObject {
                kind: object::HANDLE,
                flags: remote_flags,
                binder: proxy.handle().0.into(),
                cookie: 0,
            },
        }
    }

    /// Calls `gone` when the object's process dies; `None` for an own object.
    ///
    /// A thread of the process's pool runs it, perhaps before this returns: enter first what it removes.
    ///
    /// # Errors
    /// The driver does not take the request.
    pub fn on_death(&self, gone: impl FnOnce() + Send + 'static) -> Result<Option<DeathLink>, TransactError> {
        self.proxy().map(|proxy| proxy.link_to_death(gone)).transpose()
    }

    /// Whether this process has been told that the object is dead.
    pub(crate) fn is_known_dead(&self) -> bool {
        self.proxy().is_some_and(Proxy::is_known_dead)
    }
}

/// The null binder on the wire. It is not listed in the offsets: the driver has nothing to translate.
pub(crate) fn null_object(flags: u32) -> FlatBinderObject {
    FlatBinderObject { kind: object::BINDER, flags, ..FlatBinderObject::default() }
}

/// Whether an unlisted object is [`null_object`].
pub(crate) fn is_null(flat: &FlatBinderObject) -> bool {
    flat.kind == object::BINDER && flat.binder == 0 && flat.cookie == 0
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
