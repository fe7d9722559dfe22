//! Contract section 8: what a refused call leaves as it was, and nodes that nobody was told of.
//! A buffer begins with what the one before it left there, so each test fills it first with what must not be believed.

use crate::objects::fds::{Marked, OpenFile};
use crate::objects::nodes::can_call;
use crate::payload_calls::expect_refusal;
use crate::prelude::*;

pub(super) fn obj_24_a_refused_call_takes_no_counts(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let node = Draft::of(&flat_object(object::BINDER, 0x5000, 1));
    let call = pair.deliver(&node)?;
    let got: FlatBinderObject = pair.server.arrived(&call, 0)?;
    let held = Handle(got.binder as u32);
    pair.server.write(|c| c.acquire(held))?;
    pair.conclude(&call)?;
    expect("calling a handle with one count", can_call(&pair.server, held)?, true)?;
    // Refused before the object is looked at, and behind it.
    pair.refused(kit, "a buffers size of 4", &node.clone().room(4), "EINVAL", None)?;
    expect("calling it after a refused call that lists its node", can_call(&pair.server, held)?, true)?;
    let cut = node.object(&flat_object(object::HANDLE, 4000, 0));
    pair.refused(kit, "a handle that does not exist", &cut, "EINVAL", None)?;
    expect("calling it after another", can_call(&pair.server, held)?, true)?;
    // Taken for the list of offsets, the bytes on the way to an offset behind the data would name that handle.
    let mut bytes = [0_u8; 256];
    bytes[..24].copy_from_slice(flat_object(object::BINDER, 0x6000, 1).as_bytes());
    bytes[24..48].copy_from_slice(handle_object(held).as_bytes());
    bytes[96..104].copy_from_slice(&24_u64.to_ne_bytes());
    let beyond =
        Payload { data: &bytes[..96], offsets: &[0, 200], buffers_size: Some(128), ..Payload::default() };
    pair.client.send(pair.handle, 1, TransactionFlags::CALL, beyond)?;
    expect_refusal(kit, "an offset behind the data", &pair.client, ("EFAULT", None))?;
    expect("calling it after one with an offset behind the data", can_call(&pair.server, held)?, true)?;
    pair.server.write(|c| c.release(held))?;
    expect("calling it without the count", can_call(&pair.server, held)?, false)
}

pub(super) fn obj_25_a_weak_node_may_go_on(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let (handle, worker) = (pair.handle, Worker::new()?);
    pair.client.on(&worker, move |client| {
        client.version()?;
        let weak = Draft::of(&flat_object(object::WEAK_BINDER, 0x5000, 1));
        client.send(handle, 1, TransactionFlags::ONEWAY, weak.payload())?;
        // Its INCREFS is on this thread's queue (REF-09), and lost with it (REF-14).
        client.thread_exit()
    })?;
    let call = pair.server.read()?.call()?;
    let got: FlatBinderObject = pair.server.arrived(&call, 0)?;
    expect("the kind that arrives", got.kind, object::WEAK_HANDLE)?;
    let third = kit.server()?;
    let to_third = kit.hand_over(&third, &pair.server, Node::number(8))?;
    let passed = Draft::of(&flat_object(object::WEAK_HANDLE, got.binder, 0));
    pair.server.send(to_third, 1, TransactionFlags::ONEWAY, passed.payload())?;
    pair.server.expect_read("passing it on", "COMPLETE")?;
    let call = third.read()?.call()?;
    expect(
        "the kind that arrives there",
        third.arrived::<FlatBinderObject>(&call, 0)?.kind,
        object::WEAK_HANDLE,
    )
}

pub(super) fn obj_26_a_refused_call_closes_nothing(kit: &Kit) -> Verdict {
    // Owner and caller are one OS process, so that descriptors of the one are those of the other.
    let pair = kit.pair()?;
    let (stale, sent) = (Marked::new(10)?, Marked::new(20)?);
    let word = (stale.number() as u32).to_ne_bytes();
    let call = pair.deliver(&Draft::with(&word.repeat(256)))?;
    pair.conclude(&call)?;
    let memory = [sent.number() as u32; 2];
    let array = Draft::with(&[0; 8]).object(&ptr(&memory)).object(&fda(2, 0, 0)).room(8);
    pair.refused(kit, "an array, then a closed descriptor", &array.object(&fd(9999)), "EBADF", None)?;
    let two = Draft::of(&fd(sent.number())).object(&fd(9999));
    pair.refused(kit, "a descriptor, then a closed one", &two, "EBADF", None)?;
    for (what, file) in
        [("the number that the buffer began with", &stale), ("a descriptor of the array", &sent)]
    {
        ensure(OpenFile::of(file.number()).is_some(), || format!("the refused call closed {what}"))?;
    }
    Ok(())
}

pub(super) fn obj_27_a_parent_is_listed_before(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    // Read as a list of offsets, each names the first object of the calls below.
    pair.conclude(&pair.deliver(&Draft::with(&8_u64.to_ne_bytes().repeat(64)))?)?;
    let (outer, inner) = ([0_u64; 4], [1_u64]);
    let file = Marked::new(10)?;
    let array = [file.number() as u32; 8];
    for index in [1, 2, 5, 7] {
        let patched = Draft::with(&[0; 8]).object(&ptr(&outer)).object(&child(&inner, index, 0)).room(64);
        pair.refused(kit, &format!("a parent of index {index} of 2 objects"), &patched, "EINVAL", None)?;
        let filled = Draft::with(&[0; 8]).object(&ptr(&array)).object(&fda(1, index, 0)).room(64);
        pair.refused(kit, &format!("an array in the object of index {index} of 2"), &filled, "EINVAL", None)?;
    }
    Ok(())
}
