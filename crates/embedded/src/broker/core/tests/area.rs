//! The arena and buffers (contract section 7, OW-06 to OW-08).

use abi::codes::{br, tf};
use fastrand::Rng;

use super::super::arena::{Arena, NoSpace, SIZE_MAX};
use super::super::test_broker::{MAP, Message, TestBroker};
use crate::rpc::protocol::Request;
use crate::shm::lease::Range;
use sys::errno::ENOSPC;

/// The owner of a receiving area places buffers beside those of the core.
#[test]
fn buf_04_what_the_owner_placed_is_used() {
    let (mut broker, manager, client) = TestBroker::pair(0);
    let size = MAP as u32;
    broker
        .host
        .placed
        .insert(manager, vec![Range { start: 0, len: 64 }, Range { start: 128, len: size - 128 }]);
    assert_eq!(broker.call(client, 0, 0, &[1; 72]).failed(), (br::FAILED_REPLY, ENOSPC));
    assert_eq!(broker.host.leased[&manager], [Range { start: 64, len: 64 }]);
    let said = broker.call(client, 0, 0, &[1; 48]);
    assert_eq!(said.outcome, br::TRANSACTION_COMPLETE);
    assert_eq!(broker.delivered(manager).buffer, 64);
    assert_eq!(broker.host.leased[&manager], [Range { start: 112, len: 16 }]);
    broker.host.placed.insert(manager, vec![Range::default()]);
    broker.free(manager, 64);
    assert_eq!(broker.host.leased[&manager], [Range { start: 0, len: size }]);
    broker.free(manager, 0);
    broker.reply(manager, said.id, b"");
}

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
    let (mut broker, server, quiet) = TestBroker::pair(0);
    let watched = broker.open();
    broker.ask(watched, Request::SpamDetection { enable: true });
    let (big, small) = (vec![1; 35_000], vec![1; 20_000]);
    for (sender, suspected) in [(watched, br::ONEWAY_SPAM_SUSPECT), (quiet, br::TRANSACTION_COMPLETE)] {
        assert_eq!(broker.call(sender, 0, tf::ONE_WAY, &big).outcome, br::TRANSACTION_COMPLETE);
        assert_eq!(broker.call(sender, 0, tf::ONE_WAY, &small).outcome, suspected);
        if sender == watched {
            for _ in 0..2 {
                let buffer = broker.delivered(server).buffer;
                broker.free(server, buffer);
            }
        }
    }
    assert_eq!(broker.call(quiet, 0, tf::ONE_WAY, &big).failed(), (br::FAILED_REPLY, ENOSPC));
    assert_eq!(broker.call(quiet, 0, 0, &big).outcome, br::TRANSACTION_COMPLETE);
}

#[test]
fn buf_05_only_handed_over_buffers_are_freed() {
    let (mut broker, server, client) = TestBroker::pair(0);
    broker.call(client, 0, tf::ONE_WAY, b"one");
    broker.call(client, 0, tf::ONE_WAY, b"two");
    let first = broker.delivered(server).buffer;
    // The second is not delivered: not the server's to free.
    for wrong in [first + 8, first + 4, 0x9999_9999, u64::MAX] {
        broker.free(server, wrong);
    }
    broker.nothing(server);
    broker.free(client, first);
    broker.free(server, first);
    broker.free(server, first);
    assert_eq!(broker.delivered(server).data_size, 3);
    broker.nothing(server);
}

#[test]
fn buf_07_cleared_on_free_if_asked() {
    let (mut broker, server, client) = TestBroker::pair(0);
    broker.call(client, 0, 0, b"visible!");
    let call = broker.delivered(server);
    broker.free(server, call.buffer);
    assert_eq!(broker.area(server, call.buffer, 8), b"visible!");
    let said = broker.call(client, 0, tf::CLEAR_BUF, b"secret!!");
    let call = broker.delivered(server);
    broker.free(server, call.buffer);
    assert_eq!(broker.area(server, call.buffer, 8), [0; 8]);
    broker.send(server, &Message::reply(said.id).flags(tf::CLEAR_BUF).data(b"secret!!"));
    let (buffer, ..) = broker.replied(client);
    broker.free(client, buffer);
    assert_eq!(broker.area(client, buffer, 8), [0; 8]);
}

/// A free behind a reply in the same write: the caller's next call must find as much room as a caller with a fast
/// server finds.
#[test]
fn buf_05_a_buffer_that_is_given_back_behind_a_reply_is_free_before_the_caller_goes_on() {
    let (mut broker, server, client) = TestBroker::pair(0);
    let most = vec![1; MAP - 64];
    for _ in 0..2 {
        let said = broker.call(client, 0, 0, &most);
        assert_eq!(said.outcome, br::TRANSACTION_COMPLETE);
        let call = broker.delivered(server);
        assert_eq!(broker.call(client, 0, 0, &most).failed(), (br::FAILED_REPLY, ENOSPC), "it is full");
        let reply = Message { frees: Some(call.buffer), ..Message::reply(call.transaction) };
        assert_eq!(broker.send(server, &reply).outcome, br::TRANSACTION_COMPLETE);
        let (buffer, ..) = broker.replied(client);
        broker.free(client, buffer);
    }
}

/// A failed reply ends the write (contract WR-12), so the command behind it has not run.
#[test]
fn buf_05_behind_a_reply_that_fails_nothing_is_given_back() {
    let (mut broker, server, client) = TestBroker::pair(0);
    broker.call(client, 0, 0, b"hello");
    let call = broker.delivered(server);
    let all = vec![0; MAP];
    let reply =
        Message { frees: Some(call.buffer), ..Message::reply(call.transaction).data(&vec![0; 2 * MAP]) };
    assert!(broker.send(server, &reply).stops);
    broker.refused(client);
    assert_eq!(broker.call(client, 0, 0, &all).failed(), (br::FAILED_REPLY, ENOSPC), "it is still there");
    broker.free(server, call.buffer);
    assert_eq!(broker.call(client, 0, 0, &all).outcome, br::TRANSACTION_COMPLETE);
    broker.delivered(server);
}

/// Also ranges that no owner would place: counted ranges never overlap, and none is lost.
#[test]
fn whatever_an_owner_places_nothing_overlaps_or_is_lost() {
    const SIZE: usize = 1 << 12;
    let mut rng = Rng::with_seed(11);
    let mut arena = Arena::new(SIZE);
    let mut own: Vec<Range> = vec![];
    let mut placed = [Range::default(); 8];
    for _ in 0..40_000 {
        match rng.u64(..3) {
            0 => {
                // A small number in most cases.
                let any = |rng: &mut Rng| if rng.u64(..12) == 0 { rng.u32(..) } else { rng.u32(..6) };
                let any = |rng: &mut Rng| any(rng).wrapping_mul(8 << rng.u64(..6));
                placed[rng.usize(..8)] = Range { start: any(&mut rng), len: any(&mut rng) };
                arena.count_placed(&placed[..rng.usize(..9)]);
            }
            1 => {
                let len = rng.u64(..1000);
                if let Ok(taken) = arena.alloc(len, rng.bool(), rng.u32(..3)) {
                    let len = len.max(1).next_multiple_of(8) as u32;
                    own.push(Range { start: taken.offset as u32, len });
                }
            }
            _ if own.is_empty() => {}
            _ => {
                let range = own.swap_remove(rng.usize(..own.len()));
                assert_eq!(arena.free(range.start.into()), Some(range.len.into()));
            }
        }
        let mut all: Vec<Range> = arena.largest_gaps(usize::MAX).chain(own.iter().copied()).collect();
        all.extend(arena.placed().iter().filter(|range| range.len > 0));
        all.sort_unstable();
        let end = all.iter().fold(0, |end, range| {
            assert_eq!(range.start, end, "{all:?}");
            range.end()
        });
        assert_eq!(end, SIZE as u32);
    }
    arena.count_placed(&[]);
    assert!(own.iter().all(|range| arena.free(range.start.into()).is_some()));
    assert_eq!((arena.buffers(), arena.oneway_free()), (0, SIZE as u64 / 2));
    assert_eq!(arena.alloc(SIZE as u64, false, 1).unwrap().offset, 0);
}
