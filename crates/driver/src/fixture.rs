//! A connection for tests of what stands on the seam.

use std::io;
use std::os::fd::OwnedFd;

use abi::layout::{
    ExtendedError, FlatBinderObject, FreezeInfo, FrozenStatusInfo, NodeDebugInfo, NodeInfoForRef,
};

use crate::{Connection, Exchange};

/// A connection that takes all commands, returns nothing, and grants every other request without an effect. A test's
/// own connection wraps it by [`forward_connection`](crate::forward_connection).
#[derive(Default)]
pub struct IdleConnection {
    /// Address of the receiving area.
    pub base: u64,
    /// Content of the receiving area.
    pub area: Vec<u8>,
    /// Every thread's extended error.
    pub error: ExtendedError,
}

impl Connection for IdleConnection {
    fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        exchange.write_consumed = exchange.write.len();
        Ok(())
    }

    fn poll_readable(&self, _timeout_ms: i32) -> io::Result<bool> {
        Ok(true)
    }

    fn lent(&self, address: u64, len: u64) -> Option<&[u8]> {
        let start = usize::try_from(address.checked_sub(self.base)?).ok()?;
        self.area.get(start..start.checked_add(usize::try_from(len).ok()?)?)
    }

    fn take_fd(&self, _address: u64) -> Option<OwnedFd> {
        None
    }

    fn wake_readers(&self) -> io::Result<()> {
        Ok(())
    }

    fn map_size(&self) -> usize {
        self.area.len()
    }

    fn version(&self) -> io::Result<i32> {
        Ok(abi::PROTOCOL_VERSION)
    }

    fn set_max_threads(&self, _threads: u32) -> io::Result<()> {
        Ok(())
    }

    fn become_context_manager(&self, _node: Option<FlatBinderObject>) -> io::Result<()> {
        Ok(())
    }

    fn thread_exit(&self) -> io::Result<()> {
        Ok(())
    }

    fn enable_oneway_spam_detection(&self, _enable: bool) -> io::Result<()> {
        Ok(())
    }

    fn extended_error(&self) -> io::Result<ExtendedError> {
        Ok(self.error)
    }

    fn node_debug_info(&self, _above: u64) -> io::Result<NodeDebugInfo> {
        Ok(NodeDebugInfo::default())
    }

    fn node_info_for_ref(&self, info: NodeInfoForRef) -> io::Result<NodeInfoForRef> {
        Ok(info)
    }

    fn freeze(&self, _info: FreezeInfo) -> io::Result<()> {
        Ok(())
    }

    fn frozen_info(&self, _pid: u32) -> io::Result<FrozenStatusInfo> {
        Ok(FrozenStatusInfo::default())
    }

    fn set_nonblocking(&self, _on: bool) -> io::Result<()> {
        Ok(())
    }
}
