//! The context under test, and the connections that the suite needs.
//! Not here: the evidence of which driver it is (`host::evidence`), how faults are injected (`fault_injection`).

use std::path::Path;
use std::sync::Arc;

use backend::AnyContext;
use driver::kernel_state::{self, StateError, StateFile};
use driver::{Context, OpenError, OpenOptions};
use embedded::trace_events::Amount;
use embedded::{EmbeddedContext, Inherit, Settings};
pub use host::evidence::{Evidence, Kind};

use super::fault_injection::{Fault, FaultyConnection};
use super::probe::Probe;

/// Identifies the driver behind a context.
///
/// # Errors
/// The context cannot be opened.
pub fn examine(subject: &Subject) -> Result<Evidence, OpenError> {
    let connection = subject.open(OpenOptions { map_size: 0, nonblocking: true })?;
    Ok(host::evidence::identify(connection.device(), &subject.address(), subject.inherit()))
}

/// A context of the driver under test, with the faults to inject.
#[derive(Clone, Debug)]
pub struct Subject {
    context: AnyContext,
    faults: Vec<Fault>,
}

impl From<AnyContext> for Subject {
    fn from(context: AnyContext) -> Self {
        Self { context, faults: Vec::new() }
    }
}

impl From<EmbeddedContext> for Subject {
    fn from(context: EmbeddedContext) -> Self {
        AnyContext::Embedded(context).into()
    }
}

impl Subject {
    /// The context whose connections have these faults.
    pub(super) fn with_faults(self, faults: Vec<Fault>) -> Self {
        Self { faults, ..self }
    }

    /// Opens the context.
    ///
    /// # Errors
    /// Those of [`Context::open`].
    pub fn open(&self, options: OpenOptions) -> Result<Arc<dyn Probe>, OpenError> {
        let inner: Arc<dyn Probe> = match &self.context {
            AnyContext::Kernel(context) => Arc::new(context.open(options)?),
            AnyContext::Embedded(context) => Arc::new(context.open(options)?),
        };
        Ok(match self.faults.as_slice() {
            [] => inner,
            faults => Arc::new(FaultyConnection::new(inner, faults.to_vec())),
        })
    }

    /// The kernel's device node, if any.
    #[must_use]
    pub fn device(&self) -> Option<&Path> {
        self.context.device()
    }

    /// The address by which another process of the suite opens the same context.
    #[must_use]
    pub fn address(&self) -> String {
        self.context.address()
    }

    /// The context's display name.
    #[must_use]
    pub fn describe(&self) -> String {
        self.context.describe()
    }

    /// The driver's state in the format of the kernel's files; `Ok(None)`: it has no such file.
    ///
    /// # Errors
    /// Why it is not available on this machine.
    pub(super) fn state(&self, which: StateFile) -> Result<Option<String>, StateError> {
        let text = match &self.context {
            AnyContext::Kernel(context) => kernel_state::read_here(Some(context.path()), which)?,
            AnyContext::Embedded(context) => context.state(which).map_err(StateError::Open)?,
        };
        let muted = self.faults.contains(&Fault::MuteState);
        Ok(text.map(|text| if muted { text.lines().next().unwrap_or_default().to_owned() } else { text }))
    }

    /// The embedded context with other settings, if it is one.
    fn embedded(&self, change: impl FnOnce(Settings) -> Settings) -> Option<EmbeddedContext> {
        match &self.context {
            AnyContext::Kernel(_) => None,
            AnyContext::Embedded(context) => {
                Some(EmbeddedContext::at(context.directory(), context.name(), change(context.settings())))
            }
        }
    }

    fn on(&self, context: EmbeddedContext) -> Self {
        Self::from(context).with_faults(self.faults.clone())
    }

    /// Whether calls go from process to process; otherwise all go through the broker, or a kernel.
    pub(super) fn uses_call_slots(&self) -> bool {
        matches!(&self.context, AnyContext::Embedded(context) if context.settings().call_slots)
    }

    /// The context for processes that pass on this much of a caller's priority, if that is configurable.
    pub(super) fn inheriting(&self, inherit: Inherit) -> Option<Self> {
        Some(self.on(self.embedded(|settings| Settings { inherit, ..settings })?))
    }

    /// The context for processes that write trace events into this tracefs folder, if the driver has no tracepoints.
    pub(super) fn traced(&self, folder: &Path) -> Option<Self> {
        Some(self.on(self.embedded(|settings| settings)?.with_marks(folder, Amount::All)))
    }

    /// The configured priority inheritance, if that is configurable.
    pub(super) fn inherit(&self) -> Option<Inherit> {
        match &self.context {
            AnyContext::Kernel(_) => None,
            AnyContext::Embedded(context) => Some(context.settings().inherit),
        }
    }
}
