//! Room: the broker's clients: letting them in, carrying their requests to the rules, letting them go.
//! Not here: the rules (`core`), memory (`memory`), when the broker begins and ends (`super`).
//!
//! One thread does everything, one message at a time, and waits for nothing but the next message: a
//! client that stops in the middle of anything keeps nobody up. Whatever a client sends that makes no
//! sense ends that client's connection and nothing else.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use sys::epoll::Epoll;
use sys::sealed_memory::SealedMemory;
use sys::seqpacket::{self, Peer, Wait};

use super::core::{Client, Core};
use super::memory::{Shared, World};
use super::{Event, Lifetime};
use crate::embedded::protocol::{OUTBOX_SIZE, ProcId, Request, StateFile, ThreadKey, Transact, VERSION};
use crate::embedded::wire::{self, BadHello, FETCHED, FRAME, HELLO_MAX, Hello, Reception};

const EINVAL: i32 = 22;
const EMFILE: i32 = 24;
const EPROTO: i32 = 71;

/// How long a broker without clients stays: a client that opens again at once finds it.
const LINGER: Duration = Duration::from_millis(150);
/// How long it waits for the first: whoever started it is about to connect.
const FIRST_LINGER: Duration = Duration::from_secs(2);
/// How often one that stays looks whether it was asked to stop: the signal may come just before it
/// begins to wait.
const LOOK_MS: i32 = 500;

/// What the server asks of the rules: see [`Core`].
pub(super) trait Rules {
    fn open(&mut self, client: Client) -> ProcId;
    fn close(&mut self, proc: ProcId, world: &mut World);
    fn request(&mut self, asked: Asked<'_>, world: &mut World);
    fn take_fds(&mut self, proc: ProcId, transaction: u32) -> Vec<OwnedFd>;
    fn state(&self, which: StateFile, world: &World) -> String;
}

/// One request of one client.
pub(super) struct Asked<'a> {
    pub(super) from: ProcId,
    pub(super) thread: ThreadKey,
    pub(super) seq: u32,
    pub(super) request: Request,
    /// A transaction's bytes: a private copy.
    pub(super) bytes: &'a [u8],
    pub(super) fds: Vec<OwnedFd>,
}

impl Rules for Core {
    fn open(&mut self, client: Client) -> ProcId {
        Core::open(self, client)
    }
    fn close(&mut self, proc: ProcId, world: &mut World) {
        Core::close(self, proc, world);
    }
    fn request(&mut self, asked: Asked<'_>, world: &mut World) {
        let Asked { from, thread, seq, request, bytes, fds } = asked;
        Core::request(self, from, thread, seq, request, bytes, fds, world);
    }
    fn take_fds(&mut self, proc: ProcId, transaction: u32) -> Vec<OwnedFd> {
        Core::take_fds(self, proc, transaction)
    }
    fn state(&self, which: StateFile, world: &World) -> String {
        Core::state(self, which, world)
    }
}

/// One who is connected.
struct Guest {
    socket: OwnedFd,
    peer: Peer,
    /// Once it has said hello.
    proc: Option<ProcId>,
}

/// Why a guest is let go.
enum Over {
    /// It left.
    Left,
    /// It broke the rules.
    Broke(&'static str),
}

/// The clients of one broker.
pub(super) struct Server<'t, R> {
    rules: R,
    world: World,
    guests: HashMap<u64, Guest>,
    tokens: HashMap<ProcId, u64>,
    listener: OwnedFd,
    epoll: Epoll,
    next_token: u64,
    /// Given up to turn a guest away for whom there is no descriptor.
    spare: Option<File>,
    /// A transaction's bytes.
    bytes: Vec<u8>,
    tell: &'t mut dyn FnMut(Event<'_>),
}

const LISTENER: u64 = 0;

impl<'t, R: Rules> Server<'t, R> {
    pub(super) fn new(rules: R, listener: OwnedFd, tell: &'t mut dyn FnMut(Event<'_>)) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(listener.as_fd(), LISTENER)?;
        Ok(Self {
            rules,
            world: World::new(),
            guests: HashMap::new(),
            tokens: HashMap::new(),
            listener,
            epoll,
            next_token: LISTENER + 1,
            spare: spare(),
            bytes: Vec::new(),
            tell,
        })
    }

    pub(super) fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// Serves until nobody needs the broker any more.
    pub(super) fn serve(&mut self, lifetime: Lifetime) -> io::Result<()> {
        let mut ready = Vec::new();
        let mut linger = FIRST_LINGER;
        let mut alone_since = Instant::now();
        loop {
            let timeout = match lifetime {
                Lifetime::UntilStopped if sys::stop_signal::received().is_some() => return Ok(()),
                Lifetime::UntilStopped => LOOK_MS,
                Lifetime::LastClient if !self.guests.is_empty() => -1,
                Lifetime::LastClient => match linger.checked_sub(alone_since.elapsed()) {
                    Some(left) => left.as_millis() as i32 + 1,
                    None => return Ok(()),
                },
            };
            match self.epoll.wait(&mut ready, timeout) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            }
            for token in &ready {
                match *token {
                    LISTENER => self.accept(),
                    token => self.hear(token),
                }
            }
            if !ready.is_empty() {
                (linger, alone_since) = (LINGER, Instant::now());
            }
        }
    }

    fn accept(&mut self) {
        match seqpacket::accept(self.listener.as_fd()) {
            Ok(socket) => {
                if let Err(error) = self.admit(socket) {
                    (self.tell)(Event::Refused { pid: 0, why: &sys::errno::describe(&error) });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Out of descriptors: whoever waits must hear of it, or would wait for ever.
            Err(error) => self.turn_away(&error),
        }
        if self.spare.is_none() {
            self.spare = spare();
        }
    }

    fn admit(&mut self, socket: OwnedFd) -> io::Result<()> {
        let peer = seqpacket::peer(socket.as_fd())?;
        let token = self.next_token;
        self.next_token += 1;
        self.epoll.add(socket.as_fd(), token)?;
        self.guests.insert(token, Guest { socket, peer, proc: None });
        Ok(())
    }

    fn turn_away(&mut self, error: &io::Error) {
        self.spare = None;
        let why = "it has no descriptor left for another client; raise its limit of open files";
        let refused =
            Reception::Refused { errno: error.raw_os_error().unwrap_or(EMFILE), why: why.to_owned() };
        let mut pid = 0;
        if let Ok(socket) = seqpacket::accept(self.listener.as_fd()) {
            pid = seqpacket::peer(socket.as_fd()).map_or(0, |peer| peer.pid);
            // One who does not hear it finds the end of the connection.
            let _ = seqpacket::send(socket.as_fd(), &refused.encode(), &[], Wait::No);
        }
        (self.tell)(Event::Refused { pid, why });
    }

    /// Takes one message of a guest.
    fn hear(&mut self, token: u64) {
        let Some(guest) = self.guests.get(&token) else { return };
        let mut bytes = [0; if FRAME > HELLO_MAX { FRAME } else { HELLO_MAX }];
        let mut fds = Vec::new();
        let over = match seqpacket::recv(guest.socket.as_fd(), &mut bytes, &mut fds, Wait::No) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(_) => Err(Over::Left),
            Ok(got) if got.bytes == 0 => Err(Over::Left),
            Ok(got) if got.cut => Err(Over::Broke("it sent a message that is too long")),
            Ok(got) => match guest.proc {
                None => self.welcome(token, &bytes[..got.bytes]),
                Some(proc) => {
                    let fds = if got.descriptors_lost { Err(fds) } else { Ok(fds) };
                    self.obey(token, proc, &bytes[..got.bytes], fds)
                }
            },
        };
        if let Err(over) = over {
            self.dismiss(token, over);
        }
        for (proc, why) in self.world.take_failed() {
            if let Some(token) = self.tokens.get(&proc) {
                self.dismiss(*token, Over::Broke(why));
            }
        }
    }

    fn dismiss(&mut self, token: u64, over: Over) {
        let Some(Guest { socket, peer, proc }) = self.guests.remove(&token) else { return };
        drop(socket);
        if let Some(proc) = proc {
            self.tokens.remove(&proc);
            self.rules.close(proc, &mut self.world);
            self.world.leave(proc);
        }
        if let Over::Broke(why) = over {
            (self.tell)(Event::Dropped { pid: peer.pid, why });
        }
    }

    /// A guest's first message.
    fn welcome(&mut self, token: u64, bytes: &[u8]) -> Result<(), Over> {
        let hello = match Hello::decode(bytes) {
            Ok(hello) => hello,
            Err(BadHello::Garbage) => return Err(Over::Broke("its first message was no hello")),
            Err(BadHello::Version(theirs)) => {
                let why = format!(
                    "it speaks version {VERSION} of its protocol, this program version {theirs}; stop the \
                     broker, or use the program it was started from"
                );
                return self.refuse(token, EPROTO, why);
            }
        };
        let shared = match Shared::create(hello.map_size) {
            Ok(shared) => shared,
            Err((what, error)) => {
                let why = format!("making {what} failed: {}", sys::errno::describe(&error));
                return self.refuse(token, error.raw_os_error().unwrap_or(0), why);
            }
        };
        let Some(guest) = self.guests.get_mut(&token) else { return Ok(()) };
        let security_context = seqpacket::peer_security(guest.socket.as_fd());
        let Peer { pid, euid } = guest.peer;
        let Hello { context, map_size, lanes } = hello;
        let proc = self.rules.open(Client { pid, euid, context, map_size, security_context, lanes });
        guest.proc = Some(proc);
        self.tokens.insert(proc, token);
        let sent = send_welcome(guest, proc, &shared);
        self.world.join(proc, pid, shared);
        sent
    }

    fn refuse(&mut self, token: u64, errno: i32, why: String) -> Result<(), Over> {
        if let Some(guest) = self.guests.get(&token) {
            (self.tell)(Event::Refused { pid: guest.peer.pid, why: &why });
            let refused = Reception::Refused { errno, why }.encode();
            // One who does not hear it finds the end of the connection.
            let _ = seqpacket::send(guest.socket.as_fd(), &refused, &[], Wait::No);
        }
        Err(Over::Left)
    }

    /// A request. `fds` is `Err` if the broker had no room for all of them.
    fn obey(
        &mut self,
        token: u64,
        from: ProcId,
        bytes: &[u8],
        fds: Result<Vec<OwnedFd>, Vec<OwnedFd>>,
    ) -> Result<(), Over> {
        let (thread, seq, mut request) =
            wire::unframe(bytes).ok_or(Over::Broke("it sent a message that is no request"))?;
        match request {
            Request::TakeFds { transaction } => {
                let fds = self.rules.take_fds(from, transaction);
                let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
                self.answer(token, 0, &fds)
            }
            Request::State { which } => self.tell_state(token, which),
            Request::TakeChannel { channel } => match self.world.channel(from, channel) {
                Some(memories) => self.answer(token, 0, &memories.map(SealedMemory::descriptor)),
                None => self.answer(token, EINVAL, &[]),
            },
            Request::More {} => {
                self.world.more(from);
                Ok(())
            }
            _ => {
                let mut bytes = std::mem::take(&mut self.bytes);
                bytes.clear();
                let fds = match (&mut request, fds) {
                    (_, Ok(fds)) => fds,
                    (Request::Transact { transact }, Err(_)) => {
                        // The transaction fails as if its sender had not been able to give them.
                        transact.data_fault = EMFILE;
                        Vec::new()
                    }
                    _ => Vec::new(),
                };
                if let Request::Transact { transact } = &request
                    && let Some(len) = outbox_bytes(transact)
                {
                    self.world.read_outbox(from, len, &mut bytes);
                }
                let asked = Asked { from, thread, seq, request, bytes: &bytes, fds };
                self.rules.request(asked, &mut self.world);
                self.bytes = bytes;
                Ok(())
            }
        }
    }

    fn tell_state(&self, token: u64, which: u32) -> Result<(), Over> {
        let Some(which) = state_file(which) else { return self.answer(token, EINVAL, &[]) };
        let text = self.rules.state(which, &self.world);
        match SealedMemory::create(text.len().max(1)) {
            Ok(memory) => {
                memory.copy_in(0, text.as_bytes());
                self.answer(token, 0, &[memory.descriptor()])
            }
            Err(error) => self.answer(token, error.raw_os_error().unwrap_or(EMFILE), &[]),
        }
    }

    /// Answers on the socket.
    fn answer(&self, token: u64, errno: i32, fds: &[BorrowedFd<'_>]) -> Result<(), Over> {
        let Some(guest) = self.guests.get(&token) else { return Ok(()) };
        let bytes: [u8; FETCHED] = wire::fetched(errno, fds.len() as u32);
        let sent = match seqpacket::send(guest.socket.as_fd(), &bytes, fds, Wait::No) {
            // Too many on their way (ETOOMANYREFS), no memory: that is an answer, too.
            Err(error) if !fds.is_empty() && error.kind() != io::ErrorKind::WouldBlock => {
                let errno = error.raw_os_error().unwrap_or(EMFILE);
                seqpacket::send(guest.socket.as_fd(), &wire::fetched(errno, 0), &[], Wait::No)
            }
            other => other,
        };
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(Over::Broke("it does not read what it fetched"))
            }
            // Its end is found when its socket is read.
            _ => Ok(()),
        }
    }
}

fn send_welcome(guest: &Guest, proc: ProcId, shared: &Shared) -> Result<(), Over> {
    let Shared { arena, inbox, outbox, doorbells } = shared;
    let memories = [Some(&**inbox), Some(outbox), Some(&**doorbells), arena.as_ref()];
    let sizes = memories.map(|memory| memory.map_or(0, |memory| memory.len() as u64));
    let welcome = Reception::Welcome { proc, pid: guest.peer.pid, sizes };
    let fds: Vec<_> = memories.iter().flatten().map(|memory| memory.descriptor()).collect();
    seqpacket::send(guest.socket.as_fd(), &welcome.encode(), &fds, Wait::No).map_err(|_| Over::Left)
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

/// How much of the outbox a transaction needs; `None` if it has no bytes there, or cannot.
fn outbox_bytes(transact: &Transact) -> Option<usize> {
    if transact.data_fault != 0 {
        return None;
    }
    let sizes = [transact.data_size, transact.offsets_size, transact.gathered];
    let mut all: u64 = 0;
    for size in sizes {
        all = all.checked_add(size.checked_next_multiple_of(8)?)?;
    }
    usize::try_from(all).ok().filter(|all| *all <= OUTBOX_SIZE)
}

fn state_file(number: u32) -> Option<StateFile> {
    [
        StateFile::State,
        StateFile::Stats,
        StateFile::Transactions,
        StateFile::TransactionLog,
        StateFile::FailedTransactionLog,
    ]
    .into_iter()
    .find(|which| *which as u32 == number)
}
