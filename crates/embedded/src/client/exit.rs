//! The end of a thread (`BINDER_THREAD_EXIT`).
//! Facts: contract EXT-01, OW-14, REF-14.

use super::active_thread::ActiveThread;
use super::channel::NOBODY;
use super::core::Todo;
use super::core::thread::{Awaited, Frame, Served};
use super::wait::Until;
use crate::rpc::protocol::Request;

/// Ends the thread's part: fails its callers' calls and drops its queued work.
pub(super) fn exit(thread: &mut ActiveThread<'_>) {
    let (process, slot) = (thread.process, thread.slot);
    thread.look(Until::Answer);
    let Some(mut gone) = thread.state.core.remove_thread(slot) else { return };
    if std::mem::take(thread.own()).pollable.is_some() {
        thread.state.pollables -= 1;
        // Its helper thread may sleep on the bell, which the slot's next thread will use.
        process.bell(slot).wake();
    }
    if process.bells.listener() == Some(slot) {
        process.bells.set_listener(None);
    }
    process.bell(slot).move_out();
    for frame in std::mem::take(&mut gone.stack) {
        match frame {
            Frame::Serving(Served::Broker(call)) => {
                process.send(&Request::Abandon { transaction: call.transaction });
            }
            Frame::Serving(Served::CallSlot(call)) => call.channel.fail(&call.request, NOBODY),
            // The serving thread is not told; its reply is dropped on arrival.
            Frame::Calling(Awaited::CallSlot(ticket)) => thread.state.disown(ticket),
            Frame::Calling(Awaited::Broker(_)) => {}
        }
    }
    gone.into_unread().for_each(|todo| drop_unread(thread, todo));
}

fn drop_unread(thread: &mut ActiveThread<'_>, todo: Todo) {
    let process = thread.process;
    match todo {
        Todo::Call(delivery) => {
            process.send(&Request::Abandon { transaction: delivery.transaction });
            // No other thread knows the buffer's address (the C driver leaks it, contract OW-14).
            process.send(&Request::FreeBuffer { offset: delivery.buffer });
        }
        Todo::SlotCall(call) => {
            call.channel.fail(&call.request, NOBODY);
            thread.state.core.unpin(call.node.pin);
        }
        Todo::Reply(reply) => process.send(&Request::FreeBuffer { offset: reply.buffer }),
        Todo::SlotReply(reply) => thread.state.disown(reply.ticket),
        // Dropped with the thread, as in the C driver (contract REF-14).
        Todo::Work(_) | Todo::Word(_) | Todo::Refusal(_) | Todo::Small(..) => {}
    }
}
