//! Data of one picture: the history around one call, or around a burst of calls. Times are nanoseconds of the trace
//! clock.
//! Not here: collecting it (`collect`), drawing it (`layout`).

use crate::verdict::{Role, SlowCall, ThreadInfo};

/// Time interval with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice<T> {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) what: T,
}

impl PictureData {
    /// Whether it shows this call.
    pub(super) fn shows(&self, slow: &SlowCall) -> bool {
        self.call == Some((slow.debug_id, slow.begin_ns))
    }
}

impl<T> Slice<T> {
    /// Duration in nanoseconds.
    pub(super) fn ns(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// Activity of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ThreadActivity {
    /// Runs on this CPU.
    Running(u32),
    /// Waits for this CPU.
    Runnable(u32),
    /// Waits for work.
    Sleeping,
    /// Blocked in the middle of its work, with the reason.
    Blocked(String),
    /// Waits for this thread, which is on the path of the call.
    WaitsFor(String),
    /// Not shown by the trace.
    Unknown,
}

/// Occupant of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CpuOccupant {
    Idle,
    Task(ThreadInfo),
    /// Not shown by the trace.
    Unknown,
}

/// Lane of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThreadLane {
    pub(super) who: ThreadInfo,
    pub(super) role: Role,
    /// Number of its pair, from 1, if several pairs are shown; otherwise 0.
    pub(super) pair: usize,
    /// Activities in order, without overlap.
    pub(super) slices: Vec<Slice<ThreadActivity>>,
}

/// Lane of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CpuLane {
    pub(super) cpu: u32,
    /// Occupants in order, without overlap.
    pub(super) slices: Vec<Slice<CpuOccupant>>,
    /// Interrupts and softirqs, by name.
    pub(super) interrupts: Vec<Slice<String>>,
}

/// Call between two threads, with its reply: two arrows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) debug_id: i32,
    pub(super) caller: i32,
    pub(super) server: i32,
    pub(super) sent: u64,
    /// When the server was woken for it; if it was awake, when it received the call.
    pub(super) woken: u64,
    pub(super) received: u64,
    pub(super) replied: Option<u64>,
    /// When the caller was woken for the reply; if it was awake, when it received the reply.
    pub(super) caller_woken: Option<u64>,
    /// When the caller had the reply.
    pub(super) end: u64,
}

/// Wake-up of a thread by the one that it waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WakeUp {
    pub(super) waker: i32,
    pub(super) woken: i32,
    pub(super) at: u64,
}

/// Counts of what the picture omits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Slices, the shortest of their lanes.
    pub(super) slices: usize,
    /// Threads, the last to take part.
    pub(super) threads: usize,
    /// CPUs, the last to take part.
    pub(super) cpus: usize,
    /// Calls beyond the maximum.
    pub(super) calls: usize,
}

/// Everything that one picture shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureData {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Zero of the axis.
    pub(super) zero: u64,
    /// Number and begin of the call that it shows; `None` for the busiest burst.
    pub(super) call: Option<(i32, u64)>,
    /// Threads that took part.
    pub(super) threads: Vec<ThreadLane>,
    /// CPUs that these threads used or waited for.
    pub(super) cpus: Vec<CpuLane>,
    /// Calls between the threads.
    pub(super) hops: Vec<Hop>,
    /// Wake-ups along the path of the call.
    pub(super) wakes: Vec<WakeUp>,
    pub(super) left_out: LeftOut,
}
