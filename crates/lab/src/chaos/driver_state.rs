//! Room: asking the driver under test for its account, and looking for its broker.
//! Not here: what the account must say (`account`).

use std::fs;
use std::path::Path;

use driver::embedded::protocol::StateFile;
use driver::kernel_state;
use driver::{AnyContext, Context, EmbeddedConnection, OpenError, OpenOptions};

/// A look at the driver from outside of the test's processes.
pub(super) enum View {
    /// The kernel's, with the device whose account is asked for.
    Kernel(driver::KernelContext),
    /// A process in the embedded context, which keeps its broker: a fresh one would know of nothing.
    Embedded(Box<EmbeddedConnection>, Option<u32>),
}

impl View {
    /// Takes a look, before anything of the test is in the context.
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

    /// The driver's state.
    ///
    /// # Errors
    /// Why there is none.
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

    /// Whether everything in the driver is the test's.
    pub(super) fn is_alone(&self) -> bool {
        matches!(self, Self::Embedded(_, Some(_)))
    }

    /// Takes leave; what is then left to end: the broker.
    pub(super) fn leave(self) -> Option<u32> {
        match self {
            Self::Kernel(_) => None,
            Self::Embedded(_, broker) => broker,
        }
    }
}

/// The process that was started as the broker of a directory.
fn broker_of(directory: &Path) -> Option<u32> {
    let words = [crate::broker::COMMAND.to_owned(), directory.display().to_string()];
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| is_broker(*pid, &words))
}

fn is_broker(pid: u32, words: &[String]) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    words.iter().all(|word| line.iter().any(|said| said == word))
}

/// Whether a broker still runs. One that nobody has waited for yet does not.
pub(super) fn runs(broker: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{broker}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}
