//! Executes a stream of commands until one is refused.
//! Not here: decoding (`abi::stream`), transactions (`call`, `serve`), buffers (`free`).
//! Facts: contract WR-01, WR-11 to WR-13, LP-05, LP-06, BUF-05, DTH-01 to DTH-06; `binder_thread_write`,
//! Linux 7.2.

use std::io;

use abi::CommandWord;
use abi::stream::{self, BadCommand, Command};

use sys::errno::{EFAULT, EINVAL};

use super::active_thread::ActiveThread;
use super::core::thread::{Frame, Pending};
use super::free::free_buffer;
use super::send::Sending;
use super::wait::Until;
use crate::rpc::protocol::Request;
use crate::shm::doorbell::of_command;
use driver::connection::Exchange;

fn refused<T>(errno: i32) -> io::Result<T> {
    Err(io::Error::from_raw_os_error(errno))
}

/// Executes the write part of a `BINDER_WRITE_READ`. A command that is refused as a whole counts as not
/// taken (contract WR-11); a transaction that fails ends the part without an error (WR-12).
///
/// # Errors
/// Those of the commands. `ECONNRESET`: the broker is gone.
pub(super) fn write(thread: &mut ActiveThread<'_>, exchange: &mut Exchange<'_>) -> io::Result<()> {
    if thread.process.has_ended() && exchange.write.len() > exchange.write_consumed {
        return Err(thread.process.line.gone());
    }
    if matches!(thread.thread().stack.last(), Some(Frame::Calling(_))) {
        // A call with a reply is over, read or not: another may follow (contract TX-13).
        thread.look(Until::Answer);
    }
    while !thread.thread().refused {
        let rest = exchange.write.get(exchange.write_consumed..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
        let (word, command) = match stream::first(rest) {
            Ok(found) => found,
            Err(BadCommand::Truncated) => return refused(EFAULT),
            Err(BadCommand::Unsupported(_)) => return refused(EINVAL),
        };
        thread.bell().count(of_command(word.0));
        if let Some(trace) = thread.process.traced() {
            trace.command(word.0);
        }
        let len = size_of::<CommandWord>() + word.payload_len();
        let behind = rest.get(len..).unwrap_or_default();
        match command {
            Command::Transaction(data, buffers_size) => {
                let payload = &exchange.payload;
                Sending { thread, data: &data, buffers_size, payload, behind }.call()?;
            }
            Command::Reply(data, buffers_size) => {
                let payload = &exchange.payload;
                Sending { thread, data: &data, buffers_size, payload, behind }.reply()?;
            }
            Command::FreeBuffer(address) => free_buffer(thread, address)?,
            Command::RegisterLooper | Command::EnterLooper | Command::ExitLooper => {
                become_looper(thread, command);
            }
            other => obey(thread, other)?,
        }
        exchange.write_consumed += len;
    }
    Ok(())
}

/// Executes a command that is the broker's to carry out.
fn obey(thread: &mut ActiveThread<'_>, command: Command) -> io::Result<()> {
    let slot = thread.slot;
    let looper = thread.state.core.is_looper(slot);
    let request = match command {
        Command::Count(word, handle) => {
            if thread.state.core.hold_count(word.0, handle.0) {
                return Ok(());
            }
            Request::Count { command: word.0, handle: handle.0 }
        }
        Command::CountDone(word, ptr, cookie) => {
            Request::CountDone { command: word.0, ptr: ptr.0, cookie: cookie.0 }
        }
        Command::RequestDeath(handle, cookie) => Request::RequestDeath { handle: handle.0, cookie: cookie.0 },
        Command::ClearDeath(handle, cookie) => {
            Request::ClearDeath { handle: handle.0, cookie: cookie.0, looper }
        }
        Command::DeathDone(cookie) => Request::DeathDone { cookie: cookie.0, looper },
        Command::RequestFreeze(handle, cookie) => {
            Request::RequestFreeze { handle: handle.0, cookie: cookie.0 }
        }
        Command::ClearFreeze(handle, cookie) => Request::ClearFreeze { handle: handle.0, cookie: cookie.0 },
        Command::FreezeDone(cookie) => Request::FreezeDone { cookie: cookie.0 },
        // `write` executes all others.
        _ => return refused(EINVAL),
    };
    let answer = thread.ask(Pending::Plain, &request, &[])?;
    if answer.errno == 0 { Ok(()) } else { refused(answer.errno) }
}

/// Executes one of the three commands about the looper pool (contract LP-03 to LP-06).
fn become_looper(thread: &mut ActiveThread<'_>, command: Command) {
    let slot = thread.slot;
    let bits = thread.state.core.become_looper(slot, command);
    thread.process.show_pool(&thread.state.core.pool);
    thread.bell().set_looper(bits);
}
