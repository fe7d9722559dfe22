//! Room: fills in returns: waits for the first, then takes what else is there.
//! Not here: what a transaction looks like to its reader (`deliver`), waiting (`wait`).
//! Facts: contract WR-03 to WR-10, LP-01 to LP-04; `binder_thread_read`, Linux 7.2.

use std::io;
use std::sync::atomic::Ordering;

use abi::codes::br;
use abi::layout::TransactionDataSecctx;

use super::state::{LaneReply, Pending, Todo, looper};
use super::wait::{Until, Woken};
use super::{Guard, Process};
use crate::connection::Exchange;
use crate::embedded::channel::doorbell::of_return;
use crate::embedded::protocol::Request;
use crate::embedded::settings::Inherit;

const EAGAIN: i32 = 11;
const EINTR: i32 = 4;

/// Work is only returned into this much room (contract WR-08).
const ROOM: usize = 4 + size_of::<TransactionDataSecctx>();

/// Returns as they are written.
pub(super) struct Output<'b> {
    bytes: &'b mut [u8],
    pub(super) at: usize,
    /// See `Exchange`.
    pub(super) takes_vectors: bool,
    pub(super) vector: Option<u64>,
}

impl Output<'_> {
    /// Appends a return; whoever calls has seen that there is room.
    #[inline]
    pub(super) fn put(&mut self, word: u32, payload: &[u8]) {
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

/// What became of one thing to do.
pub(super) enum Step {
    /// Returned, and more may follow in the same read.
    More,
    /// Returned, as the last (contract WR-09).
    Last,
}

impl Process {
    /// The read part of a `BINDER_WRITE_READ`.
    #[inline(always)] // its one caller is the hot path, and it grew beyond what is inlined unasked
    pub(super) fn read<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        exchange: &mut Exchange<'_>,
    ) -> io::Result<()> {
        let at = exchange.read_consumed;
        let takes_vectors = exchange.takes_vectors;
        let mut out = Output { bytes: &mut *exchange.read, at, takes_vectors, vector: None };
        if out.bytes.len() <= at {
            return Ok(());
        }
        if at == 0 {
            out.put(br::NOOP, &[]);
        }
        loop {
            let thread = st.thread(slot);
            let proc = thread.is_free();
            // What it has got already it need not wait for. Within a call it looks first all the same: of what comes
            // back to it from there it has to learn before the call's end.
            let ready = thread.urgent && thread.stack.is_empty();
            if let Some(marks) = self.traced() {
                self.mark_wait(marks, &mut st, slot, proc);
            }
            if proc {
                self.settle(&mut st, slot);
            }
            if !ready || self.anything_new() || !st.channels.is_quiet() {
                st = self.wait_for_work(st, slot, proc)?;
            }
            st = self.take(st, slot, proc, &mut out)?;
            // Nothing but the filler: what woke this thread went to another, or to nobody.
            if out.at != 4 || !out.has_room() || self.must_return(slot) {
                break;
            }
        }
        self.ask_for_looper(&mut st, slot, &mut out);
        exchange.read_consumed = out.at;
        exchange.vector = out.vector;
        if !st.queue.is_empty()
            && let Some(next) = st.idle.last()
        {
            self.ring(*next);
        }
        if self.local(slot).owes_wake.load(Ordering::Relaxed) {
            self.unlock(st, slot);
        }
        Ok(())
    }

    /// A thread that may take any work is scheduled as whoever opened the context.
    #[inline]
    fn settle(&self, st: &mut Guard<'_>, slot: u32) {
        match self.settings.inherit {
            Inherit::Rt => self.settle_boosted(st, slot),
            mode => {
                self.home.settle(mode, self.marks.as_ref());
            }
        }
    }

    #[inline(never)]
    fn settle_boosted(&self, st: &mut Guard<'_>, slot: u32) {
        st.thread(slot).before = match self.home.if_boosted(Inherit::Rt) {
            // For a call that is there already: it keeps that until it has it.
            Some(home) if self.look(st, slot, Until::Work { proc: true }) => Some(home),
            _ => self.home.settle(Inherit::Rt, self.marks.as_ref()),
        };
    }

    fn must_return(&self, slot: u32) -> bool {
        self.local(slot).need_return.load(Ordering::Relaxed)
    }

    fn wait_for_work<'p>(&'p self, mut st: Guard<'p>, slot: u32, proc: bool) -> io::Result<Guard<'p>> {
        if self.nonblocking.load(Ordering::Relaxed) {
            return match self.look(&mut st, slot, Until::Work { proc }) {
                true => Ok(st),
                false => Err(io::Error::from_raw_os_error(EAGAIN)),
            };
        }
        loop {
            let (guard, woken) = self.wait(st, slot, Until::Work { proc });
            st = guard;
            match woken {
                Woken::Ready => return Ok(st),
                Woken::Interrupted => return Err(io::Error::from_raw_os_error(EINTR)),
                Woken::TimedOut if self.is_connected() => {}
                Woken::TimedOut => return Err(self.line.gone()),
            }
        }
    }

    /// Takes what is there: first the thread's own, then the process's, then what lies in the lane that it watches.
    fn take<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        proc: bool,
        out: &mut Output<'_>,
    ) -> io::Result<Guard<'p>> {
        while out.has_room() {
            // Most often it is the acknowledgement of what was sent, which changes nothing else.
            let thread = st.thread(slot);
            if let Some(word) = thread.pop_word() {
                // It is all there is, unless a call is under way.
                let last = !proc && thread.is_free();
                self.put(slot, out, word, &[]);
                if last {
                    break;
                }
                continue;
            }
            let todo = match thread.pop_other() {
                Some(todo) => Some(todo),
                None if proc => match st.queue.pop_front() {
                    Some(todo) => {
                        self.show_queue(&st);
                        Some(todo)
                    }
                    None => match self.take_watched(&mut st, slot) {
                        Some(call) => Some(Todo::LaneCall(call)),
                        None => break,
                    },
                },
                None => None,
            };
            let (guard, step) = match todo {
                Some(todo) => self.give_out(st, slot, todo, out)?,
                None => {
                    let (guard, step) = self.take_lane_reply(st, slot, out);
                    st = guard;
                    let Some(step) = step else { break };
                    (st, step)
                }
            };
            st = guard;
            // A call may have come to nothing.
            let thread = st.thread(slot);
            thread.release_held();
            self.show_depth(thread);
            if !thread.early.is_empty() {
                self.release_all_early(&mut st, slot, slot);
            }
            if let Step::Last = step {
                break;
            }
        }
        Ok(st)
    }

    #[inline]
    fn give_out<'p>(
        &'p self,
        st: Guard<'p>,
        slot: u32,
        todo: Todo,
        out: &mut Output<'_>,
    ) -> io::Result<(Guard<'p>, Step)> {
        match todo {
            Todo::Word(word) | Todo::Refusal(word) => {
                self.put(slot, out, word, &[]);
                Ok((st, Step::More))
            }
            Todo::Small(word, payload) => {
                let step = self.put_small(slot, out, word, payload);
                Ok((st, step))
            }
            Todo::Work(work) => self.give_out_work(st, slot, work, out),
            Todo::Call(delivery) => self.give_out_call(st, slot, &delivery, out),
            Todo::LaneCall(call) => Ok(self.give_out_lane_call(st, slot, call, out)),
            Todo::Reply(reply) => self.give_out_reply(st, slot, &reply, out),
            Todo::LaneReply(reply) => {
                let LaneReply { ticket, header } = *reply;
                Ok(self.give_out_lane_reply(st, slot, ticket, &header, out))
            }
        }
    }

    /// Appends a return and counts it.
    #[inline]
    pub(super) fn put(&self, slot: u32, out: &mut Output<'_>, word: u32, payload: &[u8]) {
        self.bell(slot).count(of_return(word));
        if let Some(marks) = self.traced() {
            marks.returned(word);
        }
        out.put(word, payload);
    }

    #[inline(never)]
    fn put_small(&self, slot: u32, out: &mut Output<'_>, word: u32, payload: [u64; 2]) -> Step {
        let bytes = zerocopy::IntoBytes::as_bytes(&payload);
        let len = abi::ReturnWord(word).payload_len().min(bytes.len());
        self.put(slot, out, word, &bytes[..len]);
        if matches!(word, br::DEAD_BINDER | br::FROZEN_BINDER) { Step::Last } else { Step::More }
    }

    /// Asks the broker what a piece of work is by now; often it is nothing (contract REF-10).
    #[inline(never)]
    fn give_out_work<'p>(
        &'p self,
        st: Guard<'p>,
        slot: u32,
        work: u64,
        out: &mut Output<'_>,
    ) -> io::Result<(Guard<'p>, Step)> {
        let (mut st, answer) = self.ask(st, slot, Pending::Plain, &Request::TakeWork { work }, &[])?;
        let mut step = Step::More;
        for (word, payload) in answer.returns.as_slice() {
            if self.returned_later(&mut st, *word, *payload) {
                continue;
            }
            step = self.put_small(slot, out, *word, *payload);
        }
        Ok((st, step))
    }

    /// `BR_SPAWN_LOOPER` in place of the filler at the head (contract LP-01, LP-02).
    #[inline]
    fn ask_for_looper(&self, st: &mut Guard<'_>, slot: u32, out: &mut Output<'_>) {
        let wanted = !st.pool.requested && st.idle.is_empty() && st.pool.started < st.pool.max;
        if wanted {
            self.ask_if_joined(st, slot, out);
        }
    }

    #[cold]
    fn ask_if_joined(&self, st: &mut Guard<'_>, slot: u32, out: &mut Output<'_>) {
        if st.thread(slot).looper & (looper::REGISTERED | looper::ENTERED) != 0 {
            st.pool.requested = true;
            self.show_pool(st);
            self.bell(slot).count(of_return(br::SPAWN_LOOPER));
            if let Some(marks) = self.traced() {
                marks.returned(br::SPAWN_LOOPER);
            }
            // There is room for one: the filler stood there.
            if let Some(head) = out.bytes.first_chunk_mut::<4>() {
                *head = br::SPAWN_LOOPER.to_ne_bytes();
            }
        }
    }
}
