//! Gates and held calls of real channels, without a client.
//! Not here: the requests for them (`core`), the effect in call slots (`shm::call_slot`).

use abi::layout::ExtendedError;

use super::*;
use crate::rpc::protocol::Answers;
use crate::shm::call_slot::{CLOSED, FROZEN, ReplyHeader, RequestHeader};

const CALLER: ProcId = ProcId(1);
const CALLEE: ProcId = ProcId(2);
const BIT: u32 = 35;

/// A host with one channel, and the caller's view of its call slots and the callee's doorbells.
fn host() -> (MemoryHost, CallSlots<Arc<SealedMemory>>, Doorbells<Arc<SealedMemory>>) {
    let mut host = MemoryHost::new();
    for proc in [CALLER, CALLEE] {
        host.join(proc, 1, Shared::create().expect("memory"), true);
    }
    assert!(host.make_channel(1, BIT, CALLER, CALLEE));
    let Channel { call_slots, doorbells, .. } = &host.channels[&1];
    let call_slots = CallSlots::new(Arc::clone(call_slots.memory())).expect("room");
    let bells = Doorbells::new(Arc::clone(&doorbells[1])).expect("room");
    (host, call_slots, bells)
}

fn publish(call_slots: &CallSlots<Arc<SealedMemory>>) -> call_slot::Call {
    publish_of(call_slots, 1)
}

fn publish_of(call_slots: &CallSlots<Arc<SealedMemory>>, generation: u32) -> call_slot::Call {
    let thread = ThreadKey { slot: 0, generation };
    let header = RequestHeader { binding: 1, code: 1, thread, ..RequestHeader::default() };
    call_slots.publish(0, &header, b"").expect("idle")
}

#[test]
fn a_thaw_marks_the_channel_again_and_wakes() {
    let (mut host, call_slots, bells) = host();
    let bell = bells.slot(3).expect("inside");
    let _ = bell.move_in(77);
    host.set_gate(1, FROZEN);
    assert!(host.settle(CALLEE));
    assert_eq!(bells.take_ready().count(), 0);
    publish(&call_slots);
    assert!(call_slots.take(0).expect("sane").is_none() && !host.busy(CALLEE) && host.settle(CALLEE));
    bell.announce_sleep();
    host.set_gate(1, 0);
    host.wake_all(CALLEE);
    assert_eq!((call_slots.gate(), bells.take_ready().collect::<Vec<_>>()), (0, vec![BIT]));
    assert!(!bell.is_sleeping(), "nobody wakes it");
    assert!(host.busy(CALLEE) && call_slots.take(0).expect("sane").is_some());
}

#[test]
fn who_is_frozen_may_still_call() {
    let (mut host, call_slots, _) = host();
    assert!(host.settle(CALLER));
    publish(&call_slots);
    assert!(host.busy(CALLER) && !host.settle(CALLER), "its own call is pending");
    assert!(call_slots.take(0).expect("sane").is_some());
}

#[test]
fn a_channel_that_closes_does_not_let_go() {
    let (mut host, call_slots, bells) = host();
    host.set_gate(1, FROZEN);
    assert!(host.settle(CALLEE));
    let call = publish(&call_slots);
    host.set_gate(1, CLOSED);
    assert_eq!(call_slots.gate(), FROZEN | CLOSED);
    assert!(call_slots.take(0).expect("sane").is_none() && !bells.anything_ready());
    assert!(call_slots.back_out(call));
}

#[test]
fn a_failure_that_its_thread_has_not_read_is_not_pending() {
    let (mut host, call_slots, _) = host();
    let bells = Doorbells::new(Arc::clone(&host.channels[&1].doorbells[0])).expect("room");
    let bell = bells.slot(0).expect("inside");
    let _ = bell.move_in(70);
    let call = |host: &MemoryHost| {
        let call = publish_of(&call_slots, bell.generation());
        bell.set_depth(1);
        assert!(host.busy(CALLER) && host.busy(CALLEE));
        (call, call_slots.take(0).expect("sane").expect("published").taken())
    };
    // The callee fails the call.
    let (failed, taken) = call(&host);
    call_slots.fail(taken, 5);
    assert!(!host.busy(CALLER) && !host.busy(CALLEE));
    bell.set_depth(2);
    assert!(host.busy(CALLER), "it serves another one");
    host.set_gate(1, FROZEN);
    assert!(host.settle(CALLEE));
    call_slots.release(failed);
    let early = publish(&call_slots);
    assert!(call_slots.take(0).expect("sane").is_none(), "the next call is held");
    assert!(call_slots.back_out(early));
    host.set_gate(1, 0);
    // The broker refuses a call.
    let refused = Item::Refused {
        thread: ThreadKey { slot: 0, generation: 1 },
        answers: Answers::Transaction { number: 1 },
        outcome: br::DEAD_REPLY,
        error: ExtendedError { id: 0, command: br::OK, param: 0 },
    };
    host.item(CALLER, refused);
    assert!(host.busy(CALLER), "one of two calls");
    bell.set_depth(1);
    assert!(!host.busy(CALLER));
    let _ = bell.move_in(71);
    bell.set_depth(1);
    assert!(host.busy(CALLER), "a later thread in the same place waits for a call of its own");
    // The callee ends, without a reply and behind one.
    let (_, taken) = call(&host);
    host.leave(CALLEE);
    assert!(!host.busy(CALLER));
    call_slots.reply(taken, &ReplyHeader::default(), b"").expect("fits");
    assert!(host.busy(CALLER));
}

#[test]
fn calls_and_buffers_of_a_node_are_counted() {
    let (mut host, call_slots, _) = host();
    assert_eq!((host.unread_calls(CALLEE), host.tagged(CALLEE, 3)), (Vec::new(), 0), "without an area");
    let arena = ArenaMemory::create(4096).expect("memory");
    let tag = Tag::of_node(3);
    arena.lease().set_used(1);
    assert!(arena.lease().place(0, Range { start: 8, len: 8 }, tag, 0));
    host.map(CALLEE, arena);
    assert_eq!([2, 3].map(|tag| host.tagged(CALLEE, tag)), [0, 1]);
    publish(&call_slots);
    assert_eq!((host.unread_calls(CALLEE), host.unread_calls(CALLER)), (vec![(1, 1)], Vec::new()));
    let taken = call_slots.take(0).expect("sane").expect("published").taken();
    assert_eq!(host.unread_calls(CALLEE), [(1, 1)], "taken in and not read");
    call_slots.note_server(taken, 5);
    assert!(host.unread_calls(CALLEE).is_empty());
}
