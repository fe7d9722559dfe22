//! Tests of calls through call slots whose node or handle ends meanwhile.
//! Not here: counts at the broker (`broker::core::tests`).

use abi::codes::object;
use abi::layout::FlatBinderObject;
use abi::Handle;
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
