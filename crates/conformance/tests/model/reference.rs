//! Reference model: a driver in a few hundred lines, written from the pages of `contract/`, strictly sequential.
//!
//! - [`resolve`]: command of a step in the present state, and steps that the model leaves out.
//! - [`counts`]: nodes, handles, notifications of owners. - [`calls`]: transactions. - [`deaths`]: ends.
//! - [`buffers`]: permitted pointers between scattered buffers.
//!
//! Not here: the driver under test. Memory, addresses and sizes are left out: a buffer is a place in
//! the list of those that its receiver holds.

mod buffers;
mod calls;
mod counts;
mod deaths;
mod resolve;

use std::collections::{BTreeMap, VecDeque};
use sys::errno::{EAGAIN, EBUSY, EINVAL};

use crate::steps::{Object, Op, PROCS, Step, THREADS};

/// Identifies a node, a transaction or a registration; never reused.
type Id = usize;

/// A return, without fields that depend on addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Returned {
    Noop,
    Complete,
    Dead,
    Failed,
    Transaction {
        ptr: u64,
        oneway: bool,
        number: u32,
        objects: Vec<Object>,
    },
    Reply {
        number: u32,
        objects: Vec<Object>,
    },
    Increfs(u64),
    Acquire(u64),
    Release(u64),
    Decrefs(u64),
    DeadBinder(u64),
    ClearDone(u64),
    /// A return that the model does not know.
    Other(String),
}

/// Result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The ioctl's errno.
    pub(crate) errno: i32,
    /// Whether the command was consumed.
    pub(crate) taken: bool,
    pub(crate) returns: Vec<Returned>,
}

/// A step's command, with the numbers that depend on earlier steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) op: Op,
    /// Cookie of a registration, or ptr of the node to acknowledge.
    pub(crate) word: u64,
    /// Whether the strong count of that node is acknowledged.
    pub(crate) strong: bool,
}

/// An entry of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Complete,
    /// Error of the thread's own command, in its error slot (contract WR-12).
    Refusal(Refusal),
    /// Error in place of a reply.
    NoReply(Refusal),
    Call(Id),
    Reply(Id),
    /// Pending notifications of a node (contract REF-10).
    Node(Id),
    Death(Id),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Dead,
    Failed,
    /// Error of an undeliverable reply (contract TX-17).
    Complete,
}

impl Refusal {
    fn seen(self) -> Returned {
        match self {
            Self::Dead => Returned::Dead,
            Self::Failed => Returned::Failed,
            Self::Complete => Returned::Complete,
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
    /// An entry of `todo` is worth returning for (contract WR-15).
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
    objects: Vec<Object>,
}

#[derive(Clone, Debug, Default)]
struct Proc {
    open: bool,
    threads: [Thread; THREADS],
    queue: VecDeque<Work>,
    refs: BTreeMap<u32, Ref>,
    nodes: BTreeMap<u64, Id>,
    buffers: Vec<Buffer>,
    /// Acknowledgements that the client owes: ptr, and whether of the strong count.
    owed: VecDeque<(u64, bool)>,
    /// Death notifications that it has not acknowledged, oldest first.
    told: Vec<Id>,
}

/// State of the model.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    procs: [Proc; PROCS],
    nodes: BTreeMap<Id, counts::Node>,
    calls: BTreeMap<Id, calls::Call>,
    deaths: BTreeMap<Id, deaths::Death>,
    manager: Option<Id>,
    last: Id,
    /// Whether the driver has call slots.
    call_slots: bool,
}

/// Cookie without a registration.
const NOBODYS: u64 = 7;

impl Reference {
    pub(crate) fn new(call_slots: bool) -> Self {
        let mut procs: [Proc; PROCS] = Default::default();
        procs.iter_mut().for_each(|proc| proc.open = true);
        let (nodes, calls, deaths) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { procs, nodes, calls, deaths, manager: None, last: 0, call_slots }
    }

    pub(crate) fn is_open(&self, proc: usize) -> bool {
        self.procs[proc].open
    }

    fn id(&mut self) -> Id {
        self.last += 1;
        self.last
    }

    /// Executes a command; `number` distinguishes its transaction from others.
    pub(crate) fn step(&mut self, step: &Step, number: u32, command: &Command) -> Outcome {
        let Step { proc, thread, .. } = *step;
        let done = |errno| Outcome { errno, taken: true, returns: Vec::new() };
        match command.op {
            Op::Close => {
                self.close(proc);
                return done(0);
            }
            Op::ThreadExit => {
                self.exit(proc, thread);
                return done(0);
            }
            Op::BecomeManager => return done(self.become_manager(proc)),
            _ => {}
        }
        let mut outcome = Outcome { errno: 0, taken: true, returns: Vec::new() };
        if self.procs[proc].threads[thread].refused() {
            // Until the refusal is read, no command is consumed (contract WR-13).
            outcome.taken = command.op == Op::Read;
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
        let Command { op, word, strong } = command;
        match op {
            Op::Call { handle, oneway, objects } => {
                self.call(proc, thread, number, *handle, *oneway, objects);
            }
            Op::Reply { objects } => self.reply(proc, thread, number, objects),
            Op::Free(at) => self.free(proc, *at),
            Op::Count { handle, strong, up } => return self.count(proc, *handle, *strong, *up),
            Op::Acknowledge => self.acknowledge(proc, *word, *strong),
            Op::Watch(handle) => self.watch(proc, *handle, *word),
            Op::Unwatch(handle) => self.unwatch(proc, thread, *handle, *word),
            Op::DeathDone => self.death_done(proc, thread, *word),
            Op::EnterLooper => self.procs[proc].threads[thread].looper = true,
            _ => {}
        }
        Ok(())
    }

    /// Reads (contract WR-03 to WR-10). `None`: nothing to return.
    fn read(&mut self, proc: usize, thread: usize) -> Option<Vec<Returned>> {
        let mut returns = vec![Returned::Noop];
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

    /// Whether this return ends its read (contract WR-09).
    fn give_out(&mut self, proc: usize, thread: usize, work: Work, returns: &mut Vec<Returned>) -> bool {
        match work {
            Work::Complete => returns.push(Returned::Complete),
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
