//! Tests of the shared memory.

use super::*;

const LAYOUT: BlockLayout = BlockLayout { workers: 3, callers: 2, samples: 600, words: 1 };

fn slot(block: &SharedBlock, worker: u32) -> WorkerSlot {
    block.address(worker).open().expect("the same memory")
}

#[test]
fn what_is_kept_at_one_desk_is_seen_from_outside_and_at_no_other() {
    let mut block = SharedBlock::create(LAYOUT).expect("memory");
    let mut second = slot(&block, 1);
    second.touch(usize::MAX);
    second.call(2);
    assert_eq!(block.callee(1), Some(2));
    for call in 0..3 {
        second.keep(call * 10, call * 10 + call + 1);
    }
    second.keep_cpu(77);
    second.finish(4);
    let want = SlotTotals { calls: 3, busy: 6, cpu: 77, end: 23 };
    assert_eq!((block.totals(1), block.done(1), block.callee(1)), (want, 4, None));
    assert_eq!(block.samples(&[1]), [1, 2, 3]);
    for other in [0, 2] {
        assert_eq!((block.totals(other), block.done(other)), (SlotTotals::default(), 0));
        assert!(block.samples(&[other]).is_empty());
    }
    slot(&block, 2).keep(0, 9);
    assert_eq!(block.samples(&[1, 2]), [1, 2, 3, 9]);
    second.clear();
    assert_eq!((block.totals(1), block.samples(&[1])), (SlotTotals::default(), vec![]));
}

#[test]
fn only_those_who_call_have_room_and_touch_no_more_than_they_are_told() {
    let a_page = PAGE / WORD;
    let layout = BlockLayout { workers: 100, callers: 1, samples: 3 * a_page, words: 1 };
    assert_eq!(layout.bytes(), (SLOTS + 100 * SLOT).next_multiple_of(PAGE) + 3 * PAGE);
    let mut block = SharedBlock::create(layout).expect("memory");
    let [mut silent, mut caller] =
        [98, 99].map(|worker| block.address(worker).open().expect("the same memory"));
    for _ in 0..layout.samples {
        caller.keep(0, 1);
    }
    silent.touch(usize::MAX);
    let mut heads = || [0, 1, 2].map(|page| block.samples(&[99])[page * a_page]);
    assert_eq!(heads(), [1, 1, 1]);
    caller.touch(a_page + 1);
    assert_eq!(heads(), [0, 0, 1]);
    caller.touch(usize::MAX);
    assert_eq!(heads(), [0, 0, 0]);
}

#[test]
fn calls_beyond_the_room_for_samples_are_counted() {
    let mut block = SharedBlock::create(LAYOUT).expect("memory");
    let mut last = slot(&block, 2);
    for _ in 0..700 {
        last.keep(1, 3);
    }
    let part = block.totals(2);
    assert_eq!((part.calls, part.busy), (700, 1400));
    assert_eq!(block.samples(&[2]), [2; 600]);
    assert_eq!(block.totals(1), SlotTotals::default());
    let mut silent = slot(&block, 0);
    silent.keep(1, 3);
    assert_eq!((block.totals(0).calls, block.samples(&[0])), (1, vec![]));
    assert_eq!(block.samples(&[1, 2]), [2; 600], "nobody else's room");
}

#[test]
fn all_wait_for_a_step_and_are_released_at_once() {
    let mut block = SharedBlock::create(LAYOUT).expect("memory");
    let waiters: Vec<_> = (0..3)
        .map(|worker| {
            let mut slot = slot(&block, worker);
            std::thread::spawn(move || {
                let begun = slot.wait_for(2);
                slot.finish(2);
                (begun, slot.is_stopped())
            })
        })
        .collect();
    block.release(1, 5);
    std::thread::sleep(Duration::from_millis(20));
    assert!((0..3).all(|worker| block.done(worker) == 0), "nobody goes ahead");
    block.stop();
    block.release(2, 7);
    while (0..3).any(|worker| block.done(worker) != 2) {
        block.wait_for_change(block.changes(), Duration::from_millis(10));
    }
    for waiter in waiters {
        assert_eq!(waiter.join().expect("no panic"), (7, true));
    }
}

#[test]
fn another_size_than_the_memory_has_is_refused() {
    let block = SharedBlock::create(LAYOUT).expect("memory");
    let larger = BlockLayout { callers: 3, ..LAYOUT };
    assert!(SharedBlock::open(&block.path(), larger).is_err());
}

#[test]
fn notes_and_samples_of_many_words_keep_their_places() {
    let layout = BlockLayout { workers: 2, callers: 1, samples: 2, words: 3 };
    let mut block = SharedBlock::create(layout).expect("memory");
    let mut slot = block.address(1).open().expect("the same memory");
    for (call, words) in [[1, 2, 3], [4, 5, 6], [7, 8, 9]].iter().enumerate() {
        slot.keep_words(0, call as u64, words);
    }
    slot.note(0, 11);
    slot.note(NOTE_COUNT - 1, 12);
    assert_eq!(block.samples(&[1]), [1, 2, 3, 4, 5, 6], "there is room for two");
    assert_eq!((block.totals(1).calls, block.totals(1).end), (3, 2));
    let notes = block.notes(1);
    assert_eq!((notes[0], notes[1], notes[NOTE_COUNT - 1]), (11, 0, 12));
    assert_eq!(block.notes(0), [0; NOTE_COUNT]);
    assert!(!slot.is_stopped());
    slot.stop_all();
    assert!(slot.is_stopped());
}
