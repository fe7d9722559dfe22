//! Tests of a ring: its rules, and that no counts in it make either side panic.
//! Not here: memory ordering (`models`).

use super::*;
use crate::shm::heap::HeapMemory;

fn record(n: u32) -> [u8; RECORD] {
    let mut record = [n as u8; RECORD];
    record[..4].copy_from_slice(&n.to_ne_bytes());
    record
}

#[test]
fn records_come_out_in_order_around_the_ring_and_around_the_count() {
    let memory = HeapMemory::new(size_of_ring(4));
    let mut producer = Producer::<_, 4>::new(&memory).expect("room");
    let mut consumer = Consumer::<_, 4>::new(&memory).expect("room");
    for count in [&mut producer.head, &mut producer.tail, &mut consumer.head, &mut consumer.tail] {
        *count = u32::MAX - 5;
    }
    memory.word(HEAD).store(u32::MAX - 5, Ordering::Relaxed);
    memory.word(TAIL).store(u32::MAX - 5, Ordering::Relaxed);
    let mut got = record(0);
    let (mut sent, mut read) = (0, 0);
    for burst in [1, 4, 3, 2, 4, 4, 1] {
        assert!(!has_records(&memory));
        for _ in 0..burst {
            sent += 1;
            assert!(producer.push(&record(sent)).expect("sane"));
        }
        assert!(has_records(&memory));
        while consumer.pop(&mut got).expect("sane") {
            read += 1;
            assert_eq!(got, record(read));
        }
        assert_eq!(read, sent);
        assert!(!consumer.take_starved());
    }
}

#[test]
fn what_is_unread_is_seen_around_the_ring_and_never_more_than_it_holds() {
    let memory = HeapMemory::new(size_of_ring(4));
    let mut producer = Producer::<_, 4>::new(&memory).expect("room");
    let mut consumer = Consumer::<_, 4>::new(&memory).expect("room");
    let mut got = record(0);
    for n in 0..6 {
        assert_eq!(producer.unread().collect::<Vec<_>>(), (n.max(2) - 2..n).map(record).collect::<Vec<_>>());
        assert!(producer.push(&record(n)).expect("sane"));
        assert!(n < 2 || consumer.pop(&mut got).expect("sane"));
    }
    for count in [3, 4, 7, u32::MAX] {
        memory.word(TAIL).store(count, Ordering::Relaxed);
        assert!(producer.unread().count() <= 4, "{count}");
    }
}

#[test]
fn a_full_ring_is_said_once_it_is_drained() {
    let memory = HeapMemory::new(SIZE);
    let mut producer = Producer::<_>::new(&memory).expect("room");
    let mut consumer = Consumer::<_>::new(&memory).expect("room");
    for n in 0..SLOTS {
        assert!(producer.push(&record(n)).expect("sane"), "{n}");
    }
    assert!(!producer.push(&record(SLOTS)).expect("sane"));
    assert!(!consumer.take_starved(), "nothing taken: nothing to say");
    let mut got = record(0);
    while consumer.pop(&mut got).expect("sane") {}
    assert_eq!(got, record(SLOTS - 1));
    assert!(consumer.take_starved());
    assert!(!consumer.take_starved(), "once");
    assert!(producer.push(&record(SLOTS)).expect("sane"));
    assert!(consumer.pop(&mut got).expect("sane"));
    assert!(!consumer.take_starved());
}

#[test]
fn impossible_counts_are_recognised() {
    let memory = HeapMemory::new(SIZE);
    let mut consumer = Consumer::<_>::new(&memory).expect("room");
    let mut producer = Producer::<_>::new(&memory).expect("room");
    let mut got = record(0);
    for head in [SLOTS + 1, u32::MAX, 1 << 31] {
        memory.word(HEAD).store(head, Ordering::Relaxed);
        for _ in 0..3 {
            assert_eq!(consumer.pop(&mut got), Err(Corrupt::RingCount), "{head}");
        }
    }
    for _ in 0..SLOTS {
        assert!(producer.push(&got).expect("sane"));
    }
    for tail in [SLOTS + 1, u32::MAX, 1 << 31] {
        memory.word(TAIL).store(tail, Ordering::Relaxed);
        assert_eq!(producer.push(&got), Err(Corrupt::RingCount), "{tail}");
        // The count is still impossible.
        assert_eq!(producer.push(&got), Err(Corrupt::RingCount), "{tail}");
    }
    assert!(matches!(Producer::<_>::new(HeapMemory::new(SIZE - 4)), Err(Corrupt::TooSmall)));
    assert!(matches!(Consumer::<_>::new(HeapMemory::new(0)), Err(Corrupt::TooSmall)));
}
