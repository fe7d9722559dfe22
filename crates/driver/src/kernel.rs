//! The kernel driver as a backend: `/dev/binder` and its like, or a private binderfs device.
//! Not here: finding the device (`locate`), retries (`connection`).
//! Facts: contract sections 1 to 3 and 17.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use abi::codes::ioctl;
use abi::layout::{
    ExtendedError, FlatBinderObject, FreezeInfo, FrozenStatusInfo, NodeDebugInfo, NodeInfoForRef,
};
use sys::binder_fd::BinderFd;
use sys::binderfs::PrivateBinderfs;
use sys::receive_map::ReceiveMap;

use crate::absence::Absence;
use crate::connection::{Connection, Context, Exchange, OpenOptions};
use crate::error::{OpenError, is_driverless};

/// An open device of the kernel's driver.
#[derive(Debug)]
pub struct KernelConnection {
    // Declared before the descriptor: the driver releases a process only when both are gone
    // (contract EXT-06), and unmapping first makes the close the last step.
    map: Option<ReceiveMap>,
    fd: BinderFd,
}

impl KernelConnection {
    /// Opens a device, checks its protocol version and maps its receiving area.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: &Path, options: OpenOptions) -> Result<Self, OpenError> {
        let fd = BinderFd::open(path, options.nonblocking).map_err(|source| open_error(path, source))?;
        let os = |call, source| OpenError::Os { path: path.to_owned(), call, source };
        let found = fd.version().map_err(|source| os("BINDER_VERSION (is it a binder device?)", source))?;
        if found != abi::PROTOCOL_VERSION {
            return Err(OpenError::Version { path: path.to_owned(), found });
        }
        let map = match options.map_size {
            0 => None,
            size => Some(ReceiveMap::new(fd.as_fd(), size).map_err(|source| os("mmap", source))?),
        };
        Ok(Self { map, fd })
    }

    /// A device that another program opened, whose receiving area this one cannot have.
    #[must_use]
    pub fn inherited(fd: OwnedFd) -> Self {
        Self { map: None, fd: fd.into() }
    }

    /// The open device, for tests of the driver's own checks.
    #[must_use]
    pub fn device(&self) -> &BinderFd {
        &self.fd
    }

    /// Gives the receiving area up while the device stays open (contract OPN-10). It cannot come
    /// back (OPN-04).
    pub fn unmap(&mut self) {
        self.map = None;
    }

    /// First address of the receiving area, as deliveries name it; `None` when nothing is mapped.
    #[must_use]
    pub fn map_base(&self) -> Option<u64> {
        self.map.as_ref().map(ReceiveMap::base)
    }
}

fn open_error(path: &Path, source: io::Error) -> OpenError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::PermissionDenied => OpenError::Denied { path, source },
        io::ErrorKind::NotFound => OpenError::Absent { looked_for: vec![path], why: Absence::here() },
        _ if is_driverless(&source) => OpenError::Driverless { path, source, why: Absence::here() },
        _ => OpenError::Os { path, call: "open", source },
    }
}

impl Connection for KernelConnection {
    fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        let Exchange { write, write_consumed, read, read_consumed, .. } = exchange;
        self.fd.write_read(write, write_consumed, read, read_consumed)
    }

    fn poll_readable(&self, timeout_ms: i32) -> io::Result<bool> {
        self.fd.poll_readable(timeout_ms)
    }

    fn lent(&self, address: u64, len: u64) -> Option<&[u8]> {
        self.map.as_ref()?.lent(address, len)
    }

    fn take_fd(&self, address: u64) -> Option<OwnedFd> {
        self.map.as_ref()?.take_fd(address)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn map_size(&self) -> usize {
        self.map.as_ref().map_or(0, ReceiveMap::len)
    }

    fn wake_readers(&self) -> io::Result<()> {
        self.fd.wake_readers()
    }

    fn version(&self) -> io::Result<i32> {
        self.fd.version()
    }

    fn set_max_threads(&self, threads: u32) -> io::Result<()> {
        self.fd.request(ioctl::SET_MAX_THREADS, threads).map(drop)
    }

    fn become_context_manager(&self, node: Option<FlatBinderObject>) -> io::Result<()> {
        match node {
            Some(node) => self.fd.request(ioctl::SET_CONTEXT_MGR_EXT, node).map(drop),
            None => self.fd.request(ioctl::SET_CONTEXT_MGR, 0_i32).map(drop),
        }
    }

    fn thread_exit(&self) -> io::Result<()> {
        self.fd.request(ioctl::THREAD_EXIT, 0_i32).map(drop)
    }

    fn enable_oneway_spam_detection(&self, enable: bool) -> io::Result<()> {
        self.fd.request(ioctl::ENABLE_ONEWAY_SPAM_DETECTION, u32::from(enable)).map(drop)
    }

    fn extended_error(&self) -> io::Result<ExtendedError> {
        self.fd.request(ioctl::GET_EXTENDED_ERROR, ExtendedError::default())
    }

    fn node_debug_info(&self, above: u64) -> io::Result<NodeDebugInfo> {
        self.fd.request(ioctl::GET_NODE_DEBUG_INFO, NodeDebugInfo { ptr: above, ..Default::default() })
    }

    fn node_info_for_ref(&self, info: NodeInfoForRef) -> io::Result<NodeInfoForRef> {
        self.fd.request(ioctl::GET_NODE_INFO_FOR_REF, info)
    }

    fn freeze(&self, info: FreezeInfo) -> io::Result<()> {
        self.fd.request(ioctl::FREEZE, info).map(drop)
    }

    fn frozen_info(&self, pid: u32) -> io::Result<FrozenStatusInfo> {
        self.fd.request(ioctl::GET_FROZEN_INFO, FrozenStatusInfo { pid, ..Default::default() })
    }

    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.fd.set_nonblocking(on)
    }
}

/// A context of the kernel's driver.
#[derive(Clone, Debug)]
pub struct KernelContext {
    path: PathBuf,
    // Keeps a private instance alive for as long as anyone may still open a device of it.
    private: Option<Arc<PrivateBinderfs>>,
}

impl KernelContext {
    /// The context behind a device node; nothing is opened yet.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), private: None }
    }

    /// A fresh device in a binderfs instance of this process's own, which no service manager of the
    /// system can reach. Gone with its last user.
    ///
    /// # Errors
    /// `ENODEV`: no binderfs in this kernel. `EPERM`: may not mount. See [`PrivateBinderfs`].
    pub fn private(name: &str) -> io::Result<Self> {
        let instance = PrivateBinderfs::new()?;
        let path = instance.add_device(name)?;
        Ok(Self { path, private: Some(Arc::new(instance)) })
    }

    /// The device node; other processes may open it while this value lives.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether only this process and its descendants can reach the context.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.private.is_some()
    }
}

impl Context for KernelContext {
    type Connection = KernelConnection;

    fn open(&self, options: OpenOptions) -> Result<KernelConnection, OpenError> {
        KernelConnection::open(&self.path, options)
    }

    fn describe(&self) -> String {
        match self.private {
            Some(_) => "a private binderfs device".to_owned(),
            None => self.path.display().to_string(),
        }
    }

    fn options(&self) -> String {
        format!("--device {}", self.path.display())
    }
}
