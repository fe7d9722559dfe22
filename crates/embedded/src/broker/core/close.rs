//! End of a process, step by step.
//! Facts: contract EXT-05, CTX-04, DTH-03, OW-13. Deliberately sooner than the kernel's driver: callers further out
//! in a chain of calls are notified at once (contract TX-19).

use abi::codes::br;

use super::Core;
use super::host::Host;
use super::refusal::no_error;
use crate::rpc::protocol::ProcId;

impl Core {
    /// Removes a process and everything that it owns.
    pub fn close(&mut self, proc: ProcId, host: &mut impl Host) {
        if !self.procs.contains_key(&proc) {
            return;
        }
        let shown = host.snapshot(proc);
        self.totals.threads += shown.threads_ever;
        for (word, times) in shown.words {
            *self.totals.words.entry(word).or_default() += times;
        }
        self.abandon_freezes(proc, host);
        self.leave_manager(proc);
        self.close_channels(proc, host);
        self.end_calls(proc, host);
        self.drop_buffers(proc);
        self.end_nodes(proc, host);
        self.drop_handles(proc, host);
        let Some(gone) = self.procs.remove(&proc) else { return };
        if let Some(others) = self.pids.get_mut(&gone.client.pid) {
            others.remove(&proc);
            if others.is_empty() {
                self.pids.remove(&gone.client.pid);
            }
        }
        self.leave_context(gone.context);
    }

    fn leave_manager(&mut self, proc: ProcId) {
        let Some(manager) = self.manager_of(proc) else { return };
        if self.nodes.get(&manager).is_some_and(|node| node.owner == Some(proc))
            && let Some(context) = self.procs.get(&proc).map(|p| p.context)
            && let Some(context) = self.contexts.get_mut(&context)
        {
            context.manager = None;
        }
    }

    /// Sends dead replies to the process's callers. Calls that it made go on, and their replies are dropped.
    fn end_calls(&mut self, proc: ProcId, host: &mut impl Host) {
        let Some(gone) = self.procs.get_mut(&proc) else { return };
        let incoming = std::mem::take(&mut gone.incoming);
        let outgoing = std::mem::take(&mut gone.outgoing);
        for transaction in outgoing {
            if let Some(call) = self.calls.get_mut(&transaction) {
                call.from = None;
            }
        }
        for transaction in incoming {
            self.fail_call(transaction, br::DEAD_REPLY, no_error(0), host);
        }
    }

    /// Frees the process's receiving area with all buffers. The counts that they hold are on the process's own nodes
    /// and handles, which go next.
    fn drop_buffers(&mut self, proc: ProcId) {
        let Some(gone) = self.procs.get_mut(&proc) else { return };
        for buffer in std::mem::take(&mut gone.buffers).into_values() {
            self.buffer_of.remove(&buffer.transaction);
        }
    }

    /// Ends the process's nodes in the order of their ptr: notifies watchers of their death, and removes nodes
    /// without handles.
    fn end_nodes(&mut self, proc: ProcId, host: &mut impl Host) {
        let leaks = self.faults.keeps_dead_nodes;
        let Some(gone) = self.procs.get_mut(&proc) else { return };
        for key in std::mem::take(&mut gone.nodes).into_values() {
            let Some(node) = self.nodes.get_mut(&key) else { continue };
            node.orphan();
            let holders: Vec<_> = node.holders.iter().map(|(holder, handle)| (*holder, *handle)).collect();
            if holders.is_empty() && !leaks {
                self.nodes.remove(&key);
            }
            for (holder, handle) in holders {
                let held = self.procs.get(&holder).and_then(|p| p.refs.get(handle));
                if let Some(death) = held.and_then(|held| held.death) {
                    self.announce_death(holder, death, host);
                }
            }
        }
    }

    fn drop_handles(&mut self, proc: ProcId, host: &mut impl Host) {
        let Some(gone) = self.procs.get(&proc) else { return };
        let handles: Vec<u32> = gone.refs.iter().map(|(handle, _)| handle).collect();
        for handle in handles {
            self.drop_handle(proc, handle, host);
        }
    }
}
