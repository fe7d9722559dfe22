//! Each failing item of the contract, made on a driver by its conformance test: what the driver writes about it is explained
//! with that item's number.
//! Not here: whether the driver fails as it promises (crate `conformance`); a driver's texts in files (`cases`).
//!
//! `BINDERPERF_TEST_DRIVER` says which driver: kernel (the default) or embedded. Sources are those that a user has: the kernel's
//! log, and `failed_transaction_log` where the driver keeps one. Arguments choose items by parts of their numbers.
#![forbid(unsafe_code)]

use std::collections::{BTreeSet, HashSet};
use std::process::ExitCode;
use std::time::Duration;

use backend::AnyContext;
use backend::locate::{self, Wanted};
use conformance::{HELPER_COMMAND, Item, Kind, Options, Outcome, Subject};
use driver::kernel_state::{self, StateFile};
use explain::{Explainer, FailureReport, REPORT_FAMILY, REPORT_GROUP, Report};
use host::klog;
use needs::Need;
use sys::netlink::{self, Listener};

/// How an item's failure shows: by exactly its number, as one of several, or not at all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    /// First of an answer's items.
    First,
    /// Among an answer's items: the numbers that the driver writes leave it open.
    Among,
    /// The driver writes nothing.
    Silent,
    /// First, or the driver did not fail: that depends on the moment.
    Either,
}

use Shows::{Among, Either, First, Silent};

/// Items of which a part is a failure, and how that shows on the C, the Rust and the embedded driver. What a refused call leaves
/// as it was (OBJ-24, OBJ-26, OBJ-27) is not among them: the refusal is that of OBJ-01, OBJ-10 or OBJ-17.
const FAILING: &[(&str, [Shows; 3])] = &[
    ("OPN-09", [Among, Silent, Among]),
    ("OPN-10", [First, Either, First]),
    ("WR-16", [Among, Silent, Silent]),
    ("LP-05", [First, Silent, Silent]),
    ("TX-07", [First, Silent, First]),
    ("TX-08", [First, First, First]),
    ("TX-09", [First, Silent, First]),
    ("TX-10", [First, Silent, Silent]),
    ("TX-11", [First, Silent, Silent]),
    ("TX-13", [First, First, First]),
    ("TX-15", [First, Silent, Silent]),
    ("TX-16", [First, Among, Silent]),
    ("TX-17", [Among, Among, Among]),
    ("TX-18", [First, First, First]),
    ("TX-22", [Among, Silent, Among]),
    ("OW-06", [First, Among, First]),
    ("OW-07", [First, Silent, Silent]),
    ("OW-13", [First, Silent, Silent]),
    ("BUF-04", [First, First, First]),
    ("BUF-05", [First, Silent, Silent]),
    ("OBJ-01", [First, First, First]),
    ("OBJ-02", [First, Among, First]),
    ("OBJ-05", [First, Among, Among]),
    ("OBJ-07", [First, First, Among]),
    ("OBJ-09", [First, First, First]),
    ("OBJ-10", [First, First, First]),
    ("OBJ-12", [First, Silent, Silent]),
    ("OBJ-15", [First, Among, Among]),
    ("OBJ-17", [First, First, Among]),
    ("REF-03", [First, First, Silent]),
    ("REF-07", [First, Silent, Silent]),
    ("REF-11", [First, Silent, Silent]),
    ("DTH-01", [First, First, Silent]),
    ("DTH-02", [First, First, Silent]),
    ("DTH-05", [First, Silent, Silent]),
    ("FRZ-01", [First, Silent, First]),
    ("CTX-01", [First, First, Silent]),
    ("CTX-02", [First, Silent, Silent]),
    ("CTX-05", [First, Silent, Among]),
];

/// Items whose failure is also explained by the driver's report over netlink alone.
const REPORTED: [&str; 10] =
    ["OPN-09", "TX-07", "TX-08", "TX-09", "TX-13", "TX-22", "OW-06", "BUF-04", "OBJ-01", "OBJ-10"];

/// Longer than the time in which the C driver's function for such lines writes 10 at most.
const LIMITED_FOR: Duration = Duration::from_secs(6);

/// The parts of a driver's sources that were read before.
struct Sources {
    context: AnyContext,
    log: Option<klog::Watch>,
    entries: HashSet<String>,
    /// C driver from Linux 6.18.
    listener: Option<Listener>,
    /// Items whose failure the driver also reported over netlink, so that it was explained.
    reported: Vec<&'static str>,
}

impl Sources {
    fn new(context: AnyContext) -> Self {
        let listener = Listener::join(REPORT_FAMILY, REPORT_GROUP).ok();
        Self { context, log: None, entries: HashSet::new(), listener, reported: Vec::new() }
    }

    fn failed_log(&self) -> String {
        let which = StateFile::FailedTransactionLog;
        match &self.context {
            AnyContext::Kernel(context) => {
                kernel_state::read_here(Some(context.path()), which).ok().flatten()
            }
            AnyContext::Embedded(context) => context.state(which).ok().flatten(),
        }
        .unwrap_or_default()
    }

    /// From here on things are new.
    fn restart(&mut self) {
        self.entries.extend(self.failed_log().lines().map(str::to_owned));
        self.log = klog::Watch::begin().ok().filter(|_| matches!(self.context, AnyContext::Kernel(_)));
    }

    /// Explains what the driver reported over netlink, and nothing else.
    fn hear(&mut self, item: &'static str) {
        let Some(listener) = &self.listener else { return };
        let mut explainer = Explainer::new();
        while let Ok(Some((command, attributes))) = listener.next() {
            let report = FailureReport::of(command, netlink::attributes(&attributes)).expect("a report");
            let line = report.to_json_line().expect("JSON");
            explainer.read_lines("netlink", line.as_bytes()).expect("memory");
        }
        if shown(&explainer.explain(None), item, Among).is_ok() {
            self.reported.push(item);
        }
    }

    fn explain(&mut self) -> Report {
        let mut explainer = Explainer::new();
        let messages = self.log.take().map(|log| log.end().expect("the kernel's log").complaints);
        let log: String = messages.into_iter().flatten().map(|message| format!("{message}\n")).collect();
        let failed = self.failed_log();
        let new = failed.lines().filter(|line| !self.entries.contains(*line)).collect::<Vec<_>>().join("\n");
        explainer.read_lines("/dev/kmsg", log.as_bytes()).expect("memory");
        explainer.read_lines("failed_transaction_log", new.as_bytes()).expect("memory");
        explainer.explain(None)
    }
}

/// Whether a report shows an item in this way.
fn shown(report: &Report, item: &str, shows: Shows) -> Result<(), String> {
    let unknown =
        report.findings.iter().find(|finding| finding.to_string().contains("no check of the driver"));
    if let Some(finding) = unknown {
        return Err(format!("a failure that nothing explains: {finding}"));
    }
    let has = |fits: &dyn Fn(&[&'static str]) -> bool| {
        report.findings.iter().any(|finding| fits(&finding.contract) && !finding.why.is_empty())
    };
    let first = has(&|items| items.first() == Some(&item));
    let held = match shows {
        First => first,
        Among => has(&|items| items.contains(&item)),
        Silent => !first,
        Either => first || report.findings.is_empty(),
    };
    if held { Ok(()) } else { Err(format!("not explained as expected:\n{report}")) }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, words @ ..] = &words[..]
        && first == HELPER_COMMAND
    {
        return conformance::helper_main(words).map_or_else(
            |why| {
                eprintln!("{why}");
                ExitCode::FAILURE
            },
            |()| ExitCode::SUCCESS,
        );
    }
    let driver = std::env::var("BINDERPERF_TEST_DRIVER").unwrap_or_else(|_| "kernel".to_owned());
    let wanted = Wanted { driver: driver.parse().expect("a driver"), ..Wanted::default() };
    let located = match locate::find(&wanted, "binder") {
        Ok(located) => located,
        Err(error) => {
            Need::Driver.lacks(error).skip();
            return ExitCode::SUCCESS;
        }
    };
    let subject = Subject::from(located.context.clone());
    let kind = conformance::examine(&subject).expect("a driver").kind;
    let column =
        [Kind::C, Kind::Rust, Kind::Embedded].iter().position(|known| *known == kind).expect("known");
    let chosen = |item: &str| words.is_empty() || words.iter().any(|word| item.contains(word.as_str()));
    let known: BTreeSet<&str> = FAILING.iter().map(|(item, _)| *item).collect();
    let items: Vec<&'static Item> =
        conformance::catalogue().filter(|item| known.contains(item.id) && chosen(item.id)).collect();
    let mut sources = Sources::new(located.context);
    let mut results = judged(&subject, &items, &mut sources, column);
    if kind == Kind::C {
        // Of many failures at once the driver writes only some.
        for (item, result) in items.iter().zip(&mut results).filter(|(_, result)| result.is_err()) {
            std::thread::sleep(LIMITED_FOR);
            *result = judged(&subject, &[*item], &mut sources, column).remove(0);
        }
    }
    if sources.listener.is_some() && kind == Kind::C {
        println!("reported over netlink: {}", sources.reported.join(", "));
        let missing = REPORTED.iter().filter(|item| chosen(item) && !sources.reported.contains(*item));
        let missing: Vec<&str> = missing.copied().collect();
        if let (Some(last), false) = (results.last_mut(), missing.is_empty()) {
            *last =
                Err(format!("not explained by the driver's reports over netlink: {}", missing.join(", ")));
        }
    }
    for (item, result) in items.iter().zip(&results) {
        match result {
            Ok(()) => println!("test {} ... ok", item.id),
            Err(why) => println!("test {} ... FAILED\n{why}", item.id),
        }
    }
    let failed = results.iter().filter(|result| result.is_err()).count();
    let (word, passed) = (if failed == 0 { "ok" } else { "FAILED" }, results.len() - failed);
    println!("\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored");
    if failed == 0 && results.len() == items.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs items, and judges what is explained of each.
fn judged(
    subject: &Subject,
    items: &[&'static Item],
    sources: &mut Sources,
    column: usize,
) -> Vec<Result<(), String>> {
    let mut results = Vec::new();
    sources.restart();
    conformance::run(subject, items, &Options::default(), &mut |item, outcome, _| {
        let shows = FAILING.iter().find(|(id, _)| *id == item.id).map_or(Silent, |(_, shows)| shows[column]);
        results.push(match outcome {
            Outcome::Failed(why) => Err(format!("the item itself failed: {why}")),
            Outcome::Skipped(_) => Ok(()),
            _ => shown(&sources.explain(), item.id, shows),
        });
        sources.hear(item.id);
        sources.restart();
        true
    });
    results
}
