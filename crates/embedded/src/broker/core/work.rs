//! Work numbers in inboxes, whose meaning a thread asks for when it reads them.
//! Not here: the notifications (`node`, `death`, `freeze`).
//! Facts: contract REF-09, REF-10. Each node, death and freeze registration has at most one valid number; an older
//! number means nothing.

use super::Core;
use super::host::Host;
use super::node::NodeKey;
use crate::rpc::protocol::{Item, ProcId, Returns, ThreadKey};

/// Subject of a work number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Node(NodeKey),
    Death(u64),
    Freeze(u64),
}

/// Queue of a work item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Proc,
    Thread(ThreadKey),
    /// Deferred: read when the thread returns for another reason.
    Deferred(ThreadKey),
}

impl Core {
    /// Puts work into a process's inbox and returns its number.
    pub(super) fn post(
        &mut self,
        to: ProcId,
        subject: Subject,
        queue: Queue,
        host: &mut impl Host,
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
        host.item(to, Item::Work { work, thread, deferred });
        Some(work)
    }

    /// Invalidates work.
    pub(super) fn retract(&mut self, proc: ProcId, work: u64) {
        if let Some(proc) = self.procs.get_mut(&proc) {
            proc.works.remove(&work);
        }
    }

    /// Returns for a thread that reads work.
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
