//! No cause without evidence: events of one kind are taken away from good traces, and no cause may grow but "not shown".
//! Not here: the events that prove a cause (`trace::cause::Label`), a stream for each cause (`cause::tests::scenes`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use trace::cause::{Evidence, Label, Shown};
use trace::event::{Binder, Event, Kind, Names};
use trace::verdict::{Analysis, AnalysisOptions, Analyzer};

/// Recordings with many kinds of events.
const GOOD: [&str; 17] = [
    "binder-c.bptrace",
    "binder-rust.bptrace",
    "inversion.txt",
    "queued.txt",
    "raised.txt",
    "perfetto/c-latency-binder.pftrace",
    "perfetto/rust-latency-binder.pftrace",
    "perfetto/c-loaded.pftrace",
    "perfetto/c-embedded.pftrace",
    "perfetto/c-latency-hwbinder.pftrace",
    "perfetto/c-throughput-binder.pftrace",
    "perfetto/rust-throughput-hwbinder.pftrace",
    "perfetto/rust-both.busy.trace.gz",
    "perfetto/c-disk-both.io.trace.gz",
    "perfetto/c-both.monitor.trace.gz",
    "perfetto/c-both.chain.trace.gz",
    "perfetto/c-both.lock.trace.gz",
];

/// Kinds that are taken away. The two events of one wake-up go together; each by itself is below.
const KINDS: [&str; 14] = [
    "switch",
    "wake-up",
    "blocked",
    "migrate",
    "irq",
    "softirq",
    "idle",
    "reclaim",
    "contention",
    "mark",
    "ioctl",
    "return",
    "wait_for_work",
    "write_done",
];

/// What a kind of event is called here.
fn kinds(event: &Event) -> &'static [&'static str] {
    match &event.kind {
        Kind::Switch { .. } => &["switch"],
        Kind::Waking(_) => &["wake-up", "waking"],
        Kind::Wakeup(_) | Kind::WakeupNew(_) => &["wake-up", "wakeup"],
        Kind::BlockedReason { .. } => &["blocked"],
        Kind::Migrate { .. } => &["migrate"],
        Kind::IrqEntry { .. } | Kind::IrqExit { .. } => &["irq"],
        Kind::SoftirqEntry(_) | Kind::SoftirqExit(_) => &["softirq"],
        Kind::CpuIdle { .. } => &["idle"],
        Kind::ReclaimBegin { .. } | Kind::ReclaimEnd { .. } => &["reclaim"],
        Kind::ContentionBegin(_) | Kind::ContentionEnd => &["contention"],
        // Marks of the latency test say which time is a call's; without them calls are others.
        Kind::Print(text) if !text.starts_with("binderperf: ") => &["mark"],
        Kind::Binder(_, Binder::Ioctl { .. } | Binder::IoctlDone { .. }) => &["ioctl"],
        Kind::Binder(_, Binder::Return { .. }) => &["return"],
        Kind::Binder(_, Binder::WaitForWork { .. }) => &["wait_for_work"],
        Kind::Binder(_, Binder::WriteDone { .. }) => &["write_done"],
        _ => &[],
    }
}

struct Recording {
    names: Names,
    events: Vec<Event>,
}

impl Recording {
    fn read(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
        let mut bytes = Vec::new();
        let mut file = File::open(&path).expect("a fixture");
        match name.ends_with(".gz") {
            true => GzDecoder::new(file).read_to_end(&mut bytes),
            false => file.read_to_end(&mut bytes),
        }
        .expect("a whole fixture");
        let mut reader = trace::open(Cursor::new(bytes)).expect("a trace");
        let events = reader.by_ref().collect();
        Self { names: reader.names().clone(), events }
    }

    fn analysis(&self, without: Option<&str>) -> Analysis {
        let mut analyzer =
            Analyzer::new(AnalysisOptions { worst: usize::MAX >> 4, ..AnalysisOptions::default() });
        let gone = |event: &&Event| without.is_none_or(|kind| !kinds(event).contains(&kind));
        for event in self.events.iter().filter(gone) {
            analyzer.take(event, &self.names);
        }
        analyzer.finish(&self.names, &trace::report::Report::default())
    }
}

/// Nanoseconds by cause of each call.
fn calls(analysis: &Analysis) -> BTreeMap<(i32, u64), BTreeMap<Label, u64>> {
    let mut all: BTreeMap<(i32, u64), BTreeMap<Label, u64>> = BTreeMap::new();
    for slow in &analysis.slow {
        let sums = all.entry((slow.debug_id, slow.begin_ns)).or_default();
        for part in &slow.parts {
            *sums.entry(part.cause).or_default() += part.ns;
        }
    }
    all
}

/// Causes that grew by more than those lost of which they are the less exact name: cause and nanoseconds too many.
fn grown(before: &BTreeMap<Label, u64>, after: &BTreeMap<Label, u64>) -> Vec<(Label, u64)> {
    let change = |cause: &Label| {
        let of =
            |sums: &BTreeMap<Label, u64>| sums.get(cause).map_or(0, |ns| i64::try_from(*ns).expect("small"));
        of(after) - of(before)
    };
    let grew = after.keys().filter(|cause| **cause != Label::NotShown);
    grew.filter_map(|cause| {
        let lenders = before.keys().filter(|from| from.coarser().contains(cause));
        let lent: i64 = lenders.map(|from| (-change(from)).max(0)).sum();
        let too_much = change(cause) - lent;
        (too_much > 0).then(|| (*cause, too_much.unsigned_abs()))
    })
    .collect()
}

#[test]
fn without_its_events_no_cause_grows() {
    let mut faults = BTreeMap::new();
    let mut tried = BTreeSet::new();
    for name in GOOD {
        let recording = Recording::read(name);
        let whole = calls(&recording.analysis(None));
        assert!(whole.len() >= 2, "{name}: {} calls", whole.len());
        for kind in KINDS {
            if !recording.events.iter().any(|event| kinds(event).contains(&kind)) {
                continue;
            }
            tried.insert(kind);
            let less = calls(&recording.analysis(Some(kind)));
            for (call, before) in &whole {
                let Some(after) = less.get(call) else { continue };
                for (cause, ns) in grown(before, after) {
                    let sum = faults.entry((name, kind, cause)).or_insert((0_u64, 0_u64));
                    (sum.0, sum.1) = (sum.0 + 1, sum.1 + ns);
                }
            }
        }
    }
    let text: Vec<String> = faults
        .iter()
        .map(|((name, kind, cause), (calls, ns))| {
            format!("{name} without {kind}: {} +{ns} ns in {calls} calls", cause.name())
        })
        .collect();
    assert!(faults.is_empty(), "{}", text.join("\n"));
    assert!(tried.len() >= 6, "{tried:?}");
}

/// First line of the table of causes in `docs/traces.md`.
const HEAD: &str = "| cause | what it means | events that prove it | what to do next |\n";

/// The table of causes.
fn table() -> String {
    let mut text = format!("{HEAD}|---|---|---|---|\n");
    for label in Label::ALL {
        let all = |set: &&[Evidence]| {
            let names: Vec<String> = set.iter().map(|one| format!("`{}`", one.event())).collect();
            names.join(" and ")
        };
        let proof: Vec<String> = label.proof().iter().map(all).filter(|set| !set.is_empty()).collect();
        let (name, proof) = (label.name(), proof.join("; or "));
        text += &format!("| `{name}` | {} | {proof} | {} |\n", label.doc(), label.advice());
    }
    text
}

/// `BINDERPERF_GOLDEN=write` writes the table anew where a change is meant.
#[test]
fn the_docs_have_the_table_of_causes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/traces.md");
    let docs = std::fs::read_to_string(&path).expect("the docs");
    let begin = docs.find(HEAD).expect("the table's head");
    let end = begin + docs[begin..].find("\n\n").expect("the table's end") + 1;
    if std::env::var_os("BINDERPERF_GOLDEN").is_some_and(|wanted| wanted == "write") {
        let new = format!("{}{}{}", &docs[..begin], table(), &docs[end..]);
        return std::fs::write(path, new).expect("written");
    }
    assert_eq!(&docs[begin..end], table(), "docs/traces.md: write the table with BINDERPERF_GOLDEN=write");
}

#[test]
fn each_cause_has_a_name_of_its_own_and_needs_its_events() {
    let mut names = BTreeSet::new();
    for label in Label::ALL {
        assert!(names.insert(label.name()), "{label:?}");
        assert_eq!(Label::of_name(label.name()), Some(*label));
        assert!(!label.proof().is_empty(), "{label:?}");
        for proof in label.proof() {
            assert!(label.is_proven_by(Shown::of(proof)), "{label:?}");
        }
        let of_nothing = label.is_proven_by(Shown::default());
        assert_eq!(of_nothing, *label == Label::NotShown, "{label:?}");
    }
}
