//! Room: lanes under loom.
//! Not here: their rules without races (`tests`).

use std::sync::Arc;

use super::place::{AREA, REQUEST_WRITTEN, large};
use super::pour::STEP;
use super::*;
use crate::embedded::channel::doorbell::{Doorbells, models::bells};
use crate::embedded::channel::heap::HeapMemory;
use crate::embedded::protocol::{Sched, ThreadKey};

/// A channel of which the first lane can be used, and the second for a call.
fn lanes() -> Arc<Lanes<HeapMemory>> {
    lanes_with(2)
}

/// The same with more lanes that are seen idle: loom takes longer for every word.
fn lanes_with(seen: u32) -> Arc<Lanes<HeapMemory>> {
    let (first, second) = (base(0), base(1));
    let words = [GATE, REASON, USED, first + REPLY, first + REQUEST_WRITTEN + 4];
    let words = words.into_iter().chain((0..seen).flat_map(|lane| [base(lane), base(lane) + OVER]));
    let words = words.chain((0..seen).map(|lane| base(lane) + CLAIM));
    let small = [first + 4..first + AREA, first + REPLY + 4..first + REPLY + AREA, second + 4..second + AREA];
    let large = large(0, 0, next(0));
    let large = [large..large + STEP, large + STEP..large + 2 * STEP];
    Arc::new(Lanes::new(HeapMemory::new(SIZE, words, small.into_iter().chain(large))).expect("room"))
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
        lineage: None,
    }
}

fn taken(lanes: &Lanes<HeapMemory>) -> Request {
    loop {
        match lanes.take_next().expect("sane") {
            Some(request) => return request,
            None => loom::thread::yield_now(),
        }
    }
}

/// Guards the one pass over the lanes that a mark is worth: what it does not find is marked again.
#[test]
fn loom_a_pass_for_each_mark_finds_every_call() {
    fn pass(lanes: &Lanes<HeapMemory>, bells: &Doorbells<HeapMemory>) -> usize {
        let take = |lane: &u32| lanes.take(*lane).expect("sane").is_some();
        bells.take_ready().map(|_| lanes.called().filter(take).count()).sum()
    }
    loom::model(|| {
        let (lanes, bells) = (lanes(), bells());
        let (callee, marks) = (Arc::clone(&lanes), Arc::clone(&bells));
        let serving = loom::thread::spawn(move || pass(&callee, &marks));
        for lane in [0, 1] {
            lanes.publish(lane, &header(), b"call").expect("idle");
            bells.post(5);
        }
        let found = serving.join().expect("no panic");
        assert_eq!(found + pass(&lanes, &bells), 2);
    });
}

/// Guards the Release and Acquire of both words: loom watches the bytes.
#[test]
fn loom_a_call_arrives_whole() {
    loom::model(|| {
        let lanes = lanes();
        let callee = Arc::clone(&lanes);
        let serving = loom::thread::spawn(move || {
            for _ in 0..2 {
                let request = taken(&callee);
                let mut data = [0; 4];
                callee.copy_request(&request, &mut data, || false).expect("whole");
                data.reverse();
                callee.reply(request.taken(), &ReplyHeader::default(), &data).expect("fits");
            }
        });
        for data in [*b"call", *b"more"] {
            let call = lanes.publish(0, &header(), &data).expect("idle");
            while !lanes.is_answered(call) {
                loom::thread::yield_now();
            }
            assert!(
                matches!(lanes.poll_reply(call), Ok(Some(Outcome::Replied(reply))) if reply.shape.len() == 4)
            );
            let mut reply = [0; 4];
            lanes.copy_reply(call, &mut reply, || false).expect("whole");
            reply.reverse();
            assert_eq!(reply, data);
            lanes.release(call);
        }
        serving.join().expect("no panic");
    });
}

/// Guards the order of `written` behind the bytes, of a call that is there already.
#[test]
fn loom_a_large_call_arrives_whole() {
    loom::model(|| {
        let lanes = lanes();
        let callee = Arc::clone(&lanes);
        let data = vec![7; 2 * STEP];
        let call = lanes.publish(0, &header(), &data).expect("idle");
        let serving = loom::thread::spawn(move || {
            let request = taken(&callee);
            let mut data = vec![0; 2 * STEP];
            callee.copy_request(&request, &mut data, || false).expect("whole");
            assert!(data.iter().all(|byte| *byte == 7));
        });
        lanes.pour_request(call, &data);
        serving.join().expect("no panic");
    });
}

/// Two threads of the callee and a caller who changes its mind: one of them gets the call.
#[test]
fn loom_a_call_is_taken_once_or_backed_out() {
    loom::model(|| {
        let lanes = lanes();
        let call = lanes.publish(0, &header(), b"").expect("idle");
        let takers = [(); 2].map(|()| {
            let callee = Arc::clone(&lanes);
            loom::thread::spawn(move || callee.take(0).expect("sane").is_some())
        });
        let backed_out = lanes.back_out(call);
        let [first, second] = takers.map(|taker| taker.join().expect("no panic"));
        let winners = u32::from(first) + u32::from(second) + u32::from(backed_out);
        assert_eq!(winners, 1, "{first} {second} {backed_out}");
    });
}

/// Guards that claims only grow: a callee that has seen a call, and then stops, must not take it once a later one was
/// backed out as well.
#[test]
fn loom_a_call_that_was_backed_out_is_not_taken_later() {
    loom::model(|| {
        let lanes = lanes();
        let first = lanes.publish(0, &header(), b"").expect("idle");
        let callee = Arc::clone(&lanes);
        let taker = loom::thread::spawn(move || callee.take(0).expect("sane").map(|request| request.number));
        let mut taken_back = Vec::new();
        let mut call = first;
        for _ in 0..2 {
            if !lanes.back_out(call) {
                break;
            }
            taken_back.push(call.number);
            call = lanes.publish(0, &header(), b"").expect("idle");
        }
        let taken = taker.join().expect("no panic");
        assert!(taken.is_none_or(|number| !taken_back.contains(&number)), "{taken:?} {taken_back:?}");
    });
}

/// Guards the fences of `Doorbells::post` and `shut`.
#[test]
fn loom_the_gate_or_the_caller() {
    gate_or_caller(|lanes, bells| {
        bells.post(0);
        lanes.gate()
    });
}

/// Guards the fences of `gate_after_publishing` and `shut`.
#[test]
fn loom_the_gate_or_a_watched_caller() {
    gate_or_caller(|lanes, _| lanes.gate_after_publishing());
}

fn gate_or_caller(gate: fn(&Lanes<HeapMemory>, &Doorbells<HeapMemory>) -> u32) {
    loom::model(move || {
        let (lanes, bells) = (lanes_with(LANES), bells());
        let broker = Arc::clone(&lanes);
        let freezing = loom::thread::spawn(move || {
            broker.shut(FROZEN);
            broker.is_idle()
        });
        let call = lanes.publish(0, &header(), b"").expect("idle");
        let open = gate(&lanes, &bells) == 0;
        if !open {
            assert!(lanes.back_out(call));
        }
        let idle = freezing.join().expect("no panic");
        assert!(!(open && idle), "a call to a process that froze without it");
    });
}

/// The callee looks at the lane by itself, as it does while it spins. Guards that the broker holds what it finds idle:
/// either it sees a call, or nobody takes it.
#[test]
fn loom_a_call_is_held_or_seen() {
    loom::model(|| {
        let lanes = lanes_with(LANES);
        let (broker, callee) = (Arc::clone(&lanes), Arc::clone(&lanes));
        let freezing = loom::thread::spawn(move || {
            broker.shut(FROZEN);
            broker.hold()
        });
        let serving = loom::thread::spawn(move || callee.take(0).expect("sane").is_some());
        let call = lanes.publish(0, &header(), b"").expect("idle");
        let open = lanes.gate_after_publishing() == 0;
        let backed_out = !open && lanes.back_out(call);
        let idle = freezing.join().expect("no panic");
        let taken = serving.join().expect("no panic");
        assert!(!(idle && taken), "a process froze and serves a call");
        assert!(!(taken && backed_out), "a call that goes through the broker as well");
        // What is pending is served behind the gate.
        assert!(taken || backed_out || lanes.take(0).expect("sane").is_some(), "nobody serves it: {idle}");
    });
}

/// Guards the mark that follows a thaw: the caller's own may have been taken while the lane was held.
#[test]
fn loom_a_thaw_loses_no_call() {
    thaw(true);
}

/// Guards the order of what `open` does: whoever finds the gate open, and tells of its call only then, needs no mark of
/// the broker's.
#[test]
fn loom_a_thaw_loses_no_quiet_call() {
    thaw(false);
}

/// A caller published while the lane was held, and looks at the gate as it opens.
fn thaw(marked: bool) {
    fn pass(lanes: &Lanes<HeapMemory>, bells: &Doorbells<HeapMemory>) -> bool {
        bells.take_ready().any(|_| lanes.take(0).expect("sane").is_some())
    }
    loom::model(move || {
        let (lanes, bells) = (lanes_with(LANES), bells());
        lanes.shut(FROZEN);
        assert!(lanes.hold());
        let call = lanes.publish(0, &header(), b"").expect("idle");
        if marked {
            bells.post(0);
        }
        let (broker, its_bells) = (Arc::clone(&lanes), bells.clone());
        let thawing = loom::thread::spawn(move || {
            broker.open(FROZEN);
            if marked {
                its_bells.post(0);
            }
        });
        let (callee, its_bells) = (Arc::clone(&lanes), bells.clone());
        let serving = loom::thread::spawn(move || pass(&callee, &its_bells));
        let backed_out = lanes.gate_after_publishing() != 0 && lanes.back_out(call);
        // As `tell` does, once the callee has looked in vain.
        if !marked && !backed_out && lanes.is_waiting(call) {
            bells.post(0);
        }
        thawing.join().expect("no panic");
        let taken = serving.join().expect("no panic") || pass(&lanes, &bells);
        assert_eq!(u32::from(taken) + u32::from(backed_out), 1, "taken: {taken}, backed out: {backed_out}");
    });
}
