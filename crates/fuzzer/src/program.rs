//! A program: steps that several processes and threads take one after another.
//! Not here: its text (`text`), who takes the steps (`stage`, `player`).

use abi::codes::{CommandWord, bc};

/// Most processes of a program.
pub const PROCS: usize = 4;
/// Most threads of a process.
pub const THREADS: usize = 3;
/// Most steps of a program.
pub const MOST_STEPS: usize = 400;

/// Steps in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Program {
    /// Where threads begin to take their steps side by side, and the seed of their order.
    #[must_use]
    pub fn schedule(&self) -> Option<(usize, u64)> {
        self.steps.iter().enumerate().find_map(|(number, step)| match step.action {
            Action::Schedule(seed) => Some((number, seed)),
            _ => None,
        })
    }
}

/// One step of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The process, below [`PROCS`].
    pub proc: usize,
    /// The thread, below [`THREADS`].
    pub thread: usize,
    /// Its action.
    pub action: Action,
}

impl Step {
    /// Its commands to the driver.
    pub(crate) fn commands(&self) -> &[Command] {
        match &self.action {
            Action::Exchange(commands, _) => commands,
            _ => &[],
        }
    }

    /// The calls and replies that it sends.
    pub(crate) fn transactions(&self) -> impl Iterator<Item = &Transaction> {
        self.commands().iter().filter_map(|command| match command {
            Command::Transaction(_, what) => Some(what),
            _ => None,
        })
    }

    /// The calls and replies that it sends, to be changed.
    pub(crate) fn transactions_mut(&mut self) -> impl Iterator<Item = &mut Transaction> {
        let commands = match &mut self.action {
            Action::Exchange(commands, _) => commands.as_mut_slice(),
            _ => &mut [],
        };
        commands.iter_mut().filter_map(|command| match command {
            Command::Transaction(_, what) => Some(what),
            _ => None,
        })
    }
}

/// An action of a thread: one system call, or what somebody does to its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Opens the context and maps this many bytes to receive into; 0 maps nothing.
    Open(u32),
    /// Closes it.
    Close,
    /// The process is killed.
    Kill,
    /// `BINDER_SET_CONTEXT_MGR`.
    Manager,
    /// `BINDER_SET_MAX_THREADS`.
    MaxThreads(u32),
    /// `BINDER_THREAD_EXIT`.
    ThreadExit,
    /// `BINDER_VERSION`.
    Version,
    /// `BINDER_FREEZE` of this process, without waiting: on or off.
    Freeze(usize, bool),
    /// `BINDER_GET_FROZEN_INFO` of this process.
    FrozenInfo(usize),
    /// `BINDER_GET_NODE_INFO_FOR_REF` of this handle.
    NodeInfo(u32),
    /// `BINDER_GET_NODE_DEBUG_INFO` above this ptr.
    NodeDebug(u64),
    /// `BINDER_GET_EXTENDED_ERROR`.
    ExtendedError,
    /// `BINDER_ENABLE_ONEWAY_SPAM_DETECTION`.
    Spam(bool),
    /// `poll` without waiting.
    Poll,
    /// A signal to this thread of the same process.
    Signal(usize),
    /// A child of the process takes this action by the descriptor that it inherits, and ends. Not an action that opens, closes,
    /// kills, signals or waits.
    Fork(Box<Action>),
    /// The process runs another program, which keeps the descriptor.
    Exec,
    /// From here on threads take their steps side by side, in the order of this seed.
    Schedule(u64),
    /// `BINDER_WRITE_READ`: commands, then a read.
    Exchange(Vec<Command>, Option<Read>),
}

impl Action {
    /// Whether a child can take it by what it inherits.
    #[must_use]
    pub fn can_be_forked(&self) -> bool {
        match self {
            Self::Open(_) | Self::Close | Self::Kill | Self::Signal(_) => false,
            Self::Fork(_) | Self::Exec | Self::Schedule(_) => false,
            Self::Exchange(_, read) => !read.is_some_and(|read| read.waits),
            _ => true,
        }
    }
}

/// How a thread reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Bytes of room.
    pub room: u32,
    /// Whether it waits for something to read.
    pub waits: bool,
}

/// Usual room of a read in bytes: libbinder's.
pub const ROOM: u32 = 256;

/// A `BC_*` command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `BC_TRANSACTION` to a handle or, without one, `BC_REPLY`.
    Transaction(Option<u32>, Transaction),
    /// `BC_FREE_BUFFER` of a buffer that the process holds, by age; the one that was freed last if it has no such.
    Free(usize),
    /// One of [`PLAIN`] by its code, and its numbers: a handle or a node's ptr, if it has one, then a registration's cookie.
    Plain(u32, [u64; 2]),
    /// A word that is no command.
    Word(u32),
}

/// Commands that are a code and numbers: their words in a program's text.
pub(crate) const PLAIN: [(&str, u32); 15] = [
    ("acquire", bc::ACQUIRE),
    ("increfs", bc::INCREFS),
    ("release", bc::RELEASE),
    ("decrefs", bc::DECREFS),
    ("acquire-done", bc::ACQUIRE_DONE),
    ("increfs-done", bc::INCREFS_DONE),
    ("enter", bc::ENTER_LOOPER),
    ("register", bc::REGISTER_LOOPER),
    ("exit", bc::EXIT_LOOPER),
    ("watch", bc::REQUEST_DEATH_NOTIFICATION),
    ("unwatch", bc::CLEAR_DEATH_NOTIFICATION),
    ("watch-freeze", bc::REQUEST_FREEZE_NOTIFICATION),
    ("unwatch-freeze", bc::CLEAR_FREEZE_NOTIFICATION),
    ("dead-done", bc::DEAD_BINDER_DONE),
    ("freeze-done", bc::FREEZE_NOTIFICATION_DONE),
];

/// Codes that clear and request a notification.
pub(crate) const WATCH_DEATH: [u32; 2] = [bc::CLEAR_DEATH_NOTIFICATION, bc::REQUEST_DEATH_NOTIFICATION];
/// The same of freezing.
pub(crate) const WATCH_FREEZING: [u32; 2] = [bc::CLEAR_FREEZE_NOTIFICATION, bc::REQUEST_FREEZE_NOTIFICATION];
/// Codes that acknowledge them, of death and of freezing.
pub(crate) const HEARD: [u32; 2] = [bc::DEAD_BINDER_DONE, bc::FREEZE_NOTIFICATION_DONE];

/// Numbers of a plain command as they stand behind its code, each with its size in bytes; the code's size tells which they are.
pub(crate) fn fields(code: u32, [number, cookie]: [u64; 2]) -> Vec<(u64, usize)> {
    match CommandWord(code).payload_len() {
        0 => Vec::new(),
        12 => vec![(number, 4), (cookie, 8)],
        16 => vec![(number, 8), (cookie_of(number), 8)],
        size => vec![(number, size)],
    }
}

/// Contents of a call or reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// The method number; also the seed of the plain bytes.
    pub code: u32,
    /// `TF_*` bits.
    pub flags: u32,
    /// Bytes before the first object.
    pub plain: u32,
    /// Objects, each 8-byte aligned.
    pub objects: Vec<Object>,
    /// Bytes by which the stated size of the data falls short.
    pub cut: u32,
    /// Bytes by which the last offset is too high.
    pub skew: u32,
    /// Bytes by which the stated size of the offsets falls short.
    pub clip: u32,
    /// Bytes that the stated size of the scattered buffers has less than they need.
    pub short: u32,
}

impl Transaction {
    /// Whether it needs the form of the command with scattered buffers.
    pub(crate) fn is_scattered(&self) -> bool {
        self.objects.iter().any(|object| matches!(object, Object::Buffer { .. } | Object::Fds { .. }))
    }
}

/// An object of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// The sender's own node. All but number 3 take descriptors; the cookie is 100 more.
    Node {
        /// Its ptr.
        ptr: u64,
        /// Whether it is sent weakly.
        weak: bool,
    },
    /// A handle of the sender's.
    Handle {
        /// The handle.
        handle: u32,
        /// Whether it is sent weakly.
        weak: bool,
    },
    /// A descriptor: 0 of `/dev/null`, 1 of `/dev/zero`, any other is not open.
    Fd(u8),
    /// A scattered buffer.
    Buffer {
        /// Its length in bytes.
        len: u32,
        /// Its parent: the object of this index, at this offset.
        parent: Option<(u32, u32)>,
    },
    /// An array of descriptors in a scattered buffer.
    Fds {
        /// Their number.
        count: u32,
        /// The buffer: the object of this index, at this offset.
        parent: (u32, u32),
    },
}

/// The cookie of a node.
#[must_use]
pub fn cookie_of(ptr: u64) -> u64 {
    if ptr == 0 { 0 } else { ptr.wrapping_add(100) }
}
