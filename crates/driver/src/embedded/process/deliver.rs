//! Room: calls and replies on their way to a reader: their descriptors, what they do to the
//! thread's stack, and the return that tells of them.
//! Not here: which comes when (`read`), calls through lanes (`channels`).
//! Facts: contract TX-02 to TX-04, OBJ-11 to OBJ-13, OBJ-21; `binder_thread_read`, Linux 7.2.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use abi::codes::{br, object, tf};
use abi::layout::{BufferObject, FdArrayObject, FdObject, TransactionData, TransactionDataSecctx};
use sys::sealed_memory::SealedMemory;
use zerocopy::{FromBytes, IntoBytes};

use super::gather::round_up;
use super::marking::me;
use super::read::{Output, Step};
use super::state::{BrokerCall, Buffer, Frame, Reply, Source, State};
use super::{Guard, Process, sched};
use crate::embedded::marks::{What, Whom};
use crate::embedded::protocol::{Delivery, Request, Sched};

/// A delivered buffer in the arena, as far as its objects matter.
struct Extent {
    buffer: u64,
    data_size: u64,
    offsets_size: u64,
}

/// The descriptors of a delivery, by what they came as.
#[derive(Default)]
struct Descriptors {
    objects: Vec<(u64, OwnedFd)>,
    array: Vec<OwnedFd>,
}

impl Process {
    #[inline(never)]
    pub(super) fn give_out_call<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        delivery: &Delivery,
        out: &mut Output<'_>,
    ) -> io::Result<(Guard<'p>, Step)> {
        let Delivery { transaction, flags, .. } = *delivery;
        let extent = Extent {
            buffer: delivery.buffer,
            data_size: delivery.data_size,
            offsets_size: delivery.offsets_size,
        };
        let descriptors;
        (st, descriptors) = match self.fetch_descriptors(st, slot, &extent, transaction, delivery.fds) {
            (guard, Ok(descriptors)) => (guard, descriptors),
            (guard, Err(error)) => {
                // The caller learns of it, this reader gets whatever else there is (contract OBJ-12).
                let errno = error.raw_os_error().unwrap_or(0);
                self.post(&Request::Undeliverable { transaction, errno });
                return Ok((guard, Step::More));
            }
        };
        let Some(base) = self.arena_base() else {
            // Given up since (contract OPN-10).
            self.post(&Request::Abandon { transaction });
            return Ok((st, Step::More));
        };
        if let Some(marks) = self.traced() {
            self.mark_raised(marks, st.thread(slot).before);
        }
        if flags & tf::ONE_WAY == 0 {
            let saved = self.inherit(&mut st, slot, delivery.sched, delivery.node_flags, false);
            let what = What { flags, code: delivery.code };
            let call = BrokerCall { transaction, lineage: delivery.lineage, what, saved };
            let thread = st.thread(slot);
            thread.stack.push(Frame::Serving(Source::Broker(Box::new(call))));
            self.show_serving(st.thread(slot));
            self.show_depth(st.thread(slot));
        } else {
            self.inherit(&mut st, slot, delivery.sched, delivery.node_flags, true);
        }
        self.remember(&mut st, base, delivery.buffer, descriptors);
        if let Some(marks) = self.traced() {
            self.mark_delivered(marks, delivery, base.wrapping_add(delivery.buffer));
        }
        let data = TransactionData {
            target: delivery.ptr,
            cookie: delivery.cookie,
            code: delivery.code,
            flags,
            sender_pid: delivery.sender_pid as i32,
            sender_euid: delivery.sender_euid,
            ..place(base, &extent)
        };
        match delivery.security_context {
            None => self.put(slot, out, br::TRANSACTION, data.as_bytes()),
            Some(offset) => {
                let secctx = base.wrapping_add(offset);
                let with = TransactionDataSecctx { transaction_data: data, secctx };
                self.put(slot, out, br::TRANSACTION_SEC_CTX, with.as_bytes());
            }
        }
        if let Some(marks) = self.traced()
            && flags & tf::ONE_WAY != 0
        {
            marks.freed(transaction, Whom { tid: 0, ..me() }, What { flags, code: delivery.code });
        }
        Ok((st, Step::Last))
    }

    #[inline(never)]
    pub(super) fn give_out_reply<'p>(
        &'p self,
        st: Guard<'p>,
        slot: u32,
        reply: &Reply,
        out: &mut Output<'_>,
    ) -> io::Result<(Guard<'p>, Step)> {
        let extent =
            Extent { buffer: reply.buffer, data_size: reply.data_size, offsets_size: reply.offsets_size };
        let (mut st, fetched) = self.fetch_descriptors(st, slot, &extent, reply.number, reply.fds);
        let base = self.arena_base();
        let (Ok(descriptors), Some(base)) = (fetched, base) else {
            self.post(&Request::FreeBuffer { offset: reply.buffer });
            self.put(slot, out, br::FAILED_REPLY, &[]);
            return Ok((st, Step::Last));
        };
        self.remember(&mut st, base, reply.buffer, descriptors);
        if let Some(marks) = self.traced() {
            self.mark_reply_delivered(marks, reply, base.wrapping_add(reply.buffer));
        }
        let data = TransactionData {
            code: reply.code,
            flags: reply.flags,
            sender_euid: reply.euid,
            ..place(base, &extent)
        };
        self.put(slot, out, br::REPLY, data.as_bytes());
        if let Some(marks) = self.traced() {
            marks.freed(reply.number, me(), What { flags: reply.flags, code: reply.code });
        }
        Ok((st, Step::Last))
    }

    fn remember(&self, st: &mut Guard<'_>, base: u64, offset: u64, descriptors: Descriptors) {
        let Descriptors { objects, array } = descriptors;
        let buffer = Buffer { offset, descriptors: objects, array };
        st.buffers.insert(base.wrapping_add(offset), buffer);
    }

    /// Fetches a delivery's descriptors and writes their new numbers into its objects.
    fn fetch_descriptors<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        extent: &Extent,
        transaction: u32,
        count: u32,
    ) -> (Guard<'p>, io::Result<Descriptors>) {
        if count == 0 {
            return (st, Ok(Descriptors::default()));
        }
        let key = st.thread(slot).key;
        self.unlock(st, slot);
        let fetched = self.line.fetch(key, &Request::TakeFds { transaction });
        let placed = fetched.and_then(|(errno, all)| match errno {
            0 => Ok(self.place_descriptors(extent, all)),
            errno => Err(io::Error::from_raw_os_error(errno)),
        });
        (self.lock(), placed)
    }

    fn place_descriptors(&self, extent: &Extent, all: Vec<OwnedFd>) -> Descriptors {
        let mut placed = Descriptors::default();
        let Some(arena) = &self.arena else { return placed };
        let (memory, base) = (&arena.memory, arena.lent.base());
        let offsets_at = extent.buffer + round_up(extent.data_size).unwrap_or(0);
        let mut all = all.into_iter();
        for index in 0..extent.offsets_size / 8 {
            let Some(at) = peek::<u64>(memory, offsets_at + index * 8) else { break };
            let at = extent.buffer.wrapping_add(at);
            let Some(kind) = peek::<u32>(memory, at) else { continue };
            if kind == object::FD {
                let Some(fd) = all.next() else { break };
                let number = (fd.as_raw_fd() as u64).to_ne_bytes();
                poke(memory, at + std::mem::offset_of!(FdObject, fd) as u64, &number);
                placed.objects.push((base + at, fd));
            } else if kind == object::FDA {
                let Some(array) = peek::<FdArrayObject>(memory, at) else { continue };
                let parent = offsets_at.wrapping_add(array.parent.wrapping_mul(8));
                let parent = peek::<u64>(memory, parent)
                    .and_then(|at| peek::<BufferObject>(memory, extent.buffer.wrapping_add(at)));
                let Some(parent) = parent else { continue };
                let start = parent.buffer.wrapping_sub(base).wrapping_add(array.parent_offset);
                for (index, fd) in all.by_ref().take(array.num_fds as usize).enumerate() {
                    poke(memory, start + index as u64 * 4, &fd.as_raw_fd().to_ne_bytes());
                    placed.array.push(fd);
                }
            }
        }
        placed
    }

    pub(super) fn arena_base(&self) -> Option<u64> {
        self.arena.as_ref().map(|arena| arena.lent.base())
    }

    /// Takes over what the caller's scheduling asks of the thread that serves it.
    #[inline]
    pub(super) fn inherit(
        &self,
        st: &mut State,
        slot: u32,
        caller: Sched,
        node_flags: u32,
        oneway: bool,
    ) -> sched::Saved {
        let before = st.thread(slot).before;
        let asked = (caller, node_flags, oneway);
        self.home.serve(self.settings.inherit, before, asked, self.marks.as_ref())
    }
}

/// Whether a range lies in the arena; the broker's objects do.
fn inside(memory: &SealedMemory, at: u64, len: usize) -> Option<usize> {
    let end = at.checked_add(len as u64)?;
    (end <= memory.len() as u64).then_some(at as usize)
}

fn peek<T: FromBytes + IntoBytes>(memory: &SealedMemory, at: u64) -> Option<T> {
    let mut value = T::new_zeroed();
    memory.copy_out(inside(memory, at, size_of::<T>())?, value.as_mut_bytes());
    Some(value)
}

fn poke(memory: &SealedMemory, at: u64, bytes: &[u8]) {
    if let Some(at) = inside(memory, at, bytes.len()) {
        memory.copy_in(at, bytes);
    }
}

/// Where a delivery's parts lie.
fn place(base: u64, extent: &Extent) -> TransactionData {
    let buffer = base.wrapping_add(extent.buffer);
    TransactionData {
        data_size: extent.data_size,
        offsets_size: extent.offsets_size,
        buffer,
        offsets: buffer + round_up(extent.data_size).unwrap_or(0),
        ..TransactionData::default()
    }
}
