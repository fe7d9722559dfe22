//! Room: the reference model: a driver in a few hundred lines, written from the pages of `contract/`,
//! where one step follows another and nothing runs at the same time.
//!
//! - [`resolve`]: what a step means now, and which steps the model leaves out.
//! - [`counts`]: nodes, handles, what owners are told. - [`calls`]: transactions. - [`deaths`]: ends.
//! - [`buffers`]: which scattered buffers may point to which.
//!
//! Not here: the driver under test. Memory, addresses and sizes are left out: a buffer is a place in
//! the list of those that its receiver holds.

mod buffers;
mod calls;
mod counts;
mod deaths;
mod resolve;

use std::collections::{BTreeMap, VecDeque};

use crate::steps::{Object, Op, PROCS, Step, THREADS};

/// Names a node, a transaction, a registration; never given out twice.
type Id = usize;

/// An object as its receiver sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    Node {
        ptr: u64,
        weak: bool,
    },
    Handle {
        handle: u32,
        weak: bool,
    },
    /// With the bytes that were sent; its parent points to it.
    Buffer {
        len: u64,
        parent: Option<(usize, u64)>,
    },
}

/// A return, without what depends on addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Noop,
    Complete,
    Dead,
    Failed,
    Transaction {
        ptr: u64,
        oneway: bool,
        number: u32,
        objects: Vec<Arrived>,
    },
    Reply {
        number: u32,
        objects: Vec<Arrived>,
    },
    Increfs(u64),
    Acquire(u64),
    Release(u64),
    Decrefs(u64),
    DeadBinder(u64),
    ClearDone(u64),
    /// Nothing that the model knows.
    Other(String),
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The ioctl's errno.
    pub(crate) errno: i32,
    /// Whether the command was taken.
    pub(crate) taken: bool,
    pub(crate) returns: Vec<Seen>,
}

/// A step's command with the numbers that depend on what happened before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Nothing to write.
    None,
    Call {
        handle: u32,
        oneway: bool,
        objects: Vec<Object>,
    },
    Reply {
        objects: Vec<Object>,
    },
    /// The buffer's place in the list of those that the connection holds.
    Free(usize),
    Count {
        handle: u32,
        strong: bool,
        up: bool,
    },
    Acknowledge {
        ptr: u64,
        strong: bool,
    },
    Watch {
        handle: u32,
        cookie: u64,
    },
    Unwatch {
        handle: u32,
        cookie: u64,
    },
    DeathDone {
        cookie: u64,
    },
    EnterLooper,
    BecomeManager,
    ThreadExit,
    Close,
}

/// Something on a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Complete,
    /// In the slot for errors of the thread's own commands (contract WR-12).
    Refusal(Refusal),
    /// In place of a reply.
    NoReply(Refusal),
    Call(Id),
    Reply(Id),
    /// Whatever is to be told of a node (contract REF-10).
    Node(Id),
    Death(Id),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Dead,
    Failed,
    /// Of a reply that could not be delivered (contract TX-17).
    Complete,
}

impl Refusal {
    fn seen(self) -> Seen {
        match self {
            Self::Dead => Seen::Dead,
            Self::Failed => Seen::Failed,
            Self::Complete => Seen::Complete,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Serving(Id),
    Calling(Id),
}

#[derive(Clone, Debug, Default)]
struct Thread {
    todo: VecDeque<Work>,
    /// Something in `todo` is worth returning for (contract WR-15).
    urgent: bool,
    stack: Vec<Frame>,
    looper: bool,
}

impl Thread {
    fn push(&mut self, work: Work) {
        self.todo.push_back(work);
        self.urgent = true;
    }

    fn refused(&self) -> bool {
        self.todo.iter().any(|work| matches!(work, Work::Refusal(_)))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Ref {
    node: Id,
    strong: u32,
    weak: u32,
    death: Option<Id>,
}

/// A buffer that its receiver holds: the counts that it holds in turn.
#[derive(Clone, Debug)]
struct Buffer {
    node: Option<Id>,
    oneway: bool,
    objects: Vec<Arrived>,
}

#[derive(Clone, Debug, Default)]
struct Proc {
    open: bool,
    threads: [Thread; THREADS],
    queue: VecDeque<Work>,
    refs: BTreeMap<u32, Ref>,
    nodes: BTreeMap<u64, Id>,
    buffers: Vec<Buffer>,
    /// Acknowledgements that the client owes: ptr and whether of the strong count.
    owed: VecDeque<(u64, bool)>,
    /// Death notifications that it has not acknowledged, oldest first.
    told: Vec<Id>,
}

/// The whole driver.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    procs: [Proc; PROCS],
    nodes: BTreeMap<Id, counts::Node>,
    calls: BTreeMap<Id, calls::Call>,
    deaths: BTreeMap<Id, deaths::Death>,
    manager: Option<Id>,
    last: Id,
    /// Whether the driver has lanes.
    lanes: bool,
}

const EAGAIN: i32 = 11;
const EBUSY: i32 = 16;
const EINVAL: i32 = 22;
/// A cookie that nothing was registered with.
const NOBODYS: u64 = 7;

impl Reference {
    pub(crate) fn new(lanes: bool) -> Self {
        let mut procs: [Proc; PROCS] = Default::default();
        procs.iter_mut().for_each(|proc| proc.open = true);
        let (nodes, calls, deaths) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { procs, nodes, calls, deaths, manager: None, last: 0, lanes }
    }

    pub(crate) fn is_open(&self, proc: usize) -> bool {
        self.procs[proc].open
    }

    fn id(&mut self) -> Id {
        self.last += 1;
        self.last
    }

    /// Carries a command out; `number` tells its transaction from others.
    pub(crate) fn step(&mut self, step: &Step, number: u32, command: &Command) -> Outcome {
        let Step { proc, thread, .. } = *step;
        let done = |errno| Outcome { errno, taken: true, returns: Vec::new() };
        match command {
            Command::Close => {
                self.close(proc);
                return done(0);
            }
            Command::ThreadExit => {
                self.exit(proc, thread);
                return done(0);
            }
            Command::BecomeManager => return done(self.become_manager(proc)),
            _ => {}
        }
        let mut outcome = Outcome { errno: 0, taken: true, returns: Vec::new() };
        if self.procs[proc].threads[thread].refused() {
            // Until the refusal is read nothing more is taken (contract WR-13).
            outcome.taken = matches!(command, Command::None);
        } else if let Err(errno) = self.write(proc, thread, number, command) {
            return Outcome { errno, taken: false, returns: Vec::new() };
        }
        if step.read || step.op == Op::Read {
            match self.read(proc, thread) {
                Some(returns) => outcome.returns = returns,
                None => outcome.errno = EAGAIN,
            }
        }
        outcome
    }

    fn write(&mut self, proc: usize, thread: usize, number: u32, command: &Command) -> Result<(), i32> {
        match command {
            Command::Call { handle, oneway, objects } => {
                self.call(proc, thread, number, *handle, *oneway, objects);
            }
            Command::Reply { objects } => self.reply(proc, thread, number, objects),
            Command::Free(at) => self.free(proc, *at),
            Command::Count { handle, strong, up } => return self.count(proc, *handle, *strong, *up),
            Command::Acknowledge { ptr, strong } => self.acknowledge(proc, *ptr, *strong),
            Command::Watch { handle, cookie } => self.watch(proc, *handle, *cookie),
            Command::Unwatch { handle, cookie } => self.unwatch(proc, thread, *handle, *cookie),
            Command::DeathDone { cookie } => self.death_done(proc, thread, *cookie),
            Command::EnterLooper => self.procs[proc].threads[thread].looper = true,
            _ => {}
        }
        Ok(())
    }

    /// Contract WR-03 to WR-10. `None`: nothing to return.
    fn read(&mut self, proc: usize, thread: usize) -> Option<Vec<Seen>> {
        let mut returns = vec![Seen::Noop];
        loop {
            let me = &self.procs[proc].threads[thread];
            let free = me.stack.is_empty() && me.todo.is_empty();
            let anything = me.urgent || free && !self.procs[proc].queue.is_empty();
            if !anything {
                return None;
            }
            while let Some(work) = self.take(proc, thread, free) {
                if self.give_out(proc, thread, work, &mut returns) {
                    return Some(returns);
                }
            }
            if returns.len() > 1 {
                return Some(returns);
            }
        }
    }

    fn take(&mut self, proc: usize, thread: usize, free: bool) -> Option<Work> {
        let Proc { threads, queue, .. } = &mut self.procs[proc];
        let me = &mut threads[thread];
        let own = me.todo.pop_front();
        if me.todo.is_empty() {
            me.urgent = false;
        }
        own.or_else(|| if free { queue.pop_front() } else { None })
    }

    /// Whether that was the last in its read (contract WR-09).
    fn give_out(&mut self, proc: usize, thread: usize, work: Work, returns: &mut Vec<Seen>) -> bool {
        match work {
            Work::Complete => returns.push(Seen::Complete),
            Work::Refusal(why) | Work::NoReply(why) => returns.push(why.seen()),
            Work::Node(node) => self.tell_of(node, returns),
            Work::Death(death) => return self.tell_death(proc, death, returns),
            Work::Call(call) => {
                returns.push(self.deliver(proc, thread, call));
                return true;
            }
            Work::Reply(call) => {
                returns.push(self.deliver_reply(proc, call));
                return true;
            }
        }
        false
    }

    fn become_manager(&mut self, proc: usize) -> i32 {
        if self.manager.is_some() {
            return EBUSY;
        }
        self.manager = Some(self.make_manager_node(proc));
        0
    }
}
