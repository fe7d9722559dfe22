//! Small traces after public reports, each with what must be said of it.
//! Not here: the rules behind the answers (`model`'s and `verdict`'s tests).

use std::fs::File;
use std::path::Path;

use trace::verdict::{Analysis, AnalysisOptions, Analyzer, Sum};

fn analysed(name: &str, deadline_ns: Option<u64>) -> Analysis {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cases").join(name);
    let mut reader = trace::open(File::open(path).expect("a fixture")).expect("a trace");
    let options = AnalysisOptions { deadline_ns, worst: 10, ..AnalysisOptions::default() };
    let mut analyzer = Analyzer::new(options);
    while let Some(event) = reader.next() {
        analyzer.take(&event, reader.names());
    }
    analyzer.finish(reader.names(), reader.report())
}

/// Causes of a sum with their nanoseconds.
fn shares(sum: &Sum) -> Vec<(&str, u64)> {
    sum.shares.iter().map(|share| (share.cause.as_str(), share.ns)).collect()
}

#[test]
fn binder_events_alone_show_no_cause() {
    let found = analysed("binder_only_slow.txt", None);
    assert_eq!(shares(&found.all), [("not_shown", 140_050_000)]);
    let [warning] = &found.problems[..] else { panic!("{:?}", found.problems) };
    for words in ["no sched_switch", "causes cannot be told", "binderperf trace record", "trace config sched"]
    {
        assert!(warning.contains(words), "{words}: {warning}");
    }
    let text = found.to_string();
    assert!(text.contains("100.0 %  not shown"), "{text}");
    for accusation in ["computed", " ran ", "driver took"] {
        assert!(!text.contains(accusation), "{accusation}: {text}");
    }
}

#[test]
fn a_oneway_call_without_a_receivers_events_shows_no_cause() {
    let found = analysed("oneway_failed.txt", None);
    assert_eq!(shares(&found.oneway), [("not_shown", 499_999_000)]);
}

#[test]
fn the_second_caller_of_a_busy_server_waits_for_its_thread() {
    let found = analysed("starved.txt", None);
    let call = found.slow.iter().find(|call| call.debug_id == 3).expect("the second call");
    assert_eq!((call.reasons[0].cause.as_str(), call.reasons[0].ns / 1_000_000), ("no_free_thread", 800));
    assert!(call.verdict.contains("was busy with call 1"), "{}", call.verdict);
}
