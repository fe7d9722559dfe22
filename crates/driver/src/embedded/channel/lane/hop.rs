//! Room: what a round trip through a lane costs on this machine, everything included that ships: marks,
//! fences, waiting. Prints figures, asserts only that the bytes come back.
//!
//! `cargo test -p driver --release --lib hop -- --ignored --nocapture`

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use sys::sealed_memory::SealedMemory;

use super::*;
use crate::embedded::channel::doorbell::{self, Doorbells};
use crate::embedded::channel::wait::Waiter;
use crate::embedded::protocol::{Sched, ThreadKey};
use crate::embedded::settings::Waiting;

const BUDGET: Duration = Duration::from_micros(50);

struct Pair {
    lanes: Lanes<SealedMemory>,
    caller: Doorbells<SealedMemory>,
    callee: Doorbells<SealedMemory>,
    stop: AtomicBool,
}

fn header() -> RequestHeader {
    RequestHeader {
        binding: 0,
        code: 1,
        flags: 0,
        shape: Shape::default(),
        thread: ThreadKey { slot: 0, generation: 1 },
        cpu: sys::sched::current_cpu(),
        sched: Sched::default(),
        mark: 0,
        lineage: None,
    }
}

fn wake<M: Memory>(bell: Option<doorbell::Bell<'_, M>>) {
    if let Some(bell) = bell {
        bell.wake();
    }
}

fn serve(pair: &Pair, cpu: u32, waiting: Waiting) {
    sys::sched::set_affinity(&[cpu]).expect("one of ours");
    let mut waiter = Waiter::new(waiting, BUDGET, 2);
    let bell = pair.callee.slot(0).expect("inside");
    let (mut data, mut peer) = (vec![0; LARGEST], None);
    pair.callee.set_listener(Some(0));
    let stopped = || pair.stop.load(Ordering::Relaxed);
    while !stopped() {
        let ready = || pair.lanes.has_call(0) || pair.callee.anything_ready() || stopped();
        let mut ahead = pair.lanes.next_reply(0);
        waiter.wait_or_tell(bell, peer, None, ready, || ahead.step(&pair.lanes), || {});
        if pair.callee.anything_ready() {
            pair.callee.take_ready().for_each(drop);
        }
        {
            while let Some(request) = pair.lanes.take_next().expect("sane") {
                let data = &mut data[..request.header.shape.len()];
                pair.lanes.copy_request(&request, data, || false).expect("whole");
                peer = Some(request.header.cpu);
                let watching = waiter.will_look();
                let header = ReplyHeader { cpu, watching, ..ReplyHeader::default() };
                pair.lanes.reply(request.taken(), &header, data).expect("fits");
                let bell = pair.caller.slot(request.header.thread.slot).expect("inside");
                if bell.ring() {
                    bell.wake();
                }
                pair.lanes.pour_reply(request.taken(), data);
            }
        }
    }
}

/// One call; what the callee said when it replied.
fn call(pair: &Pair, waiter: &mut Waiter, last: ReplyHeader, data: &mut [u8]) -> ReplyHeader {
    let call = pair.lanes.publish(0, &header(), data).expect("idle");
    assert_eq!(pair.lanes.gate_after_publishing(), 0);
    let tell = || {
        pair.callee.post(0);
        wake(pair.callee.listener_to_wake());
    };
    if !last.watching {
        tell();
    }
    pair.lanes.pour_request(call, data);
    let bell = pair.caller.slot(0).expect("inside");
    let late = || {
        if last.watching && pair.lanes.is_waiting(call) {
            tell();
        }
    };
    let mut ahead = pair.lanes.next_request(call);
    let meanwhile = || ahead.step(&pair.lanes);
    let answered = || pair.lanes.is_answered(call);
    waiter.wait_or_tell(bell, Some(last.cpu), None, answered, meanwhile, late);
    // A wake-up for the call before may come this late.
    while !pair.lanes.is_answered(call) {
        waiter.wait(bell, Some(last.cpu), None, answered);
    }
    let Ok(Some(Outcome::Replied(reply))) = pair.lanes.poll_reply(call) else { panic!("no reply") };
    pair.lanes.copy_reply(call, data, || false).expect("whole");
    pair.lanes.release(call);
    reply
}

fn median_ns(cpus: [u32; 2], waiting: Waiting, size: usize) -> u128 {
    let memory = |size| SealedMemory::create(size).expect("memfd");
    let pair = Arc::new(Pair {
        lanes: Lanes::new(memory(SIZE)).expect("room"),
        caller: Doorbells::new(memory(doorbell::SIZE)).expect("room"),
        callee: Doorbells::new(memory(doorbell::SIZE)).expect("room"),
        stop: AtomicBool::new(false),
    });
    let there = Arc::clone(&pair);
    let serving = std::thread::spawn(move || serve(&there, cpus[1], waiting));
    let here = std::thread::spawn(move || {
        sys::sched::set_affinity(&[cpus[0]]).expect("one of ours");
        let mut waiter = Waiter::new(waiting, BUDGET, 2);
        let (mut data, mut last) = (vec![7; size], ReplyHeader { cpu: u32::MAX, ..ReplyHeader::default() });
        let mut times: Vec<u128> = (0..10_000)
            .map(|_| {
                let begun = Instant::now();
                last = call(&pair, &mut waiter, last, &mut data);
                begun.elapsed().as_nanos()
            })
            .collect();
        assert!(data.iter().all(|byte| *byte == 7));
        pair.stop.store(true, Ordering::Relaxed);
        wake(pair.callee.ring_listener());
        times.sort_unstable();
        times[times.len() / 2]
    });
    let median = here.join().expect("no panic");
    serving.join().expect("no panic");
    median
}

#[test]
#[ignore = "prints figures of this machine, for whoever changes the layout"]
fn hop() {
    let cpus = sys::sched::affinity().expect("affinity");
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    for (place, cpus) in [("across", [first, last]), ("same CPU", [first, first])] {
        for waiting in [Waiting::Adaptive, Waiting::Spin, Waiting::Sleep] {
            for size in [4, 100, 1000, 4096, CUT_FROM, 65_536, LARGEST] {
                println!("{place}, {waiting}, {size} bytes: {} ns", median_ns(cpus, waiting, size));
            }
        }
    }
}
