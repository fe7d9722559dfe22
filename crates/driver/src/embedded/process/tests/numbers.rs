//! Room: numbers for the marks of calls in lanes: they keep coming, and no call waits for them.
//! Not here: when they are asked for (`embedded::marks`).

use std::fs::{self, File};
use std::thread;
use std::time::Instant;

use abi::{Payload, TransactionFlags};

use super::{call_of, reply, reply_of};
use crate::embedded::EmbeddedContext;
use crate::embedded::fuzz::stage::{PATIENCE, Pair, Stage, read, write};
use crate::embedded::settings::Settings;

const ROUNDS: usize = 40;
/// What a round takes away beside its own: together several times what the broker gives at once.
const TAKEN: usize = 5000;

fn round(pair: &Pair) {
    let Pair { victim, other, to_other, .. } = pair;
    write(victim, |c| c.transaction(*to_other, 1, TransactionFlags::CALL, Payload::default()));
    reply(other, &call_of(other));
    let over = reply_of(victim);
    write(victim, |c| c.free_buffer(over.buffer));
}

#[test]
fn numbers_keep_coming_and_no_call_waits_for_the_broker() {
    let stage = Stage::new();
    let folder = stage.context.directory().join("tracefs");
    fs::create_dir(&folder).expect("a folder");
    File::create(folder.join("trace_marker")).expect("a file");
    let context = EmbeddedContext::at(stage.context.directory(), "numbers", Settings::default());
    let pair = Pair::of(&context.with_marks(&folder));
    let process = pair.victim.process_for_tests();
    let marks = process.marks.as_ref().expect("asked for");
    let asked = || {
        let mut st = process.lock();
        let slot = process.enter(&mut st).expect("met");
        st.thread(slot).seq
    };
    // The first goes through the broker, and has the channel made.
    round(&pair);
    round(&pair);
    let before = asked();
    for _ in 0..ROUNDS {
        for _ in 0..TAKEN {
            let began = Instant::now();
            while marks.take_pair() == 0 {
                assert!(began.elapsed() < PATIENCE, "the broker gives no numbers");
                read(&pair.victim);
                thread::yield_now();
            }
        }
        round(&pair);
    }
    assert_eq!(asked(), before, "a request was waited for");
    fs::remove_dir_all(&folder).expect("removed");
}
