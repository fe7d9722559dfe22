//! Makers of events for tests.

use super::{Binder, Context, Event, Flavour, Kind, Name, Prio, State, Task, Transaction};

pub(crate) fn event(ts: u64, cpu: u32, tid: i32, kind: Kind) -> Event {
    Event { ts, cpu, tid, tgid: None, comm: Name::NONE, context: Context::default(), kind }
}

pub(crate) fn task(tid: i32, comm: Name) -> Task {
    Task { tid, comm, prio: Prio(120) }
}

pub(crate) fn switch(prev: Task, state: State, next: Task) -> Kind {
    Kind::Switch { prev, state, next }
}

/// Call to this process.
pub(crate) fn sent(debug_id: i32, to_proc: i32) -> Kind {
    let sent = Transaction { debug_id, to_proc, ..Transaction::default() };
    Kind::Binder(Flavour::C, Binder::Transaction(sent))
}

/// Reply to this thread, the first of its process.
pub(crate) fn reply(debug_id: i32, to: i32) -> Kind {
    let sent = Transaction { debug_id, reply: true, to_proc: to, to_thread: to, ..Transaction::default() };
    Kind::Binder(Flavour::C, Binder::Transaction(sent))
}

pub(crate) fn received(debug_id: i32) -> Kind {
    Kind::Binder(Flavour::C, Binder::Received { debug_id })
}
