//! Life of channels and bindings (rules of this driver, not of the contract).

use abi::codes::{bc, br, flat, tf};
use abi::layout::NodeInfoForRef;

use super::super::test_broker::{Message, T1, T2, TestBroker};
use super::super::{Client, DirectCall};
use crate::rpc::protocol::{Answers, Item, ProcId, Request, StateFile, TransactKind};
use crate::shm::call_slot::look::UnderWay;
use crate::shm::call_slot::{CLOSED, FROZEN, RequestHeader};

fn call_slots(broker: &mut TestBroker) -> ProcId {
    broker.open();
    broker.open_as(|client| client.call_slots = true)
}

/// A manager and a client that made one call of handle 0, whose delivery was read.
fn pair() -> (TestBroker, ProcId, ProcId) {
    let mut broker = TestBroker::default();
    let server = call_slots(&mut broker);
    assert_eq!(broker.become_manager(server, 0x11, 0).errno, 0);
    let client = call_slots(&mut broker);
    broker.call(client, 0, 0, b"");
    broker.delivered(server);
    (broker, server, client)
}

fn bound(broker: &mut TestBroker, server: ProcId, client: ProcId) -> (u32, u32) {
    let Some(Item::BindNode { channel, binding, .. }) = broker.next(server) else { panic!("a binding") };
    let Some(Item::BindHandle { channel: same, binding: one, .. }) = broker.next(client) else {
        panic!("its other end")
    };
    assert_eq!((channel, binding), (same, one));
    (channel, binding)
}

fn opened(broker: &mut TestBroker, server: ProcId, client: ProcId) -> u32 {
    let Some(Item::Channel { channel, caller: false, bit: 0, peer, .. }) = broker.next(server) else {
        panic!("a channel")
    };
    assert_eq!(peer, client);
    let Some(Item::Channel { caller: true, peer, peer_pid, .. }) = broker.next(client) else {
        panic!("its other end")
    };
    assert_eq!((peer, Some(peer_pid)), (server, broker.core.procs.get(&server).map(|p| p.client.pid)));
    channel
}

#[test]
fn a_plain_call_opens_a_call_slot_once() {
    let (mut broker, server, client) = pair();
    let channel = opened(&mut broker, server, client);
    assert_eq!(bound(&mut broker, server, client), (channel, 1));
    assert_eq!(broker.core.has_channel(server, channel), Some(client));
    broker.call(client, 0, 0, b"");
    broker.delivered(server);
    broker.nothing(server);
    broker.nothing(client);
}

/// A sender of scattered buffers gets a call slot at once, too.
#[test]
fn a_call_with_scattered_buffers_opens_a_call_slot() {
    let mut broker = TestBroker::default();
    let server = call_slots(&mut broker);
    assert_eq!(broker.become_manager(server, 0x11, 0).errno, 0);
    let client = call_slots(&mut broker);
    let message = Message::call(0).data(&[0; 8]).ptr(b"12345678", None);
    assert_eq!(broker.send(client, &message).outcome, br::TRANSACTION_COMPLETE);
    broker.delivered(server);
    let channel = opened(&mut broker, server, client);
    assert_eq!(bound(&mut broker, server, client), (channel, 1));
}

#[test]
fn others_do_not() {
    let mut broker = TestBroker::default();
    let server = call_slots(&mut broker);
    broker.become_manager(server, 0x11, flat::TXN_SECURITY_CTX);
    let labelled =
        |client: &mut Client| (client.call_slots, client.security_context) = (true, Some(b"it".to_vec()));
    broker.open();
    let client = broker.open_as(labelled);
    assert_eq!(broker.call(client, 0, 0, b"").outcome, br::TRANSACTION_COMPLETE);
    assert!(broker.core.channels.is_empty());
    let mut broker = TestBroker::default();
    let server = call_slots(&mut broker);
    broker.become_manager(server, 0x11, 0);
    let plain = broker.open();
    assert_eq!(broker.call(plain, 0, 0, b"").outcome, br::TRANSACTION_COMPLETE);
    let client = call_slots(&mut broker);
    broker.call(client, 0, tf::ONE_WAY, b"");
    broker.send(client, &Message::call(0).node(1, 2, 0));
    broker.host.no_channels = true;
    broker.call(client, 0, 0, b"");
    let deliveries = std::iter::from_fn(|| broker.next(server)).count();
    assert_eq!(deliveries, 4);
    assert!(broker.core.channels.is_empty());
    broker.host.no_channels = false;
    broker.call(client, 0, 0, b"");
    assert!(matches!(broker.next(server), Some(Item::Deliver { .. })));
    assert!(matches!(broker.next(server), Some(Item::Channel { bit: 0, .. })), "the bit was not lost");
}

#[test]
fn a_binding_ends_with_its_handle() {
    let (mut broker, server, client) = pair();
    let channel = opened(&mut broker, server, client);
    bound(&mut broker, server, client);
    // The server sends another node, and permits calls to it.
    let asked = broker.call(client, 0, 0, b"");
    broker.delivered(server);
    broker.send(server, &Message::reply(asked.id).node(0x30, 0x31, 0));
    broker.hear(server);
    let (buffer, ..) = broker.replied(client);
    broker.count(client, bc::ACQUIRE, 1);
    broker.free(client, buffer);
    broker.call(client, 1, 0, b"");
    broker.delivered(server);
    assert_eq!(bound(&mut broker, server, client), (channel, 2));
    broker.count(client, bc::INCREFS, 1);
    broker.count(client, bc::RELEASE, 1);
    let unbound = Some(Item::Unbind { channel, binding: 2 });
    assert_eq!((broker.next(server), broker.next(client)), (unbound, unbound));
    broker.count(client, bc::DECREFS, 1);
    broker.nothing(client);
}

#[test]
fn gates_and_the_end_of_a_peer() {
    let (mut broker, server, client) = pair();
    let channel = opened(&mut broker, server, client);
    bound(&mut broker, server, client);
    let pid = broker.core.procs[&server].client.pid;
    broker.ask(client, Request::Freeze { pid, step: 2 });
    assert_eq!(broker.host.gates[&channel], FROZEN);
    broker.ask(client, Request::Freeze { pid, step: 0 });
    assert_eq!(broker.host.gates[&channel], 0);
    broker.tell(client, Request::DropChannel { channel });
    assert!(broker.host.dropped.is_empty(), "its ends live");
    assert_eq!(broker.host.gates[&channel], CLOSED, "one end has no use for it");
    broker.ask(client, Request::Freeze { pid, step: 2 });
    broker.ask(client, Request::Freeze { pid, step: 0 });
    assert_eq!(broker.host.gates[&channel], CLOSED, "a thaw does not open it");
    broker.core.close(server, &mut broker.host);
    assert_eq!(broker.host.gates[&channel], CLOSED);
    assert_eq!(broker.next(client), Some(Item::PeerGone { peer: server }));
    assert_eq!(broker.refused(client).0, br::DEAD_REPLY);
    broker.tell(client, Request::DropChannel { channel });
    assert_eq!(broker.host.dropped, [channel]);
    // The next manager has its own channel.
    let server = call_slots(&mut broker);
    broker.become_manager(server, 0x11, 0);
    broker.call(client, 0, 0, b"");
    broker.delivered(server);
    assert_ne!(opened(&mut broker, server, client), channel);
}

#[test]
fn each_look_of_a_freeze_settles_call_slots_behind_gates_that_are_shut() {
    let mut broker = TestBroker::default();
    let server = broker.open_as(|client| client.call_slots = true);
    broker.become_manager(server, 0x11, 0);
    let client = call_slots(&mut broker);
    let call = broker.call(client, 0, 0, b"");
    broker.delivered(server);
    let channel = opened(&mut broker, server, client);
    broker.send(server, &Message::reply(call.id));
    let pid = broker.core.procs[&server].client.pid;
    let held = || vec![(server, [(channel, FROZEN)].into())];
    broker.host.busy.insert(server);
    for step in [2, 1, 1] {
        assert_eq!(broker.ask(client, Request::Freeze { pid, step }).errno, sys::errno::EAGAIN);
        assert_eq!(std::mem::take(&mut broker.host.settled), held(), "others may be idle at each");
    }
    broker.host.busy.clear();
    assert_eq!(broker.ask(client, Request::Freeze { pid, step: 1 }).errno, 0);
    broker.host.settled.clear();
    broker.ask(client, Request::FrozenInfo { pid });
    broker.ask(client, Request::Freeze { pid, step: 0 });
    assert_eq!(broker.host.settled, [], "whoever only asks, or thaws, holds nothing");
}

#[test]
fn a_reply_with_objects_to_a_call_that_came_by_call_slot() {
    let (mut broker, server, client) = pair();
    let channel = opened(&mut broker, server, client);
    bound(&mut broker, server, client);
    let kind = TransactKind::SlotReply { channel, call_slot: 4, thread: T2, call_flags: 0 };
    let said = broker.send(server, &Message::of(kind).node(0x40, 0x41, 0));
    assert_eq!(said.outcome, br::TRANSACTION_COMPLETE);
    let Some(Item::Reply { thread, answers, data_size: 24, .. }) = broker.next(client) else { panic!("it") };
    assert_eq!((thread, answers), (T2, Answers::CallSlot { channel, call_slot: 4 }));
    assert_eq!(broker.send(client, &Message::of(kind)).errno, sys::errno::EINVAL);
    let failed = broker.send(server, &Message::of(kind).fd());
    assert_eq!((failed.outcome, failed.stops), (br::TRANSACTION_COMPLETE, true));
    assert_eq!(broker.refused(client).0, br::FAILED_REPLY);
    broker.core.close(client, &mut broker.host);
    let late = broker.send(server, &Message::of(kind));
    assert_eq!((late.errno, late.outcome), (0, br::TRANSACTION_COMPLETE), "dropped silently");
}

#[test]
fn a_call_through_a_call_slot_has_lines_at_both_threads() {
    let (mut broker, server, client) = pair();
    let header =
        RequestHeader { binding: 1, code: 0xab, flags: 0x10, thread: T1, ..RequestHeader::default() };
    let call = UnderWay { call_slot: 2, number: 8, header, server: None };
    let direct = DirectCall { channel: 1, caller: client, callee: server, call, elapsed_ms: 1500 };
    broker.host.direct_calls = vec![direct];
    let (id, rest) = (1 << 30 | 1 << 20 | 2 << 16 | 2, "code ab flags 10 pri 0 a0 r0 elapsed 1500ms");
    let outgoing = format!("    outgoing transaction {id}: 0000000000000011 from 1002:77 to 1001:0 {rest}\n");
    let at_server = |what: &str, tid: u32| {
        format!(
            "{what} transaction {id}: 0000000000000011 from 1002:77 to 1001:{tid} {rest} node 1 size 0:0 offset 0\n"
        )
    };
    for which in [StateFile::State, StateFile::Transactions] {
        let text = broker.core.state(which, &mut broker.host);
        assert!(text.contains(&outgoing) && text.contains(&at_server("  pending", 0)), "{text}");
    }
    broker.host.direct_calls[0].call.server = Some(T1.slot);
    for which in [StateFile::State, StateFile::Transactions] {
        let text = broker.core.state(which, &mut broker.host);
        assert!(text.contains(&outgoing) && text.contains(&at_server("    incoming", 77)), "{text}");
        assert_eq!(text.matches(&format!("transaction {id}")).count(), 2, "{text}");
    }
}

#[test]
fn ioc_04_calls_through_call_slots_hold_their_target() {
    let (mut broker, manager, _) = pair();
    broker.host.items.clear();
    let owner = call_slots(&mut broker);
    let [called, other] = [0x30, 0x40].map(|ptr| broker.export(owner, 0, manager, ptr, 0));
    broker.host.items.clear();
    let mut bind = |handle| {
        broker.call(manager, handle, 0, b"");
        let call = broker.delivered(owner);
        broker.free(owner, call.buffer);
        let bound = broker.host.items[&owner].iter().find_map(|item| match *item {
            Item::BindNode { channel, binding, tag, .. } => Some(((channel, binding), tag)),
            _ => None,
        });
        broker.host.items.clear();
        bound.expect("a binding")
    };
    let ((call, tag), (call_of_other, tag_of_other)) = (bind(called), bind(other));
    let strong = |broker: &mut TestBroker| {
        let info = NodeInfoForRef { handle: called, ..Default::default() };
        broker.ask(manager, Request::NodeInfoForRef { info }).words[0]
    };
    let before = strong(&mut broker);
    broker.host.unread_calls = vec![call, call_of_other];
    broker.host.tagged.insert(manager, vec![tag]);
    assert_eq!(strong(&mut broker), before + 1, "unread");
    broker.host.unread_calls.clear();
    broker.host.tagged.insert(owner, vec![tag, 0, tag_of_other, tag]);
    assert_eq!(strong(&mut broker), before + 2, "not freed");
}
