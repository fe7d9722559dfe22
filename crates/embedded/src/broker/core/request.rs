//! Dispatch of requests, and the one answer to each.
//! Not here: requests that the server answers itself (`TakeFds`, `State`, `More`, `TakeChannel`).

use std::os::fd::OwnedFd;

use abi::codes::br;
use abi::layout::ExtendedError;

use super::Core;
use super::death::answer_queue;
use super::host::Host;
use super::payload_copy::Sending;
use super::refusal::{Refusal, no_error};
use crate::rpc::protocol::{Item, Link, ProcId, Request, Returns, ThreadKey, Transact, TransactKind};
use sys::errno::EINVAL;

/// Content of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    errno: i32,
    outcome: u32,
    sender_stops: bool,
    transaction: u32,
    error: ExtendedError,
    words: [u64; 4],
    returns: Returns,
}

impl Verdict {
    /// Answer of a refused request, or with 0 of a successful one.
    pub(super) fn errno(errno: i32) -> Self {
        Self {
            errno,
            outcome: 0,
            sender_stops: false,
            transaction: 0,
            error: no_error(0),
            words: [0; 4],
            returns: Returns::default(),
        }
    }

    pub(super) fn words(words: [u64; 4]) -> Self {
        Self { words, ..Self::errno(0) }
    }

    fn from_words<const N: usize>(result: Result<[u64; N], i32>) -> Self {
        match result {
            Ok(few) => {
                let mut words = [0; 4];
                words.iter_mut().zip(few).for_each(|(place, word)| *place = word);
                Self::words(words)
            }
            Err(errno) => Self::errno(errno),
        }
    }

    /// The sender stops after its transaction.
    pub(super) fn sender_goes_on(&self) -> bool {
        self.errno == 0 && !self.sender_stops
    }

    /// Answer to [`Request::PreassignRoute`].
    pub(super) fn preassigned_route(words: [u64; 4], fits: bool) -> Self {
        Self { sender_stops: !fits, ..Self::words(words) }
    }

    /// Answer of an accepted call.
    pub(super) fn carried(outcome: u32, id: u32) -> Self {
        Self { outcome, transaction: id, error: no_error(id), ..Self::errno(0) }
    }

    /// Answer of a refused call.
    pub(super) fn refused(refusal: Refusal, id: u32) -> Self {
        Self { outcome: refusal.outcome, sender_stops: true, error: refusal.error(id), ..Self::errno(0) }
    }

    /// Answer of a reply; the replier is never notified of a failure (contract TX-17, TX-18).
    pub(super) fn replied(id: u32, stops: bool) -> Self {
        Self { sender_stops: stops, ..Self::carried(br::TRANSACTION_COMPLETE, id) }
    }
}

impl Core {
    /// Executes a request. `bytes`: the core's private copy of a `Transact`'s payload; `fds`: the descriptors that
    /// came with it.
    #[expect(clippy::too_many_arguments, reason = "one request with all that came with it")]
    pub fn request(
        &mut self,
        from: ProcId,
        thread: ThreadKey,
        seq: u32,
        request: Request,
        bytes: &[u8],
        fds: Vec<OwnedFd>,
        host: &mut impl Host,
    ) {
        let Some(proc) = self.procs.get_mut(&from) else { return };
        proc.acted = true;
        let link = Link { proc: from, thread };
        let verdict = match request {
            Request::Transact { transact } => {
                let id = self.number_for(from);
                self.totals.transactions += 1;
                self.transact(Sending { id, from: link, transact: &transact, bytes, fds: fds.into() }, host)
            }
            Request::Mapped { .. }
            | Request::MaxThreads { .. }
            | Request::DropChannel { .. }
            | Request::More {} => return self.unanswered(from, request, host),
            other => self.ask(link, other, host),
        };
        let Verdict { errno, outcome, sender_stops, transaction, error, words, returns } = verdict;
        let answer =
            Item::Answer { thread, seq, errno, outcome, sender_stops, transaction, error, words, returns };
        host.item(from, answer);
        if let Request::Transact { transact } = request
            && outcome == br::TRANSACTION_COMPLETE
        {
            self.offer_call_slot(from, transaction, &transact, host);
        }
    }

    fn unanswered(&mut self, from: ProcId, request: Request, host: &mut impl Host) {
        if let Request::DropChannel { channel } = request {
            return self.drop_channel(from, channel, host);
        }
        let Some(proc) = self.procs.get_mut(&from) else { return };
        match request {
            Request::Mapped { base } => {
                proc.map(base);
                // The lease starts.
                self.with_arena(from, host, |_| ());
            }
            Request::MaxThreads { max } => proc.max_threads = max,
            _ => {}
        }
    }

    /// Requests other than transactions and unanswered ones.
    fn ask(&mut self, from: Link, request: Request, host: &mut impl Host) -> Verdict {
        let proc = from.proc;
        match request {
            Request::TakeWork { work } => {
                Verdict { returns: self.take_work(proc, work), ..Verdict::errno(0) }
            }
            Request::PreassignRoute { transact } => self.preassign_route(from, &transact, host),
            Request::Numbers { count } => self.numbers(count),
            Request::NodeDebugInfo { above } => Verdict::words(self.node_debug_info(proc, above)),
            Request::NodeInfoForRef { info } => {
                Verdict::from_words(self.node_info_for_ref(proc, &info, host))
            }
            Request::FrozenInfo { pid } => Verdict::from_words(self.frozen_info(pid, host)),
            other => Verdict::errno(self.act(from, other, host)),
        }
    }

    /// Requests that are answered with an errno alone, 0 for none.
    fn act(&mut self, Link { proc, thread }: Link, request: Request, host: &mut impl Host) -> i32 {
        match request {
            Request::FreeBuffer { offset } => self.free_buffer(proc, offset, host),
            Request::Undeliverable { transaction, errno } => {
                self.undeliverable(proc, transaction, errno, host);
            }
            Request::Abandon { transaction } => self.abandon(proc, transaction, host),
            Request::SpamDetection { enable } => {
                if let Some(proc) = self.procs.get_mut(&proc) {
                    proc.spam_detection = enable;
                }
            }
            Request::ClearDeath { handle, cookie, looper } => {
                self.clear_death(proc, handle, cookie, answer_queue(thread, looper), host);
            }
            Request::DeathDone { cookie, looper } => {
                self.death_done(proc, cookie, answer_queue(thread, looper), host);
            }
            Request::Count { command, handle } => return self.count(proc, command, handle, host),
            Request::CountDone { command, ptr, cookie } => {
                return self.count_done(proc, command, [ptr, cookie], host);
            }
            Request::BecomeManager { node } => return self.become_manager(proc, &node),
            Request::Freeze { pid, step } => return self.freeze(proc, pid, step, host),
            Request::RequestDeath { handle, cookie } => {
                return self.request_death(proc, handle, cookie, host);
            }
            Request::RequestFreeze { handle, cookie } => {
                return self.request_freeze(proc, handle, cookie, host);
            }
            Request::ClearFreeze { handle, cookie } => return self.clear_freeze(proc, handle, cookie, host),
            Request::FreezeDone { cookie } => return self.freeze_done(proc, cookie, host),
            _ => return EINVAL,
        }
        0
    }

    /// Offers a call slot after an accepted call without objects other than scattered buffers: later calls need
    /// nothing of the broker.
    fn offer_call_slot(&mut self, from: ProcId, id: u32, transact: &Transact, host: &mut impl Host) {
        let TransactKind::Call { handle } = transact.kind else { return };
        if transact.offsets_size > 0 && transact.buffers_size == 0 {
            return;
        }
        let Some(call) = self.calls.get(&id) else { return };
        let (to, buffer) = (call.to, call.buffer);
        let target = self.procs.get(&to).and_then(|p| p.buffers.get(&buffer)).and_then(|b| b.target);
        if let Some(node) = target {
            self.open_call_slot(from, handle, node, to, host);
        }
    }
}
