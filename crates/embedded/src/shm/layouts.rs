//! Golden tests of the shared layouts as bytes: a change needs a new protocol version, because a long-running
//! broker meets programs of other builds.
//! Not here: the meaning of the layouts (`call_slot`, `doorbell`, `ring`).

use super::call_slot::{self, CallSlots, ReplyHeader, RequestHeader, Shape, Source};
use super::doorbell::{self, Doorbells};
use super::heap::HeapMemory;
use super::{Memory, ring};
use crate::payload::packed::Vector;
use crate::payload::shape::ShapeError;
use crate::rpc::protocol::{Lineage, Link, ProcId, Sched, ThreadKey, VERSION};

const CHANGED: &str = "a shared layout differs: give `protocol::VERSION` its next number, and mend this test";

/// The nonzero words of a memory, by offset.
fn words(memory: &HeapMemory, until: usize) -> Vec<(usize, u32)> {
    let word = |at| memory.words::<1>(at)[0];
    (0..until).step_by(4).map(|at| (at, word(at))).filter(|(_, word)| *word != 0).collect()
}

/// A packed payload with 4 bytes of data and 4 of elements.
struct Packed;

impl Source for Packed {
    fn shape(&self) -> Result<Shape, ShapeError> {
        Shape::packed(Vector { head: 4, elements: 4 }).ok_or(ShapeError::TooLarge)
    }

    fn parts(&self, mut give: impl FnMut(usize, &[u8])) {
        for (at, byte) in [(0, 60), (16, 61), (24, 62)] {
            give(at, &[byte, 0, 0, 0]);
        }
    }
}

#[test]
fn the_layouts_are_those_of_this_version() {
    assert_eq!(VERSION, 21, "{CHANGED}");
    assert_eq!((call_slot::SIZE, doorbell::SIZE, ring::RECORD), (4_218_880, 397_312, 512), "{CHANGED}");

    let memory = HeapMemory::new(call_slot::SIZE);
    let call_slots = CallSlots::new(&memory).expect("room");
    let link = Link { proc: ProcId(20), thread: ThreadKey { slot: 21, generation: 22 } };
    let header = RequestHeader {
        binding: 1,
        code: 2,
        flags: 3,
        shape: Shape::plain(4).expect("fits"),
        thread: ThreadKey { slot: 5, generation: 6 },
        cpu: 7,
        sched: Sched { policy: 8, priority: 9, nice: 11 },
        mark: 12,
        behind: 13,
        lineage: Lineage::from_links(&[link]).map(Box::new),
    };
    call_slots.publish(1, &header, &[30u8, 0, 0, 0][..]).expect("idle");
    let request = call_slots.take(1).expect("sane").expect("published");
    call_slots.note_server(request.taken(), 8);
    let reply = ReplyHeader { code: 40, flags: 41, shape: header.shape, cpu: 42 };
    call_slots.reply(request.taken(), &reply, &[50u8, 0, 0, 0][..]).expect("fits");
    call_slots.publish(2, &RequestHeader { lineage: None, ..header }, &Packed).expect("idle");
    // A word before the first call slot with a call.
    call_slots.shut(call_slot::FROZEN);
    assert!(!call_slots.hold());
    let call_slot = 128 + 1280;
    let sched = 8 | 11 << 8 | 9 << 16;
    let packed = [5, 1, 2, 3, 84 | 1 << 31, 5, 6, 7, sched, 13, 2 | 4 << 16, 12, 60, 0, 0, 0, 61, 0, 62];
    let request = [5, 1, 2, 3, 4, 5, 6, 7 | 1 << 24, sched, 13, 0, 12, 20, 21, 22, 0, 30];
    let reply = [5, 40, 41, 4, 0, 42, 50];
    let at = |from, words: &[u32]| -> Vec<(usize, u32)> {
        words.iter().enumerate().map(|(index, word)| (from + 4 * index, *word)).collect()
    };
    let mut want = vec![(0, 1), (8, 3), (128 + 1152, 4 | 3)];
    want.extend(at(call_slot, &request));
    want.extend(at(call_slot + 512, &reply));
    want.extend([(call_slot + 1152, 4 | 1), (call_slot + 1156, 1 << 11 | 9)]);
    want.extend(at(call_slot + 1280, &packed));
    want.retain(|(_, word)| *word != 0);
    assert_eq!(words(&memory, 24 << 10), want, "{CHANGED}");

    let memory = HeapMemory::new(doorbell::SIZE);
    let bells = Doorbells::new(&memory).expect("room");
    bells.set_listener(Some(2));
    bells.set_inherit(3);
    bells.set_records(6);
    bells.post(33);
    let bell = bells.slot(1).expect("inside");
    let generation = bell.move_in(70);
    bell.announce_sleep();
    bell.set_depth(4);
    let bell_at = 256 + 384;
    let want = [
        (0, 3),
        (4, 3),
        (8, 2),
        (32, 6),
        (64, 2),
        (68 + 4, 2),
        (bell_at, 1),
        (bell_at + 8, 70),
        (bell_at + 12, generation),
        (bell_at + 128 + 252, 4),
    ];
    assert_eq!(words(&memory, doorbell::SIZE), want, "{CHANGED}");
}
