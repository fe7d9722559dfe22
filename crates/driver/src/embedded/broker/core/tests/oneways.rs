//! Room: oneway calls in line (contract section 6).

use abi::codes::{br, tf};

use super::world::{Message, World};
use crate::embedded::protocol::Request;

#[test]
fn ow_01_what_a_oneway_call_delivers() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    assert_eq!(world.call(client, 0, tf::ONE_WAY, b"x").outcome, br::TRANSACTION_COMPLETE);
    let call = world.delivered(server);
    assert_eq!((call.flags, call.sender_pid, call.sender_euid), (tf::ONE_WAY, 0, 50));
    assert!(call.lineage.links().is_empty());
    world.end();
}

#[test]
fn ow_02_to_05_one_at_a_time_per_node() {
    let mut world = World::default();
    let server = world.manager(0);
    let (a, b) = (world.open(), world.open());
    let third = world.open();
    let other = world.export(third, 0, server, 0x90, 0);
    for (from, code) in [(a, 1), (b, 2), (a, 3)] {
        world.send(from, &Message::call(0).oneway().code(code));
    }
    // Calls overtake, other nodes do not wait.
    world.send(b, &Message::call(0).code(9));
    world.send(server, &Message::call(other).oneway());
    let first = world.delivered(server);
    assert_eq!((first.code, world.delivered(server).code), (1, 9));
    world.nothing(server);
    world.core.close(a, &mut world.out);
    world.free(server, first.buffer);
    let second = world.delivered(server);
    assert_eq!((second.code, second.to_thread), (2, None));
    world.nothing(server);
    world.free(server, second.buffer);
    let third = world.delivered(server);
    assert_eq!(third.code, 3, "its sender is dead, and it comes nevertheless");
    world.free(server, third.buffer);
    world.send(b, &Message::call(0).oneway().code(4));
    assert_eq!(world.delivered(server).code, 4);
    world.end();
}

#[test]
fn ow_09_ow_12_a_frozen_receiver() {
    let mut world = World::default();
    let server = world.manager(0);
    let (a, b) = (world.open(), world.open());
    let update = |code| Message::call(0).oneway().flags(tf::UPDATE_TXN).code(code);
    world.send(a, &update(1));
    let first = world.delivered(server);
    // Not frozen: nothing is replaced.
    world.send(a, &update(1));
    world.send(a, &update(1));
    world.ask(a, Request::Freeze { pid: 1001, step: 2 });
    assert_eq!(world.send(a, &update(1)).outcome, br::TRANSACTION_PENDING_FROZEN);
    assert_eq!(world.core.procs[&server].waiting_oneways, 2, "the oldest was replaced");
    world.send(b, &update(1));
    world.send(a, &update(2));
    world.send(a, &update(1).flags(tf::CLEAR_BUF));
    world.send(a, &Message::call(0).oneway().code(1));
    world.send(a, &Message::call(0).oneway().code(1));
    assert_eq!(world.core.procs[&server].waiting_oneways, 7, "another pid, code or flags word");
    world.send(b, &update(1));
    assert_eq!(world.core.procs[&server].waiting_oneways, 7);
    assert_eq!(world.core.procs[&server].buffers.len(), 8);
    let mut order = vec![];
    let mut buffer = first.buffer;
    for _ in 0..7 {
        world.free(server, buffer);
        let next = world.delivered(server);
        order.push((next.from.proc == a, next.code, next.flags & tf::UPDATE_TXN != 0));
        buffer = next.buffer;
    }
    let (u, p) = (true, false);
    let expected =
        [(true, 1, u), (true, 1, u), (true, 2, u), (true, 1, u), (true, 1, p), (true, 1, p), (false, 1, u)];
    assert_eq!(order, expected);
    world.end();
}

#[test]
fn ow_13_a_dead_receiver_drops_them_silently() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    world.call(client, 0, tf::ONE_WAY, b"");
    world.call(client, 0, tf::ONE_WAY, b"");
    world.core.close(server, &mut world.out);
    world.nothing(client);
    world.end();
}
