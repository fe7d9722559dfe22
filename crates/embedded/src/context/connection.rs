//! Open context of the embedded driver: one process's end.
//! Not here: the context's identity (`super`), the driver behind it (`client`).

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use abi::codes::ioctl;
use abi::layout::{
    ExtendedError, FlatBinderObject, FreezeInfo, FrozenStatusInfo, NodeDebugInfo, NodeInfoForRef,
};

use super::EmbeddedContext;
use crate::client::identity::Identity;
use crate::client::{Area, Opener, Process};
use crate::program::{OwnNumbers, Program};
use crate::rpc::protocol::StateFile;
use crate::trace_events::TraceWriter;
use driver::connection::{Connection, Exchange, OpenOptions};
use driver::error::OpenError;

/// An open context of the embedded driver.
#[derive(Debug)]
pub struct EmbeddedConnection {
    process: Arc<Process>,
    /// The thread that this value speaks for.
    who: Identity,
}

impl EmbeddedConnection {
    /// Joins the context, starting its broker if there is none.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(context: &EmbeddedContext, options: OpenOptions) -> Result<Self, OpenError> {
        Self::open_as(context, options, Opener::default())
    }

    /// Joins the context for a program in another process, whose thread `tid` asks for it. Calls are then made by
    /// [`Self::as_thread`] only; payloads are read from the program's memory, and descriptors are the program's.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_for(
        context: &EmbeddedContext,
        options: OpenOptions,
        program: Arc<dyn Program>,
        tid: i32,
    ) -> Result<Self, OpenError> {
        Self::open_as(
            context,
            options,
            Opener { who: Identity::Other(tid), program: Some(program), trace: None },
        )
    }

    fn open_as(context: &EmbeddedContext, options: OpenOptions, opener: Opener) -> Result<Self, OpenError> {
        let marks = match context.marks() {
            Some((folder, amount)) => {
                let marks = TraceWriter::open(folder, amount).map_err(|source| OpenError::Os {
                    path: folder.to_owned(),
                    call: "opening the marker of a trace",
                    source,
                })?;
                Some(match context.records() {
                    Some(path) => marks.with_records(path),
                    None => marks,
                })
            }
            None => TraceWriter::as_requested(),
        };
        let opener = Opener { trace: marks, ..opener };
        let process =
            Process::open(context.directory(), context.name(), context.settings(), options, opener)?;
        Ok(Self { process: Arc::new(process), who: Identity::Caller })
    }

    /// The same connection on behalf of another thread, of this process or another one: every method of the result acts
    /// as if thread `tid` (a kernel thread id) had called it, which a supervisor of unmodified programs needs. The
    /// thread's priority is inherited and restored, as far as the calling thread may change it. A blocked method returns
    /// `EINTR` for a signal to the calling thread. One method at a time may run for a thread.
    ///
    /// The context stays open until all values of the connection are dropped.
    #[must_use]
    pub fn as_thread(&self, tid: i32) -> Self {
        Self { process: self.process.clone(), who: Identity::Other(tid) }
    }

    /// A descriptor that polls readable exactly while the thread has something to read (contract POL-01 to POL-03):
    /// for `poll`, `select`, `epoll`, or an event loop. It belongs to this thread (POL-04): another thread needs its
    /// own. Its bytes are the driver's: a program must not read them. It hangs up after `BINDER_THREAD_EXIT`.
    ///
    /// The first request of a thread starts a helper thread, which waits while this thread is outside the driver.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`: no descriptor is available. `EAGAIN`: no thread can be started.
    pub fn poll_descriptor(&self) -> io::Result<OwnedFd> {
        self.process.poll_descriptor(self.who)
    }

    #[cfg(test)]
    pub(crate) fn process_for_tests(&self) -> &Arc<Process> {
        &self.process
    }

    /// First address of the receiving area, in the address space of deliveries; `None` if nothing is mapped.
    #[must_use]
    pub fn map_base(&self) -> Option<u64> {
        self.process.map_base()
    }

    /// Maps a receiving area of `size` bytes (at most 4 MiB are used), for a connection that was opened without one.
    /// Before that the connection can send and own nodes, but cannot be called (contract OPN-09).
    ///
    /// # Errors
    /// `EBUSY`: it was mapped before, even if [`Self::unmap`] followed (contract OPN-04). `EINVAL`: 0 bytes.
    /// `ENOMEM`, `EMFILE`: no memory or descriptor is available.
    pub fn map(&self, size: usize) -> io::Result<()> {
        self.process.map(size)
    }

    /// Makes the memory of a receiving area of `size` bytes, for a program that maps it itself; once. Nothing is
    /// received before [`Self::adopt`].
    ///
    /// # Errors
    /// See [`Self::map`].
    pub fn area(&self, size: usize) -> io::Result<Area> {
        self.process.area(size)
    }

    /// Receives into an area that the program has mapped at `base`.
    ///
    /// # Errors
    /// `ENOMEM`. `EBUSY`: another area is in use.
    pub fn adopt(&self, area: Area, base: u64) -> io::Result<()> {
        self.process.adopt(area, Some(base))
    }

    /// Unmaps the receiving area while the context stays open (contract OPN-10). It cannot be mapped again (OPN-04).
    /// Its memory stays until the connection is dropped.
    pub fn unmap(&self) {
        self.process.unmap(self.who);
    }

    /// From now on, descriptors that arrive belong to the program under the numbers in their FD objects, as the kernel's
    /// driver installs them (contract OBJ-11, OBJ-13): nothing here closes them, and `take_fd` finds none. For programs
    /// that read the numbers themselves. `own`: how it treats the numbers that it sends.
    pub fn install_descriptors(&self, own: OwnNumbers) {
        self.process.install_descriptors(own);
    }

    /// Gives up a forked child's part in its parent's connection: what the child holds of it no longer keeps the parent's
    /// end from being seen. Call it in the child only, and nothing else of this value afterwards.
    pub fn leave_to_parent(&self) {
        self.process.leave_to_parent();
    }

    /// Text of a state file with everything that the broker knows.
    ///
    /// # Errors
    /// The broker is gone.
    pub fn state(&self, which: StateFile) -> io::Result<String> {
        self.process.state(self.who, which)
    }

    /// Memory of every channel and of the peer's doorbells, for tests that overwrite it.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) fn take_channels(&self) -> Vec<[sys::sealed_memory::SealedMemory; 2]> {
        self.process.take_channels()
    }
}

impl Connection for EmbeddedConnection {
    fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        self.process.write_read(self.who, exchange)
    }

    fn poll_readable(&self, timeout_ms: i32) -> io::Result<bool> {
        self.process.poll_readable(self.who, timeout_ms)
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
        self.process.ioctl(ioctl::VERSION, |process| process.version(self.who))
    }

    fn set_max_threads(&self, threads: u32) -> io::Result<()> {
        self.process.ioctl(ioctl::SET_MAX_THREADS, |process| process.set_max_threads(self.who, threads))
    }

    fn become_context_manager(&self, node: Option<FlatBinderObject>) -> io::Result<()> {
        let request = if node.is_some() { ioctl::SET_CONTEXT_MGR_EXT } else { ioctl::SET_CONTEXT_MGR };
        self.process.ioctl(request, |process| process.become_context_manager(self.who, node))
    }

    fn thread_exit(&self) -> io::Result<()> {
        self.process.ioctl(ioctl::THREAD_EXIT, |process| process.thread_exit(self.who))
    }

    fn enable_oneway_spam_detection(&self, enable: bool) -> io::Result<()> {
        self.process.ioctl(ioctl::ENABLE_ONEWAY_SPAM_DETECTION, |process| {
            process.enable_oneway_spam_detection(self.who, enable)
        })
    }

    fn extended_error(&self) -> io::Result<ExtendedError> {
        self.process.ioctl(ioctl::GET_EXTENDED_ERROR, |process| process.extended_error(self.who))
    }

    fn node_debug_info(&self, above: u64) -> io::Result<NodeDebugInfo> {
        self.process.ioctl(ioctl::GET_NODE_DEBUG_INFO, |process| process.node_debug_info(self.who, above))
    }

    fn node_info_for_ref(&self, info: NodeInfoForRef) -> io::Result<NodeInfoForRef> {
        self.process.ioctl(ioctl::GET_NODE_INFO_FOR_REF, |process| process.node_info_for_ref(self.who, info))
    }

    fn freeze(&self, info: FreezeInfo) -> io::Result<()> {
        self.process.ioctl(ioctl::FREEZE, |process| process.freeze(self.who, info))
    }

    fn frozen_info(&self, pid: u32) -> io::Result<FrozenStatusInfo> {
        self.process.ioctl(ioctl::GET_FROZEN_INFO, |process| process.frozen_info(self.who, pid))
    }

    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.process.set_nonblocking(on);
        Ok(())
    }
}
