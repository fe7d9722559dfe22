//! Room: contract section 7: buffers in the receiving area (BUF).
//! Not here: the half that oneway calls may use (`oneway`), objects in buffers.

mod lanes;

use abi::codes::{bc, object, tf};
use abi::layout::{FlatBinderObject, TransactionData, TransactionDataSg};
use abi::{BufferAddress, Delivery, Handle, Payload, TransactionFlags};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::item::{Stop, Verdict, ensure, expect, items};
use super::kit::{Kit, Pair};
use super::party::{Node, Party, expect_work};
use super::worker::Worker;

items! {
    "BUF-01" Both [differs] buf_01_parts_are_rounded_up_to_8 "a buffer is the sum of its parts, each rounded up to 8";
    "BUF-02" Both [seen differs] buf_02_the_area_holds_nothing_but_buffers "buffers start at the area's first byte and lie side by side";
    "BUF-03" C [differs] buf_03_the_best_gap_is_taken "a buffer takes the start of the smallest gap that fits";
    "BUF-04" Both [seen differs] buf_04_without_a_gap_there_is_no_space "without one gap that fits there is no space, and gaps grow together";
    "BUF-05" Both [seen differs] buf_05_freeing_takes_the_exact_address "FREE_BUFFER takes a delivered buffer's address, from any thread";
    "BUF-06" Both [] buf_06_freeing_drops_references "FREE_BUFFER drops the references that the buffer holds";
    "BUF-07" Both [seen] buf_07_clearing_when_asked "a buffer is cleared when freed if its sender asked for that";
}

/// Zeroes to send, as many as the receiving area of these tests has.
static ZEROES: [u8; AREA] = [0; AREA];

/// The receiving area of servers that are filled up.
const AREA: usize = 64 * 4096;

/// A pair whose server has a receiving area of [`AREA`] bytes.
fn small_pair(kit: &Kit) -> Result<Pair, Stop> {
    let server = kit.open_mapped(AREA)?;
    server.enter_looper()?;
    kit.pair_of(server, kit.open()?, Node::number(1))
}

/// Has the server answer one call and keep the call's buffer.
fn keep(pair: &Pair, flags: TransactionFlags, payload: Payload<'_>) -> Result<Delivery, Stop> {
    let Pair { server, client, handle, .. } = pair;
    client.write(|c| c.transaction(*handle, 1, flags, payload))?;
    let call = server.read()?.call()?;
    expect_work("answering a call", &server.answer(b"")?, "COMPLETE")?;
    client.free(&client.ending()?.reply()?)?;
    Ok(call)
}

/// The same with this many zeroes; where they lie.
fn place(pair: &Pair, size: usize) -> Result<u64, Stop> {
    let payload = Payload { data: &ZEROES[..size], ..Payload::default() };
    Ok(keep(pair, TransactionFlags::CALL, payload)?.buffer.0)
}

/// The server gives buffers back by address.
fn free(pair: &Pair, addresses: &[u64]) -> Verdict {
    pair.server.write(|c| addresses.iter().for_each(|&address| c.free_buffer(BufferAddress(address))))
}

/// A call of this many zeroes must fail for want of space.
fn expect_no_space(kit: &Kit, pair: &Pair, size: usize) -> Verdict {
    let payload = Payload { data: &ZEROES[..size], ..Payload::default() };
    let got = pair.client.call(pair.handle, 1, TransactionFlags::CALL, payload)?;
    kit.expect_failed(&pair.client, &got, "ENOSPC", "ENOSPC")
}

/// A handle as an object to send.
fn handle_object(handle: Handle) -> FlatBinderObject {
    FlatBinderObject { kind: object::HANDLE, binder: handle.0.into(), ..FlatBinderObject::new_zeroed() }
}

fn buf_01_parts_are_rounded_up_to_8(kit: &Kit) -> Verdict {
    let instead = "calls through lanes lie, rounded up alike, in memory of their own";
    lanes::beside(kit, parts_in_the_area, lanes::parts_are_rounded_up, instead)
}

fn parts_in_the_area(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    // To its owner a node's handle comes back as the node, so this counts nothing anywhere.
    let object = handle_object(pair.handle);
    let with_object = [object.as_bytes(), b"tail"].concat();
    let parts = |data, offsets, buffers_size| Payload { data, offsets, buffers_size, ..Payload::default() };
    let mut next = None;
    for (what, payload, size) in [
        ("nothing", parts(&[][..], &[][..], None), 8),
        ("1 byte", parts(&ZEROES[..1], &[], None), 8),
        ("13 bytes", parts(&ZEROES[..13], &[], None), 16),
        ("28 bytes with an offset", parts(&with_object, &[0], None), 32 + 8),
        ("16 bytes of buffers", parts(&[], &[], Some(16)), 16),
        ("all of that", parts(&with_object, &[0], Some(16)), 32 + 8 + 16),
        ("what comes behind", parts(&[], &[], None), 8),
    ] {
        let call = keep(&pair, TransactionFlags::CALL, payload)?;
        if let Some(next) = next {
            expect(&format!("where {what} lies"), call.buffer.0, next)?;
        }
        next = Some(call.buffer.0 + size);
    }
    let plain = TransactionData { target: pair.handle.0.into(), ..Default::default() };
    for (what, data_size, offsets_size, buffers_size, in_rust) in [
        ("data that overflows when rounded up", u64::MAX - 3, 0, 0, "EINVAL"),
        ("data and offsets that overflow together", 1 << 63, 1 << 63, 0, "ENOMEM"),
        ("buffers that overflow with the data", 16, 0, u64::MAX - 7, "ENOMEM"),
    ] {
        let transaction_data = TransactionData { data_size, offsets_size, ..plain };
        let sg = TransactionDataSg { transaction_data, buffers_size };
        pair.client.write(|c| c.append(&[bc::TRANSACTION_SG.as_bytes(), sg.as_bytes()].concat()))?;
        let got = pair.client.ending()?;
        expect(what, got.work().as_str(), "FAILED_REPLY")?;
        kit.expect_failed(&pair.client, &got, "EINVAL", in_rust)?;
    }
    Ok(())
}

fn buf_02_the_area_holds_nothing_but_buffers(kit: &Kit) -> Verdict {
    let instead = "calls through lanes lie, side by side alike, in memory of their own";
    lanes::beside(kit, only_buffers_in_the_area, lanes::nothing_but_buffers, instead)
}

fn only_buffers_in_the_area(kit: &Kit) -> Verdict {
    let pair = small_pair(kit)?;
    let first = place(&pair, 100)?;
    if let Some(base) = pair.server.conn.map_base() {
        expect("where the first buffer lies", first, base)?;
    }
    let mut next = first + 104;
    for size in [1, 13, 4096, 8] {
        let address = place(&pair, size)?;
        expect(&format!("where {size} bytes lie"), address, next)?;
        ensure(address % 8 == 0, || format!("a buffer lies at {address:#x}"))?;
        next = address + (size as u64).next_multiple_of(8);
    }
    let rest = AREA - (next - first) as usize;
    expect_no_space(kit, &pair, rest + 8)?;
    expect("where the rest of the area lies", place(&pair, rest)?, next)
}

fn buf_03_the_best_gap_is_taken(kit: &Kit) -> Verdict {
    let instead = "a call through a lane takes the lowest gap that fits, in memory of its own";
    lanes::beside(kit, best_gap_of_the_area, lanes::the_first_gap_is_taken, instead)
}

fn best_gap_of_the_area(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let sizes = [512, 64, 256, 64];
    let mut at = Vec::new();
    for size in sizes {
        at.push(place(&pair, size)?);
    }
    free(&pair, &[at[0], at[2]])?;
    let behind = at[3] + 64;
    // The Rust driver goes on behind the last buffer while there are few.
    for (what, size, c, rust) in [
        ("200 bytes, with gaps of 512 and 256", 200, at[2], behind),
        ("40 bytes, with gaps of 512 and 56", 40, at[2] + 200, behind + 200),
        ("100 bytes, with gaps of 512 and 16", 100, at[0], behind + 240),
        ("600 bytes, with no such gap", 600, behind, behind + 344),
    ] {
        expect(what, place(&pair, size)? - at[0], kit.by_driver(c, rust) - at[0])?;
    }
    Ok(())
}

fn buf_04_without_a_gap_there_is_no_space(kit: &Kit) -> Verdict {
    let instead = "a call through a lane that finds no space fails when it is read";
    lanes::beside(kit, no_space_in_the_area, lanes::without_a_gap_there_is_no_space, instead)
}

fn no_space_in_the_area(kit: &Kit) -> Verdict {
    const QUARTER: usize = AREA / 4;
    let pair = small_pair(kit)?;
    let [first, second, third] = [place(&pair, QUARTER)?, place(&pair, QUARTER)?, place(&pair, QUARTER)?];
    free(&pair, &[first, third])?;
    // A quarter before the second and two behind it: three in all, but not in one piece.
    expect_no_space(kit, &pair, 2 * QUARTER + 8)?;
    pair.server.expect_silence("the receiver, which is not told")?;
    let large = place(&pair, 2 * QUARTER)?;
    expect("where half of the area found room", large, third)?;
    free(&pair, &[second, large])?;
    let all = place(&pair, AREA)?;
    expect("where all of the area found room", all, first)?;
    expect_no_space(kit, &pair, 0)?;
    free(&pair, &[all])?;
    // The same of a reply: the caller's area is too small for it.
    let caller = kit.open_mapped(4096)?;
    let handle = kit.hand_over(&pair.server, &caller, Node::number(1))?;
    caller.start_call(handle, 1, b"")?;
    pair.server.read()?.call()?;
    expect_work("a reply without space", &pair.server.answer(&ZEROES[..4104])?, "COMPLETE")?;
    expect_work("its call", &caller.ending()?, "COMPLETE FAILED_REPLY")?;
    pair.server.expect_silence("the replier, which is not told")
}

fn buf_05_freeing_takes_the_exact_address(kit: &Kit) -> Verdict {
    let instead = "calls through lanes, freed alike, leave gaps in memory of their own";
    lanes::beside(kit, freeing_in_the_area, lanes::freeing_takes_the_exact_address, instead)
}

fn freeing_in_the_area(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let Pair { server, client, handle, .. } = &pair;
    client.start_call(*handle, 1, b"before the reply")?;
    let early = server.read()?.call()?;
    server.free(&early)?;
    expect_work("answering a call without its buffer", &server.answer(b"")?, "COMPLETE")?;
    client.free(&client.ending()?.reply()?)?;
    let kept = place(&pair, 64)?;
    expect("where the next call lies", kept, early.buffer.0)?;
    free(&pair, &[0, kept + 8, kept - 8, kept + 64, u64::MAX])?;
    let second = place(&pair, 64)?;
    expect("where the next call lies, the last being kept", second, kept + 64)?;
    // What is sent and not read yet cannot be freed.
    let other = kit.open()?;
    let node = kit.hand_over(server, &other, Node::number(1))?;
    client.start_call(*handle, 1, b"not read yet")?;
    let unread = second + 64;
    free(&pair, &[unread])?;
    other.start_call(node, 1, b"sent later")?;
    for (client, data, address) in
        [(client, &b"not read yet"[..], unread), (&other, &b"sent later"[..], unread + 16)]
    {
        let call = server.read()?.call()?;
        expect("where a call lies", call.buffer.0, address)?;
        expect("its data", server.bytes(&call)?, data.to_vec())?;
        expect_work("answering it", &server.answer(b"")?, "COMPLETE")?;
        client.free(&client.ending()?.reply()?)?;
    }
    let (party, worker) = (server.clone(), Worker::new()?);
    worker.run(move || party.write(|c| c.free_buffer(BufferAddress(second))))??;
    // Freed once, so the second time it is anybody's.
    free(&pair, &[second])?;
    expect("where 64 bytes lie then", place(&pair, 64)?, kit.by_driver(second, unread + 32))?;
    free(&pair, &[kept, unread, unread + 16])?;
    expect("where the next 64 bytes lie", place(&pair, 64)?, kit.by_driver(kept, unread + 96))
}

/// Has the client call with an object for a node of its own; the server's handle to that node, and
/// the call.
fn exported(pair: &Pair, node: Node) -> Result<(Handle, Delivery), Stop> {
    let object =
        FlatBinderObject { kind: object::BINDER, flags: node.flags, binder: node.ptr, cookie: node.cookie };
    let payload = Payload { data: object.as_bytes(), offsets: &[0], ..Payload::default() };
    pair.client.write(|c| c.transaction(pair.handle, 1, TransactionFlags::CALL, payload))?;
    let call = pair.server.read()?.call()?;
    let received = FlatBinderObject::read_from_bytes(&pair.server.bytes(&call)?)
        .map_err(|_| Stop::Fail("an object lost bytes on its way".into()))?;
    expect_work("answering a call", &pair.server.answer(b"")?, "COMPLETE")?;
    let got = pair.client.ending()?;
    pair.client.acknowledge(&got)?;
    pair.client.free(&got.reply()?)?;
    Ok((Handle(received.binder as u32), call))
}

fn buf_06_freeing_drops_references(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let Pair { server, client, handle, .. } = &pair;
    client.enter_looper()?;
    let (lost, call) = exported(&pair, Node::number(2))?;
    server.free(&call)?;
    let got = server.call(lost, 1, TransactionFlags::CALL, Payload::default())?;
    expect_work("calling a handle whose buffer was freed", &got, "FAILED_REPLY")?;
    expect_work("the owner of the node", &client.read()?, "RELEASE DECREFS")?;
    let (held, call) = exported(&pair, Node::number(3))?;
    server.write(|c| c.acquire(held))?;
    server.free(&call)?;
    server.start_call(held, 1, b"")?;
    client.echo()?;
    let got = server.ending()?;
    expect_work("calling a handle with a count of its own", &got, "COMPLETE REPLY")?;
    server.free(&got.reply()?)?;
    // A call's buffer holds the node that was called.
    client.start_call(*handle, 1, b"")?;
    let call = server.read()?.call()?;
    expect_work("answering a call", &server.answer(b"")?, "COMPLETE")?;
    client.ending()?;
    client.write(|c| c.release(*handle))?;
    server.expect_silence("the owner, while a call's buffer is out")?;
    server.free(&call)?;
    expect_work("the owner, when that buffer comes back", &server.read()?, "RELEASE DECREFS")
}

fn buf_07_clearing_when_asked(kit: &Kit) -> Verdict {
    const CLEAR: u32 = tf::CLEAR_BUF;
    let pair = kit.pair()?;
    let Pair { server, client, handle, .. } = &pair;
    // Memory that was given back is looked at only while neighbours keep its page (OPN-08).
    let behind = |party: &Party, freed: &Delivery| -> Result<Vec<u8>, Stop> {
        party.free(freed)?;
        party.bytes(freed)
    };
    place(&pair, 8)?;
    for (flags, want) in [(CLEAR, 0), (0, 0xaa)] {
        let payload = Payload { data: &[0xaa; 61], ..Payload::default() };
        let call = keep(&pair, TransactionFlags(flags), payload)?;
        expect("the data", server.bytes(&call)?, vec![0xaa; 61])?;
        expect(
            &format!("what a call with the flags {flags:#x} left"),
            behind(server, &call)?,
            vec![want; 61],
        )?;
    }
    let reply = |flags, data: &[u8]| -> Result<Delivery, Stop> {
        client.start_call(*handle, 1, b"")?;
        server.free(&server.read()?.call()?)?;
        server.write(|c| c.reply(TransactionFlags(flags), Payload { data, ..Payload::default() }))?;
        expect_work("answering a call", &server.read()?, "COMPLETE")?;
        client.ending()?.reply()
    };
    reply(0, b"neighbour")?;
    for (flags, want) in [(CLEAR, 0), (0, 0xbb)] {
        let freed = reply(flags, &[0xbb; 61])?;
        expect("the data", client.bytes(&freed)?, vec![0xbb; 61])?;
        expect(
            &format!("what a reply with the flags {flags:#x} left"),
            behind(client, &freed)?,
            vec![want; 61],
        )?;
    }
    Ok(())
}
