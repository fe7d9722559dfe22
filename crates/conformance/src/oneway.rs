//! Contract section 6: oneway calls (OW): table of items, order, buffer budget.
//! Not here: oneway calls to frozen and dying processes (`interrupted`).

mod interrupted;

use crate::looper::waiting;
use crate::prelude::*;

items! {
    "OW-01" Both [seen] ow_01_the_sender_hears_at_once "a oneway call is complete at once and names no pid";
    "OW-02" Both [seen] ow_02_one_at_a_time_in_order "a node has one oneway call delivered at a time, the next ones wait in order";
    "OW-03" Both [seen] ow_03_calls_overtake "calls are not held back and overtake queued oneway calls";
    "OW-04" Both [] ow_04_nodes_do_not_wait_for_each_other "oneway calls to different nodes run in parallel";
    "OW-05" Both [] ow_05_the_next_goes_to_the_process "the next oneway call goes to the process, not to the thread that freed";
    "OW-06" Both [seen] ow_06_half_of_the_area "oneway calls may use half of the receive mapping, from sending to freeing";
    "OW-07" C [seen] ow_07_a_flood_is_suspected "a sender that floods a process is told so if it requested that";
    "OW-08" C [seen] ow_08_a_flood_is_told_once "a flood is reported once until there is space again";
    "OW-09" Both [seen] ow_09_a_frozen_process_is_pending in interrupted "a oneway call to a frozen process is PENDING_FROZEN and queued";
    "OW-10" C [seen] ow_10_freezing_holds_nothing_back in interrupted "freezing a process does not itself hold oneway calls back";
    "OW-11" Rust [] ow_11_a_pending_call_stops_the_write in interrupted "PENDING_FROZEN stops the write of the Rust driver";
    "OW-12" C [] ow_12_an_update_replaces_a_queued_call in interrupted "an update replaces an earlier one in a frozen process's queue";
    "OW-13" Both [] ow_13_queued_calls_die_silently in interrupted "oneway calls are dropped with their receiver, without report";
    "OW-14" C [differs] ow_14_an_exiting_thread_leaks_its_oneway_call in interrupted "an exiting thread loses the oneway call that it has not read";
    "OW-15" Both [] ow_15_freed_calls_give_back_all "freed oneway calls give back all that they took";
    "OW-16" Both [] ow_16_an_empty_call_takes_space "an empty oneway call takes space, and fails where none is left";
}

/// Size of the receive mapping of servers whose budget is tested.
const AREA: usize = 128 * 1024;

/// Reads a oneway call with this code and frees its buffer.
fn consume(server: &RawProcess, code: u32) -> Verdict {
    let call = server.read()?.call()?;
    expect("the code of a oneway call", call.code, code)?;
    server.free(&call)
}

fn ow_01_the_sender_hears_at_once(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, node } = kit.pair()?;
    client.send_oneway(handle, 5, b"news")?;
    let answer = client.read_room(ROOM)?.unwrap_or_default();
    expect("what the sender reads at once", answer.shape().as_str(), "NOOP COMPLETE")?;
    let call = server.read()?.call()?;
    expect("ptr and cookie", (call.node, call.cookie), node.names())?;
    expect("code and flags", (call.code, call.flags), (5, TransactionFlags::ONEWAY))?;
    expect("data", server.bytes(&call)?, b"news".to_vec())?;
    expect("the sender's pid", call.sender_pid, 0)?;
    expect("the sender's euid", Some(call.sender_euid), kit.euid())?;
    client.expect_silence("the sender, after its acknowledgement")
}

fn ow_02_one_at_a_time_in_order(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let (other, second) = kit.client_of(&server, Node::number(1))?;
    for (code, (process, handle)) in (1..=5).zip([(&client, handle), (&other, second)].into_iter().cycle()) {
        process.oneway(handle, code, b"")?;
    }
    for code in 1..=5 {
        let call = server.read()?.call()?;
        expect("the order of two senders' oneway calls", call.code, code)?;
        server.expect_silence("while a oneway call's buffer is out")?;
        server.free(&call)?;
    }
    server.expect_silence("after the last")
}

fn ow_03_calls_overtake(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.oneway(handle, 1, b"")?;
    client.oneway(handle, 2, b"")?;
    let first = server.read()?.call()?;
    client.start_call(handle, 3, b"")?;
    expect("the call that overtakes", server.echo()?.code, 3)?;
    client.expect_ending("that call", "COMPLETE REPLY")?;
    server.expect_silence("while the first oneway call's buffer is out")?;
    server.free(&first)?;
    consume(&server, 2)
}

fn ow_04_nodes_do_not_wait_for_each_other(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let other = kit.hand_over(&server, &client, Node::number(2))?;
    let worker = Worker::new()?;
    let idle = waiting(&worker, &server)?;
    client.oneway(handle, 1, b"")?;
    let first = idle.wait("an idle thread")??.call()?;
    client.oneway(other, 2, b"")?;
    let second = server.read()?.call()?;
    expect("the calls that two threads have at once", (first.code, second.code), (1, 2))?;
    for (delivery, handle, code) in [(second, other, 4), (first, handle, 3)] {
        client.oneway(handle, code, b"")?;
        server.expect_silence("the next call, while its own node's buffer is out")?;
        server.free(&delivery)?;
        // The former node's call stays pending meanwhile.
        expect("the next call of the node whose buffer came back", server.read()?.call()?.code, code)?;
    }
    Ok(())
}

fn ow_05_the_next_goes_to_the_process(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    for code in 1..=3 {
        client.oneway(handle, code, b"")?;
    }
    let first = server.read()?.call()?;
    let worker = Worker::new()?;
    let idle = waiting(&worker, &server)?;
    server.free(&first)?;
    let second = idle.wait("an idle thread")??.call()?;
    expect("the call that an idle thread got when another thread freed", second.code, 2)?;
    // A serving thread takes no process work, not even what it released itself.
    client.start_call(handle, 4, b"")?;
    expect("a call", server.read()?.call()?.code, 4)?;
    server.free(&second)?;
    server.expect_silence("the thread that freed, while it serves")?;
    let third = server.on(&worker, RawProcess::read)?.call()?;
    expect("the call that another thread read", third.code, 3)
}

fn ow_06_half_of_the_area(kit: &Kit) -> Verdict {
    const HALF: usize = AREA / 2;
    // Before Linux 6.8 each buffer was charged slightly more than its size.
    const SLACK: usize = 4096;
    let Pair { server, client, handle, .. } = kit.pair_mapped(AREA)?;
    let refused = |what: &str, size: usize| -> Verdict {
        client.send_oneway(handle, 9, zeroes(size))?;
        client.expect_read(what, "FAILED_REPLY")?;
        kit.expect_failure(&client, "ENOSPC", "ENOSPC")
    };
    refused("more than half of an empty area", HALF + 8)?;
    client.oneway(handle, 1, zeroes(HALF - SLACK))?;
    refused("more than the rest of the half, nothing being read", 2 * SLACK)?;
    let call = server.read()?.call()?;
    refused("more than the rest of the half, all being read", 2 * SLACK)?;
    let (caller, same) = kit.client_of(&server, Node::number(1))?;
    caller.start_call(same, 2, zeroes(HALF))?;
    expect("a call of the other half", server.read()?.call()?.data_size, HALF as u64)?;
    server.free(&call)?;
    client.oneway(handle, 3, zeroes(HALF - SLACK))?;
    let Pair { server, client, handle, .. } = kit.pair_mapped(AREA)?;
    client.start_call(handle, 4, zeroes(AREA))?;
    expect("a call as large as the area", server.read()?.call()?.data_size, AREA as u64)
}

/// Size of one oneway call of a flood: the seventh leaves less than a tenth of [`AREA`] for oneway calls, the eighth
/// fits, the ninth does not.
const PIECE: usize = 8000;

/// Sends this many oneway calls; returns how each was acknowledged: `c` complete, `S` spam suspect, `F` failed.
fn flood(client: &RawProcess, handle: Handle, count: usize, size: usize) -> Result<String, Stop> {
    let mut told = String::new();
    for _ in 0..count {
        client.send_oneway(handle, 1, zeroes(size))?;
        told.push(match client.read()?.work().as_str() {
            "COMPLETE" => 'c',
            "ONEWAY_SPAM_SUSPECT" => 'S',
            "FAILED_REPLY" => 'F',
            other => return Err(Stop::Fail(format!("a oneway call of a flood gave {other:?}"))),
        });
    }
    Ok(told)
}

fn detect(client: &RawProcess, enable: bool) -> Verdict {
    done("ENABLE_ONEWAY_SPAM_DETECTION", client.conn.enable_oneway_spam_detection(enable))
}

fn ow_07_a_flood_is_suspected(kit: &Kit) -> Verdict {
    kit.since(5, 14, "oneway spam detection")?;
    let Pair { server, client, handle, .. } = kit.pair_mapped(AREA)?;
    detect(&client, true)?;
    expect("more than a quarter of the area", flood(&client, handle, 7, PIECE)?.as_str(), "ccccccS")?;
    for _ in 0..7 {
        consume(&server, 1)?;
    }
    let Pair { server, client, handle, .. } = kit.pair_mapped(AREA)?;
    detect(&server, true)?;
    let told = flood(&client, handle, 9, PIECE)?;
    expect("the same of a sender that did not ask", told.as_str(), "ccccccccF")?;
    let Pair { server, client, handle, node } = kit.pair_mapped(AREA)?;
    detect(&client, true)?;
    kit.leave(&server, node, 1)?;
    // Two other processes use most of the budget, neither of them too much, so neither becomes suspect.
    let size = (AREA / 5).to_string();
    for _ in 0..2 {
        let words = ["1", "1", &TransactionFlags::ONEWAY.0.to_string(), &size];
        let said = kit.run_helper(kit.helper("send", &words))?;
        expect("a oneway call of another process", said.as_str(), "COMPLETE")?;
    }
    let told = flood(&client, handle, 60, 80)?;
    let (calm, alarm) = told.split_at(told.find('S').unwrap_or(told.len()));
    // Drivers differ in whether the call being sent counts.
    let in_time = matches!(calm.len(), 50 | 51) && calm.bytes().all(|taken| taken == b'c');
    ensure(in_time, || format!("60 small calls while space is short: expected S behind 50, got {told}"))?;
    let once = alarm.matches('S').count() == 1;
    expect("whether they were suspected once", once, kit.by_driver(true, false))
}

fn ow_08_a_flood_is_told_once(kit: &Kit) -> Verdict {
    kit.since(5, 14, "oneway spam detection")?;
    let Pair { server, client, handle, .. } = kit.pair_mapped(AREA)?;
    detect(&client, true)?;
    let told = flood(&client, handle, 10, PIECE)?;
    expect("a flood", told.as_str(), kit.by_driver("ccccccScFF", "ccccccSSFF"))?;
    for _ in 0..5 {
        consume(&server, 1)?;
    }
    let told = flood(&client, handle, 5, PIECE)?;
    expect("a flood after five were freed", told.as_str(), kit.by_driver("cccSc", "cccSS"))?;
    ensure(server.read()?.call().is_ok(), || "a suspected call was not delivered".into())
}

fn ow_15_freed_calls_give_back_all(kit: &Kit) -> Verdict {
    kit.since(6, 8, "exact charges of oneway calls")?;
    let Pair { server, client, handle, .. } = kit.pair_mapped(AREA)?;
    // An empty call takes a buffer, too (TX-24).
    for code in 1..=4 {
        client.oneway(handle, code, b"")?;
        consume(&server, code)?;
    }
    for size in [8, 4096, AREA / 2] {
        client
            .oneway(handle, 5, zeroes(size))
            .map_err(|stop| stop.during(&format!("{size} bytes, nothing being held")))?;
        consume(&server, 5)?;
    }
    Ok(())
}

fn ow_16_an_empty_call_takes_space(kit: &Kit) -> Verdict {
    kit.since(6, 8, "exact charges of oneway calls")?;
    let Pair { server, client, handle, .. } = kit.pair_mapped(AREA)?;
    client.oneway(handle, 1, zeroes(AREA / 2))?;
    for what in ["an empty call with the half used up", "another one"] {
        client.send_oneway(handle, 2, b"")?;
        client.expect_read(what, "FAILED_REPLY")?;
        kit.expect_failure(&client, "ENOSPC", "ENOSPC")?;
    }
    consume(&server, 1)?;
    client.oneway(handle, 3, b"")?;
    consume(&server, 3)
}
