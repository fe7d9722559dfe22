//! Room: how many instructions the release build spends on what needs no driver, held to a record.
//! Not here: the same as time (`throughput serialisation`), guest instructions (`throughput_in_guest`),
//! what receiving from a driver adds (`docs/reading-the-numbers.md` says what that is and who holds it).
//! Facts: valgrind's callgrind counts each instruction of the program it runs, the same every time.
//! Two runs with different numbers of calls differ by the calls alone.
//!
//! `make counts` runs it, and `make record-counts` writes the record anew. Another compiler makes other
//! code, so the record names the one that it is for.

mod support;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use support::call;

/// May differ from the record by this much, either way: what became cheaper must be written down, or
/// it could creep back. The same code counts the same to within 0.1 %; the rest is for the compiler, which
/// inlines a little otherwise when something far away changes. One allocation more is 20 %.
const TOLERANCE: f64 = 0.05;
/// The same, if the compiler is another than the record's.
const TOLERANCE_ELSEWHERE: f64 = 0.25;
const FLAVOURS: [&str; 2] = ["binder", "hwbinder"];
const PAYLOAD: &str = "4";

fn collected(program: &str, flavour: &str, calls: u64) -> u64 {
    let calls = calls.to_string();
    let counter = ["--tool=callgrind", "--callgrind-out-file=/dev/null", program];
    let counted =
        ["throughput", "serialisation", "--payload", PAYLOAD, "--flavour", flavour, "--calls", &calls];
    let called = call("valgrind", &[&counter[..], &counted].concat(), &[]);
    assert_eq!(called.code, Some(0), "{}", called.stderr);
    let line = called.stderr.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) = line.unwrap_or_else(|| panic!("valgrind says no count:\n{}", called.stderr));
    count.trim().parse().expect("a number")
}

/// Instructions per call.
fn per_call(program: &str, flavour: &str) -> f64 {
    const FEW: u64 = 1_000;
    const MANY: u64 = 11_000;
    let (few, many) = (collected(program, flavour, FEW), collected(program, flavour, MANY));
    (many - few) as f64 / (MANY - FEW) as f64
}

/// The compiler and what it compiles for, in one line.
fn compiler() -> String {
    let told = call("rustc", &["-vV"], &[]).stdout;
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

    /// What is wrong with a count.
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
    let release = std::env::var("BINDERPERF_RELEASE").expect("BINDERPERF_RELEASE names the release build");
    let counts: BTreeMap<String, f64> =
        FLAVOURS.iter().map(|flavour| ((*flavour).to_owned(), per_call(&release, flavour))).collect();
    let compiler = compiler();
    for (flavour, count) in &counts {
        println!("{flavour}: {count:.1} instructions a call ({compiler})");
    }
    if std::env::var_os("BINDERPERF_RECORD_COUNTS").is_some() {
        return std::fs::write(record_file(), Record { compiler, counts }.to_text()).expect("written");
    }
    let record = std::fs::read_to_string(record_file()).expect("there is a record");
    let record = Record::parse(&record).expect("a record as it was written");
    if !cfg!(target_arch = "x86_64") {
        return println!("SKIP: the record is for x86_64");
    }
    if record.compiler != compiler {
        println!("the record is for {}, so more may differ", record.compiler);
    }
    let faults: Vec<_> =
        counts.iter().filter_map(|(flavour, count)| record.fault(&compiler, flavour, *count)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A build that is slower on purpose: the one for tests, which is hardly optimised.
#[test]
fn a_slower_build_is_refused_even_where_much_is_tolerated() {
    let record = std::fs::read_to_string(record_file()).expect("there is a record");
    let record = Record::parse(&record).expect("a record as it was written");
    for flavour in FLAVOURS {
        let counted = per_call(env!("CARGO_BIN_EXE_binderperf"), flavour);
        let fault = record.fault("another compiler", flavour, counted);
        assert!(
            fault.as_ref().is_some_and(|fault| fault.contains("(+")),
            "{flavour}: {counted:.1}: {fault:?}"
        );
    }
}

#[test]
fn the_same_program_has_the_same_count() {
    let [first, again] = [(); 2].map(|()| per_call(env!("CARGO_BIN_EXE_binderperf"), "binder"));
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
