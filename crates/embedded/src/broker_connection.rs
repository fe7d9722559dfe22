//! Client end of the connection to the broker: joining, requests, and answers that carry descriptors.
//! Not here: items from the broker (`shm::ring`), the broker's end (`broker`), the bytes (`framing`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;
use sys::errno::EMFILE;
use sys::file_key::FileKey;
use sys::folder::Folder;
use sys::identity::effective_uid;
use sys::sealed_memory::SealedMemory;
use sys::seqpacket::{self, Wait};

use crate::rpc::framing::{self, Reception};
use crate::rpc::protocol::{MAX_FDS, ProcId, Request, ThreadKey};
use crate::{directory, start};
use driver::error::OpenError;

pub(crate) use crate::rpc::framing::Hello;

/// Time that a broker may take to answer a hello before the client gives up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Number of attempts of a client that meets a broker just ending, or loses a race to start one. Each such attempt
/// takes milliseconds.
const TRIES: u32 = 100;

/// Client end of an open connection.
#[derive(Debug)]
pub(crate) struct BrokerConnection {
    socket: OwnedFd,
    /// The socket itself, whatever has its number.
    key: FileKey,
    directory: PathBuf,
    /// Locked from a fetching request until its answer.
    fetching: Mutex<()>,
}

/// Number and memories that a process gets when it joins.
#[derive(Debug)]
pub(crate) struct Welcome {
    /// Number of the process.
    pub(crate) proc: ProcId,
    /// The ring of items.
    pub(crate) inbox: SealedMemory,
    /// Outbox: the sender puts a transaction's bytes here for the broker.
    pub(crate) outbox: SealedMemory,
    /// Doorbells of the process's threads.
    pub(crate) doorbells: SealedMemory,
}

/// Failure of one attempt to join.
enum Failed {
    /// No broker listens: start one.
    NoBroker,
    /// The broker ended meanwhile: try again.
    Ending,
    /// Another attempt is useless.
    For(String),
}

impl BrokerConnection {
    /// Closes this process's copy of the socket, which its parent has too.
    pub(crate) fn leave_to_parent(&self) {
        // A child that closed all numbers may have a file of its own there.
        if !FileKey::of(self.socket.as_fd()).is_ok_and(|there| there == self.key) {
            return;
        }
        // Without a free descriptor the copy stays, and with it the parent's connection while this process lives.
        let _ = sys::descriptor::placeholder(0)
            .and_then(|other| sys::descriptor::replace(self.socket.as_fd(), other.as_fd()));
    }

    /// Joins a context of the directory's broker, which is started if there is none.
    ///
    /// # Errors
    /// [`OpenError::Embedded`]: the directory is not the user's alone, the broker cannot be started,
    /// does not answer, speaks another version, or is out of memory or descriptors.
    pub(crate) fn open(directory: &Path, hello: Hello) -> Result<(Self, Welcome), OpenError> {
        let refused = |why| OpenError::Embedded { directory: directory.to_owned(), why };
        if !framing::is_name(&hello.context) {
            return Err(refused(format!(
                "a context's name has 1 to {} bytes without slashes, colons and control characters and is not \
                 . or .., unlike {:?}",
                framing::NAME_MAX,
                hello.context
            )));
        }
        for attempt in 0..TRIES {
            let folder = directory::ensure(directory)?;
            match Self::join(&folder, directory, &hello, PATIENCE) {
                Ok(joined) => return Ok(joined),
                Err(Failed::NoBroker) => start::start(directory).map_err(refused)?,
                Err(Failed::Ending) => sleep(Duration::from_millis(u64::from(attempt.min(20)))),
                Err(Failed::For(why)) => return Err(refused(why)),
            }
        }
        Err(refused("its brokers end as soon as they begin; run `binderperf broker` to see why".to_owned()))
    }

    /// [`Self::open`] if a broker runs already; `None` if none does.
    ///
    /// # Errors
    /// See [`Self::open`].
    pub(crate) fn open_running(directory: &Path, hello: &Hello) -> Result<Option<Self>, OpenError> {
        let refused = |why| OpenError::Embedded { directory: directory.to_owned(), why };
        directory::fits(directory).map_err(refused)?;
        let Some(folder) = directory::opened(directory)? else { return Ok(None) };
        match Self::join(&folder, directory, hello, PATIENCE) {
            Ok((line, _)) => Ok(Some(line)),
            Err(Failed::NoBroker | Failed::Ending) => Ok(None),
            Err(Failed::For(why)) => Err(refused(why)),
        }
    }

    fn join(
        folder: &Folder,
        directory: &Path,
        hello: &Hello,
        patience: Duration,
    ) -> Result<(Self, Welcome), Failed> {
        let patience = sys::patience::stretched(patience);
        let unanswered = || {
            Failed::For(format!("its broker has not answered for {} s; is it stopped?", patience.as_secs()))
        };
        let socket =
            seqpacket::connect(&directory::socket_in(folder), patience).map_err(|error| {
                match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Failed::NoBroker,
                    io::ErrorKind::TimedOut => unanswered(),
                    _ => Failed::For(format!(
                        "connecting to its broker failed: {}",
                        sys::errno::describe(&error)
                    )),
                }
            })?;
        serve_inline();
        // The directory is this user's alone, and so is its broker.
        let (peer, me) = (seqpacket::peer(socket.as_fd()).map_err(ended_or)?, effective_uid());
        if peer.euid != me {
            return Err(Failed::For(format!("what listens there is user {}'s, not of user {me}", peer.euid)));
        }
        seqpacket::send(socket.as_fd(), &hello.encode(), &[], Wait::Forever).map_err(ended_or)?;
        serve_inline();
        let seen = seqpacket::poll(socket.as_fd(), patience.as_millis() as i32).map_err(ended_or)?;
        if !seen.readable && !seen.hung_up {
            return Err(unanswered());
        }
        let (mut bytes, mut descriptors) = ([0; framing::RECEPTION_MAX], Vec::new());
        let got =
            seqpacket::recv(socket.as_fd(), &mut bytes, &mut descriptors, Wait::No).map_err(ended_or)?;
        if got.bytes == 0 {
            return Err(Failed::Ending);
        }
        if got.descriptors_lost {
            return Err(Failed::For(
                "this process has no room for the descriptors that come with it (EMFILE); raise its limit \
                 of open files"
                    .to_owned(),
            ));
        }
        let welcome = admitted(&bytes[..got.bytes], descriptors).map_err(Failed::For)?;
        let key = FileKey::of(socket.as_fd()).map_err(ended_or)?;
        let line = Self { socket, key, directory: directory.to_owned(), fetching: Mutex::new(()) };
        Ok((line, welcome))
    }

    /// Sends one request. Waits while the broker is behind with this process's requests; allocates
    /// nothing.
    ///
    /// # Errors
    /// [`Self::gone`]. `EMFILE`, `ETOOMANYREFS`: too many descriptors on their way.
    pub(crate) fn send(
        &self,
        thread: ThreadKey,
        seq: u32,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let bytes = framing::frame(thread, seq, request);
        seqpacket::send(self.socket.as_fd(), &bytes, descriptors, Wait::Forever)
            .map_err(|error| self.or_gone(error))?;
        serve_inline();
        Ok(())
    }

    /// Sends a request that is answered on the socket ([`Request::TakeFds`], [`Request::State`],
    /// [`Request::TakeChannel`]) and waits for the answer: its errno (0 for none) and descriptors. If this process
    /// has no room for all of them, it keeps none and the errno is `EMFILE`.
    /// # Errors
    /// [`Self::gone`].
    pub(crate) fn fetch(&self, thread: ThreadKey, request: &Request) -> io::Result<(i32, Vec<OwnedFd>)> {
        let _turn = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        self.send(thread, 0, request, &[])?;
        let (mut bytes, mut descriptors) = ([0; framing::FETCHED], Vec::new());
        let got = seqpacket::recv(self.socket.as_fd(), &mut bytes, &mut descriptors, Wait::Forever)
            .map_err(|error| self.or_gone(error))?;
        if got.bytes == 0 {
            return Err(self.gone());
        }
        let (errno, count) = framing::unfetched(&bytes[..got.bytes]).ok_or(io::ErrorKind::InvalidData)?;
        if got.descriptors_lost || descriptors.len() < (count as usize).min(MAX_FDS) {
            return Ok((EMFILE, Vec::new()));
        }
        Ok((errno, descriptors))
    }

    /// Whether the broker still runs.
    pub(crate) fn is_alive(&self) -> bool {
        seqpacket::poll(self.socket.as_fd(), 0).is_ok_and(|seen| !seen.hung_up)
    }

    /// Waits for the end of the broker, for `patience` (in whole ms) at most; whether it ended.
    pub(crate) fn ends_within(&self, patience: Duration) -> bool {
        // Nothing is received on a connection without requests.
        let ms = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
        seqpacket::poll(self.socket.as_fd(), ms).is_ok_and(|seen| seen.hung_up)
    }

    /// The broker's process; 0 if this process cannot see it.
    ///
    /// # Errors
    /// None for a connected socket.
    pub(crate) fn broker_pid(&self) -> io::Result<u32> {
        seqpacket::peer(self.socket.as_fd()).map(|peer| peer.pid)
    }

    /// Ends the socket, as the end of the broker does.
    #[cfg(test)]
    pub(crate) fn break_off(&self) {
        let socket = self.socket.try_clone().expect("a descriptor more");
        let both = std::net::Shutdown::Both;
        std::os::unix::net::UnixStream::from(socket).shutdown(both).expect("connected");
    }

    /// Error of every use of a connection whose broker has ended.
    pub(crate) fn gone(&self) -> io::Error {
        let what = format!("the broker of {} is gone; open again", self.directory.display());
        io::Error::new(io::ErrorKind::ConnectionReset, what)
    }

    fn or_gone(&self, error: io::Error) -> io::Error {
        if is_end(&error) { self.gone() } else { error }
    }
}

/// Lets the broker of a fuzz target, which has no thread, take what was sent to it.
fn serve_inline() {
    #[cfg(any(test, feature = "fuzz"))]
    crate::broker::inline::serve();
}

fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected
    )
}

fn ended_or(error: io::Error) -> Failed {
    if is_end(&error) {
        Failed::Ending
    } else {
        Failed::For(format!("talking to its broker failed: {}", sys::errno::describe(&error)))
    }
}

/// Decodes the broker's answer to a hello.
fn admitted(bytes: &[u8], descriptors: Vec<OwnedFd>) -> Result<Welcome, String> {
    let nonsense = || "what listens there is no broker of this program".to_owned();
    match Reception::decode(bytes).ok_or_else(nonsense)? {
        Reception::Refused { errno, why } => Err(match sys::errno::name(errno) {
            Some(name) => format!("its broker refused: {why} ({name})"),
            None => format!("its broker refused: {why}"),
        }),
        Reception::Welcome { proc, sizes, .. } => {
            let mut descriptors = descriptors.into_iter();
            let mut memory = |size| -> Result<SealedMemory, String> {
                let fd = descriptors.next().ok_or_else(nonsense)?;
                SealedMemory::map(fd, usize::try_from(size).map_err(|_| nonsense())?)
                    .map_err(|error| format!("mapping its memory failed: {}", sys::errno::describe(&error)))
            };
            let [inbox, outbox, doorbells] = sizes;
            Ok(Welcome {
                proc,
                inbox: memory(inbox)?,
                outbox: memory(outbox)?,
                doorbells: memory(doorbells)?,
            })
        }
    }
}

#[cfg(test)]
mod tests;
