//! Tests of mapping apart from opening, and of buffers that direct calls place beside the broker's.
//! Not here: choosing a gap (`client::placements`, `broker::core::arena`).

use super::*;
use crate::EmbeddedContext;
use crate::settings::Settings;
use crate::shm::lease::ENTRIES;
use driver::connection::{Context, OpenOptions};

const SIZE: usize = 1 << 18;

/// A pair of connections that know each other; the other one has mapped `mapped` bytes.
fn pair(stage: &Stage, mapped: usize) -> Pair {
    let context = EmbeddedContext::at(stage.context.directory(), "mapping", Settings::default());
    let open = |map_size| {
        let connection =
            context.open(OpenOptions { map_size, nonblocking: true }).expect("the broker lets in");
        connection.version().expect("answered");
        connection
    };
    Pair::acquaint(open(SIZE), open(SIZE), open(mapped))
}

fn call(pair: &Pair) {
    write(&pair.victim, |c| c.transaction(pair.to_other, 1, TransactionFlags::CALL, Payload::default()));
}

#[test]
fn opn_09_who_maps_later_is_called_from_then_on() {
    let stage = Stage::new();
    let pair = pair(&stage, 0);
    let dead = || wait_for(&pair.victim, |item| (item == Return::DeadReply).then_some(()));
    assert_eq!((pair.other.map_base(), pair.other.map_size()), (None, 0));
    call(&pair);
    dead();
    assert_eq!(pair.other.map(0).expect_err("no bytes").raw_os_error(), Some(sys::errno::EINVAL));
    pair.other.map(SIZE).expect("the first time");
    let base = pair.other.map_base().expect("mapped");
    // The first call goes through the broker, the next ones through call slots.
    for _ in 0..3 {
        call(&pair);
        let got = call_of(&pair.other);
        assert_eq!(got.buffer.0, base, "in the one range, from its start (contract BUF-02)");
        reply(&pair.other, &got);
        let answer = reply_of(&pair.victim);
        write(&pair.victim, |c| c.free_buffer(answer.buffer));
    }
    pair.other.unmap();
    assert_eq!(pair.other.map(SIZE).expect_err("once").raw_os_error(), Some(sys::errno::EBUSY));
    call(&pair);
    dead();
    assert!(pair.other.lent(base, 1).is_none(), "given up");
}

/// The receiver keeps buffers of direct calls while the broker takes and frees space between them.
#[test]
fn buffers_of_both_ways_never_overlap() {
    let stage = Stage::new();
    let pair = pair(&stage, SIZE);
    let base = pair.other.map_base().expect("mapped");
    let mut rng = fastrand::Rng::with_seed(5);
    let mut kept: Vec<(Delivery, u8)> = Vec::new();
    for round in 0..3000u32 {
        let (byte, len) = (round as u8, rng.usize(0..5000));
        let oneway = rng.u8(..) < 80;
        let flags = if oneway { TransactionFlags::ONEWAY } else { TransactionFlags::CALL };
        let data = vec![byte; len];
        let payload = Payload { data: &data, ..Payload::default() };
        crate::fuzz::stage::write_with(&pair.victim, payload, |c| {
            c.transaction(pair.to_other, 1, flags, payload)
        });
        let got = call_of(&pair.other);
        if !oneway {
            write(&pair.other, |c| c.reply(TransactionFlags::default(), Payload::default()));
            let answer = reply_of(&pair.victim);
            write(&pair.victim, |c| c.free_buffer(answer.buffer));
        }
        let end = got.buffer.0 + got.data_size;
        assert!(got.buffer.0 >= base && end <= base + SIZE as u64, "outside the range");
        kept.push((got, byte));
        for (delivery, byte) in &kept {
            let bytes = pair.other.lent(delivery.buffer.0, delivery.data_size).expect("delivered");
            assert!(bytes.iter().all(|got| got == byte), "somebody wrote into a delivered buffer");
        }
        // The node's next oneway call comes only after the previous one's buffer is given back.
        while kept.len() > 12 || oneway && kept.iter().any(|(got, _)| got.flags.is_oneway()) {
            let (freed, _) = kept.swap_remove(rng.usize(..kept.len()));
            write(&pair.other, |c| c.free_buffer(freed.buffer));
        }
    }
}

/// Once the lease has few entries left, calls go through the broker, each of which resumes the lease.
#[test]
fn a_receiver_may_keep_more_buffers_than_its_lease_has_entries() {
    let stage = Stage::new();
    let pair = pair(&stage, SIZE);
    let kept: Vec<Delivery> = (0..2 * ENTRIES)
        .map(|_| {
            write(&pair.victim, |c| {
                c.transaction(pair.to_other, 1, TransactionFlags::CALL, Payload::default());
            });
            let got = call_of(&pair.other);
            write(&pair.other, |c| c.reply(TransactionFlags::default(), Payload::default()));
            let answer = reply_of(&pair.victim);
            write(&pair.victim, |c| c.free_buffer(answer.buffer));
            got
        })
        .collect();
    kept.iter().for_each(|call| write(&pair.other, |c| c.free_buffer(call.buffer)));
}
