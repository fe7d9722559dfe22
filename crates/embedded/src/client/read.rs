//! Writes returns: waits for the first, then adds everything else that is ready.
//! Not here: the form of a transaction (`deliver`, `slot_serve`, `slot_reply`), waiting (`wait_for_work`).
//! Facts: contract WR-03 to WR-10, LP-01 to LP-04; `binder_thread_read`, Linux 7.2.

use std::io;
use std::sync::atomic::Ordering;

use abi::codes::br;
use abi::layout::TransactionDataSecctx;
use zerocopy::IntoBytes;

use sys::errno::EAGAIN;

use super::active_thread::ActiveThread;
use super::core::Todo;
use super::core::slot_call::SlotReply;
use super::core::thread::Pending;
use super::wait_for_work::Until;
use crate::rpc::protocol::Request;
use crate::settings::Inherit;
use crate::shm::doorbell::of_return;
use driver::connection::Exchange;

/// Least room, in bytes, for returning work (contract WR-08).
const ROOM: usize = 4 + size_of::<TransactionDataSecctx>();

/// The read buffer while returns are appended.
pub(super) struct Output<'b> {
    bytes: &'b mut [u8],
    at: usize,
}

impl Output<'_> {
    /// Appends a return. The caller has checked the room.
    #[inline]
    fn put(&mut self, word: u32, payload: &[u8]) {
        let end = self.at + 4 + payload.len();
        if let Some(place) = self.bytes.get_mut(self.at..end) {
            place[..4].copy_from_slice(&word.to_ne_bytes());
            place[4..].copy_from_slice(payload);
            self.at = end;
        }
    }

    fn has_room(&self) -> bool {
        self.bytes.len() - self.at >= ROOM
    }
}

/// Whether more returns may follow in the same read (contract WR-09).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    More,
    Stop,
}

impl ActiveThread<'_> {
    /// Executes the read part of a `BINDER_WRITE_READ`.
    pub(super) fn read(&mut self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        let (process, slot) = (self.process, self.slot);
        let at = exchange.read_consumed;
        let mut out = Output { bytes: &mut *exchange.read, at };
        if out.bytes.len() <= at {
            return Ok(());
        }
        if at == 0 {
            out.put(br::NOOP, &[]);
        }
        loop {
            let thread = self.thread();
            let takes_any = thread.is_free();
            // No wait for work that is already queued. Within a call the thread looks first all the same: it
            // must learn of nested calls before the end of its own call.
            let ready = thread.urgent && thread.stack.is_empty();
            if let Some(trace) = process.traced() {
                trace.wait_for_work(takes_any, !thread.stack.is_empty(), !thread.todo.is_empty());
            }
            if takes_any {
                self.settle_priority();
            }
            if !ready || process.anything_new() || !self.state.core.channels.is_settled() {
                self.wait_until_readable(takes_any)?;
            }
            self.check_presence()?;
            self.fill(takes_any, &mut out)?;
            // Only the filler was written: another thread took the work, or nobody has any.
            let must_return = process.local(slot).need_return.load(Ordering::Relaxed);
            if out.at != 4 || !out.has_room() || must_return {
                break;
            }
        }
        if self.state.core.request_looper(slot) {
            self.request_looper(&mut out);
        }
        exchange.read_consumed = out.at;
        if let Some(idle) = self.state.core.needed_idle_thread() {
            process.ring(idle);
        }
        Ok(())
    }

    /// Schedules a thread that may take any work like the thread that opened the context.
    fn settle_priority(&mut self) {
        let process = self.process;
        let trace = process.trace.as_ref();
        match process.settings.inherit {
            Inherit::Rt => {
                let home = process.home.if_boosted(self.who);
                // A boost for a waiting call stays until this thread has that call.
                let stays = home.is_some() && self.look(Until::Work { takes_any: true });
                self.own().before =
                    if stays { home } else { process.home.settle(self.who, Inherit::Rt, trace) };
            }
            mode => drop(process.home.settle(self.who, mode, trace)),
        }
    }

    /// Checks that a supervised thread is still in its call, before work is taken for it: a signal may have taken it
    /// out, and the work is another's then (contract WR-06, WR-07).
    ///
    /// # Errors
    /// `EINTR`.
    fn check_presence(&mut self) -> io::Result<()> {
        let checked = self.process.check_presence(self.who);
        if checked.is_err()
            && let Some(idle) = self.state.core.needed_idle_thread()
        {
            self.process.ring(idle);
        }
        checked
    }

    fn wait_until_readable(&mut self, takes_any: bool) -> io::Result<()> {
        let until = Until::Work { takes_any };
        if self.process.nonblocking.load(Ordering::Relaxed) {
            return match self.look(until) {
                true => Ok(()),
                // Nobody else tells a program that polls.
                false if !self.process.is_connected() => Err(self.process.line.gone()),
                false => Err(io::Error::from_raw_os_error(EAGAIN)),
            };
        }
        self.wait(until, None).map(drop)
    }

    /// Appends what is ready: the thread's own work, then the process's.
    fn fill(&mut self, takes_any: bool, out: &mut Output<'_>) -> io::Result<()> {
        let slot = self.slot;
        while out.has_room() {
            let Some(todo) = self.state.core.take(slot, takes_any) else { break };
            let next = self.deliver(todo, out)?;
            // A call may have ended without a return.
            self.thread().release_held();
            self.state.core.release_early(slot);
            if next == Next::Stop {
                break;
            }
        }
        Ok(())
    }

    fn deliver(&mut self, todo: Todo, out: &mut Output<'_>) -> io::Result<Next> {
        Ok(match todo {
            Todo::Word(word) | Todo::Refusal(word) => {
                self.put(out, word, &[]);
                Next::More
            }
            Todo::Small(word, payload) => self.put_small(out, word, payload),
            Todo::Work(work) => self.deliver_work(work, out)?,
            Todo::Call(delivery) => self.deliver_call(&delivery, out),
            Todo::SlotCall(call) => self.deliver_slot_call(call, out),
            Todo::Reply(reply) => self.deliver_reply(&reply, out),
            Todo::SlotReply(reply) => {
                let SlotReply { ticket, header } = reply;
                self.deliver_slot_reply(ticket, &header, out)
            }
        })
    }

    /// Appends a return and counts it.
    #[inline]
    pub(super) fn put(&mut self, out: &mut Output<'_>, word: u32, payload: &[u8]) {
        self.bell().count(of_return(word));
        if let Some(trace) = self.process.traced() {
            trace.returned(word);
        }
        out.put(word, payload);
    }

    fn put_small(&mut self, out: &mut Output<'_>, word: u32, payload: [u64; 2]) -> Next {
        let bytes = payload.as_bytes();
        let len = abi::ReturnWord(word).payload_len().min(bytes.len());
        self.put(out, word, &bytes[..len]);
        if matches!(word, br::DEAD_BINDER | br::FROZEN_BINDER) { Next::Stop } else { Next::More }
    }

    /// Asks the broker for the current meaning of a piece of work; often there is none left (contract
    /// REF-10).
    fn deliver_work(&mut self, work: u64, out: &mut Output<'_>) -> io::Result<Next> {
        let answer = self.ask(Pending::Plain, &Request::TakeWork { work }, &[])?;
        let mut next = Next::More;
        for (word, payload) in answer.returns.as_slice() {
            if !self.state.core.hold_return(*word, *payload) {
                next = self.put_small(out, *word, *payload);
            }
        }
        Ok(next)
    }

    /// Replaces the filler at the head with `BR_SPAWN_LOOPER` (contract LP-01, LP-02).
    #[cold]
    fn request_looper(&mut self, out: &mut Output<'_>) {
        self.process.show_pool(&self.state.core.pool);
        self.bell().count(of_return(br::SPAWN_LOOPER));
        if let Some(trace) = self.process.traced() {
            trace.returned(br::SPAWN_LOOPER);
        }
        // The filler reserved the room.
        if let Some(head) = out.bytes.first_chunk_mut::<4>() {
            *head = br::SPAWN_LOOPER.to_ne_bytes();
        }
    }
}
