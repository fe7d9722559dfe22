//! Reads the driver's state text, and finds its broker process.
//! Not here: what the text must say (`account`).

use std::fs;
use std::io;
use std::path::Path;

use abi::layout::FreezeInfo;
use backend::AnyContext;
use driver::kernel_state;
use driver::{Connection, Context, OpenError, OpenOptions};
use embedded::EmbeddedConnection;
use embedded::rpc::protocol::StateFile;

/// Access to the driver from outside the test's processes.
pub(super) enum DriverView {
    /// The kernel driver, with the device whose state is read.
    Kernel(driver::KernelContext),
    /// A process in the embedded context, which keeps the broker alive: a new broker would know nothing. The pid is
    /// the broker's if the test owns it.
    Embedded(Box<EmbeddedConnection>, Option<u32>),
}

impl DriverView {
    /// Opens the context before any process of the test does.
    ///
    /// # Errors
    /// The context cannot be opened.
    pub(super) fn of(context: &AnyContext) -> Result<Self, OpenError> {
        Ok(match context {
            AnyContext::Kernel(context) => {
                context.open(OpenOptions { map_size: 0, ..OpenOptions::default() })?;
                Self::Kernel(context.clone())
            }
            AnyContext::Embedded(context) => {
                let connection = context.open(OpenOptions { map_size: 0, ..OpenOptions::default() })?;
                let broker = if context.is_private() { broker_of(context.directory()) } else { None };
                Self::Embedded(Box::new(connection), broker)
            }
        })
    }

    /// The driver's state text.
    ///
    /// # Errors
    /// Why it is not available.
    pub(super) fn state(&self) -> Result<String, String> {
        match self {
            Self::Embedded(connection, _) => {
                connection.state(StateFile::State).map_err(|error| error.to_string())
            }
            Self::Kernel(context) => {
                let read = kernel_state::read_here(Some(context.path()), kernel_state::StateFile::State);
                read.map_err(|error| error.to_string())?.ok_or_else(|| "the driver keeps none".to_owned())
            }
        }
    }

    /// Freezes a process, once its calls have ended within a moment, or thaws it.
    ///
    /// # Errors
    /// `EAGAIN`: it has calls under way. `EINVAL`: the driver is older than freezing. `EIO`: it cannot be opened.
    pub(super) fn freeze(&self, pid: u32, on: bool) -> io::Result<()> {
        let info = FreezeInfo { pid, enable: u32::from(on), timeout_ms: if on { 50 } else { 0 } };
        match self {
            Self::Embedded(connection, _) => connection.freeze(info),
            Self::Kernel(context) => {
                let options = OpenOptions { map_size: 0, ..OpenOptions::default() };
                context.open(options).map_err(|_| io::Error::from_raw_os_error(sys::errno::EIO))?.freeze(info)
            }
        }
    }

    /// Whether the driver serves this test only.
    pub(super) fn is_alone(&self) -> bool {
        matches!(self, Self::Embedded(_, Some(_)))
    }

    /// Closes the context; returns the broker that must end now.
    pub(super) fn leave(self) -> Option<u32> {
        match self {
            Self::Kernel(_) => None,
            Self::Embedded(_, broker) => broker,
        }
    }
}

/// The broker process of a directory.
fn broker_of(directory: &Path) -> Option<u32> {
    let words = [backend::broker::COMMAND.to_owned(), directory.display().to_string()];
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| is_broker(*pid, &words))
}

fn is_broker(pid: u32, words: &[String]) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    words.iter().all(|word| line.iter().any(|said| said == word))
}

/// Whether a broker still runs; a zombie does not.
pub(super) fn runs(broker: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{broker}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}
