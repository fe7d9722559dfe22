//! Room: what a worker must be able to do in any flavour: offer itself, find others, call them.
//! Not here: when (`super::role`). To add a flavour: implement [`Scene`], and start it in `role::act`.

mod binder;
mod hwbinder;

pub(super) use binder::Offstage;
pub(super) use hwbinder::{InProcess, OnHwbinder};

use crate::measure::CallError;
use crate::measure::echo::Sabotage;

/// One worker's side of a flavour.
pub(super) trait Scene {
    /// A service that was found.
    type Callee: Callee;

    /// Registers a service under this name, and serves it on other threads.
    ///
    /// # Errors
    /// The name is refused, or there is nobody to register it at.
    fn offer(&mut self, name: &str, sabotage: Option<Sabotage>) -> Result<(), CallError>;

    /// Finds a service; waits some seconds for it.
    ///
    /// # Errors
    /// Nobody serves that name.
    fn find(&mut self, name: &str) -> Result<Self::Callee, CallError>;
}

/// A service that can be called.
pub(super) trait Callee {
    /// Calls it once, and gives back what came. What happens in here is what is measured.
    ///
    /// # Errors
    /// The call did not come back as it should.
    fn call(&mut self) -> Result<(), CallError>;
}
