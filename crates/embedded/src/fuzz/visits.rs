//! A connection that one peer after another calls, on a broker without a thread: each input gets a new peer, whose
//! opening takes a fraction of the time that a new pair does ([`Pair::of`]).
//! Not here: what a peer does (`channel`).

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use abi::codes::object;
use abi::layout::FlatBinderObject;
use abi::{Handle, Payload, TransactionFlags};
use sys::errno::EMFILE;
use sys::interrupt::ThreadId;
use zerocopy::IntoBytes;

use super::stage::{Pair, Stage, drain, kept_node, write};
use crate::program::Program;
use crate::{EmbeddedConnection, EmbeddedContext, Settings};
use driver::connection::{Connection, Context, OpenOptions};

/// Number of peers after which the visited connection is reopened.
const RENEW: u32 = 64;

const OPTIONS: OpenOptions = OpenOptions { map_size: 1 << 18, nonblocking: true };

/// A broker that the calling thread serves ([`Stage::inline`]), and a connection that is visited.
#[derive(Debug)]
pub(super) struct Visits {
    pair: Option<Pair>,
    count: u32,
    context: EmbeddedContext,
    _stage: Stage,
}

impl Visits {
    /// Starts the broker.
    pub(super) fn new() -> Self {
        let stage = Stage::inline();
        let context = EmbeddedContext::at(stage.context.directory(), "visited", Settings::default());
        Self { pair: None, count: 0, context, _stage: stage }
    }

    /// The connection without any work, and a new peer. They have strong counts on each other's nodes.
    pub(super) fn next(&mut self) -> &Pair {
        let same = !self.count.is_multiple_of(RENEW);
        self.count += 1;
        let victim = self.pair.take().filter(|_| same).map(part);
        let victim = victim.unwrap_or_else(|| host(&self.context));
        self.pair.insert(visit(&self.context, victim))
    }
}

/// Opens the context as its manager.
fn host(context: &EmbeddedContext) -> EmbeddedConnection {
    let victim = context.open(OPTIONS).expect("the broker lets in");
    victim.become_context_manager(None).expect("the only one");
    victim
}

/// Opens the context as the manager's peer. It counts as another process, because no process may call the manager of
/// the same one (contract CTX-05).
fn visit(context: &EmbeddedContext, victim: EmbeddedConnection) -> Pair {
    let program = Arc::new(Elsewhere { pid: std::os::unix::process::parent_id() });
    let other = EmbeddedConnection::open_for(context, OPTIONS, program, ThreadId::current().number())
        .expect("the broker lets in");
    let to_victim = Handle(0);
    let node = FlatBinderObject { kind: object::BINDER, binder: 1, cookie: 1, ..Default::default() };
    let payload = Payload { data: node.as_bytes(), offsets: &[0], ..Payload::default() };
    write(&other, |c| {
        c.acquire(to_victim);
        c.transaction(to_victim, 1, TransactionFlags::ONEWAY, payload);
    });
    let to_other = kept_node(&victim, &other);
    Pair { victim, other, to_other, to_victim }
}

/// Closes the peer and takes the connection's thread out of everything that the peer left behind.
fn part(pair: Pair) -> EmbeddedConnection {
    let Pair { victim, other, to_other, .. } = pair;
    drop(other);
    victim.thread_exit().expect("exits");
    // The broker has told of the peer's end when it answers.
    victim.node_debug_info(0).expect("answered");
    drain(&victim);
    write(&victim, |c| c.release(to_other));
    victim
}

/// The calling thread, as a program of another process.
#[derive(Debug)]
struct Elsewhere {
    pid: u32,
}

impl Program for Elsewhere {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn read(&self, _thread: i32, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        sys::own_memory::read(address, bytes)
    }

    fn descriptor(&self, _thread: i32, number: i32) -> io::Result<OwnedFd> {
        sys::descriptor::duplicate(number)
    }

    fn install(&self, _thread: i32, _descriptor: BorrowedFd<'_>) -> io::Result<i32> {
        Err(io::Error::from_raw_os_error(EMFILE))
    }

    fn close(&self, _thread: i32, _number: i32) {}

    fn written(&self, _thread: i32, _consumed: usize) {}

    fn waits(&self, _thread: i32) -> bool {
        true
    }
}
