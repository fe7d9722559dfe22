//! Room: real recordings with bytes changed at random: whatever comes of it is a stated result. The fuzz
//! targets look further; this runs with every test.

use crate::open;
use std::io::Cursor;

/// SplitMix64: the same damage every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ z >> 31) % sides as u64).expect("below a usize")
    }
}

/// Reads damaged copies; how many were still opened, and of those how many had something to say.
fn survive(whole: &[u8], rounds: u64) -> (u64, u64) {
    let (mut opened, mut said) = (0, 0);
    for seed in 0..rounds {
        let mut dice = Dice(seed);
        let mut bytes = whole.to_vec();
        for _ in 0..=dice.roll(24) {
            let at = dice.roll(bytes.len());
            bytes[at] = match dice.roll(4) {
                0 => 0,
                1 => 0xff,
                _ => u8::try_from(dice.roll(256)).expect("a byte"),
            };
        }
        if dice.roll(3) == 0 {
            bytes.truncate(dice.roll(whole.len()));
        }
        let Ok(mut reader) = open(Cursor::new(bytes)) else { continue };
        let events = reader.by_ref().count() as u64;
        let report = reader.report();
        assert!(report.events <= events, "seed {seed}");
        opened += 1;
        said += u64::from(!report.is_whole());
    }
    (opened, said)
}

#[test]
fn damaged_recordings_are_read_as_far_as_they_go() {
    let rounds = 400;
    for whole in [
        include_bytes!("../../../fixtures/binder-c.bptrace").as_slice(),
        include_bytes!("../../../fixtures/binder-c.txt"),
        include_bytes!("../../../fixtures/sched.bptrace"),
        include_bytes!("../../../fixtures/sched.txt"),
    ] {
        let (opened, said) = survive(whole, rounds);
        assert!(opened > rounds / 2 && said > rounds / 8, "{opened} opened, {said} with problems");
    }
}
