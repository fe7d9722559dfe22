//! The thread for which a driver call is made: the calling thread, or another one that a supervisor speaks for.
//! Facts: contract EXT-03 (the driver knows threads by their kernel thread id).

use sys::interrupt::ThreadId;
use sys::sched;

use crate::rpc::protocol::Sched;
use crate::trace_events::TaskId;

/// A thread as the driver knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The calling thread.
    #[default]
    Caller,
    /// The thread with this kernel thread id, of any process.
    Other(i32),
}

impl Identity {
    /// Kernel thread id.
    pub(super) fn tid(self) -> i32 {
        match self {
            Self::Caller => ThreadId::current().number(),
            Self::Other(tid) => tid,
        }
    }

    /// The thread as trace events name it.
    pub(super) fn named(self) -> TaskId {
        TaskId { pid: std::process::id(), tid: self.tid() as u32 }
    }

    /// The number by which the scheduling calls know the thread; 0 is the calling thread.
    pub(super) fn number(self) -> i32 {
        match self {
            Self::Caller => 0,
            Self::Other(tid) => tid,
        }
    }

    /// Scheduling of the thread; the calling thread's is cached for a few milliseconds to save system calls.
    pub(super) fn scheduling(self) -> Sched {
        match self {
            Self::Caller => sched::own_lately().into(),
            Self::Other(_) => self.asked(),
        }
    }

    /// Scheduling of the thread now: another thread may have changed it. The nice is left out under a real-time
    /// policy if the thread is the calling one, which takes one system call instead of three.
    pub(super) fn scheduling_now(self) -> Sched {
        match self {
            Self::Caller => sched::attributes().into(),
            Self::Other(_) => self.asked(),
        }
    }

    /// Scheduling of the thread now, with its nice; fair with nice 0 if the thread is gone.
    pub(super) fn asked(self) -> Sched {
        let thread = self.number();
        let policy = sched::policy_of(thread).unwrap_or(sched::Policy::Other);
        sched::Own { policy, nice: sched::nice_of(thread).unwrap_or(0) }.into()
    }
}
