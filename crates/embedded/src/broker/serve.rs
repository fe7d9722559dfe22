//! Broker's server loop: accepts clients, passes their requests to the core, disconnects them.
//! Not here: the driver's rules (`core`), memory (`memory`), start and end of the broker (`super`).
//!
//! Processes with pending messages take turns (`turns`). One thread handles one message at a time, and waits for
//! nothing but the next message: a client that stops anywhere delays no other. An invalid message ends its sender's
//! connection and nothing else.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use sys::errno::{EINVAL, EMFILE, EPERM, EPROTO};

use sys::epoll::Epoll;
use sys::errno::EBUSY;
use sys::patience::stretched;
use sys::sealed_memory::SealedMemory;
use sys::seqpacket::{self, Peer, Wait};

use super::budget::Exceeded;
use super::core::{Client, Core, Faults};
use super::memory::{ArenaMemory, MemoryHost, Shared};
use super::notices::Notices;
use super::turns::{Next, Turns};
use super::{Event, Lifetime};
use crate::rpc::framing::{self, BadHello, FETCHED, FRAME, HELLO_MAX, Hello, Reception};
use crate::rpc::protocol::{OUTBOX_SIZE, ProcId, Request, StateFile, Transact, VERSION};

/// Time that a broker without clients stays, so that a client that reopens at once finds it.
const LINGER: Duration = Duration::from_millis(150);
/// Time that a broker waits for its first client: the process that started it is about to connect.
const FIRST_LINGER: Duration = Duration::from_secs(2);
/// Interval in ms at which a permanent broker checks for a stop request: the signal may arrive just before the wait
/// begins.
const LOOK_MS: i32 = 500;

/// Socket of a connected client.
struct ClientSocket {
    socket: OwnedFd,
    peer: Peer,
    /// The process that it speaks for: its own, or one that it supervises.
    pid: u32,
    /// Set once the client has sent its hello.
    proc: Option<ProcId>,
    /// Taken out of the epoll set until its turn.
    parked: bool,
}

/// Reason to disconnect a client.
enum Disconnect {
    /// The client left.
    ClientLeft,
    /// The client violated the protocol.
    Violation(&'static str),
}

/// The clients of one broker.
pub(super) struct Server<'t> {
    core: Core,
    host: MemoryHost,
    clients: HashMap<u64, ClientSocket>,
    tokens: HashMap<ProcId, u64>,
    listener: OwnedFd,
    epoll: Epoll,
    turns: Turns,
    /// Time in ms that the streams rest, if only they have messages.
    rest_ms: i32,
    /// Buffer for the connections with messages.
    ready: Vec<u64>,
    listener_parked: bool,
    /// Clients that have not sent their hello yet, or are gone, with the time when their patience ends.
    silent: VecDeque<(Instant, u64)>,
    hello_patience: Duration,
    notices: Notices,
    began: Instant,
    next_token: u64,
    /// Spare descriptor, closed to accept and refuse a client when no other is left.
    spare: Option<File>,
    /// Buffer for a transaction's bytes.
    bytes: Vec<u8>,
    tell: &'t mut dyn FnMut(Event<'_>),
}

const LISTENER: u64 = 0;
/// Clients that connect have the turns of one process.
const LISTENER_PID: u32 = 0;
/// Number of ready clients above which those whose turn has not come are parked, so that each wait stays cheap.
const READY_MAX: usize = 16;

impl<'t> Server<'t> {
    pub(super) fn new(
        listener: OwnedFd,
        hello_patience: Duration,
        faults: Faults,
        tell: &'t mut dyn FnMut(Event<'_>),
    ) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(listener.as_fd(), LISTENER)?;
        Ok(Self {
            core: Core::with_faults(faults),
            host: MemoryHost::new(),
            clients: HashMap::new(),
            tokens: HashMap::new(),
            listener,
            epoll,
            turns: Turns::default(),
            rest_ms: 0,
            ready: Vec::new(),
            listener_parked: false,
            silent: VecDeque::new(),
            hello_patience,
            notices: Notices::default(),
            began: Instant::now(),
            next_token: LISTENER + 1,
            spare: spare(),
            bytes: Vec::new(),
            tell,
        })
    }

    pub(super) fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// Serves until the lifetime ends.
    pub(super) fn serve(&mut self, lifetime: Lifetime) -> io::Result<()> {
        let mut linger = FIRST_LINGER;
        let mut alone_since = Instant::now();
        loop {
            let timeout = match lifetime {
                Lifetime::UntilStopped if sys::stop_signal::received().is_some() => return Ok(()),
                _ if !self.turns.is_empty() => self.rest_ms,
                Lifetime::UntilStopped => self.before_deadline(LOOK_MS),
                Lifetime::LastClient if !self.clients.is_empty() => self.before_deadline(-1),
                Lifetime::LastClient => match linger.checked_sub(alone_since.elapsed()) {
                    Some(left) => left.as_millis() as i32 + 1,
                    None => return Ok(()),
                },
            };
            if let Some(served) = self.serve_one(timeout)? {
                (linger, alone_since) = (LINGER, served);
            }
        }
    }

    /// Serves every message that is there, and waits for none.
    #[cfg(any(test, feature = "fuzz"))]
    pub(super) fn serve_pending(&mut self) -> io::Result<()> {
        loop {
            let timeout = if self.turns.is_empty() { 0 } else { self.rest_ms };
            if self.serve_one(timeout)?.is_none() && self.turns.is_empty() {
                return Ok(());
            }
        }
    }

    /// Serves the next message, for which it waits `timeout` ms at most; returns when that was done, or `None` if no
    /// message was served.
    fn serve_one(&mut self, timeout: i32) -> io::Result<Option<Instant>> {
        let mut ready = std::mem::take(&mut self.ready);
        match self.epoll.wait(&mut ready, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            other => other?,
        }
        self.turns.look();
        for token in &ready {
            self.turns.ready(self.pid_of(*token), *token);
        }
        let next = self.turns.next(self.now_ns());
        self.rest_ms = if let Next::Rest(ns) = next { (ns / 1_000_000) as i32 + 1 } else { 0 };
        self.park(&ready, next);
        self.ready = ready;
        let Next::Serve(pid, token) = next else {
            self.dismiss_silent(Instant::now());
            return Ok(None);
        };
        let began = Instant::now();
        match token {
            LISTENER => self.accept(),
            token => self.receive(token),
        }
        self.unpark(token);
        let now = Instant::now();
        let spent = now.saturating_duration_since(began).as_nanos();
        self.turns.spent(pid, u64::try_from(spent).unwrap_or(u64::MAX), self.now_ns());
        self.dismiss_silent(now);
        Ok(Some(now))
    }

    /// A timeout in ms that does not exceed the patience with the next silent client.
    fn before_deadline(&self, timeout: i32) -> i32 {
        let Some((deadline, _)) = self.silent.front() else { return timeout };
        let left = deadline.saturating_duration_since(Instant::now()).as_millis().min(1 << 20) as i32 + 1;
        if timeout < 0 { left } else { left.min(timeout) }
    }

    /// Dismisses clients that did not send their hello in time.
    fn dismiss_silent(&mut self, now: Instant) {
        while let Some((deadline, token)) = self.silent.front().copied() {
            let waits = self.clients.get(&token).is_some_and(|client| client.proc.is_none());
            if waits && deadline > now {
                return;
            }
            self.silent.pop_front();
            if waits {
                self.dismiss(token, Disconnect::Violation("it connected and said nothing"));
            }
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn pid_of(&self, token: u64) -> u32 {
        self.clients.get(&token).map_or(LISTENER_PID, |client| client.pid)
    }

    /// Takes connections of streams out of the epoll set until their turn, and others if many are ready.
    fn park(&mut self, ready: &[u64], next: Next) {
        for token in ready {
            let served = matches!(next, Next::Serve(_, serves) if serves == *token);
            if served || ready.len() <= READY_MAX && !self.turns.is_stream(self.pid_of(*token)) {
                continue;
            }
            if *token == LISTENER {
                self.listener_parked = self.epoll.remove(self.listener.as_fd()).is_ok();
            } else if let Some(client) = self.clients.get_mut(token) {
                client.parked = self.epoll.remove(client.socket.as_fd()).is_ok();
            }
        }
    }

    fn unpark(&mut self, token: u64) {
        if token == LISTENER {
            if std::mem::take(&mut self.listener_parked) {
                self.listener_parked = self.epoll.add(self.listener.as_fd(), LISTENER).is_err();
            }
            return;
        }
        let Some(client) = self.clients.get_mut(&token).filter(|client| client.parked) else { return };
        client.parked = false;
        if self.epoll.add(client.socket.as_fd(), token).is_err() {
            self.dismiss(token, Disconnect::Violation("it cannot be waited for: no memory"));
        }
    }

    fn accept(&mut self) {
        match seqpacket::accept(self.listener.as_fd()) {
            Ok(socket) => {
                if let Err(error) = self.admit(socket) {
                    self.report_refused("admission", 0, &sys::errno::describe(&error));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Out of descriptors: without an answer the client would wait for ever.
            Err(error) => self.turn_away(&error),
        }
        if self.spare.is_none() {
            self.spare = spare();
        }
    }

    fn admit(&mut self, socket: OwnedFd) -> io::Result<()> {
        let peer = seqpacket::peer(socket.as_fd())?;
        if let Err(Exceeded { errno, why }) = self.host.budgets.connect(peer.pid) {
            self.report_refused(why, peer.pid, why);
            self.turns.at_leisure(peer.pid, true);
            let refused = Reception::Refused { errno, why: why.to_owned() };
            // A client that misses this sees the end of the connection.
            let _ = seqpacket::send(socket.as_fd(), &refused.encode(), &[], Wait::No);
            return Ok(());
        }
        let token = self.next_token;
        self.next_token += 1;
        let added = self.epoll.add(socket.as_fd(), token);
        if added.is_err() {
            self.host.budgets.disconnect(peer.pid);
        }
        added?;
        self.clients.insert(token, ClientSocket { socket, peer, pid: peer.pid, proc: None, parked: false });
        self.silent.push_back((Instant::now() + stretched(self.hello_patience), token));
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
            // A client that misses this sees the end of the connection.
            let _ = seqpacket::send(socket.as_fd(), &refused.encode(), &[], Wait::No);
        }
        self.report_refused(why, pid, why);
    }

    /// Reports a refusal, unless one of this kind was reported a moment ago.
    fn report_refused(&mut self, kind: &'static str, pid: u32, why: &str) {
        if let Some(left_out) = self.notices.tell(kind, self.began.elapsed()) {
            (self.tell)(Event::Refused { pid, why, left_out });
        }
    }

    /// Receives one message of a client.
    fn receive(&mut self, token: u64) {
        let Some(client) = self.clients.get(&token) else { return };
        let mut bytes = [0; if FRAME > HELLO_MAX { FRAME } else { HELLO_MAX }];
        let mut fds = Vec::new();
        let disconnect = match seqpacket::recv(client.socket.as_fd(), &mut bytes, &mut fds, Wait::No) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(_) => Err(Disconnect::ClientLeft),
            Ok(got) if got.bytes == 0 => Err(Disconnect::ClientLeft),
            Ok(got) if got.cut => Err(Disconnect::Violation("it sent a message that is too long")),
            Ok(got) => match client.proc {
                None => self.welcome(token, &bytes[..got.bytes]),
                Some(proc) => {
                    let fds = if got.descriptors_lost { Err(fds) } else { Ok(fds) };
                    self.execute(token, proc, &bytes[..got.bytes], fds)
                }
            },
        };
        if let Err(disconnect) = disconnect {
            self.dismiss(token, disconnect);
        }
        for (proc, why) in self.host.take_failed() {
            if let Some(token) = self.tokens.get(&proc) {
                self.dismiss(*token, Disconnect::Violation(why));
            }
        }
    }

    fn dismiss(&mut self, token: u64, disconnect: Disconnect) {
        let Some(ClientSocket { socket, pid, proc, .. }) = self.clients.remove(&token) else { return };
        drop(socket);
        if let Some(proc) = proc {
            self.tokens.remove(&proc);
            self.core.close(proc, &mut self.host);
            self.host.leave(proc);
        }
        self.host.budgets.disconnect(pid);
        if let Disconnect::Violation(why) = disconnect
            && let Some(left_out) = self.notices.tell(why, self.began.elapsed())
        {
            (self.tell)(Event::Dropped { pid, why, left_out });
        }
    }

    /// Answers a client's first message.
    fn welcome(&mut self, token: u64, bytes: &[u8]) -> Result<(), Disconnect> {
        let hello = match Hello::decode(bytes) {
            Ok(hello) => hello,
            Err(BadHello::Garbage) => return Err(Disconnect::Violation("its first message was no hello")),
            Err(BadHello::Version(theirs)) => {
                let why = format!(
                    "it speaks version {VERSION} of its protocol, this program version {theirs}; stop the \
                     broker, or use the program it was started from"
                );
                return self.refuse(token, "version", EPROTO, why);
            }
        };
        if hello.pid != 0
            && let Err(Exceeded { errno, why }) = self.speak_for(token, hello.pid)
        {
            return self.refuse(token, why, errno, why.to_owned());
        }
        let Some(pid) = self.clients.get(&token).map(|client| client.pid) else { return Ok(()) };
        if let Err(Exceeded { errno, why }) = self.host.budgets.take(pid, Shared::DESCRIPTORS, Shared::BYTES)
        {
            return self.refuse(token, why, errno, why.to_owned());
        }
        let shared = match Shared::create() {
            Ok(shared) => shared,
            Err((what, error)) => {
                self.host.budgets.give(pid, Shared::DESCRIPTORS, Shared::BYTES);
                let why = format!("making {what} failed: {}", sys::errno::describe(&error));
                return self.refuse(token, what, error.raw_os_error().unwrap_or(0), why);
            }
        };
        let Some(client) = self.clients.get_mut(&token) else { return Ok(()) };
        let security_context = seqpacket::peer_security(client.socket.as_fd());
        let euid = client.peer.euid;
        let Hello { context, call_slots, .. } = hello;
        let proc = self.core.open(Client { pid, euid, context, map_size: 0, security_context, call_slots });
        client.proc = Some(proc);
        self.tokens.insert(proc, token);
        let sent = send_welcome(client, proc, &shared);
        self.host.join(proc, pid, shared, call_slots);
        sent
    }

    /// Lets a client speak for another process of its user, to which it is charged from now on.
    fn speak_for(&mut self, token: u64, pid: u32) -> Result<(), Exceeded> {
        const OTHERS: Exceeded =
            Exceeded { errno: EPERM, why: "a client speaks for processes of its own user only" };
        let Some(client) = self.clients.get_mut(&token) else { return Ok(()) };
        let owner = sys::identity::owner_of(pid).map_err(|_| OTHERS)?;
        // Root may become any other.
        if owner != client.peer.euid && client.peer.euid != 0 {
            return Err(OTHERS);
        }
        client.peer.euid = owner;
        self.host.budgets.connect(pid)?;
        self.host.budgets.disconnect(client.pid);
        client.pid = pid;
        Ok(())
    }

    fn refuse(&mut self, token: u64, kind: &'static str, errno: i32, why: String) -> Result<(), Disconnect> {
        if let Some(pid) = self.clients.get(&token).map(|client| client.pid) {
            self.report_refused(kind, pid, &why);
            // One that tries again at once waits longer.
            self.turns.at_leisure(pid, true);
        }
        if let Some(client) = self.clients.get(&token) {
            let refused = Reception::Refused { errno, why }.encode();
            // A client that misses this sees the end of the connection.
            let _ = seqpacket::send(client.socket.as_fd(), &refused, &[], Wait::No);
        }
        Err(Disconnect::ClientLeft)
    }

    /// Executes a request. `fds` is `Err` if the broker had no room for all of them.
    fn execute(
        &mut self,
        token: u64,
        from: ProcId,
        bytes: &[u8],
        fds: Result<Vec<OwnedFd>, Vec<OwnedFd>>,
    ) -> Result<(), Disconnect> {
        let (thread, seq, mut request) =
            framing::unframe(bytes).ok_or(Disconnect::Violation("it sent a message that is no request"))?;
        // A text of everything is long, and nobody's call waits for it.
        self.turns.at_leisure(self.pid_of(token), matches!(request, Request::State { .. }));
        match request {
            Request::TakeFds { transaction } => {
                let fds = self.core.take_fds(from, transaction);
                let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
                self.answer(token, 0, &fds)
            }
            Request::State { which } => self.tell_state(token, which),
            Request::Map { size } => self.map(token, from, size),
            Request::TakeChannel { channel } => match self.host.channel(from, channel) {
                Some(memories) => self.answer(token, 0, &memories.map(SealedMemory::descriptor)),
                None => self.answer(token, EINVAL, &[]),
            },
            Request::More {} => {
                self.host.more(from);
                Ok(())
            }
            _ => {
                let mut bytes = std::mem::take(&mut self.bytes);
                bytes.clear();
                let fds = match (&mut request, fds) {
                    (_, Ok(fds)) => fds,
                    (Request::Transact { transact }, Err(_)) => {
                        // The transaction fails as if its sender could not have supplied them.
                        transact.data_fault = EMFILE;
                        Vec::new()
                    }
                    _ => Vec::new(),
                };
                if let Request::Transact { transact } = &request
                    && let Some(len) = outbox_bytes(transact)
                {
                    self.host.read_outbox(from, len, &mut bytes);
                }
                self.core.request(from, thread, seq, request, &bytes, fds, &mut self.host);
                self.bytes = bytes;
                Ok(())
            }
        }
    }

    fn map(&mut self, token: u64, from: ProcId, size: u64) -> Result<(), Disconnect> {
        let made = ArenaMemory::create(usize::try_from(size).unwrap_or(usize::MAX));
        let arena = match made {
            Ok(arena) => arena,
            Err(error) => return self.answer(token, error.raw_os_error().unwrap_or(EMFILE), &[]),
        };
        let memory = std::sync::Arc::clone(&arena.memory);
        let Some(pid) = self.clients.get(&token).map(|client| client.pid) else { return Ok(()) };
        if let Err(Exceeded { errno, .. }) = self.host.budgets.take(pid, 1, memory.len()) {
            return self.answer(token, errno, &[]);
        }
        if !self.core.map(from, arena.size) {
            self.host.budgets.give(pid, 1, memory.len());
            return self.answer(token, EBUSY, &[]);
        }
        self.host.map(from, arena);
        self.answer(token, 0, &[memory.descriptor()])
    }

    fn tell_state(&mut self, token: u64, which: u32) -> Result<(), Disconnect> {
        let Some(which) = state_file(which) else { return self.answer(token, EINVAL, &[]) };
        let text = self.core.state(which, &mut self.host);
        match SealedMemory::create(text.len().max(1)) {
            Ok(memory) => {
                memory.copy_in(0, text.as_bytes());
                self.answer(token, 0, &[memory.descriptor()])
            }
            Err(error) => self.answer(token, error.raw_os_error().unwrap_or(EMFILE), &[]),
        }
    }

    /// Sends an answer on the socket.
    fn answer(&self, token: u64, errno: i32, fds: &[BorrowedFd<'_>]) -> Result<(), Disconnect> {
        let Some(client) = self.clients.get(&token) else { return Ok(()) };
        let bytes: [u8; FETCHED] = framing::fetched(errno, fds.len() as u32);
        let sent = match seqpacket::send(client.socket.as_fd(), &bytes, fds, Wait::No) {
            // Too many descriptors in flight (`ETOOMANYREFS`) or no memory: answer with that errno.
            Err(error) if !fds.is_empty() && error.kind() != io::ErrorKind::WouldBlock => {
                let errno = error.raw_os_error().unwrap_or(EMFILE);
                seqpacket::send(client.socket.as_fd(), &framing::fetched(errno, 0), &[], Wait::No)
            }
            other => other,
        };
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(Disconnect::Violation("it does not read what it fetched"))
            }
            // A closed connection is noticed when its socket is read.
            _ => Ok(()),
        }
    }
}

fn send_welcome(client: &ClientSocket, proc: ProcId, shared: &Shared) -> Result<(), Disconnect> {
    let Shared { inbox, outbox, doorbells, .. } = shared;
    let memories = [&**inbox, outbox, &**doorbells];
    let sizes = memories.map(|memory| memory.len() as u64);
    let welcome = Reception::Welcome { proc, pid: client.pid, sizes };
    let fds = memories.map(SealedMemory::descriptor);
    seqpacket::send(client.socket.as_fd(), &welcome.encode(), &fds, Wait::No)
        .map_err(|_| Disconnect::ClientLeft)
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

/// Bytes of the outbox that a transaction uses; `None` if it has no bytes there, or too many.
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
