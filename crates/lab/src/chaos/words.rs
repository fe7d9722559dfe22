//! Room: the words that conductor and processes say to each other, one line each, over pipes.

/// Part: the context's service manager. As a target: the same.
pub(super) const MANAGER: &str = "manager";
/// Part: a process of the test.
pub(super) const MEMBER: &str = "member";
/// In place of a fault's name.
pub(super) const NONE: &str = "-";
/// What the word for "whoever is at this place" begins with.
pub(super) const PLACE: &str = "place-";

/// To a process: no more traffic.
pub(super) const STOP: &str = "stop";
/// To a process, with all that died: let go of everything.
pub(super) const SETTLE: &str = "settle";
/// To a process: what do you wait for?
pub(super) const WAITS: &str = "waits";
/// To a process: how much memory? And the answer, with KiB.
pub(super) const MEMORY: &str = "memory";
/// To a process: end.
pub(super) const LEAVE: &str = "leave";

/// From a process: it serves.
pub(super) const READY: &str = "ready";
/// From a process: its traffic has ended, and arrived.
pub(super) const STOPPED: &str = "stopped";
/// From a process: it holds nothing any more.
pub(super) const SETTLED: &str = "settled";
