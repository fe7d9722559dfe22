//! Why the driver ended a call without a reply, as far as events show it.
//! Not here: pairing events with calls (`calls`), sentences (`verdict::text`).
//! Facts: `binder_transaction` of `drivers/android/binder.c`, Linux 7.2: it emits its event once it has the target, then
//! allocates the receiver's buffer (`binder_transaction_alloc_buf`), then translates objects, and releases the buffer
//! (`binder_transaction_failed_buffer_release`) if it may not pass one on.

use super::history::History;
use super::thread::SchedState;
use crate::cause::Evidence;
use crate::event::{Flavour, State};

/// Word with which the driver ended a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// `BR_FAILED_REPLY`.
    Failed,
    /// `BR_DEAD_REPLY`.
    Dead,
    /// `BR_FROZEN_REPLY`.
    Frozen,
}

impl Word {
    pub(super) fn of(cmd: u32) -> Option<Self> {
        match cmd {
            0x7205 => Some(Self::Dead),
            0x7211 => Some(Self::Failed),
            0x7212 => Some(Self::Frozen),
            _ => None,
        }
    }

    /// The driver's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Failed => "BR_FAILED_REPLY",
            Self::Dead => "BR_DEAD_REPLY",
            Self::Frozen => "BR_FROZEN_REPLY",
        }
    }
}

/// What events show of the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The driver refused it before it had a target.
    NoTarget,
    /// The receiver's buffer had no room.
    NoRoom,
    /// Something in its data could not be passed on.
    BadData,
    /// The caller's buffer had no room for the reply.
    NoRoomForReply,
    /// Something in the reply's data could not be passed on.
    BadReply,
    /// The thread that served it exited.
    ServerExited,
    /// The called process exited.
    ProcessExited,
    /// The calling thread exited.
    CallerExited,
    /// Its caller went on without an answer.
    CallerWentOn,
}

impl Why {
    /// As a clause.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::NoTarget => {
                "the driver refused it before it was sent: the service is dead, its handle is none, or a right is missing"
            }
            Self::NoRoom => "no room for it in the receiver's buffer",
            Self::BadData => "an object, a handle or a descriptor in its data could not be passed on",
            Self::NoRoomForReply => "no room for the reply in the caller's buffer",
            Self::BadReply => "an object, a handle or a descriptor in the reply could not be passed on",
            Self::ServerExited => "the thread that served it exited",
            Self::ProcessExited => "the called process exited",
            Self::CallerExited => "the calling thread exited",
            Self::CallerWentOn => "its caller went on without an answer",
        }
    }
}

/// End of a call that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Failure {
    /// The driver's word; `None` if the trace does not have it.
    pub word: Option<Word>,
    /// What events show of the reason.
    pub why: Option<Why>,
}

/// What a failed call was, as far as its failure goes.
pub(super) struct Failed {
    pub(super) flavour: Flavour,
    /// 0 if the driver made no transaction of it.
    pub(super) debug_id: i32,
    pub(super) client: i32,
    pub(super) server: Option<i32>,
    pub(super) to_proc: i32,
    pub(super) replied: bool,
    pub(super) fate: Fate,
    pub(super) end: u64,
}

/// What events say of a call's failure, before it has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) word: Option<Word>,
    /// The buffer for the call's data.
    pub(crate) request: Data,
    /// The buffer for its reply's.
    pub(crate) reply: Data,
}

impl Failure {
    /// Of a call that ended without a reply.
    pub(super) fn of(history: &History, call: &Failed) -> Self {
        let Fate { word, request, reply } = call.fate;
        let dead = |tid: i32| {
            let run = history.thread(tid).and_then(|thread| thread.run.at(call.end));
            matches!(run, Some(SchedState::Sleeping { state: State::Dead, .. }))
        };
        // The other drivers emit these events in another order, or not at all.
        let buffers = call.flavour == Flavour::C && history.shown.has(Evidence::Buffers);
        let why = match word {
            _ if call.debug_id == 0 => Some(Why::NoTarget),
            None if dead(call.client) => Some(Why::CallerExited),
            None => Some(Why::CallerWentOn),
            Some(Word::Frozen) => None,
            _ if call.server.is_some_and(dead) => Some(Why::ServerExited),
            _ if dead(call.to_proc) => Some(Why::ProcessExited),
            Some(Word::Failed) if call.replied => reply.why(buffers, Why::NoRoomForReply, Why::BadReply),
            Some(Word::Failed) if call.server.is_none() => request.why(buffers, Why::NoRoom, Why::BadData),
            Some(_) => None,
        };
        Self { word, why }
    }
}

/// What became of the buffer for a call's or a reply's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Data {
    #[default]
    Unseen,
    /// The receiver has room.
    Allocated,
    /// Given back, because something in it could not be passed on.
    Undone,
}

impl Data {
    fn why(self, buffers: bool, no_room: Why, bad: Why) -> Option<Why> {
        match self {
            Self::Unseen => buffers.then_some(no_room),
            Self::Allocated => None,
            Self::Undone => Some(bad),
        }
    }
}
