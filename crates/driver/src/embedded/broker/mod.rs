//! Room: the broker of a context directory, which is to its clients what a kernel's driver is: when it
//! begins, how long it stays, when it ends.
//!
//! - [`core`]: the rules, without any system call. - [`serve`]: clients and their requests.
//! - [`memory`]: the memory that it shares with them.
//!
//! Not here: its clients' end (`super::line`), starting it on demand (`super::start`).

pub mod core;
mod memory;
mod serve;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use sys::seqpacket;

use super::directory::{self, SocketFile};
use serve::{Rules, Server};

/// How long a broker stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Until its last client is gone.
    LastClient,
    /// Until the process is asked to stop ([`sys::stop_signal`]).
    UntilStopped,
}

/// Something that people may want to know of a broker.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// It serves now.
    Listening {
        /// Its socket.
        at: &'e Path,
    },
    /// It let somebody go who broke the rules.
    Dropped {
        /// The process.
        pid: u32,
        /// What it did.
        why: &'e str,
    },
    /// It could not let somebody in.
    Refused {
        /// The process, 0 if that is not known.
        pid: u32,
        /// What failed.
        why: &'e str,
    },
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening { at } => write!(f, "listening at {}", at.display()),
            Self::Dropped { pid, why } => write!(f, "dropped process {pid}: {why}"),
            Self::Refused { pid, why } => write!(f, "refused process {pid}: {why}"),
        }
    }
}

/// Why a broker could not serve.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// Another one serves that directory.
    Running {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory may not be used; says what to do.
    Directory(crate::OpenError),
    /// A system call failed.
    Os {
        /// What was tried.
        call: &'static str,
        /// With what.
        path: PathBuf,
        /// What came back.
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

/// Serves a directory until its lifetime ends. `tell` hears what happens; the first event is
/// [`Event::Listening`].
///
/// # Errors
/// See [`RunError`].
pub fn run(directory: &Path, lifetime: Lifetime, tell: impl FnMut(Event<'_>)) -> Result<(), RunError> {
    run_with(core::Core::new(), directory, lifetime, tell)
}

/// [`run`] with rules of the caller's choice.
fn run_with<R: Rules>(
    rules: R,
    directory: &Path,
    lifetime: Lifetime,
    mut tell: impl FnMut(Event<'_>),
) -> Result<(), RunError> {
    directory::ensure(directory).map_err(RunError::Directory)?;
    let (listener, own) = begin(directory)?;
    let failed = |source| RunError::Os { call: "waiting for clients at", path: directory.to_owned(), source };
    tell(Event::Listening { at: &directory::socket(directory) });
    let mut server = Server::new(rules, listener, &mut tell).map_err(failed)?;
    loop {
        server.serve(lifetime).map_err(failed)?;
        if end(directory, own, lifetime, &server) {
            return Ok(());
        }
    }
}

/// Becomes the one who listens there, or finds that another one does.
fn begin(directory: &Path) -> Result<(OwnedFd, SocketFile), RunError> {
    let socket = directory::socket(directory);
    let failed = |call: &'static str| {
        let path = socket.clone();
        move |source| RunError::Os { call, path, source }
    };
    let _held = directory::lock(directory).map_err(failed("taking the lock beside"))?;
    match seqpacket::connect(&socket) {
        Ok(_) => return Err(RunError::Running { directory: directory.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // Left behind by a broker that was killed.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(&socket).map_err(failed("removing the stale"))?;
        }
        Err(error) => return Err(failed("looking for a broker at")(error)),
    }
    let listener = seqpacket::listen(&socket).map_err(failed("listening at"))?;
    let own = directory::socket_file(directory)
        .ok_or_else(|| failed("listening at")(io::ErrorKind::NotFound.into()))?;
    Ok((listener, own))
}

/// Ends a broker that nobody needs; false if somebody wants to come in after all.
fn end<R: Rules>(directory: &Path, own: SocketFile, lifetime: Lifetime, server: &Server<'_, R>) -> bool {
    // Without the directory there is nothing to leave behind, and nobody can come.
    let Ok(held) = directory::lock(directory) else { return true };
    if lifetime == Lifetime::LastClient
        && seqpacket::poll(server.listener().as_fd(), 0).is_ok_and(|seen| seen.readable)
    {
        return false;
    }
    // Whoever connects between that look and this line is turned away when the socket is closed, and
    // tries again: `line::Failed::Ending`.
    directory::leave(directory, own, &held);
    true
}

#[cfg(test)]
mod tests;
