//! Contract section 8: scatter-gather buffers, and pointers between them.

use crate::prelude::*;

const SIZE: u64 = size_of::<BufferObject>() as u64;

/// Offset of the first object in most payloads here; not 0 (contract OBJ-18).
const AT: u64 = 8;

/// A payload that starts with 8 plain bytes.
fn led() -> Draft {
    Draft::with(&[0; AT as usize])
}

/// The `n`th scatter-gather buffer of such a payload, if all objects are buffers.
fn nth(process: &RawProcess, call: &Delivery, n: u64) -> Result<BufferObject, Stop> {
    process.arrived(call, AT + n * SIZE)
}

/// The words of a delivered buffer.
fn words(process: &RawProcess, buffer: &BufferObject) -> Result<Vec<u64>, Stop> {
    let bytes = process.lent(buffer.buffer, buffer.length)?;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    Ok(bytes.chunks_exact(8).map(word).collect())
}

pub(super) fn obj_15_scattered_buffers_follow_the_offsets(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let (one, two) = ([1u8; 13], [2u8; 5]);
    let draft = led().object(&ptr(&one)).object(&ptr(&two));
    let arrived_whole = |process: &RawProcess, delivery: &Delivery| {
        let mut at = delivery.offsets + delivery.offsets_size;
        for (n, bytes) in [(0, &one[..]), (1, &two)] {
            let got = nth(process, delivery, n)?;
            expect("type and length", (got.kind, got.length), (object::PTR, bytes.len() as u64))?;
            expect("the address of a scattered buffer", got.buffer, at)?;
            expect("its bytes", process.lent(at, got.length)?, bytes.to_vec())?;
            at += got.length.next_multiple_of(8);
        }
        Ok::<_, Stop>(())
    };
    for room in [24, 64] {
        let call = pair.deliver(&draft.clone().room(room))?;
        arrived_whole(&pair.server, &call)?;
        pair.conclude(&call)?;
    }
    pair.answer_with(TransactionFlags::CALL, &draft.clone().room(24))?;
    let reply = pair.client.ending()?.reply()?;
    arrived_whole(&pair.client, &reply)?;
    pair.client.free(&reply)?;
    for (what, draft) in [
        ("buffers that do not fit the room", draft.clone().room(16)),
        ("buffers without room", draft.clone().room(0)),
        ("buffers in a command that has none", draft),
    ] {
        pair.refused(kit, what, &draft, "EINVAL", Some("EINVAL"))?;
    }
    Ok(())
}

pub(super) fn obj_16_a_child_is_patched_into_its_parent(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let (top, middle, bottom) = ([11u64, 22, 33, 44], [55u64, 66], *b"bottom");
    let draft = led()
        .object(&ptr(&top))
        .object(&child(&middle, 0, 8))
        .object(&child(&bottom, 1, 0))
        .room(32 + 16 + 8);
    let call = pair.deliver(&draft)?;
    let server = &pair.server;
    let (one, two, three) = (nth(server, &call, 0)?, nth(server, &call, 1)?, nth(server, &call, 2)?);
    expect("the top's words", words(server, &one)?, vec![11, two.buffer, 33, 44])?;
    expect("the middle's words", words(server, &two)?, vec![three.buffer, 66])?;
    expect("the bottom's bytes", server.lent(three.buffer, 6)?, bottom.to_vec())?;
    expect("the sender's own memory", (top, middle), ([11, 22, 33, 44], [55, 66]))?;
    pair.conclude(&call)?;
    let one = || led().object(&ptr(&top));
    let node = flat_object(object::BINDER, 0x5000, 1);
    for (what, draft) in [
        ("a parent that is not listed", one().object(&child(&middle, 7, 8))),
        ("a buffer that is its own parent", one().object(&child(&middle, 1, 8))),
        ("a parent that comes later", led().object(&child(&middle, 1, 8)).object(&ptr(&top))),
        ("a parent that is no buffer", led().object(&node).object(&child(&middle, 0, 8))),
        ("a pointer behind its parent", one().object(&child(&middle, 0, 32))),
        ("a pointer half behind its parent", one().object(&child(&middle, 0, 28))),
        ("a pointer far behind its parent", one().object(&child(&middle, 0, u64::MAX - 7))),
        ("a parent too small for a pointer", led().object(&ptr(&bottom)).object(&child(&middle, 0, 0))),
    ] {
        pair.refused(kit, what, &draft.room(64), "EINVAL", Some("EINVAL"))?;
    }
    let unaligned = one().object(&child(&middle, 0, 9)).room(64);
    if kit.is_rust() {
        return pair.conclude(&pair.deliver(&unaligned)?);
    }
    pair.refused(kit, "a pointer at no multiple of 4", &unaligned, "EINVAL", None)
}

pub(super) fn obj_17_parents_are_patched_in_order(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let (top, leaf) = ([0u64; 4], [0u64; 2]);
    let tree = || led().object(&ptr(&top));
    let below = |parent, offset| child(&leaf, parent, offset);
    // Depth first, left to right: the parent must be the last buffer or one of its ancestors.
    let fine = tree().object(&below(0, 0)).object(&below(1, 0)).object(&below(1, 8)).object(&below(0, 24));
    let call = pair.deliver(&fine.room(32 + 4 * 16))?;
    let server = &pair.server;
    let mut got = Vec::new();
    for n in 0..5 {
        got.push(nth(server, &call, n)?);
    }
    expect("the top's words", words(server, &got[0])?, vec![got[1].buffer, 0, 0, got[4].buffer])?;
    expect("the first child's words", words(server, &got[1])?, vec![got[2].buffer, got[3].buffer])?;
    pair.conclude(&call)?;
    for (what, draft) in [
        ("the same place twice", tree().object(&below(0, 8)).object(&below(0, 8))),
        ("a place before the last one", tree().object(&below(0, 16)).object(&below(0, 8))),
        ("a place across the last one", tree().object(&below(0, 8)).object(&below(0, 12))),
        ("a parent with a buffer of no relation in between", tree().object(&ptr(&leaf)).object(&below(0, 8))),
        ("a cousin", tree().object(&below(0, 0)).object(&below(0, 8)).object(&below(1, 0))),
        (
            "a place in an ancestor before the way down",
            tree().object(&below(0, 16)).object(&below(1, 0)).object(&below(0, 8)),
        ),
    ] {
        pair.refused(kit, what, &draft.room(32 + 3 * 16), "EINVAL", Some("EINVAL"))?;
    }
    Ok(())
}

pub(super) fn obj_18_no_parent_at_offset_0(kit: &Kit) -> Verdict {
    let pair: Pair = kit.pair()?;
    let (top, leaf) = ([1u64; 2], [2u64; 1]);
    let draft = Draft::of(&ptr(&top)).object(&child(&leaf, 0, 8)).room(24);
    if kit.is_rust() {
        let call = pair.deliver(&draft)?;
        let parent: BufferObject = pair.server.arrived(&call, 0)?;
        let leaf: BufferObject = pair.server.arrived(&call, SIZE)?;
        expect("a parent at offset 0", words(&pair.server, &parent)?, vec![1, leaf.buffer])?;
        pair.conclude(&call)?;
    } else {
        pair.refused(kit, "a parent at offset 0", &draft, "EINVAL", None)?;
    }
    // Valid there without children.
    let call = pair.deliver(&Draft::of(&ptr(&top)).room(16))?;
    let alone: BufferObject = pair.server.arrived(&call, 0)?;
    expect("a buffer at offset 0", pair.server.lent(alone.buffer, 16)?, top.as_bytes().to_vec())?;
    pair.conclude(&call)?;
    let moved = led().object(&ptr(&top)).object(&child(&leaf, 0, 8)).room(24);
    pair.conclude(&pair.deliver(&moved)?)
}
