//! Instruction count of a call's serialisation, compared with a record.
//! Not here: its time (the bench `serialisation`), guest instructions (`guest::throughput`), the cost of
//! receiving from a driver (`docs/reading-the-numbers.md`).
//!
//! This test program counts itself: started with [`COUNTED`] set, it only makes the calls. `make counts` runs
//! it as it is shipped, `make record-counts` rewrites the record. Another compiler
//! generates other code, so the record names its compiler.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

use needs::{Need, need};

use steps::{Flavour, count};

/// Permitted difference from the record, in both directions: an improvement must be recorded, or it could be
/// lost unnoticed. The same code counts the same to within 0.1 %; the rest is for the compiler, which may
/// inline differently after an unrelated change. One additional allocation is 20 %.
const TOLERANCE: f64 = 0.05;
/// Permitted difference if the compiler is not the record's.
const TOLERANCE_ELSEWHERE: f64 = 0.25;
const PAYLOAD: usize = 4;
/// Environment variable with the flavour and the number of calls for a counted run.
const COUNTED: &str = "BINDERPERF_COUNTED";

#[test]
fn counted_calls() {
    let Ok(wanted) = std::env::var(COUNTED) else { return };
    let (flavour, calls) = wanted.split_once(' ').expect("a flavour and a number of calls");
    let named = |known: &Flavour| known.to_string() == flavour;
    let flavour = Flavour::ALL.into_iter().find(named).expect("a flavour");
    steps::repeat(flavour, PAYLOAD, calls.parse().expect("a number")).expect("the vector came back");
}

/// Instructions per call.
fn per_call(flavour: Flavour) -> f64 {
    let run = |calls| count::of_test("counted_calls", (COUNTED, &format!("{flavour} {calls}")));
    count::of_one(run).expect("valgrind counts")
}

/// Returns the compiler and its target, in one line.
fn compiler() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc starts");
    let told = String::from_utf8(output.stdout).expect("text");
    let field = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("?").trim();
    format!("rustc {} for {}", field("release:"), field("host:"))
}

/// `tests/instructions.txt`: the compiler, then a count for each flavour.
#[derive(Debug, PartialEq)]
struct Record {
    compiler: String,
    counts: BTreeMap<String, f64>,
}

impl Record {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let compiler = lines.next()?.to_owned();
        let count = |line: &str| {
            let (name, count) = line.split_once(' ')?;
            Some((name.to_owned(), count.parse().ok()?))
        };
        let counts = lines.map(count).collect::<Option<_>>()?;
        Some(Self { compiler, counts })
    }

    fn to_text(&self) -> String {
        let mut text = format!(
            "# Instructions of a sendVec call of {PAYLOAD} B in serialisation alone, both directions, release build.\n\
             # Held by `make counts`, written by `make record-counts`.\n{}\n",
            self.compiler
        );
        for (name, count) in &self.counts {
            writeln!(text, "{name} {count:.1}").expect("a string takes all");
        }
        text
    }

    /// Returns the error of a count, if any.
    fn fault(&self, compiler: &str, flavour: &str, counted: f64) -> Option<String> {
        let Some(recorded) = self.counts.get(flavour) else {
            return Some(format!("{flavour}: {counted:.1} instructions a call, and no record"));
        };
        let tolerance = if self.compiler == compiler { TOLERANCE } else { TOLERANCE_ELSEWHERE };
        let change = counted / recorded - 1.0;
        (change.abs() > tolerance).then(|| {
            format!(
                "{flavour}: {counted:.1} instructions a call, {recorded:.1} on record ({:+.1} %, tolerance {:.0} %); \
                 if that is meant, `make record-counts` writes it down",
                change * 100.0,
                tolerance * 100.0
            )
        })
    }
}

fn record_file() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/instructions.txt"))
}

#[test]
fn a_call_costs_as_many_instructions_as_recorded() {
    need!(Need::Build.met_if(!cfg!(debug_assertions), "the record is for the release profile"));
    let counts: BTreeMap<String, f64> =
        Flavour::ALL.into_iter().map(|flavour| (flavour.to_string(), per_call(flavour))).collect();
    let compiler = compiler();
    for (flavour, count) in &counts {
        println!("{flavour}: {count:.1} instructions a call ({compiler})");
    }
    if std::env::var_os("BINDERPERF_RECORD_COUNTS").is_some() {
        return std::fs::write(record_file(), Record { compiler, counts }.to_text()).expect("written");
    }
    let record = std::fs::read_to_string(record_file()).expect("there is a record");
    let record = Record::parse(&record).expect("a record as it was written");
    need!(Need::Build.met_if(cfg!(target_arch = "x86_64"), "the record is for x86_64"));
    if record.compiler != compiler {
        println!("the record is for {}, so more may differ", record.compiler);
    }
    let faults: Vec<_> =
        counts.iter().filter_map(|(flavour, count)| record.fault(&compiler, flavour, *count)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// For `make counts` with the everyday build, which is slower.
#[test]
fn a_slower_build_is_refused_even_where_much_is_tolerated() {
    let record = std::fs::read_to_string(record_file()).expect("there is a record");
    let record = Record::parse(&record).expect("a record as it was written");
    for flavour in Flavour::ALL {
        let counted = per_call(flavour);
        let fault = record.fault("another compiler", &flavour.to_string(), counted);
        assert!(
            fault.as_ref().is_some_and(|fault| fault.contains("(+")),
            "{flavour}: {counted:.1}: {fault:?}"
        );
    }
}

#[test]
fn the_same_program_has_the_same_count() {
    let [first, again] = [(); 2].map(|()| per_call(Flavour::Binder));
    assert!((first / again - 1.0).abs() < 0.001, "{first} and {again}");
}

#[test]
fn a_change_beyond_the_tolerance_is_a_fault() {
    let counts = BTreeMap::from([("binder".to_owned(), 800.0), ("hwbinder".to_owned(), 500.5)]);
    let record = Record { compiler: "rustc 1.0 for here".to_owned(), counts };
    assert_eq!(Record::parse(&record.to_text()).as_ref(), Some(&record));
    let fault = |compiler, counted| record.fault(compiler, "binder", counted);
    for fine in [800.0, 839.9, 760.1] {
        assert_eq!(fault("rustc 1.0 for here", fine), None, "{fine}");
    }
    for (wrong, word) in [(840.1, "+5.0 %"), (759.0, "-5.1 %"), (1600.0, "+100.0 %")] {
        let fault = fault("rustc 1.0 for here", wrong).expect("beyond the tolerance");
        assert!(fault.contains(word) && fault.contains("record-counts"), "{fault}");
    }
    assert_eq!(fault("rustc 2.0 for here", 900.0), None);
    assert!(fault("rustc 2.0 for here", 1100.0).is_some());
    assert!(record.fault("rustc 1.0 for here", "other", 1.0).expect("a fault").contains("no record"));
    assert_eq!(Record::parse("compiler\nbinder many\n"), None);
}
