//! Room: a driver's own account of itself, for whoever asks by device.
//! Not here: where the kernel driver's files lie (`driver::kernel_state`), what they promise
//! (`contract/state.md`).

use std::path::{Path, PathBuf};

use driver::embedded::{EmbeddedContext, Settings};
use driver::kernel_state::{self, StateError};
use driver::locate::{self, Device};
use driver::{KernelContext, OpenError};

pub use driver::kernel_state::StateFile;

/// Why an account could not be given; each `Display` says what to do.
#[derive(Debug)]
pub enum Trouble {
    /// There is no such device.
    Device(OpenError),
    /// The driver's files could not be read.
    Files(StateError),
    /// The driver keeps no such file.
    NotKept(StateFile),
    /// No broker of the embedded driver runs in this directory.
    NoBroker(PathBuf),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Device(error) => error.fmt(f),
            Self::Files(error) => error.fmt(f),
            Self::NoBroker(directory) => write!(
                f,
                "nobody uses the embedded driver in {}: no broker runs there; name its directory with --context-dir, \
                 or start one with `binderperf broker`",
                directory.display()
            ),
            Self::NotKept(which) => write!(
                f,
                "the driver keeps no {}: only the C driver does; ask for state, stats or transactions",
                which.file_name()
            ),
        }
    }
}

impl std::error::Error for Trouble {}

/// The account of the embedded driver's broker in a directory, the user's own if none is given.
///
/// # Errors
/// See [`Trouble`]; [`Trouble::NoBroker`] where none runs, since none is started to be looked at.
pub fn of_embedded(directory: Option<&Path>, which: StateFile) -> Result<String, Trouble> {
    let settings = Settings::default();
    let context = match directory {
        Some(directory) => EmbeddedContext::at(directory, "binder", settings),
        None => EmbeddedContext::named("binder", settings).map_err(Trouble::Device)?,
    };
    let nobody = || Trouble::NoBroker(context.directory().to_owned());
    context.state(which).map_err(Trouble::Device)?.ok_or_else(nobody)
}

/// The account of the driver that serves a device; `auto` and `private` stand for whichever driver the
/// machine has, so that nothing is made only to be looked at.
///
/// # Errors
/// See [`Trouble`].
pub fn of_device(device: &Device, which: StateFile) -> Result<String, Trouble> {
    match device {
        Device::Auto | Device::Private => account(kernel_state::read_here(None, which), which),
        named => of_kernel(&locate::locate(named, "binder").map_err(Trouble::Device)?, which),
    }
}

/// The account of the driver behind a context of the kernel's.
///
/// # Errors
/// See [`Trouble`].
pub fn of_kernel(context: &KernelContext, which: StateFile) -> Result<String, Trouble> {
    // Opening finds out what a path that only looks like a device is.
    driver::KernelConnection::open(context.path(), driver::OpenOptions { map_size: 0, nonblocking: true })
        .map_err(Trouble::Device)?;
    account(kernel_state::read_here(Some(context.path()), which), which)
}

fn account(read: Result<Option<String>, StateError>, which: StateFile) -> Result<String, Trouble> {
    read.map_err(Trouble::Files)?.ok_or(Trouble::NotKept(which))
}
