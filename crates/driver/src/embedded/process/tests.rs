//! Room: what several threads and processes must not lose between them, on a broker of their own.
//! Not here: the contract (`lab::conformance`), lanes and doorbells by themselves (`channel`).

mod cost;
mod scattered;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use abi::{Delivery, Payload, Return, TransactionFlags};

use crate::connection::{Connection, Exchange};
use crate::embedded::EmbeddedConnection;
use crate::embedded::channel::doorbell::Doorbells;
use crate::embedded::channel::lane::{CLOSED, LANES, Lanes, RequestHeader, Shape};
use crate::embedded::channel::wait::LOOK_AGAIN;
use crate::embedded::fuzz::stage::{PATIENCE, Pair, Stage, read, wait_for, write};
use crate::embedded::protocol::{Sched, StateFile, ThreadKey};

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

/// The other serves one call, calling back first; the victim's thread serves that.
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
    // Each way once through the broker: from then on through lanes.
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
        assert!(took < LOOK_AGAIN * calls / 2, "only the second look of sleepers finds them: {took:?}");
    });
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
        assert!(began.elapsed() < PATIENCE, "nobody hears of it");
        thread::yield_now();
    }
    reply_of(&victim);
}

/// A call of the first node that the peer may call.
fn header() -> RequestHeader {
    RequestHeader {
        binding: 1,
        code: 1,
        flags: 0,
        shape: Shape::default(),
        thread: ThreadKey { slot: 0, generation: 1 },
        cpu: 0,
        sched: Sched::default(),
        lineage: None,
    }
}

#[test]
fn a_lane_that_is_called_twice_at_once_is_closed() {
    let stage = Stage::new();
    let pair = stage.pair(1);
    there_and_back(&pair);
    // Of both channels: one of them leads to the victim.
    let closed = pair.other.take_channels().into_iter().map(|[lanes, bells]| {
        let (lanes, bells) = (Lanes::new(lanes).expect("room"), Doorbells::new(bells).expect("room"));
        for _ in 0..2 {
            let call = lanes.publish(LANES - 1, &header(), b"").expect("idle");
            (0..2).for_each(|bit| bells.post(bit));
            pair.victim.poll_readable(0).expect("looks");
            lanes.release(call);
        }
        lanes.gate() & CLOSED != 0
    });
    assert_eq!(closed.filter(|closed| *closed).count(), 1);
}

#[test]
fn whoever_waits_at_a_scribbled_inbox_gets_an_error() {
    let stage = Stage::new();
    let Pair { victim, .. } = stage.pair(1);
    victim.set_nonblocking(false).expect("set");
    victim.version().expect("the first contact is over");
    // A count of records that no producer can have reached: the ring's first word is the head.
    victim.process_for_tests().inbox_memory.word(0).expect("inside").fetch_add(1 << 20, Ordering::Relaxed);
    let mut room = [0; 256];
    let waited = victim.write_read_uninterrupted(&mut Exchange::new(&[], &mut room));
    assert_eq!(waited.expect_err("nothing can come any more").kind(), std::io::ErrorKind::ConnectionReset);
}
