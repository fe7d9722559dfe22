//! Room: a caller that is stopped between publishing a call in a lane and its look at the gate, while its callee is
//! frozen and thawed: the test plays it, through the lanes of an honest one.
//! Not here: what freezing means (`lab::conformance`), the order of memory in lanes (`channel::lane`).

use std::time::{Duration, Instant};

use abi::layout::FreezeInfo;
use sys::sealed_memory::SealedMemory;

use super::*;

const LANE: u32 = LANES - 1;

/// The lanes in which the other one calls the victim, and the victim's doorbells.
fn way(pair: &Pair) -> (Lanes<SealedMemory>, Doorbells<SealedMemory>) {
    let [lanes, bells] = pair.other.take_channels().swap_remove(0);
    (Lanes::new(lanes).expect("room"), Doorbells::new(bells).expect("room"))
}

/// Freezes both, which are one process to the driver, or thaws them.
fn set_frozen(pair: &Pair, enable: bool) {
    let info = FreezeInfo {
        pid: std::process::id(),
        enable: enable.into(),
        timeout_ms: PATIENCE.as_millis() as u32,
    };
    pair.other.freeze(info).expect("nothing is pending");
}

/// Publishes a call and marks it, as a caller does before it looks at the gate, and waits until the mark was taken.
fn publish(lanes: &Lanes<SealedMemory>, bells: &Doorbells<SealedMemory>, look: impl Fn()) -> lane::Call {
    let call = lanes.publish(LANE, &header(), b"").expect("idle");
    bells.post(0);
    if let Some(bell) = bells.listener_to_wake() {
        bell.wake();
    }
    let began = Instant::now();
    while bells.anything_ready() {
        assert!(began.elapsed() < PATIENCE, "nobody looks");
        look();
    }
    call
}

fn pair(stage: &Stage) -> Pair {
    let pair = stage.pair(1);
    there_and_back(&pair);
    // What lies in an inbox is pending.
    for side in [&pair.victim, &pair.other] {
        side.poll_readable(0).expect("looks");
    }
    pair
}

#[test]
fn a_frozen_process_leaves_a_call_to_its_caller() {
    let stage = Stage::new();
    let pair = pair(&stage);
    let (lanes, bells) = way(&pair);
    for watched in [false, true] {
        set_frozen(&pair, true);
        if watched {
            pair.victim.process_for_tests().watch(LANE);
        }
        let look = || assert!(read(&pair.victim).is_empty(), "served");
        let call = publish(&lanes, &bells, look);
        look();
        let info = pair.other.frozen_info(std::process::id()).expect("told");
        assert_eq!(info.sync_recv, 0, "a call that nobody serves is not pending");
        assert!(lanes.gate() != 0 && lanes.back_out(call));
        set_frozen(&pair, false);
        look();
    }
    there_and_back(&pair);
}

#[test]
fn a_caller_that_finds_the_gate_open_again_is_served() {
    let stage = Stage::new();
    let pair = pair(&stage);
    let (lanes, bells) = way(&pair);
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
            assert!(began.elapsed() < PATIENCE, "it does not fall asleep");
            thread::yield_now();
        }
        publish(&lanes, &bells, thread::yield_now);
        // It has looked, and sleeps again.
        thread::sleep(Duration::from_millis(20));
        let began = Instant::now();
        set_frozen(&pair, false);
        assert_eq!(lanes.gate(), 0);
        while !serves.is_finished() && began.elapsed() < PATIENCE {
            thread::yield_now();
        }
        let took = began.elapsed();
        // So that it ends in any case.
        bells.post(0);
        let call = serves.join().expect("no panic");
        assert!(took < LOOK_AGAIN / 2, "only another look finds it");
        write(&pair.victim, |c| c.free_buffer(call.buffer));
    });
}
