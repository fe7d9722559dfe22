//! Tests of doorbells: their rules, and that no content of them causes a panic.
//! Not here: memory ordering (`models`), sleeping (`wait`).

use super::*;
use crate::shm::heap::HeapMemory;

fn bells() -> Doorbells<HeapMemory> {
    Doorbells::new(HeapMemory::new(SIZE)).expect("room")
}

#[test]
fn every_channel_has_its_own_mark() {
    let bells = bells();
    assert!(!bells.anything_ready());
    let all = [0, 1, 31, 32, 479, 480, 1000, CHANNELS - 1];
    for channel in all {
        bells.post(channel);
        bells.post(channel);
    }
    bells.post(CHANNELS);
    bells.post(u32::MAX);
    assert!(bells.anything_ready());
    assert_eq!(bells.take_ready().collect::<Vec<_>>(), all);
    assert!(!bells.anything_ready() && bells.take_ready().next().is_none());
}

#[test]
fn marks_that_were_not_looked_at_stay() {
    let bells = bells();
    for channel in [2, 3, 70] {
        bells.post(channel);
    }
    assert_eq!(bells.take_ready().next(), Some(2));
    assert_eq!(bells.take_ready().collect::<Vec<_>>(), [3, 70]);
}

#[test]
fn the_listener_is_woken_once_if_it_sleeps() {
    let bells = bells();
    assert!(bells.ring_listener().is_none(), "there is none");
    bells.set_listener(Some(7));
    assert!(bells.ring_listener().is_none(), "it is awake");
    let bell = bells.slot(7).expect("inside");
    bell.announce_sleep();
    assert_eq!(bells.ring_listener().expect("asleep").number(), 7);
    assert!(bells.ring_listener().is_none(), "somebody else wakes it");
    bell.sleep(u64::MAX).expect("rung before");
    bell.awake();
    assert!(!bell.ring());
}

#[test]
fn who_hands_over_wakes_the_next_if_something_came() {
    let bells = bells();
    bells.slot(8).expect("inside").announce_sleep();
    assert!(bells.hand_over(Some(8), || false).is_none());
    assert_eq!(bells.listener(), Some(8));
    assert_eq!(bells.hand_over(Some(8), || true).expect("asleep").number(), 8);
    assert!(bells.hand_over(None, || true).is_none());
    assert_eq!(bells.listener(), None);
}

#[test]
fn a_slot_says_who_is_in_it_and_what_was_done_there() {
    let bells = bells();
    let bell = bells.slot(2).expect("inside");
    assert_eq!(bell.move_in(100), 1);
    bell.set_looper(3);
    bell.set_depth(4);
    for index in [0, 31, 31, COUNTERS - 1, COUNTERS] {
        bell.count(index);
    }
    assert_eq!((bell.tid(), bell.generation(), bell.looper(), bell.depth()), (100, 1, 3, 4));
    assert!(bell.belongs_to(1) && !bell.belongs_to(2));
    bell.move_out();
    assert_eq!(bell.tid(), 0);
    assert!(!bell.belongs_to(1));
    assert_eq!(bell.move_in(101), 2);
    assert!(bell.belongs_to(2) && !bell.belongs_to(1));
    assert_eq!((bell.looper(), bell.depth()), (0, 0));
    bell.count(0);
    bells.slot(0).expect("inside").count(0);
    let counts = bells.counts();
    assert_eq!((counts[0], counts[31], counts[COUNTERS - 1]), (3, 2, 1), "also of those who left");
    assert!(bells.slot(SLOTS).is_none());
}

#[test]
fn no_bytes_make_anybody_panic() {
    let bells = bells();
    for word in [0, 1, SLOTS, SLOTS + 1, u32::MAX, 0x5555_5555] {
        for offset in (0..BELLS + 2 * BELL).step_by(4) {
            bells.memory.word(offset).store(word, Ordering::Relaxed);
        }
        let _ = (bells.listener(), bells.inherit(), bells.counts());
        assert!(bells.ring_listener().is_none_or(|bell| bell.number() < SLOTS));
        assert!(bells.take_ready().all(|channel| channel < CHANNELS));
        bells.post(word);
        let bell = bells.slot(0).expect("inside");
        let _ = (bell.move_in(word), bell.ring(), bell.tid());
        bell.count(word as usize);
        bell.awake();
    }
    assert!(matches!(Doorbells::new(HeapMemory::new(SIZE - 4)), Err(Corrupt::TooSmall)));
}
