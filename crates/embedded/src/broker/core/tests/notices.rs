//! Death and freeze notifications, freezing (contract sections 10 and 11, EXT-05).

use abi::codes::{bc, br};

use super::super::test_broker::{T1, TestBroker};
use crate::rpc::protocol::{Item, ProcId, Request, StateFile};
use sys::errno::{EAGAIN, EINVAL};

/// A server that holds handle 1 of the owner's node.
fn held() -> (TestBroker, ProcId, ProcId) {
    let (mut broker, server, owner) = TestBroker::pair(0);
    assert_eq!(broker.export(owner, 0, server, 0x20, 0), 1);
    (broker, server, owner)
}

fn request(cookie: u64) -> Request {
    Request::RequestDeath { handle: 1, cookie }
}

fn clear(cookie: u64) -> Request {
    Request::ClearDeath { handle: 1, cookie, looper: false }
}

fn dead(cookie: u64) -> Vec<(u32, [u64; 2])> {
    vec![(br::DEAD_BINDER, [cookie, 0])]
}

fn cleared(cookie: u64) -> Vec<(u32, [u64; 2])> {
    vec![(br::CLEAR_DEATH_NOTIFICATION_DONE, [cookie, 0])]
}

#[test]
fn dth_01_to_05_a_death_is_told_once() {
    let (mut broker, server, owner) = held();
    assert_eq!(broker.ask(server, Request::RequestDeath { handle: 9, cookie: 1 }).errno, 0);
    broker.ask(server, request(7));
    broker.ask(server, request(8));
    broker.nothing(server);
    broker.core.close(owner, &mut broker.host);
    assert_eq!(broker.told(server), dead(7));
    broker.nothing(server);
    broker.ask(server, Request::DeathDone { cookie: 8, looper: true });
    broker.ask(server, clear(7));
    broker.nothing(server);
    broker.ask(server, Request::DeathDone { cookie: 7, looper: true });
    let (work, thread, deferred) = broker.work(server);
    assert_eq!((thread, deferred), (Some(T1), false));
    assert_eq!(broker.take(server, work), cleared(7));
    // Again on the dead node: at once; acknowledged first, then taken back.
    broker.ask(server, request(9));
    assert_eq!(broker.told(server), dead(9));
    broker.ask(server, Request::DeathDone { cookie: 9, looper: false });
    broker.ask(server, clear(9));
    assert_eq!(broker.told(server), cleared(9));
    let text = broker.core.state(StateFile::Stats, &mut broker.host);
    assert!(text.contains("\ndeath: active 0 total 2\n"), "{text}");
}

#[test]
fn dth_05_a_clear_between_death_and_reading() {
    let (mut broker, server, owner) = held();
    broker.ask(server, request(7));
    broker.core.close(owner, &mut broker.host);
    broker.ask(server, clear(7));
    assert_eq!(broker.told(server), dead(7));
    broker.nothing(server);
    broker.ask(server, Request::DeathDone { cookie: 7, looper: false });
    assert_eq!(broker.told(server), cleared(7));
}

#[test]
fn dth_06_dth_07_taking_it_back() {
    let (mut broker, server, owner) = held();
    broker.ask(server, clear(7));
    broker.ask(server, request(7));
    broker.ask(server, clear(8));
    broker.nothing(server);
    broker.ask(server, Request::ClearDeath { handle: 1, cookie: 7, looper: true });
    let (work, thread, _) = broker.work(server);
    assert_eq!((thread, broker.take(server, work)), (Some(T1), cleared(7)));
    broker.ask(server, request(7));
    broker.count(server, bc::RELEASE, 1);
    broker.core.close(owner, &mut broker.host);
    broker.nothing(server);
    assert_eq!(broker.core.procs[&server].deaths.len(), 0);
}

#[test]
fn dth_08_ext_05_the_order_of_an_end() {
    let (mut broker, server, owner) = held();
    broker.export(owner, 0, server, 0x10, 0);
    for (handle, cookie) in [(1, 0x20), (2, 0x10)] {
        broker.ask(server, Request::RequestDeath { handle, cookie });
    }
    broker.call(server, 1, 0, b"");
    broker.core.close(owner, &mut broker.host);
    assert_eq!(broker.refused(server).0, br::DEAD_REPLY);
    assert_eq!((broker.told(server), broker.told(server)), (dead(0x10), dead(0x20)), "by ptr");
    assert_eq!(broker.call(server, 1, 0, b"").failed().0, br::DEAD_REPLY);
}

fn freeze(step: u32) -> Request {
    Request::Freeze { pid: 1002, step }
}

fn frozen(cookie: u64, state: u64) -> Vec<(u32, [u64; 2])> {
    vec![(br::FROZEN_BINDER, [cookie, state])]
}

#[test]
fn frz_01_to_05_freezing() {
    let (mut broker, server, owner) = held();
    let twin = broker.open_as(|client| client.pid = 1002);
    assert_eq!(broker.ask(server, Request::Freeze { pid: 4, step: 2 }).errno, EINVAL);
    assert_eq!(broker.ask(server, Request::FrozenInfo { pid: 4 }).errno, EINVAL);
    assert_eq!(broker.ask(server, freeze(9)).errno, EINVAL);
    let call = broker.call(server, 1, 0, b"");
    assert_eq!(broker.ask(server, freeze(2)).errno, EAGAIN, "one is pending");
    assert_eq!(broker.call(server, 1, 0, b"").failed(), (br::FROZEN_REPLY, 0));
    assert_eq!(broker.ask(server, Request::FrozenInfo { pid: 1002 }).words, [3, 0, 0, 0]);
    broker.delivered(owner);
    broker.reply(owner, call.id, b"");
    broker.replied(server);
    broker.host.busy.insert(twin);
    assert_eq!(broker.ask(server, freeze(1)).errno, EAGAIN, "the whole process counts");
    broker.host.busy.clear();
    assert_eq!(broker.ask(server, freeze(1)).errno, 0);
    assert_eq!(broker.call(server, 1, abi::codes::tf::ONE_WAY, b"").outcome, br::TRANSACTION_PENDING_FROZEN);
    assert_eq!(broker.ask(server, Request::FrozenInfo { pid: 1002 }).words, [1, 1, 0, 0]);
    assert_eq!(broker.call(owner, 0, 0, b"").outcome, br::TRANSACTION_COMPLETE, "calls from it pass");
    assert_eq!(broker.ask(server, freeze(0)).errno, 0);
    assert_eq!(broker.ask(server, Request::FrozenInfo { pid: 1002 }).words, [0; 4]);
    assert_eq!(broker.call(server, 1, 0, b"").outcome, br::TRANSACTION_COMPLETE);
    assert_eq!(broker.ask(server, freeze(2)).errno, EAGAIN);
    assert_eq!(broker.ask(server, freeze(3)).errno, 0);
    assert_eq!(broker.call(server, 1, 0, b"").outcome, br::TRANSACTION_COMPLETE, "given up, so thawed");
}

#[test]
fn frz_02_a_freezer_that_dies_waiting_thaws() {
    let (mut broker, server, owner) = held();
    let freezer = broker.open();
    broker.call(server, 1, 0, b"");
    assert_eq!(broker.ask(freezer, freeze(2)).errno, EAGAIN);
    broker.core.close(freezer, &mut broker.host);
    assert_eq!(broker.call(server, 1, 0, b"").outcome, br::TRANSACTION_COMPLETE);
    broker.delivered(owner);
}

#[test]
fn frz_06_to_08_notifications() {
    let (mut broker, server, _) = held();
    let watch = |handle| Request::RequestFreeze { handle, cookie: 5 };
    let done = Request::FreezeDone { cookie: 5 };
    assert_eq!(broker.ask(server, watch(9)).errno, EINVAL);
    assert_eq!(broker.ask(server, watch(1)).errno, 0);
    assert_eq!(broker.ask(server, watch(1)).errno, EINVAL);
    assert_eq!(broker.ask(server, done).errno, EINVAL, "nothing was told yet");
    assert_eq!(broker.told(server), frozen(5, 0));
    broker.ask(server, freeze(2));
    broker.nothing(server);
    assert_eq!(broker.ask(server, done).errno, 0);
    assert_eq!(broker.told(server), frozen(5, 1));
    // A flip-flop before the acknowledgement repeats the state.
    broker.ask(server, freeze(0));
    broker.ask(server, freeze(2));
    broker.ask(server, done);
    assert_eq!(broker.told(server), frozen(5, 1));
    broker.ask(server, done);
    broker.nothing(server);
    broker.ask(server, freeze(2));
    assert_eq!(broker.told(server), frozen(5, 1), "freezing again repeats it");
    broker.ask(server, done);
    // Not read yet: what is read is the state then.
    broker.ask(server, freeze(0));
    broker.ask(server, freeze(2));
    assert_eq!(broker.told(server), frozen(5, 1));
    broker.nothing(server);
}

#[test]
fn frz_07_frz_09_dead_nodes_and_clearing() {
    let (mut broker, server, owner) = held();
    let watch = Request::RequestFreeze { handle: 1, cookie: 5 };
    let clear = |handle, cookie| Request::ClearFreeze { handle, cookie };
    let over = vec![(br::CLEAR_FREEZE_NOTIFICATION_DONE, [5, 0])];
    assert_eq!(broker.ask(server, clear(1, 5)).errno, EINVAL);
    broker.ask(server, watch);
    assert_eq!(broker.ask(server, clear(1, 6)).errno, EINVAL);
    assert_eq!(broker.ask(server, clear(9, 5)).errno, EINVAL);
    assert_eq!(broker.ask(server, clear(1, 5)).errno, 0);
    assert_eq!(broker.told(server), over, "instead of what was not read");
    broker.ask(server, watch);
    broker.told(server);
    broker.ask(server, clear(1, 5));
    broker.nothing(server);
    broker.ask(server, Request::FreezeDone { cookie: 5 });
    assert_eq!(broker.told(server), over);
    broker.core.close(owner, &mut broker.host);
    assert_eq!(broker.ask(server, watch).errno, 0);
    broker.nothing(server);
    broker.ask(server, clear(1, 5));
    assert_eq!(broker.told(server), over);
    broker.ask(server, watch);
    broker.count(server, bc::RELEASE, 1);
    assert!(!matches!(broker.next(server), Some(Item::Work { .. })));
}
