//! Contract section 6: oneway calls whose receiver is frozen, dies, or loses a thread.

use crate::oneway::{AREA, consume};
use crate::prelude::*;
use crate::write_read::sleeping_read;

/// Skips the rest of a test on kernels that do not report pending oneway calls.
fn since_pending(kit: &Kit) -> Verdict {
    kit.since(6, 2, "BR_TRANSACTION_PENDING_FROZEN")
}

/// Sends a oneway call to a frozen process.
fn sent_pending(
    client: &RawProcess,
    handle: Handle,
    code: u32,
    flags: TransactionFlags,
    data: &[u8],
) -> Verdict {
    client.send(handle, code, flags, plain(data))?;
    expect_work("a oneway call of a frozen process", &client.read()?, "TRANSACTION_PENDING_FROZEN")
}

pub(super) fn ow_09_a_frozen_process_is_pending(kit: &Kit) -> Verdict {
    since_pending(kit)?;
    let Pair { server, client, handle, .. } = kit.pair()?;
    kit.freeze_self(&client, true)?;
    for code in [1, 2] {
        sent_pending(&client, handle, code, TransactionFlags::ONEWAY, b"")?;
        client.expect_silence("the sender, after that")?;
    }
    kit.freeze_self(&client, false)?;
    client.oneway(handle, 3, b"")?;
    for code in [1, 2, 3] {
        consume(&server, code)?;
    }
    Ok(())
}

pub(super) fn ow_10_freezing_holds_nothing_back(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    kit.freeze_self(&client, true)?;
    for code in [1, 2] {
        client.send_oneway(handle, code, b"")?;
        client.read()?;
        // This whole OS process is frozen for binder, but its threads run.
        consume(&server, code)?;
    }
    kit.freeze_self(&client, false)
}

pub(super) fn ow_11_a_pending_call_stops_the_write(kit: &Kit) -> Verdict {
    const CALL: usize = 4 + 64;
    since_pending(kit)?;
    let Pair { server, client, handle, .. } = kit.pair()?;
    let mut commands = Commands::default();
    for code in [1, 2] {
        commands.transaction(handle, code, TransactionFlags::ONEWAY, Payload::default());
    }
    kit.freeze_self(&client, true)?;
    let taken = client.write_some(&commands)?;
    expect("bytes taken of two calls", taken, kit.by_driver(2 * CALL, CALL))?;
    let pending = "TRANSACTION_PENDING_FROZEN";
    let both = format!("{pending} {pending}");
    expect_work("what the sender reads", &client.read()?, kit.by_driver(both.as_str(), pending))?;
    kit.freeze_self(&client, false)?;
    consume(&server, 1)?;
    match kit.is_rust() {
        true => server.expect_silence("of the second call, which was not taken"),
        false => consume(&server, 2),
    }
}

pub(super) fn ow_12_an_update_replaces_a_queued_call(kit: &Kit) -> Verdict {
    const UPDATE: TransactionFlags = TransactionFlags(TransactionFlags::ONEWAY.0 | tf::UPDATE_TXN);
    const UPDATE_AND_CLEAR: TransactionFlags = TransactionFlags(UPDATE.0 | tf::CLEAR_BUF);
    kit.since(6, 0, "TF_UPDATE_TXN")?;
    since_pending(kit)?;
    let Pair { server, client, handle, node } = kit.pair()?;
    let other = kit.hand_over(&server, &client, Node::number(2))?;
    kit.leave(&server, node, 1)?;
    kit.freeze_self(&client, true)?;
    // First in the queue, so never replaced; the next ones wait behind it.
    for (code, flags, data) in [
        (1, UPDATE, b"front"),
        (1, UPDATE, b"older"),
        (2, UPDATE, b"older"),
        (2, UPDATE_AND_CLEAR, b"flags"),
        (3, TransactionFlags::ONEWAY, b"plain"),
        (3, TransactionFlags::ONEWAY, b"again"),
        (2, UPDATE, b"newer"),
        (1, UPDATE, b"newer"),
    ] {
        sent_pending(&client, handle, code, flags, data)?;
    }
    let words = ["1", "2", &UPDATE.0.to_string(), "5"];
    let said = kit.run_helper(kit.helper("send", &words))?;
    expect("the same of another process", said.as_str(), "TRANSACTION_PENDING_FROZEN")?;
    sent_pending(&client, other, 2, UPDATE, b"other")?;
    kit.freeze_self(&client, false)?;
    client.send(handle, 2, UPDATE, plain(b"thawn"))?;
    client.expect_read("an update of a process that is not frozen", "COMPLETE")?;
    let mut got = Vec::new();
    for _ in 0..9 {
        let call = server.read()?.call()?;
        if call.node == node.names().0 {
            got.push(format!("{} {}", call.code, String::from_utf8_lossy(&server.bytes(&call)?)));
        }
        server.free(&call)?;
    }
    let from_process = "2 \0\0\0\0\0";
    let want = ["1 front", "2 flags", "3 plain", "3 again", "2 newer", "1 newer", from_process, "2 thawn"];
    expect("the calls that arrived", got, want.map(str::to_owned).to_vec())?;
    server.expect_silence("after them")
}

pub(super) fn ow_13_queued_calls_die_silently(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, node } = kit.pair()?;
    let other = kit.hand_over(&server, &client, Node::number(2))?;
    let watch = kit.watch(&server, node)?;
    for (code, handle) in [(1, handle), (2, handle), (3, handle), (4, other), (5, other)] {
        client.oneway(handle, code, b"")?;
    }
    expect("the call that was read", server.read()?.call()?.code, 1)?;
    watch.outlive(server)?;
    client.expect_silence("the sender of unread calls")?;
    client.send_oneway(handle, 6, b"")?;
    expect_work("a oneway call of a dead process", &client.read()?, "DEAD_REPLY")
}

pub(super) fn ow_14_an_exiting_thread_leaks_its_oneway_call(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    let Pair { server, client, handle, .. } = kit.pair_mapped(AREA)?;
    let other = kit.hand_over(&server, &client, Node::number(2))?;
    let worker = Worker::new()?;
    // A read with too small a buffer sleeps, gets the call, and must leave it undelivered (WR-08).
    let task = sleeping_read(&worker, &server, 40)?;
    client.oneway(handle, 1, zeroes(AREA / 4))?;
    let (result, _, got) = task.wait("a read with little room")?;
    expect("a read with little room", (result.as_str(), got?.shape().as_str()), ("OK", "NOOP"))?;
    server.on(&worker, RawProcess::thread_exit)?;
    server.expect_silence("the other thread, after the exit of the first")?;
    if kit.is_embedded() {
        // Its buffer and its node's turn are free again.
        client.oneway(handle, 2, zeroes(AREA / 2))?;
        consume(&server, 2)?;
        return kit
            .differs("the call is lost, and nothing else: its space comes back, the node's next call runs");
    }
    client.oneway(handle, 2, b"")?;
    server.expect_silence("the node's next call")?;
    client.send_oneway(other, 3, zeroes(AREA / 4 + 8))?;
    client.expect_read("more than what the lost call left of the half", "FAILED_REPLY")?;
    client.oneway(other, 4, b"")?;
    consume(&server, 4)
}
