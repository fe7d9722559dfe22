//! Room: what each request leads to, and the one answer that it gets.
//! Not here: requests that the broker's shell answers itself (`TakeFds`, `State`, `More`,
//! `TakeChannel`).

use std::os::fd::OwnedFd;

use abi::codes::br;
use abi::layout::ExtendedError;

use super::Core;
use super::death::answer_queue;
use super::outside::Outside;
use super::refusal::{EINVAL, Refusal, no_error};
use super::transact::Sending;
use crate::embedded::protocol::{Item, Link, ProcId, Request, Returns, ThreadKey, Transact, TransactKind};

/// What an answer says.
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
    /// A request that is refused as a whole, or with 0 one that is done.
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

    /// Whether the sender goes on with what comes behind its transaction.
    pub(super) fn sender_goes_on(&self) -> bool {
        self.errno == 0 && !self.sender_stops
    }

    /// What a transaction will come to.
    pub(super) fn foretold(words: [u64; 4], fits: bool) -> Self {
        Self { sender_stops: !fits, ..Self::words(words) }
    }

    /// A call that was accepted.
    pub(super) fn carried(outcome: u32, id: u32) -> Self {
        Self { outcome, transaction: id, error: no_error(id), ..Self::errno(0) }
    }

    /// A call that was not.
    pub(super) fn refused(refusal: Refusal, id: u32) -> Self {
        Self { outcome: refusal.outcome, sender_stops: true, error: refusal.error(id), ..Self::errno(0) }
    }

    /// A reply; the replier never hears that it went nowhere (contract TX-17, TX-18).
    pub(super) fn replied(id: u32, stops: bool) -> Self {
        Self { sender_stops: stops, ..Self::carried(br::TRANSACTION_COMPLETE, id) }
    }
}

impl Core {
    /// Does what a process asks. `bytes`: the core's own copy of what a `Transact` sends; `fds`:
    /// the descriptors that came with it.
    #[expect(clippy::too_many_arguments, reason = "one request with all that came with it")]
    pub fn request(
        &mut self,
        from: ProcId,
        thread: ThreadKey,
        seq: u32,
        request: Request,
        bytes: &[u8],
        fds: Vec<OwnedFd>,
        outside: &mut impl Outside,
    ) {
        let Some(proc) = self.procs.get_mut(&from) else { return };
        proc.acted = true;
        let link = Link { proc: from, thread };
        let verdict = match request {
            Request::Transact { transact } => {
                let id = self.number_for(from);
                self.totals.transactions += 1;
                self.transact(Sending { id, from: link, transact: &transact, bytes, fds }, outside)
            }
            Request::Mapped { .. }
            | Request::MaxThreads { .. }
            | Request::DropChannel { .. }
            | Request::More {} => return self.unanswered(from, request, outside),
            other => self.ask(link, other, outside),
        };
        let Verdict { errno, outcome, sender_stops, transaction, error, words, returns } = verdict;
        let answer =
            Item::Answer { thread, seq, errno, outcome, sender_stops, transaction, error, words, returns };
        outside.item(from, answer);
        if let Request::Transact { transact } = request
            && outcome == br::TRANSACTION_COMPLETE
        {
            self.offer_lane(from, transaction, &transact, outside);
        }
    }

    fn unanswered(&mut self, from: ProcId, request: Request, outside: &mut impl Outside) {
        if let Request::DropChannel { channel } = request {
            return self.drop_channel(from, channel, outside);
        }
        let Some(proc) = self.procs.get_mut(&from) else { return };
        match request {
            Request::Mapped { base } => proc.map(base),
            Request::MaxThreads { max } => proc.max_threads = max,
            _ => {}
        }
    }

    /// Every request but transactions and those without an answer.
    fn ask(&mut self, from: Link, request: Request, outside: &mut impl Outside) -> Verdict {
        let Link { proc, thread } = from;
        match request {
            Request::FreeBuffer { offset } => {
                self.free_buffer(proc, offset, outside);
                Verdict::errno(0)
            }
            Request::Count { command, handle } => Verdict::errno(self.count(proc, command, handle, outside)),
            Request::CountDone { command, ptr, cookie } => {
                Verdict::errno(self.count_done(proc, command, [ptr, cookie], outside))
            }
            Request::TakeWork { work } => {
                Verdict { returns: self.take_work(proc, work), ..Verdict::errno(0) }
            }
            Request::Undeliverable { transaction, errno } => {
                self.undeliverable(proc, transaction, errno, outside);
                Verdict::errno(0)
            }
            Request::Abandon { transaction } => {
                self.abandon(proc, transaction, outside);
                Verdict::errno(0)
            }
            Request::Foretell { transact } => self.foretell(from, &transact, outside),
            Request::Numbers {} => self.numbers(),
            Request::BecomeManager { node } => Verdict::errno(self.become_manager(proc, &node)),
            Request::NodeDebugInfo { above } => Verdict::words(self.node_debug_info(proc, above)),
            Request::NodeInfoForRef { info } => Verdict::from_words(self.node_info_for_ref(proc, &info)),
            Request::Freeze { pid, step } => Verdict::errno(self.freeze(proc, pid, step, outside)),
            Request::FrozenInfo { pid } => Verdict::from_words(self.frozen_info(pid, outside)),
            Request::SpamDetection { enable } => {
                if let Some(proc) = self.procs.get_mut(&proc) {
                    proc.spam_detection = enable;
                }
                Verdict::errno(0)
            }
            other => self.ask_notice(proc, thread, other, outside),
        }
    }

    /// Death and freeze notifications.
    fn ask_notice(
        &mut self,
        proc: ProcId,
        thread: ThreadKey,
        request: Request,
        outside: &mut impl Outside,
    ) -> Verdict {
        let errno = match request {
            Request::RequestDeath { handle, cookie } => self.request_death(proc, handle, cookie, outside),
            Request::ClearDeath { handle, cookie, looper } => {
                self.clear_death(proc, handle, cookie, answer_queue(thread, looper), outside);
                0
            }
            Request::DeathDone { cookie, looper } => {
                self.death_done(proc, cookie, answer_queue(thread, looper), outside);
                0
            }
            Request::RequestFreeze { handle, cookie } => self.request_freeze(proc, handle, cookie, outside),
            Request::ClearFreeze { handle, cookie } => self.clear_freeze(proc, handle, cookie, outside),
            Request::FreezeDone { cookie } => self.freeze_done(proc, cookie, outside),
            _ => return Verdict::errno(EINVAL),
        };
        Verdict::errno(errno)
    }

    /// After a call that was accepted and had no objects, or scattered buffers: the next may have nothing
    /// else, and nobody but the two ends need know of those.
    fn offer_lane(&mut self, from: ProcId, id: u32, transact: &Transact, outside: &mut impl Outside) {
        let TransactKind::Call { handle } = transact.kind else { return };
        if transact.offsets_size > 0 && transact.buffers_size == 0 {
            return;
        }
        let Some(call) = self.calls.get(&id) else { return };
        let (to, buffer) = (call.to, call.buffer);
        let target = self.procs.get(&to).and_then(|p| p.buffers.get(&buffer)).and_then(|b| b.target);
        if let Some(node) = target {
            self.open_lane(from, handle, node, to, outside);
        }
    }
}
