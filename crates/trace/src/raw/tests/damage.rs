//! Real recordings with random byte changes: reading them must not panic. The fuzz targets go further; this runs with
//! every test.

use crate::open;
use fastrand::Rng;
use std::io::Cursor;

/// Reads damaged copies; returns how many opened, and how many of those reported problems.
fn survive(whole: &[u8], rounds: u64) -> (u64, u64) {
    let (mut opened, mut said) = (0, 0);
    for seed in 0..rounds {
        let mut rng = Rng::with_seed(seed);
        let mut bytes = whole.to_vec();
        for _ in 0..=rng.usize(..24) {
            let at = rng.usize(..bytes.len());
            bytes[at] = match rng.u8(..4) {
                0 => 0,
                1 => 0xff,
                _ => rng.u8(..),
            };
        }
        if rng.u8(..3) == 0 {
            bytes.truncate(rng.usize(..whole.len()));
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
