//! Tests that trace numbers for calls in call slots keep coming, that no call waits for them, and that the events of
//! calls come as records where a recorder wants them so.
//! Not here: when numbers are requested (`embedded::trace_events`).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use abi::{Payload, TransactionFlags};

use super::{Identity, call_of, reply, reply_of};
use crate::EmbeddedContext;
use crate::fuzz::stage::{PATIENCE, Pair, Stage, read, write};
use crate::settings::Settings;
use crate::trace_events::Amount;
use crate::trace_events::records::CallRecords;

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

/// A folder that takes marks.
fn tracefs(stage: &Stage) -> PathBuf {
    let folder = stage.context.directory().join("tracefs");
    fs::create_dir(&folder).expect("a folder");
    File::create(folder.join("trace_marker")).expect("a file");
    folder
}

#[test]
fn numbers_keep_coming_and_no_call_waits_for_the_broker() {
    let stage = Stage::new();
    let folder = tracefs(&stage);
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

/// The lines that calls leave as records and as marks, each without its numbers.
fn left_by_calls(records: Option<&mut CallRecords>, path: &Path) -> (Vec<String>, usize) {
    let stage = Stage::new();
    let folder = tracefs(&stage);
    let context = EmbeddedContext::at(stage.context.directory(), "records", Settings::default());
    let pair = Pair::of(&context.with_marks(&folder, Amount::CallsOnly).with_records(path));
    (0..3).for_each(|_| round(&pair));
    drop(pair);
    let marks = fs::read_to_string(folder.join("trace_marker")).expect("text").matches("binder_").count();
    fs::remove_dir_all(&folder).expect("removed");
    let taken = records.map(CallRecords::take).unwrap_or_default();
    assert!(taken.gaps.is_empty() && taken.events.is_sorted_by_key(|event| event.ts), "{taken:?}");
    let name = |text: &str| {
        let reply = if text.contains("reply=1") { " reply" } else { "" };
        format!("{}{reply}", text.split(':').next().unwrap_or_default())
    };
    (taken.events.iter().map(|event| name(&event.text)).collect(), marks)
}

#[test]
fn events_of_calls_are_records_where_asked_for_and_marks_elsewhere() {
    let mut records = CallRecords::create("boot").expect("memory").expect("a clock of processes");
    records.start();
    let path = records.path();
    let (events, marks) = left_by_calls(Some(&mut records), &path);
    let received = "binder_transaction_received";
    let call = ["binder_transaction", received, "binder_transaction reply", received];
    // A oneway call makes the two known to each other. The next call goes through the broker, the others do not.
    let want: Vec<String> = call[..2].iter().chain(&call.repeat(3)).map(ToString::to_string).collect();
    assert_eq!((&events, marks), (&want, 0));
    let (events, marks) = left_by_calls(None, Path::new("/no/such/records"));
    // How many is not known: in a plain file the two processes overwrite each other's.
    assert!(events.is_empty() && marks > 0, "where the records cannot be opened");
}
