//! Assigns work to threads.
//! Facts: contract LP-08, TX-06, TX-15, TX-19; `binder_select_thread_ilocked`, Linux 7.2.

use abi::codes::tf;

use super::{Core, Todo};
use crate::rpc::protocol::ThreadKey;

impl Core {
    /// Marks a thread as taking in new work. `takes_any`: it would take any of it.
    pub(crate) fn begin_intake(&mut self, slot: u32, takes_any: bool) {
        self.seeker = takes_any.then_some(slot);
    }

    /// Ends that: everything new is taken in.
    pub(crate) fn end_intake(&mut self) {
        self.seeker = None;
    }

    /// Queues an item for one thread and wakes it. A call that the thread may not read yet is set aside.
    pub(crate) fn give(&mut self, slot: u32, todo: Todo) {
        let thread = self.thread(slot);
        if todo.is_call() && thread.is_engaged() {
            return thread.early.push(todo);
        }
        thread.push(todo);
        self.withdraw(slot);
        self.changed(slot, true);
    }

    /// Gives an item to the thread that became idle last, else to the process's queue (contract LP-08).
    pub(crate) fn route(&mut self, todo: Todo) {
        if let Some(slot) = self.idle.last().copied() {
            return self.give(slot, todo);
        }
        // The thread that takes work in would take this item from the queue at once. With the item it is not
        // free any more.
        if self.queue.is_empty()
            && let Some(slot) = self.seeker
            && let Some(thread) = self.threads.get_mut(slot)
            && thread.is_free()
        {
            // The thread is inside the driver and shows its depth itself.
            return thread.push(todo);
        }
        self.queue.push_back(todo);
        self.queue_changed = true;
        for at in 0..self.pollers.len() {
            self.changed(self.pollers[at], true);
        }
    }

    /// Gives a call to the thread that waits further out in its chain, else to a free thread. The waiting
    /// thread may meanwhile serve another call of its chain, whose caller died (contract TX-19).
    pub(crate) fn route_call(&mut self, to: Option<ThreadKey>, todo: Todo) {
        let waits = |slot: &u32| self.threads.get(*slot).is_some_and(|thread| thread.is_calling());
        match to.and_then(|key| self.slot_of(key)).filter(waits) {
            Some(slot) => self.give(slot, todo),
            None => self.route(todo),
        }
    }

    /// Routes the calls again that were set aside for a thread.
    pub(crate) fn release_early(&mut self, slot: u32) {
        if !self.thread(slot).early.is_empty() {
            self.release_all_early(slot);
        }
    }

    fn release_all_early(&mut self, slot: u32) {
        let thread = self.thread(slot);
        let key = thread.key;
        for todo in std::mem::take(&mut thread.early) {
            self.route_call(Some(key), todo);
        }
    }

    /// Takes the next item for a thread to read: its own first, then the process's if the thread may take
    /// that.
    pub(crate) fn take(&mut self, slot: u32, takes_any: bool) -> Option<Todo> {
        let own = self.thread(slot).pop();
        if own.is_some() || !takes_any || self.queue.is_empty() {
            return own;
        }
        self.queue_changed = true;
        self.queue.pop_front()
    }

    /// Whether this thread has a reason to wake.
    pub(crate) fn has_work(&mut self, slot: u32, takes_any: bool) -> bool {
        self.thread(slot).urgent || takes_any && !self.queue.is_empty()
    }

    /// Number of transactions in the process's queue, and how many of them the broker cannot count: oneway
    /// calls and calls in call slots (contract FRZ-03).
    pub(crate) fn queued(&self) -> (u32, u32) {
        let (mut calls, mut uncounted) = (0, 0);
        for todo in self.queue.iter().filter(|todo| todo.is_transaction()) {
            calls += 1;
            uncounted += u32::from(!matches!(todo, Todo::Call(call) if call.flags & tf::ONE_WAY == 0));
        }
        (calls, uncounted)
    }
}
