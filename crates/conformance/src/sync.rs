//! Contract section 5: synchronous transactions (TX): table of items, and successful calls.
//! Not here: calls that are refused (`refused`), peers that die (`death`).

mod death;
mod refused;

use crate::prelude::*;

items! {
    "TX-01" Both [seen] tx_01_a_call_and_its_reply "a call: COMPLETE REPLY to the caller, COMPLETE to the server";
    "TX-02" Both [seen] tx_02_what_a_call_delivers "a delivered call carries the node's values and what was sent";
    "TX-03" Both [seen] tx_03_what_a_reply_delivers "a delivered reply carries what was replied, and by whom";
    "TX-04" C [seen] tx_04_where_the_offsets_lie "offsets follow the data at the next multiple of 8";
    "TX-05" Both [] tx_05_only_the_handle_counts "of a call's target only the handle counts";
    "TX-06" Both [seen] tx_06_a_call_back_reaches_the_waiting_thread "a call back reaches the thread that waits in the chain";
    "TX-07" Both [seen free] tx_07_no_manager_is_dead in refused "handle 0 without a manager gives DEAD_REPLY";
    "TX-08" Both [seen] tx_08_unknown_and_weak_handles_fail in refused "an unknown or weak handle cannot be called";
    "TX-09" Both [] tx_09_a_dead_owner_is_told_at_once in death "a node whose owner died gives DEAD_REPLY";
    "TX-10" Both [seen] tx_10_a_server_that_dies_ends_the_call in death "a server that goes before replying gives COMPLETE DEAD_REPLY";
    "TX-11" Both [] tx_11_an_undelivered_call_dies_with_its_target in death "a call still queued when its target closes gives DEAD_REPLY";
    "TX-12" Both [seen] tx_12_an_error_has_no_completion in refused "an error found while sending comes without COMPLETE";
    "TX-13" Both [seen] tx_13_one_call_at_a_time in refused "a second call during one's own fails and harms nothing";
    "TX-14" Both [] tx_14_oneway_calls_at_any_time "oneway calls are allowed while waiting and while serving";
    "TX-15" C [] tx_15_undelivered_work_forbids_calling in refused "a thread with undelivered work may not start a call";
    "TX-16" Both [seen] tx_16_a_reply_needs_a_call in refused "a reply without a call to answer fails";
    "TX-17" Both [seen] tx_17_a_bad_reply_fails_the_call in refused "a reply that cannot be delivered fails the caller, not the server";
    "TX-18" Both [seen] tx_18_a_reply_to_nobody_is_dropped in death "a reply to a caller that is gone is dropped silently";
    "TX-19" Both [seen differs] tx_19_a_chain_breaks_at_its_end in death "a chain's first caller hears of a death in it when the end replies";
    "TX-20" Both [seen] tx_20_extended_errors_are_per_thread in refused "the extended error is per thread and reset by each call";
    "TX-21" C [] tx_21_extended_errors_say_why in refused "the extended error has the errno of the refusal";
    "TX-22" Both [seen] tx_22_a_frozen_process_refuses in refused "a call to a frozen process gives only FROZEN_REPLY";
    "TX-23" Both [] tx_23_a_oneway_reply_is_a_reply "a reply marked oneway is still a reply";
    "TX-24" Both [] tx_24_empty_data_has_a_buffer "empty data still has a buffer of its own";
    "TX-25" Both [] tx_25_a_second_unread_failure in refused "of two unread failures of calls a thread reads one";
}

fn tx_01_a_call_and_its_reply(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.start_call(handle, 1, b"question")?;
    let got = server.read()?;
    expect("what the server reads", got.shape().as_str(), "NOOP TRANSACTION")?;
    expect("the data", server.bytes(&got.call()?)?, b"question".to_vec())?;
    server.reply(plain(b"answer"))?;
    // Not deferred, so it can be read at once.
    let after = server.read_room(ROOM)?.unwrap_or_default();
    expect("what the server reads after its reply", after.shape().as_str(), "NOOP COMPLETE")?;
    let ending = client.ending()?;
    expect("what the caller reads", ending.shape().as_str(), "COMPLETE REPLY")?;
    expect("the answer", client.bytes(&ending.reply()?)?, b"answer".to_vec())
}

fn tx_02_what_a_call_delivers(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, node } = kit.pair()?;
    let flags = TransactionFlags(tf::ACCEPT_FDS | tf::STATUS_CODE | tf::ROOT_OBJECT | tf::CLEAR_BUF | 0x8000);
    client.send(handle, 0xfeed, flags, plain(&[7; 20]))?;
    let call = server.read()?.call()?;
    expect("ptr and cookie", (call.node, call.cookie), node.names())?;
    expect("code and flags", (call.code, call.flags), (0xfeed, flags))?;
    expect("sizes", (call.data_size, call.offsets_size), (20, 0))?;
    expect("data", server.bytes(&call)?, vec![7; 20])?;
    expect("the caller's pid", call.sender_pid as u32, std::process::id())
}

fn tx_03_what_a_reply_delivers(kit: &Kit) -> Verdict {
    let (Pair { server, client, .. }, _) = kit.called_pair(TransactionFlags::CALL)?;
    let data = TransactionData {
        target: 77,
        cookie: 78,
        code: 0xbeef,
        flags: tf::STATUS_CODE,
        sender_pid: 79,
        sender_euid: 80,
        ..Default::default()
    };
    server.write_raw(bc::REPLY, &data)?;
    let reply = client.ending()?.reply()?;
    expect("ptr and cookie", (reply.node, reply.cookie), (NodePtr(0), Cookie(0)))?;
    expect("code and flags", (reply.code, reply.flags.0), (0xbeef, tf::STATUS_CODE))?;
    expect("the replier's pid", reply.sender_pid, 0)?;
    let euid = if kit.is_root() { 0 } else { reply.sender_euid };
    expect("the replier's euid", reply.sender_euid, euid)
}

fn tx_04_where_the_offsets_lie(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    for size in [0, 1, 8, 13] {
        let call = pair.deliver(&Draft::with(zeroes(size)))?;
        let after = call.buffer.0 + (size as u64).next_multiple_of(8);
        expect(&format!("the offsets' address after {size} bytes"), call.offsets, kit.by_driver(after, 0))?;
        pair.conclude(&call)?;
    }
    Ok(())
}

fn tx_05_only_the_handle_counts(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, node } = kit.pair()?;
    let data = TransactionData {
        target: u64::from(handle.0) | 0xdead_beef << 32,
        cookie: 1,
        sender_pid: 2,
        sender_euid: 3,
        ..Default::default()
    };
    client.write_raw(bc::TRANSACTION, &data)?;
    let call = server.read()?.call()?;
    expect("ptr and cookie", (call.node, call.cookie), node.names())?;
    expect("the caller's pid", call.sender_pid as u32, std::process::id())?;
    ensure(!kit.is_root() || call.sender_euid == 0, || format!("the caller's euid is {}", call.sender_euid))
}

fn tx_06_a_call_back_reaches_the_waiting_thread(kit: &Kit) -> Verdict {
    let (first, second) = (kit.server()?, kit.server()?);
    let to_second = kit.hand_over(&second, &first, Node::number(2))?;
    let to_first = kit.hand_over(&first, &second, Node::number(1))?;
    let worker = Worker::new()?;
    let mut idle = crate::looper::waiting(&worker, &first)?;
    first.start_call(to_second, 1, b"")?;
    second.expect_read("the outer call", "TRANSACTION")?;
    second.start_call(to_first, 2, b"")?;
    first.expect_read("what the waiting caller reads", "COMPLETE TRANSACTION")?;
    ensure(!idle.has_ended(), || "the idle thread was woken by a nested call".into())?;
    // A oneway call on the same path goes to the idle thread.
    second.send_oneway(to_first, 3, b"")?;
    let oneway = idle.wait("the idle thread")??.call()?;
    expect("the code of the call that the idle thread got", oneway.code, 3)?;
    first.finish_call()?;
    let mut nested = second.ending()?;
    nested.returns.retain(|item| !matches!(item, Return::TransactionComplete));
    expect_work("the nested call", &nested, "REPLY")?;
    second.finish_call()?;
    expect_work("the outer call", &first.ending()?, "REPLY")
}

fn tx_14_oneway_calls_at_any_time(kit: &Kit) -> Verdict {
    let (Pair { server, client, handle, .. }, _) = kit.called_pair(TransactionFlags::CALL)?;
    client.send_oneway(handle, 2, b"")?;
    client.expect_read("a oneway call while waiting for a reply", "COMPLETE COMPLETE")?;
    server.oneway(Handle::CONTEXT_MANAGER, 99, b"")?;
    server.finish_call()?;
    client.expect_ending("the call", "REPLY")?;
    expect("the oneway call", server.read()?.call()?.code, 2)
}

fn tx_23_a_oneway_reply_is_a_reply(kit: &Kit) -> Verdict {
    const MAP: usize = 16 * 4096;
    let client = kit.open_mapped(MAP)?;
    let Pair { server, client, handle, .. } = kit.pair_of(kit.server()?, client, Node::number(1))?;
    let flags = TransactionFlags(tf::ONE_WAY);
    client.start_call(handle, 1, b"")?;
    server.read()?.call()?;
    server.write(|c| c.reply(flags, Payload::default()))?;
    server.expect_read("answering", "COMPLETE")?;
    let ending = client.expect_ending("the call", "COMPLETE REPLY")?;
    expect("the reply's flags", ending.reply()?.flags, flags)?;
    client.free(&ending.reply()?)?;
    // Exceeds the half of the mapping that oneway calls may use, which shows the budget that is charged.
    client.start_call(handle, 1, b"")?;
    server.read()?.call()?;
    server.write(|c| c.reply(flags, plain(zeroes(MAP / 2 + 4096))))?;
    expect_work("the call", &client.ending()?, kit.by_driver("COMPLETE REPLY", "COMPLETE FAILED_REPLY"))
}

fn tx_24_empty_data_has_a_buffer(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let (other, second) = kit.client_of(&server, Node::number(2))?;
    client.send_oneway(handle, 1, b"")?;
    other.send_oneway(second, 2, b"")?;
    let (one, two) = (server.read()?.call()?, server.read()?.call()?);
    expect("sizes", (one.data_size, two.data_size), (0, 0))?;
    ensure(one.buffer.0 != 0 && two.buffer.0 != 0 && one.buffer != two.buffer, || {
        format!("expected two buffers, got {} and {}", one.buffer, two.buffer)
    })?;
    // Until its buffer is freed, the node's next oneway call is held back (OW-02).
    client.send_oneway(handle, 3, b"")?;
    server.expect_silence("while the first empty buffer is out")?;
    server.free(&one)?;
    expect("the next call", server.read()?.call()?.code, 3)?;
    server.thread_exit()
}
