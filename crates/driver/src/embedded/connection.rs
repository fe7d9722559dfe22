//! Room: a process's end of an embedded context.
//! Not here: which context (`context`), what is behind it (`process`).

use std::io;
use std::os::fd::OwnedFd;

use abi::codes::ioctl;
use abi::layout::{
    ExtendedError, FlatBinderObject, FreezeInfo, FrozenStatusInfo, NodeDebugInfo, NodeInfoForRef,
};

use super::context::EmbeddedContext;
use super::marks::Marks;
use super::process::Process;
use super::protocol::StateFile;
use crate::connection::{Connection, Exchange, OpenOptions};
use crate::error::OpenError;

/// An open context of the embedded driver.
#[derive(Debug)]
pub struct EmbeddedConnection {
    process: Process,
}

impl EmbeddedConnection {
    /// Joins the context, starting its broker if there is none.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(context: &EmbeddedContext, options: OpenOptions) -> Result<Self, OpenError> {
        let marks = match context.marks() {
            Some(folder) => Some(Marks::open(folder).map_err(|source| OpenError::Os {
                path: folder.to_owned(),
                call: "opening the marker of a trace",
                source,
            })?),
            None => Marks::as_requested(),
        };
        let process = Process::open(context.directory(), context.name(), context.settings(), options, marks)?;
        Ok(Self { process })
    }

    #[cfg(test)]
    pub(super) fn process_for_tests(&self) -> &Process {
        &self.process
    }

    /// First address of the receiving area, as deliveries name it; `None` when nothing is mapped.
    #[must_use]
    pub fn map_base(&self) -> Option<u64> {
        self.process.map_base()
    }

    /// Gives the receiving area up while the context stays open (contract OPN-10). It cannot come
    /// back (OPN-04).
    pub fn unmap(&mut self) {
        self.process.unmap();
    }

    /// The text of a state file, of everything that the broker knows.
    ///
    /// # Errors
    /// The broker is gone.
    pub fn state(&self, which: StateFile) -> io::Result<String> {
        self.process.state(which)
    }

    /// The memory of every channel and of the peer's doorbells, to write anything there.
    #[cfg(any(test, feature = "fuzz"))]
    pub(super) fn take_channels(&self) -> Vec<[sys::sealed_memory::SealedMemory; 2]> {
        self.process.take_channels()
    }
}

impl Connection for EmbeddedConnection {
    fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        self.process.write_read(exchange)
    }

    fn poll_readable(&self, timeout_ms: i32) -> io::Result<bool> {
        self.process.poll_readable(timeout_ms)
    }

    fn lent(&self, address: u64, len: u64) -> Option<&[u8]> {
        self.process.lent(address, len)
    }

    fn take_fd(&self, address: u64) -> Option<OwnedFd> {
        self.process.take_fd(address)
    }

    fn wake_readers(&self) -> io::Result<()> {
        self.process.wake_readers();
        Ok(())
    }

    fn map_size(&self) -> usize {
        self.process.map_size()
    }

    fn version(&self) -> io::Result<i32> {
        self.process.ioctl(ioctl::VERSION, |process| process.version())
    }

    fn set_max_threads(&self, threads: u32) -> io::Result<()> {
        self.process.ioctl(ioctl::SET_MAX_THREADS, |process| process.set_max_threads(threads))
    }

    fn become_context_manager(&self, node: Option<FlatBinderObject>) -> io::Result<()> {
        let request = if node.is_some() { ioctl::SET_CONTEXT_MGR_EXT } else { ioctl::SET_CONTEXT_MGR };
        self.process.ioctl(request, |process| process.become_context_manager(node))
    }

    fn thread_exit(&self) -> io::Result<()> {
        self.process.ioctl(ioctl::THREAD_EXIT, |process| process.thread_exit())
    }

    fn enable_oneway_spam_detection(&self, enable: bool) -> io::Result<()> {
        self.process.ioctl(ioctl::ENABLE_ONEWAY_SPAM_DETECTION, |process| {
            process.enable_oneway_spam_detection(enable)
        })
    }

    fn extended_error(&self) -> io::Result<ExtendedError> {
        self.process.ioctl(ioctl::GET_EXTENDED_ERROR, |process| process.extended_error())
    }

    fn node_debug_info(&self, above: u64) -> io::Result<NodeDebugInfo> {
        self.process.ioctl(ioctl::GET_NODE_DEBUG_INFO, |process| process.node_debug_info(above))
    }

    fn node_info_for_ref(&self, info: NodeInfoForRef) -> io::Result<NodeInfoForRef> {
        self.process.ioctl(ioctl::GET_NODE_INFO_FOR_REF, |process| process.node_info_for_ref(info))
    }

    fn freeze(&self, info: FreezeInfo) -> io::Result<()> {
        self.process.ioctl(ioctl::FREEZE, |process| process.freeze(info))
    }

    fn frozen_info(&self, pid: u32) -> io::Result<FrozenStatusInfo> {
        self.process.ioctl(ioctl::GET_FROZEN_INFO, |process| process.frozen_info(pid))
    }

    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.process.set_nonblocking(on);
        Ok(())
    }
}
