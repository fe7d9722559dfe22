//! Calls, oneway calls and replies, from the command to the buffer's end.
//! Facts: contract TX-01 to TX-19, OW-01 to OW-05, CTX-04, CTX-05, BUF-05, BUF-06.

use super::{Buffer, Frame, Id, Reference, Refusal, Returned, Work};
use crate::steps::Object;

#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The waiting thread, while it exists.
    from: Option<(usize, usize)>,
    /// The call that the sender served at that time.
    parent: Option<Id>,
    pub(super) node: Id,
    oneway: bool,
    number: u32,
    objects: Vec<Object>,
}

impl Reference {
    pub(super) fn call(
        &mut self,
        proc: usize,
        thread: usize,
        number: u32,
        handle: u32,
        oneway: bool,
        objects: &[Object],
    ) {
        let me = &self.procs[proc].threads[thread];
        let waiting = matches!(me.stack.last(), Some(Frame::Calling(_)));
        let unread = matches!(me.todo.front(), Some(Work::Call(_) | Work::Reply(_)));
        let (node, to) = match self.target(proc, handle) {
            // The target comes first (contract TX-13).
            Err(why) => return self.refuse(proc, thread, why),
            Ok(_) if !oneway && (waiting || unread) => {
                return self.refuse(proc, thread, Refusal::Failed);
            }
            Ok(target) => target,
        };
        self.hold(node, true);
        let Some(objects) = self.translate((proc, thread), to, objects) else {
            self.unhold(node, true);
            return self.refuse(proc, thread, Refusal::Failed);
        };
        let id = self.id();
        let parent = match self.procs[proc].threads[thread].stack.last() {
            Some(Frame::Serving(call)) if !oneway => Some(*call),
            _ => None,
        };
        let waits = self.waits_further_out(parent, to);
        let from = (!oneway).then_some((proc, thread));
        self.calls.insert(id, Call { from, parent, node, oneway, number, objects });
        let me = &mut self.procs[proc].threads[thread];
        if oneway {
            me.push(Work::Complete);
            let node = self.node(node);
            if std::mem::replace(&mut node.busy, true) {
                node.waiting.push_back(id);
            } else {
                self.procs[to].queue.push_back(Work::Call(id));
            }
        } else {
            // Deferred (contract WR-15).
            me.todo.push_back(Work::Complete);
            me.stack.push(Frame::Calling(id));
            match waits {
                Some(thread) => self.procs[to].threads[thread].push(Work::Call(id)),
                None => self.procs[to].queue.push_back(Work::Call(id)),
            }
        }
    }

    fn target(&mut self, proc: usize, handle: u32) -> Result<(Id, usize), Refusal> {
        if handle == 0 {
            // All players share one OS process (contract CTX-05).
            return Err(if self.manager.is_some() { Refusal::Failed } else { Refusal::Dead });
        }
        let node = self.held_by(proc, handle, true).ok_or(Refusal::Failed)?;
        let owner = self.node(node).owner.ok_or(Refusal::Dead)?;
        Ok((node, owner))
    }

    /// The thread of a process that waits in a chain of calls (contract TX-06).
    fn waits_further_out(&self, mut call: Option<Id>, to: usize) -> Option<usize> {
        while let Some(link) = call.and_then(|id| self.calls.get(&id)) {
            match link.from {
                Some((proc, thread)) if proc == to => return Some(thread),
                _ => call = link.parent,
            }
        }
        None
    }

    pub(super) fn refuse(&mut self, proc: usize, thread: usize, why: Refusal) {
        self.procs[proc].threads[thread].push(Work::Refusal(why));
    }

    pub(super) fn reply(&mut self, proc: usize, thread: usize, number: u32, objects: &[Object]) {
        let me = &mut self.procs[proc].threads[thread];
        let Some(Frame::Serving(answered)) = me.stack.last().copied() else {
            return self.refuse(proc, thread, Refusal::Failed);
        };
        me.stack.pop();
        let Some(caller) = self.calls[&answered].from else {
            self.no_reply(answered, Refusal::Dead);
            return self.refuse(proc, thread, Refusal::Complete);
        };
        let Some(objects) = self.translate((proc, thread), caller.0, objects) else {
            self.no_reply(answered, Refusal::Failed);
            return self.refuse(proc, thread, Refusal::Complete);
        };
        let id = self.id();
        let node = self.calls[&answered].node;
        self.calls.insert(id, Call { from: None, parent: None, node, oneway: false, number, objects });
        self.pop_caller(answered, caller);
        self.procs[caller.0].threads[caller.1].push(Work::Reply(id));
        self.procs[proc].threads[thread].push(Work::Complete);
    }

    fn pop_caller(&mut self, call: Id, (proc, thread): (usize, usize)) {
        let stack = &mut self.procs[proc].threads[thread].stack;
        stack.retain(|frame| *frame != Frame::Calling(call));
        self.calls.remove(&call);
    }

    /// Ends a call without a reply; nobody is notified if its caller has ended (contract TX-18).
    pub(super) fn no_reply(&mut self, call: Id, why: Refusal) {
        match self.calls.get(&call).and_then(|call| call.from) {
            Some(caller) => {
                self.pop_caller(call, caller);
                self.procs[caller.0].threads[caller.1].push(Work::NoReply(why));
            }
            None => drop(self.calls.remove(&call)),
        }
    }

    pub(super) fn deliver(&mut self, proc: usize, thread: usize, id: Id) -> Returned {
        let Call { node, oneway, number, objects, .. } = self.calls[&id].clone();
        if !oneway {
            self.procs[proc].threads[thread].stack.push(Frame::Serving(id));
        }
        self.procs[proc].buffers.push(Buffer { node: Some(node), oneway, objects: objects.clone() });
        Returned::Transaction { ptr: self.node(node).ptr, oneway, number, objects }
    }

    pub(super) fn deliver_reply(&mut self, proc: usize, id: Id) -> Returned {
        let Call { number, objects, .. } = self.calls.remove(&id).expect("queued once");
        self.procs[proc].buffers.push(Buffer { node: None, oneway: false, objects: objects.clone() });
        Returned::Reply { number, objects }
    }

    /// Drops a reply that nobody will read.
    pub(super) fn take_reply(&mut self, reply: Id) -> Vec<Object> {
        self.calls.remove(&reply).map_or_else(Vec::new, |reply| reply.objects)
    }

    pub(super) fn free(&mut self, proc: usize, at: usize) {
        let Buffer { node, oneway, objects } = self.procs[proc].buffers.remove(at);
        if let Some(id) = node {
            if oneway {
                let node = self.node(id);
                match node.waiting.pop_front() {
                    Some(next) => self.procs[proc].queue.push_back(Work::Call(next)),
                    None => node.busy = false,
                }
            }
            self.unhold(id, true);
        }
        self.drop_objects(proc, &objects);
    }

    /// Whether a call awaits an answer.
    pub(super) fn is_sync(&self, call: Id) -> bool {
        self.calls.get(&call).is_some_and(|call| !call.oneway)
    }

    /// Removes a waiting thread that ended.
    pub(super) fn abandon(&mut self, call: Id) {
        if let Some(call) = self.calls.get_mut(&call) {
            call.from = None;
        }
    }
}
