//! Room: contract section 7 where calls go from process to process: what holds for the memory in which
//! those lie, beside the receiving area (docs/differences.md).

use abi::BufferAddress;

use super::{AREA, ZEROES, free, place, small_pair};
use crate::conformance::item::{Stop, Verdict, ensure, expect};
use crate::conformance::kit::{Kit, Pair};
use crate::conformance::party::{Node, expect_work};
use crate::conformance::worker::Worker;

/// Calls after which two processes must have found the short way.
const CALLS: usize = 10;

/// Tests a promise on the receiving area itself. Where calls go through lanes it is tested without
/// them, and then what holds with them.
pub(super) fn beside(
    kit: &Kit,
    promise: fn(&Kit) -> Verdict,
    with_lanes: fn(&Kit) -> Verdict,
    instead: &str,
) -> Verdict {
    let Some(subject) = kit.subject.without_lanes() else { return promise(kit) };
    promise(&kit.on(subject))?;
    with_lanes(kit)?;
    kit.differs(instead)
}

/// A small pair whose calls go through lanes; nothing of them is kept.
fn pair(kit: &Kit) -> Result<Pair, Stop> {
    let pair = small_pair(kit)?;
    let base = pair.server.conn.map_base().ok_or_else(|| Stop::Fail("nothing is mapped".into()))?;
    for _ in 0..CALLS {
        let address = place(&pair, 8)?;
        free(&pair, &[address])?;
        if !(base..base + AREA as u64).contains(&address) {
            return Ok(pair);
        }
    }
    Err(Stop::Fail(format!("{CALLS} calls all came through the broker")))
}

/// A call of this many zeroes must fail for want of space, once the receiver reads.
fn expect_no_space(pair: &Pair, size: usize) -> Verdict {
    pair.client.start_call(pair.handle, 1, &ZEROES[..size])?;
    pair.server.expect_silence("the receiver of a call without space")?;
    let got = pair.client.ending()?;
    expect_work("a call without space", &got, "COMPLETE FAILED_REPLY")?;
    let error = pair.client.extended_error()?;
    expect("its extended error", sys::errno::name(-error.param), Some("ENOSPC"))
}

/// Places buffers side by side.
fn side_by_side(pair: &Pair, sizes: &[usize]) -> Result<Vec<u64>, Stop> {
    let (mut places, mut next) = (Vec::new(), None);
    for &size in sizes {
        let address = place(pair, size)?;
        ensure(address % 8 == 0, || format!("a buffer lies at {address:#x}"))?;
        expect(&format!("where {size} bytes lie"), address, next.unwrap_or(address))?;
        next = Some(address + (size as u64).next_multiple_of(8).max(8));
        places.push(address);
    }
    Ok(places)
}

pub(super) fn parts_are_rounded_up(kit: &Kit) -> Verdict {
    side_by_side(&pair(kit)?, &[0, 1, 13, 100, 0, 8]).map(drop)
}

pub(super) fn nothing_but_buffers(kit: &Kit) -> Verdict {
    let pair = pair(kit)?;
    side_by_side(&pair, &[100, 1, 13, 4096, 8])?;
    side_by_side(&pair, &[AREA / 4; 3])?;
    let rest = AREA / 4 - 104 - 8 - 16 - 4096 - 8;
    expect_no_space(&pair, rest + 8)?;
    place(&pair, rest)?;
    // The receiving area is none the fuller: oneway calls go there.
    pair.client.send_oneway(pair.handle, 1, &ZEROES[..AREA / 2])?;
    expect_work("a oneway call of half the area", &pair.client.read()?, "COMPLETE")?;
    pair.server.free(&pair.server.read()?.call()?)
}

pub(super) fn the_first_gap_is_taken(kit: &Kit) -> Verdict {
    let pair = pair(kit)?;
    let at = side_by_side(&pair, &[512, 64, 256, 64])?;
    free(&pair, &[at[0], at[2]])?;
    for (what, size, want) in [
        ("200 bytes, with gaps of 512 and 256", 200, at[0]),
        ("304 bytes, with gaps of 312 and 256", 304, at[0] + 200),
        ("256 bytes, with gaps of 8 and 256", 256, at[2]),
        ("600 bytes, with no such gap", 600, at[3] + 64),
    ] {
        expect(what, place(&pair, size)? - at[0], want - at[0])?;
    }
    Ok(())
}

pub(super) fn without_a_gap_there_is_no_space(kit: &Kit) -> Verdict {
    const EIGHTH: usize = AREA / 8;
    let pair = pair(kit)?;
    let at = side_by_side(&pair, &[EIGHTH; 8])?;
    free(&pair, &[at[0], at[6], at[7]])?;
    expect_no_space(&pair, 2 * EIGHTH + 8)?;
    expect("where a quarter found room", place(&pair, 2 * EIGHTH)?, at[6])?;
    free(&pair, &at[..7])?;
    expect("where the next half found room", place(&pair, 4 * EIGHTH)?, at[0])?;
    // A reply for which the caller has no space.
    let caller = kit.open_mapped(4096)?;
    let handle = kit.hand_over(&pair.server, &caller, Node::number(1))?;
    for _ in 0..CALLS {
        caller.start_call(handle, 1, b"")?;
        pair.server.echo()?;
        caller.free(&caller.ending()?.reply()?)?;
    }
    caller.start_call(handle, 1, b"")?;
    pair.server.read()?.call()?;
    expect_work("a reply without space", &pair.server.answer(&ZEROES[..4104])?, "COMPLETE")?;
    expect_work("its call", &caller.ending()?, "COMPLETE FAILED_REPLY")?;
    pair.server.expect_silence("the replier, which is not told")
}

pub(super) fn freeing_takes_the_exact_address(kit: &Kit) -> Verdict {
    let pair = pair(kit)?;
    let at = side_by_side(&pair, &[64, 64])?;
    free(&pair, &[0, at[0] + 8, at[0] - 8, at[1] + 64, u64::MAX])?;
    expect("where the next call lies, all being kept", place(&pair, 64)?, at[1] + 64)?;
    let (party, worker, first) = (pair.server.clone(), Worker::new()?, at[0]);
    worker.run(move || party.write(|c| c.free_buffer(BufferAddress(first))))??;
    free(&pair, &[first])?;
    expect("where a call lies when another thread freed the first", place(&pair, 64)?, first)
}
