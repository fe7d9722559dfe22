//! Nodes, handles and counts (contract section 9, IOC-04, IOC-05).

use abi::codes::{bc, br, object, tf};
use abi::layout::NodeInfoForRef;

use super::super::test_broker::{Message, T1, T2, TestBroker};
use crate::rpc::protocol::{ProcId, Request};
use sys::errno::{EINVAL, EPERM};

const ACQUIRED: [(u32, [u64; 2]); 2] = [(br::INCREFS, [0x20, 0x21]), (br::ACQUIRE, [0x20, 0x21])];
const RELEASED: [(u32, [u64; 2]); 2] = [(br::RELEASE, [0x20, 0x21]), (br::DECREFS, [0x20, 0x21])];

#[test]
fn ref_01_ref_02_the_lowest_free_number() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let handles: Vec<u32> = (2..5).map(|n| broker.export(client, 0, server, n * 16, 0)).collect();
    assert_eq!(handles, [1, 2, 3]);
    assert_eq!(broker.count(server, bc::RELEASE, 2), 0);
    assert_eq!(broker.count(server, bc::RELEASE, 1), 0);
    assert_eq!(broker.export(client, 0, server, 0x90, 0), 1);
    assert_eq!(broker.export(client, 0, server, 0xa0, 0), 2);
}

#[test]
fn ref_03_ref_04_wrong_counting_is_ignored() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let handle = broker.export(client, 0, server, 0x20, 0);
    for command in [bc::INCREFS, bc::ACQUIRE, bc::RELEASE, bc::DECREFS] {
        assert_eq!(broker.count(server, command, 99), 0);
    }
    assert_eq!(broker.count(server, bc::DECREFS, handle), 0);
    assert_eq!(broker.count(server, 77, handle), EINVAL);
    broker.call(server, handle, tf::ONE_WAY, b"");
    let buffer = broker.delivered(client).buffer;
    broker.free(client, buffer);
    assert_eq!(broker.count(server, bc::INCREFS, handle), 0);
    assert_eq!(broker.count(server, bc::RELEASE, handle), 0);
    assert_eq!(broker.count(server, bc::ACQUIRE, handle), 0, "and does not promote");
    assert_eq!(broker.call(server, handle, 0, b"").failed(), (br::FAILED_REPLY, EINVAL));
}

#[test]
fn ref_05_ref_07_counting_handle_0() {
    let (mut broker, first, client) = TestBroker::pair(0);
    assert_eq!(broker.count(first, bc::ACQUIRE, 0), EINVAL);
    assert_eq!(broker.send(client, &Message::call(0).handle(0)).failed().1, EINVAL);
    assert_eq!(broker.count(client, bc::INCREFS, 0), 0);
    assert_eq!(broker.count(client, bc::ACQUIRE, 0), 0, "handle 0 may be promoted");
    assert_eq!(broker.send(client, &Message::call(0).handle(0)).outcome, br::TRANSACTION_COMPLETE);
    let call = broker.delivered(first);
    assert_eq!(broker.word32(first, call.buffer), object::BINDER);
    broker.core.close(first, &mut broker.host);
    broker.refused(client);
    let second = broker.manager(0);
    assert_eq!(broker.count(client, bc::ACQUIRE, 0), 0);
    // The dead manager still has 0; the new one got another number.
    broker.send(client, &Message::call(0).handle(1));
    assert_eq!(
        broker.word32(second, broker.core.procs[&second].buffers.keys().next().copied().unwrap()),
        object::BINDER
    );
}

#[test]
fn ref_08_to_12_what_the_owner_hears() {
    let (mut broker, server, other) = TestBroker::pair(0);
    let owner = broker.open();
    let mut message = Message::call(0).oneway().node(0x20, 0x21, 0);
    message.thread = T2;
    broker.send(owner, &message);
    let (work, thread, deferred) = broker.work(owner);
    assert_eq!((thread, deferred), (Some(T2), true));
    assert_eq!(broker.take(owner, work), ACQUIRED);
    assert_eq!(broker.take(owner, work), [], "once");
    let delivery = broker.delivered(server);
    // A further holder adds nothing.
    broker.manager_passes(server, 1, other);
    broker.count(server, bc::ACQUIRE, 1);
    broker.free(server, delivery.buffer);
    broker.count(server, bc::RELEASE, 1);
    broker.nothing(owner);
    // Acknowledgements that make no sense are ignored, so nothing is released yet.
    let done = |command, ptr, cookie| Request::CountDone { command, ptr, cookie };
    for (ptr, cookie) in [(0x20, 0x22), (0x21, 0x21)] {
        assert_eq!(broker.ask(owner, done(bc::ACQUIRE_DONE, ptr, cookie)).errno, 0);
    }
    broker.drop_passed(other);
    broker.nothing(owner);
    broker.ask(owner, done(bc::ACQUIRE_DONE, 0x20, 0x21));
    let (release, thread, _) = broker.work(owner);
    assert_eq!(thread, None);
    broker.ask(owner, done(bc::INCREFS_DONE, 0x20, 0x21));
    broker.ask(owner, done(bc::INCREFS_DONE, 0x20, 0x21));
    assert_eq!(broker.take(owner, release), RELEASED);
    assert_eq!(broker.core.procs[&owner].nodes.len(), 0);
}

#[test]
fn ref_08_weak_holders_and_the_manager() {
    let (mut broker, server, owner) = TestBroker::pair(0);
    broker.send(owner, &Message::call(0).oneway().flat(object::WEAK_BINDER, 0, 0x20, 0x21));
    let (work, thread, deferred) = broker.work(owner);
    assert_eq!((thread, deferred), (Some(T1), true));
    assert_eq!(broker.take(owner, work), ACQUIRED[..1]);
    let delivery = broker.delivered(server);
    broker.free(server, delivery.buffer);
    broker.ask(owner, Request::CountDone { command: bc::INCREFS_DONE, ptr: 0x20, cookie: 0x21 });
    assert_eq!(broker.told(owner), RELEASED[1..]);
    broker.count(owner, bc::ACQUIRE, 0);
    broker.count(owner, bc::RELEASE, 0);
    broker.nothing(server);
}

#[test]
fn ref_10_a_node_let_go_before_the_owner_reads_is_gone() {
    let (mut broker, server, owner) = TestBroker::pair(0);
    broker.send(owner, &Message::call(0).oneway().node(0x20, 0x21, 0));
    let (work, ..) = broker.work(owner);
    let buffer = broker.delivered(server).buffer;
    broker.free(server, buffer);
    assert_eq!(broker.take(owner, work), []);
    assert_eq!(broker.core.procs[&owner].nodes.len(), 0);
    assert_eq!(broker.core.procs[&owner].works.len(), 0);
    // Sent anew by another thread before the first has read: the second hears of it.
    broker.send(owner, &Message::call(0).node(0x20, 0x21, 0));
    let mut message = Message::call(0).node(0x20, 0x21, 0);
    message.thread = T2;
    broker.count(server, bc::ACQUIRE, 1);
    let (first, ..) = broker.work(owner);
    broker.send(owner, &message);
    broker.nothing(owner);
    assert_eq!(broker.take(owner, first), ACQUIRED);
}

#[test]
fn ref_13_a_call_holds_its_target() {
    let (mut broker, server, owner) = TestBroker::pair(0);
    let handle = broker.export(owner, 0, server, 0x20, 0);
    broker.call(server, handle, tf::ONE_WAY, b"");
    let delivery = broker.delivered(owner);
    broker.count(server, bc::RELEASE, handle);
    broker.nothing(owner);
    broker.free(owner, delivery.buffer);
    assert_eq!(broker.told(owner), RELEASED);
}

#[test]
fn ref_14_work_that_an_exited_thread_had_is_not_missed_later() {
    let (mut broker, server, owner) = TestBroker::pair(0);
    broker.send(owner, &Message::call(0).oneway().flat(object::WEAK_BINDER, 0, 0x20, 0x21));
    let buffer = broker.delivered(server).buffer;
    broker.hear(owner);
    // Now strongly, by a thread that never reads it.
    broker.send(owner, &Message::call(0).node(0x20, 0x21, 0));
    broker.work(owner);
    let strong = broker.core.procs[&server].buffers.keys().copied().find(|at| *at != buffer).unwrap();
    broker.next(server);
    broker.free(server, strong);
    broker.free(server, buffer);
    assert_eq!(broker.told(owner), RELEASED[1..]);
}

#[test]
fn ioc_04_node_info_for_ref() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let handle = broker.export(client, 0, server, 0x20, 0);
    let info = NodeInfoForRef { handle, ..Default::default() };
    assert_eq!(broker.ask(client, Request::NodeInfoForRef { info }).errno, EPERM);
    let said = broker.ask(server, Request::NodeInfoForRef { info });
    assert_eq!((said.errno, said.words[0]), (0, 1));
    let wrong = NodeInfoForRef { weak_count: 1, ..info };
    assert_eq!(broker.ask(client, Request::NodeInfoForRef { info: wrong }).errno, EINVAL);
    let wrong = NodeInfoForRef { handle: 9, ..info };
    assert_eq!(broker.ask(server, Request::NodeInfoForRef { info: wrong }).errno, EINVAL);
}

#[test]
fn ioc_05_own_nodes_upwards() {
    let (mut broker, server, client) = TestBroker::pair(0);
    for ptr in [0x50, 0, 0x30] {
        broker.export(client, 0, server, ptr, 0);
    }
    let mut listed = vec![];
    let mut above = 0;
    loop {
        let [ptr, cookie, strong, weak] = broker.ask(client, Request::NodeDebugInfo { above }).words;
        if ptr == 0 {
            break;
        }
        assert_eq!((cookie, strong, weak), (ptr + 1, 1, 1));
        listed.push(ptr);
        above = ptr;
    }
    assert_eq!(listed, [0x30, 0x50]);
    assert_eq!(broker.ask(client, Request::NodeDebugInfo { above: u64::MAX }).words, [0; 4]);
}

impl TestBroker {
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
