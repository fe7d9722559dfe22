//! Number and route of a transaction before it is sent, for a sender that traces.
//! Not here: sending it (`transact`), writing the trace (`embedded::trace_events`).
//! Facts: contract TP-02, TP-03, TP-05, TP-13. The kernel traces a call in its sender before it is queued; once the
//! broker has delivered a call, it may have been received already.

use abi::codes::tf;

use super::Core;
use super::host::Host;
use super::payload_copy::Route;
use super::request::Verdict;
use super::transact::Target;
use crate::rpc::protocol::{Link, NUMBERS, ProcId, Transact, TransactKind};
use sys::errno::EINVAL;

impl Core {
    /// Number and route of the transaction that this process sends next.
    pub(super) fn preassign_route(
        &mut self,
        from: Link,
        transact: &Transact,
        host: &mut impl Host,
    ) -> Verdict {
        let Some((route, link, node)) = self.find_route(from.proc, transact) else {
            return Verdict::errno(EINVAL);
        };
        let (pid, tid) = match link {
            Some(link) => self.names(link, host),
            None => (self.identity(route.to).0, 0),
        };
        let (extra, fits) = self.room(from.proc, transact, &route, host).unwrap_or((0, false));
        let number = self.next_transaction();
        if let Some(proc) = self.procs.get_mut(&from.proc) {
            proc.preassigned_number = Some(number);
        }
        let to = u64::from(tid) << 32 | u64::from(pid);
        Verdict::preassigned_route([number.into(), node.into(), to, extra], fits)
    }

    /// Route, target thread (if only one is possible), and number of the called node.
    fn find_route(&self, from: ProcId, transact: &Transact) -> Option<(Route, Option<Link>, u32)> {
        let (link, flags) = match transact.kind {
            TransactKind::Call { .. } if transact.out_of_turn => return None,
            TransactKind::Call { handle } => {
                let target = self.resolve(from, handle).ok()?;
                return Some(self.find_call_route(target, transact));
            }
            TransactKind::Reply { transaction } => {
                let call = self.calls.get(&transaction).filter(|call| call.to == from)?;
                (call.from?, call.flags)
            }
            TransactKind::SlotReply { channel, thread, call_flags, .. } => {
                let proc = self.caller_of(channel, from)??;
                (Link { proc, thread }, call_flags)
            }
        };
        let lives = self.procs.contains_key(&link.proc);
        lives.then(|| (Route::of_reply(link.proc, flags), Some(link), 0))
    }

    fn find_call_route(&self, target: Target, transact: &Transact) -> (Route, Option<Link>, u32) {
        let oneway = transact.flags & tf::ONE_WAY != 0;
        let nested = transact.lineage.find(target.proc).filter(|_| !oneway);
        let node = self.nodes.get(&target.node).map_or(0, |node| node.debug_id);
        let link = nested.map(|thread| Link { proc: target.proc, thread });
        (self.route_of_call(oneway, target), link, node)
    }

    /// Number of a transaction that is being sent: the preassigned one if there is one.
    pub(super) fn number_for(&mut self, from: ProcId) -> u32 {
        let preassigned = self.procs.get_mut(&from).and_then(|proc| proc.preassigned_number.take());
        preassigned.filter(|number| self.is_free(*number)).unwrap_or_else(|| self.next_transaction())
    }

    /// Reserves a range of numbers for a process.
    pub(super) fn numbers(&mut self, count: u32) -> Verdict {
        let count = count.clamp(1, NUMBERS);
        let first = self.ids.take_many(count);
        Verdict::words([first.into(), count.into(), 0, 0])
    }
}
