//! The state that a driver reports about itself, by device.
//! Not here: where the kernel driver's files lie (`driver::kernel_state`), what they promise
//! (`contract/state.md`).

use std::path::{Path, PathBuf};

use crate::locate::{self, Device};
use driver::kernel_state::read_here;
use driver::{KernelConnection, OpenOptions};
use embedded::{EmbeddedContext, Settings};

pub use driver::kernel_state::{StateError, StateFile};
pub use embedded::rpc::protocol::DIRECT_CALLS;

/// The driver whose files are read.
#[derive(Clone, Debug)]
pub enum StateSource {
    /// The embedded driver's, of a directory or the user's own.
    Embedded(Option<PathBuf>),
    /// The kernel's, of a device.
    Kernel(Device),
    /// The kernel's, else the user's own of the embedded driver.
    Either(Device),
}

impl StateSource {
    /// Reads one of the driver's files.
    ///
    /// # Errors
    /// See [`StateError`]; one of each driver that was tried.
    pub fn read(&self, which: StateFile) -> Result<String, Vec<StateError>> {
        let alone = |trouble| vec![trouble];
        match self {
            Self::Embedded(directory) => of_embedded(directory.as_deref(), which).map_err(alone),
            Self::Kernel(device) => of_device(device, which).map_err(alone),
            Self::Either(device) => of_device(device, which)
                .or_else(|none| of_embedded(None, which).map_err(|other| vec![none, other])),
        }
    }
}

/// The account of the embedded driver's broker in a directory, the user's own if none is given.
///
/// # Errors
/// See [`StateError`]; [`StateError::NoBroker`] where none runs, since none is started to be looked at.
pub fn of_embedded(directory: Option<&Path>, which: StateFile) -> Result<String, StateError> {
    let settings = Settings::default();
    let context = match directory {
        Some(directory) => EmbeddedContext::at(directory, "binder", settings),
        None => EmbeddedContext::named("binder", settings),
    };
    let nobody = || StateError::NoBroker(context.directory().to_owned());
    context.state(which).map_err(StateError::Open)?.ok_or_else(nobody)
}

/// The account of the driver that serves a device; `auto` and `private` stand for whichever driver the
/// machine has, so that nothing is made only to be looked at.
///
/// # Errors
/// See [`StateError`].
pub fn of_device(device: &Device, which: StateFile) -> Result<String, StateError> {
    let text = match device {
        Device::Auto | Device::Private => read_here(None, which)?,
        named => {
            let context = locate::locate(named, "binder").map_err(StateError::Open)?;
            // Opening finds out what a path that only looks like a device is.
            KernelConnection::open(context.path(), OpenOptions { map_size: 0, nonblocking: true })
                .map_err(StateError::Open)?;
            read_here(Some(context.path()), which)?
        }
    };
    text.ok_or(StateError::NotKept(which))
}
