//! Log of the last transactions and of the last failed ones, for the state files.
//! Not here: their text (`dump`).
//! Facts: contract DBG-04.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Core;
use super::refusal::Refusal;
use crate::rpc::protocol::{Link, ProcId, ThreadKey};

/// Entries in each log.
const KEPT: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Call,
    Oneway,
    Reply,
}

impl Kind {
    pub(super) const fn call(oneway: bool) -> Self {
        if oneway { Self::Oneway } else { Self::Call }
    }
}

#[derive(Clone, Debug)]
pub(super) struct LogEntry {
    pub(super) id: u32,
    pub(super) kind: Kind,
    pub(super) from: Link,
    pub(super) from_pid: u32,
    pub(super) to: Option<ProcId>,
    pub(super) to_thread: Option<ThreadKey>,
    pub(super) to_pid: u32,
    pub(super) context: Arc<str>,
    pub(super) node: u32,
    pub(super) handle: u32,
    pub(super) data_size: u64,
    pub(super) offsets_size: u64,
    pub(super) refusal: Option<Refusal>,
}

#[derive(Debug, Default)]
pub(super) struct TransactionLog {
    pub(super) all: VecDeque<LogEntry>,
    pub(super) failed: VecDeque<LogEntry>,
}

impl TransactionLog {
    pub(super) fn add(&mut self, entry: LogEntry) {
        push(&mut self.all, entry);
    }

    /// Marks the transaction that was added last as refused.
    pub(super) fn fail(&mut self, id: u32, refusal: Refusal) {
        if let Some(entry) = self.all.back_mut().filter(|entry| entry.id == id) {
            entry.refusal = Some(refusal);
            let copy = entry.clone();
            push(&mut self.failed, copy);
        }
    }
}

fn push(line: &mut VecDeque<LogEntry>, entry: LogEntry) {
    if line.len() == KEPT {
        line.pop_front();
    }
    line.push_back(entry);
}

impl Core {
    /// Adds the receiver to the entry that was logged last.
    pub(super) fn log_receiver(&mut self, id: u32, to: ProcId, thread: Option<ThreadKey>, node: u32) {
        let pid = self.procs.get(&to).map_or(0, |proc| proc.client.pid);
        if let Some(entry) = self.transaction_log.all.back_mut().filter(|entry| entry.id == id) {
            (entry.to, entry.to_thread, entry.to_pid, entry.node) = (Some(to), thread, pid, node);
        }
    }
}
