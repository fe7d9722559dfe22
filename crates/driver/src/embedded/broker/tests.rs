//! Room: the broker at real sockets, with rules that a test makes up.
//! Not here: the real rules (`core`), their clients' library (`process`).

mod exhausted;
mod stand_in;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;
use std::time::Duration;

use sys::seqpacket::Wait;

use super::*;
use crate::embedded::channel::ring::Consumer;
use crate::embedded::directory::tests::Folder;
use crate::embedded::line::{Hello, Line, Welcome};
use crate::embedded::protocol::codec::Message;
use crate::embedded::protocol::{Item, RECORD_SIZE, Request, ThreadKey};
use crate::embedded::wire;
use stand_in::StandIn;

const THREAD: ThreadKey = ThreadKey { slot: 3, generation: 1 };

fn hello() -> Hello {
    Hello { context: "binder".into(), map_size: 64 << 10, lanes: true }
}

/// A broker with made-up rules on a thread, and what it told.
struct Broker {
    folder: Folder,
    told: mpsc::Receiver<String>,
    thread: std::thread::JoinHandle<Result<(), String>>,
}

impl Broker {
    fn start(folder: Folder) -> Self {
        let (tell, told) = mpsc::channel();
        let path = folder.0.clone();
        let serve = move || {
            run_with(StandIn::default(), &path, Lifetime::LastClient, |event| {
                tell.send(event.to_string()).expect("heard");
            })
            .map_err(|error| error.to_string())
        };
        let thread = std::thread::spawn(serve);
        let broker = Self { folder, told, thread };
        assert!(broker.hears().starts_with("listening at"));
        broker
    }

    fn hears(&self) -> String {
        self.told.recv_timeout(Duration::from_secs(20)).expect("an event")
    }

    /// Waits for its end, which comes when the last client is gone.
    fn ends(self) -> Folder {
        self.thread.join().expect("no panic").expect("served to the end");
        self.folder
    }
}

/// A client with its end of the inbox.
struct Tester {
    line: Line,
    welcome: Welcome,
    inbox: Consumer<sys::sealed_memory::SealedMemory>,
}

impl Tester {
    fn open(folder: &Folder) -> Self {
        let (line, mut welcome) = Line::open(&folder.0, hello()).expect("joined");
        let fd = welcome.inbox.descriptor().try_clone_to_owned().expect("dup");
        let again = sys::sealed_memory::SealedMemory::map(fd, welcome.inbox.len()).expect("mapped");
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

    /// The words of the next item, which is an answer.
    fn answer(&mut self) -> (u32, [u64; 4]) {
        match self.item() {
            Item::Answer { thread, seq: 7, words, transaction, .. } if thread == THREAD => {
                (transaction, words)
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_transaction_goes_out_and_its_answer_comes_back() {
    let broker = Broker::start(Folder::new());
    let mut client = Tester::open(&broker.folder);
    let arena = client.welcome.arena.as_ref().expect("asked for one");
    assert_eq!(arena.len(), 64 << 10);
    client.welcome.outbox.copy_in(0, b"payload");
    let exe = File::open("/proc/self/exe").expect("own executable");
    let request = stand_in::transact(7, 0);
    client.line.send(THREAD, 7, &request, &[exe.as_fd(), exe.as_fd()]).expect("sent");
    let (transaction, words) = client.answer();
    assert_eq!(words, [8, 2, 0, 0], "bytes rounded up, descriptors, no fault");
    let mut got = [0; 7];
    client.welcome.arena.as_ref().expect("there").copy_out(0, &mut got);
    assert_eq!(&got, b"payload");
    let (errno, fds) = client.line.fetch(THREAD, &Request::TakeFds { transaction }).expect("alive");
    assert_eq!((errno, fds.len()), (0, 2));
    assert_eq!(client.line.fetch(THREAD, &Request::TakeFds { transaction }).expect("alive").1.len(), 0);
    drop(client);
    let folder = broker.ends();
    assert!(!directory::socket(&folder.0).exists());
}

#[test]
fn sizes_that_no_outbox_holds_bring_no_bytes() {
    let broker = Broker::start(Folder::new());
    let mut client = Tester::open(&broker.folder);
    for (size, gathered) in [(u64::MAX, 0), (u64::MAX - 7, 8), (5 << 20, 0), (0, u64::MAX)] {
        client.send(stand_in::transact(size, gathered));
        assert_eq!(client.answer().1[0], 0, "{size} and {gathered}");
    }
}

#[test]
fn state_and_channels_are_fetched_on_the_socket() {
    let broker = Broker::start(Folder::new());
    let (one, mut two) = (Tester::open(&broker.folder), Tester::open(&broker.folder));
    let (errno, mut fds) = one.line.fetch(THREAD, &Request::State { which: 1 }).expect("alive");
    let mut text = String::new();
    File::from(fds.remove(0)).read_to_string(&mut text).expect("a text");
    assert_eq!((errno, text.as_str()), (0, "Stats of 2"));
    assert_ne!(one.line.fetch(THREAD, &Request::State { which: 99 }).expect("alive").0, 0);
    two.send(stand_in::CONNECT_ALL);
    two.answer();
    for (side, peer) in [(&one, &two), (&two, &one)] {
        let (errno, fds) = side.line.fetch(THREAD, &Request::TakeChannel { channel: 1 }).expect("alive");
        let [lanes, bells]: [OwnedFd; 2] = fds.try_into().expect("two");
        assert_eq!(errno, 0);
        assert!(sys::sealed_memory::SealedMemory::map(lanes, crate::embedded::channel::lane::SIZE).is_ok());
        let len = peer.welcome.doorbells.len();
        let bells = sys::sealed_memory::SealedMemory::map(bells, len).expect("doorbells");
        peer.welcome.doorbells.copy_in(len - 8, &[7; 8]);
        let mut got = [0; 8];
        bells.copy_out(len - 8, &mut got);
        assert_eq!(got, [7; 8], "the peer's, not its own");
        peer.welcome.doorbells.copy_in(len - 8, &[0; 8]);
    }
    let stranger = Tester::open(&broker.folder);
    let (errno, fds) = stranger.line.fetch(THREAD, &Request::TakeChannel { channel: 1 }).expect("alive");
    assert!(errno != 0 && fds.is_empty(), "not its channel");
}

#[test]
fn an_inbox_that_overflows_loses_nothing_and_keeps_order() {
    let broker = Broker::start(Folder::new());
    let mut client = Tester::open(&broker.folder);
    client.send(Request::FreeBuffer { offset: 1000 });
    client.send(Request::FreeBuffer { offset: 3 });
    for work in (0..1000).chain(0..3) {
        assert_eq!(client.item(), Item::Work { work, thread: None, deferred: false });
    }
}

#[test]
fn one_who_never_reads_is_dropped_and_nobody_else() {
    let broker = Broker::start(Folder::new());
    let (silent, mut other) = (Tester::open(&broker.folder), Tester::open(&broker.folder));
    silent.send(Request::FreeBuffer { offset: 100_000 });
    assert!(broker.hears().contains("does not read its inbox"));
    assert!(!silent.line.is_alive());
    assert_eq!(other.item(), Item::PeerGone { peer: silent.welcome.proc });
}

#[test]
fn garbage_ends_its_sender_and_nothing_else() {
    let broker = Broker::start(Folder::new());
    let (bad, mut good) = (Tester::open(&broker.folder), Tester::open(&broker.folder));
    let raw = seqpacket::connect(&directory::socket(&broker.folder.0)).expect("connected");
    seqpacket::send(raw.as_fd(), b"GET / HTTP/1.1", &[], Wait::No).expect("sent");
    assert!(broker.hears().contains("no hello"));
    let raw = seqpacket::connect(&directory::socket(&broker.folder.0)).expect("connected");
    seqpacket::send(raw.as_fd(), &[0; 4096], &[], Wait::No).expect("sent");
    assert!(broker.hears().contains("too long"));
    bad.line.send_raw(&[0xff; wire::FRAME]);
    assert!(broker.hears().contains("no request"));
    assert_eq!(good.item(), Item::PeerGone { peer: bad.welcome.proc });
    let error = bad.line.send(THREAD, 7, &Request::More {}, &[]).expect_err("dropped");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert!(error.to_string().contains("is gone; open again"), "{error}");
    assert_eq!(
        bad.line.fetch(THREAD, &Request::State { which: 0 }).expect_err("dropped").kind(),
        io::ErrorKind::ConnectionReset
    );
    good.send(stand_in::transact(0, 0));
    good.answer();
}

#[test]
fn another_version_hears_which() {
    let broker = Broker::start(Folder::new());
    let raw = seqpacket::connect(&directory::socket(&broker.folder.0)).expect("connected");
    let mut bytes = hello().encode();
    bytes[8] = 99;
    seqpacket::send(raw.as_fd(), &bytes, &[], Wait::No).expect("sent");
    let mut answer = [0; wire::RECEPTION_MAX];
    let got = seqpacket::recv(raw.as_fd(), &mut answer, &mut Vec::new(), Wait::Forever).expect("answered");
    match wire::Reception::decode(&answer[..got.bytes]) {
        Some(wire::Reception::Refused { why, .. }) => assert!(why.contains("program version 99"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_directory_has_one_broker_and_a_dead_ones_socket_is_replaced() {
    let folder = Folder::new();
    // Closing a listener leaves its file behind, as a killed broker does.
    drop(seqpacket::listen(&directory::socket(&folder.0)).expect("listens"));
    let broker = Broker::start(folder);
    let client = Tester::open(&broker.folder);
    let error = run_with(StandIn::default(), &broker.folder.0, Lifetime::LastClient, |_| {})
        .expect_err("one is there");
    assert!(error.to_string().contains("has a broker already"), "{error}");
    drop(client);
    broker.ends();
}

#[test]
fn the_directory_of_an_ended_broker_may_be_gone_or_anothers() {
    let broker = Broker::start(Folder::new());
    let client = Tester::open(&broker.folder);
    std::fs::remove_dir_all(&broker.folder.0).expect("removed");
    directory::ensure(&broker.folder.0).expect("another one");
    let theirs = seqpacket::listen(&directory::socket(&broker.folder.0)).expect("another broker");
    drop(client);
    let folder = broker.ends();
    assert!(
        seqpacket::connect(&directory::socket(&folder.0)).is_ok(),
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
                    let (line, _) = Line::open(&folder.0, hello()).expect("a broker, old or new");
                    assert!(line.is_alive());
                    drop(line);
                    // Around the time for which a broker lingers, so that some of these meet its end.
                    std::thread::sleep(Duration::from_millis(100 + (worker * 31 + round * 17) % 110));
                }
            });
        }
    });
}

#[test]
fn a_private_directory_comes_back_for_a_new_client() {
    let folder = Folder::new();
    let private = Folder(folder.0.join(format!("{}x", directory::PRIVATE)));
    let broker = Broker::start(private);
    drop(Tester::open(&broker.folder));
    let private = broker.ends();
    assert!(!private.0.exists(), "nobody misses it");
    let (line, _) = Line::open(&private.0, hello()).expect("another broker");
    assert!(line.is_alive() && private.0.exists());
}
