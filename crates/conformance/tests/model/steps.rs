//! Random streams of steps, and the weight of each step.
//! Not here: the result of a step (`reference`), its execution (`real`).
//! Handles, buffers and nodes are small numbers, so that a shrunk stream can be read.

use proptest::prelude::*;

/// Players: each one an open connection. The last one only lives for the first steps.
pub(crate) const PROCS: usize = 4;
/// OS threads that take turns.
pub(crate) const THREADS: usize = 2;

/// An object of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    /// The sender's own node with this ptr.
    Node { ptr: u64, weak: bool },
    /// A handle of the sender's.
    Handle { handle: u32, weak: bool },
    /// A scattered buffer; its parent is the object with this index, which points to it from there.
    Buffer { len: u64, parent: Option<(usize, u64)> },
}

/// Command of a thread on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Nothing is written.
    Read,
    Call {
        handle: u32,
        oneway: bool,
        objects: Vec<Object>,
    },
    Reply {
        objects: Vec<Object>,
    },
    /// Frees a buffer that the connection holds, by index in delivery order.
    Free(usize),
    /// `BC_ACQUIRE`, `BC_RELEASE`, `BC_INCREFS` or `BC_DECREFS`.
    Count {
        handle: u32,
        strong: bool,
        up: bool,
    },
    /// `BC_INCREFS_DONE` or `BC_ACQUIRE_DONE`, for whatever is owed the longest.
    Acknowledge,
    Watch(u32),
    Unwatch(u32),
    /// `BC_DEAD_BINDER_DONE`, for the oldest notification.
    DeathDone,
    EnterLooper,
    BecomeManager,
    ThreadExit,
    Close,
}

/// One turn: an ioctl by a thread of a connection.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) proc: usize,
    pub(crate) thread: usize,
    pub(crate) op: Op,
    /// Whether the same ioctl reads, too.
    pub(crate) read: bool,
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "P{}.T{} {:?}{}", self.proc, self.thread, self.op, if self.read { " + Read" } else { "" })
    }
}

fn turn(proc: usize, op: Op) -> Step {
    let read = !matches!(op, Op::Close | Op::BecomeManager | Op::ThreadExit);
    Step { proc, thread: 0, op, read }
}

/// Steps that give the players handles of each other, without a separate OS process for the manager, which cannot be
/// called by handle 0 from its own OS process (contract CTX-05). While handle 0 names a dead manager, taking a count
/// gives the next manager another number (REF-07), which can be called.
pub(crate) fn acquaintance() -> Vec<Step> {
    let tell = |handle, object| Op::Call { handle, oneway: true, objects: vec![object] };
    let own = Object::Node { ptr: 1, weak: false };
    let pass = |handle| Object::Handle { handle, weak: false };
    let acquire = |handle| Op::Count { handle, strong: true, up: true };
    let mut steps = vec![turn(3, Op::BecomeManager), turn(1, acquire(0)), turn(2, acquire(0))];
    steps.extend([turn(3, Op::Close), turn(0, Op::BecomeManager)]);
    steps.extend([turn(1, acquire(0)), turn(2, acquire(0))]);
    // Sender, receiver and object; the receiver keeps the handle with this number.
    for (from, told, to, number) in [
        (1, tell(1, own), 0, 1),
        (2, tell(1, own), 0, 2),
        (0, tell(1, pass(2)), 1, 2),
        (0, tell(2, pass(1)), 2, 2),
    ] {
        steps.extend([turn(from, told), turn(from, Op::Acknowledge), turn(from, Op::Acknowledge)]);
        steps.extend([turn(to, Op::Read), turn(to, acquire(number)), turn(to, Op::Free(0))]);
    }
    steps
}

fn object() -> impl Strategy<Value = Object> {
    let weak = || prop::bool::weighted(0.25);
    prop_oneof![
        (1..4u64, weak()).prop_map(|(ptr, weak)| Object::Node { ptr, weak }),
        (handle(), weak()).prop_map(|(handle, weak)| Object::Handle { handle, weak }),
    ]
}

/// A buffer as drawn: its length; which of the open ones is its parent, or which object; how far behind
/// the free place there its pointer stands.
type Drawn = (u64, Option<(Result<usize, usize>, i64)>);

/// Buffers as a tree, depth first, in which now and then something is wrong.
fn tree() -> impl Strategy<Value = Vec<Object>> {
    let len = prop_oneof![4 => 16..40u64, 1 => 0..16u64];
    let parent = prop_oneof![6 => (0..3usize).prop_map(Ok), 1 => (0..4usize).prop_map(Err)];
    let place = prop_oneof![8 => Just(0i64), 1 => Just(8), 1 => Just(-8), 1 => Just(4), 1 => 0..64i64];
    let buffer = (len, prop::option::weighted(0.8, (parent, place)));
    prop::collection::vec(buffer, 1..6).prop_map(|buffers| {
        // The last one and its ancestors: index and free place.
        let mut open: Vec<(usize, u64)> = Vec::new();
        let grow = |(index, (len, parent)): (usize, Drawn)| {
            let parent = parent.filter(|_| index > 0).map(|(parent, place)| match parent {
                Ok(up) => {
                    open.truncate(open.len() - up.min(open.len() - 1));
                    let (parent, free) = open[open.len() - 1];
                    let at = free.saturating_add_signed(place);
                    open.pop();
                    open.push((parent, at + 8));
                    (parent, at)
                }
                Err(any) => (any, place.unsigned_abs()),
            });
            if parent.is_none() {
                open.clear();
            }
            open.push((index, 0));
            Object::Buffer { len, parent }
        };
        buffers.into_iter().enumerate().map(grow).collect()
    })
}

fn objects() -> impl Strategy<Value = Vec<Object>> {
    prop_oneof![
        4 => Just(Vec::new()),
        2 => prop::collection::vec(object(), 1..3),
        3 => tree(),
        1 => (object(), tree()).prop_map(|(first, rest)| [vec![first], rest].concat()),
    ]
}

fn handle() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(0u32), 10 => 1..3u32, 3 => 3..6u32]
}

fn op() -> impl Strategy<Value = Op> {
    let call = |oneway| move |(handle, objects): (u32, Vec<Object>)| Op::Call { handle, oneway, objects };
    let count = |strong, up| move |handle| Op::Count { handle, strong, up };
    prop_oneof![
        40 => Just(Op::Read),
        16 => (handle(), objects()).prop_map(call(false)),
        8 => (handle(), objects()).prop_map(call(true)),
        14 => objects().prop_map(|objects| Op::Reply { objects }),
        12 => (0..3usize).prop_map(Op::Free),
        4 => handle().prop_map(count(true, true)),
        5 => handle().prop_map(count(true, false)),
        2 => handle().prop_map(count(false, true)),
        2 => handle().prop_map(count(false, false)),
        8 => Just(Op::Acknowledge),
        4 => handle().prop_map(Op::Watch),
        2 => handle().prop_map(Op::Unwatch),
        2 => Just(Op::DeathDone),
        1 => Just(Op::EnterLooper),
        1 => Just(Op::BecomeManager),
        1 => Just(Op::ThreadExit),
        1 => Just(Op::Close),
    ]
}

/// A stream of at most `longest` steps.
pub(crate) fn stream(longest: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = (0..PROCS - 1, 0..THREADS, op(), prop::bool::weighted(0.3))
        .prop_map(|(proc, thread, op, read)| Step { proc, thread, op, read });
    prop::collection::vec(step, 1..longest)
}
