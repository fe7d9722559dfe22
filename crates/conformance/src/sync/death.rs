//! Contract section 5: calls whose peer dies.

use crate::prelude::*;

/// A death after sending leaves no extended error.
fn expect_no_error(client: &RawProcess) -> Verdict {
    match client.extended_error() {
        Ok(error) => expect("the extended error", error.command, br::OK),
        Err(Stop::Skip(_)) => Ok(()),
        Err(stop) => Err(stop),
    }
}

pub(super) fn tx_09_a_dead_owner_is_told_at_once(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, node } = kit.pair()?;
    kit.watch(&server, node)?.outlive(server)?;
    expect_work("calling a node whose owner died", &client.call(handle)?, "DEAD_REPLY")?;
    client.expect_silence("after that")
}

pub(super) fn tx_10_a_server_that_dies_ends_the_call(kit: &Kit) -> Verdict {
    let (Pair { server, client, .. }, _) = kit.called_pair(TransactionFlags::CALL)?;
    server.thread_exit()?;
    client.expect_ending("the server's thread exits", "COMPLETE DEAD_REPLY")?;
    expect_no_error(&client)?;
    let (Pair { server, client, .. }, _) = kit.called_pair(TransactionFlags::CALL)?;
    drop(server);
    client.expect_ending("the server closes", "COMPLETE DEAD_REPLY")?;
    expect_no_error(&client)
}

pub(super) fn tx_11_an_undelivered_call_dies_with_its_target(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.start_call(handle, 1, b"")?;
    drop(server);
    expect_work("an unread call", &client.ending()?, "COMPLETE DEAD_REPLY")
}

pub(super) fn tx_18_a_reply_to_nobody_is_dropped(kit: &Kit) -> Verdict {
    let (Pair { server, client, .. }, _) = kit.called_pair(TransactionFlags::CALL)?;
    client.thread_exit()?;
    server.finish_call()?;
    client.expect_silence("the new thread of the same number")?;
    let (Pair { server, client, .. }, _) = kit.called_pair(TransactionFlags::CALL)?;
    client.thread_exit()?;
    server.reply(Draft::of(&Node::number(5).object(object::BINDER)).payload())?;
    server.expect_read("a reply with a node to a thread that exited", "COMPLETE")?;
    server.expect_silence("of a node that nobody got")?;
    let Pair { server, client, handle, .. } = kit.pair()?;
    let owned = Node::number(6);
    let watch = kit.watch(&client, owned)?;
    client.start_call(handle, 1, b"")?;
    server.read()?.call()?;
    watch.outlive(client)?;
    server.finish_call()?;
    for (used, at_once) in [(false, false), (false, true), (true, false), (true, true)] {
        for next in [Next::CallsBack, Next::Answers, Next::AnswersAndCloses] {
            called_back_by_the_dead(kit, used, at_once, next)?;
        }
    }
    Ok(())
}

pub(super) fn tx_19_a_chain_breaks_at_its_end(kit: &Kit) -> Verdict {
    let (first, middle, last) = (kit.open()?, kit.server()?, kit.server()?);
    let to_last = kit.hand_over(&last, &middle, Node::number(3))?;
    let to_middle = kit.hand_over(&middle, &first, Node::number(2))?;
    let watch = kit.watch(&middle, Node::number(2))?;
    first.start_call(to_middle, 1, b"")?;
    middle.expect_read("the first call", "TRANSACTION")?;
    middle.start_call(to_last, 2, b"")?;
    last.expect_read("the second call", "TRANSACTION")?;
    watch.outlive(middle)?;
    if kit.is_embedded() {
        first.expect_ending("the first caller, at once", "COMPLETE DEAD_REPLY")?;
        last.finish_call()?;
        first.expect_silence("the first caller, when the end of the chain answers")?;
        return kit.differs("the first caller hears of the death at once");
    }
    first.expect_silence("the first caller, while the end of the chain still serves")?;
    last.finish_call()?;
    expect_work("the first caller", &first.ending()?, "COMPLETE DEAD_REPLY")
}

/// Behaviour of a chain's middle process after it learns that the end died.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    CallsBack,
    Answers,
    AnswersAndCloses,
}

/// A reply without receiver is reported to its sender before anything else. A call returns to the thread that started
/// the chain, from a process that then dies; the call before it continues. `used`: each path was called before;
/// `at_once`: the call back is read before the death.
fn called_back_by_the_dead(kit: &Kit, used: bool, at_once: bool, next: Next) -> Verdict {
    let (first, middle, last) = (kit.server()?, kit.server()?, kit.server()?);
    let to_middle = kit.hand_over(&middle, &first, Node::number(2))?;
    let to_last = kit.hand_over(&last, &middle, Node::number(3))?;
    let back_from_last = kit.hand_over(&first, &last, Node::number(1))?;
    let back_from_middle = kit.hand_over(&first, &middle, Node::number(1))?;
    let watch = kit.watch(&last, Node::number(3))?;
    let ways = [
        (&first, to_middle, &middle),
        (&middle, to_last, &last),
        (&last, back_from_last, &first),
        (&middle, back_from_middle, &first),
    ];
    for (caller, handle, server) in ways.into_iter().filter(|_| used) {
        caller.round_trip("a call before", handle, server)?;
    }
    first.start_call(to_middle, 1, b"")?;
    middle.expect_read("the first call", "TRANSACTION")?;
    middle.start_call(to_last, 2, b"")?;
    last.expect_read("the second call", "TRANSACTION")?;
    last.start_call(back_from_last, 3, b"")?;
    let called_back = || expect_work("the call back", &first.read()?, "COMPLETE TRANSACTION");
    if at_once {
        called_back()?;
    }
    watch.outlive(last)?;
    // Only the embedded driver tells the middle at once (TX-19).
    let mut middle = Some(middle);
    if kit.is_embedded() {
        go_on(kit, &mut middle, back_from_middle, next)?;
    }
    if !at_once {
        called_back()?;
    }
    let told = first.answer(b"")?;
    if !kit.is_embedded() {
        go_on(kit, &mut middle, back_from_middle, next)?;
    }
    if next != Next::CallsBack {
        let told = first.read_on(told, |got| got.reply().is_ok())?;
        return expect_work("what follows the answer", &told, "COMPLETE REPLY");
    }
    let told = first.read_on(told, |got| got.call().is_ok())?;
    expect_work("what follows the first answer", &told, "COMPLETE TRANSACTION")?;
    expect("the code of the call that came second", told.call()?.code, 4)?;
    first.finish_call()?;
    let middle = required(middle, || "the middle is gone".into())?;
    middle.expect_ending("the middle's second call", "COMPLETE REPLY")?;
    middle.finish_call()?;
    expect_work("the first call", &first.ending()?, "REPLY")
}

/// The middle is told of the death and continues.
fn go_on(kit: &Kit, place: &mut Option<RawProcess>, back: Handle, next: Next) -> Verdict {
    let Some(middle) = place else { return Ok(()) };
    middle.expect_ending("the middle's call", "COMPLETE DEAD_REPLY")?;
    if next == Next::CallsBack {
        return middle.start_call(back, 4, b"");
    }
    middle.finish_call()?;
    if next == Next::AnswersAndCloses {
        kit.watch(middle, Node::number(2))?.outlive(place.take())?;
    }
    Ok(())
}
