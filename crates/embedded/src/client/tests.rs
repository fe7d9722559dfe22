//! Calls between several threads and processes on a private broker: nothing is lost, whatever a peer does.
//! Not here: the contract (`conformance`), call slots and doorbells alone (`shm`).

mod cost;
mod ended;
mod frozen;
mod given_back;
mod mapping;
mod node_ends;
mod numbers;
mod pollable;
mod scattered;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use abi::{Delivery, Payload, Return, TransactionFlags};

use super::identity::Identity;
use crate::EmbeddedConnection;
use crate::fuzz::stage::{PATIENCE, Pair, Stage, read, wait_for, write};
use crate::rpc::protocol::{Sched, StateFile, ThreadKey};
use crate::shm::call_slot::{self, CALL_SLOTS, CLOSED, CallSlots, ReplyHeader, RequestHeader, Shape};
use crate::shm::doorbell::Doorbells;
use crate::shm::wait::LOOK_AGAIN;
use driver::connection::{Connection, Exchange};

fn reply(connection: &EmbeddedConnection, call: &Delivery) {
    write(connection, |c| {
        c.reply(TransactionFlags::default(), Payload::default());
        c.free_buffer(call.buffer);
    });
}

fn call_of(connection: &EmbeddedConnection) -> Delivery {
    wait_for(connection, |item| match item {
        Return::Transaction(call) => Some(call),
        _ => None,
    })
}

fn reply_of(connection: &EmbeddedConnection) -> Delivery {
    wait_for(connection, |item| match item {
        Return::Reply(reply) => Some(reply),
        Return::DeadReply | Return::FailedReply => panic!("a call fails: {item:?}"),
        _ => None,
    })
}

/// The other process serves one call, and first calls back; the victim's thread serves the nested call.
fn there_and_back(pair: &Pair) {
    let Pair { victim, other, to_other, to_victim } = pair;
    thread::scope(|scope| {
        scope.spawn(|| {
            let call = call_of(other);
            write(other, |c| c.transaction(*to_victim, 2, TransactionFlags::CALL, Payload::default()));
            let nested = reply_of(other);
            write(other, |c| c.free_buffer(nested.buffer));
            reply(other, &call);
            other.thread_exit().expect("exits");
        });
        write(victim, |c| c.transaction(*to_other, 1, TransactionFlags::CALL, Payload::default()));
        reply(victim, &call_of(victim));
        let over = reply_of(victim);
        write(victim, |c| c.free_buffer(over.buffer));
    });
}

#[test]
fn a_nested_call_is_found_by_the_thread_that_waits_while_others_listen() {
    let stage = Stage::new();
    let pair = stage.pair(1);
    // One round trip through the broker; later calls use call slots.
    there_and_back(&pair);
    let Pair { victim, other, .. } = &pair;
    victim.set_nonblocking(false).expect("set");
    other.set_nonblocking(false).expect("set");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let listens = scope.spawn(|| {
            write(victim, |c| c.enter_looper());
            while !over.load(Ordering::Relaxed) {
                let items = read(victim);
                assert!(!items.iter().any(|item| matches!(item, Return::Transaction(_))), "{items:?}");
            }
        });
        let began = Instant::now();
        let calls = 10;
        (0..calls).for_each(|_| there_and_back(&pair));
        let took = began.elapsed();
        over.store(true, Ordering::Relaxed);
        while !listens.is_finished() {
            victim.wake_readers().expect("woken");
            thread::yield_now();
        }
        assert!(
            took < sys::patience::stretched(LOOK_AGAIN * calls / 2),
            "only the second look of sleepers finds them: {took:?}"
        );
    });
}

#[test]
fn the_call_slot_of_a_thread_that_exited_is_free_once_its_call_is_answered() {
    let stage = Stage::new();
    let pair = stage.pair(1);
    there_and_back(&pair);
    let Pair { victim, to_other, .. } = &pair;
    let [call_slots, _] = victim.take_channels().swap_remove(0);
    let call_slots = CallSlots::new(call_slots).expect("room");
    let called = || {
        write(victim, |c| c.transaction(*to_other, 1, TransactionFlags::CALL, Payload::default()));
        call_slots.take_next().expect("sane").expect("called").taken()
    };
    let answer = |taken| call_slots.reply(taken, &ReplyHeader::default(), b"".as_slice()).expect("fits");
    let left = thread::scope(|scope| {
        let exits = || {
            let taken = called();
            victim.thread_exit().expect("exits");
            taken
        };
        scope.spawn(exits).join().expect("a call")
    });
    for is_answered in [false, true] {
        let taken = called();
        assert_eq!(taken.call_slot == left.call_slot, is_answered, "it is free once the call is answered");
        answer(taken);
        reply_of(victim);
        if !is_answered {
            answer(left);
            assert!(read(victim).is_empty(), "it only looks");
        }
    }
}

#[test]
fn a_reply_counts_although_its_server_is_gone() {
    let stage = Stage::new();
    let pair = stage.pair(1);
    there_and_back(&pair);
    let Pair { victim, other, to_other, .. } = pair;
    write(&victim, |c| c.transaction(to_other, 1, TransactionFlags::CALL, Payload::default()));
    let call = call_of(&other);
    reply(&other, &call);
    let opens = || victim.state(StateFile::State).expect("told").matches("\nproc ").count();
    let (before, began) = (opens(), Instant::now());
    drop(other);
    while opens() == before {
        assert!(!sys::patience::is_over(began, PATIENCE), "no notification arrived");
        thread::yield_now();
    }
    reply_of(&victim);
}

/// Header of a call to the first node that the peer may call.
fn header() -> RequestHeader {
    RequestHeader {
        binding: 1,
        code: 1,
        flags: 0,
        shape: Shape::default(),
        thread: ThreadKey { slot: 0, generation: 1 },
        cpu: 0,
        sched: Sched::default(),
        mark: 0,
        behind: 0,
        lineage: None,
    }
}

#[test]
fn a_call_slot_that_is_called_twice_at_once_is_closed() {
    let stage = Stage::new();
    let pair = stage.pair(1);
    there_and_back(&pair);
    // Both channels: one of them leads to the victim.
    let closed = pair.other.take_channels().into_iter().map(|[call_slots, bells]| {
        let (call_slots, bells) =
            (CallSlots::new(call_slots).expect("room"), Doorbells::new(bells).expect("room"));
        for _ in 0..2 {
            let call = call_slots.publish(CALL_SLOTS - 1, &header(), b"").expect("idle");
            (0..2).for_each(|bit| bells.post(bit));
            pair.victim.poll_readable(0).expect("looks");
            call_slots.release(call);
        }
        call_slots.gate() & CLOSED != 0
    });
    assert_eq!(closed.filter(|closed| *closed).count(), 1);
}

/// No content of a call slot may keep its reader, which has the lock, from returning.
#[test]
fn nonsense_in_a_marked_call_slot_keeps_nobody_busy() {
    // States of a request's word; 1 is a call, whose header is invalid here.
    for state in 0..4 {
        let stage = Stage::new();
        let pair = stage.pair(1);
        there_and_back(&pair);
        let closed = pair.other.take_channels().into_iter().map(|[call_slots, bells]| {
            // Falling numbers: no claim already has that of a request.
            (128..20_000)
                .step_by(4)
                .for_each(|at| call_slots.put_words(at, [(1 << 20) - at as u32 * 16 + state]));
            // The number of call slots in use.
            call_slots.put_words(8, [CALL_SLOTS]);
            let bells = Doorbells::new(bells).expect("room");
            (0..2).for_each(|bit| bells.post(bit));
            assert!(read(&pair.victim).is_empty());
            CallSlots::new(call_slots).expect("room").gate() & CLOSED != 0
        });
        assert_eq!(closed.filter(|closed| *closed).count(), 1, "state {state}");
    }
}

/// A thread that serves a call must not have another one in its own queue: it could not make calls, and no
/// other thread could serve the queued one.
#[test]
fn lp_09_of_two_calls_that_come_at_once_one_is_left_to_others() {
    use std::sync::mpsc;

    let stage = Stage::new();
    let pair = stage.pair(1);
    there_and_back(&pair);
    let channels = pair.other.take_channels();
    let Pair { victim, other, to_other, .. } = &pair;
    victim.set_nonblocking(false).expect("set");
    other.set_nonblocking(false).expect("set");
    let process = victim.process_for_tests();
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let (go, gone) = mpsc::channel();
        let first = scope.spawn(move || {
            write(victim, |c| c.enter_looper());
            tell.send(call_of(victim).code).expect("heard");
            gone.recv().expect("told");
            write(victim, |c| c.transaction(*to_other, 7, TransactionFlags::CALL, Payload::default()));
            reply_of(victim);
        });
        let asleep = loop {
            let state = process.state.lock();
            if state.core.listener().is_some_and(|slot| process.bell(slot).is_sleeping()) {
                break state;
            }
            drop(state);
            thread::yield_now();
        };
        // Both channels: one of them leads to the victim.
        for [call_slots, bells] in channels {
            let (call_slots, bells) =
                (CallSlots::new(call_slots).expect("room"), Doorbells::new(bells).expect("room"));
            for code in [1, 2] {
                call_slots.publish(code, &RequestHeader { code, ..header() }, b"").expect("idle");
            }
            (0..2).for_each(|bit| bells.post(bit));
            bells.listener_to_wake().inspect(|bell| bell.wake());
        }
        drop(asleep);
        assert_eq!(told.recv().expect("the first thread lives"), 1);
        assert!(victim.poll_readable(1000).expect("looks"), "nobody else may serve the second call");
        assert_eq!(call_of(victim).code, 2);
        go.send(()).expect("heard");
        let nested = call_of(other);
        assert_eq!(nested.code, 7);
        reply(other, &nested);
        first.join().expect("its own call was made and answered");
    });
}

#[test]
fn a_call_that_counts_records_which_nobody_wrote_is_delivered() {
    let stage = Stage::new();
    let pair = stage.pair(1);
    there_and_back(&pair);
    // Both channels: one of them leads to the victim.
    for [call_slots, bells] in pair.other.take_channels() {
        let (call_slots, bells) =
            (CallSlots::new(call_slots).expect("room"), Doorbells::new(bells).expect("room"));
        let behind = bells.records().wrapping_add(1000);
        call_slots.publish(1, &RequestHeader { behind, ..header() }, b"").expect("idle");
        (0..2).for_each(|bit| bells.post(bit));
    }
    let call = call_of(&pair.victim);
    reply(&pair.victim, &call);
}

/// Call slots do not record the order of calls among each other, and a thread that is boosted for a real-time call must not
/// serve another one.
#[test]
fn of_calls_that_wait_in_call_slots_the_real_time_one_is_first_where_that_is_inherited() {
    use crate::priority::FIFO;
    use crate::settings::{Inherit, Settings};

    let stage = Stage::new();
    for (number, inherit, want) in [(1, Inherit::Nice, [1, 2, 3]), (2, Inherit::Rt, [2, 1, 3])] {
        let pair = stage.pair_with(number, Settings { inherit, ..Settings::default() });
        there_and_back(&pair);
        // Both channels: one of them leads to the victim.
        for [call_slots, bells] in pair.other.take_channels() {
            let (call_slots, bells) =
                (CallSlots::new(call_slots).expect("room"), Doorbells::new(bells).expect("room"));
            for (code, policy) in [(1, 0), (2, FIFO), (3, 0)] {
                let sched = Sched { policy, priority: 1, ..Sched::default() };
                call_slots.publish(code, &RequestHeader { code, sched, ..header() }, b"").expect("idle");
            }
            (0..2).for_each(|bit| bells.post(bit));
        }
        let served = want.map(|_| {
            let call = call_of(&pair.victim);
            reply(&pair.victim, &call);
            call.code
        });
        assert_eq!(served, want, "{inherit}");
    }
}

#[test]
fn whoever_waits_at_a_scribbled_inbox_gets_an_error() {
    let stage = Stage::new();
    let Pair { victim, .. } = stage.pair(1);
    victim.set_nonblocking(false).expect("set");
    victim.version().expect("the first contact is over");
    // A record count that no producer can reach: the ring's first word is the head.
    victim.process_for_tests().inbox_memory.word(0).expect("inside").fetch_add(1 << 20, Ordering::Relaxed);
    let mut room = [0; 256];
    let waited = victim.write_read_uninterrupted(&mut Exchange::new(&[], &mut room));
    assert_eq!(waited.expect_err("nothing can come any more").kind(), std::io::ErrorKind::ConnectionReset);
}

/// A boost for a real-time call may come late: the thread must not take it for its own scheduling and stay
/// real-time for ever.
#[test]
fn a_boost_that_comes_late_does_not_stay() {
    use crate::settings::{Inherit, Settings};
    use std::sync::mpsc;
    use sys::sched::{Policy, policy_of, set_policy};

    let may = thread::spawn(|| set_policy(0, Policy::Fifo(1))).join().expect("no panic");
    needs::need!(may.map_err(|error| needs::Need::Realtime.lacks(error)));
    let stage = Stage::new();
    let settings = Settings { inherit: Inherit::Rt, call_slots: false, ..Settings::default() };
    let Pair { victim, other, to_other, .. } = stage.pair_with(1, settings);
    victim.set_nonblocking(false).expect("set");
    other.set_nonblocking(false).expect("set");
    let (tell, told) = mpsc::channel();
    let over = AtomicBool::new(false);
    let (victim, other, over) = (&victim, &other, &over);
    thread::scope(|scope| {
        scope.spawn(move || {
            tell.send(sys::interrupt::ThreadId::current().number()).expect("heard");
            write(other, |c| c.enter_looper());
            loop {
                let call = call_of(other);
                if call.code == 2 {
                    return;
                }
                reply(other, &call);
            }
        });
        let server = told.recv().expect("its number");
        let call = |code| {
            write(victim, |c| c.transaction(to_other, code, TransactionFlags::CALL, Payload::default()));
        };
        let there_and_back = || {
            call(1);
            write(victim, |c| c.free_buffer(reply_of(victim).buffer));
        };
        // From now on it knows its own scheduling.
        there_and_back();
        let late = scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                set_policy(server, Policy::Fifo(1)).expect("raised");
                thread::sleep(std::time::Duration::from_micros(20));
            }
        });
        (0..2000).for_each(|_| there_and_back());
        over.store(true, Ordering::Relaxed);
        late.join().expect("no panic");
        there_and_back();
        let began = Instant::now();
        let mut found = policy_of(server).expect("it lives");
        while found != Policy::Other && !sys::patience::is_over(began, LOOK_AGAIN * 3) {
            thread::yield_now();
            found = policy_of(server).expect("it lives");
        }
        call(2);
        assert_eq!(found, Policy::Other, "a waiting thread, long after");
    });
}
