//! Room: random requests, sensible and not: one answer each, no panic, nothing left at the end.

use abi::codes::{bc, object, tf};
use abi::layout::{FlatBinderObject, NodeInfoForRef};

use super::super::arena::Arena;
use super::world::{Message, T1, World};
use crate::embedded::protocol::{Item, ProcId, Request, StateFile, ThreadKey, TransactKind};

/// A small generator (splitmix64); the same numbers every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    /// Mostly small, sometimes anything.
    fn word(&mut self) -> u64 {
        if self.below(12) == 0 { self.roll() } else { self.below(6) }
    }
}

fn message(dice: &mut Dice) -> Message {
    let mut message = Message::call(dice.below(5) as u32);
    message.kind = match dice.below(8) {
        0 => TransactKind::Reply { transaction: dice.below(3000) as u32 },
        1 => TransactKind::LaneReply {
            channel: dice.word() as u32,
            lane: 0,
            thread: T1,
            call_flags: tf::ACCEPT_FDS,
        },
        _ => message.kind,
    };
    message.flags = [0, tf::ONE_WAY, tf::ONE_WAY | tf::UPDATE_TXN, tf::CLEAR_BUF][dice.below(4) as usize];
    message = message.data(&vec![1; 8 * dice.below(3) as usize]);
    for _ in 0..dice.below(4) {
        let strong = dice.below(2) == 0;
        message = match dice.below(7) {
            0 | 1 => message.node(0x10 * dice.below(4), 1, 0x1ff),
            2 | 3 => {
                let kind = if strong { object::HANDLE } else { object::WEAK_HANDLE };
                message.flat(kind, 0, dice.below(5), 0)
            }
            4 => message.ptr(
                &vec![3; dice.below(40) as usize],
                strong.then(|| (dice.word(), dice.word().wrapping_mul(8))),
            ),
            5 => message.fda(dice.word(), dice.word(), dice.word().wrapping_mul(4)),
            _ => message.object(&[dice.word(), dice.roll(), dice.word()]),
        };
    }
    if dice.below(20) == 0 {
        message.offsets.push(dice.word());
        message.buffers_size = Some(dice.word());
    }
    message
}

fn request(dice: &mut Dice) -> Request {
    let (handle, cookie, looper) = (dice.word() as u32, dice.below(3), dice.below(2) == 0);
    match dice.below(16) {
        0..4 => Request::FreeBuffer { offset: 8 * dice.below(40) },
        4 | 5 => Request::Count { command: bc::INCREFS + dice.below(4) as u32, handle },
        6 => Request::CountDone {
            command: if looper { bc::ACQUIRE_DONE } else { bc::INCREFS_DONE },
            ptr: 0x10 * dice.below(4),
            cookie: 1,
        },
        7 => Request::RequestDeath { handle, cookie },
        8 => Request::ClearDeath { handle, cookie, looper },
        9 => Request::DeathDone { cookie, looper },
        10 => match dice.below(3) {
            0 => Request::RequestFreeze { handle, cookie },
            1 => Request::ClearFreeze { handle, cookie },
            _ => Request::FreezeDone { cookie },
        },
        11 => Request::TakeWork { work: dice.below(4000) },
        12 => Request::Freeze { pid: 1000 + dice.below(8) as u32, step: dice.below(4) as u32 },
        13 => match dice.below(3) {
            0 => Request::Abandon { transaction: dice.below(3000) as u32 },
            1 => Request::Undeliverable { transaction: dice.below(3000) as u32, errno: dice.roll() as i32 },
            _ => Request::NodeDebugInfo { above: dice.word() },
        },
        14 => Request::NodeInfoForRef { info: NodeInfoForRef { handle, ..Default::default() } },
        _ => match dice.below(4) {
            0 => Request::FrozenInfo { pid: 1000 + dice.below(8) as u32 },
            1 => Request::SpamDetection { enable: looper },
            2 => Request::TakeFds { transaction: handle },
            _ => Request::BecomeManager {
                node: FlatBinderObject { kind: 0, flags: 0, binder: 0x10 * dice.below(4), cookie: 1 },
            },
        },
    }
}

#[test]
fn any_requests_leave_nothing_behind() {
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let mut world = World::default();
        world.manager(0x1ff);
        for _ in 0..1500 {
            let live: Vec<ProcId> = world.core.procs().map(|(proc, _)| proc).collect();
            if live.len() < 2 || (live.len() < 6 && dice.below(30) == 0) {
                world.open();
                world.open_as(|client| client.lanes = true);
                continue;
            }
            let from = live[dice.below(live.len() as u64) as usize];
            match dice.below(60) {
                0 => world.core.close(from, &mut world.out),
                1 => world.tell(from, Request::DropChannel { channel: dice.below(20) as u32 }),
                2..25 => {
                    let said = message(&mut dice);
                    world.send(from, &said);
                }
                25..40 => {
                    // What a well-behaved process does with its inbox.
                    let work = match world.next(from) {
                        Some(Item::Work { work, .. }) => work,
                        _ => continue,
                    };
                    world.take(from, work);
                }
                _ => {
                    let thread = ThreadKey { slot: dice.below(3) as u32, generation: 1 };
                    let asked = request(&mut dice);
                    world.ask_with(from, thread, asked, &[], Vec::new());
                }
            }
        }
        for which in [StateFile::State, StateFile::Stats, StateFile::Transactions, StateFile::TransactionLog]
        {
            assert!(!world.core.state(which, &world.out).is_empty());
        }
        world.end();
    }
}

#[test]
fn an_arena_never_overlaps_and_loses_nothing() {
    let mut dice = Dice(7);
    let mut arena = Arena::new(1 << 16);
    let mut live: Vec<(u64, u64)> = vec![];
    for _ in 0..20_000 {
        if dice.below(2) == 0 {
            let len = dice.below(2000);
            if let Ok(taken) = arena.alloc(len, dice.below(2) == 0, dice.below(3) as u32) {
                let end = taken.offset + len.max(1).next_multiple_of(8);
                assert!(end <= arena.size() && taken.offset.is_multiple_of(8));
                assert!(live.iter().all(|(from, to)| *to <= taken.offset || end <= *from));
                live.push((taken.offset, end));
            }
        } else if !live.is_empty() {
            let (from, to) = live.swap_remove(dice.below(live.len() as u64) as usize);
            assert_eq!(arena.free(from), Some(to - from));
        }
    }
    for (from, _) in live {
        arena.free(from);
    }
    assert_eq!((arena.buffers(), arena.oneway_free()), (0, 1 << 15));
    assert_eq!(arena.alloc(1 << 16, false, 1).unwrap().offset, 0);
}
