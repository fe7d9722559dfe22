//! Room: any requests to the broker's rules, any datagrams to its socket: who sends them may be let
//! go, others notice nothing.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use sys::sealed_memory::SealedMemory;
use sys::seqpacket::{self, Wait};

use super::source::Source;
use super::stage::{Pair, Stage};
use crate::embedded::broker::core::{Client, Core, Outside, Shown, ThreadLine};
use crate::embedded::directory;
use crate::embedded::protocol::codec::Message;
use crate::embedded::protocol::{
    Item, Lineage, ProcId, RECORD_SIZE, Request, Sched, StateFile, ThreadKey, Transact, TransactKind,
};
use crate::embedded::wire::{self, Hello, Reception};

const THREAD: ThreadKey = ThreadKey { slot: 0, generation: 1 };
/// Pids that no input guesses.
const HONEST: [u32; 2] = [0x5f3a_9c01, 0x5f3a_9c02];

/// The world of rules without memory: what the honest two are told.
#[derive(Default)]
struct World {
    told: Vec<(ProcId, Item)>,
    now: u64,
    busy: bool,
}

impl Outside for World {
    fn write(&mut self, _: ProcId, _: u64, _: &[u8]) {}
    fn zero(&mut self, _: ProcId, _: u64, _: u64) {}
    fn busy(&self, _: ProcId) -> bool {
        self.busy
    }
    fn settle(&mut self, _: ProcId) -> bool {
        !self.busy
    }
    fn now_ms(&self) -> u64 {
        self.now
    }
    fn threads(&self, _: ProcId) -> Vec<ThreadLine> {
        vec![ThreadLine {
            key: THREAD,
            tid: 1,
            looper: 2,
            need_return: false,
            depth: 0,
            ready: false,
            serving: [0; 6],
        }]
    }
    fn shown(&self, _proc: ProcId) -> Shown {
        Shown::default()
    }
    fn item(&mut self, to: ProcId, item: Item) {
        self.told.push((to, item));
    }
    fn make_channel(&mut self, _: u32, _: u32, _: ProcId, _: ProcId) -> bool {
        !self.busy
    }
    fn wake_all(&mut self, _proc: ProcId) {}
    fn set_gate(&mut self, _: u32, _: u32) {}
    fn drop_channel(&mut self, _: u32) {}
}

/// Two honest clients, two others, and the rules.
struct Rules {
    core: Core,
    world: World,
    server: ProcId,
    client: ProcId,
}

/// Asks the rules whatever an input says, for two clients of the same context as two honest ones.
///
/// # Panics
/// If the honest two cannot talk any more, or anything stays when all are gone.
pub fn rules(input: &[u8]) {
    let mut core = Core::new();
    let mut open = |pid| {
        let context = "binder".to_owned();
        core.open(Client {
            pid,
            euid: 0,
            context,
            map_size: 1 << 16,
            security_context: None,
            lanes: pid % 2 == 1,
        })
    };
    let (server, client) = (open(HONEST[0]), open(HONEST[1]));
    let others = [open(3), open(4), open(5)];
    let mut rules = Rules { core, world: World::default(), server, client };
    for proc in [server, client, others[0], others[1]] {
        rules.ask(proc, Request::Mapped { base: 1 << 32 }, &[]);
    }
    rules.ask(server, Request::BecomeManager { node: Default::default() }, &[]);
    let mut source = Source::new(input);
    while !source.is_empty() {
        let from = others[source.choose(others.len())];
        rules.world.now += u64::from(source.byte());
        rules.world.busy = source.byte() > 200;
        if source.byte() > 252 {
            rules.core.close(from, &mut rules.world);
        }
        let fds =
            (0..source.choose(3)).filter_map(|_| File::open("/dev/null").ok().map(OwnedFd::from)).collect();
        let Some(request) = request(&mut source) else { continue };
        let most = source.choose(200);
        let outbox = source.bytes(most);
        rules.core.request(from, THREAD, 1, request, outbox, fds, &mut rules.world);
        if let Some(Item::Deliver { delivery }) = rules.world.told.last().map(|(_, item)| *item) {
            drop(rules.core.take_fds(from, delivery.transaction));
        }
        rules.talk();
    }
    for proc in [others[0], others[1], others[2], client, server] {
        rules.core.close(proc, &mut rules.world);
    }
    assert!(rules.core.is_empty());
    let state = rules.core.state(StateFile::State, &rules.world);
    assert!(!state.contains("node "), "nobody is there any more: {state}");
}

impl Rules {
    fn ask(&mut self, from: ProcId, request: Request, outbox: &[u8]) {
        self.core.request(from, THREAD, 1, request, outbox, Vec::new(), &mut self.world);
    }

    /// The honest client calls, the honest server answers.
    fn talk(&mut self) {
        let told = std::mem::take(&mut self.world.told);
        for (to, item) in told {
            // Whoever else called the server is not its affair here; its area is.
            if let (true, Item::Deliver { delivery }) = (to == self.server, item) {
                self.ask(self.server, Request::FreeBuffer { offset: delivery.buffer }, &[]);
            }
        }
        self.ask(self.server, Request::Freeze { pid: HONEST[0], step: 0 }, &[]);
        self.ask(self.server, Request::Freeze { pid: HONEST[1], step: 0 }, &[]);
        self.ask(
            self.client,
            Request::Transact { transact: transact(TransactKind::Call { handle: 0 }) },
            &[7; 8],
        );
        let mine = |(to, item): &(ProcId, Item)| match item {
            Item::Deliver { delivery } if *to == self.server && delivery.sender_pid == HONEST[1] => {
                Some(*delivery)
            }
            _ => None,
        };
        let call = self.world.told.iter().find_map(mine).expect("the honest call arrives");
        let kind = TransactKind::Reply { transaction: call.transaction };
        let answer = Transact { frees: Some(call.buffer), ..transact(kind) };
        self.ask(self.server, Request::Transact { transact: answer }, &[8; 8]);
        let reply = self.world.told.iter().find_map(|(to, item)| match item {
            Item::Reply { buffer, .. } if *to == self.client => Some(*buffer),
            _ => None,
        });
        self.ask(self.client, Request::FreeBuffer { offset: reply.expect("the honest reply arrives") }, &[]);
        self.world.told.clear();
    }
}

fn transact(kind: TransactKind) -> Transact {
    Transact {
        kind,
        code: 1,
        flags: 0,
        data_size: 8,
        offsets_size: 0,
        buffers_size: 0,
        gathered: 0,
        fault_object: u32::MAX,
        fault_errno: 0,
        data_fault: 0,
        frees: None,
        sched: Sched::default(),
        lineage: Lineage::EMPTY,
    }
}

/// A request out of choices, half of them transactions that may pass.
fn request(source: &mut Source<'_>) -> Option<Request> {
    let kind = source.byte();
    let mut words = vec![u64::from(kind % 28)];
    if kind >= 128 {
        let handle = source.choose(4) as u32;
        let mut made = transact(TransactKind::Call { handle });
        if kind > 200 {
            made.kind = TransactKind::Reply { transaction: source.word() as u32 };
            made.frees = Some(source.word()).filter(|word| word % 2 == 0);
        }
        made.flags = u32::from(source.byte());
        made.data_size = source.word();
        made.offsets_size = (source.word() % 8) * 8;
        made.buffers_size = source.word();
        made.gathered = source.word();
        return Some(Request::Transact { transact: made });
    }
    words.extend((1..RECORD_SIZE / 8).map(|_| source.word()));
    let record: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    Request::decode(&record).ok()
}

/// A broker with two who talk, while others send it anything.
#[derive(Debug)]
pub struct Datagrams {
    stage: Stage,
    pair: Pair,
}

impl Default for Datagrams {
    fn default() -> Self {
        Self::new()
    }
}

impl Datagrams {
    /// Starts the broker.
    #[must_use]
    pub fn new() -> Self {
        let stage = Stage::new();
        let pair = stage.pair(0);
        Self { stage, pair }
    }

    /// Connects and sends what an input says; then the two talk.
    ///
    /// # Panics
    /// If they cannot.
    pub fn run(&mut self, input: &[u8]) {
        let mut source = Source::new(input);
        let path = directory::socket(self.stage.context.directory());
        let socket = seqpacket::connect(&path).expect("the broker listens");
        let null = File::open("/dev/null").expect("a file");
        let mut memories = Vec::new();
        if source.byte() < 230 {
            memories = join(&socket, &mut source);
        }
        while !source.is_empty() {
            for memory in &memories {
                let bytes = source.bytes(8);
                let at = source.word() as usize % memory.len();
                memory.copy_in(at.min(memory.len() - bytes.len()), bytes);
            }
            let fds: Vec<BorrowedFd<'_>> = (0..source.choose(4)).map(|_| null.as_fd()).collect();
            let message = match (source.byte(), request(&mut source)) {
                (0..220, Some(request)) => wire::frame(THREAD, source.word() as u32, &request).to_vec(),
                (kind, _) => source.bytes(usize::from(kind)).to_vec(),
            };
            // It may be let go at any time, and hears too late if it does not read.
            if seqpacket::send(socket.as_fd(), &message, &fds, Wait::No).is_err() {
                break;
            }
        }
        drop(socket);
        self.pair.ping();
    }
}

/// Says hello as a client does; the memories that it gets.
fn join(socket: &OwnedFd, source: &mut Source<'_>) -> Vec<SealedMemory> {
    let hello = Hello { context: "fuzz0".to_owned(), map_size: source.choose(3) * 4096, lanes: true };
    let (mut bytes, mut fds) = ([0; wire::RECEPTION_MAX], Vec::new());
    let welcomed = seqpacket::send(socket.as_fd(), &hello.encode(), &[], Wait::Forever)
        .and_then(|()| seqpacket::recv(socket.as_fd(), &mut bytes, &mut fds, Wait::Forever))
        .expect("the broker answers a hello");
    let Some(Reception::Welcome { sizes, .. }) = Reception::decode(&bytes[..welcomed.bytes]) else {
        return Vec::new();
    };
    let sizes = sizes.into_iter().filter(|size| *size > 0);
    fds.into_iter().zip(sizes).filter_map(|(fd, size)| SealedMemory::map(fd, size as usize).ok()).collect()
}
