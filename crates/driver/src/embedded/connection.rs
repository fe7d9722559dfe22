//! Room: a process's end of an embedded context.
//! Not here: which context (`context`).

use std::io;
use std::os::fd::OwnedFd;

use abi::layout::{
    ExtendedError, FlatBinderObject, FreezeInfo, FrozenStatusInfo, NodeDebugInfo, NodeInfoForRef,
};

use super::context::EmbeddedContext;
use crate::connection::{Connection, Exchange, OpenOptions};
use crate::error::OpenError;

/// An open context of the embedded driver.
#[derive(Debug)]
pub struct EmbeddedConnection(std::convert::Infallible);

impl EmbeddedConnection {
    /// Joins the context, starting its broker if there is none.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(context: &EmbeddedContext, _options: OpenOptions) -> Result<Self, OpenError> {
        let why = "this build's embedded driver is not ready yet".to_owned();
        Err(OpenError::Embedded { directory: context.directory().to_owned(), why })
    }

    /// First address of the receiving area, as deliveries name it; `None` when nothing is mapped.
    #[must_use]
    pub fn map_base(&self) -> Option<u64> {
        match self.0 {}
    }

    /// Gives the receiving area up while the context stays open (contract OPN-10). It cannot come
    /// back (OPN-04).
    pub fn unmap(&mut self) {
        match self.0 {}
    }
}

impl Connection for EmbeddedConnection {
    fn write_read(&self, _exchange: &mut Exchange<'_>) -> io::Result<()> {
        match self.0 {}
    }

    fn poll_readable(&self, _timeout_ms: i32) -> io::Result<bool> {
        match self.0 {}
    }

    fn lent(&self, _address: u64, _len: u64) -> Option<&[u8]> {
        match self.0 {}
    }

    fn take_fd(&self, _address: u64) -> Option<OwnedFd> {
        match self.0 {}
    }

    fn wake_readers(&self) -> io::Result<()> {
        match self.0 {}
    }

    fn map_size(&self) -> usize {
        match self.0 {}
    }

    fn version(&self) -> io::Result<i32> {
        match self.0 {}
    }

    fn set_max_threads(&self, _threads: u32) -> io::Result<()> {
        match self.0 {}
    }

    fn become_context_manager(&self, _node: Option<FlatBinderObject>) -> io::Result<()> {
        match self.0 {}
    }

    fn thread_exit(&self) -> io::Result<()> {
        match self.0 {}
    }

    fn enable_oneway_spam_detection(&self, _enable: bool) -> io::Result<()> {
        match self.0 {}
    }

    fn extended_error(&self) -> io::Result<ExtendedError> {
        match self.0 {}
    }

    fn node_debug_info(&self, _above: u64) -> io::Result<NodeDebugInfo> {
        match self.0 {}
    }

    fn node_info_for_ref(&self, _info: NodeInfoForRef) -> io::Result<NodeInfoForRef> {
        match self.0 {}
    }

    fn freeze(&self, _info: FreezeInfo) -> io::Result<()> {
        match self.0 {}
    }

    fn frozen_info(&self, _pid: u32) -> io::Result<FrozenStatusInfo> {
        match self.0 {}
    }

    fn set_nonblocking(&self, _on: bool) -> io::Result<()> {
        match self.0 {}
    }
}
