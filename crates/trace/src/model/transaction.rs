//! Rebuilt transaction, as data.
//! Not here: rebuilding it (`model`).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chain::Link;
use super::failure::Failure;
use super::method::Method;
use crate::cause::Segment;
use crate::event::{Buffer, Flavour, Name, Prio};

/// One thread of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Thread ID.
    pub tid: i32,
    /// Process ID, if known.
    pub tgid: Option<i32>,
    /// Thread name.
    pub comm: Name,
    /// Effective priority when it sent or received the call.
    pub prio: Option<Prio>,
}

/// Outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Outcome {
    /// The caller has the reply.
    Replied,
    /// The oneway call was received.
    Delivered,
    /// It failed.
    Failed,
    /// Receiver or sender is dead.
    Dead,
    /// The receiver is frozen.
    Frozen,
    /// Received; the trace does not show its end.
    Unanswered,
    /// The trace ended first.
    Cut,
}

impl Outcome {
    /// The outcome as a word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Replied => "replied",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::Frozen => "frozen",
            Self::Unanswered => "unanswered",
            Self::Cut => "cut",
        }
    }
}

/// Time that a thread ran below its CPU's highest frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowClock {
    /// Nanoseconds below the highest frequency that the trace shows for that CPU.
    pub ns: u64,
    /// Lowest frequency during that time, in kHz.
    pub khz: u32,
}

/// Call with its reply, or a oneway call.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// The driver's number of the transaction.
    pub debug_id: i32,
    /// Driver that wrote the events.
    pub flavour: Flavour,
    /// Called node.
    pub node: i32,
    /// Transaction code.
    pub code: u32,
    /// The called method, if a slice of a proxy or a stub names it. A oneway call has ended before its stub begins.
    pub method: Option<Arc<Method>>,
    /// Whether it is oneway.
    pub oneway: bool,
    /// Calling thread.
    pub client: Peer,
    /// Called process.
    pub to_proc: i32,
    /// Serving thread, if the call was received.
    pub server: Option<Peer>,
    /// Begin in nanoseconds of the trace clock: when the caller began the call, if one of binderperf's marks says so,
    /// otherwise when it was sent.
    pub begin: u64,
    /// When it was sent.
    pub sent: u64,
    /// When the server received it.
    pub received: Option<u64>,
    /// When the server replied.
    pub replied: Option<u64>,
    /// End of a call: when its caller was done, if a mark says so; otherwise when the caller left the driver with the
    /// reply, or received the reply. End of a oneway call: when the server received it.
    pub end: u64,
    /// CPU on which it was sent.
    pub client_cpu: u32,
    /// CPU on which it was received.
    pub server_cpu: Option<u32>,
    /// How it ended.
    pub outcome: Outcome,
    /// The end of a call that failed.
    pub failure: Option<Failure>,
    /// Buffer of the call's data in its receiver; `None` if no event shows it.
    pub request: Option<Buffer>,
    /// Buffer of the reply's data in the caller; `None` if no event shows it.
    pub reply: Option<Buffer>,
    /// `debug_id`s of the calls that threads of its receiver served when the trace ended, if none of them took this one; 16
    /// at most.
    pub behind: Vec<i32>,
    /// Events are missing; draw no conclusions.
    pub doubtful: bool,
    /// `key=value` words of the binderperf mark that the thread wrote before the call.
    pub label: Option<Box<str>>,
    /// Whether it belongs to one of binderperf's inheritance scenes, whose calls sleep on purpose.
    pub scene: bool,
    /// Whether it was made while serving another call.
    pub nested: bool,
    /// Segments of its time, in order, from `begin` to `end` without a gap.
    pub parts: Vec<Segment>,
    /// Chains of the waits among its segments, in order: whom the threads of the call waited for.
    pub links: Vec<Link>,
    /// Time that it ran at a reduced frequency.
    pub slow_clock: Option<SlowClock>,
}

impl Transaction {
    /// Duration in nanoseconds.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }

    /// Bytes of data, offsets and scattered buffers, of the call and of its reply; `None` if no event shows them.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let buffers = [self.request, self.reply].into_iter().flatten();
        buffers.map(|buffer| buffer.bytes()).reduce(u64::saturating_add)
    }

    /// CPUs of sender and receiver, if they differ.
    #[must_use]
    pub fn crossed(&self) -> Option<(u32, u32)> {
        self.server_cpu.filter(|cpu| *cpu != self.client_cpu).map(|cpu| (self.client_cpu, cpu))
    }

    /// Whether it waits for its reply at the trace's end. Its duration is its age.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        !self.doubtful && self.outcome == Outcome::Cut
    }

    /// Whether it is a call that is known to have taken longer than this: it was answered then, or it still waits.
    #[must_use]
    pub fn is_over(&self, deadline_ns: u64) -> bool {
        !self.oneway && (self.is_sound() || self.is_unanswered()) && self.ns() > deadline_ns
    }

    /// Whether its duration is valid: the call completed, and no events are missing.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        !self.doubtful && matches!(self.outcome, Outcome::Replied | Outcome::Delivered)
    }
}

/// Call that has not ended, or oneway call that nobody received yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenTransaction {
    /// The driver's number of the transaction.
    pub debug_id: i32,
    /// Called node.
    pub node: i32,
    /// Transaction code.
    pub code: u32,
    /// Whether it is oneway.
    pub oneway: bool,
    /// Calling thread.
    pub client: i32,
    /// Its process, if known.
    pub client_tgid: Option<i32>,
    /// Called process.
    pub to_proc: i32,
    /// Serving thread, if the call was received.
    pub server: Option<i32>,
    /// When it was sent, in nanoseconds of the trace clock.
    pub begin: u64,
    /// When the server received it.
    pub received: Option<u64>,
    /// Events are missing since it began; it may have ended.
    pub doubtful: bool,
}

/// Interval in which events of a CPU are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The CPU's last event before the gap.
    pub begin: u64,
    /// The CPU's first event after the gap.
    pub end: u64,
}

impl Gap {
    /// Whether any time passed in it.
    pub(crate) fn has_time(&self) -> bool {
        self.begin < self.end
    }
}
