//! Files of trace-cmd 3.1.6, against what its own `report` prints of them; and damage.
//! Facts: a latency test on Linux 7.2.13 in a guest, recorded by `trace-cmd record --file-version 6`, and `--file-version
//! 7 --compression zstd`.

use std::fs::File;
use std::io::Cursor;
use std::path::Path;

use trace::event::Kind;

fn fixture(name: &str) -> Vec<u8> {
    crate::support::fixture("trace-cmd", name)
}

/// Each event's time in microseconds, CPU, thread, and kind, with what a switch says.
fn told(bytes: Vec<u8>) -> Vec<String> {
    let mut reader = trace::open(Cursor::new(bytes)).expect("a trace");
    let mut told = Vec::new();
    while let Some(event) = reader.next() {
        let names = reader.names();
        let what = match &event.kind {
            Kind::Switch { prev, state, next } => {
                format!("{} {:?} {state:?} {} {:?}", prev.tid, prev.prio, next.tid, next.prio)
            }
            Kind::Binder(_, binder) => format!("{binder:?}"),
            Kind::Other { name } => names.text(*name).to_owned(),
            other => format!("{:?}", std::mem::discriminant(other)),
        };
        told.push(format!("{} {} {} {what}", (event.ts + 500) / 1000, event.cpu, event.tid));
    }
    let report = reader.report();
    assert!(report.is_whole(), "{report}");
    told.sort();
    told
}

#[test]
fn each_event_is_as_trace_cmd_reports_it() {
    for (file, report) in [("v6.dat.gz", "v6.txt.gz"), ("v7.dat", "v7.txt.gz")] {
        let (ours, theirs) = (told(fixture(file)), told(fixture(report)));
        let differ = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
        assert_eq!(differ, None, "{file}: ours, theirs");
        assert_eq!(ours.len(), theirs.len(), "{file}");
        assert!(ours.len() > 3000, "{file}");
    }
}

#[test]
fn a_packed_file_is_to_be_unpacked() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/trace-cmd/v6.dat.gz");
    let error = trace::open(File::open(path).expect("a fixture")).expect_err("packed").to_string();
    assert!(error.contains("unpack it first: gzip -d"), "{error}");
}

#[test]
fn damage_is_an_error_or_a_stated_partial_result() {
    let mut random = fastrand::Rng::with_seed(7);
    for file in [fixture("v6.dat.gz"), fixture("v7.dat")] {
        for round in 0..40 {
            let mut damaged = file.clone();
            // The head and the options of version 6 are at the start, those of version 7 at the end.
            let place = match round % 3 {
                0 => 0..300,
                1 => damaged.len() - 2000..damaged.len(),
                _ => 0..damaged.len(),
            };
            for _ in 0..random.usize(1..8) {
                damaged[random.usize(place.clone())] = random.u8(..);
            }
            if round % 4 == 0 {
                damaged.truncate(random.usize(..damaged.len()));
            }
            let Ok(mut reader) = trace::open(Cursor::new(damaged)) else { continue };
            let events = reader.by_ref().filter(|event| !matches!(event.kind, Kind::Lost { .. }));
            let count = events.count() as u64;
            assert_eq!(reader.report().events, count);
        }
    }
}
