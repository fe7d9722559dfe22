//! The broker on real sockets.
//! Not here: the driver's rules (`core`), the client library (`client`).

mod exhausted;
mod limits;
mod siege;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;
use std::time::Duration;

use abi::codes::{bc, br, flat};
use abi::layout::FlatBinderObject;
use sys::errno::EBUSY;
use sys::sealed_memory::SealedMemory;
use sys::seqpacket::Wait;

use super::core::test_broker::Message as Transaction;
use super::*;
use crate::broker_connection::{BrokerConnection, Hello, Welcome};
use crate::directory::tests::{Folder, PATIENCE};
use crate::rpc::codec::Message;
use crate::rpc::framing;
use crate::rpc::protocol::{Delivery, Item, RECORD_SIZE, Request, ThreadKey};
use crate::shm::lease;
use crate::shm::ring::Consumer;

/// Bytes of the receiving area.
const MAP_SIZE: usize = 64 << 10;
const THREAD: ThreadKey = ThreadKey { slot: 3, generation: 1 };

fn hello() -> Hello {
    Hello { context: "binder".into(), call_slots: true, pid: 0 }
}

/// A broker on a thread, and its events.
struct Broker {
    folder: Folder,
    told: mpsc::Receiver<String>,
    thread: std::thread::JoinHandle<Result<(), String>>,
}

impl Broker {
    fn start(folder: Folder) -> Self {
        Self::start_with(folder, HELLO_PATIENCE)
    }

    fn start_with(folder: Folder, hello_patience: Duration) -> Self {
        let (tell, told) = mpsc::channel();
        let path = folder.path.clone();
        let on_thread = move || {
            serve(&path, Lifetime::LastClient, (hello_patience, Faults::default()), |event| {
                // A test that has ended does not listen any more.
                let _ = tell.send(event.to_string());
            })
            .map_err(|error| error.to_string())
        };
        let thread = std::thread::spawn(on_thread);
        let broker = Self { folder, told, thread };
        assert!(broker.hears().starts_with("listening at"));
        broker
    }

    fn hears(&self) -> String {
        sys::patience::receive(&self.told, Duration::from_secs(20)).expect("an event")
    }

    /// Waits for the broker's end after its last client has left.
    fn ends(self) -> Folder {
        self.thread.join().expect("no panic").expect("served to the end");
        self.folder
    }
}

/// A client with its end of the inbox.
struct Tester {
    line: BrokerConnection,
    welcome: Welcome,
    inbox: Consumer<SealedMemory>,
}

impl Tester {
    fn open(folder: &Folder) -> Self {
        let (line, mut welcome) = BrokerConnection::open(&folder.path, hello()).expect("joined");
        let fd = welcome.inbox.descriptor().try_clone_to_owned().expect("dup");
        let again = SealedMemory::map(fd, welcome.inbox.len()).expect("mapped");
        let inbox = Consumer::new(std::mem::replace(&mut welcome.inbox, again)).expect("large enough");
        Self { line, welcome, inbox }
    }

    fn send(&self, request: Request) {
        self.line.send(THREAD, 7, &request, &[]).expect("sent");
    }

    fn item(&mut self) -> Item {
        let mut record = [0; RECORD_SIZE];
        loop {
            if self.inbox.pop(&mut record).expect("a sane inbox") {
                return Item::decode(&record).expect("an item");
            }
            if self.inbox.take_starved() {
                self.send(Request::More {});
            }
            assert!(self.line.is_alive(), "the broker is gone");
            std::thread::yield_now();
        }
    }

    /// The first wanted item.
    fn find<T>(&mut self, pick: impl Fn(Item) -> Option<T>) -> T {
        loop {
            if let Some(found) = pick(self.item()) {
                return found;
            }
        }
    }

    /// Sends a request; returns its answer: errno, `BR_*` word and errno of a refused transaction.
    fn ask(&mut self, request: Request) -> (i32, u32, i32) {
        self.send(request);
        self.answer()
    }

    fn answer(&mut self) -> (i32, u32, i32) {
        self.find(|item| match item {
            Item::Answer { errno, outcome, error, .. } => Some((errno, outcome, -error.param)),
            _ => None,
        })
    }

    fn become_manager(&mut self) -> i32 {
        let node = FlatBinderObject { flags: flat::ACCEPTS_FDS, ..Default::default() };
        self.ask(Request::BecomeManager { node }).0
    }

    /// Makes the receiving area.
    fn map(&self) -> SealedMemory {
        let map = Request::Map { size: MAP_SIZE as u64 };
        let (errno, descriptors) = self.line.fetch(THREAD, &map).expect("alive");
        assert_eq!(errno, 0);
        assert_eq!(self.line.fetch(THREAD, &map).expect("alive").0, EBUSY, "once (contract OPN-04)");
        self.send(Request::Mapped { base: 1 << 32 });
        let descriptor = descriptors.into_iter().next().expect("its receiving area");
        SealedMemory::map(descriptor, lease::arena_memory(MAP_SIZE)).expect("with its lease")
    }

    /// Sends a transaction with open files.
    fn transact(&mut self, transaction: &Transaction, files: &[&File]) -> (i32, u32, i32) {
        self.welcome.outbox.copy_in(0, &transaction.bytes());
        let request = Request::Transact { transact: transaction.transact() };
        let descriptors: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        self.line.send(THREAD, 7, &request, &descriptors).expect("sent");
        self.answer()
    }

    fn delivered(&mut self) -> Delivery {
        self.find(|item| match item {
            Item::Deliver { delivery } => Some(delivery),
            _ => None,
        })
    }

    fn channel(&mut self) -> u32 {
        self.find(|item| match item {
            Item::Channel { channel, .. } => Some(channel),
            _ => None,
        })
    }
}

/// A server, its receiving area, and a client whose handle 1 it is. A manager cannot be called by handle 0 from its own
/// OS process (contract CTX-05), but by the number that it gets while handle 0 names a dead one (REF-07).
fn acquainted(folder: &Folder) -> (Tester, SealedMemory, Tester) {
    let [mut first, mut server, mut client] = [(); 3].map(|()| Tester::open(folder));
    let acquire = Request::Count { command: bc::ACQUIRE, handle: 0 };
    assert_eq!((first.become_manager(), client.ask(acquire).0), (0, 0));
    drop(first);
    while server.become_manager() != 0 {
        std::thread::yield_now();
    }
    assert_eq!(client.ask(acquire).0, 0);
    client.map();
    let arena = server.map();
    (server, arena, client)
}

#[test]
fn a_transaction_arrives_with_its_descriptors() {
    let broker = Broker::start(Folder::new());
    let (mut server, arena, mut client) = acquainted(&broker.folder);
    let exe = File::open("/proc/self/exe").expect("own executable");
    let two = Transaction::call(1).data(b"payload!").fd().fd();
    assert_eq!(client.transact(&two, &[&exe, &exe]).1, br::TRANSACTION_COMPLETE);
    let Delivery { transaction, buffer, fds, .. } = server.delivered();
    let mut got = [0; 8];
    arena.copy_out(buffer as usize, &mut got);
    assert_eq!((&got, fds), (b"payload!", 2));
    for left in [2, 0] {
        let (errno, fds) = server.line.fetch(THREAD, &Request::TakeFds { transaction }).expect("alive");
        assert_eq!((errno, fds.len()), (0, left));
    }
    drop((client, server));
    let folder = broker.ends();
    assert!(!directory::socket(&folder.path).exists());
}

#[test]
fn sizes_that_no_outbox_holds_are_refused() {
    let broker = Broker::start(Folder::new());
    let (_server, _, mut client) = acquainted(&broker.folder);
    for (data_size, gathered) in [(u64::MAX, 0), (u64::MAX - 7, 8), (5 << 20, 0), (8, u64::MAX)] {
        let mut transact = Transaction::call(1).transact();
        (transact.data_size, transact.gathered) = (data_size, gathered);
        let said = client.ask(Request::Transact { transact });
        assert_eq!((said.0, said.1), (0, br::FAILED_REPLY), "{data_size} and {gathered}");
    }
}

#[test]
fn state_and_channels_are_fetched_on_the_socket() {
    let broker = Broker::start(Folder::new());
    let (mut server, _, mut client) = acquainted(&broker.folder);
    let (errno, mut fds) = client.line.fetch(THREAD, &Request::State { which: 1 }).expect("alive");
    let mut text = String::new();
    File::from(fds.remove(0)).read_to_string(&mut text).expect("a text");
    assert!(errno == 0 && text.contains("proc: active 2 total 3"), "{text}");
    assert_ne!(client.line.fetch(THREAD, &Request::State { which: 99 }).expect("alive").0, 0);
    assert_eq!(client.transact(&Transaction::call(1), &[]).1, br::TRANSACTION_COMPLETE);
    let channel = server.channel();
    assert_eq!(client.channel(), channel);
    for (side, peer) in [(&server, &client), (&client, &server)] {
        let (errno, fds) = side.line.fetch(THREAD, &Request::TakeChannel { channel }).expect("alive");
        let [call_slots, bells]: [OwnedFd; 2] = fds.try_into().expect("two");
        assert_eq!(errno, 0);
        assert!(SealedMemory::map(call_slots, crate::shm::call_slot::SIZE).is_ok());
        let len = peer.welcome.doorbells.len();
        let bells = SealedMemory::map(bells, len).expect("doorbells");
        peer.welcome.doorbells.copy_in(len - 8, &[7; 8]);
        let mut got = [0; 8];
        bells.copy_out(len - 8, &mut got);
        assert_eq!(got, [7; 8], "the peer's, not its own");
        peer.welcome.doorbells.copy_in(len - 8, &[0; 8]);
    }
    let stranger = Tester::open(&broker.folder);
    let (errno, fds) = stranger.line.fetch(THREAD, &Request::TakeChannel { channel }).expect("alive");
    assert!(errno != 0 && fds.is_empty(), "not its channel");
}

#[test]
fn an_inbox_that_overflows_loses_nothing_and_keeps_order() {
    let broker = Broker::start(Folder::new());
    let mut client = Tester::open(&broker.folder);
    for number in 0..1000 {
        client.line.send(THREAD, number, &Request::FreeBuffer { offset: 0 }, &[]).expect("sent");
    }
    for number in 0..1000 {
        assert!(matches!(client.item(), Item::Answer { seq, .. } if seq == number), "{number}");
    }
}

#[test]
fn one_who_never_reads_is_dropped_and_nobody_else() {
    let broker = Broker::start(Folder::new());
    let (silent, mut other) = (Tester::open(&broker.folder), Tester::open(&broker.folder));
    while silent.line.send(THREAD, 7, &Request::FreeBuffer { offset: 0 }, &[]).is_ok() {}
    assert!(broker.hears().contains("does not read its inbox"));
    assert!(!silent.line.is_alive());
    assert_eq!(other.ask(Request::FreeBuffer { offset: 0 }).0, 0);
}

#[test]
fn garbage_ends_its_sender_and_nothing_else() {
    let broker = Broker::start(Folder::new());
    let (bad, mut good) = (Tester::open(&broker.folder), Tester::open(&broker.folder));
    let raw = seqpacket::connect(&directory::socket(&broker.folder.path), PATIENCE).expect("connected");
    seqpacket::send(raw.as_fd(), b"GET / HTTP/1.1", &[], Wait::No).expect("sent");
    assert!(broker.hears().contains("no hello"));
    let raw = seqpacket::connect(&directory::socket(&broker.folder.path), PATIENCE).expect("connected");
    seqpacket::send(raw.as_fd(), &[0; 4096], &[], Wait::No).expect("sent");
    assert!(broker.hears().contains("too long"));
    bad.line.send_raw(&[0xff; framing::FRAME]);
    assert!(broker.hears().contains("no request"));
    let error = bad.line.send(THREAD, 7, &Request::More {}, &[]).expect_err("dropped");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert!(error.to_string().contains("is gone; open again"), "{error}");
    assert_eq!(
        bad.line.fetch(THREAD, &Request::State { which: 0 }).expect_err("dropped").kind(),
        io::ErrorKind::ConnectionReset
    );
    assert_eq!(good.ask(Request::FreeBuffer { offset: 0 }).0, 0);
}

#[test]
fn another_version_hears_which() {
    let broker = Broker::start(Folder::new());
    let raw = seqpacket::connect(&directory::socket(&broker.folder.path), PATIENCE).expect("connected");
    let mut bytes = hello().encode();
    bytes[8] = 99;
    seqpacket::send(raw.as_fd(), &bytes, &[], Wait::No).expect("sent");
    let mut answer = [0; framing::RECEPTION_MAX];
    let got = seqpacket::recv(raw.as_fd(), &mut answer, &mut Vec::new(), Wait::Forever).expect("answered");
    match framing::Reception::decode(&answer[..got.bytes]) {
        Some(framing::Reception::Refused { why, .. }) => assert!(why.contains("program version 99"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_directory_has_one_broker_and_a_dead_ones_socket_is_replaced() {
    let folder = Folder::new();
    // Closing a listener leaves its file behind, as a killed broker does.
    drop(seqpacket::listen(&directory::socket(&folder.path)).expect("listens"));
    let broker = Broker::start(folder);
    let client = Tester::open(&broker.folder);
    let error = run(&broker.folder.path, Lifetime::LastClient, |_| {}).expect_err("one is there");
    assert!(error.to_string().contains("has a broker already"), "{error}");
    drop(client);
    broker.ends();
}

#[test]
fn the_directory_of_an_ended_broker_may_be_gone_or_anothers() {
    // A subfolder, because a private folder without its lock is removed when another test makes one.
    let outer = Folder::new();
    let broker = Broker::start(Folder::at(outer.path.join("inner")));
    let client = Tester::open(&broker.folder);
    std::fs::remove_dir_all(&broker.folder.path).expect("removed");
    directory::ensure(&broker.folder.path).expect("another one");
    let theirs = seqpacket::listen(&directory::socket(&broker.folder.path)).expect("another broker");
    drop(client);
    let folder = broker.ends();
    assert!(
        seqpacket::connect(&directory::socket(&folder.path), PATIENCE).is_ok(),
        "the other one's socket is left alone"
    );
    drop(theirs);
}

#[test]
fn opening_always_finds_a_broker_while_others_end() {
    let folder = Folder::new();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let folder = &folder;
            scope.spawn(move || {
                for round in 0..12 {
                    let (line, _) =
                        BrokerConnection::open(&folder.path, hello()).expect("a broker, old or new");
                    assert!(line.is_alive());
                    drop(line);
                    // Around the broker's linger time, so that some attempts meet its end.
                    std::thread::sleep(Duration::from_millis(100 + (worker * 31 + round * 17) % 110));
                }
            });
        }
    });
}

#[test]
fn a_private_directory_comes_back_for_a_new_client() {
    let folder = Folder::new();
    let private = Folder::at(folder.path.join(format!("{}x", directory::PRIVATE)));
    let broker = Broker::start(private);
    drop(Tester::open(&broker.folder));
    let private = broker.ends();
    assert!(!private.path.exists(), "nobody misses it");
    let (line, _) = BrokerConnection::open(&private.path, hello()).expect("another broker");
    assert!(line.is_alive() && private.path.exists());
}
