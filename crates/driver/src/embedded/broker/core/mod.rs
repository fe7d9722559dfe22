//! Room: the broker's core: everything that the kernel's driver does except threads, as one state
//! machine without I/O. What goes in are requests of processes, what comes out are items for their
//! inboxes and bytes for their areas.
//!
//! - a process's things: [`proc`], its receiving area [`arena`] and [`buffer`], its handles [`refs`]
//! - [`node`], [`count`]: objects, who holds them, what their owners hear of it ([`work`])
//! - [`transact`], [`reply`]: the life of a transaction, with [`carry`] (its bytes), [`image`], [`translate`] and
//!   [`scatter`] (its objects), [`oneway`] (its turn)
//! - [`context`], [`death`], [`freeze`], [`close`]
//! - [`lanes`]: how plain calls come to pass the broker by
//! - [`log`], [`dump`]: what it tells of itself; [`foretell`]: what a sender that traces must know before
//!
//! Not here: sockets, memory, rings (the broker's shell, behind [`Outside`]); threads, their stacks
//! and queues (the library of each process).
//!
//! A client may ask anything at any time: nothing here panics, loops longer than what that client
//! sent or owns, or grows beyond limits for it.

pub mod arena;
mod buffer;
mod carry;
mod close;
mod context;
mod count;
mod death;
mod dump;
mod foretell;
mod freeze;
mod image;
mod lanes;
mod log;
mod node;
mod oneway;
pub mod outside;
mod proc;
mod refs;
mod refusal;
mod reply;
mod request;
mod scatter;
#[cfg(test)]
mod tests;
mod transact;
mod translate;
mod work;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub use outside::{Client, Outside, Shown, ThreadLine};

use crate::embedded::protocol::ProcId;
use context::{Context, ContextKey};
use lanes::Channel;
use node::{Node, NodeKey};
use proc::Proc;
use transact::Call;

/// The numbers that name transactions, nodes and refs to people (contract TP-13). A trace prints them as
/// signed ones.
#[derive(Debug, Default)]
struct Ids {
    last: u32,
}

impl Ids {
    /// The next; 0 names nothing.
    fn take(&mut self) -> u32 {
        self.take_many(1)
    }

    /// The first of the next so many.
    fn take_many(&mut self, count: u32) -> u32 {
        let first = self.last.checked_add(1).filter(|first| first.saturating_add(count) <= i32::MAX as u32);
        let first = first.unwrap_or(1);
        self.last = first + (count - 1);
        first
    }
}

/// Everything that one broker knows.
#[derive(Debug, Default)]
pub struct Core {
    procs: BTreeMap<ProcId, Proc>,
    pids: HashMap<u32, BTreeSet<ProcId>>,
    contexts: BTreeMap<ContextKey, Context>,
    nodes: BTreeMap<NodeKey, Node>,
    /// Sync calls without an answer, by transaction.
    calls: BTreeMap<u32, Call>,
    /// Where the buffer of each transaction lies.
    buffer_of: HashMap<u32, (ProcId, u64)>,
    channels: BTreeMap<u32, Channel>,
    /// The open channel from one process to another.
    routes: HashMap<(ProcId, ProcId), u32>,
    log: log::Log,
    ids: Ids,
    totals: dump::Totals,
    last_proc: u32,
    last_context: u32,
    last_node: u64,
    last_work: u64,
    last_channel: u32,
}

impl Core {
    /// No processes yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Somebody opens a context.
    pub fn open(&mut self, client: Client) -> ProcId {
        self.last_proc += 1;
        let id = ProcId(self.last_proc);
        let context = self.enter_context(&client.context);
        self.pids.entry(client.pid).or_default().insert(id);
        self.procs.insert(id, Proc::new(client, context));
        self.totals.procs += 1;
        id
    }

    /// Whether nobody has anything open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.procs.is_empty()
    }

    /// All processes, in the order of their opening.
    pub fn procs(&self) -> impl Iterator<Item = (ProcId, &Client)> {
        self.procs.iter().map(|(id, proc)| (*id, &proc.client))
    }

    /// A number for a transaction: none that a call or a buffer still has.
    fn next_transaction(&mut self) -> u32 {
        loop {
            let id = self.ids.take();
            if self.is_free(id) {
                return id;
            }
        }
    }

    /// Whether no call and no buffer has this number.
    fn is_free(&self, id: u32) -> bool {
        !self.calls.contains_key(&id) && !self.buffer_of.contains_key(&id)
    }
}
