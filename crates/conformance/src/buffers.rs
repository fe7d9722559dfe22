//! Contract section 7: buffers in the receiving area (BUF).
//! Not here: the half that oneway calls may use (`oneway`), objects in buffers.

mod allocator;

use abi::layout::TransactionDataSg;

use crate::prelude::*;

items! {
    "BUF-01" Both [] buf_01_parts_are_rounded_up_to_8 "a buffer is the sum of its parts, each rounded up to 8";
    "BUF-02" Both [seen] buf_02_the_area_holds_nothing_but_buffers "buffers start at the area's first byte and lie side by side";
    "BUF-03" C [] buf_03_the_best_gap_is_taken "a buffer takes the start of the smallest gap that fits";
    "BUF-04" Both [seen differs] buf_04_without_a_gap_there_is_no_space "without one gap that fits there is no space, and gaps grow together";
    "BUF-05" Both [seen] buf_05_freeing_takes_the_exact_address "FREE_BUFFER takes a delivered buffer's address, from any thread";
    "BUF-06" Both [] buf_06_freeing_drops_references "FREE_BUFFER drops the references that the buffer holds";
    "BUF-07" Both [seen] buf_07_clearing_when_asked "a buffer is cleared when freed if its sender asked for that";
    "BUF-08" Both [] buf_08_every_order_of_freeing in allocator "freed in any order, buffers leave one gap, and no page in use";
    "BUF-09" Both [differs] buf_09_pages_come_back_under_pressure in allocator "pages of freed buffers go when memory is short, and come back";
    "BUF-10" Both [] buf_10_many_buffers_at_once "an area full of small buffers is whole again once they are freed";
}

/// The receiving area of servers that are filled up.
const AREA: usize = 64 * 4096;

/// Has the server answer one call and keep the call's buffer.
fn keep(pair: &Pair, flags: TransactionFlags, payload: Payload<'_>) -> Result<Delivery, Stop> {
    let Pair { server, client, handle, .. } = pair;
    client.send(*handle, 1, flags, payload)?;
    let call = server.read()?.call()?;
    server.finish_call()?;
    client.take_reply()?;
    Ok(call)
}

/// The same with this many zeroes; where they lie.
fn place(pair: &Pair, size: usize) -> Result<u64, Stop> {
    Ok(keep(pair, TransactionFlags::CALL, plain(zeroes(size)))?.buffer.0)
}

/// The server gives buffers back by address.
fn free(pair: &Pair, addresses: &[u64]) -> Verdict {
    pair.server.write(|c| addresses.iter().for_each(|&address| c.free_buffer(BufferAddress(address))))
}

/// A call of this many zeroes must fail for want of space.
fn expect_no_space(kit: &Kit, pair: &Pair, size: usize) -> Verdict {
    let got = pair.client.call_with(pair.handle, 1, plain(zeroes(size)))?;
    kit.expect_failed(&pair.client, &got, "ENOSPC", "ENOSPC")
}

fn buf_01_parts_are_rounded_up_to_8(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    // To its owner a node's handle comes back as the node, so this counts nothing anywhere.
    let object = handle_object(pair.handle);
    let with_object = [object.as_bytes(), b"tail"].concat();
    let parts = |data, offsets, buffers_size| Payload { data, offsets, buffers_size, ..Payload::default() };
    let mut next = None;
    for (what, payload, size) in [
        ("nothing", parts(&[][..], &[][..], None), 8),
        ("1 byte", parts(zeroes(1), &[], None), 8),
        ("13 bytes", parts(zeroes(13), &[], None), 16),
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
        pair.client.write_raw(bc::TRANSACTION_SG, &sg)?;
        pair.client.expect_ending(what, "FAILED_REPLY")?;
        kit.expect_failure(&pair.client, "EINVAL", in_rust)?;
    }
    Ok(())
}

fn buf_02_the_area_holds_nothing_but_buffers(kit: &Kit) -> Verdict {
    let pair = kit.pair_mapped(AREA)?;
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
    const QUARTER: usize = AREA / 4;
    let pair = kit.pair_mapped(AREA)?;
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
    let page = sys::page::size();
    let caller = kit.open_mapped(page)?;
    let handle = kit.hand_over(&pair.server, &caller, Node::number(1))?;
    caller.start_call(handle, 1, b"")?;
    pair.server.read()?.call()?;
    expect_work("a reply without space", &pair.server.answer(zeroes(page + 8))?, "COMPLETE")?;
    caller.expect_ending("its call", "COMPLETE FAILED_REPLY")?;
    pair.server.expect_silence("the replier, which is not told")?;
    if kit.subject.uses_call_slots() { an_unread_call_takes_no_space(kit) } else { Ok(()) }
}

fn buf_05_freeing_takes_the_exact_address(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let Pair { server, client, handle, .. } = &pair;
    client.start_call(*handle, 1, b"before the reply")?;
    let early = server.read()?.call()?;
    server.free(&early)?;
    expect_work("answering a call without its buffer", &server.answer(b"")?, "COMPLETE")?;
    client.take_reply()?;
    let kept = place(&pair, 64)?;
    expect("where the next call lies", kept, early.buffer.0)?;
    free(&pair, &[0, kept + 8, kept - 8, kept + 64, u64::MAX])?;
    let second = place(&pair, 64)?;
    expect("where the next call lies, the last being kept", second, kept + 64)?;
    // What is sent and not read yet cannot be freed.
    let (other, node) = kit.client_of(server, Node::number(1))?;
    client.start_call(*handle, 1, b"not read yet")?;
    let unread = second + 64;
    free(&pair, &[unread])?;
    other.start_call(node, 1, b"sent later")?;
    let (mut addresses, mut texts) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let call = server.read()?.call()?;
        addresses.push(call.buffer.0);
        texts.push(server.bytes(&call)?);
        server.finish_call()?;
    }
    for client in [client, &other] {
        client.take_reply()?;
    }
    // Which of the two is read first, and lies first, is not this item's business.
    addresses.sort_unstable();
    texts.sort_unstable();
    expect("where the two calls lie", addresses, vec![unread, unread + 16])?;
    expect("their data", texts, vec![b"not read yet".to_vec(), b"sent later".to_vec()])?;
    server.on(&Worker::new()?, move |server| server.write(|c| c.free_buffer(BufferAddress(second))))?;
    // Freed once, so the second time it is anybody's.
    free(&pair, &[second])?;
    expect("where 64 bytes lie then", place(&pair, 64)?, kit.by_driver(second, unread + 32))?;
    free(&pair, &[kept, unread, unread + 16])?;
    expect("where the next 64 bytes lie", place(&pair, 64)?, kit.by_driver(kept, unread + 96))
}

/// Has the client call with an object for a node of its own; the server's handle to that node, and
/// the call.
fn exported(pair: &Pair, node: Node) -> Result<(Handle, Delivery), Stop> {
    let call = pair.deliver(&Draft::of(&node.object(object::BINDER)))?;
    let received: FlatBinderObject = pair.server.arrived(&call, 0)?;
    pair.server.finish_call()?;
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
    expect_work("calling a handle whose buffer was freed", &server.call(lost)?, "FAILED_REPLY")?;
    client.expect_read("the owner of the node", "RELEASE DECREFS")?;
    let (held, call) = exported(&pair, Node::number(3))?;
    server.write(|c| c.acquire(held))?;
    server.free(&call)?;
    server.round_trip("calling a handle with a count of its own", held, client)?;
    // A call's buffer holds the node that was called.
    client.start_call(*handle, 1, b"")?;
    let call = server.read()?.call()?;
    server.finish_call()?;
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
    let behind = |party: &RawProcess, freed: &Delivery| -> Result<Vec<u8>, Stop> {
        party.free(freed)?;
        party.bytes(freed)
    };
    place(&pair, 8)?;
    for (flags, want) in [(CLEAR, 0), (0, 0xaa)] {
        let call = keep(&pair, TransactionFlags(flags), plain(&[0xaa; 61]))?;
        expect("the data", server.bytes(&call)?, vec![0xaa; 61])?;
        let what = format!("what a call with the flags {flags:#x} left");
        expect(&what, behind(server, &call)?, vec![want; 61])?;
    }
    let reply = |flags, data: &[u8]| -> Result<Delivery, Stop> {
        client.start_call(*handle, 1, b"")?;
        server.free(&server.read()?.call()?)?;
        server.write(|c| c.reply(TransactionFlags(flags), plain(data)))?;
        server.expect_read("answering a call", "COMPLETE")?;
        client.ending()?.reply()
    };
    reply(0, b"neighbour")?;
    for (flags, want) in [(CLEAR, 0), (0, 0xbb)] {
        let freed = reply(flags, &[0xbb; 61])?;
        expect("the data", client.bytes(&freed)?, vec![0xbb; 61])?;
        let what = format!("what a reply with the flags {flags:#x} left");
        expect(&what, behind(client, &freed)?, vec![want; 61])?;
    }
    Ok(())
}

/// A call through a call slot takes its space when it is read, so one that fitted when it was sent may not fit then.
fn an_unread_call_takes_no_space(kit: &Kit) -> Verdict {
    /// Calls after which two processes must have found the short way.
    const CALLS: usize = 10;
    const AREA: usize = 16 * 4096;
    /// Two of it are more than [`AREA`].
    const LARGE: usize = 10 * 4096;
    let pair = kit.pair_mapped(AREA)?;
    let (second, node) = kit.client_of(&pair.server, Node::number(1))?;
    let clients = [(&pair.client, pair.handle), (&second, node)];
    for (client, handle) in clients {
        for _ in 0..CALLS {
            client.round_trip("a small call", handle, &pair.server)?;
        }
    }
    for (client, handle) in clients {
        client.start_call(handle, 1, zeroes(LARGE))?;
    }
    let first = pair.server.read()?.call()?;
    expect_work("answering the call that has its space", &pair.server.answer(b"")?, "COMPLETE")?;
    pair.server.expect_silence("the receiver of a call without space")?;
    let mut ends = Vec::new();
    for (client, _) in clients {
        let got = client.ending()?;
        if let Ok(reply) = got.reply() {
            client.free(&reply)?;
        } else {
            let error = client.extended_error()?;
            expect("its extended error", sys::errno::name(-error.param), Some("ENOSPC"))?;
        }
        ends.push(got.work());
    }
    ends.sort_unstable();
    expect(
        "how two calls end of which one fits",
        ends.join(", ").as_str(),
        "COMPLETE FAILED_REPLY, COMPLETE REPLY",
    )?;
    let base = pair.server.conn.map_base().unwrap_or_default();
    let inside = (base..base + AREA as u64).contains(&first.buffer.0);
    ensure(inside, || format!("the call lies at {:#x}, outside the receiving area", first.buffer.0))?;
    pair.server.free(&first)?;
    kit.differs("a call through a call slot takes its space when it is read")
}

fn buf_10_many_buffers_at_once(kit: &Kit) -> Verdict {
    /// Bytes of a buffer; enough of them that a driver's list of few turns into its form for many.
    const SIZE: usize = 256;
    let pair = kit.pair_mapped(sys::page::size())?;
    let many = pair.server.conn.map_size() / SIZE;
    for round in 0..2 {
        let mut calls = Vec::new();
        for _ in 0..many {
            calls.push(place(&pair, SIZE)?);
        }
        let lowest = calls.iter().min().copied();
        let mut sorted = calls.clone();
        sorted.sort_unstable();
        ensure(sorted.windows(2).all(|two| two[1] - two[0] == SIZE as u64), || {
            format!("expected buffers without a gap between them, got {sorted:x?}")
        })?;
        expect_no_space(kit, &pair, 8)?;
        // Every second one upwards, then the others downwards.
        let (even, odd): (Vec<_>, Vec<_>) =
            calls.iter().enumerate().partition(|(at, _)| (at + round) % 2 == 0);
        for (_, &address) in even {
            free(&pair, &[address])?;
        }
        expect_no_space(kit, &pair, SIZE + 8)?;
        for (_, &address) in odd.into_iter().rev() {
            free(&pair, &[address])?;
        }
        let whole = place(&pair, many * SIZE)?;
        expect("where one as large as the area lies", Some(whole), lowest)?;
        expect_no_space(kit, &pair, 8)?;
        free(&pair, &[whole])?;
    }
    Ok(())
}
