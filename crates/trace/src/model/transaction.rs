//! Room: a rebuilt transaction, as data.
//! Not here: rebuilding it (`model`).

use crate::cause::Part;
use crate::event::{Flavour, Name, Prio};

/// One thread of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The thread.
    pub tid: i32,
    /// Its process, where the trace says it.
    pub tgid: Option<i32>,
    /// Its name.
    pub comm: Name,
    /// Its effective priority when its part began: sending, or receiving.
    pub prio: Option<Prio>,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The caller has the reply.
    Replied,
    /// The oneway call was received.
    Delivered,
    /// It failed.
    Failed,
    /// Its receiver, or its sender, is dead.
    Dead,
    /// Its receiver is frozen.
    Frozen,
    /// It was received, and the trace does not show how it ended.
    Unanswered,
    /// The trace ended first.
    Cut,
}

/// Time that a thread ran on a CPU slower than that CPU can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowClock {
    /// Nanoseconds below the highest frequency that the trace shows of that CPU.
    pub ns: u64,
    /// The lowest frequency among them, in kHz.
    pub khz: u32,
    /// The highest of that CPU.
    pub highest_khz: u32,
}

/// One call with its reply, or one oneway call.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// The driver's number of it.
    pub debug_id: i32,
    /// Whose events these are.
    pub flavour: Flavour,
    /// The node called.
    pub node: i32,
    /// The call's code.
    pub code: u32,
    /// Nobody waits for an answer.
    pub oneway: bool,
    /// Who called.
    pub client: Peer,
    /// The process called.
    pub to_proc: i32,
    /// Who served, if anybody received it.
    pub server: Option<Peer>,
    /// When it began, in nanoseconds of the trace's clock: was sent or, where a mark of binderperf's says so, when its
    /// caller began with it.
    pub begin: u64,
    /// When it was sent.
    pub sent: u64,
    /// When the server had it.
    pub received: Option<u64>,
    /// When the server answered.
    pub replied: Option<u64>,
    /// When the caller had the answer and, where the trace shows that, was out of the driver or, where a mark says so,
    /// done with the call; of a oneway call, when the server had it.
    pub end: u64,
    /// The CPU that it was sent on.
    pub client_cpu: u32,
    /// The CPU that it was received on.
    pub server_cpu: Option<u32>,
    /// How it ended.
    pub outcome: Outcome,
    /// Events are missing, so that nothing should be concluded.
    pub doubtful: bool,
    /// What binderperf's own mark said that its thread wrote before the call: `key=value` words.
    pub label: Option<Box<str>>,
    /// It was made while serving another one.
    pub nested: bool,
    /// What its time went to: in their order, from `begin` to `end` without a gap.
    pub parts: Vec<Part>,
    /// How much of it ran on a slow CPU.
    pub slow_clock: Option<SlowClock>,
}

impl Transaction {
    /// How long it took.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }

    /// The CPUs of both sides where they are not the same one.
    #[must_use]
    pub fn crossed(&self) -> Option<(u32, u32)> {
        self.server_cpu.filter(|cpu| *cpu != self.client_cpu).map(|cpu| (self.client_cpu, cpu))
    }

    /// Whether its time means anything: it came to its end, and nothing of it is missing.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        !self.doubtful && matches!(self.outcome, Outcome::Replied | Outcome::Delivered)
    }
}

/// A time for which events of a CPU are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The CPU.
    pub cpu: u32,
    /// Its last event before.
    pub begin: u64,
    /// Its first event after.
    pub end: u64,
}
