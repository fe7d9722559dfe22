//! Objects in transactions (contract section 8).

use std::fs::File;
use std::os::fd::OwnedFd;

use abi::codes::{bc, br, flat, object, tf};

use super::super::test_broker::{BASE, Message, T1, TestBroker};
use crate::rpc::protocol::{Item, Request};
use sys::errno::{EBADF, EFAULT, EINVAL, EPERM};

fn fds(count: usize) -> Vec<OwnedFd> {
    (0..count).map(|_| File::open("/dev/null").unwrap().into()).collect()
}

fn failed(errno: i32) -> (u32, i32) {
    (br::FAILED_REPLY, errno)
}

#[test]
fn obj_01_offsets_and_what_they_find() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let node = Message::call(0).node(1, 2, 0);
    let at = |offsets: &[u64]| Message { offsets: offsets.to_vec(), ..node.clone() };
    for (offsets, errno) in
        [(vec![2], EINVAL), (vec![4], EINVAL), (vec![24], EINVAL), (vec![32], EFAULT), (vec![0, 0], EFAULT)]
    {
        assert_eq!(broker.send(client, &at(&offsets)).failed(), failed(errno), "{offsets:?}");
    }
    assert_eq!(broker.send(client, &at(&[u64::MAX - 3])).failed(), failed(EFAULT));
    let unknown = Message::call(0).object(&[0x1234, 0, 0]);
    assert_eq!(broker.send(client, &unknown).failed(), failed(EINVAL));
    let cut = Message::call(0).object(&[u64::from(object::PTR), 0, 0]);
    assert_eq!(broker.send(client, &cut).failed(), failed(EINVAL));
    broker.nothing(server);
    assert_eq!(broker.core.procs[&client].nodes.len(), 0, "nothing is left of them");
    assert!(broker.core.procs[&server].buffers.is_empty());
}

#[test]
fn obj_02_sizes_are_multiples_of_8() {
    let (mut broker, _, client) = TestBroker::pair(0);
    let mut transact = Message::call(0).node(1, 2, 0).transact();
    transact.offsets_size = 7;
    let said = broker.ask_with(client, T1, Request::Transact { transact }, &[0; 64], Vec::new());
    assert_eq!(said.failed(), failed(EINVAL));
    let odd = Message { buffers_size: Some(12), ..Message::call(0) };
    assert_eq!(broker.send(client, &odd).failed(), failed(EINVAL));
}

#[test]
fn obj_03_to_06_nodes_and_handles() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let third = broker.open();
    let message = Message::call(0).data(b"head").node(0x20, 0x21, 0x7f).data(b"tail");
    broker.send(client, &message);
    broker.hear(client);
    let call = broker.delivered(server);
    assert_eq!(broker.area(server, call.buffer, 4), b"head");
    assert_eq!(broker.word32(server, call.buffer + 4), object::HANDLE);
    assert_eq!(broker.word32(server, call.buffer + 8), 0x7f);
    assert_eq!([broker.word(server, call.buffer + 12), broker.word(server, call.buffer + 20)], [1, 0]);
    assert_eq!(broker.area(server, call.buffer + 28, 4), b"tail");
    assert_eq!(broker.word(server, call.buffer + 32), 4, "the offset");
    assert_eq!(broker.send(client, &Message::call(0).node(0x20, 0x22, 0)).failed(), failed(EINVAL));
    // The first flags count.
    broker.send(client, &Message::call(0).oneway().node(0x20, 0x21, flat::ACCEPTS_FDS));
    assert_eq!(broker.send_fds(server, &Message::call(1).fd(), fds(1)).failed(), failed(EPERM));
    // The handle returns to its owner, and goes on to a third process.
    broker.send(server, &Message::call(1).handle(1));
    let back = broker.delivered(client);
    assert_eq!(broker.word32(client, back.buffer), object::BINDER);
    assert_eq!([broker.word(client, back.buffer + 8), broker.word(client, back.buffer + 16)], [0x20, 0x21]);
    let asked = broker.call(third, 0, 0, b"");
    broker.send(server, &Message::reply(asked.id).flat(object::WEAK_HANDLE, 0, 0xffff_ffff_0000_0001, 7));
    let (buffer, data, offsets) = broker.replied(third);
    assert_eq!((data, offsets), (24, 8));
    assert_eq!(broker.word32(third, buffer), object::WEAK_HANDLE);
    assert_eq!([broker.word(third, buffer + 8), broker.word(third, buffer + 16)], [1, 0]);
}

#[test]
fn obj_07_obj_08_counts_per_occurrence() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let third = broker.open();
    let handle = broker.export(client, 0, server, 0x20, 0);
    assert_eq!(handle, 1);
    let message = Message::call(0).oneway().node(0x20, 0x21, 0).node(0x20, 0x21, 0);
    broker.send(client, &message);
    let call = broker.delivered(server);
    assert_eq!(broker.core.procs[&server].refs.get(1).unwrap().strong, 3);
    broker.free(server, call.buffer);
    assert_eq!(broker.core.procs[&server].refs.get(1).unwrap().strong, 1);
    broker.count(server, bc::INCREFS, 1);
    broker.count(server, bc::RELEASE, 1);
    let asked = broker.call(third, 0, 0, b"");
    broker.send(server, &Message::reply(asked.id).handle(1));
    assert_eq!(broker.refused(third).1.param, -EINVAL, "a weak handle is not passed on as a strong one");
    let asked = broker.call(third, 0, 0, b"");
    broker.send(server, &Message::reply(asked.id).flat(object::WEAK_HANDLE, 0, 1, 0));
    broker.replied(third);
}

#[test]
fn obj_09_to_12_descriptors() {
    let (mut broker, server, client) = TestBroker::pair(0);
    assert_eq!(broker.send_fds(client, &Message::call(0).fd(), fds(1)).failed(), failed(EPERM));
    let asked = broker.call(client, 0, 0, b"");
    broker.send_fds(server, &Message::reply(asked.id).fd(), fds(1));
    assert_eq!(broker.refused(client).1.param, -EPERM);
    let asked = broker.call(client, 0, tf::ACCEPT_FDS, b"");
    broker.send_fds(server, &Message::reply(asked.id).fd().fd(), fds(2));
    let Some(Item::Reply { buffer, number, fds: 2, .. }) = broker.next(client) else { panic!("a reply") };
    assert_eq!([broker.word(client, buffer + 8), broker.word(client, buffer + 32)], [0, 1], "their places");
    assert_eq!(broker.word(client, buffer + 16), 9, "the cookie stays");
    assert!(broker.core.take_fds(server, number).is_empty());
    assert_eq!(broker.core.take_fds(client, number).len(), 2);
    assert!(broker.core.take_fds(client, number).is_empty(), "once");
    let (mut broker, server, client) = TestBroker::pair(flat::ACCEPTS_FDS);
    let bad = Message { fault: (0, EBADF), ..Message::call(0).fd() };
    assert_eq!(broker.send(client, &bad).failed(), failed(EBADF));
    assert_eq!(broker.send(client, &Message::call(0).fd()).failed(), failed(EBADF));
    let said = broker.send_fds(client, &Message::call(0).fd(), fds(1));
    let call = broker.delivered(server);
    assert_eq!((call.fds, call.transaction), (1, said.id));
    broker.ask(server, Request::Undeliverable { transaction: said.id, errno: 24 });
    assert_eq!(broker.refused(client).1.param, -24);
    assert!(broker.core.procs[&server].buffers.is_empty() && broker.core.procs[&server].pinned_fds == 0);
    // A oneway call that cannot be delivered makes room for the next.
    let said = broker.send_fds(client, &Message::call(0).oneway().fd(), fds(1));
    broker.call(client, 0, tf::ONE_WAY, b"");
    broker.delivered(server);
    broker.ask(server, Request::Undeliverable { transaction: said.id, errno: i32::MIN });
    broker.nothing(client);
    assert_eq!(broker.delivered(server).fds, 0);
}

#[test]
fn obj_15_obj_16_scattered_buffers() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let parent = [7_u8; 24];
    let message = Message::call(0).data(&[0; 8]).ptr(&parent, None).ptr(b"child", Some((0, 8)));
    let said = broker.send(client, &message);
    assert_eq!(said.outcome, br::TRANSACTION_COMPLETE);
    let call = broker.delivered(server);
    let scattered = call.buffer + 88 + 16;
    assert_eq!(broker.word(server, call.buffer + 16), BASE + scattered);
    assert_eq!(broker.word(server, call.buffer + 56), BASE + scattered + 24);
    assert_eq!(broker.area(server, scattered, 8), [7; 8]);
    assert_eq!(broker.word(server, scattered + 8), BASE + scattered + 24);
    assert_eq!(broker.area(server, scattered + 24, 5), b"child");
    let small = Message { buffers_size: Some(24), ..message.clone() };
    assert_eq!(broker.send(client, &small).failed(), failed(EINVAL));
    let fault = Message { fault: (1, EFAULT), gathered: parent.to_vec(), ..message };
    let fault = Message { buffers_size: Some(32), ..fault };
    assert_eq!(broker.send(client, &fault).failed(), failed(EFAULT));
}

#[test]
fn obj_17_obj_18_where_fix_ups_may_go() {
    let (mut broker, _, client) = TestBroker::pair(0);
    let two = |first: (u64, u64), second: (u64, u64)| {
        let parent = [0; 32];
        Message::call(0)
            .data(&[0; 8])
            .ptr(&parent, None)
            .ptr(&[0; 16], Some(first))
            .ptr(&[1; 8], Some(second))
    };
    let cases = [
        ((0, 0), (0, 8), true),
        ((0, 8), (0, 0), false),
        ((0, 0), (0, 0), false),
        ((0, 0), (1, 0), true),
        ((0, 0), (1, 8), true),
        ((0, 0), (1, 9), false),
        ((0, 24), (1, 0), true),
        ((0, 25), (1, 0), false),
        ((1, 0), (0, 0), false),
        ((0, u64::MAX), (1, 0), false),
        ((0, 0), (u64::MAX, 0), false),
    ];
    for (first, second, fine) in cases {
        let said = broker.send(client, &two(first, second));
        assert_eq!(said.outcome == br::TRANSACTION_COMPLETE, fine, "{first:?} {second:?}");
    }
    // Down to a grandchild, up again to the root, but never to the middle once it was left.
    let deep = |last| {
        let all = Message::call(0).data(&[0; 8]).ptr(&[0; 32], None).ptr(&[0; 16], Some((0, 0)));
        let all = all.ptr(&[0; 16], Some((1, 0))).ptr(&[0; 16], Some((0, 8)));
        all.ptr(&[0; 8], Some(last))
    };
    assert_eq!(broker.send(client, &deep((0, 16))).outcome, br::TRANSACTION_COMPLETE);
    assert_eq!(broker.send(client, &deep((1, 8))).failed(), failed(EINVAL));
    let at_0 = Message::call(0).ptr(&[0; 8], None).ptr(&[0; 8], Some((0, 0)));
    assert_eq!(broker.send(client, &at_0).failed(), failed(EINVAL));
}

#[test]
fn obj_19_arrays_of_descriptors() {
    let (mut broker, server, client) = TestBroker::pair(flat::ACCEPTS_FDS);
    let message =
        |count, parent, offset| Message::call(0).data(&[0; 8]).ptr(&[9; 16], None).fda(count, parent, offset);
    let said = broker.send_fds(client, &message(2, 0, 4), fds(2));
    assert_eq!(said.outcome, br::TRANSACTION_COMPLETE);
    let call = broker.delivered(server);
    let scattered = call.buffer + 80 + 16;
    assert_eq!(call.fds, 2);
    assert_eq!([broker.word32(server, scattered + 4), broker.word32(server, scattered + 8)], [0, 1]);
    assert_eq!(broker.word32(server, scattered + 12), 0x0909_0909);
    for (count, parent, offset) in
        [(2, 0, 2), (4, 0, 4), (5, 0, 0), (u64::MAX, 0, 0), (1 << 62, 0, 0), (1, 1, 0), (1, 0, u64::MAX - 3)]
    {
        let said = broker.send_fds(client, &message(count, parent, offset), fds(4));
        assert_eq!(said.failed(), failed(EINVAL), "{count} {parent} {offset}");
    }
    assert_eq!(broker.send_fds(client, &message(2, 0, 4), fds(1)).failed(), failed(EBADF));
    let (mut broker, _, client) = TestBroker::pair(0);
    assert_eq!(broker.send_fds(client, &message(1, 0, 0), fds(1)).failed(), failed(EPERM));
    assert_eq!(broker.send(client, &message(0, 0, 0)).outcome, br::TRANSACTION_COMPLETE);
}
