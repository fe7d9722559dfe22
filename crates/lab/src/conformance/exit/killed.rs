//! Room: contract section 16: processes killed while they send (EXT-08): both sides of the test.

use std::time::{Duration, Instant};

use abi::codes::object;
use abi::layout::{FdObject, FlatBinderObject};
use abi::{Delivery, Handle, Payload, Return, TransactionFlags};
use zerocopy::{FromZeros, IntoBytes};

use crate::conformance::item::{Stop, Verdict, ensure, expect};
use crate::conformance::kit::{Kit, Pair};
use crate::conformance::party::{Got, Node, PATIENCE, Party, SILENCE, expect_work};
use crate::conformance::puppet::Puppet;

/// The object at the head of each call, which the driver rewrites.
const OBJECT: usize = 24;
const ONEWAY: u32 = 1;
const CALL: u32 = 2;

/// The bytes behind the object in the call or reply of this number: other ones, and another length,
/// for each.
fn text(number: u64) -> Vec<u8> {
    let length = 8 + number as usize * 7919 % 12_000;
    let mut bytes: Vec<u8> = (0..length as u64).map(|at| (at * 31 + number * 101) as u8).collect();
    bytes[..8].copy_from_slice(&number.to_ne_bytes());
    bytes
}

fn send(party: &Party, target: Handle, code: u32, number: u64) -> Result<Got, Stop> {
    let (flags, mut data) = if code == ONEWAY {
        let Node { ptr, cookie, flags } = Node::number(77);
        let object = FlatBinderObject { kind: object::BINDER, flags, binder: ptr, cookie };
        (TransactionFlags::ONEWAY, object.as_bytes().to_vec())
    } else {
        let object = FdObject { kind: object::FD, fd: 1, ..FdObject::new_zeroed() };
        (TransactionFlags::CALL, object.as_bytes().to_vec())
    };
    data.extend(text(number));
    let payload = Payload { data: &data, offsets: &[0], ..Payload::default() };
    party.write(|c| c.transaction(target, code, flags, payload))?;
    if code == CALL {
        return party.ending();
    }
    let mut all = Got::default();
    let ends = |item: &Return| matches!(item, Return::TransactionComplete | Return::FailedReply);
    while !all.returns.iter().any(ends) {
        all.returns.extend(party.read()?.returns);
    }
    Ok(all)
}

/// Sends numbered calls of both kinds without end. A oneway call that finds no room is sent again.
pub(in crate::conformance) fn flood(party: &Party, target: Handle) -> Verdict {
    let mut oneways = 0;
    for calls in 0.. {
        while oneways < calls * 3 {
            let got = send(party, target, ONEWAY, oneways)?;
            party.acknowledge(&got)?;
            if got.returns.contains(&Return::TransactionComplete) {
                oneways += 1;
            }
        }
        let got = send(party, target, CALL, calls)?;
        party.acknowledge(&got)?;
        party.free(&got.reply()?)?;
    }
    Ok(())
}

/// Answers every call with as many bytes as its number wants, without end.
pub(in crate::conformance) fn answer_all(party: &Party) -> Verdict {
    for number in 0.. {
        let call = party.read()?.call()?;
        party.free(&call)?;
        expect_work("answering a call", &party.answer(&text(number))?, "COMPLETE")?;
    }
    Ok(())
}

/// Instants that differ from round to round, and do not follow the clock's ticks.
fn instant(round: u64) -> Duration {
    Duration::from_micros(round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52)
}

/// Checks one delivered call against the one that was sent under its number.
fn check(server: &Party, call: &Delivery, next: &mut [u64; 2]) -> Verdict {
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
    // Last: where the caller is gone the reply blocks further writes until the next read (WR-13).
    if call.code == CALL {
        server.write(|c| c.reply(TransactionFlags::default(), Payload::default()))?;
    }
    Ok(())
}

/// Has a flooding process killed; how many calls came of it.
fn killed_sender(kit: &Kit, server: &Party, node: Node, round: u64) -> Result<u64, Stop> {
    let mut puppet = Some(Puppet::start(kit)?);
    let mut next = [0, 0];
    let (mut first, mut last) = (None, Instant::now());
    if let Some(puppet) = &mut puppet {
        puppet.take(kit, server, node)?;
        puppet.command(&format!("flood {}", node.ptr))?;
    }
    loop {
        if let Some(got) = server.read_now()? {
            first.get_or_insert_with(Instant::now);
            last = Instant::now();
            // Beside calls it reads of its node's references, and that its answers were taken.
            server.acknowledge(&got)?;
            for item in &got.returns {
                if let Return::Transaction(call) = item {
                    check(server, call, &mut next)?;
                }
            }
        }
        let due = first.is_some_and(|first| first.elapsed() >= instant(round));
        if let Some(puppet) = puppet.take_if(|_| due) {
            puppet.kill()?;
            last = Instant::now();
        }
        if puppet.is_none() && last.elapsed() >= SILENCE {
            return Ok(next[0] + next[1]);
        }
        ensure(last.elapsed() < PATIENCE, || "a flooding process sent nothing".into())?;
    }
}

/// Has an answering process killed; how many answers came of it.
fn killed_server(kit: &Kit, client: &Party, round: u64) -> Result<u64, Stop> {
    let (mut puppet, handle) = Puppet::owning(kit, client, 1)?;
    puppet.command("answer-all")?;
    let mut puppet = Some(puppet);
    let start = Instant::now();
    for number in 0.. {
        client.start_call(handle, 1, b"")?;
        if let Some(puppet) = puppet.take_if(|_| start.elapsed() >= instant(round)) {
            puppet.kill()?;
        }
        let got = client.ending()?;
        let Ok(reply) = got.reply() else {
            expect("how a call of a killed process ends", got.work().ends_with("DEAD_REPLY"), true)?;
            ensure(puppet.is_none(), || "a living process was called dead".into())?;
            return Ok(number);
        };
        ensure(client.bytes(&reply)? == text(number), || format!("reply {number} is not the one sent"))?;
        client.free(&reply)?;
    }
    Ok(0)
}

pub(in crate::conformance) fn ext_08_a_killed_sender_leaves_whole_calls(kit: &Kit) -> Verdict {
    const ROUNDS: u64 = 24;
    let (server, node) = (kit.server()?, Node::number(1));
    let mut came = 0;
    for round in 0..ROUNDS {
        came += killed_sender(kit, &server, node, round)?;
    }
    ensure(came > ROUNDS, || format!("{ROUNDS} flooding processes sent only {came} calls"))?;
    let client = kit.server()?;
    for round in 0..ROUNDS / 2 {
        killed_server(kit, &client, round)?;
    }
    // Nothing of the dead is left in the receiving area: a call that needs nearly all of it fits.
    let Pair { server, client, handle, .. } = kit.pair_of(server, client, node)?;
    let all = vec![0; server.conn.map_size() - 4096];
    client.start_call(handle, 9, &all)?;
    let call = server.read()?.call()?;
    expect("bytes delivered", call.data_size, all.len() as u64)?;
    expect_work("answering", &server.answer(b"")?, "COMPLETE")?;
    server.free(&call)?;
    expect_work("a call that fills the receiving area", &client.ending()?, "COMPLETE REPLY")
}
