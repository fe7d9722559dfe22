//! Command of a step in the present state; and steps that are left out because the model does not know their result.

use super::{Command, Frame, NOBODYS, Reference, Thread, Work};
use crate::steps::{Op, Step};

impl Reference {
    /// Command of a step in the present state.
    pub(crate) fn resolve(&self, number: u32, step: &Step) -> Command {
        let proc = &self.procs[step.proc];
        let (word, strong) = match step.op {
            Op::Acknowledge => proc.owed.front().copied().unwrap_or((99, true)),
            Op::Watch(_) => (1000 + u64::from(number), false),
            Op::Unwatch(handle) => (self.cookie_of(step.proc, handle), false),
            Op::DeathDone => (proc.told.first().map_or(NOBODYS, |death| self.deaths[death].cookie), false),
            _ => (0, false),
        };
        let left_out = match step.op {
            Op::Free(at) => at >= proc.buffers.len(),
            Op::Count { handle, up: false, .. } => self.is_in_a_call_slot(step.proc, handle),
            Op::ThreadExit => self.may_not_exit(step),
            Op::Close => self.is_amid_a_chain(step.proc),
            _ => false,
        };
        Command { op: if left_out { Op::Read } else { step.op.clone() }, word, strong }
    }

    /// Whether a thread waits while others wait for it. The embedded driver notifies those at once of its end
    /// (contract TX-19), but a callee further in still takes them for waiting (TX-06).
    fn is_amid_a_chain(&self, proc: usize) -> bool {
        let amid = |thread: &Thread| {
            let serves = thread.stack.iter().any(|frame| matches!(frame, Frame::Serving(_)));
            serves && thread.stack.iter().any(|frame| matches!(frame, Frame::Calling(_)))
        };
        self.procs[proc].threads.iter().any(amid)
    }

    /// While a call is in a call slot, the embedded driver holds back what could end its handle.
    fn is_in_a_call_slot(&self, proc: usize, handle: u32) -> bool {
        let Some(node) = self.held_by(proc, handle, false) else { return false };
        let frames = self.procs[proc].threads.iter().flat_map(|thread| &thread.stack);
        let mut calls = frames.filter_map(|frame| match frame {
            Frame::Calling(call) => self.calls.get(call),
            Frame::Serving(_) => None,
        });
        self.call_slots && calls.any(|call| call.node == node)
    }

    /// Notifications of a thread about nodes would be lost (contract REF-14); and if a waiting thread exits, the
    /// embedded driver still counts the objects of its reply for a moment.
    fn may_not_exit(&self, step: &Step) -> bool {
        let thread = &self.procs[step.proc].threads[step.thread];
        let waits = thread.stack.iter().any(|frame| matches!(frame, Frame::Calling(_)));
        waits || thread.todo.iter().any(|work| matches!(work, Work::Node(_)))
    }
}
