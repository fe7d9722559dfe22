//! Contract section 16: processes killed while sending (EXT-08).
//! Not here: the calls that they send and answer (`numbered_calls`).

use std::time::{Duration, Instant};

use crate::numbered_calls::{CALL, text};
use crate::prelude::*;

/// Length of the object at the start of each call, which the driver translates.
const OBJECT: usize = 24;
/// The call that ends a round: a oneway call of a living process.
const MARK: u32 = 3;

/// Varying delays that are not multiples of the clock tick.
fn instant(round: u64) -> Duration {
    Duration::from_micros(round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52)
}

/// Checks a delivered call against the one sent under its number.
fn check(server: &RawProcess, call: &Delivery, next: &mut [u64; 2]) -> Verdict {
    let data = server.bytes(call)?;
    let next = &mut next[usize::from(call.code == CALL)];
    ensure(data.len() > OBJECT && data[OBJECT..] == text(*next), || {
        let found = data.get(OBJECT..OBJECT + 8).unwrap_or_default();
        format!("call {next} of its kind came as {} bytes that begin with {found:?}", data.len())
    })?;
    expect("objects that came with it", call.offsets_size, 8)?;
    *next += 1;
    if call.code == CALL {
        let fd = server.conn.take_fd(call.buffer.0);
        ensure(fd.is_some(), || format!("call {next} came without its descriptor"))?;
    }
    server.free(call)?;
    // Last, because a reply to a dead caller blocks further writes until the next read (WR-13).
    if call.code == CALL {
        server.reply(Payload::default())?;
    }
    Ok(())
}

/// Kills a process that sends continuously; returns the number of calls that arrived. After its death notification
/// all that it sent is queued, and a oneway call of `witness` to the same node comes last.
fn killed_sender(
    kit: &Kit,
    server: &RawProcess,
    node: Node,
    witness: (&RawProcess, Handle),
    round: u64,
) -> Result<u64, Stop> {
    let (remote, owned) = RemoteProcess::owning(kit, server, 2)?;
    server.write(|c| c.request_death(owned, Cookie(round)))?;
    remote.take(kit, server, node)?;
    remote.command(&format!("flood {}", node.ptr))?;
    let mut remote = Some(remote);
    let mut next = [0, 0];
    let (mut first, mut last, mut dead, mut marked) = (None, Instant::now(), false, false);
    loop {
        if let Some(got) = server.read_now()? {
            first.get_or_insert_with(Instant::now);
            last = Instant::now();
            // Besides calls there are reference notifications and completions of replies.
            server.acknowledge(&got)?;
            for item in &got.returns {
                match item {
                    Return::Transaction(call) if call.code == MARK => {
                        server.free(call)?;
                        return Ok(next[0] + next[1]);
                    }
                    Return::Transaction(call) => check(server, call, &mut next)?,
                    Return::DeadBinder(cookie) => {
                        server.write(|c| c.dead_binder_done(*cookie))?;
                        dead = true;
                    }
                    _ => {}
                }
            }
        }
        if let Some(remote) = remote.take_if(|_| first.is_some_and(|first| first.elapsed() >= instant(round)))
        {
            drop(remote);
        }
        if dead && !marked {
            let (process, handle) = witness;
            process.send(handle, MARK, TransactionFlags::ONEWAY, Payload::default())?;
            // Refused while what is unread fills the space of oneway calls.
            marked = process.read()?.returns.contains(&Return::TransactionComplete);
        }
        ensure(!sys::patience::is_over(last, PATIENCE), || {
            "a flooding process, or its end, was not heard of".into()
        })?;
    }
}

/// Kills a process that answers continuously; returns the number of replies that arrived.
fn killed_server(kit: &Kit, client: &RawProcess, round: u64) -> Result<u64, Stop> {
    let (remote, handle) = RemoteProcess::owning(kit, client, 1)?;
    remote.command("answer-all")?;
    let mut remote = Some(remote);
    let start = Instant::now();
    for number in 0.. {
        client.start_call(handle, 1, b"")?;
        if let Some(remote) = remote.take_if(|_| start.elapsed() >= instant(round)) {
            drop(remote);
        }
        let got = client.ending()?;
        let Ok(reply) = got.reply() else {
            expect("how a call of a killed process ends", got.work().ends_with("DEAD_REPLY"), true)?;
            ensure(remote.is_none(), || "a living process was called dead".into())?;
            return Ok(number);
        };
        ensure(client.bytes(&reply)? == text(number), || format!("reply {number} is not the one sent"))?;
        client.free(&reply)?;
    }
    Ok(0)
}

pub(crate) fn ext_08_a_killed_sender_leaves_whole_calls(kit: &Kit) -> Verdict {
    const ROUNDS: u64 = 24;
    let (server, node) = (kit.server()?, Node::number(1));
    let (witness, handle) = kit.client_of(&server, node)?;
    let mut came = 0;
    for round in 0..ROUNDS {
        came += killed_sender(kit, &server, node, (&witness, handle), round)?;
    }
    ensure(came > ROUNDS, || format!("{ROUNDS} flooding processes sent only {came} calls"))?;
    let client = kit.server()?;
    for round in 0..ROUNDS / 2 {
        killed_server(kit, &client, round)?;
    }
    // The dead process left nothing in the receive mapping: a call that needs nearly all of it fits.
    let Pair { server, client, handle, .. } = kit.pair_of(server, client, node)?;
    let all = vec![0; server.conn.map_size() - sys::page::size()];
    client.start_call(handle, 9, &all)?;
    let call = server.read()?.call()?;
    expect("bytes delivered", call.data_size, all.len() as u64)?;
    server.finish_call()?;
    server.free(&call)?;
    expect_work("a call that fills the receiving area", &client.ending()?, "COMPLETE REPLY")
}
