//! Room: which channels and bindings come and go (rules of this driver, not of the contract).

use abi::codes::{bc, br, flat, tf};

use super::super::Client;
use super::super::outside::{GATE_CLOSED, GATE_FROZEN};
use super::world::{Message, T2, World};
use crate::embedded::protocol::{Answers, Item, ProcId, Request, TransactKind};

fn lanes(world: &mut World) -> ProcId {
    world.open();
    world.open_as(|client| client.lanes = true)
}

/// A manager and a client that made one call of handle 0, whose delivery was read.
fn pair() -> (World, ProcId, ProcId) {
    let mut world = World::default();
    let server = lanes(&mut world);
    assert_eq!(world.become_manager(server, 0x11, 0).errno, 0);
    let client = lanes(&mut world);
    world.call(client, 0, 0, b"");
    world.delivered(server);
    (world, server, client)
}

fn bound(world: &mut World, server: ProcId, client: ProcId) -> (u32, u32) {
    let Some(Item::BindNode { channel, binding, .. }) = world.next(server) else { panic!("a binding") };
    let Some(Item::BindHandle { channel: same, binding: one, .. }) = world.next(client) else {
        panic!("its other end")
    };
    assert_eq!((channel, binding), (same, one));
    (channel, binding)
}

fn opened(world: &mut World, server: ProcId, client: ProcId) -> u32 {
    let Some(Item::Channel { channel, caller: false, bit: 0, peer, .. }) = world.next(server) else {
        panic!("a channel")
    };
    assert_eq!(peer, client);
    let Some(Item::Channel { caller: true, peer, peer_pid, .. }) = world.next(client) else {
        panic!("its other end")
    };
    assert_eq!((peer, Some(peer_pid)), (server, world.core.procs.get(&server).map(|p| p.client.pid)));
    channel
}

#[test]
fn a_plain_call_opens_a_lane_once() {
    let (mut world, server, client) = pair();
    let channel = opened(&mut world, server, client);
    assert_eq!(bound(&mut world, server, client), (channel, 1));
    assert_eq!(world.core.has_channel(server, channel), Some(client));
    world.call(client, 0, 0, b"");
    world.delivered(server);
    world.nothing(server);
    world.nothing(client);
    world.end();
}

/// Whoever sends scattered buffers only gets a lane, too, and at once.
#[test]
fn a_call_with_scattered_buffers_opens_a_lane() {
    let mut world = World::default();
    let server = lanes(&mut world);
    assert_eq!(world.become_manager(server, 0x11, 0).errno, 0);
    let client = lanes(&mut world);
    let message = Message::call(0).data(&[0; 8]).ptr(b"12345678", None);
    assert_eq!(world.send(client, &message).outcome, br::TRANSACTION_COMPLETE);
    world.delivered(server);
    let channel = opened(&mut world, server, client);
    assert_eq!(bound(&mut world, server, client), (channel, 1));
    world.end();
}

#[test]
fn others_do_not() {
    let mut world = World::default();
    let server = lanes(&mut world);
    world.become_manager(server, 0x11, flat::TXN_SECURITY_CTX);
    let labelled =
        |client: &mut Client| (client.lanes, client.security_context) = (true, Some(b"it".to_vec()));
    world.open();
    let client = world.open_as(labelled);
    assert_eq!(world.call(client, 0, 0, b"").outcome, br::TRANSACTION_COMPLETE);
    assert!(world.core.channels.is_empty());
    let mut world = World::default();
    let server = lanes(&mut world);
    world.become_manager(server, 0x11, 0);
    let plain = world.open();
    assert_eq!(world.call(plain, 0, 0, b"").outcome, br::TRANSACTION_COMPLETE);
    let client = lanes(&mut world);
    world.call(client, 0, tf::ONE_WAY, b"");
    world.send(client, &Message::call(0).node(1, 2, 0));
    world.out.no_channels = true;
    world.call(client, 0, 0, b"");
    let deliveries = std::iter::from_fn(|| world.next(server)).count();
    assert_eq!(deliveries, 4);
    assert!(world.core.channels.is_empty());
    world.out.no_channels = false;
    world.call(client, 0, 0, b"");
    assert!(matches!(world.next(server), Some(Item::Deliver { .. })));
    assert!(matches!(world.next(server), Some(Item::Channel { bit: 0, .. })), "the bit was not lost");
    world.end();
}

#[test]
fn a_binding_ends_with_its_handle() {
    let (mut world, server, client) = pair();
    let channel = opened(&mut world, server, client);
    bound(&mut world, server, client);
    // The server gives out another node, and lets it be called.
    let asked = world.call(client, 0, 0, b"");
    world.delivered(server);
    world.send(server, &Message::reply(asked.id).node(0x30, 0x31, 0));
    world.hear(server);
    let (buffer, ..) = world.replied(client);
    world.count(client, bc::ACQUIRE, 1);
    world.free(client, buffer);
    world.call(client, 1, 0, b"");
    world.delivered(server);
    assert_eq!(bound(&mut world, server, client), (channel, 2));
    world.count(client, bc::INCREFS, 1);
    world.count(client, bc::RELEASE, 1);
    let unbound = Some(Item::Unbind { channel, binding: 2 });
    assert_eq!((world.next(server), world.next(client)), (unbound, unbound));
    world.count(client, bc::DECREFS, 1);
    world.nothing(client);
    world.end();
}

#[test]
fn gates_and_the_end_of_a_peer() {
    let (mut world, server, client) = pair();
    let channel = opened(&mut world, server, client);
    bound(&mut world, server, client);
    let pid = world.core.procs[&server].client.pid;
    world.ask(client, Request::Freeze { pid, step: 2 });
    assert_eq!(world.out.gates[&channel], GATE_FROZEN);
    world.ask(client, Request::Freeze { pid, step: 0 });
    assert_eq!(world.out.gates[&channel], 0);
    world.tell(client, Request::DropChannel { channel });
    assert!(world.out.dropped.is_empty(), "its ends live");
    assert_eq!(world.out.gates[&channel], GATE_CLOSED, "one end has no use for it");
    world.ask(client, Request::Freeze { pid, step: 2 });
    world.ask(client, Request::Freeze { pid, step: 0 });
    assert_eq!(world.out.gates[&channel], GATE_CLOSED, "a thaw does not open it");
    world.core.close(server, &mut world.out);
    assert_eq!(world.out.gates[&channel], GATE_CLOSED);
    assert_eq!(world.next(client), Some(Item::PeerGone { peer: server }));
    assert_eq!(world.refused(client).0, br::DEAD_REPLY);
    world.tell(client, Request::DropChannel { channel });
    assert_eq!(world.out.dropped, [channel]);
    // The next manager has a channel of its own.
    let server = lanes(&mut world);
    world.become_manager(server, 0x11, 0);
    world.call(client, 0, 0, b"");
    world.delivered(server);
    assert_ne!(opened(&mut world, server, client), channel);
    world.end();
}

#[test]
fn each_look_of_a_freeze_settles_lanes_behind_gates_that_are_shut() {
    let mut world = World::default();
    let server = world.open_as(|client| client.lanes = true);
    world.become_manager(server, 0x11, 0);
    let client = lanes(&mut world);
    let call = world.call(client, 0, 0, b"");
    world.delivered(server);
    let channel = opened(&mut world, server, client);
    world.send(server, &Message::reply(call.id));
    let pid = world.core.procs[&server].client.pid;
    let held = || vec![(server, [(channel, GATE_FROZEN)].into())];
    world.out.busy.insert(server);
    for step in [2, 1, 1] {
        assert_eq!(world.ask(client, Request::Freeze { pid, step }).errno, super::super::refusal::EAGAIN);
        assert_eq!(std::mem::take(&mut world.out.settled), held(), "others may be idle at each");
    }
    world.out.busy.clear();
    assert_eq!(world.ask(client, Request::Freeze { pid, step: 1 }).errno, 0);
    world.out.settled.clear();
    world.ask(client, Request::FrozenInfo { pid });
    world.ask(client, Request::Freeze { pid, step: 0 });
    assert_eq!(world.out.settled, [], "whoever only asks, or thaws, holds nothing");
}

#[test]
fn a_reply_with_objects_to_a_call_that_came_by_lane() {
    let (mut world, server, client) = pair();
    let channel = opened(&mut world, server, client);
    bound(&mut world, server, client);
    let kind = TransactKind::LaneReply { channel, lane: 4, thread: T2, call_flags: 0 };
    let said = world.send(server, &Message::of(kind).node(0x40, 0x41, 0));
    assert_eq!(said.outcome, br::TRANSACTION_COMPLETE);
    let Some(Item::Reply { thread, answers, data_size: 24, .. }) = world.next(client) else { panic!("it") };
    assert_eq!((thread, answers), (T2, Answers::Lane { channel, lane: 4 }));
    assert_eq!(world.send(client, &Message::of(kind)).errno, super::super::refusal::EINVAL);
    let failed = world.send(server, &Message::of(kind).fd());
    assert_eq!((failed.outcome, failed.stops), (br::TRANSACTION_COMPLETE, true));
    assert_eq!(world.refused(client).0, br::FAILED_REPLY);
    world.core.close(client, &mut world.out);
    let late = world.send(server, &Message::of(kind));
    assert_eq!((late.errno, late.outcome), (0, br::TRANSACTION_COMPLETE), "dropped silently");
    world.end();
}
