//! Room: the command that a step means, by what happened before it; and the steps that are left out
//! because the model does not know what comes of them.

use super::{Command, Frame, NOBODYS, Reference, Thread, Work};
use crate::steps::{Op, Step};

impl Reference {
    /// The command that a step means now.
    pub(crate) fn resolve(&self, number: u32, step: &Step) -> Command {
        let proc = &self.procs[step.proc];
        let count = |handle, strong, up| Command::Count { handle, strong, up };
        match step.op.clone() {
            Op::Read => Command::None,
            Op::Call { handle, oneway, objects } => Command::Call { handle, oneway, objects },
            Op::Reply { objects } => Command::Reply { objects },
            Op::Free(at) if at < proc.buffers.len() => Command::Free(at),
            Op::Free(_) => Command::None,
            Op::Release(handle) | Op::Decrefs(handle) if self.is_in_a_lane(step.proc, handle) => {
                Command::None
            }
            Op::Acquire(handle) => count(handle, true, true),
            Op::Release(handle) => count(handle, true, false),
            Op::Increfs(handle) => count(handle, false, true),
            Op::Decrefs(handle) => count(handle, false, false),
            Op::Acknowledge => {
                let (ptr, strong) = proc.owed.front().copied().unwrap_or((99, true));
                Command::Acknowledge { ptr, strong }
            }
            Op::Watch(handle) => Command::Watch { handle, cookie: 1000 + u64::from(number) },
            Op::Unwatch(handle) => Command::Unwatch { handle, cookie: self.cookie_of(step.proc, handle) },
            Op::DeathDone => {
                let cookie = proc.told.first().map_or(NOBODYS, |death| self.deaths[death].cookie);
                Command::DeathDone { cookie }
            }
            Op::EnterLooper => Command::EnterLooper,
            Op::BecomeManager => Command::BecomeManager,
            Op::ThreadExit if self.may_not_exit(step) => Command::None,
            Op::ThreadExit => Command::ThreadExit,
            Op::Close if self.is_amid_a_chain(step.proc) => Command::None,
            Op::Close => Command::Close,
        }
    }

    /// Whether a thread waits while others wait for it. The embedded driver tells those at once of its
    /// end (contract TX-19), but whoever is further in still takes them for waiting (TX-06).
    fn is_amid_a_chain(&self, proc: usize) -> bool {
        let amid = |thread: &Thread| {
            let serves = thread.stack.iter().any(|frame| matches!(frame, Frame::Serving(_)));
            serves && thread.stack.iter().any(|frame| matches!(frame, Frame::Calling(_)))
        };
        self.procs[proc].threads.iter().any(amid)
    }

    /// While a call is in a lane, the embedded driver holds back what could end its handle.
    fn is_in_a_lane(&self, proc: usize, handle: u32) -> bool {
        let Some(node) = self.held_by(proc, handle, false) else { return false };
        let frames = self.procs[proc].threads.iter().flat_map(|thread| &thread.stack);
        let mut calls = frames.filter_map(|frame| match frame {
            Frame::Calling(call) => self.calls.get(call),
            Frame::Serving(_) => None,
        });
        self.lanes && calls.any(|call| call.node == node)
    }

    /// What a thread was to be told of nodes would be lost (contract REF-14); and where a thread exits
    /// that waits, the embedded driver still counts the objects of its reply, for a moment.
    fn may_not_exit(&self, step: &Step) -> bool {
        let thread = &self.procs[step.proc].threads[step.thread];
        let waits = thread.stack.iter().any(|frame| matches!(frame, Frame::Calling(_)));
        waits || thread.todo.iter().any(|work| matches!(work, Work::Node(_)))
    }
}
