//! Room: the driver under test, as the suite needs it.
//! Not here: which driver it is (`evidence`), faults put in front of it (`faulty`).

use std::path::Path;
use std::sync::Arc;

use driver::embedded::{Inherit, Settings};
use driver::kernel_state::{self, StateError, StateFile};
use driver::{
    AnyContext, Connection, Context, EmbeddedConnection, EmbeddedContext, KernelConnection, KernelContext,
    OpenError, OpenOptions, on_context,
};
use sys::binder_fd::BinderFd;

/// A connection whose driver's own checks can be tested where it has a kernel's device behind it.
pub trait Probe: Connection {
    /// The device, for bad arguments and raw system calls; `None`: items that need it are skipped.
    fn device(&self) -> Option<&BinderFd>;

    /// First address of the receiving area as deliveries name it, where that is a promise.
    fn map_base(&self) -> Option<u64>;

    /// Gives the receiving area up; false where that cannot be done.
    fn unmap(&mut self) -> bool;
}

/// A context of the driver under test.
pub trait Subject: Send + Sync {
    /// Opens it.
    ///
    /// # Errors
    /// As [`Context::open`].
    fn open(&self, options: OpenOptions) -> Result<Arc<dyn Probe>, OpenError>;

    /// The kernel's device node, if there is one.
    fn device(&self) -> Option<&Path>;

    /// What another process of the suite needs to open the same context.
    fn address(&self) -> String;

    /// The context's name for people.
    fn describe(&self) -> String;

    /// What the driver says of itself, in the layout of the kernel driver's files. `Ok(None)`: it
    /// keeps no such file.
    ///
    /// # Errors
    /// It is not to be had on this machine, and why.
    fn state(&self, which: StateFile) -> Result<Option<String>, StateError>;

    /// The same context for parties whose calls all go through the driver's middle, where they would
    /// otherwise take a shorter way.
    fn without_lanes(&self) -> Option<Box<dyn Subject>>;

    /// The same context for parties that hand on this of a caller's priority, where that can be chosen.
    fn inheriting(&self, inherit: Inherit) -> Option<Box<dyn Subject>>;

    /// The same context for parties that write what they do as marks into this folder of tracefs, where the
    /// driver has no tracepoints.
    fn traced(&self, folder: &Path) -> Option<Box<dyn Subject>>;

    /// What the driver was told to hand on of a caller's priority, where that can be chosen.
    fn inherit(&self) -> Option<Inherit>;
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

impl Subject for KernelContext {
    fn open(&self, options: OpenOptions) -> Result<Arc<dyn Probe>, OpenError> {
        Ok(Arc::new(Context::open(self, options)?))
    }

    fn device(&self) -> Option<&Path> {
        Some(self.path())
    }

    fn address(&self) -> String {
        self.path().display().to_string()
    }

    fn describe(&self) -> String {
        Context::describe(self)
    }

    fn state(&self, which: StateFile) -> Result<Option<String>, StateError> {
        kernel_state::read_here(Some(self.path()), which)
    }

    fn without_lanes(&self) -> Option<Box<dyn Subject>> {
        None
    }

    fn inheriting(&self, _inherit: Inherit) -> Option<Box<dyn Subject>> {
        None
    }

    fn traced(&self, _folder: &Path) -> Option<Box<dyn Subject>> {
        None
    }

    fn inherit(&self) -> Option<Inherit> {
        None
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

impl Subject for EmbeddedContext {
    fn open(&self, options: OpenOptions) -> Result<Arc<dyn Probe>, OpenError> {
        Ok(Arc::new(Context::open(self, options)?))
    }

    fn device(&self) -> Option<&Path> {
        None
    }

    fn address(&self) -> String {
        Self::address(self)
    }

    fn describe(&self) -> String {
        Context::describe(self)
    }

    fn state(&self, which: StateFile) -> Result<Option<String>, StateError> {
        EmbeddedContext::state(self, which).map_err(StateError::Embedded)
    }

    fn without_lanes(&self) -> Option<Box<dyn Subject>> {
        let settings = Settings { lanes: false, ..self.settings() };
        let same = || Self::at(self.directory(), self.name(), settings);
        self.settings().lanes.then(|| Box::new(same()) as Box<dyn Subject>)
    }

    fn inheriting(&self, inherit: Inherit) -> Option<Box<dyn Subject>> {
        let settings = Settings { inherit, ..self.settings() };
        Some(Box::new(Self::at(self.directory(), self.name(), settings)))
    }

    fn traced(&self, folder: &Path) -> Option<Box<dyn Subject>> {
        let same = Self::at(self.directory(), self.name(), self.settings());
        Some(Box::new(same.with_marks(folder)))
    }

    fn inherit(&self) -> Option<Inherit> {
        Some(self.settings().inherit)
    }
}

impl Subject for AnyContext {
    fn open(&self, options: OpenOptions) -> Result<Arc<dyn Probe>, OpenError> {
        on_context!(self, |context| Subject::open(context, options))
    }

    fn device(&self) -> Option<&Path> {
        Self::device(self)
    }

    fn address(&self) -> String {
        Self::address(self)
    }

    fn describe(&self) -> String {
        Context::describe(self)
    }

    fn state(&self, which: StateFile) -> Result<Option<String>, StateError> {
        on_context!(self, |context| Subject::state(context, which))
    }

    fn without_lanes(&self) -> Option<Box<dyn Subject>> {
        on_context!(self, |context| context.without_lanes())
    }

    fn inheriting(&self, inherit: Inherit) -> Option<Box<dyn Subject>> {
        on_context!(self, |context| context.inheriting(inherit))
    }

    fn traced(&self, folder: &Path) -> Option<Box<dyn Subject>> {
        on_context!(self, |context| context.traced(folder))
    }

    fn inherit(&self) -> Option<Inherit> {
        on_context!(self, |context| context.inherit())
    }
}
