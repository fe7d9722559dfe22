//! Since when a server thread is free for its next call.
//! Not here: the wait for it (`divide`).

/// Since when the thread that took a call was free for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Free {
    /// It had served nothing, or the call was for this thread alone.
    #[default]
    Always,
    /// Since its last reply.
    Replied(u64),
    /// It waited for work since then; before, it served a oneway call, whose end no event shows.
    Waited(u64),
    /// It took a oneway call before, whose end no event shows.
    Unseen,
}
