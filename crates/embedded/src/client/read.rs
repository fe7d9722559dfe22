//! Writes returns: waits for the first, then adds everything else that is ready.
//! Not here: the form of a transaction (`deliver`, `serve`, `call`), waiting (`wait`).
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
use super::wait::Until;
use crate::rpc::protocol::Request;
use crate::settings::Inherit;
use crate::shm::doorbell::of_return;
use driver::connection::Exchange;

/// Least room, in bytes, for returning work (contract WR-08).
const ROOM: usize = 4 + size_of::<TransactionDataSecctx>();

/// Whether more returns may follow in the same read (contract WR-09).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    More,
    Stop,
}

/// The read part of an exchange: a thread, and the read buffer while returns are appended.
pub(super) struct Reading<'t, 'p, 'b> {
    pub(super) thread: &'t mut ActiveThread<'p>,
    bytes: &'b mut [u8],
    /// Bytes written so far.
    at: usize,
}

/// Executes the read part of a `BINDER_WRITE_READ`.
pub(super) fn read(thread: &mut ActiveThread<'_>, exchange: &mut Exchange<'_>) -> io::Result<()> {
    let at = exchange.read_consumed;
    if exchange.read.len() <= at {
        return Ok(());
    }
    let mut reading = Reading { thread, bytes: &mut *exchange.read, at };
    reading.carry_out()?;
    exchange.read_consumed = reading.at;
    Ok(())
}

impl Reading<'_, '_, '_> {
    fn carry_out(&mut self) -> io::Result<()> {
        let (process, slot) = (self.thread.process, self.thread.slot);
        if self.at == 0 {
            self.append(br::NOOP, &[]);
        }
        loop {
            let thread = self.thread.thread();
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
            if !ready || process.anything_new() || !self.thread.state.core.channels.is_settled() {
                self.wait_until_readable(takes_any)?;
            }
            self.check_presence()?;
            self.fill(takes_any)?;
            // Only the filler was written: another thread took the work, or nobody has any.
            let must_return = process.local(slot).need_return.load(Ordering::Relaxed);
            if self.at != 4 || !self.has_room() || must_return {
                break;
            }
        }
        if self.thread.state.core.request_looper(slot) {
            self.request_looper();
        }
        if let Some(idle) = self.thread.state.core.needed_idle_thread() {
            process.ring(idle);
        }
        Ok(())
    }

    /// Schedules a thread that may take any work like the thread that opened the context.
    fn settle_priority(&mut self) {
        let process = self.thread.process;
        let trace = process.trace.as_ref();
        match process.settings.inherit {
            Inherit::Rt => {
                let home = process.home.if_boosted(self.thread.who);
                // A boost for a waiting call stays until this thread has that call.
                let stays = home.is_some() && self.thread.look(Until::Work { takes_any: true });
                self.thread.own().before =
                    if stays { home } else { process.home.settle(self.thread.who, trace) };
            }
            _ => drop(process.home.settle(self.thread.who, trace)),
        }
    }

    /// Checks that a supervised thread is still in its call, before work is taken for it: a signal may have taken it
    /// out, and the work is another's then (contract WR-06, WR-07).
    ///
    /// # Errors
    /// `EINTR`.
    fn check_presence(&mut self) -> io::Result<()> {
        let checked = self.thread.process.check_presence(self.thread.who);
        if checked.is_err()
            && let Some(idle) = self.thread.state.core.needed_idle_thread()
        {
            self.thread.process.ring(idle);
        }
        checked
    }

    fn wait_until_readable(&mut self, takes_any: bool) -> io::Result<()> {
        let until = Until::Work { takes_any };
        if self.thread.process.nonblocking.load(Ordering::Relaxed) {
            return match self.thread.look(until) {
                true => Ok(()),
                // Nobody else tells a program that polls.
                false if !self.thread.process.is_connected() => Err(self.thread.process.line.gone()),
                false => Err(io::Error::from_raw_os_error(EAGAIN)),
            };
        }
        self.thread.wait(until, None).map(drop)
    }

    /// Appends what is ready: the thread's own work, then the process's.
    fn fill(&mut self, takes_any: bool) -> io::Result<()> {
        let slot = self.thread.slot;
        while self.has_room() {
            let Some(todo) = self.thread.state.core.take(slot, takes_any) else { break };
            let next = self.deliver(todo)?;
            // A call may have ended without a return.
            self.thread.thread().release_held();
            self.thread.state.core.release_early(slot);
            if next == Next::Stop {
                break;
            }
        }
        Ok(())
    }

    fn deliver(&mut self, todo: Todo) -> io::Result<Next> {
        Ok(match todo {
            Todo::Word(word) | Todo::Refusal(word) => {
                self.put(word, &[]);
                Next::More
            }
            Todo::Small(word, payload) => self.put_small(word, payload),
            Todo::Work(work) => self.deliver_work(work)?,
            Todo::Call(delivery) => self.deliver_call(&delivery),
            Todo::SlotCall(call) => self.deliver_slot_call(call),
            Todo::Reply(reply) => self.deliver_reply(&reply),
            Todo::SlotReply(reply) => {
                let SlotReply { ticket, header } = reply;
                self.deliver_slot_reply(ticket, &header)
            }
        })
    }

    /// Appends a return, for which there is room, and counts it.
    pub(super) fn put(&mut self, word: u32, payload: &[u8]) {
        self.thread.bell().count(of_return(word));
        if let Some(trace) = self.thread.process.traced() {
            trace.returned(word);
        }
        self.append(word, payload);
    }

    fn append(&mut self, word: u32, payload: &[u8]) {
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

    fn put_small(&mut self, word: u32, payload: [u64; 2]) -> Next {
        let bytes = payload.as_bytes();
        let len = abi::ReturnWord(word).payload_len().min(bytes.len());
        self.put(word, &bytes[..len]);
        if matches!(word, br::DEAD_BINDER | br::FROZEN_BINDER) { Next::Stop } else { Next::More }
    }

    /// Asks the broker for the current meaning of a piece of work; often there is none left (contract
    /// REF-10).
    fn deliver_work(&mut self, work: u64) -> io::Result<Next> {
        let answer = self.thread.ask(Pending::Plain, &Request::TakeWork { work }, &[])?;
        let mut next = Next::More;
        for (word, payload) in answer.returns.as_slice() {
            if !self.thread.state.core.hold_return(*word, *payload) {
                next = self.put_small(*word, *payload);
            }
        }
        Ok(next)
    }

    /// Replaces the filler at the head with `BR_SPAWN_LOOPER` (contract LP-01, LP-02).
    fn request_looper(&mut self) {
        self.thread.process.show_pool(&self.thread.state.core.pool);
        self.thread.bell().count(of_return(br::SPAWN_LOOPER));
        if let Some(trace) = self.thread.process.traced() {
            trace.returned(br::SPAWN_LOOPER);
        }
        // The filler reserved the room.
        if let Some(head) = self.bytes.first_chunk_mut::<4>() {
            *head = br::SPAWN_LOOPER.to_ne_bytes();
        }
    }
}
