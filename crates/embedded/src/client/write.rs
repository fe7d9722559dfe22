//! Executes a stream of commands until one is refused.
//! Not here: decoding (`abi::stream`), transactions (`send`).
//! Facts: contract WR-01, WR-11 to WR-13, LP-05, LP-06, BUF-05, DTH-01 to DTH-06; `binder_thread_write`,
//! Linux 7.2.

use std::io;

use abi::stream::{self, BadCommand, Command};
use abi::{BufferAddress, CommandWord};

use sys::errno::{EFAULT, EINVAL};

use super::active_thread::ActiveThread;
use super::core::thread::{Frame, Pending};
use super::placements::Lent;
use super::send::Sending;
use super::wait_for_work::Until;
use crate::program::Caller;
use crate::rpc::protocol::Request;
use crate::shm::doorbell::of_command;
use crate::trace_events::Fate;
use driver::connection::Exchange;

fn refused<T>(errno: i32) -> io::Result<T> {
    Err(io::Error::from_raw_os_error(errno))
}

impl ActiveThread<'_> {
    /// Executes the write part of a `BINDER_WRITE_READ`. A command that is refused as a whole counts as not
    /// taken (contract WR-11); a transaction that fails ends the part without an error (WR-12).
    ///
    /// # Errors
    /// Those of the commands. `ECONNRESET`: the broker is gone.
    pub(super) fn write(&mut self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        if self.process.has_ended() && exchange.write.len() > exchange.write_consumed {
            return Err(self.process.line.gone());
        }
        if matches!(self.thread().stack.last(), Some(Frame::Calling(_))) {
            // A call with a reply is over, read or not: another may follow (contract TX-13).
            self.look(Until::Answer);
        }
        while !self.thread().refused {
            let rest = exchange.write.get(exchange.write_consumed..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            let (word, command) = match stream::first(rest) {
                Ok(found) => found,
                Err(BadCommand::Truncated) => return refused(EFAULT),
                Err(BadCommand::Unsupported(_)) => return refused(EINVAL),
            };
            self.bell().count(of_command(word.0));
            if let Some(trace) = self.process.traced() {
                trace.command(word.0);
            }
            let len = size_of::<CommandWord>() + word.payload_len();
            let behind = rest.get(len..).unwrap_or_default();
            match command {
                Command::Transaction(data, buffers_size) => {
                    let payload = &exchange.payload;
                    Sending { thread: self, data: &data, buffers_size, payload, behind }.call()?;
                }
                Command::Reply(data, buffers_size) => {
                    let payload = &exchange.payload;
                    Sending { thread: self, data: &data, buffers_size, payload, behind }.reply()?;
                }
                Command::FreeBuffer(address) => self.free_buffer(address)?,
                Command::RegisterLooper | Command::EnterLooper | Command::ExitLooper => {
                    self.become_looper(command);
                }
                other => self.obey(other)?,
            }
            exchange.write_consumed += len;
        }
        Ok(())
    }

    /// Executes a command that is the broker's to carry out.
    fn obey(&mut self, command: Command) -> io::Result<()> {
        let slot = self.slot;
        let looper = self.state.core.is_looper(slot);
        let request = match command {
            Command::Count(word, handle) => {
                if self.state.core.hold_count(word.0, handle.0) {
                    return Ok(());
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
                Request::ClearDeath { handle: handle.0, cookie: cookie.0, looper }
            }
            Command::DeathDone(cookie) => Request::DeathDone { cookie: cookie.0, looper },
            Command::RequestFreeze(handle, cookie) => {
                Request::RequestFreeze { handle: handle.0, cookie: cookie.0 }
            }
            Command::ClearFreeze(handle, cookie) => {
                Request::ClearFreeze { handle: handle.0, cookie: cookie.0 }
            }
            Command::FreezeDone(cookie) => Request::FreezeDone { cookie: cookie.0 },
            // `write` executes all others.
            _ => return refused(EINVAL),
        };
        let answer = self.ask(Pending::Plain, &request, &[])?;
        if answer.errno == 0 { Ok(()) } else { refused(answer.errno) }
    }

    /// Executes one of the three commands about the looper pool (contract LP-03 to LP-06).
    fn become_looper(&mut self, command: Command) {
        let slot = self.slot;
        let bits = self.state.core.become_looper(slot, command);
        self.process.show_pool(&self.state.core.pool);
        self.bell().set_looper(bits);
    }

    /// Executes `BC_FREE_BUFFER`; ignores a wrong address (contract BUF-05).
    fn free_buffer(&mut self, address: BufferAddress) -> io::Result<()> {
        let process = self.process;
        if let Some(trace) = process.traced()
            && self.given_back.is_none()
        {
            trace.release(address.0);
        }
        // The broker takes this buffer back with a reply: it is out of the map, and its address may be reused
        // already.
        let given_back = self.given_back.as_ref();
        let behind_reply = given_back.is_some_and(|given_back| given_back.address == address.0);
        let placed = process.arena().filter(|_| !behind_reply).and_then(|arena| {
            let offset = arena.offset_of(address.0)?;
            Some((arena, offset, self.state.placements.delivered(offset)?))
        });
        let Some((arena, offset, (len, Lent { clear, node }))) = placed else {
            return self.free_by_broker(address);
        };
        if clear {
            arena.zero(offset, len);
        }
        self.state.free_placed(process, offset);
        if let Some(pin) = node {
            self.state.core.unpin(pin);
        }
        Ok(())
    }

    /// Executes `BC_FREE_BUFFER` for a buffer that the broker filled.
    fn free_by_broker(&mut self, address: BufferAddress) -> io::Result<()> {
        let process = self.process;
        if let Some(given_back) = self.given_back.take_if(|given_back| given_back.address == address.0) {
            if let (Some(trace), Some(buffer)) = (process.traced(), given_back.traced) {
                trace.buffer(Fate::Released, buffer);
            }
            self.close_descriptors(given_back.buffer);
            return Ok(());
        }
        let Some(buffer) = self.state.buffers.remove(address.0) else { return Ok(()) };
        let offset = buffer.offset;
        self.close_descriptors(buffer);
        self.ask(Pending::Plain, &Request::FreeBuffer { offset }, &[]).map(drop)
    }

    fn close_descriptors(&mut self, buffer: super::delivered::Buffer) {
        if let Caller::There(program, thread) = self.process.caller(self.who) {
            buffer.installed.iter().for_each(|number| program.close(thread, *number));
        }
        if buffer.close_descriptors() {
            self.process.set_need_return(self.slot, true);
        }
    }
}
