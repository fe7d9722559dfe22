//! Synthetic traces for tests: what threads do, played as the events that a kernel would write.
//! Not here: assertions.

use trace::event::{
    Binder, Buffer, Context, Event, Flavour, Kind, Names, Prio, State, Task, Transaction as Sent, Wake,
};

use crate::recording::{Recorder, Recording};

/// A word that stands in the name of each thread.
pub(crate) const SECRET: &str = "xyzzy-alice";
/// Time from a wake-up until a thread runs, in ns.
pub(crate) const QUEUE: u64 = 1_000;

/// A pause without calls: a thread computes, and then sleeps, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) work: u64,
    pub(crate) sleep: u64,
}

/// A call with all that its receiver does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tree {
    pub(crate) to: i32,
    pub(crate) oneway: bool,
    pub(crate) request: u64,
    pub(crate) reply: u64,
    /// Before each call, and the call.
    pub(crate) inner: Vec<(Pause, Tree)>,
    pub(crate) after: Pause,
}

impl Tree {
    pub(crate) fn leaf(to: i32, request: u64, reply: u64, work: u64) -> Self {
        Self { to, oneway: false, request, reply, inner: Vec::new(), after: Pause { work, sleep: 0 } }
    }

    pub(crate) fn count(&self) -> usize {
        1 + self.inner.iter().map(|(_, tree)| tree.count()).sum::<usize>()
    }
}

/// A trace that is being played. Each thread has its own CPU.
#[derive(Default)]
pub(crate) struct Stage {
    pub(crate) events: Vec<Event>,
    pub(crate) names: Names,
    /// Whether interrupts wake the threads that sleep; otherwise another thread does.
    pub(crate) by_interrupt: bool,
    pub(crate) ids: i32,
}

/// Process of a thread.
pub(crate) fn process(tid: i32) -> i32 {
    tid / 1000 * 1000
}

impl Stage {
    pub(crate) fn event(&mut self, ts: u64, tid: i32, kind: Kind) {
        let comm = self.names.intern(SECRET);
        let (cpu, tgid) = (tid.cast_unsigned(), Some(process(tid)));
        self.events.push(Event { ts, cpu, tid, tgid, comm, context: Context::default(), kind });
    }

    fn task(&mut self, tid: i32) -> Task {
        Task { tid, comm: self.names.intern(SECRET), prio: Prio(120) }
    }

    pub(crate) fn sleeps(&mut self, ts: u64, tid: i32) {
        let (prev, next) = (self.task(tid), self.task(0));
        self.event(ts, tid, Kind::Switch { prev, state: State::Sleeping, next });
    }

    /// A thread is woken; returns when it runs.
    pub(crate) fn wakes(&mut self, ts: u64, tid: i32, by_interrupt: bool) -> u64 {
        let (task, idle) = (self.task(tid), self.task(0));
        let by = if by_interrupt { 0 } else { 99 };
        self.event(ts, by, Kind::Waking(Wake { task, target_cpu: tid.cast_unsigned() }));
        if by_interrupt && let Some(event) = self.events.last_mut() {
            event.context = Context::of_text(b"d.h1.");
        }
        self.event(ts + QUEUE, 0, Kind::Switch { prev: idle, state: State::Runnable, next: task });
        if let Some(event) = self.events.last_mut() {
            event.cpu = tid.cast_unsigned();
        }
        ts + QUEUE
    }

    pub(crate) fn pause(&mut self, ts: u64, tid: i32, pause: Pause) -> u64 {
        let ts = ts + pause.work;
        if pause.sleep == 0 {
            return ts;
        }
        self.sleeps(ts, tid);
        self.wakes(ts + pause.sleep, tid, self.by_interrupt)
    }

    fn binder(&mut self, ts: u64, tid: i32, binder: Binder) {
        self.event(ts, tid, Kind::Binder(Flavour::C, binder));
    }

    /// A thread makes a call; returns when it goes on.
    pub(crate) fn call(&mut self, ts: u64, client: i32, tree: &Tree, depth: i32) -> u64 {
        self.ids += 1;
        let debug_id = self.ids;
        let server = tree.to + 100 + depth;
        let flags = u32::from(tree.oneway);
        let sent = Sent { debug_id, to_proc: tree.to, code: 1, flags, ..Sent::default() };
        self.binder(ts, client, Binder::Transaction(sent));
        self.binder(ts, client, Binder::AllocBuf(buffer(debug_id, tree.request)));
        let (at, mut goes_on) = (ts + 500, ts + 600);
        let runs = self.wakes(at, server, false);
        if tree.oneway {
            self.binder(goes_on, client, Binder::WriteDone { ret: 0 });
        } else {
            self.sleeps(goes_on, client);
        }
        let mut ts = runs + 700;
        self.binder(ts, server, Binder::Received { debug_id });
        for (pause, inner) in &tree.inner {
            ts = self.pause(ts, server, *pause);
            ts = self.call(ts, server, inner, depth + 1);
        }
        ts = self.pause(ts, server, tree.after);
        if tree.oneway {
            self.binder(ts, server, Binder::BufferRelease(buffer(debug_id, tree.request)));
        } else {
            self.ids += 1;
            let reply = Sent {
                debug_id: self.ids,
                to_proc: process(client),
                to_thread: client,
                reply: true,
                ..Sent::default()
            };
            self.binder(ts, server, Binder::Transaction(reply));
            self.binder(ts, server, Binder::AllocBuf(buffer(reply.debug_id, tree.reply)));
            goes_on = self.wakes(ts + 300, client, false) + 400;
            self.binder(goes_on, client, Binder::Received { debug_id: reply.debug_id });
        }
        self.sleeps(ts + 800, server);
        goes_on
    }

    /// Events in order of time.
    pub(crate) fn sorted(mut self) -> (Vec<Event>, Names) {
        self.events.sort_by_key(|event| event.ts);
        (self.events, self.names)
    }

    pub(crate) fn recording(self) -> Recording {
        let (events, names) = self.sorted();
        recording(&events, &names)
    }
}

fn buffer(debug_id: i32, data_size: u64) -> Buffer {
    Buffer { debug_id, data_size, ..Buffer::default() }
}

pub(crate) fn recording(events: &[Event], names: &Names) -> Recording {
    let mut recorder = Recorder::default();
    events.iter().for_each(|event| recorder.take(event, names));
    recorder.finish(names)
}
