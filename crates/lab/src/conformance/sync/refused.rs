//! Room: contract section 5: calls and replies that the driver refuses.

use abi::codes::{bc, br, object};
use abi::layout::{FdObject, FlatBinderObject, TransactionData};
use abi::{Commands, Handle, Payload, TransactionFlags};
use zerocopy::{FromZeros, IntoBytes};

use super::{BIG, served};
use crate::conformance::item::{Stop, Verdict, expect};
use crate::conformance::kit::{Kit, Pair};
use crate::conformance::party::{Got, Node, PLAIN_CALL, Party, expect_work};
use crate::conformance::worker::Worker;

/// Calls without data.
fn call(client: &Party, handle: Handle) -> Result<Got, Stop> {
    client.call(handle, 1, TransactionFlags::CALL, Payload::default())
}

pub(super) fn tx_07_no_manager_is_dead(kit: &Kit) -> Verdict {
    let client = kit.open()?;
    kit.wait_until_unmanaged(&client)?;
    expect_work("calling handle 0 of an unmanaged context", &call(&client, Handle(0))?, "DEAD_REPLY")?;
    kit.expect_error(&client, Some((br::DEAD_REPLY, "EINVAL")), None)
}

pub(super) fn tx_08_unknown_and_weak_handles_fail(kit: &Kit) -> Verdict {
    let (server, client) = (kit.server()?, kit.open()?);
    kit.expect_failed(&client, &call(&client, Handle(4000))?, "EINVAL", "ENOENT")?;
    kit.write_leave(&server, object::WEAK_BINDER, Node::number(1), 1)?;
    let weak = kit.fetch(&client, 1)?;
    kit.expect_failed(&client, &call(&client, weak)?, "EINVAL", "EINVAL")
}

pub(super) fn tx_12_an_error_has_no_completion(kit: &Kit) -> Verdict {
    let Pair { server: _server, client, handle, .. } = kit.pair()?;
    expect("an unknown handle", call(&client, Handle(4000))?.work().as_str(), "FAILED_REPLY")?;
    client.expect_silence("after the error")?;
    let unaligned = Payload { data: &[0; 64], offsets: &[1], ..Payload::default() };
    let got = client.call(handle, 1, TransactionFlags::CALL, unaligned)?;
    expect("an object at an odd address", got.work().as_str(), "FAILED_REPLY")?;
    client.expect_silence("after the error")
}

pub(super) fn tx_13_one_call_at_a_time(kit: &Kit) -> Verdict {
    let (Pair { server, client, handle, .. }, _) = served(kit, TransactionFlags::CALL)?;
    client.start_call(handle, 2, b"")?;
    expect_work("a second call during the first", &client.read()?, "COMPLETE FAILED_REPLY")?;
    kit.expect_error(&client, Some((br::FAILED_REPLY, "EPROTO")), Some((br::FAILED_REPLY, "EINVAL")))?;
    expect_work("answering the first", &server.answer(b"")?, "COMPLETE")?;
    expect_work("the first call", &client.read()?, "REPLY")?;
    server.expect_silence("of the second call")
}

pub(super) fn tx_15_undelivered_work_forbids_calling(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    let Pair { server, client, handle, .. } = kit.pair()?;
    let partner = kit.server()?;
    let other = kit.hand_over(&partner, &server, Node::number(2))?;
    let worker = Worker::new()?;
    // A read with too little room sleeps, is given the call, and must leave it undelivered (WR-08).
    let task = crate::conformance::write_read::sleeping_read(&worker, &server, 40)?;
    client.send_oneway(handle, 1, b"")?;
    let (result, _, got) = task.wait("a read with little room")?;
    expect("a read with little room", (result.as_str(), got?.shape().as_str()), ("OK", "NOOP"))?;
    let (party, started) = (server.clone(), server.clone());
    let got = worker.run(move || call(&party, other))??;
    expect_work("the undelivered call, then calling from there", &got, "TRANSACTION FAILED_REPLY")?;
    let error = worker.run(move || started.extended_error())??;
    expect("the extended error", sys::errno::name(-error.param), Some("EPROTO"))
}

pub(super) fn tx_16_a_reply_needs_a_call(kit: &Kit) -> Verdict {
    let (Pair { server, client, .. }, _) = served(kit, TransactionFlags::CALL)?;
    let bare = kit.open()?;
    let refused = |party: &Party| {
        let got = party.answer(b"")?;
        kit.expect_failed(party, &got, "EPROTO", "EINVAL")
    };
    refused(&bare)?;
    let (other, worker) = (server.clone(), Worker::new()?);
    let (got, error) = worker.run(move || {
        let got = other.answer(b"")?;
        Ok::<_, Stop>((got, other.extended_error()))
    })??;
    expect_work("a reply from another thread of the server", &got, "FAILED_REPLY")?;
    if let Ok(error) = error {
        expect(
            "its extended error",
            sys::errno::name(-error.param),
            Some(kit.by_driver("EPROTO", "EINVAL")),
        )?;
    }
    client.write(|c| c.reply(TransactionFlags::default(), Payload::default()))?;
    let got = client.read()?;
    expect_work("a reply while one's own call is on top", &got, "COMPLETE FAILED_REPLY")?;
    kit.expect_error(&client, Some((br::FAILED_REPLY, "EPROTO")), Some((br::FAILED_REPLY, "EINVAL")))?;
    expect_work("answering", &server.answer(b"")?, "COMPLETE")?;
    expect_work("the call all the same", &client.read()?, "REPLY")
}

/// An object for this process's standard output.
fn fd_object(fd: u64) -> FdObject {
    FdObject { kind: object::FD, fd, ..FdObject::new_zeroed() }
}

pub(super) fn tx_17_a_bad_reply_fails_the_call(kit: &Kit) -> Verdict {
    // The call did not allow descriptors in its reply.
    let (Pair { server, client, handle, .. }, _) = served(kit, PLAIN_CALL)?;
    let object = fd_object(1);
    let mut commands = Commands::default();
    let with_fd = Payload { data: object.as_bytes(), offsets: &[0], ..Payload::default() };
    commands.reply(TransactionFlags::default(), with_fd);
    commands.enter_looper();
    expect("bytes taken of a bad reply and more", server.write_some(&commands)?, 68)?;
    expect_work("what the replier reads", &server.read()?, "COMPLETE")?;
    expect_work("what the caller reads", &client.ending()?, "COMPLETE FAILED_REPLY")?;
    kit.expect_error(&client, Some((br::FAILED_REPLY, "EPERM")), Some((br::FAILED_REPLY, "EPERM")))?;
    client.start_call(handle, 1, b"")?;
    server.read()?.call()?;
    let mut commands = Commands::default();
    // With the first call's reply, too much for the caller's area.
    commands.reply(
        TransactionFlags::default(),
        Payload { data: &BIG, buffers_size: Some(8), ..Payload::default() },
    );
    server.write_some(&commands)?;
    expect_work("what the replier reads", &server.read()?, "COMPLETE")?;
    expect_work("what the caller reads", &client.ending()?, "COMPLETE FAILED_REPLY")?;
    kit.expect_error(&client, Some((br::FAILED_REPLY, "ENOSPC")), Some((br::FAILED_REPLY, "ENOSPC")))
}

pub(super) fn tx_20_extended_errors_are_per_thread(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.extended_error()?;
    expect_work("an unknown handle", &call(&client, Handle(4000))?, "FAILED_REPLY")?;
    let (other, worker) = (client.clone(), Worker::new()?);
    let elsewhere = worker.run(move || other.extended_error())??;
    expect("another thread's extended error", elsewhere.command, br::OK)?;
    client.start_call(handle, 1, b"")?;
    server.echo()?;
    expect_work("a good call", &client.ending()?, "COMPLETE REPLY")?;
    expect("the extended error after a good call", client.extended_error()?.command, br::OK)?;
    expect_work("an unknown handle", &call(&client, Handle(4000))?, "FAILED_REPLY")?;
    let (first, _) = (client.extended_error()?, call(&client, Handle(4000))?);
    let second = client.extended_error()?;
    expect("ids of two failures one after the other", second.id > first.id, true)
}

/// A call whose data lies where nobody may read.
fn unreadable_call(client: &Party, handle: Handle) -> Result<Got, Stop> {
    let data = TransactionData { target: handle.0.into(), data_size: 64, buffer: 8, ..Default::default() };
    client.write(|c| c.append(&[bc::TRANSACTION.as_bytes(), data.as_bytes()].concat()))?;
    client.ending()
}

pub(super) fn tx_21_extended_errors_say_why(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.extended_error()?;
    let no_fds = kit.hand_over(&server, &client, Node::number(2).flags(0))?;
    let with = |handle, object: &[u8]| {
        let payload = Payload { data: object, offsets: &[0], ..Payload::default() };
        client.call(handle, 1, TransactionFlags::CALL, payload)
    };
    let failed = |got: Result<Got, Stop>, c, rust| kit.expect_failed(&client, &got?, c, rust);
    failed(call(&client, Handle(4000)), "EINVAL", "ENOENT")?;
    let unknown = FlatBinderObject { kind: 0x1234_5678, ..FlatBinderObject::new_zeroed() };
    failed(with(handle, unknown.as_bytes()), "EINVAL", "EINVAL")?;
    failed(with(no_fds, fd_object(1).as_bytes()), "EPERM", "EPERM")?;
    failed(with(handle, fd_object(9999).as_bytes()), "EBADF", "EBADF")?;
    failed(unreadable_call(&client, handle), "EFAULT", "EFAULT")?;
    let big = Payload { data: &BIG, buffers_size: Some(8), ..Payload::default() };
    failed(client.call(handle, 1, TransactionFlags::CALL, big), "ENOSPC", "ENOSPC")?;
    kit.freeze_self(&client, true)?;
    let frozen = call(&client, handle);
    kit.freeze_self(&client, false)?;
    expect_work("a frozen process", &frozen?, "FROZEN_REPLY")?;
    kit.expect_error(&client, Some((br::FROZEN_REPLY, "0")), None)
}

pub(super) fn tx_22_a_frozen_process_refuses(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    kit.freeze_self(&client, true)?;
    let got = call(&client, handle);
    expect("what the caller reads", got?.work().as_str(), "FROZEN_REPLY")?;
    kit.expect_error(&client, Some((br::FROZEN_REPLY, "0")), None)?;
    client.expect_silence("after the refusal")?;
    kit.freeze_self(&client, false)?;
    server.expect_silence("of the refused call")
}
