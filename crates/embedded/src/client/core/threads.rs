//! The table of threads, the idle threads and the pool of loopers.
//! Not here: waiting (the shell's `wait`).
//! Facts: contract LP-01 to LP-08, POL-03; `binder_wait_for_work`, Linux 7.2.

use abi::stream::Command;

use super::thread::Thread;
use super::{Core, QuickMap};
use crate::rpc::protocol::ThreadKey;
use crate::shm::doorbell::SLOTS;

/// Looper state bits, as the state file prints them (contract DBG-01).
pub(crate) mod looper {
    pub(crate) const REGISTERED: u32 = 1;
    pub(crate) const ENTERED: u32 = 2;
    pub(crate) const EXITED: u32 = 4;
    pub(crate) const INVALID: u32 = 8;
    pub(crate) const POLL: u32 = 0x20;
}

/// The pool of loopers (contract LP-02 to LP-05).
#[derive(Debug, Default)]
pub(crate) struct LooperPool {
    pub(crate) max: u32,
    pub(crate) started: u32,
    pub(crate) requested: bool,
}

/// Threads by slot, each in its own allocation.
#[derive(Debug)]
pub(super) struct ThreadTable {
    by_slot: Vec<Option<Box<Thread>>>,
    by_tid: QuickMap<i32, u32>,
}

impl ThreadTable {
    pub(super) fn new() -> Self {
        Self { by_slot: Vec::new(), by_tid: QuickMap::default() }
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Thread> {
        self.by_slot.get(slot as usize)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Thread> {
        self.by_slot.get_mut(slot as usize)?.as_deref_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Thread> {
        self.by_slot.iter().flatten().map(|thread| &**thread)
    }
}

/// The table of threads.
impl Core {
    /// The slot of a thread; `None` if its slot has another thread now.
    pub(crate) fn slot_of(&self, key: ThreadKey) -> Option<u32> {
        (self.threads.get(key.slot)?.key == key).then_some(key.slot)
    }

    /// The slot of a thread by its kernel thread id.
    pub(crate) fn slot_of_tid(&self, tid: i32) -> Option<u32> {
        self.threads.by_tid.get(&tid).copied()
    }

    /// A vacant slot; `None` if all are taken.
    pub(crate) fn vacant_slot(&self) -> Option<u32> {
        let slots = &self.threads.by_slot;
        let slot = slots.iter().position(Option::is_none).unwrap_or(slots.len()) as u32;
        (slot < SLOTS).then_some(slot)
    }

    /// Adds a thread to a vacant slot.
    pub(crate) fn add_thread(&mut self, key: ThreadKey, tid: i32) {
        let slots = &mut self.threads.by_slot;
        if slots.len() <= key.slot as usize {
            slots.resize_with(key.slot as usize + 1, || None);
        }
        slots[key.slot as usize] = Some(Box::new(Thread::new(key, tid)));
        self.threads.by_tid.insert(tid, key.slot);
    }

    /// Removes a thread.
    pub(crate) fn remove_thread(&mut self, slot: u32) -> Option<Thread> {
        self.withdraw(slot);
        let thread = self.threads.by_slot.get_mut(slot as usize)?.take()?;
        self.threads.by_tid.remove(&thread.tid);
        Some(*thread)
    }

    /// Number of transactions on the stack and in the queue of a thread; `None` for an empty slot.
    pub(crate) fn depth(&self, slot: u32) -> Option<u32> {
        Some(self.threads.get(slot)?.depth())
    }

    /// All slots with a thread.
    pub(crate) fn slots(&self) -> Vec<u32> {
        self.threads.iter().map(|thread| thread.key.slot).collect()
    }
}

/// Threads that wait for any work.
impl Core {
    /// Offers a thread for any work.
    pub(crate) fn offer(&mut self, slot: u32) {
        if !self.idle.contains(&slot) {
            self.idle.push(slot);
        }
    }

    /// Adds a thread that polls for any work.
    pub(crate) fn add_poller(&mut self, slot: u32) {
        if !self.pollers.contains(&slot) {
            self.pollers.push(slot);
        }
    }

    /// Withdraws an offer, because the thread got work or goes away.
    pub(crate) fn withdraw(&mut self, slot: u32) {
        for list in [&mut self.idle, &mut self.pollers] {
            // Most often the last one.
            if let Some(at) = list.iter().rposition(|other| *other == slot) {
                list.remove(at);
            }
        }
    }

    /// The thread that senders wake for new work: the one that became idle last, or one that polls.
    pub(crate) fn listener(&self) -> Option<u32> {
        self.idle.last().or(self.pollers.last()).copied()
    }

    /// The idle thread to wake because work is left in the queue.
    pub(crate) fn needed_idle_thread(&self) -> Option<u32> {
        if self.queue.is_empty() { None } else { self.idle.last().copied() }
    }
}

/// The pool of loopers.
impl Core {
    /// Executes one of the three commands about the pool; returns the thread's new bits (contract LP-03 to
    /// LP-06).
    pub(crate) fn become_looper(&mut self, slot: u32, command: Command) -> u32 {
        let requested = self.pool.requested;
        let thread = self.thread(slot);
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
            self.pool.requested = false;
            self.pool.started += 1;
        }
        bits
    }

    /// Whether a thread has joined the pool.
    pub(crate) fn is_looper(&mut self, slot: u32) -> bool {
        self.thread(slot).looper & (looper::REGISTERED | looper::ENTERED) != 0
    }

    /// Whether this thread is to request another looper, which it does once (contract LP-01, LP-02).
    pub(crate) fn request_looper(&mut self, slot: u32) -> bool {
        let LooperPool { max, started, requested } = self.pool;
        let wanted = !requested && started < max && self.idle.is_empty() && self.is_looper(slot);
        self.pool.requested |= wanted;
        wanted
    }
}
