//! Room: nodes, handles and counts (contract section 9, IOC-04, IOC-05).

use abi::codes::{bc, br, object, tf};
use abi::layout::NodeInfoForRef;

use super::super::refusal::{EINVAL, EPERM};
use super::world::{Message, T1, T2, World};
use crate::embedded::protocol::{ProcId, Request};

const ACQUIRED: [(u32, [u64; 2]); 2] = [(br::INCREFS, [0x20, 0x21]), (br::ACQUIRE, [0x20, 0x21])];
const RELEASED: [(u32, [u64; 2]); 2] = [(br::RELEASE, [0x20, 0x21]), (br::DECREFS, [0x20, 0x21])];

#[test]
fn ref_01_ref_02_the_lowest_free_number() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    let handles: Vec<u32> = (2..5).map(|n| world.export(client, 0, server, n * 16, 0)).collect();
    assert_eq!(handles, [1, 2, 3]);
    assert_eq!(world.count(server, bc::RELEASE, 2), 0);
    assert_eq!(world.count(server, bc::RELEASE, 1), 0);
    assert_eq!(world.export(client, 0, server, 0x90, 0), 1);
    assert_eq!(world.export(client, 0, server, 0xa0, 0), 2);
    world.end();
}

#[test]
fn ref_03_ref_04_wrong_counting_is_ignored() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    let handle = world.export(client, 0, server, 0x20, 0);
    for command in [bc::INCREFS, bc::ACQUIRE, bc::RELEASE, bc::DECREFS] {
        assert_eq!(world.count(server, command, 99), 0);
    }
    assert_eq!(world.count(server, bc::DECREFS, handle), 0);
    assert_eq!(world.count(server, 77, handle), EINVAL);
    world.call(server, handle, tf::ONE_WAY, b"");
    let buffer = world.delivered(client).buffer;
    world.free(client, buffer);
    assert_eq!(world.count(server, bc::INCREFS, handle), 0);
    assert_eq!(world.count(server, bc::RELEASE, handle), 0);
    assert_eq!(world.count(server, bc::ACQUIRE, handle), 0, "and does not promote");
    assert_eq!(world.call(server, handle, 0, b"").failed(), (br::FAILED_REPLY, EINVAL));
    world.end();
}

#[test]
fn ref_05_ref_07_counting_handle_0() {
    let mut world = World::default();
    let first = world.manager(0);
    let client = world.open();
    assert_eq!(world.count(first, bc::ACQUIRE, 0), EINVAL);
    assert_eq!(world.send(client, &Message::call(0).handle(0)).failed().1, EINVAL);
    assert_eq!(world.count(client, bc::INCREFS, 0), 0);
    assert_eq!(world.count(client, bc::ACQUIRE, 0), 0, "handle 0 may be promoted");
    assert_eq!(world.send(client, &Message::call(0).handle(0)).outcome, br::TRANSACTION_COMPLETE);
    let call = world.delivered(first);
    assert_eq!(world.word32(first, call.buffer), object::BINDER);
    world.core.close(first, &mut world.out);
    world.refused(client);
    let second = world.manager(0);
    assert_eq!(world.count(client, bc::ACQUIRE, 0), 0);
    // The dead manager still has 0; the new one got another number.
    world.send(client, &Message::call(0).handle(1));
    assert_eq!(
        world.word32(second, world.core.procs[&second].buffers.keys().next().copied().unwrap()),
        object::BINDER
    );
    world.end();
}

#[test]
fn ref_08_to_12_what_the_owner_hears() {
    let mut world = World::default();
    let server = world.manager(0);
    let other = world.open();
    let owner = world.open();
    let mut message = Message::call(0).oneway().node(0x20, 0x21, 0);
    message.thread = T2;
    world.send(owner, &message);
    let (work, thread, deferred) = world.work(owner);
    assert_eq!((thread, deferred), (Some(T2), true));
    assert_eq!(world.take(owner, work), ACQUIRED);
    assert_eq!(world.take(owner, work), [], "once");
    let delivery = world.delivered(server);
    // A further holder adds nothing.
    world.manager_passes(server, 1, other);
    world.count(server, bc::ACQUIRE, 1);
    world.free(server, delivery.buffer);
    world.count(server, bc::RELEASE, 1);
    world.nothing(owner);
    // Acknowledgements that make no sense are ignored, so nothing is released yet.
    let done = |command, ptr, cookie| Request::CountDone { command, ptr, cookie };
    for (ptr, cookie) in [(0x20, 0x22), (0x21, 0x21)] {
        assert_eq!(world.ask(owner, done(bc::ACQUIRE_DONE, ptr, cookie)).errno, 0);
    }
    world.drop_passed(other);
    world.nothing(owner);
    world.ask(owner, done(bc::ACQUIRE_DONE, 0x20, 0x21));
    let (release, thread, _) = world.work(owner);
    assert_eq!(thread, None);
    world.ask(owner, done(bc::INCREFS_DONE, 0x20, 0x21));
    world.ask(owner, done(bc::INCREFS_DONE, 0x20, 0x21));
    assert_eq!(world.take(owner, release), RELEASED);
    assert_eq!(world.core.procs[&owner].nodes.len(), 0);
    world.end();
}

#[test]
fn ref_08_weak_holders_and_the_manager() {
    let mut world = World::default();
    let server = world.manager(0);
    let owner = world.open();
    world.send(owner, &Message::call(0).oneway().flat(object::WEAK_BINDER, 0, 0x20, 0x21));
    let (work, thread, deferred) = world.work(owner);
    assert_eq!((thread, deferred), (Some(T1), true));
    assert_eq!(world.take(owner, work), ACQUIRED[..1]);
    let delivery = world.delivered(server);
    world.free(server, delivery.buffer);
    world.ask(owner, Request::CountDone { command: bc::INCREFS_DONE, ptr: 0x20, cookie: 0x21 });
    assert_eq!(world.told(owner), RELEASED[1..]);
    world.count(owner, bc::ACQUIRE, 0);
    world.count(owner, bc::RELEASE, 0);
    world.nothing(server);
    world.end();
}

#[test]
fn ref_10_a_node_let_go_before_the_owner_reads_is_gone() {
    let mut world = World::default();
    let server = world.manager(0);
    let owner = world.open();
    world.send(owner, &Message::call(0).oneway().node(0x20, 0x21, 0));
    let (work, ..) = world.work(owner);
    let buffer = world.delivered(server).buffer;
    world.free(server, buffer);
    assert_eq!(world.take(owner, work), []);
    assert_eq!(world.core.procs[&owner].nodes.len(), 0);
    assert_eq!(world.core.procs[&owner].works.len(), 0);
    // Sent anew by another thread before the first has read: the second hears of it.
    world.send(owner, &Message::call(0).node(0x20, 0x21, 0));
    let mut message = Message::call(0).node(0x20, 0x21, 0);
    message.thread = T2;
    world.count(server, bc::ACQUIRE, 1);
    let (first, ..) = world.work(owner);
    world.send(owner, &message);
    world.nothing(owner);
    assert_eq!(world.take(owner, first), ACQUIRED);
    world.end();
}

#[test]
fn ref_13_a_call_holds_its_target() {
    let mut world = World::default();
    let server = world.manager(0);
    let owner = world.open();
    let handle = world.export(owner, 0, server, 0x20, 0);
    world.call(server, handle, tf::ONE_WAY, b"");
    let delivery = world.delivered(owner);
    world.count(server, bc::RELEASE, handle);
    world.nothing(owner);
    world.free(owner, delivery.buffer);
    assert_eq!(world.told(owner), RELEASED);
    world.end();
}

#[test]
fn ref_14_work_that_an_exited_thread_had_is_not_missed_later() {
    let mut world = World::default();
    let server = world.manager(0);
    let owner = world.open();
    world.send(owner, &Message::call(0).oneway().flat(object::WEAK_BINDER, 0, 0x20, 0x21));
    let buffer = world.delivered(server).buffer;
    world.hear(owner);
    // Now strongly, by a thread that never reads it.
    world.send(owner, &Message::call(0).node(0x20, 0x21, 0));
    world.work(owner);
    let strong = world.core.procs[&server].buffers.keys().copied().find(|at| *at != buffer).unwrap();
    world.next(server);
    world.free(server, strong);
    world.free(server, buffer);
    assert_eq!(world.told(owner), RELEASED[1..]);
    world.end();
}

#[test]
fn ioc_04_node_info_for_ref() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    let handle = world.export(client, 0, server, 0x20, 0);
    let info = NodeInfoForRef { handle, ..Default::default() };
    assert_eq!(world.ask(client, Request::NodeInfoForRef { info }).errno, EPERM);
    let said = world.ask(server, Request::NodeInfoForRef { info });
    assert_eq!((said.errno, said.words[0]), (0, 1));
    let wrong = NodeInfoForRef { weak_count: 1, ..info };
    assert_eq!(world.ask(client, Request::NodeInfoForRef { info: wrong }).errno, EINVAL);
    let wrong = NodeInfoForRef { handle: 9, ..info };
    assert_eq!(world.ask(server, Request::NodeInfoForRef { info: wrong }).errno, EINVAL);
    world.end();
}

#[test]
fn ioc_05_own_nodes_upwards() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    for ptr in [0x50, 0, 0x30] {
        world.export(client, 0, server, ptr, 0);
    }
    let mut listed = vec![];
    let mut above = 0;
    loop {
        let [ptr, cookie, strong, weak] = world.ask(client, Request::NodeDebugInfo { above }).words;
        if ptr == 0 {
            break;
        }
        assert_eq!((cookie, strong, weak), (ptr + 1, 1, 1));
        listed.push(ptr);
        above = ptr;
    }
    assert_eq!(listed, [0x30, 0x50]);
    assert_eq!(world.ask(client, Request::NodeDebugInfo { above: u64::MAX }).words, [0; 4]);
    world.end();
}

impl World {
    /// The manager passes its `handle` to a process in the reply to a call of handle 0.
    fn manager_passes(&mut self, manager: ProcId, handle: u32, to: ProcId) {
        let said = self.call(to, 0, 0, b"");
        self.delivered(manager);
        self.send(manager, &Message::reply(said.id).handle(handle));
    }

    /// Frees the reply that is there.
    fn drop_passed(&mut self, proc: ProcId) {
        let (buffer, ..) = self.replied(proc);
        self.free(proc, buffer);
    }
}
