//! Wakes a peer's thread, with its caller's priority where that is inherited.

use std::sync::Arc;

use super::channel::Channel;
use super::inherit;
use crate::priority;
use crate::rpc::protocol::Sched;
use crate::trace_events::{TaskId, TraceWriter};

/// A sleeping thread of a peer, found under the lock and woken without it.
#[derive(Debug)]
pub(super) struct Wake {
    pub(super) channel: Arc<Channel>,
    /// Slot of the thread's bell.
    pub(super) slot: u32,
    /// For a call: the caller's scheduling and the node's flags.
    pub(super) call: Option<(Sched, u32)>,
}

impl Wake {
    /// Wakes the thread. Where priority is inherited, boosts it to its caller's first (contract SCH-09).
    pub(super) fn carry_out(&self, trace: Option<&TraceWriter>) {
        let Self { channel, slot, call } = self;
        let Some(bell) = channel.bells.slot(*slot) else { return };
        let mode = channel.bells.inherit();
        if let Some((caller, node_flags)) = *call
            && priority::may_boost(mode, || bell.only_polls())
        {
            let thread = priority::Thread { pid: channel.peer_pid, tid: bell.tid() };
            let trace = trace.and_then(TraceWriter::of_details);
            let before = trace.and_then(|_| inherit::of(thread.tid));
            let raised = priority::boost(thread, caller, node_flags, false);
            if let (Some(trace), Some(before), Some(raised)) = (trace, before, raised) {
                trace.priority(TaskId { pid: thread.pid, tid: thread.tid }, before, raised, raised);
            }
        }
        bell.wake();
    }
}
