//! The interface of a driver: one process's connection to one binder context.
//! Not here: a driver (`kernel`, `embedded`), the meaning of the streams (`abi`), retries (`ipc`).
//! Facts: contract sections 1 to 3.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use abi::Payload;
use abi::layout::{
    ExtendedError, FlatBinderObject, FreezeInfo, FrozenStatusInfo, NodeDebugInfo, NodeInfoForRef,
};

use crate::OpenError;

/// Size of a receiving area as libbinder and libhwbinder map it: 1 MiB less two pages.
#[must_use]
pub fn default_map_size() -> usize {
    (1 << 20) - 2 * sys::page::size()
}

/// The buffers of one `BINDER_WRITE_READ` and how far the driver got in them.
///
/// Both counts are inputs too (contract WR-01): a call repeated with the same value goes on where
/// the last one stopped.
#[derive(Debug)]
pub struct Exchange<'b> {
    /// Commands for the driver; empty for a pure read.
    pub write: &'b [u8],
    /// How many bytes of `write` the driver has taken.
    pub write_consumed: usize,
    /// Room for returns; empty for a pure write. Work is returned only into 80 bytes or more
    /// (contract WR-08).
    pub read: &'b mut [u8],
    /// How many bytes of `read` the driver has filled.
    pub read_consumed: usize,
    /// The bytes to which a transaction in `write` points, and which the caller does not change during the call.
    /// Optional: a driver in user space copies what lies in them directly, and reads any other address through the
    /// kernel, which reports bad ones.
    pub payload: Payload<'b>,
}

impl<'b> Exchange<'b> {
    /// Writes `write`, then reads into `read`.
    #[inline]
    pub fn new(write: &'b [u8], read: &'b mut [u8]) -> Self {
        Self { write, write_consumed: 0, read, read_consumed: 0, payload: Payload::default() }
    }

    /// Adds the payload of the transaction in `write`.
    #[inline]
    #[must_use]
    pub fn with_payload(self, payload: Payload<'b>) -> Self {
        Self { payload, ..self }
    }

    /// The returns that the driver filled in.
    #[must_use]
    pub fn returned(&self) -> &[u8] {
        &self.read[..self.read_consumed]
    }

    /// Whether every command was taken.
    #[must_use]
    pub fn all_written(&self) -> bool {
        self.write_consumed == self.write.len()
    }
}

/// One open binder context: a *process* in the driver's sense, shared by its threads.
///
/// Every method works for the calling thread; a driver knows threads by their kernel tid.
pub trait Connection: Send + Sync + 'static {
    /// One `BINDER_WRITE_READ`, exactly once. Blocks while `exchange.read` has room and there is
    /// nothing to return, unless opened non-blocking.
    ///
    /// # Errors
    /// `EINTR` (a signal; nothing is lost, call again with the same exchange: WR-02, WR-06),
    /// `EAGAIN` (non-blocking), `EINVAL`/`EFAULT` (a command the driver refuses: WR-11).
    fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()>;

    /// [`Self::write_read`], repeated while a signal interrupts it.
    ///
    /// # Errors
    /// Those of `write_read` except `EINTR`.
    fn write_read_uninterrupted(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        loop {
            match self.write_read(exchange) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Waits until the calling thread has something to read; `timeout_ms` < 0 waits for ever.
    /// Returns whether it has (contract POL-01, POL-02).
    ///
    /// # Errors
    /// `EINTR`.
    fn poll_readable(&self, timeout_ms: i32) -> io::Result<bool>;

    /// The bytes that the driver lent at `address`: only for a range that a return delivered and
    /// that was not freed yet. `None` if it does not lie wholly in the receiving area.
    fn lent(&self, address: u64, len: u64) -> Option<&[u8]>;

    /// Takes over the descriptor that came with the file descriptor object at `address`: for each
    /// object that a delivery lists in its offsets, once. `None` if no such object stands there.
    fn take_fd(&self, address: u64) -> Option<OwnedFd>;

    /// Makes blocking reads of this connection return early, possibly with nothing, so that their
    /// threads can look whether they are still wanted. Reads that begin just afterwards may or may
    /// not be interrupted (contract EXT-07): repeat until the threads are gone.
    ///
    /// # Errors
    /// `EMFILE`.
    fn wake_readers(&self) -> io::Result<()>;

    /// Size of the receiving area in bytes, as mapped.
    fn map_size(&self) -> usize;

    /// The open device, which another program can inherit; `None` of a driver without one.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// `BINDER_VERSION`: the protocol version.
    ///
    /// # Errors
    /// None in normal work.
    fn version(&self) -> io::Result<i32>;

    /// `BINDER_SET_MAX_THREADS`: how many loopers the driver may ask for.
    ///
    /// # Errors
    /// None in normal work.
    fn set_max_threads(&self, threads: u32) -> io::Result<()>;

    /// Become the context manager. `Some(node)` gives the node's flags, ptr and cookie
    /// (`BINDER_SET_CONTEXT_MGR_EXT`), `None` is the plain form with all 0.
    ///
    /// # Errors
    /// `EBUSY`: there is one. `EPERM`: another uid was the first. `EINVAL`: no `_EXT` (before 5.1).
    fn become_context_manager(&self, node: Option<FlatBinderObject>) -> io::Result<()>;

    /// `BINDER_THREAD_EXIT`: the driver forgets the calling thread.
    ///
    /// # Errors
    /// None in normal work.
    fn thread_exit(&self) -> io::Result<()>;

    /// `BINDER_ENABLE_ONEWAY_SPAM_DETECTION`.
    ///
    /// # Errors
    /// `EINVAL`: the driver is older than Linux 5.13.
    fn enable_oneway_spam_detection(&self, enable: bool) -> io::Result<()>;

    /// `BINDER_GET_EXTENDED_ERROR`: reads and clears the calling thread's record.
    ///
    /// # Errors
    /// `EINVAL`: the driver is older than Linux 5.19.
    fn extended_error(&self) -> io::Result<ExtendedError>;

    /// `BINDER_GET_NODE_DEBUG_INFO`: the own node with the smallest ptr above `above`.
    ///
    /// # Errors
    /// None in normal work.
    fn node_debug_info(&self, above: u64) -> io::Result<NodeDebugInfo>;

    /// `BINDER_GET_NODE_INFO_FOR_REF` (context manager only).
    ///
    /// # Errors
    /// `EPERM`, `EINVAL`, `ENOENT` (contract IOC-04).
    fn node_info_for_ref(&self, info: NodeInfoForRef) -> io::Result<NodeInfoForRef>;

    /// `BINDER_FREEZE`.
    ///
    /// # Errors
    /// `EAGAIN`: still pending. `EINVAL`: no such process, or older than Linux 5.13.
    fn freeze(&self, info: FreezeInfo) -> io::Result<()>;

    /// `BINDER_GET_FROZEN_INFO`.
    ///
    /// # Errors
    /// `EINVAL`: no such process.
    fn frozen_info(&self, pid: u32) -> io::Result<FrozenStatusInfo>;

    /// Switches `O_NONBLOCK` of this open file (looked at in each read, contract WR-04).
    ///
    /// # Errors
    /// See `fcntl(2)`.
    fn set_nonblocking(&self, on: bool) -> io::Result<()>;
}

/// Implements the methods of [`Connection`] that a wrapper around another connection does not change: all except
/// `write_read`, `poll_readable` and `thread_exit`. `$inner` is the field with the wrapped connection.
#[macro_export]
macro_rules! forward_connection {
    ($inner:tt) => {
        $crate::forward_connection!(@ $inner
            lent(address: u64, len: u64) -> Option<&[u8]>,
            take_fd(address: u64) -> Option<std::os::fd::OwnedFd>,
            wake_readers() -> std::io::Result<()>,
            map_size() -> usize,
            descriptor() -> Option<std::os::fd::BorrowedFd<'_>>,
            version() -> std::io::Result<i32>,
            set_max_threads(threads: u32) -> std::io::Result<()>,
            become_context_manager(node: Option<abi::layout::FlatBinderObject>) -> std::io::Result<()>,
            enable_oneway_spam_detection(enable: bool) -> std::io::Result<()>,
            extended_error() -> std::io::Result<abi::layout::ExtendedError>,
            node_debug_info(above: u64) -> std::io::Result<abi::layout::NodeDebugInfo>,
            node_info_for_ref(info: abi::layout::NodeInfoForRef) -> std::io::Result<abi::layout::NodeInfoForRef>,
            freeze(info: abi::layout::FreezeInfo) -> std::io::Result<()>,
            frozen_info(pid: u32) -> std::io::Result<abi::layout::FrozenStatusInfo>,
            set_nonblocking(on: bool) -> std::io::Result<()>,
        );
    };
    (@ $inner:tt $($method:ident($($name:ident: $type:ty)?$(, $name2:ident: $type2:ty)?) -> $result:ty,)*) => {
        $(fn $method(&self $(, $name: $type)? $(, $name2: $type2)?) -> $result {
            self.$inner.$method($($name)? $(, $name2)?)
        })*
    };
}

/// A connection of any driver. Each call through it costs an indirect one.
pub struct AnyConnection(Box<dyn Connection>);

impl AnyConnection {
    /// Hides which driver it is.
    pub fn new(connection: impl Connection) -> Self {
        Self(Box::new(connection))
    }
}

impl std::fmt::Debug for AnyConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnyConnection").finish_non_exhaustive()
    }
}

impl Connection for AnyConnection {
    fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        self.0.write_read(exchange)
    }

    fn poll_readable(&self, timeout_ms: i32) -> io::Result<bool> {
        self.0.poll_readable(timeout_ms)
    }

    fn thread_exit(&self) -> io::Result<()> {
        self.0.thread_exit()
    }

    forward_connection!(0);
}

/// How to open a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Bytes of receiving area to map; 0 maps none (then nothing can be received, contract OPN-09).
    pub map_size: usize,
    /// Reads return `EAGAIN` instead of blocking.
    pub nonblocking: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { map_size: default_map_size(), nonblocking: false }
    }
}

/// One binder context of one driver; each `open` makes an independent process in it.
pub trait Context: Send + Sync {
    /// The type that `open` returns.
    type Connection: Connection;

    /// Opens the context.
    ///
    /// # Errors
    /// Says what was looked for, what came back and what to do.
    fn open(&self, options: OpenOptions) -> Result<Self::Connection, OpenError>;

    /// The context's name for people: a path or "private binderfs device".
    fn describe(&self) -> String;

    /// Options with which the `binderperf` program opens this context, for messages.
    fn options(&self) -> String;
}
