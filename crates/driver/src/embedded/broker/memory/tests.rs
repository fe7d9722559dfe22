//! Room: gates and holds of real channels, without a client.
//! Not here: when they are asked for (`core`), what lanes make of it (`channel::lane`).

use super::*;
use crate::embedded::channel::lane::{CLOSED, FROZEN, RequestHeader};

const CALLER: ProcId = ProcId(1);
const CALLEE: ProcId = ProcId(2);
const BIT: u32 = 35;

/// A world with one channel, and its lanes and the callee's doorbells as the caller has them.
fn world() -> (World, Lanes<Arc<SealedMemory>>, Doorbells<Arc<SealedMemory>>) {
    let mut world = World::new();
    for proc in [CALLER, CALLEE] {
        world.join(proc, 1, Shared::create(0).expect("memory"));
    }
    assert!(world.make_channel(1, BIT, CALLER, CALLEE));
    let Channel { memory, doorbells, .. } = &world.channels[&1];
    let lanes = Lanes::new(Arc::clone(memory)).expect("room");
    let bells = Doorbells::new(Arc::clone(&doorbells[1])).expect("room");
    (world, lanes, bells)
}

fn publish(lanes: &Lanes<Arc<SealedMemory>>) -> lane::Call {
    let thread = ThreadKey { slot: 0, generation: 1 };
    let header = RequestHeader { binding: 1, code: 1, thread, ..RequestHeader::default() };
    lanes.publish(0, &header, b"").expect("idle")
}

#[test]
fn a_thaw_marks_the_channel_again_and_wakes() {
    let (mut world, lanes, bells) = world();
    let bell = bells.slot(3).expect("inside");
    let _ = bell.move_in(77);
    world.set_gate(1, GATE_FROZEN);
    assert!(world.settle(CALLEE));
    assert_eq!(bells.take_ready().count(), 0);
    publish(&lanes);
    assert!(lanes.take(0).expect("sane").is_none() && !world.busy(CALLEE) && world.settle(CALLEE));
    bell.announce_sleep();
    world.set_gate(1, 0);
    world.wake_all(CALLEE);
    assert_eq!((lanes.gate(), bells.take_ready().collect::<Vec<_>>()), (0, vec![BIT]));
    assert!(!bell.is_sleeping(), "nobody wakes it");
    assert!(world.busy(CALLEE) && lanes.take(0).expect("sane").is_some());
}

#[test]
fn who_is_frozen_may_still_call() {
    let (mut world, lanes, _) = world();
    assert!(world.settle(CALLER));
    publish(&lanes);
    assert!(world.busy(CALLER) && !world.settle(CALLER), "its own call is pending");
    assert!(lanes.take(0).expect("sane").is_some());
}

#[test]
fn a_channel_that_closes_does_not_let_go() {
    let (mut world, lanes, bells) = world();
    world.set_gate(1, GATE_FROZEN);
    assert!(world.settle(CALLEE));
    let call = publish(&lanes);
    world.set_gate(1, GATE_CLOSED);
    assert_eq!(lanes.gate(), FROZEN | CLOSED);
    assert!(lanes.take(0).expect("sane").is_none() && !bells.anything_ready());
    assert!(lanes.back_out(call));
}
