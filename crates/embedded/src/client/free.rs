//! Gives buffers of the receiving area back.
//! Not here: where buffers are (`placements`, `delivered`), what the broker does (`broker::core`).
//! Facts: contract BUF-05, BUF-07, OBJ-13.

use std::io;

use abi::BufferAddress;

use super::active_thread::ActiveThread;
use super::core::thread::Pending;
use super::delivered::Buffer;
use super::placements::Lent;
use crate::program::Caller;
use crate::rpc::protocol::Request;
use crate::trace_events::Fate;

/// Executes `BC_FREE_BUFFER`; ignores a wrong address (contract BUF-05).
pub(super) fn free_buffer(thread: &mut ActiveThread<'_>, address: BufferAddress) -> io::Result<()> {
    let process = thread.process;
    if let Some(trace) = process.traced()
        && thread.given_back.is_none()
    {
        trace.release(address.0);
    }
    // The broker takes this buffer back with a reply: it is out of the map, and its address may be reused
    // already.
    let given_back = thread.given_back.as_ref();
    let behind_reply = given_back.is_some_and(|given_back| given_back.address == address.0);
    // Also after the area was given up: the buffer holds its node.
    let placed = process.arena.get().filter(|_| !behind_reply).and_then(|arena| {
        let offset = arena.offset_of(address.0)?;
        Some((arena, offset, thread.state.placements.delivered(offset)?))
    });
    let Some((arena, offset, (len, Lent { clear, node }))) = placed else {
        return free_by_broker(thread, address);
    };
    if clear {
        arena.zero(offset, len);
    }
    thread.state.free_placed(process, offset);
    if let Some(pin) = node {
        thread.state.core.unpin(pin);
    }
    Ok(())
}

/// Executes `BC_FREE_BUFFER` for a buffer that the broker filled.
fn free_by_broker(thread: &mut ActiveThread<'_>, address: BufferAddress) -> io::Result<()> {
    let process = thread.process;
    if let Some(given_back) = thread.given_back.take_if(|given_back| given_back.address == address.0) {
        if let (Some(trace), Some(buffer)) = (process.traced(), given_back.traced) {
            trace.buffer(Fate::Released, buffer);
        }
        close_descriptors(thread, given_back.buffer);
        return Ok(());
    }
    let Some(buffer) = thread.state.buffers.remove(address.0) else { return Ok(()) };
    let offset = buffer.offset;
    close_descriptors(thread, buffer);
    thread.ask(Pending::Plain, &Request::FreeBuffer { offset }, &[]).map(drop)
}

fn close_descriptors(thread: &mut ActiveThread<'_>, buffer: Buffer) {
    if let Caller::There(program, thread) = thread.process.caller(thread.who) {
        buffer.installed.iter().for_each(|number| program.close(thread, *number));
    }
    if buffer.close_descriptors() {
        thread.process.set_need_return(thread.slot, true);
    }
}
