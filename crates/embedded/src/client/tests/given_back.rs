//! Tests of buffers that the broker takes back together with a reply.
//! Not here: the broker's part (`broker::core::tests`).

use super::*;
use crate::fuzz::stage::write_with;
use crate::settings::Settings;

/// More than half of a connection's receiving area, in bytes.
const MUCH: usize = 160 << 10;

fn pair(stage: &Stage) -> Pair {
    stage.pair_with(1, Settings { call_slots: false, ..Settings::default() })
}

fn call(pair: &Pair) {
    let payload = Payload { data: &[7; MUCH], ..Payload::default() };
    let fill = |c: &mut abi::Commands| c.transaction(pair.to_victim, 1, TransactionFlags::CALL, payload);
    write_with(&pair.other, payload, fill);
}

/// The replying thread may not have freed the space when another thread is to serve the next call.
#[test]
fn a_caller_that_fills_the_area_has_room_for_its_next_call_at_once() {
    let stage = Stage::new();
    let pair = pair(&stage);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    for item in read(&pair.victim) {
                        if let Return::Transaction(call) = item {
                            reply(&pair.victim, &call);
                        }
                    }
                }
            });
        }
        let calls = scope.spawn(|| {
            for _ in 0..500 {
                call(&pair);
                let answer = reply_of(&pair.other);
                write(&pair.other, |c| c.free_buffer(answer.buffer));
            }
        });
        let ended = calls.join();
        over.store(true, Ordering::Relaxed);
        ended.expect("each call is answered");
    });
}

/// The buffer is out of the map while a reply is under way, back in the map when the reply fails, and freed
/// by the later command.
#[test]
fn behind_a_reply_that_fails_the_command_still_counts() {
    let stage = Stage::new();
    let pair = pair(&stage);
    call(&pair);
    let first = call_of(&pair.victim);
    // A payload larger than the caller's receiving area.
    let payload = Payload { data: &[7; 2 * MUCH], ..Payload::default() };
    let mut commands = abi::Commands::default();
    commands.reply(TransactionFlags::default(), payload);
    let behind = commands.as_bytes().len();
    commands.free_buffer(first.buffer);
    let mut exchange = Exchange::new(commands.as_bytes(), &mut []).with_payload(payload);
    pair.victim.write_read_uninterrupted(&mut exchange).expect("a failed reply is no error");
    assert_eq!(exchange.write_consumed, behind, "it ends the write (contract WR-12)");
    let refused = || wait_for(&pair.other, |item| (item == Return::FailedReply).then_some(()));
    refused();
    // A replying thread does not learn of this (contract TX-18).
    assert!(read(&pair.victim).contains(&Return::TransactionComplete));

    call(&pair);
    refused();
    pair.victim.write_read_uninterrupted(&mut exchange).expect("the rest");
    assert!(exchange.all_written());
    call(&pair);
    let second = call_of(&pair.victim);
    assert_eq!(second.buffer, first.buffer);
    reply(&pair.victim, &second);
    reply_of(&pair.other);
}
