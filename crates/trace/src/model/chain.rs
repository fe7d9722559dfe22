//! Chain of waits: whom a thread of a transaction waited for, whom that one waited for, until the time is explained.
//! Not here: following it (`follow`), its report (`chain` of `verdict`).

use serde::{Deserialize, Serialize};

use crate::cause::{Cause, SliceName, Waker};
use crate::event::{CodeLocation, Name};

/// Stretch of time of one thread in a chain.
///
/// A chain is a list in which the links behind one that waits for a thread, and one deeper, divide its time without gap or
/// overlap. Each nanosecond of the first one is in exactly one link that waits for no thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Begin, in nanoseconds of the trace clock.
    pub begin: u64,
    /// End.
    pub end: u64,
    /// 0 for a wait of the transaction itself, 1 for whom it waited for, and so on.
    pub depth: u8,
    /// The thread.
    pub tid: i32,
    /// Its name at that time.
    pub comm: Name,
    /// What it did, or why it did nothing.
    pub cause: Cause,
    /// CPU that it ran on or waited for.
    pub cpu: Option<u32>,
    /// Innermost slice that it was in.
    pub slice: SliceName,
    /// Work item that it executed, if it is a kernel worker.
    pub work: CodeLocation,
    /// What it waited for.
    pub next: Next,
}

impl Link {
    /// Duration in nanoseconds.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.end - self.begin
    }

    /// The thread that it waited for.
    #[must_use]
    pub fn waits_for(&self) -> Option<i32> {
        match self.next {
            Next::Thread(_, tid) => Some(tid),
            _ => None,
        }
    }
}

/// What a link waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing that has a chain: it ran, or its cause says it all.
    Nothing,
    /// A thread; the links behind this one, one deeper, show what that one did.
    Thread(Tie, i32),
    /// An interrupt, as of a timer or a disk, ended the wait.
    Interrupt(Waker),
    /// The chain stops here.
    Stopped(Stop),
}

/// How it is known that a link waited for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// The waiter's own slice names the thread as the owner of what it waited for.
    Owner,
    /// The thread woke the waiter.
    Waker,
    /// The thread served this call of the waiter.
    Call(i32),
    /// The call waited until the thread had finished other work: this call, if known.
    Busy(Option<i32>),
}

/// Why a chain stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// Events are missing.
    #[serde(rename = "lost_events")]
    Lost,
    /// The trace does not show what the thread did or who woke it.
    #[serde(rename = "not_shown")]
    NotShown,
    /// It leads back to a thread that is in it: a deadlock, or a wake-up that changed hands.
    #[serde(rename = "circle")]
    Circle,
    /// The limit of links one behind the other.
    #[serde(rename = "depth")]
    Depth,
    /// The limit of links of one call.
    #[serde(rename = "room")]
    Room,
    /// A thread of this ID had not begun yet, or had exited.
    #[serde(rename = "gone")]
    Gone,
}

/// How it is known what a link waited for: [`Next`] without its data. Results have its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The waiter's slice names the thread.
    Owner,
    /// The thread woke it.
    Waker,
    /// The thread served its call.
    Call,
    /// The thread had other work first.
    Busy,
    /// An interrupt ended the wait.
    Interrupt,
    /// It is not known: the chain stops here.
    #[serde(untagged)]
    Stopped(Stop),
}

impl Next {
    /// How it is known; `None` for nothing.
    #[must_use]
    pub fn how(self) -> Option<How> {
        match self {
            Self::Nothing => None,
            Self::Thread(Tie::Owner, _) => Some(How::Owner),
            Self::Thread(Tie::Waker, _) => Some(How::Waker),
            Self::Thread(Tie::Call(_), _) => Some(How::Call),
            Self::Thread(Tie::Busy(_), _) => Some(How::Busy),
            Self::Interrupt(_) => Some(How::Interrupt),
            Self::Stopped(stop) => Some(How::Stopped(stop)),
        }
    }
}
