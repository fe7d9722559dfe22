//! Loom models of call slots.
//! Not here: their rules without races (`tests`).

use std::sync::Arc;

use sys::sync::full_fence;

use super::payload_range::{AREA, large};
use super::*;
use crate::rpc::protocol::{Sched, ThreadKey};
use crate::shm::doorbell::{Doorbells, models::bells};
use crate::shm::heap::HeapMemory;

/// A channel with one usable call slot; a second slot can hold a call.
fn call_slots() -> Arc<CallSlots<HeapMemory>> {
    call_slots_with(2)
}

/// A channel that shows more call slots idle. Each further word costs loom time.
fn call_slots_with(seen: u32) -> Arc<CallSlots<HeapMemory>> {
    let (first, second) = (base(0), base(1));
    let words = [GATE, REASON, USED, first + REPLY];
    let words =
        words.into_iter().chain((0..seen).flat_map(|call_slot| [base(call_slot), base(call_slot) + OVER]));
    let words = words.chain((0..seen).map(|call_slot| base(call_slot) + CLAIM));
    let small = [first + 4..first + AREA, first + REPLY + 4..first + REPLY + AREA, second + 4..second + AREA];
    let large = [large(0, 0)..large(0, 0) + AREA];
    Arc::new(CallSlots::new(HeapMemory::new(SIZE, words, small.into_iter().chain(large))).expect("room"))
}

fn header() -> RequestHeader {
    RequestHeader {
        binding: 1,
        code: 2,
        flags: 3,
        shape: Shape::default(),
        thread: ThreadKey { slot: 0, generation: 1 },
        cpu: 0,
        sched: Sched::default(),
        mark: 0,
        behind: 0,
        lineage: None,
    }
}

fn taken(call_slots: &CallSlots<HeapMemory>) -> Request {
    loop {
        match call_slots.take_next().expect("sane") {
            Some(request) => return request,
            None => loom::thread::yield_now(),
        }
    }
}

/// Guards that one pass over the call slots per mark is enough: a call that the pass misses is marked again.
#[test]
fn loom_a_pass_for_each_mark_finds_every_call() {
    fn pass(call_slots: &CallSlots<HeapMemory>, bells: &Doorbells<HeapMemory>) -> usize {
        let take = |call_slot: &u32| call_slots.take(*call_slot).expect("sane").is_some();
        bells.take_ready().map(|_| call_slots.called().filter(take).count()).sum()
    }
    loom::model(|| {
        let (call_slots, bells) = (call_slots(), bells());
        let (callee, marks) = (Arc::clone(&call_slots), Arc::clone(&bells));
        let serving = loom::thread::spawn(move || pass(&callee, &marks));
        for call_slot in [0, 1] {
            call_slots.publish(call_slot, &header(), b"call").expect("idle");
            bells.post(5);
        }
        let found = serving.join().expect("no panic");
        assert_eq!(found + pass(&call_slots, &bells), 2);
    });
}

/// Guards the Release and Acquire of both words: loom watches the bytes.
#[test]
fn loom_a_call_arrives_whole() {
    loom::model(|| {
        let call_slots = call_slots();
        let callee = Arc::clone(&call_slots);
        let serving = loom::thread::spawn(move || {
            for _ in 0..2 {
                let request = taken(&callee);
                let mut data = [0; 4];
                callee.copy_out(request.payload_range(), &mut data);
                data.reverse();
                callee.reply(request.taken(), &ReplyHeader::default(), &data).expect("fits");
            }
        });
        for data in [*b"call", *b"more"] {
            let call = call_slots.publish(0, &header(), &data).expect("idle");
            while !call_slots.is_answered(call) {
                loom::thread::yield_now();
            }
            assert!(
                matches!(call_slots.poll_reply(call), Ok(Some(Outcome::Replied(reply))) if reply.shape.len() == 4)
            );
            let mut reply = [0; 4];
            call_slots.copy_out(call.reply_range(4), &mut reply);
            reply.reverse();
            assert_eq!(reply, data);
            call_slots.release(call);
        }
        serving.join().expect("no panic");
    });
}

/// The same of a large payload, which lies outside the call slot.
#[test]
fn loom_a_large_call_arrives_whole() {
    loom::model(|| {
        let call_slots = call_slots();
        let callee = Arc::clone(&call_slots);
        let serving = loom::thread::spawn(move || {
            let request = taken(&callee);
            let mut data = [0; AREA];
            callee.copy_out(request.payload_range(), &mut data);
            assert!(data.iter().all(|byte| *byte == 7));
        });
        call_slots.publish(0, &header(), &[7; AREA]).expect("idle");
        serving.join().expect("no panic");
    });
}

/// Two callee threads and a caller that backs out: exactly one of them gets the call.
#[test]
fn loom_a_call_is_taken_once_or_backed_out() {
    loom::model(|| {
        let call_slots = call_slots();
        let call = call_slots.publish(0, &header(), b"").expect("idle");
        let takers = [(); 2].map(|()| {
            let callee = Arc::clone(&call_slots);
            loom::thread::spawn(move || callee.take(0).expect("sane").is_some())
        });
        let backed_out = call_slots.back_out(call);
        let [first, second] = takers.map(|taker| taker.join().expect("no panic"));
        let winners = u32::from(first) + u32::from(second) + u32::from(backed_out);
        assert_eq!(winners, 1, "{first} {second} {backed_out}");
    });
}

/// Guards that claims only grow: a callee that has seen a call and then stops must not take it after a later
/// call was backed out as well.
#[test]
fn loom_a_call_that_was_backed_out_is_not_taken_later() {
    loom::model(|| {
        let call_slots = call_slots();
        let first = call_slots.publish(0, &header(), b"").expect("idle");
        let callee = Arc::clone(&call_slots);
        let taker = loom::thread::spawn(move || callee.take(0).expect("sane").map(|request| request.number));
        let mut taken_back = Vec::new();
        let mut call = first;
        for _ in 0..2 {
            if !call_slots.back_out(call) {
                break;
            }
            taken_back.push(call.number);
            call = call_slots.publish(0, &header(), b"").expect("idle");
        }
        let taken = taker.join().expect("no panic");
        assert!(taken.is_none_or(|number| !taken_back.contains(&number)), "{taken:?} {taken_back:?}");
    });
}

/// Guards the fences of `Doorbells::post` and `shut`.
#[test]
fn loom_the_gate_or_the_caller() {
    loom::model(move || {
        let (call_slots, bells) = (call_slots_with(CALL_SLOTS), bells());
        let broker = Arc::clone(&call_slots);
        let freezing = loom::thread::spawn(move || {
            broker.shut(FROZEN);
            broker.is_idle()
        });
        let call = call_slots.publish(0, &header(), b"").expect("idle");
        bells.post(0);
        let open = call_slots.gate() == 0;
        if !open {
            assert!(call_slots.back_out(call));
        }
        let idle = freezing.join().expect("no panic");
        assert!(!(open && idle), "a call to a process that froze without it");
    });
}

/// The callee finds the call by itself, as when it looks for another call of the channel. Guards that the broker holds what it finds idle:
/// either it sees a call, or nobody takes it.
#[test]
fn loom_a_call_is_held_or_seen() {
    loom::model(|| {
        let call_slots = call_slots_with(CALL_SLOTS);
        let (broker, callee) = (Arc::clone(&call_slots), Arc::clone(&call_slots));
        let freezing = loom::thread::spawn(move || {
            broker.shut(FROZEN);
            broker.hold()
        });
        let serving = loom::thread::spawn(move || callee.take(0).expect("sane").is_some());
        let call = call_slots.publish(0, &header(), b"").expect("idle");
        full_fence();
        let open = call_slots.gate() == 0;
        let backed_out = !open && call_slots.back_out(call);
        let idle = freezing.join().expect("no panic");
        let taken = serving.join().expect("no panic");
        assert!(!(idle && taken), "a process froze and serves a call");
        assert!(!(taken && backed_out), "a call that goes through the broker as well");
        // Pending calls are served despite the gate.
        assert!(
            taken || backed_out || call_slots.take(0).expect("sane").is_some(),
            "nobody serves it: {idle}"
        );
    });
}

/// The same behind a call that failed: its caller reads that, and calls again.
#[test]
fn loom_a_call_behind_a_failed_one_is_held_or_seen() {
    loom::model(|| {
        let call_slots = call_slots_with(CALL_SLOTS);
        let failed = call_slots.publish(0, &header(), b"").expect("idle");
        call_slots.fail(taken(&call_slots).taken(), 5);
        let (broker, callee) = (Arc::clone(&call_slots), Arc::clone(&call_slots));
        let freezing = loom::thread::spawn(move || {
            broker.shut(FROZEN);
            broker.hold()
        });
        let serving = loom::thread::spawn(move || callee.take(0).expect("sane").is_some());
        call_slots.release(failed);
        let mut backed_out = false;
        if call_slots.gate() == 0 {
            let call = call_slots.publish(0, &header(), b"").expect("idle");
            full_fence();
            backed_out = call_slots.gate() != 0 && call_slots.back_out(call);
        }
        let idle = freezing.join().expect("no panic");
        let taken = serving.join().expect("no panic");
        assert!(!(idle && taken), "a process froze and serves a call");
        assert!(!(taken && backed_out), "a call that goes through the broker as well");
    });
}

/// Guards the mark after a thaw: the caller's own mark may have been taken while the call slot was held. The
/// call is published while its slot is held, and its caller checks the gate during the thaw.
#[test]
fn loom_a_thaw_loses_no_call() {
    loom::model(move || {
        let (call_slots, bells) = frozen();
        let call = call_slots.publish(0, &header(), b"").expect("idle");
        bells.post(0);
        let back_out = || call_slots.gate() != 0 && call_slots.back_out(call);
        let (backed_out, taken) = while_thawing(&call_slots, &bells, back_out);
        assert_eq!(u32::from(taken) + u32::from(backed_out), 1, "taken: {taken}, backed out: {backed_out}");
    });
}

/// The same of a call whose caller found the gate open: the callee may still find it held.
#[test]
fn loom_a_call_behind_a_thaw_is_not_lost() {
    loom::model(move || {
        let (call_slots, bells) = frozen();
        let (is_open, taken) = while_thawing(&call_slots, &bells, || {
            let is_open = call_slots.gate() == 0;
            if is_open {
                call_slots.publish(0, &header(), b"").expect("idle");
                bells.post(0);
            }
            is_open
        });
        assert_eq!(taken, is_open);
    });
}

/// Call slots of a frozen callee, all held, and its doorbells.
fn frozen() -> (Arc<CallSlots<HeapMemory>>, Arc<Doorbells<HeapMemory>>) {
    let call_slots = call_slots_with(CALL_SLOTS);
    call_slots.shut(FROZEN);
    assert!(call_slots.hold());
    (call_slots, bells())
}

/// Runs `caller` while the broker thaws and the callee looks for calls; returns its result, and whether the callee
/// found a call then or at the end.
fn while_thawing<T>(
    call_slots: &Arc<CallSlots<HeapMemory>>,
    bells: &Arc<Doorbells<HeapMemory>>,
    caller: impl FnOnce() -> T,
) -> (T, bool) {
    fn pass(call_slots: &CallSlots<HeapMemory>, bells: &Doorbells<HeapMemory>) -> bool {
        bells.take_ready().any(|_| call_slots.take(0).expect("sane").is_some())
    }
    let (broker, its_bells) = (Arc::clone(call_slots), Arc::clone(bells));
    let thawing = loom::thread::spawn(move || {
        broker.open(FROZEN);
        its_bells.post(0);
    });
    let (callee, its_bells) = (Arc::clone(call_slots), Arc::clone(bells));
    let serving = loom::thread::spawn(move || pass(&callee, &its_bells));
    let result = caller();
    thawing.join().expect("no panic");
    (result, serving.join().expect("no panic") || pass(call_slots, bells))
}
