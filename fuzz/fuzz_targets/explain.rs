//! Fuzzes the reader of kernel logs, state files, logcat and archives, and the findings made of what it reads.
#![no_main]

use std::io::{Cursor, ErrorKind};

use explain::{DriverSource, Explainer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut explainer = Explainer::new();
    let _ = explainer.read("whole", Cursor::new(bytes), &mut || Err(ErrorKind::Unsupported.into()));
    // The two halves are dumps of one system.
    let (first, last) = bytes.split_at(bytes.len() / 2);
    let _ = explainer.read_lines("first", first);
    let _ = explainer.read_lines("last", last);
    let source = DriverSource::new("source", &String::from_utf8_lossy(bytes));
    let report = explainer.explain(Some(&source));
    assert!(!report.to_string().is_empty() && report.to_json().is_ok());
    assert!(report.findings.windows(2).all(|two| two[0].grade >= two[1].grade), "not worst first");
});
