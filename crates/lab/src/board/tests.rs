//! Room: tests of the shared memory.

use super::*;

const SIZE: Size = Size { members: 3, callers: 2, samples: 600, words: 1 };

fn desk(board: &Board, member: u32) -> Desk {
    Desk::at(Board::open(&board.place(), SIZE).expect("the same memory"), member)
}

#[test]
fn what_is_kept_at_one_desk_is_seen_from_outside_and_at_no_other() {
    let mut board = Board::create(SIZE).expect("memory");
    let mut second = desk(&board, 1);
    second.touch(usize::MAX);
    second.call(2);
    assert_eq!(board.callee(1), Some(2));
    for call in 0..3 {
        second.keep(call * 10, call * 10 + call + 1);
    }
    second.keep_cpu(77);
    second.finish(4);
    let want = Part { calls: 3, busy: 6, cpu: 77, end: 23 };
    assert_eq!((board.part(1), board.done(1), board.callee(1)), (want, 4, None));
    assert_eq!(board.samples(&[1]), [1, 2, 3]);
    for other in [0, 2] {
        assert_eq!((board.part(other), board.done(other)), (Part::default(), 0));
        assert!(board.samples(&[other]).is_empty());
    }
    desk(&board, 2).keep(0, 9);
    assert_eq!(board.samples(&[1, 2]), [1, 2, 3, 9]);
    second.clear();
    assert_eq!((board.part(1), board.samples(&[1])), (Part::default(), vec![]));
}

#[test]
fn only_those_who_call_have_room_and_touch_no_more_than_they_are_told() {
    let a_page = PAGE / WORD;
    let size = Size { members: 100, callers: 1, samples: 3 * a_page, words: 1 };
    assert_eq!(size.bytes(), (DESKS + 100 * DESK).next_multiple_of(PAGE) + 3 * PAGE);
    let mut board = Board::create(size).expect("memory");
    let [mut silent, mut caller] =
        [98, 99].map(|member| Desk::at(Board::open(&board.place(), size).expect("the same memory"), member));
    for _ in 0..size.samples {
        caller.keep(0, 1);
    }
    silent.touch(usize::MAX);
    let mut heads = || [0, 1, 2].map(|page| board.samples(&[99])[page * a_page]);
    assert_eq!(heads(), [1, 1, 1]);
    caller.touch(a_page + 1);
    assert_eq!(heads(), [0, 0, 1]);
    caller.touch(usize::MAX);
    assert_eq!(heads(), [0, 0, 0]);
}

#[test]
fn calls_beyond_the_room_for_samples_are_counted() {
    let mut board = Board::create(SIZE).expect("memory");
    let mut last = desk(&board, 2);
    for _ in 0..700 {
        last.keep(1, 3);
    }
    let part = board.part(2);
    assert_eq!((part.calls, part.busy), (700, 1400));
    assert_eq!(board.samples(&[2]), [2; 600]);
    assert_eq!(board.part(1), Part::default());
    let mut silent = desk(&board, 0);
    silent.keep(1, 3);
    assert_eq!((board.part(0).calls, board.samples(&[0])), (1, vec![]));
    assert_eq!(board.samples(&[1, 2]), [2; 600], "nobody else's room");
}

#[test]
fn all_wait_for_a_step_and_are_released_at_once() {
    let mut board = Board::create(SIZE).expect("memory");
    let waiters: Vec<_> = (0..3)
        .map(|member| {
            let mut desk = desk(&board, member);
            std::thread::spawn(move || {
                let begun = desk.wait_for(2);
                desk.finish(2);
                (begun, desk.is_stopped())
            })
        })
        .collect();
    board.release(1, 5);
    std::thread::sleep(Duration::from_millis(20));
    assert!((0..3).all(|member| board.done(member) == 0), "nobody goes ahead");
    board.stop();
    board.release(2, 7);
    while (0..3).any(|member| board.done(member) != 2) {
        board.wait_for_change(board.changes(), Duration::from_millis(10));
    }
    for waiter in waiters {
        assert_eq!(waiter.join().expect("no panic"), (7, true));
    }
}

#[test]
fn another_size_than_the_memory_has_is_refused() {
    let board = Board::create(SIZE).expect("memory");
    let larger = Size { callers: 3, ..SIZE };
    assert!(Board::open(&board.place(), larger).is_err());
}

#[test]
fn notes_and_samples_of_many_words_keep_their_places() {
    let size = Size { members: 2, callers: 1, samples: 2, words: 3 };
    let mut board = Board::create(size).expect("memory");
    let mut desk = Desk::at(Board::open(&board.place(), size).expect("the same memory"), 1);
    for (call, words) in [[1, 2, 3], [4, 5, 6], [7, 8, 9]].iter().enumerate() {
        desk.keep_words(0, call as u64, words);
    }
    desk.note(0, 11);
    desk.note(NOTE_COUNT - 1, 12);
    assert_eq!(board.samples(&[1]), [1, 2, 3, 4, 5, 6], "there is room for two");
    assert_eq!((board.part(1).calls, board.part(1).end), (3, 2));
    let notes = board.notes(1);
    assert_eq!((notes[0], notes[1], notes[NOTE_COUNT - 1]), (11, 0, 12));
    assert_eq!(board.notes(0), [0; NOTE_COUNT]);
    assert!(!desk.is_stopped());
    desk.stop_all();
    assert!(desk.is_stopped());
}
