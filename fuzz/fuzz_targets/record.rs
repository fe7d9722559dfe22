//! Fuzzes the reader of result files, also of other programs': what it accepts must survive writing, reading and rendering.
#![no_main]

use libfuzzer_sys::fuzz_target;
use record::Run;
use record::formats::gbench;
use record::render::{latency, summary};

fuzz_target!(|bytes: &[u8]| {
    for run in record::import::any(bytes, "2026-01-31T12:00:00Z").into_iter().flatten() {
        taken(&run);
    }
});

fn taken(run: &Run) {
    let again = Run::from_json(run.to_json().as_bytes()).expect("what was accepted can be read again");
    assert_eq!(&again, run, "writing and reading changed it");
    let _ = gbench::replay(run, &gbench::Options::default());
    let _ = summary::summary(run, "");
    let _ = (latency::table(run), latency::roles(run));
    let text = latency::json(run, &latency::Options { verbose: true, raw: true, ..latency::Options::default() });
    let _: serde_json::Value = serde_json::from_str(&text).expect("the JSON of a latency test is JSON");
}
