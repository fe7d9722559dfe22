//! Contract section 5: calls and replies that the driver refuses.

use crate::prelude::*;

pub(super) fn tx_07_no_manager_is_dead(kit: &Kit) -> Verdict {
    let client = kit.open()?;
    kit.wait_until_unmanaged(&client)?;
    expect_work("calling handle 0 of an unmanaged context", &client.call(Handle(0))?, "DEAD_REPLY")?;
    kit.expect_error(&client, Some((br::DEAD_REPLY, "EINVAL")), None)
}

pub(super) fn tx_08_unknown_and_weak_handles_fail(kit: &Kit) -> Verdict {
    let (server, client) = (kit.server()?, kit.open()?);
    kit.expect_failed(&client, &client.call(Handle(4000))?, "EINVAL", "ENOENT")?;
    Kit::write_leave(&server, object::WEAK_BINDER, Node::number(1), 1)?;
    let weak = kit.fetch(&client, 1)?;
    kit.expect_failed(&client, &client.call(weak)?, "EINVAL", "EINVAL")
}

pub(super) fn tx_12_an_error_has_no_completion(kit: &Kit) -> Verdict {
    let Pair { server: _server, client, handle, .. } = kit.pair()?;
    expect("an unknown handle", client.call(Handle(4000))?.work().as_str(), "FAILED_REPLY")?;
    client.expect_silence("after the error")?;
    let unaligned = Payload { data: &[0; 64], offsets: &[1], ..Payload::default() };
    let got = client.call_with(handle, 1, unaligned)?;
    expect("an object at an odd address", got.work().as_str(), "FAILED_REPLY")?;
    client.expect_silence("after the error")
}

pub(super) fn tx_13_one_call_at_a_time(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let (doomed, node) = (kit.server()?, Node::number(2));
    let dead = kit.hand_over(&doomed, &client, node)?;
    client.start_call(handle, 1, b"")?;
    server.read()?.call()?;
    client.start_call(handle, 2, b"")?;
    client.expect_read("a second call during the first", "COMPLETE FAILED_REPLY")?;
    kit.expect_failure(&client, "EPROTO", "EINVAL")?;
    expect_work("a third of an unknown handle", &client.call(Handle(4000))?, "FAILED_REPLY")?;
    kit.expect_failure(&client, "EINVAL", "ENOENT")?;
    kit.watch(&doomed, node)?.outlive(doomed)?;
    let want = kit.by_driver("DEAD_REPLY", "FAILED_REPLY");
    expect_work("one of a node whose owner died", &client.call(dead)?, want)?;
    kit.expect_error(&client, Some((br::DEAD_REPLY, "EINVAL")), Some((br::FAILED_REPLY, "EINVAL")))?;
    server.finish_call()?;
    client.expect_read("the first call", "REPLY")?;
    server.expect_silence("of the second call")
}

pub(super) fn tx_15_undelivered_work_forbids_calling(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    let Pair { server, client, handle, .. } = kit.pair()?;
    let partner = kit.server()?;
    let other = kit.hand_over(&partner, &server, Node::number(2))?;
    let worker = Worker::new()?;
    // A read with too small a buffer sleeps, gets the call, and must leave it undelivered (WR-08).
    let task = crate::write_read::sleeping_read(&worker, &server, 40)?;
    client.oneway(handle, 1, b"")?;
    let (result, _, got) = task.wait("a read with little room")?;
    expect("a read with little room", (result.as_str(), got?.shape().as_str()), ("OK", "NOOP"))?;
    let got = server.on(&worker, move |server| server.call(other))?;
    expect_work("the undelivered call, then calling from there", &got, "TRANSACTION FAILED_REPLY")?;
    let error = server.on(&worker, RawProcess::extended_error)?;
    expect("the extended error", sys::errno::name(-error.param), Some("EPROTO"))?;
    // A reply is a transaction, too; a call that failed meanwhile takes the acknowledgement before it along.
    client.start_call(handle, 2, b"")?;
    expect_work("a second call meanwhile", &client.call(handle)?, "COMPLETE FAILED_REPLY")?;
    server.echo()?;
    expect_work("an unread reply, then calling", &client.call(handle)?, "REPLY")?;
    client.expect_read("the call beside an unread reply", "FAILED_REPLY").map(drop)
}

pub(super) fn tx_16_a_reply_needs_a_call(kit: &Kit) -> Verdict {
    let (Pair { server, client, .. }, _) = kit.called_pair(TransactionFlags::CALL)?;
    let bare = kit.open()?;
    kit.expect_failed(&bare, &bare.answer(b"")?, "EPROTO", "EINVAL")?;
    let (got, error) =
        server.on(&Worker::new()?, |server| Ok((server.answer(b"")?, server.extended_error())))?;
    expect_work("a reply from another thread of the server", &got, "FAILED_REPLY")?;
    if let Ok(error) = error {
        expect("a number as its id", error.id != 0, true)?;
        let want = kit.by_driver("EPROTO", "EINVAL");
        expect("its extended error", sys::errno::name(-error.param), Some(want))?;
    }
    client.reply(Payload::default())?;
    client.expect_read("a reply while one's own call is on top", "COMPLETE FAILED_REPLY")?;
    kit.expect_failure(&client, "EPROTO", "EINVAL")?;
    server.finish_call()?;
    expect_work("the call all the same", &client.read()?, "REPLY")
}

pub(super) fn tx_17_a_bad_reply_fails_the_call(kit: &Kit) -> Verdict {
    // The call did not allow descriptors in its reply.
    let (Pair { server, client, handle, .. }, _) = kit.called_pair(PLAIN_CALL)?;
    let with_fd = Draft::of(&fd(1));
    let mut commands = Commands::default();
    commands.reply(TransactionFlags::default(), with_fd.payload());
    commands.enter_looper();
    expect("bytes taken of a bad reply and more", server.write_some(&commands)?, 68)?;
    server.expect_read("what the replier reads", "COMPLETE")?;
    client.expect_ending("what the caller reads", "COMPLETE FAILED_REPLY")?;
    kit.expect_failure(&client, "EPERM", "EPERM")?;
    client.start_call(handle, 1, b"")?;
    server.read()?.call()?;
    // Together with the first call's reply too much for the caller's mapping.
    server.reply(Payload { buffers_size: Some(8), ..plain(zeroes(default_map_size())) })?;
    server.expect_read("what the replier reads", "COMPLETE")?;
    client.expect_ending("what the caller reads", "COMPLETE FAILED_REPLY")?;
    kit.expect_failure(&client, "ENOSPC", "ENOSPC")
}

pub(super) fn tx_20_extended_errors_are_per_thread(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let client = &pair.client;
    client.extended_error()?;
    expect_work("an unknown handle", &client.call(Handle(4000))?, "FAILED_REPLY")?;
    let elsewhere = client.on(&Worker::new()?, RawProcess::extended_error)?;
    expect("another thread's extended error", elsewhere.command, br::OK)?;
    client.round_trip("a good call", pair.handle, &pair.server)?;
    expect("the extended error after a good call", client.extended_error()?.command, br::OK)?;
    expect_work("an unknown handle", &client.call(Handle(4000))?, "FAILED_REPLY")?;
    let (first, _) = (client.extended_error()?, client.call(Handle(4000))?);
    let second = client.extended_error()?;
    expect("ids of two failures one after the other", second.id > first.id, true)
}

pub(super) fn tx_21_extended_errors_say_why(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.extended_error()?;
    let no_fds = kit.hand_over(&server, &client, Node::number(2).flags(0))?;
    let big = Payload { buffers_size: Some(8), ..plain(zeroes(default_map_size())) };
    for (handle, payload, c, rust) in [
        (Handle(4000), Payload::default(), "EINVAL", "ENOENT"),
        (handle, Draft::of(&flat_object(0x1234_5678, 0, 0)).payload(), "EINVAL", "EINVAL"),
        (no_fds, Draft::of(&fd(1)).payload(), "EPERM", "EPERM"),
        (handle, Draft::of(&fd(9999)).payload(), "EBADF", "EBADF"),
        (handle, big, "ENOSPC", "ENOSPC"),
    ] {
        kit.expect_failed(&client, &client.call_with(handle, 1, payload)?, c, rust)?;
    }
    let unreadable =
        TransactionData { target: handle.0.into(), data_size: 64, buffer: 8, ..Default::default() };
    client.write_raw(bc::TRANSACTION, &unreadable)?;
    kit.expect_failed(&client, &client.ending()?, "EFAULT", "EFAULT")?;
    kit.freeze_self(&client, true)?;
    let frozen = client.call(handle);
    kit.freeze_self(&client, false)?;
    expect_work("a frozen process", &frozen?, "FROZEN_REPLY")?;
    kit.expect_error(&client, Some((br::FROZEN_REPLY, "0")), None)?;
    // Without a call, nothing but the order of commands is wrong.
    kit.expect_failed(&client, &client.answer(b"")?, "EPROTO", "EINVAL")
}

pub(super) fn tx_22_a_frozen_process_refuses(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    kit.freeze_self(&client, true)?;
    let got = client.call(handle);
    expect("what the caller reads", got?.work().as_str(), "FROZEN_REPLY")?;
    kit.expect_error(&client, Some((br::FROZEN_REPLY, "0")), None)?;
    client.expect_silence("after the refusal")?;
    kit.freeze_self(&client, false)?;
    server.expect_silence("of the refused call")
}

pub(super) fn tx_25_a_second_unread_failure(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    // A reply that cannot be delivered ends the call, so that another may follow before its failure was read.
    for _ in 0..2 {
        client.start_call(handle, 1, b"")?;
        let call = server.read()?.call()?;
        server.reply(Draft::of(&flat_object(object::FD, 9999, 0)).payload())?;
        server.read()?;
        server.free(&call)?;
    }
    let got = client.read_on(Got::default(), |got| got.work().matches("COMPLETE").count() == 2)?;
    expect_work("what the thread reads", &got, "COMPLETE FAILED_REPLY COMPLETE")?;
    client.expect_silence("both calls ended")?;
    client.round_trip("a call afterwards", handle, &server)
}
