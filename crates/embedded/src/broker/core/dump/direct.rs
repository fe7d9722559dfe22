//! Lines about calls through call slots, which only their two processes know of.
//! Not here: what a call slot shows (`shm::call_slot::look`), since when a call is under way (`broker::memory`).

use super::super::Core;
use super::super::host::{DirectCall, Host};
use super::Sent;
use crate::rpc::protocol::{DIRECT_CALLS, Link, ProcId};

/// A call through a call slot, ready to be printed.
#[derive(Debug)]
pub(super) struct DirectLine {
    pub(super) from: Link,
    pub(super) to: ProcId,
    /// Slot of the thread that serves it; `None` before one has it.
    pub(super) server: Option<u32>,
    /// Without a buffer, as at its caller.
    pub(super) sent: Sent,
    node: u32,
    size: u64,
}

impl DirectLine {
    /// The call as it is printed at its callee, at this thread, 0 for none.
    pub(super) fn at(&self, tid: u32) -> Sent {
        let to = (self.sent.to.0, tid);
        Sent { to, buffer: Some((self.node, self.size, 0, 0)), ..self.sent }
    }
}

impl Core {
    /// The calls through call slots that are not answered.
    pub(super) fn direct_lines(&self, host: &mut impl Host) -> Vec<DirectLine> {
        let calls = host.direct_calls();
        calls.iter().map(|call| self.direct_line(call, host)).collect()
    }

    fn direct_line(&self, direct: &DirectCall, host: &impl Host) -> DirectLine {
        let DirectCall { channel, caller, callee, ref call, elapsed_ms } = *direct;
        let header = &call.header;
        let from = Link { proc: caller, thread: header.thread };
        let node = self.bound_node(channel, header.binding).and_then(|node| self.nodes.get(&node));
        let sent = Sent {
            id: id(direct),
            ptr: node.map_or(0, |node| node.ptr),
            from: self.names(from, host),
            to: (self.procs.get(&callee).map_or(0, |proc| proc.client.pid), 0),
            code: header.code,
            flags: header.flags,
            elapsed_ms,
            buffer: None,
        };
        let (node, size) = (node.map_or(0, |node| node.debug_id), header.shape.len() as u64);
        DirectLine { from, to: callee, server: call.server, sent, node, size }
    }
}

/// A number that the broker gives to no other call soon, and that differs from that of the next call in the same slot.
fn id(direct: &DirectCall) -> u32 {
    DIRECT_CALLS
        | (direct.channel & 0x3ff) << 20
        | direct.call.call_slot << 16
        | ((direct.call.number / 4) & 0xffff)
}
