//! Broker of a context directory: the part of the embedded driver that does the work of a kernel's driver. This
//! module starts it, decides how long it runs, and ends it.
//!
//! - [`core`]: the rules, without any system call. - [`mod@serve`]: clients and their requests.
//! - [`memory`]: the memory that it shares with them. - [`budget`], [`turns`], [`notices`]: limits that keep one
//!   process from harming the others, without I/O or a clock.
//!
//! Not here: the client end (`broker_connection`), starting it on demand (`start`).

mod budget;
pub mod core;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod inline;
mod memory;
mod notices;
mod serve;
mod turns;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sys::file_key::FileKey;
use sys::folder::Folder;
use sys::patience::stretched;
use sys::private_folder::Held;
use sys::seqpacket;

use super::directory;
pub use core::Faults;
use serve::Server;

/// Lifetime of a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Ends after its last client has left.
    LastClient,
    /// Ends when the process is asked to stop ([`sys::stop_signal`]).
    UntilStopped,
}

/// Event that a broker reports to its user.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// The broker listens.
    Listening {
        /// Path of the socket.
        at: &'e Path,
    },
    /// The broker disconnected a client that violated the protocol.
    Dropped {
        /// The process.
        pid: u32,
        /// The violation.
        why: &'e str,
        /// Number of such events that were not reported since the last one.
        left_out: u64,
    },
    /// The broker could not admit a client.
    Refused {
        /// Pid of the client; 0 if unknown.
        pid: u32,
        /// The failed step.
        why: &'e str,
        /// Number of such events that were not reported since the last one.
        left_out: u64,
    },
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening { at } => write!(f, "listening at {}", at.display()),
            Self::Dropped { pid, why, left_out } => {
                write!(f, "dropped process {pid}: {why}{}", more(*left_out))
            }
            Self::Refused { pid, why, left_out } => {
                write!(f, "refused process {pid}: {why}{}", more(*left_out))
            }
        }
    }
}

fn more(left_out: u64) -> String {
    if left_out == 0 { String::new() } else { format!(" (and {left_out} such events before it)") }
}

/// Error: a broker could not serve.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// Another broker serves this directory.
    Running {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory may not be used; the text names the remedy.
    Directory(driver::OpenError),
    /// A system call failed.
    Os {
        /// The failed step.
        call: &'static str,
        /// Path that the call was made on.
        path: PathBuf,
        /// Error of the call.
        source: io::Error,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running { directory } => write!(
                f,
                "{} has a broker already; stop that one, or name another directory",
                directory.display()
            ),
            Self::Directory(error) => error.fmt(f),
            Self::Os { call, path, source } => {
                write!(f, "{call} {} failed: {}", path.display(), sys::errno::describe(source))
            }
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Running { .. } => None,
            Self::Directory(error) => Some(error),
            Self::Os { source, .. } => Some(source),
        }
    }
}

/// Longest wait of a new broker for the lock, and for another broker to take a connection.
const START_PATIENCE: Duration = Duration::from_secs(8);
/// Longest wait of an ending broker for the lock. Meanwhile it serves nobody.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// Time that a client has for its first message.
const HELLO_PATIENCE: Duration = Duration::from_secs(5);

/// Serves a directory until its lifetime ends. `tell` receives the events; the first one is [`Event::Listening`].
///
/// # Errors
/// See [`RunError`].
pub fn run(directory: &Path, lifetime: Lifetime, tell: impl FnMut(Event<'_>)) -> Result<(), RunError> {
    run_with(directory, lifetime, Faults::default(), tell)
}

/// [`run`] with deliberate faults.
///
/// # Errors
/// See [`RunError`].
pub fn run_with(
    directory: &Path,
    lifetime: Lifetime,
    faults: Faults,
    tell: impl FnMut(Event<'_>),
) -> Result<(), RunError> {
    serve(directory, lifetime, (HELLO_PATIENCE, faults), tell)
}

fn serve(
    directory: &Path,
    lifetime: Lifetime,
    (hello_patience, faults): (Duration, Faults),
    mut tell: impl FnMut(Event<'_>),
) -> Result<(), RunError> {
    let folder = directory::ensure(directory).map_err(RunError::Directory)?;
    let failed = |source| RunError::Os { call: "waiting for clients at", path: directory.to_owned(), source };
    // Whoever made it may be killed before this broker ends.
    let _claimed =
        directory::is_private(directory).then(|| Held::of(directory)).transpose().map_err(failed)?;
    let (listener, own) = begin(&folder, directory)?;
    tell(Event::Listening { at: &directory::socket(directory) });
    let mut server = Server::new(listener, hello_patience, faults, &mut tell).map_err(failed)?;
    loop {
        server.serve(lifetime).map_err(failed)?;
        if end(&folder, directory, own, lifetime, &server) {
            return Ok(());
        }
    }
}

/// Listens on the directory's socket, unless another broker does.
fn begin(folder: &Folder, directory: &Path) -> Result<(OwnedFd, FileKey), RunError> {
    let socket = directory::socket(directory);
    let failed = |call: &'static str| {
        let path = socket.clone();
        move |source| RunError::Os { call, path, source }
    };
    let there = directory::socket_in(folder);
    let running = || Err(RunError::Running { directory: directory.to_owned() });
    let patience = stretched(START_PATIENCE);
    // Without the lock, which many may want at once.
    match seqpacket::connect(&there, patience) {
        Ok(_) => return running(),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            return Err(failed("looking for a broker at")(error));
        }
        Err(_) => {}
    }
    let held = directory::lock(folder, patience).map_err(failed("taking the lock beside"))?;
    match seqpacket::connect(&there, patience) {
        Ok(_) => return running(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // Left over from a killed broker.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            directory::remove_socket(folder, &held).map_err(failed("removing the stale"))?;
        }
        Err(error) => return Err(failed("looking for a broker at")(error)),
    }
    let listener = seqpacket::listen(&there).map_err(failed("listening at"))?;
    let own = directory::socket_file(folder)
        .ok_or_else(|| failed("listening at")(io::ErrorKind::NotFound.into()))?;
    Ok((listener, own))
}

/// Ends a broker without clients; false if a client is connecting.
fn end(folder: &Folder, directory: &Path, own: FileKey, lifetime: Lifetime, server: &Server<'_>) -> bool {
    let held = match directory::lock(folder, END_PATIENCE) {
        Ok(held) => held,
        // Somebody keeps it: the next attempt comes when clients have been missing once more.
        Err(error) if error.kind() == io::ErrorKind::TimedOut => return false,
        // Without the directory, no file can stay and no client can connect.
        Err(_) => return true,
    };
    if lifetime == Lifetime::LastClient
        && seqpacket::poll(server.listener().as_fd(), 0).is_ok_and(|seen| seen.readable)
    {
        return false;
    }
    // A client that connects after the poll above is disconnected when the socket closes, and tries again:
    // `broker_connection::Failed::Ending`.
    directory::leave(folder, directory, own, &held);
    true
}

#[cfg(test)]
mod tests;
