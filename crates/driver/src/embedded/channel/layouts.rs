//! Room: the shared layouts as bytes, so that nobody changes them without the protocol's next version:
//! a broker that is long at work meets programs of another day.
//! Not here: what they mean (`lane`, `doorbell`, `ring`).

use super::doorbell::{self, Doorbells};
use super::heap::HeapMemory;
use super::lane::{self, Lanes, ReplyHeader, RequestHeader, Shape, Source};
use super::{Corrupt, Memory, ring};
use crate::embedded::objects::Vector;
use crate::embedded::protocol::{Lineage, Link, ProcId, Sched, ThreadKey, VERSION};

const CHANGED: &str = "a shared layout differs: give `protocol::VERSION` its next number, and mend this test";

/// The words of a memory that are not 0, by offset.
fn words(memory: &HeapMemory, until: usize) -> Vec<(usize, u32)> {
    let word = |at| memory.words::<1>(at)[0];
    (0..until).step_by(4).map(|at| (at, word(at))).filter(|(_, word)| *word != 0).collect()
}

/// A packed payload: 4 bytes of data and of elements.
struct Packed;

impl Source for Packed {
    fn shape(&self) -> Result<Shape, Corrupt> {
        Shape::packed(Vector { head: 4, elements: 4 }).ok_or(Corrupt::LaneSize)
    }

    fn parts(&self, mut give: impl FnMut(usize, &[u8])) {
        for (at, byte) in [(0, 60), (16, 61), (24, 62)] {
            give(at, &[byte, 0, 0, 0]);
        }
    }
}

#[test]
fn the_layouts_are_those_of_this_version() {
    assert_eq!(VERSION, 11, "{CHANGED}");
    assert_eq!((lane::SIZE, doorbell::SIZE, ring::RECORD), (8_413_184, 397_312, 512), "{CHANGED}");

    let memory = HeapMemory::new(lane::SIZE);
    let lanes = Lanes::new(&memory).expect("room");
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
        lineage: Lineage::from_links(&[link]).map(Box::new),
    };
    lanes.publish(1, &header, &[30u8, 0, 0, 0][..]).expect("idle");
    let request = lanes.take(1).expect("sane").expect("published");
    let reply = ReplyHeader { code: 40, flags: 41, shape: header.shape, cpu: 42, watching: true };
    lanes.reply(request.taken(), &reply, &[50u8, 0, 0, 0][..]).expect("fits");
    lanes.publish(2, &RequestHeader { lineage: None, ..header }, &Packed).expect("idle");
    // Of the lanes before the first that has a call.
    lanes.shut(lane::FROZEN);
    assert!(!lanes.hold());
    let lane = 128 + 1280;
    let packed =
        [5, 1, 2, 3, 84 | 1 << 31, 5, 6, 7, 8 | 11 << 16, 9, 2 | 4 << 16, 12, 60, 0, 0, 0, 61, 0, 62];
    let request = [5, 1, 2, 3, 4, 5, 6, 7 | 1 << 24, 8 | 11 << 16, 9, 0, 12, 20, 21, 22, 0, 30];
    let reply = [5, 40, 41, 4, 0, 42 | 1 << 31, 50];
    let at = |from, words: &[u32]| -> Vec<(usize, u32)> {
        words.iter().enumerate().map(|(index, word)| (from + 4 * index, *word)).collect()
    };
    let mut want = vec![(0, 1), (8, 3), (128 + 1160, 4 | 3)];
    want.extend(at(lane, &request));
    want.extend(at(lane + 512, &reply));
    want.extend([(lane + 1160, 4 | 1)]);
    want.extend(at(lane + 1280, &packed));
    want.retain(|(_, word)| *word != 0);
    assert_eq!(words(&memory, 24 << 10), want, "{CHANGED}");

    let memory = HeapMemory::new(doorbell::SIZE);
    let bells = Doorbells::new(&memory).expect("room");
    bells.set_listener(Some(2));
    bells.set_inherit(3);
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
        (64, 2),
        (68 + 4, 2),
        (bell_at, 1),
        (bell_at + 8, 70),
        (bell_at + 12, generation),
        (bell_at + 128 + 252, 4),
    ];
    assert_eq!(words(&memory, doorbell::SIZE), want, "{CHANGED}");
}
