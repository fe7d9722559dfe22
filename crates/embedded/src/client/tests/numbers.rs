//! Tests that trace numbers for calls in call slots keep coming, and that no call waits for them.
//! Not here: when numbers are requested (`embedded::trace_events`).

use std::fs::{self, File};
use std::thread;
use std::time::Instant;

use abi::{Payload, TransactionFlags};

use super::{Identity, call_of, reply, reply_of};
use crate::EmbeddedContext;
use crate::fuzz::stage::{PATIENCE, Pair, Stage, read, write};
use crate::settings::Settings;
use crate::trace_events::Amount;

const ROUNDS: usize = 40;
/// Numbers that a round uses besides its own: over all rounds several times the broker's batch.
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
    let pair = Pair::of(&context.with_marks(&folder, Amount::All));
    let process = pair.victim.process_for_tests();
    let marks = process.trace.as_ref().expect("asked for");
    let asked = || process.enter(Identity::Caller, |thread| Ok(thread.thread().seq)).expect("met");
    // The first call goes through the broker, which makes the channel.
    round(&pair);
    round(&pair);
    let before = asked();
    for _ in 0..ROUNDS {
        for _ in 0..TAKEN {
            let began = Instant::now();
            while marks.take_pair() == 0 {
                assert!(!sys::patience::is_over(began, PATIENCE), "the broker gives no numbers");
                read(&pair.victim);
                thread::yield_now();
            }
        }
        round(&pair);
    }
    assert_eq!(asked(), before, "a request was waited for");
    fs::remove_dir_all(&folder).expect("removed");
}
