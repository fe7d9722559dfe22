//! Oneway calls in line (contract section 6).

use abi::codes::{br, tf};

use super::super::test_broker::{Message, TestBroker};
use crate::rpc::protocol::Request;

#[test]
fn ow_01_what_a_oneway_call_delivers() {
    let (mut broker, server, client) = TestBroker::pair(0);
    assert_eq!(broker.call(client, 0, tf::ONE_WAY, b"x").outcome, br::TRANSACTION_COMPLETE);
    let call = broker.delivered(server);
    assert_eq!((call.flags, call.sender_pid, call.sender_euid), (tf::ONE_WAY, 0, 50));
    assert!(call.lineage.links().is_empty());
}

#[test]
fn ow_02_to_05_one_at_a_time_per_node() {
    let mut broker = TestBroker::default();
    let server = broker.manager(0);
    let (a, b) = (broker.open(), broker.open());
    let third = broker.open();
    let other = broker.export(third, 0, server, 0x90, 0);
    for (from, code) in [(a, 1), (b, 2), (a, 3)] {
        broker.send(from, &Message::call(0).oneway().code(code));
    }
    // Calls overtake, other nodes do not wait.
    broker.send(b, &Message::call(0).code(9));
    broker.send(server, &Message::call(other).oneway());
    let first = broker.delivered(server);
    assert_eq!((first.code, broker.delivered(server).code), (1, 9));
    broker.nothing(server);
    broker.core.close(a, &mut broker.host);
    broker.free(server, first.buffer);
    let second = broker.delivered(server);
    assert_eq!((second.code, second.to_thread), (2, None));
    broker.nothing(server);
    broker.free(server, second.buffer);
    let third = broker.delivered(server);
    assert_eq!(third.code, 3, "its sender is dead, and it comes nevertheless");
    broker.free(server, third.buffer);
    broker.send(b, &Message::call(0).oneway().code(4));
    assert_eq!(broker.delivered(server).code, 4);
}

#[test]
fn ow_09_ow_12_a_frozen_receiver() {
    let mut broker = TestBroker::default();
    let server = broker.manager(0);
    let (a, b) = (broker.open(), broker.open());
    let update = |code| Message::call(0).oneway().flags(tf::UPDATE_TXN).code(code);
    broker.send(a, &update(1));
    let first = broker.delivered(server);
    // Not frozen: nothing is replaced.
    broker.send(a, &update(1));
    broker.send(a, &update(1));
    broker.ask(a, Request::Freeze { pid: 1001, step: 2 });
    assert_eq!(broker.send(a, &update(1)).outcome, br::TRANSACTION_PENDING_FROZEN);
    assert_eq!(broker.core.procs[&server].waiting_oneways, 2, "the oldest was replaced");
    broker.send(b, &update(1));
    broker.send(a, &update(2));
    broker.send(a, &update(1).flags(tf::CLEAR_BUF));
    broker.send(a, &Message::call(0).oneway().code(1));
    broker.send(a, &Message::call(0).oneway().code(1));
    assert_eq!(broker.core.procs[&server].waiting_oneways, 7, "another pid, code or flags word");
    broker.send(b, &update(1));
    assert_eq!(broker.core.procs[&server].waiting_oneways, 7);
    assert_eq!(broker.core.procs[&server].buffers.len(), 8);
    let mut order = vec![];
    let mut buffer = first.buffer;
    for _ in 0..7 {
        broker.free(server, buffer);
        let next = broker.delivered(server);
        order.push((next.from.proc == a, next.code, next.flags & tf::UPDATE_TXN != 0));
        buffer = next.buffer;
    }
    let (u, p) = (true, false);
    let expected =
        [(true, 1, u), (true, 1, u), (true, 2, u), (true, 1, u), (true, 1, p), (true, 1, p), (false, 1, u)];
    assert_eq!(order, expected);
}

#[test]
fn ow_13_a_dead_receiver_drops_them_silently() {
    let (mut broker, server, client) = TestBroker::pair(0);
    broker.call(client, 0, tf::ONE_WAY, b"");
    broker.call(client, 0, tf::ONE_WAY, b"");
    broker.core.close(server, &mut broker.host);
    broker.nothing(client);
}
