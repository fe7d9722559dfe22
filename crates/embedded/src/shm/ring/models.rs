//! Loom models of a ring.
//! Not here: its rules without races (`tests`).

use std::sync::Arc;

use super::*;
use crate::shm::heap::HeapMemory;

/// Memory of a ring with a few records.
pub(in super::super) fn memory(slots: u32) -> Arc<HeapMemory> {
    let records = (0..slots).map(|slot| record_at(slot, slots)..record_at(slot, slots) + RECORD);
    Arc::new(HeapMemory::new(size_of_ring(slots), [HEAD, TAIL, STARVED], records))
}

fn record(n: u8) -> [u8; RECORD] {
    [n; RECORD]
}

/// Guards the Release and Acquire of both counts: loom watches the records' bytes.
#[test]
fn loom_records_arrive_whole_and_in_order() {
    loom::model(|| {
        let memory = memory(2);
        let mut producer = Producer::<_, 2>::new(Arc::clone(&memory)).expect("room");
        let mut consumer = Consumer::<_, 2>::new(memory).expect("room");
        let producing = loom::thread::spawn(move || {
            for n in 1..=3 {
                while !producer.push(&record(n)).expect("sane") {
                    loom::thread::yield_now();
                }
            }
        });
        let mut got = record(0);
        for n in 1..=3 {
            while !consumer.pop(&mut got).expect("sane") {
                loom::thread::yield_now();
            }
            assert_eq!(got, record(n));
        }
        producing.join().expect("no panic");
        assert!(!consumer.pop(&mut got).expect("sane"));
    });
}

/// Guards the fences of `has_room_after_all` and `take_starved`.
#[test]
fn loom_no_more_is_lost() {
    loom::model(|| {
        let memory = memory(1);
        let mut producer = Producer::<_, 1>::new(Arc::clone(&memory)).expect("room");
        let mut consumer = Consumer::<_, 1>::new(memory).expect("room");
        assert!(producer.push(&record(1)).expect("sane"));
        let producing = loom::thread::spawn(move || producer.push(&record(2)).expect("sane"));
        let mut got = record(0);
        while consumer.pop(&mut got).expect("sane") {}
        let asks = consumer.take_starved();
        let pushed = producing.join().expect("no panic");
        assert!(pushed || asks, "a record left behind, and nobody asks for it");
    });
}
