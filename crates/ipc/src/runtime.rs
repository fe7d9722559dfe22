//! The connection-independent side of a process: nodes, proxies, buffers and transactions.
//! Not here: the exchange with the driver (`exchange`), parcels and methods (`binder`, `hwbinder`).
//!
//! These types refer to each other: a node serves transactions, a transaction lends a buffer, a buffer asks
//! the process for the objects in it. [`Runtime`] is the trait that closes that ring; among the modules imports
//! go one way: `thread < received < serve < node < proxy < target`.

pub(crate) mod node;
pub(crate) mod proxy;
pub(crate) mod received;
pub(crate) mod serve;
pub(crate) mod target;
pub(crate) mod thread;

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use abi::{Handle, Payload, TransactionFlags};

use crate::background::Background;
use crate::call::Taken;
use crate::error::TransactError;
use crate::release::Release;
use node::Nodes;
use proxy::Proxies;
use proxy::death::Deaths;
use received::Received;
use thread::ThreadState;

/// The outcome of a transaction.
#[derive(Debug)]
pub enum Outcome<'t> {
    /// Oneway: the driver has accepted it.
    Taken(Taken),
    /// Two-way: the callee's reply.
    Replied {
        /// The reply's flag bits (`TF_STATUS_CODE`: the payload is one status word).
        flags: TransactionFlags,
        /// The reply's payload.
        received: Received<'t>,
    },
}

/// Where a process is, for messages.
#[derive(Debug)]
pub(crate) struct Place {
    /// The context's name.
    pub(crate) context: String,
    /// Options of the `binderperf` program that name it; empty if they are not known.
    pub(crate) options: String,
}

/// The state of a process that does not depend on its connection.
pub(crate) struct Shared {
    pub(crate) place: Place,
    /// Distinguishes the binder processes within one OS process.
    pub(crate) id: u64,
    pub(crate) release: Release,
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) proxies: Proxies,
    pub(crate) deaths: Deaths,
    pub(crate) background: Background,
    /// Bytes of buffers that idle threads keep for their next call.
    pub(crate) kept: AtomicU64,
}

/// A process without the type of its connection, so that parcels, objects and proxies need no type
/// parameter. A call through it is one indirect call; the code behind it is compiled for the connection.
pub(crate) trait Runtime: Send + Sync {
    fn shared(&self) -> &Shared;
    /// Another reference to this process.
    fn hold(&self) -> Arc<dyn Runtime>;
    /// The calling thread's state in this process.
    fn thread(&self) -> Rc<ThreadState>;
    fn call(
        &self,
        target: Handle,
        code: u32,
        flags: TransactionFlags,
        payload: Payload<'_>,
    ) -> Result<Outcome<'_>, TransactError>;
    fn reply(
        &self,
        answered: Received<'_>,
        flags: TransactionFlags,
        payload: Payload<'_>,
    ) -> Result<(), TransactError>;
    fn lent(&self, address: u64, len: u64) -> Option<&[u8]>;
    fn take_fd(&self, address: u64) -> Option<OwnedFd>;
    /// Writes queued commands that must not wait for the thread's next call.
    fn settle(&self, thread: &ThreadState);
    /// Writes all queued commands.
    fn flush(&self, thread: &ThreadState);
    /// Takes the ending thread's leave from the driver (`BC_EXIT_LOOPER`, `BINDER_THREAD_EXIT`).
    fn leave(&self, thread: &ThreadState);
}
