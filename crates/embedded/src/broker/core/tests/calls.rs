//! Calls, replies and how they fail (contract sections 1, 5, 12, 13).

use abi::codes::{bc, br, flat, tf};

use super::super::test_broker::{BASE, MAP, Message, T1, T2, TestBroker};
use crate::rpc::protocol::{Answers, Item, Lineage, Link, ProcId, Request, TransactKind};
use sys::errno::{EFAULT, EINVAL, ENOSPC, EOPNOTSUPP, EPROTO, ESRCH};

#[test]
fn tx_01_to_03_a_call_and_its_reply() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let said = broker.call(client, 0, tf::ACCEPT_FDS, b"hello");
    assert_eq!((said.errno, said.outcome, said.stops), (0, br::TRANSACTION_COMPLETE, false));
    assert_eq!((said.error.id, said.error.command, said.error.param), (said.id, br::OK, 0));
    let call = broker.delivered(server);
    assert_eq!((call.transaction, call.ptr, call.cookie, call.code), (said.id, 0x11, 0x12, 3));
    assert_eq!((call.flags, call.data_size, call.offsets_size), (tf::ACCEPT_FDS, 5, 0));
    assert_eq!((call.sender_pid, call.sender_euid), (1002, 50));
    assert_eq!((call.from, call.to_thread), (Link { proc: client, thread: T1 }, None));
    assert_eq!(broker.area(server, call.buffer, 6), b"hello\xaa");
    broker.free(server, call.buffer);
    let done = broker.reply(server, call.transaction, b"fine");
    assert_eq!((done.outcome, done.stops), (br::TRANSACTION_COMPLETE, false));
    let Some(Item::Reply { thread, answers, code, euid, buffer, data_size, fds, .. }) = broker.next(client)
    else {
        panic!("a reply");
    };
    assert_eq!((thread, answers, code), (T1, Answers::Transaction { number: said.id }, 3));
    assert_eq!((euid, data_size, fds), (50, 4, 0));
    assert_eq!(broker.area(client, buffer, 4), b"fine");
    broker.nothing(client);
    broker.nothing(server);
}

#[test]
fn tx_06_a_nested_call_names_the_waiting_thread() {
    let (mut broker, server, client) = TestBroker::pair(0);
    broker.export(client, 0, server, 0x20, 0);
    let mut back = Message::call(1);
    let waits = Link { proc: client, thread: T2 };
    back.lineage = Lineage::EMPTY.behind(Link { proc: ProcId(9), thread: T1 }).behind(waits);
    broker.send(server, &back);
    let call = broker.delivered(client);
    assert_eq!(call.to_thread, Some(T2));
    assert_eq!(call.lineage.links()[..2], [Link { proc: server, thread: T1 }, waits]);
    broker.send(server, &back.oneway());
    assert_eq!(broker.delivered(client).to_thread, None);
}

#[test]
fn tx_07_to_09_calls_of_nobody() {
    let mut broker = TestBroker::default();
    let client = broker.open();
    assert_eq!(broker.call(client, 0, 0, b"").failed(), (br::DEAD_REPLY, EINVAL));
    assert_eq!(broker.call(client, 7, 0, b"").failed(), (br::FAILED_REPLY, EINVAL));
    let server = broker.manager(0);
    let third = broker.open();
    let handle = broker.export(third, 0, server, 0x20, 0);
    assert_eq!(broker.count(server, bc::INCREFS, handle), 0);
    assert_eq!(broker.count(server, bc::RELEASE, handle), 0);
    assert_eq!(broker.call(server, handle, 0, b"").failed(), (br::FAILED_REPLY, EINVAL));
    let handle = broker.export(third, 0, server, 0x30, 0);
    broker.core.close(third, &mut broker.host);
    assert_eq!(broker.call(server, handle, 0, b"").failed().0, br::DEAD_REPLY);
}

#[test]
fn tx_10_tx_11_a_server_that_goes() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let said = broker.call(client, 0, 0, b"");
    broker.call(client, 0, tf::ONE_WAY, b"");
    let call = broker.delivered(server);
    broker.ask(client, Request::Abandon { transaction: call.transaction });
    broker.nothing(client);
    broker.ask(server, Request::Abandon { transaction: call.transaction });
    let (outcome, error) = broker.refused(client);
    assert_eq!((outcome, error.command), (br::DEAD_REPLY, br::OK));
    assert_eq!(broker.reply(server, said.id, b"").errno, EINVAL);
    broker.call(client, 0, 0, b"");
    broker.core.close(server, &mut broker.host);
    assert_eq!(broker.refused(client).0, br::DEAD_REPLY);
    broker.nothing(client);
}

#[test]
fn tx_16_replies_to_nothing_are_nonsense() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let said = broker.call(client, 0, 0, b"");
    assert_eq!(broker.reply(server, 12345, b"").errno, EINVAL);
    assert_eq!(broker.reply(client, said.id, b"").errno, EINVAL);
    let call_slot = TransactKind::SlotReply { channel: 3, call_slot: 0, thread: T1, call_flags: 0 };
    assert_eq!(broker.send(server, &Message::of(call_slot)).errno, EINVAL);
}

#[test]
fn tx_17_a_bad_reply_fails_the_caller() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let call = broker.call(client, 0, 0, b"");
    let done = broker.send(server, &Message::reply(call.id).handle(77));
    assert_eq!((done.outcome, done.stops, done.error.command), (br::TRANSACTION_COMPLETE, true, br::OK));
    let (outcome, error) = broker.refused(client);
    assert_eq!((outcome, error.command, error.param), (br::FAILED_REPLY, br::FAILED_REPLY, -EINVAL));
    let call = broker.call(client, 0, 0, b"");
    broker.reply(server, call.id, &vec![0; MAP + 1]);
    assert_eq!(broker.refused(client).1.param, -ENOSPC);
}

#[test]
fn tx_18_a_reply_to_the_dead_is_dropped() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let call = broker.call(client, 0, 0, b"");
    broker.core.close(client, &mut broker.host);
    let done = broker.reply(server, call.id, b"late");
    assert_eq!((done.errno, done.outcome), (0, br::TRANSACTION_COMPLETE));
}

#[test]
fn tx_18_of_a_reply_to_an_exited_thread_nothing_is_counted() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let call = broker.call(client, 0, 0, b"");
    broker.delivered(server);
    broker.host.exited.push(Link { proc: client, thread: T1 });
    let reply = Message::reply(call.id).node(0x20, 1, 0);
    let done = broker.send(server, &reply);
    assert_eq!((done.outcome, done.stops), (br::TRANSACTION_COMPLETE, true));
    assert!(broker.host.items[&server].is_empty(), "{:?}", broker.host.items[&server]);
    assert!(!broker.host.items[&client].iter().any(|item| matches!(item, Item::Reply { .. })));
}

#[test]
fn tx_13_a_call_out_of_turn_fails_behind_its_target() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let doomed = broker.open();
    let handle = broker.export(doomed, 0, server, 0x20, 0);
    let again = |handle| {
        let mut message = Message::call(handle);
        message.out_of_turn = true;
        message
    };
    assert_eq!(broker.send(client, &again(0)).failed(), (br::FAILED_REPLY, EPROTO));
    let transact = again(0).transact();
    assert_eq!(broker.ask(client, Request::PreassignRoute { transact }).errno, EINVAL, "it is not traced");
    assert_eq!(broker.send(server, &again(handle)).failed(), (br::FAILED_REPLY, EPROTO));
    broker.nothing(doomed);
    broker.core.close(doomed, &mut broker.host);
    assert_eq!(broker.send(server, &again(handle)).failed(), (br::DEAD_REPLY, EINVAL));
    assert_eq!(broker.send(server, &again(40)).failed(), (br::FAILED_REPLY, EINVAL));
    broker.nothing(server);
}

#[test]
fn tx_21_errors_say_why() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let failed = |errno| (br::FAILED_REPLY, errno);
    assert_eq!(broker.call(client, 0, 0, &vec![0; MAP + 1]).failed(), failed(ENOSPC));
    let mut message = Message::call(0).data(b"unread");
    message.data_fault = EFAULT;
    assert_eq!(broker.send(client, &message).failed(), failed(EFAULT));
    let mut huge = message.transact();
    (huge.data_size, huge.data_fault) = (u64::MAX - 3, 0);
    let said = broker.ask_with(client, T1, Request::Transact { transact: huge }, &[], Vec::new());
    assert_eq!(said.failed(), failed(EINVAL));
    (huge.data_size, huge.offsets_size) = (64, 64);
    let said = broker.ask_with(client, T1, Request::Transact { transact: huge }, &[1; 100], Vec::new());
    assert_eq!(said.failed(), failed(EFAULT));
    broker.nothing(server);
    assert_eq!(
        broker
            .core
            .state(crate::rpc::protocol::StateFile::Stats, &mut broker.host)
            .matches("buffers: 0")
            .count(),
        2
    );
}

#[test]
fn opn_09_opn_10_no_area_no_call() {
    let mut broker = TestBroker::default();
    let server = broker.open_as(|client| (client.pid, client.map_size) = (1, 0));
    broker.become_manager(server, 0, 0);
    let client = broker.open();
    assert_eq!(broker.call(client, 0, 0, b"").failed(), (br::DEAD_REPLY, ESRCH));
    broker.core.close(server, &mut broker.host);
    let server = broker.manager(0);
    broker.tell(server, Request::Mapped { base: 0 });
    broker.tell(server, Request::Mapped { base: BASE });
    assert_eq!(broker.call(client, 0, 0, b"").failed(), (br::DEAD_REPLY, ESRCH));
}

#[test]
fn ctx_01_to_05_the_manager() {
    let (mut broker, first, other) = TestBroker::pair(0);
    assert_eq!(broker.become_manager(other, 5, 0).errno, sys::errno::EBUSY);
    let twin = broker.open_as(|client| client.pid = 1001);
    assert_eq!(broker.call(twin, 0, 0, b"").failed(), (br::FAILED_REPLY, EINVAL));
    assert_eq!(broker.call(first, 0, 0, b"").failed(), (br::FAILED_REPLY, EINVAL));
    let elsewhere = broker.open_as(|client| (client.pid, client.context) = (1, "hwbinder".into()));
    assert_eq!(broker.call(elsewhere, 0, 0, b"").failed().0, br::DEAD_REPLY);
    broker.core.close(first, &mut broker.host);
    let stranger = broker.open_as(|client| (client.pid, client.euid) = (2, 51));
    assert_eq!(broker.become_manager(stranger, 5, 0).errno, sys::errno::EPERM);
    assert_eq!(broker.become_manager(other, 5, 0).errno, 0);
    broker.call(elsewhere, 0, 0, b"");
    broker.call(stranger, 0, 0, b"");
    assert_eq!(broker.delivered(other).ptr, 5);
}

#[test]
fn obj_21_obj_22_security_contexts() {
    let (mut broker, server, plain) = TestBroker::pair(flat::TXN_SECURITY_CTX);
    assert_eq!(broker.call(plain, 0, 0, b"").failed(), (br::FAILED_REPLY, EOPNOTSUPP));
    let labelled = broker.open_as(|client| client.security_context = Some(b"kernel".to_vec()));
    // The label belongs to another process than the manager's.
    assert_eq!(broker.call(labelled, 0, 0, b"12345").outcome, br::TRANSACTION_COMPLETE);
    let call = broker.delivered(server);
    let at = call.security_context.unwrap();
    assert_eq!(at, call.buffer + 8);
    assert_eq!(broker.area(server, at, 7), b"kernel\0");
}
