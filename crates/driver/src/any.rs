//! Room: either driver behind one type.
//! Not here: choosing one (`locate`).
//! Who measures takes [`crate::on_context`] instead: one `match`, outside of every loop, and code
//! compiled for each driver behind it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use abi::layout::{
    ExtendedError, FlatBinderObject, FreezeInfo, FrozenStatusInfo, NodeDebugInfo, NodeInfoForRef,
};

use crate::connection::{Connection, Context, Exchange, OpenOptions};
use crate::embedded::{EmbeddedConnection, EmbeddedContext};
use crate::error::OpenError;
use crate::kernel::{KernelConnection, KernelContext};
use crate::manager::ManagerError;

/// A context of either driver.
#[derive(Clone, Debug)]
pub enum AnyContext {
    /// Of the kernel's.
    Kernel(KernelContext),
    /// Of the one in user space.
    Embedded(EmbeddedContext),
}

/// Does something with the context inside an [`AnyContext`], compiled once for each driver:
/// `on_context!(any, |context| work(context))`.
#[macro_export]
macro_rules! on_context {
    ($any:expr, |$context:ident| $work:expr) => {
        match $any {
            $crate::AnyContext::Kernel($context) => $work,
            $crate::AnyContext::Embedded($context) => $work,
        }
    };
}

impl AnyContext {
    /// What another process needs to open the same context while this value lives: a path, or an
    /// embedded context's address.
    #[must_use]
    pub fn address(&self) -> String {
        match self {
            Self::Kernel(context) => context.path().display().to_string(),
            Self::Embedded(context) => context.address(),
        }
    }

    /// Reads what [`Self::address`] wrote.
    #[must_use]
    pub fn parse(address: &str) -> Self {
        match EmbeddedContext::parse(address) {
            Some(context) => Self::Embedded(context),
            None => Self::Kernel(KernelContext::at(address)),
        }
    }

    /// Whether nobody outside this process's family can reach the context.
    #[must_use]
    pub fn is_private(&self) -> bool {
        on_context!(self, |context| context.is_private())
    }

    /// The kernel's device node, if there is one.
    #[must_use]
    pub fn device(&self) -> Option<&Path> {
        match self {
            Self::Kernel(context) => Some(context.path()),
            Self::Embedded(_) => None,
        }
    }

    /// Explains why nobody became the manager, with whoever is in the way.
    #[must_use]
    pub fn manager_error(&self, source: io::Error) -> ManagerError {
        match self {
            Self::Kernel(context) => ManagerError::new(context.path(), source),
            Self::Embedded(context) => {
                ManagerError { path: context.directory().join(context.name()), source, holders: Vec::new() }
            }
        }
    }
}

impl Context for AnyContext {
    type Connection = AnyConnection;

    fn open(&self, options: OpenOptions) -> Result<AnyConnection, OpenError> {
        Ok(match self {
            Self::Kernel(context) => AnyConnection::Kernel(context.open(options)?),
            Self::Embedded(context) => AnyConnection::Embedded(context.open(options)?),
        })
    }

    fn describe(&self) -> String {
        on_context!(self, |context| context.describe())
    }
}

/// A connection of either driver.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few, and none is moved")]
pub enum AnyConnection {
    /// Of the kernel's.
    Kernel(KernelConnection),
    /// Of the one in user space.
    Embedded(EmbeddedConnection),
}

macro_rules! forward {
    ($self:ident, $call:ident($($argument:expr),*)) => {
        match $self {
            AnyConnection::Kernel(connection) => connection.$call($($argument),*),
            AnyConnection::Embedded(connection) => connection.$call($($argument),*),
        }
    };
}

impl Connection for AnyConnection {
    fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        forward!(self, write_read(exchange))
    }

    fn poll_readable(&self, timeout_ms: i32) -> io::Result<bool> {
        forward!(self, poll_readable(timeout_ms))
    }

    fn lent(&self, address: u64, len: u64) -> Option<&[u8]> {
        forward!(self, lent(address, len))
    }

    fn take_fd(&self, address: u64) -> Option<OwnedFd> {
        forward!(self, take_fd(address))
    }

    fn wake_readers(&self) -> io::Result<()> {
        forward!(self, wake_readers())
    }

    fn map_size(&self) -> usize {
        forward!(self, map_size())
    }

    fn version(&self) -> io::Result<i32> {
        forward!(self, version())
    }

    fn set_max_threads(&self, threads: u32) -> io::Result<()> {
        forward!(self, set_max_threads(threads))
    }

    fn become_context_manager(&self, node: Option<FlatBinderObject>) -> io::Result<()> {
        forward!(self, become_context_manager(node))
    }

    fn thread_exit(&self) -> io::Result<()> {
        forward!(self, thread_exit())
    }

    fn enable_oneway_spam_detection(&self, enable: bool) -> io::Result<()> {
        forward!(self, enable_oneway_spam_detection(enable))
    }

    fn extended_error(&self) -> io::Result<ExtendedError> {
        forward!(self, extended_error())
    }

    fn node_debug_info(&self, above: u64) -> io::Result<NodeDebugInfo> {
        forward!(self, node_debug_info(above))
    }

    fn node_info_for_ref(&self, info: NodeInfoForRef) -> io::Result<NodeInfoForRef> {
        forward!(self, node_info_for_ref(info))
    }

    fn freeze(&self, info: FreezeInfo) -> io::Result<()> {
        forward!(self, freeze(info))
    }

    fn frozen_info(&self, pid: u32) -> io::Result<FrozenStatusInfo> {
        forward!(self, frozen_info(pid))
    }

    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        forward!(self, set_nonblocking(on))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::Settings;

    #[test]
    fn an_address_keeps_its_driver() {
        let embedded = EmbeddedContext::at(Path::new("/run/x"), "binder", Settings::default());
        let any = AnyContext::parse(&AnyContext::Embedded(embedded).address());
        assert!(matches!(&any, AnyContext::Embedded(context) if context.directory() == Path::new("/run/x")));
        assert_eq!(any.device(), None);
        let any = AnyContext::parse("/dev/binderfs/x");
        assert_eq!((any.device(), any.is_private()), (Some(Path::new("/dev/binderfs/x")), false));
    }
}
