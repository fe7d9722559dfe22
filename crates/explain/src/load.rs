//! Load of each process by the last dumps of the driver's files: buffers, oneway backlog, threads, old calls.
//! Not here: what of it is wrong (`find`).

use std::cmp::Reverse;

use serde::Serialize;

use crate::find::area;
use crate::system::{Call, File, Proc, System, Thread, Way};

/// Load of one process in one context; `None` where the files do not have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Its pid.
    pub pid: i32,
    /// Its name; empty if unknown.
    pub name: String,
    /// Its context.
    pub context: String,
    /// Bytes of the buffers in its area.
    pub buffer_bytes: u64,
    /// Bytes of its area.
    pub area_bytes: Option<u64>,
    /// Oneway calls to it that nobody serves yet.
    pub backlog: u64,
    /// Threads that serve a call.
    pub busy: u64,
    /// Threads that could serve at the same time: the busy, the free, and those that the driver may still ask for. `None` for a
    /// process without a pool.
    pub pool: Option<u64>,
    /// Calls whose answers its threads wait for, the oldest first; without those whose age the driver does not tell.
    pub waiting: Vec<OldCall>,
    /// Calls that it sent since it opened the device.
    pub sent: Option<u64>,
    /// Calls that it received since then.
    pub received: Option<u64>,
    /// Failed calls since it opened the device: answered with `BR_FAILED_REPLY` or `BR_DEAD_REPLY`.
    pub failed: Option<u64>,
    /// Death notices that it has not read or not acknowledged.
    pub deaths_waiting: u64,
    /// Nodes of its own that other processes hold.
    pub held_nodes: u64,
}

/// A call that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OldCall {
    /// The driver's number for it.
    pub id: i64,
    /// Its code.
    pub code: u32,
    /// The called process; 0 if unknown.
    pub to: i32,
    /// Its age in ms.
    pub age_ms: u64,
}

impl Load {
    /// Age of its oldest call in ms.
    #[must_use]
    pub fn oldest_ms(&self) -> Option<u64> {
        self.waiting.first().map(|call| call.age_ms)
    }
}

/// All processes of the last dump of the state, in its order.
pub(crate) fn loads(system: &System) -> Vec<Load> {
    system
        .last(File::State)
        .map_or(&[][..], |dump| &dump.procs)
        .iter()
        .map(|proc| load(system, proc))
        .collect()
}

fn load(system: &System, proc: &Proc) -> Load {
    let stats = system.stats(proc.pid, &proc.context);
    let serves = |thread: &&Thread| thread.calls.iter().any(|call| call.way == Way::Incoming);
    let busy = proc.threads.iter().filter(serves).count() as u64;
    let ready = proc.threads.iter().filter(|thread| thread.is_free()).count() as u64;
    let limits = stats.and_then(|stats| Some((stats.started?, stats.most.filter(|most| *most > 0)?)));
    let waits = |call: &&Call| call.oneway && matches!(call.way, Way::Pending | Way::Queued);
    let mut waiting: Vec<OldCall> = proc.calls().filter_map(old).collect();
    waiting.sort_by_key(|call| Reverse(call.age_ms));
    let count = |words: [&str; 2]| {
        let counts = &stats?.words;
        Some(words.iter().filter_map(|word| counts.get(word)).sum())
    };
    Load {
        pid: proc.pid,
        name: system.processes.get(&proc.pid).cloned().unwrap_or_default(),
        context: proc.context.clone(),
        buffer_bytes: proc.buffers.iter().map(|buffer| buffer.bytes).sum(),
        area_bytes: area(system, proc),
        backlog: proc.calls().filter(waits).count() as u64,
        busy,
        pool: limits.map(|(started, most)| busy + ready + most.saturating_sub(started)),
        waiting,
        sent: count(["BC_TRANSACTION", "BC_TRANSACTION_SG"]),
        received: count(["BR_TRANSACTION", "BR_TRANSACTION_SEC_CTX"]),
        failed: count(["BR_FAILED_REPLY", "BR_DEAD_REPLY"]),
        deaths_waiting: proc.deaths_waiting,
        held_nodes: proc.nodes.iter().filter(|node| node.holders.iter().any(|pid| *pid != proc.pid)).count()
            as u64,
    }
}

fn old(call: &Call) -> Option<OldCall> {
    let waits = call.way == Way::Outgoing && !call.oneway && !call.reply;
    let age_ms = call.age_ms.filter(|_| waits)?;
    Some(OldCall { id: call.id, code: call.code, to: call.to.pid, age_ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Explainer;

    #[test]
    fn a_processs_load_is_that_of_the_last_state_and_stats() {
        let state = "binder state:\nproc 7\ncontext binder\n  thread 7: l 12 need_return 0 tr 0\n  thread 8: l 11 need_return 0 tr 0\n    \
                     incoming transaction 5: 0000000000000000 from 9:9 to 7:8 code 3 flags 10 pri 0:120 r1 elapsed 4ms node 2 size 8:0 offset 0\n  \
                     node 2: pri 0:139 hs 1 hw 1 ls 0 lw 0 is 1 iw 1 tr 1 proc 9\n    has async transaction\n  \
                     buffer 6: 100 size 4096:0:0 delivered\nproc 9\ncontext binder\n  thread 9: l 10 need_return 0 tr 0\n    \
                     outgoing transaction 5: 0000000000000000 from 9:9 to 7:8 code 3 flags 10 pri 0:120 r1 elapsed 4ms\n  thread 10: l 10 need_return 0 tr 0\n    \
                     outgoing transaction 8: 0000000000000000 from 9:10 to 7:0 code 1 flags 10 pri 0:120 r1 elapsed 5ms\n";
        let stats = "binder stats:\nproc 7\ncontext binder\n  threads: 2\n  requested threads: 0+1/3\n  ready threads 1\n  free async space 8192\n  \
                     pages: 1:0:3\n  BR_FAILED_REPLY: 2\n  BR_DEAD_REPLY: 1\n  BR_TRANSACTION: 9\n";
        let mut explainer = Explainer::new();
        explainer.name_process(7, "server");
        explainer.read_lines("state", state.as_bytes()).expect("memory");
        explainer.read_lines("stats", stats.as_bytes()).expect("memory");
        let loads = explainer.loads();
        let [server, client] = loads.as_slice() else { panic!("{loads:?}") };
        assert_eq!((server.pid, server.name.as_str(), server.context.as_str()), (7, "server", "binder"));
        assert_eq!((server.buffer_bytes, server.area_bytes), (4096, Some(4 * 4096)));
        assert_eq!((server.busy, server.pool, server.failed), (1, Some(4), Some(3)), "{server:?}");
        assert_eq!((server.held_nodes, server.oldest_ms(), server.received), (1, None, Some(9)));
        let [older, newer] =
            [(8, 5, 1), (5, 4, 3)].map(|(id, age_ms, code)| OldCall { id, code, to: 7, age_ms });
        assert_eq!(client.waiting, [older, newer]);
        assert_eq!((client.pool, client.failed), (None, None), "no stats of it");
    }
}
