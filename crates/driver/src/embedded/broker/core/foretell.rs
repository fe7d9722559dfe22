//! Room: what a sender that traces has to know before it sends: where its transaction will go, and under
//! which number.
//! Not here: sending it (`transact`), what is written into a trace (`embedded::marks`).
//! Facts: contract TP-02, TP-03, TP-05, TP-13. The kernel traces a call in its sender before it is queued; once
//! the broker has delivered it, it may have been received already.

use abi::codes::tf;

use super::Core;
use super::carry::Route;
use super::outside::Outside;
use super::refusal::EINVAL;
use super::request::Verdict;
use super::transact::Target;
use crate::embedded::protocol::{Link, ProcId, Transact, TransactKind};

/// How many numbers a process gets at a time: enough for a second of calls at full speed, and few of all.
const NUMBERS: u32 = 1 << 16;

impl Core {
    /// The number and the way of the transaction that this process sends next.
    pub(super) fn foretell(&mut self, from: Link, transact: &Transact, outside: &impl Outside) -> Verdict {
        let Some((route, link, node)) = self.way(from.proc, transact) else { return Verdict::errno(EINVAL) };
        let (pid, tid) = match link {
            Some(link) => self.names(link, outside),
            None => (self.identity(route.to).0, 0),
        };
        let (extra, fits) = self.room(from.proc, transact, &route).unwrap_or((0, false));
        let number = self.next_transaction();
        if let Some(proc) = self.procs.get_mut(&from.proc) {
            proc.foretold = Some(number);
        }
        let to = u64::from(tid) << 32 | u64::from(pid);
        Verdict::foretold([number.into(), node.into(), to, extra], fits)
    }

    /// Where it goes, to which thread if only one will do, and the called node's number.
    fn way(&self, from: ProcId, transact: &Transact) -> Option<(Route, Option<Link>, u32)> {
        let (link, flags) = match transact.kind {
            TransactKind::Call { handle } => {
                let target = self.resolve(from, handle).ok()?;
                return Some(self.way_of_call(target, transact));
            }
            TransactKind::Reply { transaction } => {
                let call = self.calls.get(&transaction).filter(|call| call.to == from)?;
                (call.from?, call.flags)
            }
            TransactKind::LaneReply { channel, thread, call_flags, .. } => {
                let proc = self.caller_of(channel, from)??;
                (Link { proc, thread }, call_flags)
            }
        };
        let lives = self.procs.contains_key(&link.proc);
        lives.then(|| (Route::of_reply(link.proc, flags), Some(link), 0))
    }

    fn way_of_call(&self, target: Target, transact: &Transact) -> (Route, Option<Link>, u32) {
        let oneway = transact.flags & tf::ONE_WAY != 0;
        let nested = transact.lineage.find(target.proc).filter(|_| !oneway);
        let node = self.nodes.get(&target.node).map_or(0, |node| node.debug_id);
        let link = nested.map(|thread| Link { proc: target.proc, thread });
        (self.route_of_call(oneway, target), link, node)
    }

    /// The number of a transaction that was sent: the one foretold, if there was one.
    pub(super) fn number_for(&mut self, from: ProcId) -> u32 {
        let foretold = self.procs.get_mut(&from).and_then(|proc| proc.foretold.take());
        foretold.filter(|number| self.is_free(*number)).unwrap_or_else(|| self.next_transaction())
    }

    /// Numbers that are nobody else's.
    pub(super) fn numbers(&mut self) -> Verdict {
        let first = self.ids.take_many(NUMBERS);
        Verdict::words([first.into(), NUMBERS.into(), 0, 0])
    }
}
