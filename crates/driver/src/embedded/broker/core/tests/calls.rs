//! Room: calls, replies and how they fail (contract sections 1, 5, 12, 13).

use abi::codes::{bc, br, flat, tf};

use super::super::refusal::{EFAULT, EINVAL, ENOSPC, EOPNOTSUPP, ESRCH};
use super::world::{BASE, MAP, Message, T1, T2, World};
use crate::embedded::protocol::{Answers, Item, Lineage, Link, ProcId, Request, TransactKind};

#[test]
fn tx_01_to_03_a_call_and_its_reply() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    let said = world.call(client, 0, tf::ACCEPT_FDS, b"hello");
    assert_eq!((said.errno, said.outcome, said.stops), (0, br::TRANSACTION_COMPLETE, false));
    assert_eq!((said.error.id, said.error.command, said.error.param), (said.id, br::OK, 0));
    let call = world.delivered(server);
    assert_eq!((call.transaction, call.ptr, call.cookie, call.code), (said.id, 0x11, 0x12, 3));
    assert_eq!((call.flags, call.data_size, call.offsets_size), (tf::ACCEPT_FDS, 5, 0));
    assert_eq!((call.sender_pid, call.sender_euid), (1002, 50));
    assert_eq!((call.from, call.to_thread), (Link { proc: client, thread: T1 }, None));
    assert_eq!(world.area(server, call.buffer, 6), b"hello\xaa");
    world.free(server, call.buffer);
    let done = world.reply(server, call.transaction, b"fine");
    assert_eq!((done.outcome, done.stops), (br::TRANSACTION_COMPLETE, false));
    let Some(Item::Reply { thread, answers, code, euid, buffer, data_size, fds, .. }) = world.next(client)
    else {
        panic!("a reply");
    };
    assert_eq!((thread, answers, code), (T1, Answers::Transaction(said.id), 3));
    assert_eq!((euid, data_size, fds), (50, 4, 0));
    assert_eq!(world.area(client, buffer, 4), b"fine");
    world.nothing(client);
    world.nothing(server);
    world.end();
}

#[test]
fn tx_06_a_nested_call_names_the_waiting_thread() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    world.export(client, 0, server, 0x20, 0);
    let mut back = Message::call(1);
    let waits = Link { proc: client, thread: T2 };
    back.lineage = Lineage::EMPTY.behind(Link { proc: ProcId(9), thread: T1 }).behind(waits);
    world.send(server, &back);
    let call = world.delivered(client);
    assert_eq!(call.to_thread, Some(T2));
    assert_eq!(call.lineage.links()[..2], [Link { proc: server, thread: T1 }, waits]);
    world.send(server, &back.oneway());
    assert_eq!(world.delivered(client).to_thread, None);
    world.end();
}

#[test]
fn tx_07_to_09_calls_of_nobody() {
    let mut world = World::default();
    let client = world.open();
    assert_eq!(world.call(client, 0, 0, b"").failed(), (br::DEAD_REPLY, EINVAL));
    assert_eq!(world.call(client, 7, 0, b"").failed(), (br::FAILED_REPLY, EINVAL));
    let server = world.manager(0);
    let third = world.open();
    let handle = world.export(third, 0, server, 0x20, 0);
    assert_eq!(world.count(server, bc::INCREFS, handle), 0);
    assert_eq!(world.count(server, bc::RELEASE, handle), 0);
    assert_eq!(world.call(server, handle, 0, b"").failed(), (br::FAILED_REPLY, EINVAL));
    let handle = world.export(third, 0, server, 0x30, 0);
    world.core.close(third, &mut world.out);
    assert_eq!(world.call(server, handle, 0, b"").failed().0, br::DEAD_REPLY);
    world.end();
}

#[test]
fn tx_10_tx_11_a_server_that_goes() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    let said = world.call(client, 0, 0, b"");
    world.call(client, 0, tf::ONE_WAY, b"");
    let call = world.delivered(server);
    world.ask(client, Request::Abandon { transaction: call.transaction });
    world.nothing(client);
    world.ask(server, Request::Abandon { transaction: call.transaction });
    let (outcome, error) = world.refused(client);
    assert_eq!((outcome, error.command), (br::DEAD_REPLY, br::OK));
    assert_eq!(world.reply(server, said.id, b"").errno, EINVAL);
    world.call(client, 0, 0, b"");
    world.core.close(server, &mut world.out);
    assert_eq!(world.refused(client).0, br::DEAD_REPLY);
    world.nothing(client);
    world.end();
}

#[test]
fn tx_16_replies_to_nothing_are_nonsense() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    let said = world.call(client, 0, 0, b"");
    assert_eq!(world.reply(server, 12345, b"").errno, EINVAL);
    assert_eq!(world.reply(client, said.id, b"").errno, EINVAL);
    let lane = TransactKind::LaneReply { channel: 3, lane: 0, thread: T1, call_flags: 0 };
    assert_eq!(world.send(server, &Message::of(lane)).errno, EINVAL);
    world.end();
}

#[test]
fn tx_17_a_bad_reply_fails_the_caller() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    let call = world.call(client, 0, 0, b"");
    let done = world.send(server, &Message::reply(call.id).handle(77));
    assert_eq!((done.outcome, done.stops, done.error.command), (br::TRANSACTION_COMPLETE, true, br::OK));
    let (outcome, error) = world.refused(client);
    assert_eq!((outcome, error.command, error.param), (br::FAILED_REPLY, br::FAILED_REPLY, -EINVAL));
    let call = world.call(client, 0, 0, b"");
    world.reply(server, call.id, &vec![0; MAP + 1]);
    assert_eq!(world.refused(client).1.param, -ENOSPC);
    world.end();
}

#[test]
fn tx_18_a_reply_to_the_dead_is_dropped() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    let call = world.call(client, 0, 0, b"");
    world.core.close(client, &mut world.out);
    let done = world.reply(server, call.id, b"late");
    assert_eq!((done.errno, done.outcome), (0, br::TRANSACTION_COMPLETE));
    world.end();
}

#[test]
fn tx_21_errors_say_why() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    let failed = |errno| (br::FAILED_REPLY, errno);
    assert_eq!(world.call(client, 0, 0, &vec![0; MAP + 1]).failed(), failed(ENOSPC));
    let mut message = Message::call(0).data(b"unread");
    message.data_fault = EFAULT;
    assert_eq!(world.send(client, &message).failed(), failed(EFAULT));
    let mut huge = message.transact();
    (huge.data_size, huge.data_fault) = (u64::MAX - 3, 0);
    let said = world.ask_with(client, T1, Request::Transact { transact: huge }, &[], Vec::new());
    assert_eq!(said.failed(), failed(EINVAL));
    (huge.data_size, huge.offsets_size) = (64, 64);
    let said = world.ask_with(client, T1, Request::Transact { transact: huge }, &[1; 100], Vec::new());
    assert_eq!(said.failed(), failed(EFAULT));
    world.nothing(server);
    assert_eq!(
        world
            .core
            .state(crate::embedded::protocol::StateFile::Stats, &world.out)
            .matches("buffers: 0")
            .count(),
        2
    );
    world.end();
}

#[test]
fn opn_09_opn_10_no_area_no_call() {
    let mut world = World::default();
    let server = world.open_as(|client| (client.pid, client.map_size) = (1, 0));
    world.become_manager(server, 0, 0);
    let client = world.open();
    assert_eq!(world.call(client, 0, 0, b"").failed(), (br::DEAD_REPLY, ESRCH));
    world.core.close(server, &mut world.out);
    let server = world.manager(0);
    world.tell(server, Request::Mapped { base: 0 });
    world.tell(server, Request::Mapped { base: BASE });
    assert_eq!(world.call(client, 0, 0, b"").failed(), (br::DEAD_REPLY, ESRCH));
    world.end();
}

#[test]
fn ctx_01_to_05_the_manager() {
    let mut world = World::default();
    let first = world.manager(0);
    let other = world.open();
    assert_eq!(world.become_manager(other, 5, 0).errno, super::super::refusal::EBUSY);
    let twin = world.open_as(|client| client.pid = 1001);
    assert_eq!(world.call(twin, 0, 0, b"").failed(), (br::FAILED_REPLY, EINVAL));
    assert_eq!(world.call(first, 0, 0, b"").failed(), (br::FAILED_REPLY, EINVAL));
    let elsewhere = world.open_as(|client| (client.pid, client.context) = (1, "hwbinder".into()));
    assert_eq!(world.call(elsewhere, 0, 0, b"").failed().0, br::DEAD_REPLY);
    world.core.close(first, &mut world.out);
    let stranger = world.open_as(|client| (client.pid, client.euid) = (2, 51));
    assert_eq!(world.become_manager(stranger, 5, 0).errno, super::super::refusal::EPERM);
    assert_eq!(world.become_manager(other, 5, 0).errno, 0);
    world.call(elsewhere, 0, 0, b"");
    world.call(stranger, 0, 0, b"");
    assert_eq!(world.delivered(other).ptr, 5);
    world.end();
}

#[test]
fn obj_21_obj_22_security_contexts() {
    let mut world = World::default();
    let server = world.manager(flat::TXN_SECURITY_CTX);
    let plain = world.open();
    assert_eq!(world.call(plain, 0, 0, b"").failed(), (br::FAILED_REPLY, EOPNOTSUPP));
    let labelled = world.open_as(|client| client.security_context = Some(b"kernel".to_vec()));
    // The label belongs to another process than the manager's.
    assert_eq!(world.call(labelled, 0, 0, b"12345").outcome, br::TRANSACTION_COMPLETE);
    let call = world.delivered(server);
    let at = call.security_context.unwrap();
    assert_eq!(at, call.buffer + 8);
    assert_eq!(world.area(server, at, 7), b"kernel\0");
    world.end();
}
