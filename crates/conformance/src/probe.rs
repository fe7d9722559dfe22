//! The connections that the suite needs of a driver under test.
//! Not here: opening them (`subject`).

use driver::{Connection, KernelConnection};
use embedded::EmbeddedConnection;
use sys::binder_fd::BinderFd;

/// A connection that also gives access to the kernel's device, if there is one.
pub trait Probe: Connection {
    /// The device, for invalid arguments and raw system calls; `None`: items that need it are skipped.
    fn device(&self) -> Option<&BinderFd>;

    /// Start address of the receive mapping as it appears in deliveries, if that is promised.
    fn map_base(&self) -> Option<u64>;

    /// Unmaps the receive mapping; false if impossible.
    fn unmap(&mut self) -> bool;
}

impl Probe for KernelConnection {
    fn device(&self) -> Option<&BinderFd> {
        Some(Self::device(self))
    }

    fn map_base(&self) -> Option<u64> {
        Self::map_base(self)
    }

    fn unmap(&mut self) -> bool {
        Self::unmap(self);
        true
    }
}

impl Probe for EmbeddedConnection {
    fn device(&self) -> Option<&BinderFd> {
        None
    }

    fn map_base(&self) -> Option<u64> {
        Self::map_base(self)
    }

    fn unmap(&mut self) -> bool {
        Self::unmap(self);
        true
    }
}
