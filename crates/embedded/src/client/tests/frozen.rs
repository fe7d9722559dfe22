//! A caller that is stopped between publishing a call in a call slot and checking the gate, while its callee
//! is frozen and thawed. The test plays that caller, through the call slots of an honest one.
//! Not here: the meaning of freezing (`conformance`), memory ordering in call slots (`shm::call_slot`).

use std::time::{Duration, Instant};

use abi::layout::FreezeInfo;
use sys::sealed_memory::SealedMemory;

use super::*;

const CALL_SLOT: u32 = CALL_SLOTS - 1;

/// The call slots in which the other process calls the victim, and the victim's doorbells.
fn way(pair: &Pair) -> (CallSlots<SealedMemory>, Doorbells<SealedMemory>) {
    let [call_slots, bells] = pair.other.take_channels().swap_remove(0);
    (CallSlots::new(call_slots).expect("room"), Doorbells::new(bells).expect("room"))
}

/// Freezes or thaws both connections, which are one process to the driver.
fn set_frozen(pair: &Pair, enable: bool) {
    let info = FreezeInfo {
        pid: std::process::id(),
        enable: enable.into(),
        timeout_ms: sys::patience::stretched(PATIENCE).as_millis() as u32,
    };
    pair.other.freeze(info).expect("nothing is pending");
}

/// Publishes and marks a call, as a caller does before it checks the gate; waits until the mark is taken.
fn publish(
    call_slots: &CallSlots<SealedMemory>,
    bells: &Doorbells<SealedMemory>,
    look: impl Fn(),
) -> call_slot::Call {
    let call = call_slots.publish(CALL_SLOT, &header(), b"").expect("idle");
    bells.post(0);
    if let Some(bell) = bells.listener_to_wake() {
        bell.wake();
    }
    let began = Instant::now();
    while bells.anything_ready() {
        assert!(!sys::patience::is_over(began, PATIENCE), "nobody looks");
        look();
    }
    call
}

fn pair(stage: &Stage) -> Pair {
    let pair = stage.pair(1);
    there_and_back(&pair);
    // Unread inbox records would count as pending.
    for side in [&pair.victim, &pair.other] {
        side.poll_readable(0).expect("looks");
    }
    pair
}

#[test]
fn a_frozen_process_leaves_a_call_to_its_caller() {
    let stage = Stage::new();
    let pair = pair(&stage);
    let (call_slots, bells) = way(&pair);
    for _ in 0..2 {
        set_frozen(&pair, true);
        let look = || assert!(read(&pair.victim).is_empty(), "served");
        let call = publish(&call_slots, &bells, look);
        look();
        let info = pair.other.frozen_info(std::process::id()).expect("told");
        assert_eq!(info.sync_recv, 0, "a call that nobody serves is not pending");
        assert!(call_slots.gate() != 0 && call_slots.back_out(call));
        set_frozen(&pair, false);
        look();
    }
    there_and_back(&pair);
}

#[test]
fn a_caller_that_finds_the_gate_open_again_is_served() {
    let stage = Stage::new();
    let pair = pair(&stage);
    let (call_slots, bells) = way(&pair);
    set_frozen(&pair, true);
    set_frozen(&pair, true);
    pair.victim.set_nonblocking(false).expect("set");
    thread::scope(|scope| {
        let serves = scope.spawn(|| {
            write(&pair.victim, |c| c.enter_looper());
            call_of(&pair.victim)
        });
        let began = Instant::now();
        while bells.listener().and_then(|slot| bells.slot(slot)).is_none_or(|bell| !bell.is_sleeping()) {
            assert!(!sys::patience::is_over(began, PATIENCE), "it does not fall asleep");
            thread::yield_now();
        }
        publish(&call_slots, &bells, thread::yield_now);
        // The thread has looked, and sleeps again.
        thread::sleep(Duration::from_millis(20));
        let began = Instant::now();
        set_frozen(&pair, false);
        assert_eq!(call_slots.gate(), 0);
        while !serves.is_finished() && !sys::patience::is_over(began, PATIENCE) {
            thread::yield_now();
        }
        let took = began.elapsed();
        // Ends the wait in any case.
        bells.post(0);
        let call = serves.join().expect("no panic");
        assert!(took < sys::patience::stretched(LOOK_AGAIN / 2), "only another look finds it");
        write(&pair.victim, |c| c.free_buffer(call.buffer));
    });
}
