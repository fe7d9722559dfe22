//! Room: death and freeze notifications, freezing (contract sections 10 and 11, EXT-05).

use abi::codes::{bc, br};

use super::super::refusal::{EAGAIN, EINVAL};
use super::world::{T1, World};
use crate::embedded::protocol::{Item, ProcId, Request};

/// A server that holds handle 1 of the owner's node.
fn held() -> (World, ProcId, ProcId) {
    let mut world = World::default();
    let server = world.manager(0);
    let owner = world.open();
    assert_eq!(world.export(owner, 0, server, 0x20, 0), 1);
    (world, server, owner)
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
    let (mut world, server, owner) = held();
    assert_eq!(world.ask(server, Request::RequestDeath { handle: 9, cookie: 1 }).errno, 0);
    world.ask(server, request(7));
    world.ask(server, request(8));
    world.nothing(server);
    world.core.close(owner, &mut world.out);
    assert_eq!(world.told(server), dead(7));
    world.nothing(server);
    world.ask(server, Request::DeathDone { cookie: 8, looper: true });
    world.ask(server, clear(7));
    world.nothing(server);
    world.ask(server, Request::DeathDone { cookie: 7, looper: true });
    let (work, thread, deferred) = world.work(server);
    assert_eq!((thread, deferred), (Some(T1), false));
    assert_eq!(world.take(server, work), cleared(7));
    // Again on the dead node: at once; acknowledged first, then taken back.
    world.ask(server, request(9));
    assert_eq!(world.told(server), dead(9));
    world.ask(server, Request::DeathDone { cookie: 9, looper: false });
    world.ask(server, clear(9));
    assert_eq!(world.told(server), cleared(9));
    assert_eq!(world.core.procs[&server].deaths.len(), 0);
    world.end();
}

#[test]
fn dth_05_a_clear_between_death_and_reading() {
    let (mut world, server, owner) = held();
    world.ask(server, request(7));
    world.core.close(owner, &mut world.out);
    world.ask(server, clear(7));
    assert_eq!(world.told(server), dead(7));
    world.nothing(server);
    world.ask(server, Request::DeathDone { cookie: 7, looper: false });
    assert_eq!(world.told(server), cleared(7));
    world.end();
}

#[test]
fn dth_06_dth_07_taking_it_back() {
    let (mut world, server, owner) = held();
    world.ask(server, clear(7));
    world.ask(server, request(7));
    world.ask(server, clear(8));
    world.nothing(server);
    world.ask(server, Request::ClearDeath { handle: 1, cookie: 7, looper: true });
    let (work, thread, _) = world.work(server);
    assert_eq!((thread, world.take(server, work)), (Some(T1), cleared(7)));
    world.ask(server, request(7));
    world.count(server, bc::RELEASE, 1);
    world.core.close(owner, &mut world.out);
    world.nothing(server);
    assert_eq!(world.core.procs[&server].deaths.len(), 0);
    world.end();
}

#[test]
fn dth_08_ext_05_the_order_of_an_end() {
    let (mut world, server, owner) = held();
    world.export(owner, 0, server, 0x10, 0);
    for (handle, cookie) in [(1, 0x20), (2, 0x10)] {
        world.ask(server, Request::RequestDeath { handle, cookie });
    }
    world.call(server, 1, 0, b"");
    world.core.close(owner, &mut world.out);
    assert_eq!(world.refused(server).0, br::DEAD_REPLY);
    assert_eq!((world.told(server), world.told(server)), (dead(0x10), dead(0x20)), "by ptr");
    assert_eq!(world.call(server, 1, 0, b"").failed().0, br::DEAD_REPLY);
    world.end();
}

fn freeze(step: u32) -> Request {
    Request::Freeze { pid: 1002, step }
}

fn frozen(cookie: u64, state: u64) -> Vec<(u32, [u64; 2])> {
    vec![(br::FROZEN_BINDER, [cookie, state])]
}

#[test]
fn frz_01_to_05_freezing() {
    let (mut world, server, owner) = held();
    let twin = world.open_as(|client| client.pid = 1002);
    assert_eq!(world.ask(server, Request::Freeze { pid: 4, step: 2 }).errno, EINVAL);
    assert_eq!(world.ask(server, Request::FrozenInfo { pid: 4 }).errno, EINVAL);
    assert_eq!(world.ask(server, freeze(9)).errno, EINVAL);
    let call = world.call(server, 1, 0, b"");
    assert_eq!(world.ask(server, freeze(2)).errno, EAGAIN, "one is pending");
    assert_eq!(world.call(server, 1, 0, b"").failed(), (br::FROZEN_REPLY, 0));
    assert_eq!(world.ask(server, Request::FrozenInfo { pid: 1002 }).words, [3, 0, 0, 0]);
    world.delivered(owner);
    world.reply(owner, call.id, b"");
    world.replied(server);
    world.out.busy.insert(twin);
    assert_eq!(world.ask(server, freeze(1)).errno, EAGAIN, "the whole process counts");
    world.out.busy.clear();
    assert_eq!(world.ask(server, freeze(1)).errno, 0);
    assert_eq!(world.call(server, 1, abi::codes::tf::ONE_WAY, b"").outcome, br::TRANSACTION_PENDING_FROZEN);
    assert_eq!(world.ask(server, Request::FrozenInfo { pid: 1002 }).words, [1, 1, 0, 0]);
    assert_eq!(world.call(owner, 0, 0, b"").outcome, br::TRANSACTION_COMPLETE, "calls from it pass");
    assert_eq!(world.ask(server, freeze(0)).errno, 0);
    assert_eq!(world.ask(server, Request::FrozenInfo { pid: 1002 }).words, [0; 4]);
    assert_eq!(world.call(server, 1, 0, b"").outcome, br::TRANSACTION_COMPLETE);
    assert_eq!(world.ask(server, freeze(2)).errno, EAGAIN);
    assert_eq!(world.ask(server, freeze(3)).errno, 0);
    assert_eq!(world.call(server, 1, 0, b"").outcome, br::TRANSACTION_COMPLETE, "given up, so thawed");
    world.end();
}

#[test]
fn frz_02_a_freezer_that_dies_waiting_thaws() {
    let (mut world, server, owner) = held();
    let freezer = world.open();
    world.call(server, 1, 0, b"");
    assert_eq!(world.ask(freezer, freeze(2)).errno, EAGAIN);
    world.core.close(freezer, &mut world.out);
    assert_eq!(world.call(server, 1, 0, b"").outcome, br::TRANSACTION_COMPLETE);
    world.delivered(owner);
    world.end();
}

#[test]
fn frz_06_to_08_notifications() {
    let (mut world, server, _) = held();
    let watch = |handle| Request::RequestFreeze { handle, cookie: 5 };
    let done = Request::FreezeDone { cookie: 5 };
    assert_eq!(world.ask(server, watch(9)).errno, EINVAL);
    assert_eq!(world.ask(server, watch(1)).errno, 0);
    assert_eq!(world.ask(server, watch(1)).errno, EINVAL);
    assert_eq!(world.ask(server, done).errno, EINVAL, "nothing was told yet");
    assert_eq!(world.told(server), frozen(5, 0));
    world.ask(server, freeze(2));
    world.nothing(server);
    assert_eq!(world.ask(server, done).errno, 0);
    assert_eq!(world.told(server), frozen(5, 1));
    // A flip-flop before the acknowledgement repeats the state.
    world.ask(server, freeze(0));
    world.ask(server, freeze(2));
    world.ask(server, done);
    assert_eq!(world.told(server), frozen(5, 1));
    world.ask(server, done);
    world.nothing(server);
    world.ask(server, freeze(2));
    assert_eq!(world.told(server), frozen(5, 1), "freezing again repeats it");
    world.ask(server, done);
    // Not read yet: what is read is the state then.
    world.ask(server, freeze(0));
    world.ask(server, freeze(2));
    assert_eq!(world.told(server), frozen(5, 1));
    world.nothing(server);
    world.end();
}

#[test]
fn frz_07_frz_09_dead_nodes_and_clearing() {
    let (mut world, server, owner) = held();
    let watch = Request::RequestFreeze { handle: 1, cookie: 5 };
    let clear = |handle, cookie| Request::ClearFreeze { handle, cookie };
    let over = vec![(br::CLEAR_FREEZE_NOTIFICATION_DONE, [5, 0])];
    assert_eq!(world.ask(server, clear(1, 5)).errno, EINVAL);
    world.ask(server, watch);
    assert_eq!(world.ask(server, clear(1, 6)).errno, EINVAL);
    assert_eq!(world.ask(server, clear(9, 5)).errno, EINVAL);
    assert_eq!(world.ask(server, clear(1, 5)).errno, 0);
    assert_eq!(world.told(server), over, "instead of what was not read");
    world.ask(server, watch);
    world.told(server);
    world.ask(server, clear(1, 5));
    world.nothing(server);
    world.ask(server, Request::FreezeDone { cookie: 5 });
    assert_eq!(world.told(server), over);
    world.core.close(owner, &mut world.out);
    assert_eq!(world.ask(server, watch).errno, 0);
    world.nothing(server);
    world.ask(server, clear(1, 5));
    assert_eq!(world.told(server), over);
    world.ask(server, watch);
    world.count(server, bc::RELEASE, 1);
    assert!(!matches!(world.next(server), Some(Item::Work { .. })));
    world.end();
}
