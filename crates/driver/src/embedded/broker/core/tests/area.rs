//! Room: the arena and buffers (contract section 7, OW-06 to OW-08).

use abi::codes::{br, tf};

use super::super::arena::{Arena, NoSpace, SIZE_MAX};
use super::super::refusal::ENOSPC;
use super::world::{MAP, Message, World};
use crate::embedded::protocol::Request;

#[test]
fn buf_02_buf_03_best_fit_from_the_base() {
    let mut arena = Arena::new(1024);
    let mut at = |len| arena.alloc(len, false, 1).unwrap().offset;
    assert_eq!((at(100), at(0), at(8), at(24), at(16)), (0, 104, 112, 120, 144));
    assert_eq!(arena.free(104), Some(8));
    assert_eq!(arena.free(120), Some(24));
    assert_eq!(arena.free(120), None, "it is free already");
    assert_eq!(arena.free(1), None, "no buffer begins there");
    assert_eq!(arena.alloc(8, false, 1).unwrap().offset, 104, "the smallest gap that fits");
    assert_eq!(arena.alloc(8, false, 1).unwrap().offset, 120, "its low end");
    assert_eq!(arena.alloc(17, false, 1).unwrap().offset, 160);
    assert_eq!(arena.buffers(), 6);
}

#[test]
fn buf_04_neighbours_join() {
    let mut arena = Arena::new(4096);
    for order in [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]] {
        let taken: Vec<u64> = (0..4).map(|_| arena.alloc(1024, false, 1).unwrap().offset).collect();
        assert_eq!(arena.alloc(0, false, 1), Err(NoSpace));
        order.iter().for_each(|at| assert_eq!(arena.free(taken[*at]), Some(1024)));
        assert_eq!(arena.alloc(4096, false, 1).unwrap().offset, 0);
        arena.free(0);
    }
}

#[test]
fn opn_06_four_mebibytes_at_most() {
    let arena = Arena::new(64 << 20);
    assert_eq!((arena.size(), arena.oneway_free()), (SIZE_MAX as u64, SIZE_MAX as u64 / 2));
    assert_eq!(Arena::new(0).alloc(0, false, 1), Err(NoSpace));
    assert_eq!(Arena::new(4096).alloc(u64::MAX, true, 1), Err(NoSpace));
}

#[test]
fn ow_06_half_for_oneway_all_for_calls() {
    let mut arena = Arena::new(4096);
    let taken = arena.alloc(2040, true, 1).unwrap().offset;
    arena.alloc(0, true, 1).unwrap();
    assert_eq!(arena.alloc(0, true, 1), Err(NoSpace), "also an empty one");
    arena.alloc(2040, false, 1).unwrap();
    arena.free(taken);
    assert_eq!(arena.oneway_free(), 2040);
    arena.alloc(2040, true, 1).unwrap();
}

#[test]
fn ow_07_ow_08_spam_is_reported_once_until_the_budget_recovers() {
    let mut arena = Arena::new(MAP);
    // Seen on the C driver: c c c c c c S c F F.
    let taken: Vec<_> = (0..10).map(|_| arena.alloc(8000, true, 1)).collect();
    let seen: String = taken
        .iter()
        .map(|taken| match taken {
            Ok(taken) if taken.suspect => 'S',
            Ok(_) => 'c',
            Err(NoSpace) => 'F',
        })
        .collect();
    assert_eq!(seen, "ccccccScFF");
    for taken in taken.into_iter().flatten() {
        arena.free(taken.offset);
    }
    for _ in 0..6 {
        assert!(!arena.alloc(8000, true, 1).unwrap().suspect);
    }
    assert!(arena.alloc(8000, true, 1).unwrap().suspect, "armed again");
    let mut arena = Arena::new(MAP);
    arena.alloc(26_000, true, 1).unwrap();
    arena.alloc(28_000, true, 3).unwrap();
    assert!(!arena.alloc(16, true, 2).unwrap().suspect, "another sender is not to blame");
    // The buffer that is being taken does not count itself.
    assert!((0..51).map(|_| arena.alloc(8, true, 2).unwrap().suspect).eq((0..51).map(|n| n == 50)));
}

#[test]
fn ow_07_the_sender_is_told_if_it_asked() {
    let mut world = World::default();
    let server = world.manager(0);
    let quiet = world.open();
    let watched = world.open();
    world.ask(watched, Request::SpamDetection { enable: true });
    let (big, small) = (vec![1; 35_000], vec![1; 20_000]);
    for (sender, suspected) in [(watched, br::ONEWAY_SPAM_SUSPECT), (quiet, br::TRANSACTION_COMPLETE)] {
        assert_eq!(world.call(sender, 0, tf::ONE_WAY, &big).outcome, br::TRANSACTION_COMPLETE);
        assert_eq!(world.call(sender, 0, tf::ONE_WAY, &small).outcome, suspected);
        if sender == watched {
            for _ in 0..2 {
                let buffer = world.delivered(server).buffer;
                world.free(server, buffer);
            }
        }
    }
    assert_eq!(world.call(quiet, 0, tf::ONE_WAY, &big).failed(), (br::FAILED_REPLY, ENOSPC));
    assert_eq!(world.call(quiet, 0, 0, &big).outcome, br::TRANSACTION_COMPLETE);
    world.end();
}

#[test]
fn buf_05_only_handed_over_buffers_are_freed() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    world.call(client, 0, tf::ONE_WAY, b"one");
    world.call(client, 0, tf::ONE_WAY, b"two");
    let first = world.delivered(server).buffer;
    // The second is not delivered: not the server's to free.
    for wrong in [first + 8, first + 4, 0x9999_9999, u64::MAX] {
        world.free(server, wrong);
    }
    world.nothing(server);
    world.free(client, first);
    world.free(server, first);
    world.free(server, first);
    assert_eq!(world.delivered(server).data_size, 3);
    world.nothing(server);
    world.end();
}

#[test]
fn buf_07_cleared_on_free_if_asked() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    world.call(client, 0, 0, b"visible!");
    let call = world.delivered(server);
    world.free(server, call.buffer);
    assert_eq!(world.area(server, call.buffer, 8), b"visible!");
    let said = world.call(client, 0, tf::CLEAR_BUF, b"secret!!");
    let call = world.delivered(server);
    world.free(server, call.buffer);
    assert_eq!(world.area(server, call.buffer, 8), [0; 8]);
    world.send(server, &Message::reply(said.id).flags(tf::CLEAR_BUF).data(b"secret!!"));
    let (buffer, ..) = world.replied(client);
    world.free(client, buffer);
    assert_eq!(world.area(client, buffer, 8), [0; 8]);
    world.end();
}

/// What comes behind a reply in the same write: the caller's next call must not find less room than there is for a
/// caller whose server is quick.
#[test]
fn buf_05_a_buffer_that_is_given_back_behind_a_reply_is_free_before_the_caller_goes_on() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    let most = vec![1; MAP - 64];
    for _ in 0..2 {
        let said = world.call(client, 0, 0, &most);
        assert_eq!(said.outcome, br::TRANSACTION_COMPLETE);
        let call = world.delivered(server);
        assert_eq!(world.call(client, 0, 0, &most).failed(), (br::FAILED_REPLY, ENOSPC), "it is full");
        let reply = Message { frees: Some(call.buffer), ..Message::reply(call.transaction) };
        assert_eq!(world.send(server, &reply).outcome, br::TRANSACTION_COMPLETE);
        let (buffer, ..) = world.replied(client);
        world.free(client, buffer);
    }
    world.end();
}

/// A reply that fails ends the write (contract WR-12), so that the command behind it is still to come.
#[test]
fn buf_05_behind_a_reply_that_fails_nothing_is_given_back() {
    let mut world = World::default();
    let server = world.manager(0);
    let client = world.open();
    world.call(client, 0, 0, b"hello");
    let call = world.delivered(server);
    let all = vec![0; MAP];
    let reply =
        Message { frees: Some(call.buffer), ..Message::reply(call.transaction).data(&vec![0; 2 * MAP]) };
    assert!(world.send(server, &reply).stops);
    world.refused(client);
    assert_eq!(world.call(client, 0, 0, &all).failed(), (br::FAILED_REPLY, ENOSPC), "it is still there");
    world.free(server, call.buffer);
    assert_eq!(world.call(client, 0, 0, &all).outcome, br::TRANSACTION_COMPLETE);
    world.delivered(server);
    world.end();
}
