//! Ends of threads and processes, and their notifications.
//! Facts: contract DTH-01 to DTH-08, EXT-01, EXT-05, TX-10, TX-11, TX-18, TX-19.

use super::{Frame, Id, NOBODYS, Proc, Reference, Refusal, Returned, Thread, Work};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Armed,
    /// The notification is queued.
    Queued,
    /// The notification was read.
    Told,
    /// The notification was acknowledged.
    Over,
    /// Only the answer to a CLEAR is left.
    Cleared,
}

/// A registration.
#[derive(Clone, Debug)]
pub(super) struct Death {
    pub(super) cookie: u64,
    state: State,
    /// A CLEAR came between death and acknowledgement (contract DTH-05).
    clearing: bool,
}

impl Reference {
    pub(super) fn cookie_of(&self, proc: usize, handle: u32) -> u64 {
        let death = self.procs[proc].refs.get(&handle).and_then(|held| held.death);
        death.map_or(NOBODYS, |death| self.deaths[&death].cookie)
    }

    pub(super) fn watch(&mut self, proc: usize, handle: u32, cookie: u64) {
        let Some(held) = self.procs[proc].refs.get(&handle).copied().filter(|held| held.death.is_none())
        else {
            return;
        };
        let id = self.id();
        let dead = self.node(held.node).owner.is_none();
        let state = if dead { State::Queued } else { State::Armed };
        self.deaths.insert(id, Death { cookie, state, clearing: false });
        let Proc { refs, queue, .. } = &mut self.procs[proc];
        refs.get_mut(&handle).expect("just seen").death = Some(id);
        if dead {
            queue.push_back(Work::Death(id));
        }
    }

    pub(super) fn unwatch(&mut self, proc: usize, thread: usize, handle: u32, cookie: u64) {
        let Some(held) = self.procs[proc].refs.get_mut(&handle) else { return };
        let Some(id) = held.death.filter(|id| self.deaths[id].cookie == cookie) else { return };
        held.death = None;
        let death = self.deaths.get_mut(&id).expect("registered");
        match death.state {
            State::Queued | State::Told => death.clearing = true,
            _ => self.answer_clear(proc, thread, id),
        }
    }

    /// Clears a registration (contract DTH-06).
    fn answer_clear(&mut self, proc: usize, thread: usize, id: Id) {
        self.deaths.get_mut(&id).expect("registered").state = State::Cleared;
        let Proc { threads, queue, .. } = &mut self.procs[proc];
        match threads[thread].looper {
            true => threads[thread].push(Work::Death(id)),
            false => queue.push_back(Work::Death(id)),
        }
    }

    pub(super) fn death_done(&mut self, proc: usize, thread: usize, cookie: u64) {
        let told = &self.procs[proc].told;
        let Some(at) = told.iter().position(|id| self.deaths[id].cookie == cookie) else { return };
        let id = self.procs[proc].told.remove(at);
        let death = self.deaths.get_mut(&id).expect("told");
        death.state = State::Over;
        if death.clearing {
            self.answer_clear(proc, thread, id);
        }
    }

    /// Whether this return ends its read.
    pub(super) fn tell_death(&mut self, proc: usize, id: Id, returns: &mut Vec<Returned>) -> bool {
        let death = self.deaths.get_mut(&id).expect("queued");
        if death.state == State::Cleared {
            returns.push(Returned::ClearDone(death.cookie));
            self.deaths.remove(&id);
            return false;
        }
        death.state = State::Told;
        returns.push(Returned::DeadBinder(death.cookie));
        self.procs[proc].told.push(id);
        true
    }

    /// Removes the registration of a handle that ends, in any state (contract DTH-07).
    pub(super) fn drop_death(&mut self, proc: usize, id: Id) {
        self.procs[proc].queue.retain(|work| *work != Work::Death(id));
        self.procs[proc].told.retain(|told| *told != id);
        self.deaths.remove(&id);
    }

    /// `BINDER_THREAD_EXIT`.
    pub(super) fn exit(&mut self, proc: usize, thread: usize) {
        let gone = std::mem::take(&mut self.procs[proc].threads[thread]);
        let Thread { todo, stack, .. } = gone;
        for frame in &stack {
            if let Frame::Calling(call) = frame {
                self.abandon(*call);
            }
        }
        // The embedded driver notifies all callers at once, where the kernel's drivers let callers further out in a
        // chain of calls wait for its end (contract TX-19).
        for frame in stack.iter().rev() {
            if let Frame::Serving(call) = frame {
                self.no_reply(*call, Refusal::Dead);
            }
        }
        // A kernel keeps the buffer of an unread reply until the process ends; this driver frees it.
        for work in &todo {
            if let Work::Reply(reply) = work {
                let objects = self.take_reply(*reply);
                self.drop_objects(proc, &objects);
            }
        }
        self.cancel(todo);
    }

    fn cancel(&mut self, todo: impl IntoIterator<Item = Work>) {
        for work in todo {
            match work {
                Work::Call(call) if self.is_sync(call) => self.no_reply(call, Refusal::Dead),
                _ => {}
            }
        }
    }

    /// Ends a process, in the order of contract EXT-05.
    pub(super) fn close(&mut self, proc: usize) {
        let manager = self.procs[proc].nodes.get(&0).copied();
        if manager.is_some() && self.manager == manager {
            self.manager = None;
        }
        for thread in 0..self.procs[proc].threads.len() {
            self.exit(proc, thread);
        }
        let nodes = std::mem::take(&mut self.procs[proc].nodes);
        for node in nodes.into_values() {
            self.announce(node);
            self.orphan(node);
        }
        for handle in self.procs[proc].refs.keys().copied().collect::<Vec<_>>() {
            self.forget(proc, handle);
        }
        let queue = std::mem::take(&mut self.procs[proc].queue);
        self.cancel(queue);
        self.procs[proc] = Proc::default();
    }

    fn announce(&mut self, node: Id) {
        for Proc { refs, queue, .. } in &mut self.procs {
            for held in refs.values().filter(|held| held.node == node) {
                let Some(id) = held.death else { continue };
                self.deaths.get_mut(&id).expect("registered").state = State::Queued;
                queue.push_back(Work::Death(id));
            }
        }
    }
}
