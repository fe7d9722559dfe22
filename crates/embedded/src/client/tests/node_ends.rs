//! Tests of calls through call slots whose node or handle ends meanwhile.
//! Not here: counts at the broker (`broker::core::tests`).

use abi::codes::object;
use abi::layout::FlatBinderObject;
use abi::{Cookie, Handle, NodePtr};
use zerocopy::{FromBytes, IntoBytes};

use super::*;
use crate::fuzz::stage::drain;

const NODE: u64 = 0x20;

/// Sends the victim a handle that one buffer holds, and calls it once, so that further calls use a call slot.
fn called_once(pair: &Pair) -> (Handle, Delivery) {
    let Pair { victim, other, to_victim, .. } = pair;
    let node = FlatBinderObject { kind: object::BINDER, binder: NODE, cookie: NODE, ..Default::default() };
    let payload = Payload { data: node.as_bytes(), offsets: &[0], ..Payload::default() };
    write(other, |c| c.transaction(*to_victim, 1, TransactionFlags::ONEWAY, payload));
    let holder = call_of(victim);
    let data = victim.lent(holder.buffer.0, holder.data_size).expect("delivered");
    let (arrived, _) = FlatBinderObject::read_from_prefix(data).expect("one object");
    let handle = Handle(arrived.binder as u32);
    drain(other);
    call(victim, handle);
    reply(other, &call_of(other));
    write(victim, |c| c.free_buffer(reply_of(victim).buffer));
    (handle, holder)
}

fn call(victim: &EmbeddedConnection, handle: Handle) {
    write(victim, |c| c.transaction(handle, 2, TransactionFlags::CALL, Payload::default()));
}

#[test]
fn a_call_is_served_although_its_handle_ended_behind_it() {
    let stage = Stage::new();
    let pair = stage.pair(1);
    let (handle, holder) = called_once(&pair);
    call(&pair.victim, handle);
    write(&pair.victim, |c| c.free_buffer(holder.buffer));
    reply(&pair.other, &call_of(&pair.other));
    reply_of(&pair.victim);
}

#[test]
fn a_buffer_that_is_freed_behind_its_area_lets_its_node_end() {
    let stage = Stage::new();
    let pair = stage.pair(1);
    let Pair { victim, other, .. } = &pair;
    let (handle, holder) = called_once(&pair);
    call(victim, handle);
    let kept = call_of(other);
    write(other, |c| c.reply(TransactionFlags::default(), Payload::default()));
    reply_of(victim);
    write(victim, |c| c.free_buffer(holder.buffer));
    let is_end = |item: Return| (item == Return::Release(NodePtr(NODE), Cookie(NODE))).then_some(());
    assert_eq!(read(other).into_iter().find_map(is_end), None, "the call's buffer holds the node");
    other.unmap();
    write(other, |c| c.free_buffer(kept.buffer));
    wait_for(other, is_end);
}
