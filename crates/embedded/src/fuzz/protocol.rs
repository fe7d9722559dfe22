//! Fuzz entries: any requests to the broker's rules, any datagrams to its socket. The sender may be disconnected;
//! other clients must not be affected.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use sys::sealed_memory::SealedMemory;
use sys::seqpacket::{self, Wait};

use super::requests;
use super::source::Source;
use super::stage::{Pair, Stage};
use crate::broker::core::test_broker::{T1, TestBroker};
use crate::broker::inline;
use crate::directory;
use crate::rpc::framing::{self, Hello, Reception};
use crate::rpc::protocol::{Item, ProcId, Request, StateFile, ThreadKey};

/// Sends the requests of an input to the core, from clients in the context of two honest ones.
///
/// # Panics
/// If a request has not one answer, the honest clients cannot call each other any more, or state remains after all
/// clients ended.
pub fn rules(input: &[u8]) {
    let (mut broker, server, client) = TestBroker::pair(0x1ff);
    let mut others = [broker.open(), broker.open(), broker.open_as(|other| other.call_slots = true)];
    let mut source = Source::new(input);
    // Also without requests.
    talk(&mut broker, server, client);
    while !source.is_empty() {
        let from = &mut others[source.choose(3)];
        broker.host.now_ms += u64::from(source.byte());
        let busy = source.choose(5) == 0;
        broker.host.busy = if busy { [*from, server].into() } else { Default::default() };
        broker.host.no_channels = source.choose(5) == 0;
        if source.byte() > 250 {
            broker.core.close(*from, &mut broker.host);
            let call_slots = source.flip();
            *from = broker.open_as(|other| other.call_slots = call_slots);
        }
        act(&mut broker, *from, &mut source);
        talk(&mut broker, server, client);
    }
    for which in [StateFile::State, StateFile::Stats, StateFile::Transactions, StateFile::TransactionLog] {
        assert!(!broker.core.state(which, &mut broker.host).is_empty());
    }
}

/// A request of a client, or the work in its inbox.
fn act(broker: &mut TestBroker, from: ProcId, source: &mut Source<'_>) {
    let fds = |source: &mut Source<'_>| -> Vec<OwnedFd> {
        (0..source.choose(3)).filter_map(|_| File::open("/dev/null").ok().map(OwnedFd::from)).collect()
    };
    match source.choose(4) {
        0 | 1 => {
            let message = requests::transaction(source);
            broker.send_fds(from, &message, fds(source));
        }
        2 => match broker.next(from) {
            // A correct process takes the work in its inbox.
            Some(Item::Work { work, .. }) => drop(broker.take(from, work)),
            Some(Item::Deliver { delivery }) => drop(broker.core.take_fds(from, delivery.transaction)),
            _ => {}
        },
        _ => {
            let Some(request) = requests::any(source) else { return };
            let (outbox, fds) = (source.bytes(200), fds(source));
            let thread = ThreadKey { slot: source.choose(3) as u32, generation: 1 };
            match request {
                Request::Mapped { .. }
                | Request::MaxThreads { .. }
                | Request::DropChannel { .. }
                | Request::More {} => broker.tell(from, request),
                _ => drop(broker.ask_with(from, thread, request, outbox, fds)),
            }
        }
    }
}

/// The honest client calls, the honest server answers.
fn talk(broker: &mut TestBroker, server: ProcId, client: ProcId) {
    for proc in [server, client] {
        let pid = broker.pid(proc);
        broker.ask(server, Request::Freeze { pid, step: 0 });
    }
    // Calls of other clients are not checked here; their use of the server's area is.
    while let Some(item) = broker.next(server) {
        if let Item::Deliver { delivery } = item {
            broker.free(server, delivery.buffer);
        }
    }
    let call = broker.call(client, 0, 0, &[7; 8]);
    let delivered = |item| matches!(item, Item::Deliver { delivery } if delivery.transaction == call.id);
    assert!(std::iter::from_fn(|| broker.next(server)).any(delivered), "the honest call arrives");
    broker.reply(server, call.id, &[8; 8]);
    let replies = std::iter::from_fn(|| broker.next(client)).find_map(|item| match item {
        Item::Reply { buffer, .. } => Some(buffer),
        _ => None,
    });
    broker.free(client, replies.expect("the honest reply arrives"));
}

/// A broker with two honest clients, while others send it any datagrams; all on the thread that made this value.
#[derive(Debug)]
pub struct Datagrams {
    stage: Stage,
    pair: Pair,
}

/// Starts the broker.
impl Default for Datagrams {
    fn default() -> Self {
        let stage = Stage::inline();
        let pair = stage.pair(0);
        Self { stage, pair }
    }
}

impl Datagrams {
    /// Connects and sends the datagrams of an input; then the honest clients call each other.
    ///
    /// # Panics
    /// If the honest clients cannot call each other.
    pub fn run(&mut self, input: &[u8]) {
        let mut source = Source::new(input);
        let path = directory::socket(self.stage.context.directory());
        let socket =
            seqpacket::connect(&path, std::time::Duration::from_secs(10)).expect("the broker listens");
        let null = File::open("/dev/null").expect("a file");
        let mut memories = Vec::new();
        if source.byte() < 230 {
            memories = join(&socket);
        }
        while !source.is_empty() {
            for memory in &memories {
                let bytes = source.bytes(8);
                let at = source.word() as usize % memory.len();
                memory.copy_in(at.min(memory.len() - bytes.len()), bytes);
            }
            let fds: Vec<BorrowedFd<'_>> = (0..source.choose(4)).map(|_| null.as_fd()).collect();
            let message = match (source.byte(), requests::any(&mut source)) {
                (0..220, Some(request)) => framing::frame(T1, source.word() as u32, &request).to_vec(),
                (kind, _) => source.bytes(usize::from(kind)).to_vec(),
            };
            // The client may be disconnected at any time, and notices it late if it does not read.
            let is_full = match seqpacket::send(socket.as_fd(), &message, &fds, Wait::No) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
                Err(_) => break,
                Ok(()) => false,
            };
            // One by one, or several at once.
            if is_full || source.flip() {
                inline::serve();
            }
        }
        drop(socket);
        self.pair.ping();
    }
}

/// Joins like a client; returns the memories that it receives.
fn join(socket: &OwnedFd) -> Vec<SealedMemory> {
    let hello = Hello { context: "fuzz0".to_owned(), call_slots: true, pid: 0 };
    let (mut bytes, mut fds) = ([0; framing::RECEPTION_MAX], Vec::new());
    let welcomed = seqpacket::send(socket.as_fd(), &hello.encode(), &[], Wait::Forever)
        .inspect(|()| inline::serve())
        .and_then(|()| seqpacket::recv(socket.as_fd(), &mut bytes, &mut fds, Wait::Forever))
        .expect("the broker answers a hello");
    let Some(Reception::Welcome { sizes, .. }) = Reception::decode(&bytes[..welcomed.bytes]) else {
        return Vec::new();
    };
    let sizes = sizes.into_iter().filter(|size| *size > 0);
    fds.into_iter().zip(sizes).filter_map(|(fd, size)| SealedMemory::map(fd, size as usize).ok()).collect()
}
