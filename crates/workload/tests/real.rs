//! Descriptions and figures of recorded traces: those of the reader's tests, of both drivers and the embedded one, as
//! text, as Perfetto's and as trace.dat.
//! Not here: the rules, on made-up traces (`src/from_trace/tests.rs`).

use std::fs::File;
use std::path::{Path, PathBuf};

use trace::event::{Binder, Event, Kind, Names};
use workload::description::Step;
use workload::distance::Distance;
use workload::from_trace::{Options, describe};
use workload::recording::{Recording, Selection};
use workload::{Recorder, Workload, print, text};

/// Words of a description.
const WORDS: [&str; 17] = [
    "process",
    "pool",
    "copies",
    "thread",
    "nice",
    "fifo",
    "rr",
    "times",
    "call",
    "oneway",
    "fds",
    "known",
    "maybe-refused",
    "work",
    "sleep",
    "at",
    "new",
];

fn fixtures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/fixtures");
    let mut files = Vec::new();
    for folder in [root.join("perfetto"), root.join("cases"), root] {
        for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path())
        {
            let name = entry.to_string_lossy();
            if [".pftrace", ".trace.gz", ".txt", ".dat"].iter().any(|end| name.ends_with(end)) {
                files.push(entry);
            }
        }
    }
    files.sort();
    files
}

fn events(path: &Path) -> Option<(Vec<Event>, Names)> {
    let mut reader = trace::open(File::open(path).expect("a file")).ok()?;
    let events = reader.by_ref().collect();
    Some((events, reader.names().clone()))
}

fn recording<'e>(events: impl IntoIterator<Item = &'e Event>, names: &Names) -> Recording {
    let mut recorder = Recorder::default();
    events.into_iter().for_each(|event| recorder.take(event, names));
    recorder.finish(names)
}

fn count(steps: &[Step]) -> u64 {
    let of = |step: &Step| match step {
        Step::Call(call) => u64::from(call.times) * (1 + count(&call.served)),
        _ => 0,
    };
    steps.iter().map(of).sum()
}

fn calls(workload: &Workload) -> u64 {
    workload.threads.iter().map(|thread| count(&thread.steps)).sum()
}

/// A word of a description that it may have: a keyword, a neutral name, a number.
fn is_neutral(word: &str) -> bool {
    let number = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || b".->".contains(&byte))
    };
    let units = ["ns", "us", "ms", "s", ""];
    WORDS.contains(&word)
        || word.strip_prefix('p').is_some_and(number)
        || units.iter().any(|unit| word.strip_suffix(unit).is_some_and(number))
}

#[test]
fn every_recorded_trace_has_a_description_without_names_and_figures_of_its_own() {
    let (mut described, mut with_sizes, mut nested, mut oneway) = (0, 0, 0, 0);
    for path in fixtures() {
        let Some((events, names)) = events(&path) else { continue };
        let recording = recording(&events, &names);
        let Ok(selected) = recording.select(&Selection::default()) else { continue };
        let workload = describe(&recording, &Options::default()).expect("it has calls");
        let written = print(&workload);
        assert_eq!(text::parse(&written).as_ref(), Ok(&workload), "{}", path.display());
        let lines = written.lines().skip(1).filter(|line| !line.starts_with('#'));
        for word in lines.flat_map(str::split_whitespace) {
            assert!(is_neutral(word), "{}: {word}", path.display());
        }
        let figures = selected.figures();
        let all = figures.all.calls + figures.all.oneway;
        assert_eq!(calls(&workload), all, "{}: {:?}", path.display(), workload.notes);
        assert_eq!(figures.pairs.iter().map(|(_, pair)| pair.calls + pair.oneway).sum::<u64>(), all);
        assert!(figures.all.concurrency <= figures.all.most_at_once as f64 + 1e-9, "{}", path.display());
        let distance = Distance::of(&figures, &figures, None);
        assert!(distance.beyond(1.000_001).is_empty(), "{}", path.display());
        println!("{}:\n{}\n{figures}", path.display(), workload.notes.join("\n"));
        described += 1;
        with_sizes += u64::from(recording.shown.sizes);
        nested += recording.calls().iter().filter(|call| call.parent.is_some()).count();
        oneway += figures.all.oneway;
    }
    println!("{described} described, {with_sizes} with sizes, {nested} nested and {oneway} oneway calls");
    assert!(described >= 20 && with_sizes > 5 && nested > 10, "{described} {with_sizes} {nested}");
}

/// With nothing but the events of calls, the calls are the same.
#[test]
fn what_a_trace_lacks_costs_no_call() {
    for name in ["c-both.pftrace", "rust-both.pftrace", "c-embedded.pftrace"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/fixtures/perfetto").join(name);
        let (events, names) = events(&path).expect("a trace");
        let needed = |event: &&Event| {
            let binder = |binder: &Binder| matches!(binder, Binder::Transaction(_) | Binder::Received { .. });
            matches!(&event.kind, Kind::Binder(_, found) if binder(found))
        };
        let (whole, bare) = (recording(&events, &names), recording(events.iter().filter(needed), &names));
        assert!(!bare.shown.switches && !bare.shown.sizes);
        assert_eq!(whole.calls().len(), bare.calls().len(), "{name}");
        let of = |recording: &Recording| describe(recording, &Options::default()).expect("calls");
        let (whole, bare) = (of(&whole), of(&bare));
        assert_eq!(calls(&whole), calls(&bare), "{name}");
        assert!(bare.notes.iter().any(|note| note.contains("assumed")), "{:?}", bare.notes);
    }
}
