//! Requests of clients made of choices: transactions that are nearly valid, other requests, and any words.

use abi::codes::{bc, object, tf};
use abi::layout::{FlatBinderObject, NodeInfoForRef};

use super::source::Source;
use crate::broker::core::test_broker::{Message, T1};
use crate::rpc::codec::Message as _;
use crate::rpc::protocol::{RECORD_SIZE, Request, TransactKind};

/// A transaction with up to three objects, most of them valid.
pub(super) fn transaction(source: &mut Source<'_>) -> Message {
    let mut message = Message::call(source.choose(5) as u32);
    message.kind = match source.choose(8) {
        0 => TransactKind::Reply { transaction: source.choose(200) as u32 },
        1 => TransactKind::SlotReply {
            channel: source.word() as u32,
            call_slot: 0,
            thread: T1,
            call_flags: tf::ACCEPT_FDS,
        },
        _ => message.kind,
    };
    message.flags = [0, tf::ONE_WAY, tf::ONE_WAY | tf::UPDATE_TXN, tf::CLEAR_BUF][source.choose(4)];
    message = message.data(&vec![1; 8 * source.choose(3)]);
    for _ in 0..source.choose(4) {
        let strong = source.flip();
        message = match source.choose(7) {
            0 | 1 => message.node(0x10 * source.choose(4) as u64, 1, 0x1ff),
            2 | 3 => {
                let kind = if strong { object::HANDLE } else { object::WEAK_HANDLE };
                message.flat(kind, 0, source.choose(5) as u64, 0)
            }
            4 => {
                let parent = strong.then(|| (source.choose(4) as u64, source.word().wrapping_mul(8)));
                message.ptr(&vec![3; source.choose(40)], parent)
            }
            5 => message.fda(source.word(), source.choose(4) as u64, source.word().wrapping_mul(4)),
            _ => message.object(&[source.word(), source.word(), source.word()]),
        };
    }
    if source.choose(20) == 0 {
        message.offsets.push(source.word());
        message.buffers_size = Some(source.word());
        message.frees = Some(source.word());
        message.out_of_turn = source.flip();
    }
    message
}

/// Any request except a transaction, with numbers that clients use.
pub(super) fn request(source: &mut Source<'_>) -> Request {
    let (handle, cookie, looper) = (source.choose(6) as u32, source.choose(3) as u64, source.flip());
    let transaction = source.choose(200) as u32;
    match source.choose(18) {
        0..4 => Request::FreeBuffer { offset: 8 * source.choose(40) as u64 },
        4 | 5 => Request::Count { command: bc::INCREFS + source.choose(4) as u32, handle },
        6 => Request::CountDone {
            command: if looper { bc::ACQUIRE_DONE } else { bc::INCREFS_DONE },
            ptr: 0x10 * source.choose(4) as u64,
            cookie: 1,
        },
        7 => Request::RequestDeath { handle, cookie },
        8 => Request::ClearDeath { handle, cookie, looper },
        9 => Request::DeathDone { cookie, looper },
        10 => match source.choose(3) {
            0 => Request::RequestFreeze { handle, cookie },
            1 => Request::ClearFreeze { handle, cookie },
            _ => Request::FreezeDone { cookie },
        },
        11 => Request::TakeWork { work: source.choose(256) as u64 },
        12 => Request::Freeze { pid: 1000 + source.choose(8) as u32, step: source.choose(4) as u32 },
        13 => match source.choose(3) {
            0 => Request::Abandon { transaction },
            1 => Request::Undeliverable { transaction, errno: source.word() as i32 },
            _ => Request::NodeDebugInfo { above: source.word() },
        },
        14 => Request::NodeInfoForRef { info: NodeInfoForRef { handle, ..Default::default() } },
        15 => Request::DropChannel { channel: source.choose(20) as u32 },
        _ => match source.choose(4) {
            0 => Request::FrozenInfo { pid: 1000 + source.choose(8) as u32 },
            1 => Request::SpamDetection { enable: looper },
            2 => Request::TakeFds { transaction: handle },
            _ => {
                let binder = 0x10 * source.choose(4) as u64;
                Request::BecomeManager { node: FlatBinderObject { kind: 0, flags: 0, binder, cookie: 1 } }
            }
        },
    }
}

/// The words of a record: a kind of message, and anything behind it.
pub(super) fn record(source: &mut Source<'_>) -> Vec<u8> {
    let kind = u64::from(source.byte() % 30);
    let words = std::iter::once(kind).chain((1..RECORD_SIZE / 8).map(|_| source.word()));
    words.flat_map(u64::to_ne_bytes).collect()
}

/// A transaction, another request, or one of any words.
pub(super) fn any(source: &mut Source<'_>) -> Option<Request> {
    match source.choose(3) {
        0 => Some(Request::Transact { transact: transaction(source).transact() }),
        1 => Some(request(source)),
        _ => Request::decode(&record(source)).ok(),
    }
}
