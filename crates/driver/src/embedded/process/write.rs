//! Room: carries out a stream of commands, one after another, until one is refused.
//! Not here: decoding (`abi::stream`), transactions (`transact`).
//! Facts: contract WR-01, WR-11 to WR-13, LP-05, LP-06, BUF-05, DTH-01 to DTH-06;
//! `binder_thread_write`, Linux 7.2.

use std::io;
use std::mem;

use abi::codes::bc;
use abi::stream::{self, BadCommand, Command};
use abi::{BufferAddress, CommandWord};

use super::area::Lent;
use super::state::{Buffer, Frame, GivenBack, Pending, looper};
use super::wait::Until;
use super::{Guard, Process};
use crate::connection::Exchange;
use crate::embedded::channel::doorbell::of_command;
use crate::embedded::marks::Fate;
use crate::embedded::protocol::Request;

const EFAULT: i32 = 14;
const EINVAL: i32 = 22;

fn refused<T>(errno: i32) -> io::Result<T> {
    Err(io::Error::from_raw_os_error(errno))
}

impl Process {
    /// The write part of a `BINDER_WRITE_READ`. A command that is refused as a whole counts as not
    /// taken (contract WR-11); a transaction that fails ends the part without an error (WR-12).
    pub(super) fn write<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        exchange: &mut Exchange<'_>,
    ) -> io::Result<Guard<'p>> {
        if matches!(st.thread(slot).stack.last(), Some(Frame::Calling(_))) {
            // A call whose reply has come is over, read or not: another may follow (contract TX-13).
            self.look(&mut st, slot, Until::Answer);
        }
        let mut rest = exchange.write.get(exchange.write_consumed..).unwrap_or_default();
        while !st.thread(slot).refused {
            let len;
            // The commands of calls first, each decoded on the spot.
            if let Some(address) = stream::free_buffer(rest) {
                len = self.begin(slot, bc::FREE_BUFFER);
                st = self.free_buffer(st, slot, address)?;
            } else if let Some(ref data) = stream::transaction(rest) {
                len = self.begin(slot, bc::TRANSACTION);
                st = self.call(st, slot, data, None, &exchange.payload)?;
            } else if let Some(ref data) = stream::reply(rest) {
                len = self.begin(slot, bc::REPLY);
                st = self.reply(st, slot, data, None, exchange)?;
            } else if let Some((ref data, buffers_size)) = stream::transaction_sg(rest) {
                len = self.begin(slot, bc::TRANSACTION_SG);
                st = self.call(st, slot, data, Some(buffers_size), &exchange.payload)?;
            } else if let Some((ref data, buffers_size)) = stream::reply_sg(rest) {
                len = self.begin(slot, bc::REPLY_SG);
                st = self.reply(st, slot, data, Some(buffers_size), exchange)?;
            } else if rest.is_empty() {
                break;
            } else {
                (st, len) = self.obey_any(st, slot, rest)?;
            }
            exchange.write_consumed += len;
            rest = rest.get(len..).unwrap_or_default();
        }
        Ok(st)
    }

    /// Notes that a command is carried out; returns its length.
    #[inline]
    fn begin(&self, slot: u32, word: u32) -> usize {
        self.bell(slot).count(of_command(word));
        if let Some(marks) = self.traced() {
            marks.command(word);
        }
        size_of::<CommandWord>() + CommandWord(word).payload_len()
    }

    /// Any other command that a stream begins with; returns its length, too.
    #[inline(never)]
    fn obey_any<'p>(&'p self, st: Guard<'p>, slot: u32, stream: &[u8]) -> io::Result<(Guard<'p>, usize)> {
        let (word, command) = match stream::first(stream) {
            Ok(found) => found,
            Err(BadCommand::Truncated) => return refused(EFAULT),
            Err(BadCommand::Unsupported(_)) => return refused(EINVAL),
        };
        let len = self.begin(slot, word.0);
        Ok((self.obey(st, slot, command)?, len))
    }

    fn obey<'p>(&'p self, mut st: Guard<'p>, slot: u32, command: Command) -> io::Result<Guard<'p>> {
        let request = match command {
            // `write` knows all of these by itself, and none is left for here.
            Command::Transaction(..) | Command::Reply(..) | Command::FreeBuffer(_) => return refused(EINVAL),
            Command::RegisterLooper | Command::EnterLooper | Command::ExitLooper => {
                self.become_looper(&mut st, slot, command);
                return Ok(st);
            }
            Command::Count(word, handle) => {
                if self.count_later(&mut st, word, handle) {
                    return Ok(st);
                }
                Request::Count { command: word.0, handle: handle.0 }
            }
            Command::CountDone(word, ptr, cookie) => {
                Request::CountDone { command: word.0, ptr: ptr.0, cookie: cookie.0 }
            }
            Command::RequestDeath(handle, cookie) => {
                Request::RequestDeath { handle: handle.0, cookie: cookie.0 }
            }
            Command::ClearDeath(handle, cookie) => {
                let looper = self.is_looper(&mut st, slot);
                Request::ClearDeath { handle: handle.0, cookie: cookie.0, looper }
            }
            Command::DeathDone(cookie) => {
                Request::DeathDone { cookie: cookie.0, looper: self.is_looper(&mut st, slot) }
            }
            Command::RequestFreeze(handle, cookie) => {
                Request::RequestFreeze { handle: handle.0, cookie: cookie.0 }
            }
            Command::ClearFreeze(handle, cookie) => {
                Request::ClearFreeze { handle: handle.0, cookie: cookie.0 }
            }
            Command::FreezeDone(cookie) => Request::FreezeDone { cookie: cookie.0 },
        };
        let (st, answer) = self.ask(st, slot, Pending::Plain, &request, &[])?;
        if answer.errno == 0 { Ok(st) } else { refused(answer.errno) }
    }

    fn is_looper(&self, st: &mut Guard<'_>, slot: u32) -> bool {
        st.thread(slot).looper & (looper::REGISTERED | looper::ENTERED) != 0
    }

    /// The three commands about the pool (contract LP-03 to LP-06).
    fn become_looper(&self, st: &mut Guard<'_>, slot: u32, command: Command) {
        let requested = st.pool.requested;
        let thread = st.thread(slot);
        let was = thread.looper;
        thread.looper |= match command {
            Command::EnterLooper if was & looper::REGISTERED != 0 => looper::ENTERED | looper::INVALID,
            Command::EnterLooper => looper::ENTERED,
            Command::ExitLooper => looper::EXITED,
            _ if was & looper::ENTERED != 0 || !requested => looper::REGISTERED | looper::INVALID,
            _ => looper::REGISTERED,
        };
        let bits = thread.looper;
        if command == Command::RegisterLooper && was & looper::ENTERED == 0 && requested {
            st.pool.requested = false;
            st.pool.started += 1;
            self.show_pool(st);
        }
        self.bell(slot).set_looper(bits);
    }

    /// `BC_FREE_BUFFER`: a wrong address is ignored (contract BUF-05).
    #[inline(always)] // a few instructions in every call
    fn free_buffer<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        address: BufferAddress,
    ) -> io::Result<Guard<'p>> {
        if let Some(marks) = self.traced()
            && st.thread(slot).given_back.is_none()
        {
            marks.release(address.0);
        }
        let Some(offset) = self.area.offset_of(address.0) else {
            return self.free_in_arena(st, slot, address);
        };
        if let Some((len, Lent { clear, node })) = st.live.take_back(offset) {
            if clear {
                self.area.zero(offset, len);
            }
            self.let_go(&mut st, slot, node);
        }
        Ok(st)
    }

    /// The same of a buffer that the broker filled.
    #[inline(never)]
    fn free_in_arena<'p>(
        &'p self,
        mut st: Guard<'p>,
        slot: u32,
        address: BufferAddress,
    ) -> io::Result<Guard<'p>> {
        let given_back = st.thread(slot).given_back.take_if(|given_back| given_back.address == address.0);
        if let Some(GivenBack { buffer, mark, .. }) = given_back {
            if let (Some(marks), Some(mark)) = (self.traced(), mark) {
                marks.buffer(Fate::Released, mark);
            }
            self.close_descriptors(slot, buffer);
            return Ok(st);
        }
        let Some(buffer) = st.buffers.remove(&address.0) else { return Ok(st) };
        let offset = buffer.offset;
        self.close_descriptors(slot, buffer);
        Ok(self.ask(st, slot, Pending::Plain, &Request::FreeBuffer { offset }, &[])?.0)
    }

    /// Those of FDA objects go with their buffer. Those of FD objects that nobody took stay open all the same (contract
    /// OBJ-13).
    fn close_descriptors(&self, slot: u32, buffer: Buffer) {
        buffer.descriptors.into_iter().for_each(|(_, descriptor)| mem::forget(descriptor));
        if !buffer.array.is_empty() {
            drop(buffer.array);
            self.set_need_return(slot, true);
        }
    }
}

/// The counting commands that a call in a lane holds back: those that could end the handle.
pub(super) fn lets_go(command: u32) -> bool {
    matches!(command, bc::RELEASE | bc::DECREFS)
}
