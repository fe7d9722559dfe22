//! Room: contract section 6: oneway calls whose receiver is frozen, dies, or loses a thread.

use abi::codes::tf;
use abi::{Commands, Handle, Payload, TransactionFlags};

use super::{AREA, ZEROES, consume, sent, small_pair};
use crate::conformance::item::{Verdict, done, expect};
use crate::conformance::kit::{Kit, Pair};
use crate::conformance::party::{Node, Party, expect_work};
use crate::conformance::worker::Worker;
use crate::conformance::write_read::sleeping_read;

/// Skips the rest of a test on kernels that do not say that a oneway call is pending.
fn since_pending(kit: &Kit) -> Verdict {
    kit.since(6, 2, "BR_TRANSACTION_PENDING_FROZEN")
}

/// Sends a oneway call to a frozen process.
fn sent_pending(client: &Party, handle: Handle, code: u32, flags: TransactionFlags, data: &[u8]) -> Verdict {
    client.write(|c| c.transaction(handle, code, flags, Payload { data, ..Payload::default() }))?;
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
    sent(&client, handle, 3, b"")?;
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
        // All of this process is frozen, its threads run.
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
    // In front: not queued behind another, so never replaced; it makes the next ones wait.
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
    client.write(|c| c.transaction(handle, 2, UPDATE, Payload { data: b"thawn", ..Payload::default() }))?;
    expect_work("an update of a process that is not frozen", &client.read()?, "COMPLETE")?;
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
        sent(&client, handle, code, b"")?;
    }
    expect("the call that was read", server.read()?.call()?.code, 1)?;
    drop(server);
    watch.wait_for_death()?;
    client.expect_silence("the sender of calls that nobody read")?;
    client.send_oneway(handle, 6, b"")?;
    expect_work("a oneway call of a dead process", &client.read()?, "DEAD_REPLY")
}

pub(super) fn ow_14_an_exiting_thread_leaks_its_oneway_call(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    let Pair { server, client, handle, .. } = small_pair(kit)?;
    let other = kit.hand_over(&server, &client, Node::number(2))?;
    let worker = Worker::new()?;
    // A read with too little room sleeps, is given the call, and must leave it undelivered (WR-08).
    let task = sleeping_read(&worker, &server, 40)?;
    sent(&client, handle, 1, &ZEROES[..AREA / 4])?;
    let (result, _, got) = task.wait("a read with little room")?;
    expect("a read with little room", (result.as_str(), got?.shape().as_str()), ("OK", "NOOP"))?;
    let party = server.clone();
    done("THREAD_EXIT", worker.run(move || party.conn.thread_exit())?)?;
    server.expect_silence("the other thread, after the exit of the first")?;
    if kit.is_embedded() {
        // Its buffer and its node's turn came back.
        sent(&client, handle, 2, &ZEROES[..AREA / 2])?;
        consume(&server, 2)?;
        return kit
            .differs("the call is lost, and nothing else: its space comes back, the node's next call runs");
    }
    sent(&client, handle, 2, b"")?;
    server.expect_silence("the node's next call")?;
    client.send_oneway(other, 3, &ZEROES[..AREA / 4 + 8])?;
    expect_work("more than what the lost call left of the half", &client.read()?, "FAILED_REPLY")?;
    sent(&client, other, 4, b"")?;
    consume(&server, 4)
}
