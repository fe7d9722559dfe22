//! One return of each kind, waiting to be read: for promises about all of them.

use std::any::Any;

use crate::prelude::*;

const COOKIE: Cookie = Cookie(0xed_0001);

/// A process that has one return to read.
pub(super) struct Waiting {
    pub process: RawProcess,
    /// Processes that must live until it was read.
    _alive: Box<dyn Any>,
}

/// A kind of return, and how it comes to wait.
pub(super) struct WaitingKind {
    /// The return's name.
    pub name: &'static str,
    /// Makes a process that has it to read.
    pub prepare: fn(&Kit) -> Result<Waiting, Stop>,
    /// Its length in bytes, with the word.
    pub len: usize,
    /// The line of the state that names it, as far as it is the same each time.
    pub line: &'static str,
    /// The line of the stats that counts what waits, if one does.
    pub counted: Option<&'static str>,
}

const fn kind(
    name: &'static str,
    prepare: fn(&Kit) -> Result<Waiting, Stop>,
    len: usize,
    line: &'static str,
    counted: Option<&'static str>,
) -> WaitingKind {
    WaitingKind { name, prepare, len, line, counted }
}

/// Each kind but calls and replies.
pub(super) const KINDS: &[WaitingKind] = &[
    kind("FAILED_REPLY", error, 4, "transaction error: ", None),
    kind("TRANSACTION_COMPLETE", completion, 4, "transaction complete", Some("transaction_complete")),
    kind("INCREFS", references, 20, "node work ", None),
    kind("DEAD_BINDER", death, 12, "has dead binder", Some("death")),
    kind("CLEAR_DEATH_NOTIFICATION_DONE", cleared_death, 12, "has cleared death notification", Some("death")),
    kind(
        "CLEAR_DEATH_NOTIFICATION_DONE of a dead node",
        cleared_dead,
        12,
        "has cleared dead binder",
        Some("death"),
    ),
    kind("FROZEN_BINDER", freeze, 20, "has frozen binder", Some("freeze")),
    kind(
        "CLEAR_FREEZE_NOTIFICATION_DONE",
        cleared_freeze,
        12,
        "has cleared freeze notification",
        Some("freeze"),
    ),
];

fn waiting(process: RawProcess, alive: impl Any) -> Waiting {
    Waiting { process, _alive: Box::new(alive) }
}

/// A looper with a handle to a node of another process.
fn holder(kit: &Kit) -> Result<(RawProcess, RawProcess, Handle), Stop> {
    let Pair { server, client, handle, .. } = kit.looper_pair()?;
    Ok((client, server, handle))
}

fn error(kit: &Kit) -> Result<Waiting, Stop> {
    let process = kit.server()?;
    process.start_call(Handle(4000), 1, b"")?;
    Ok(waiting(process, ()))
}

fn completion(kit: &Kit) -> Result<Waiting, Stop> {
    let (client, server, handle) = holder(kit)?;
    client.send_oneway(handle, 1, b"")?;
    Ok(waiting(client, server))
}

fn references(kit: &Kit) -> Result<Waiting, Stop> {
    let process = kit.server()?;
    Kit::write_leave(&process, object::BINDER, Node::number(2), 2)?;
    Ok(waiting(process, ()))
}

/// A looper whose handle's owner died, which it asked for and has not read.
fn client_of_dead_node(kit: &Kit) -> Result<(RawProcess, Handle), Stop> {
    let (client, server, handle) = holder(kit)?;
    let watch = kit.watch(&server, Node::number(99))?;
    client.write(|c| c.request_death(handle, COOKIE))?;
    watch.outlive(server)?;
    Ok((client, handle))
}

fn death(kit: &Kit) -> Result<Waiting, Stop> {
    client_of_dead_node(kit).map(|(client, _)| waiting(client, ()))
}

fn cleared_dead(kit: &Kit) -> Result<Waiting, Stop> {
    let (client, handle) = client_of_dead_node(kit)?;
    client.write(|c| c.clear_death(handle, COOKIE))?;
    Ok(waiting(client, ()))
}

fn cleared_death(kit: &Kit) -> Result<Waiting, Stop> {
    let (client, server, handle) = holder(kit)?;
    client.write(|c| {
        c.request_death(handle, COOKIE);
        c.clear_death(handle, COOKIE);
    })?;
    Ok(waiting(client, server))
}

fn freeze(kit: &Kit) -> Result<Waiting, Stop> {
    let (client, server, handle) = holder(kit)?;
    client.write(|c| c.request_freeze(handle, COOKIE))?;
    Ok(waiting(client, server))
}

fn cleared_freeze(kit: &Kit) -> Result<Waiting, Stop> {
    let (client, server, handle) = holder(kit)?;
    client.write(|c| c.request_freeze(handle, COOKIE))?;
    client.expect_read("the first state", "FROZEN_BINDER")?;
    client.write(|c| {
        c.freeze_done(COOKIE);
        c.clear_freeze(handle, COOKIE);
    })?;
    Ok(waiting(client, server))
}
