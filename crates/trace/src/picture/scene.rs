//! Room: what happened around one call, or around some calls of many pairs, as data.
//! Not here: collecting it (`watch`), where it is drawn (`layout`).

use crate::verdict::Who;

/// Something that lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice<T> {
    /// When it begins, in nanoseconds of the trace's clock.
    pub begin: u64,
    /// When it ends.
    pub end: u64,
    /// What it is.
    pub what: T,
}

impl<T> Slice<T> {
    /// How long it is.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// What a thread does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It has this CPU.
    Running(u32),
    /// It wants this CPU.
    Runnable(u32),
    /// It waits for something to do.
    Sleeping,
    /// It waits for something that it needs to go on; where the trace says so, for what.
    Blocked(String),
    /// The trace does not show it.
    Unknown,
}

/// Who has a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Has {
    /// Nobody.
    Idle,
    /// This thread.
    Task(Who),
    /// The trace does not show it.
    Unknown,
}

/// What a thread is to the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It called.
    Caller,
    /// It served.
    Server,
    /// It worked for the call somewhere down the chain.
    Further,
}

impl Role {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Server => "server",
            Self::Further => "thread",
        }
    }
}

/// A thread's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadLane {
    /// Which.
    pub who: Who,
    /// What it is to the call.
    pub role: Role,
    /// Where many pairs are shown: the number of its pair, from 1; else 0.
    pub pair: usize,
    /// What it did, in order, without overlap.
    pub slices: Vec<Slice<Doing>>,
}

/// A CPU's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuLane {
    /// Which.
    pub cpu: u32,
    /// Who had it, in order, without overlap.
    pub slices: Vec<Slice<Has>>,
    /// Interrupts and softirqs, by name.
    pub interrupts: Vec<Slice<String>>,
}

/// A call from one thread to another and its reply: two arrows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The driver's number.
    pub debug_id: i32,
    /// The calling thread.
    pub caller: i32,
    /// The thread that took it.
    pub server: i32,
    /// When it was sent.
    pub sent: u64,
    /// When the server was woken for it; when it took it, if it was awake.
    pub woken: u64,
    /// When the server took it.
    pub received: u64,
    /// When the server answered.
    pub replied: Option<u64>,
    /// When the caller was woken for the answer; when it had it, if it was awake.
    pub caller_woken: Option<u64>,
    /// When the caller had the answer.
    pub end: u64,
}

/// What there was and is not drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Slices, the shortest of their lanes.
    pub slices: usize,
    /// Threads, the last to take part.
    pub threads: usize,
    /// CPUs, the last to take part.
    pub cpus: usize,
    /// Calls beyond the first few hundred.
    pub calls: usize,
}

/// What happened between two moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Its beginning, in nanoseconds of the trace's clock.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// Where its axis has its zero.
    pub zero: u64,
    /// The threads that took part.
    pub threads: Vec<ThreadLane>,
    /// The CPUs that these used or waited for.
    pub cpus: Vec<CpuLane>,
    /// The calls.
    pub hops: Vec<Hop>,
    /// What is missing.
    pub left_out: LeftOut,
}
