//! Room: work that a thread asks about when it reads it: numbers in inboxes and what they mean.
//! Not here: what is told (`node`, `death`, `freeze`).
//! Facts: contract REF-09, REF-10. Each node, death and freeze registration has one number out at
//! most; an older one means nothing any more.

use super::Core;
use super::node::NodeKey;
use super::outside::Outside;
use crate::embedded::protocol::{Item, ProcId, Returns, ThreadKey};

/// What a work number is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Node(NodeKey),
    Death(u64),
    Freeze(u64),
}

/// Whose queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Proc,
    Thread(ThreadKey),
    /// Read when the thread has a better reason to return.
    Deferred(ThreadKey),
}

impl Core {
    /// Puts work into a process's inbox; its number.
    pub(super) fn post(
        &mut self,
        to: ProcId,
        subject: Subject,
        queue: Queue,
        outside: &mut impl Outside,
    ) -> Option<u64> {
        let proc = self.procs.get_mut(&to)?;
        self.last_work += 1;
        let work = self.last_work;
        proc.works.insert(work, subject);
        let (thread, deferred) = match queue {
            Queue::Proc => (None, false),
            Queue::Thread(thread) => (Some(thread), false),
            Queue::Deferred(thread) => (Some(thread), true),
        };
        outside.item(to, Item::Work { work, thread, deferred });
        Some(work)
    }

    /// Work that will tell nothing.
    pub(super) fn retract(&mut self, proc: ProcId, work: u64) {
        if let Some(proc) = self.procs.get_mut(&proc) {
            proc.works.remove(&work);
        }
    }

    /// A thread reads work: what it is now.
    pub(super) fn take_work(&mut self, proc: ProcId, work: u64) -> Returns {
        let subject = self.procs.get_mut(&proc).and_then(|p| p.works.remove(&work));
        match subject {
            Some(Subject::Node(node)) => self.tell_of_node(node),
            Some(Subject::Death(death)) => self.tell_of_death(proc, death),
            Some(Subject::Freeze(watch)) => self.tell_of_freeze(proc, watch),
            None => Returns::default(),
        }
    }
}
