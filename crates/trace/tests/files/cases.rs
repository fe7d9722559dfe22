//! Small traces after public reports, each with what must be said of it.
//! Not here: the rules behind the answers (`model`'s and `verdict`'s tests).

use std::fs::File;
use std::path::Path;

use trace::cause::Label;
use trace::verdict::{Analysis, AnalysisOptions, Analyzer, By, Filter, Sampler, Sum, UnfinishedCount};

fn analysed(name: &str, deadline_ns: Option<u64>) -> Analysis {
    with(name, AnalysisOptions { deadline_ns, worst: 10, ..AnalysisOptions::default() })
}

fn with(name: &str, options: AnalysisOptions) -> Analysis {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cases").join(name);
    let mut reader = trace::open(File::open(path).expect("a fixture")).expect("a trace");
    let mut analyzer = Analyzer::new(options);
    while let Some(event) = reader.next() {
        analyzer.take(&event, reader.names());
    }
    analyzer.finish(reader.names(), reader.report())
}

/// Causes of a sum with their nanoseconds.
fn shares(sum: &Sum) -> Vec<(&str, u64)> {
    sum.shares.iter().map(|share| (share.cause.name(), share.ns)).collect()
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
    assert!(text.contains(" of client 100 (priority unknown) to Binder:200_1 201 took 140 ms"), "{text}");
    for accusation in ["computed", " ran ", "driver took"] {
        assert!(!text.contains(accusation), "{accusation}: {text}");
    }
}

#[test]
fn a_call_that_never_came_back_has_an_age_and_says_what_its_server_is_in() {
    let found = analysed("hang.txt", Some(2_500_000));
    assert_eq!((found.counts.missed, found.counts.unanswered, found.unanswered.len()), (1, 1, 1));
    let call = &found.unanswered[0];
    assert_eq!((call.debug_id, call.method.as_deref(), call.ns), (1, Some("IFoo.bar"), 7_999_900_000));
    assert!(call.missed && call.reasons[0].cause == Label::Monitor, "{call:#?}");
    for words in [
        "IFoo.bar, call 1 of main 100",
        "is unanswered after 8.00 s, at the trace's end, over the deadline of 2.50 ms",
        "for a monitor held by worker 210",
    ] {
        assert!(call.verdict.contains(words), "{words}: {}", call.verdict);
    }
    let text = found.to_string();
    assert!(
        text.contains("1 over the deadline of 2.50 ms") && text.contains("- MISS IFoo.bar, call 1"),
        "{text}"
    );
    // A call that has not waited so long is no miss.
    let found = analysed("hang.txt", Some(9_000_000_000));
    assert_eq!((found.counts.missed, found.unanswered[0].missed), (0, false));
    assert!(
        found.to_string().contains("1 call under way at the trace's end, the longest for 8.00 s"),
        "{found}"
    );
}

#[test]
fn failed_calls_come_with_the_drivers_word_and_who_called_whom() {
    let found = analysed("failed.txt", None);
    let all = found.failed.iter().map(|call| {
        let word = call.failure.as_ref().and_then(|failure| failure.reply.as_deref());
        (call.debug_id, word.unwrap_or("?"), call.ns / 1000, call.caller.tid, call.server_process, call.code)
    });
    let want = [
        (1, "BR_FAILED_REPLY", 399, 100, 200, 1),
        (3, "BR_DEAD_REPLY", 1_999_999, 100, 200, 1),
        (5, "BR_FROZEN_REPLY", 99, 100, 200, 1),
    ];
    assert_eq!(all.collect::<Vec<_>>(), want);
    let text = found.to_string();
    assert!(text.contains("\nfailed\n- call 1 (code 1) of client 100"), "{text}");
    assert!(text.contains(" to process 200 failed after 399 us: BR_FAILED_REPLY"), "{text}");
    assert!(
        text.contains("to Binder:200_1 201 failed after 2.00 s: BR_DEAD_REPLY; it had been taken"),
        "{text}"
    );
}

#[test]
fn oneway_calls_that_fail_are_spam_or_are_never_taken_are_named() {
    let found = analysed("oneway_failed.txt", None);
    assert_eq!(found.failed.len(), 1);
    let words = "oneway call 3 (code 1) of client 100 (priority unknown) to process 200 failed after 9.00 us: BR_FAILED_REPLY";
    assert!(found.failed[0].verdict.contains(words), "{}", found.failed[0].verdict);
    let [spam] = &found.oneway_spam[..] else { panic!("{:?}", found.oneway_spam) };
    assert_eq!(
        (spam.caller.tid, spam.server_process, spam.code, spam.debug_id, spam.times),
        (100, 200, 1, 1, 1)
    );
    assert!(
        found.to_string().contains("BR_ONEWAY_SPAM_SUSPECT 1 time: client 100 to node 5 of process 200"),
        "{found}"
    );
    let untaken = "oneway call 5 (code 1) of client 100 (priority unknown) to process 200 is not taken by anybody 3.00 s later";
    assert!(found.unanswered[0].verdict.contains(untaken), "{}", found.unanswered[0].verdict);

    let found = analysed("oneway_unreceived.txt", None);
    let [call] = &found.unanswered[..] else { panic!("{:?}", found.unanswered) };
    assert_eq!((call.caller.comm.as_str(), call.server_process, call.code), ("some.fwupd.app", 1196, 3));
    assert!(call.oneway && call.server.is_none() && !call.missed, "{call:#?}");
}

#[test]
fn threads_and_processes_have_the_names_that_any_packet_has() {
    let found = analysed("names.pftrace", None);
    let call = found.slow.first().expect("a call");
    assert_eq!(
        (call.caller.comm.as_str(), call.caller.process.as_str()),
        ("client-main", "com.example.client")
    );
    let server = call.server.as_ref().expect("it was served");
    assert_eq!((server.comm.as_str(), server.tid, server.pid), ("binder:200_1", 201, Some(200)));
    assert_eq!(server.process, "vendor.example.hardware.power-service");
    let words = "of client-main 100 (com.example.client, priority unknown) to binder:200_1 201 (vendor.example.hardware.power-service)";
    assert!(call.verdict.contains(words), "{}", call.verdict);
    let options = AnalysisOptions { by: Some(By::Pair), ..AnalysisOptions::default() };
    let pairs = with("names.pftrace", options).groups;
    assert_eq!(pairs[0].name, "com.example.client 100 -> vendor.example.hardware.power-service 200");
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
    assert_eq!((call.reasons[0].cause, call.reasons[0].ns / 1_000_000), (Label::NoFreeThread, 800));
    assert!(call.verdict.contains("was busy with call 1"), "{}", call.verdict);
}

#[test]
fn calls_without_a_reply_are_counted_by_group() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cases/failed.txt");
    let mut reader = trace::open(File::open(path).expect("a fixture")).expect("a trace");
    let mut sampler = Sampler::new(Filter::default(), By::Method);
    while let Some(event) = reader.next() {
        sampler.take(&event, reader.names());
    }
    let found = sampler.finish(reader.names(), reader.report());
    let count = UnfinishedCount { failed: 3, unanswered: 0 };
    assert_eq!(
        found.unfinished.into_iter().collect::<Vec<_>>(),
        [("client -> a process without a name, code 1".into(), count)]
    );
}
