//! Broker's core: all functions of the kernel's driver except threads, as one state machine without I/O. Input:
//! requests of processes. Output: items for their inboxes and bytes for their receiving areas.
//!
//! - state of a process: [`proc`], its receiving area [`arena`] and [`buffer`], its handles [`refs`]
//! - [`node`], [`count`]: objects, their counts, notifications of their owners ([`work`])
//! - [`transact`], [`reply`]: life of a transaction, with [`payload_copy`], [`payload_rewrite`], [`translate`] and
//!   [`scatter`] (its payload), [`oneway`] (queues of oneway calls)
//! - [`context`], [`close`]; [`death`] and [`freeze`] with their [`registrations`]
//! - [`call_slots`]: channels, through which plain calls bypass the broker
//! - [`transaction_log`], [`dump`]: state files; [`preassigned_route`]: number and route of a traced transaction
//!
//! Not here: sockets, memory, rings (`broker::serve` and `broker::memory`, behind [`Host`]); threads, their stacks
//! and queues (the library of each process).
//!
//! A client may send any request at any time: no code here panics, loops longer than the client's data and objects
//! demand, or grows beyond fixed limits.

pub mod arena;
mod buffer;
mod call_slots;
mod close;
mod context;
mod count;
mod death;
mod deliver_oneway;
mod dump;
mod freeze;
pub mod host;
mod node;
mod oneway;
mod payload_copy;
mod payload_rewrite;
mod preassigned_route;
mod proc;
mod refs;
mod refusal;
mod registrations;
mod reply;
mod request;
mod scatter;
#[cfg(any(test, feature = "fuzz"))]
#[cfg_attr(not(test), expect(dead_code, reason = "fuzz targets use a part"))]
pub(crate) mod test_broker;
#[cfg(test)]
mod tests;
mod transact;
mod transaction_log;
mod translate;
mod work;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub use host::{Client, DirectCall, Host, ProcSnapshot, ThreadSnapshot};

use crate::rpc::protocol::ProcId;
use arena::Arena;
use call_slots::Channel;
use context::{Context, ContextKey};
use node::{Node, NodeKey};
use proc::Proc;
use transact::Call;

/// Most nodes, unanswered calls each way, and registrations of one process. The limit is far above any real use; it
/// keeps a faulty process from exhausting the broker's memory.
const LIMIT: usize = 1 << 18;

/// Numbers of transactions, nodes and refs in state files and traces (contract TP-13). A trace prints them as signed
/// numbers.
#[derive(Debug, Default)]
struct Ids {
    last: u32,
}

impl Ids {
    /// The next number; never 0.
    fn take(&mut self) -> u32 {
        self.take_many(1)
    }

    /// Reserves `count` numbers and returns the first.
    fn take_many(&mut self, count: u32) -> u32 {
        let first = self.last.checked_add(1).filter(|first| first.saturating_add(count) <= i32::MAX as u32);
        let first = first.unwrap_or(1);
        self.last = first + (count - 1);
        first
    }
}

/// State of one broker.
#[derive(Debug, Default)]
pub struct Core {
    procs: BTreeMap<ProcId, Proc>,
    pids: HashMap<u32, BTreeSet<ProcId>>,
    contexts: BTreeMap<ContextKey, Context>,
    nodes: BTreeMap<NodeKey, Node>,
    /// Unanswered sync calls, by transaction.
    calls: BTreeMap<u32, Call>,
    /// Process and offset of each transaction's buffer.
    buffer_of: HashMap<u32, (ProcId, u64)>,
    channels: BTreeMap<u32, Channel>,
    /// The open channel from one process to another.
    routes: HashMap<(ProcId, ProcId), u32>,
    transaction_log: transaction_log::TransactionLog,
    ids: Ids,
    totals: dump::Totals,
    last_proc: u32,
    last_context: u32,
    last_node: u64,
    last_work: u64,
    last_channel: u32,
    faults: Faults,
}

/// Deliberate faults, for tests that must find them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Nodes of processes that ended stay, although nobody has a handle: a leak.
    pub keeps_dead_nodes: bool,
}

impl Core {
    /// A core without processes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A core without processes and with these faults.
    #[must_use]
    pub fn with_faults(faults: Faults) -> Self {
        Self { faults, ..Self::default() }
    }

    /// Adds a process that opens a context.
    pub fn open(&mut self, client: Client) -> ProcId {
        self.last_proc += 1;
        let id = ProcId(self.last_proc);
        let context = self.enter_context(&client.context);
        self.pids.entry(client.pid).or_default().insert(id);
        self.procs.insert(id, Proc::new(client, context));
        self.totals.procs += 1;
        id
    }

    /// A process asks for a receiving area of so many bytes; `false`: it had one (contract OPN-04).
    pub fn map(&mut self, proc: ProcId, size: usize) -> bool {
        let Some(proc) = self.procs.get_mut(&proc).filter(|proc| proc.client.map_size == 0) else {
            return false;
        };
        proc.acted = true;
        proc.client.map_size = size;
        proc.arena = Arena::new(size);
        true
    }

    /// Whether no process has a context open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.procs.is_empty()
    }

    /// All processes, in the order in which they opened.
    pub fn procs(&self) -> impl Iterator<Item = (ProcId, &Client)> {
        self.procs.iter().map(|(id, proc)| (*id, &proc.client))
    }

    /// A transaction number that no call and no buffer uses.
    fn next_transaction(&mut self) -> u32 {
        loop {
            let id = self.ids.take();
            if self.is_free(id) {
                return id;
            }
        }
    }

    /// Whether no call and no buffer uses this number.
    fn is_free(&self, id: u32) -> bool {
        !self.calls.contains_key(&id) && !self.buffer_of.contains_key(&id)
    }
}
