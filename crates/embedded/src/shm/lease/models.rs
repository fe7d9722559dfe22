//! Loom models of the lease.

use std::sync::Arc;

use super::*;
use crate::shm::heap::HeapMemory;

const WHOLE: Range = Range { start: 0, len: 8 };

/// A lease with one entry and one gap, of one buffer's size.
fn lease() -> Lease<Arc<HeapMemory>> {
    let words = [TURN, GAP_COUNT, USED, GAP, GAP + 4, ANNOUNCED, ANNOUNCED + 4, COUNTED, COUNTED + 4];
    let lease = Lease::at(Arc::new(HeapMemory::new(SIZE, words, [])), 0);
    lease.set_used(1);
    lease.resume([WHOLE].into_iter(), &[]);
    lease
}

/// Takes the only gap for the broker if it is free; returns whether it did.
fn take(lease: &Lease<Arc<HeapMemory>>) -> bool {
    let mut placed = Vec::new();
    lease.suspend(&mut placed);
    let free = placed == [Range::default()];
    lease.resume([].into_iter(), &placed);
    free
}

/// Guards the fences of `place` and `suspend`.
#[test]
fn loom_no_byte_is_placed_twice() {
    loom::model(|| {
        let lease = lease();
        let turn = lease.load(TURN);
        let theirs = lease.clone();
        let broker = loom::thread::spawn(move || take(&theirs));
        let mine = lease.place(0, WHOLE, Tag::default(), turn);
        let taken = broker.join().expect("no panic");
        assert!(!(mine && taken), "both have the same bytes");
    });
}

/// Guards the order of reads of the lease, and the broker's report of what it counted.
#[test]
fn loom_nothing_is_lost_that_comes_back_meanwhile() {
    loom::model(|| {
        let lease = lease();
        assert!(lease.place(0, WHOLE, Tag::default(), lease.load(TURN)));
        let theirs = lease.clone();
        let broker = loom::thread::spawn(move || take(&theirs));
        lease.give_back(0);
        let (mut gaps, mut counted) = (Vec::new(), Vec::new());
        let read = lease.read(1, &mut gaps, &mut counted).expect("the broker comes back");
        let taken = broker.join().expect("no panic");
        if lease.is_of(read) && read > 2 {
            assert_eq!(taken, counted == [Range::default()], "counted as placed, or taken");
        }
    });
}
