//! Tests of the analysis on recordings whose cause is known by construction.
//! Not here: synthetic streams (`model`'s tests).
//! Facts: mainline's C driver of Linux 7.2 under instruction counting, so the host's load does not affect the guest's
//! time. `inversion` and `raised` are excerpts of `binderperf inversion`: a FIFO 99 caller, a server that computes
//! for 1 ms, three hogs on the same CPU; `queued` is from the inheritance cases of `binderperf latency`, where the
//! only looper sleeps for 40 ms in one call while another waits.

use std::fs::File;
use std::path::Path;

use trace::cause::Label;
use trace::verdict::{Analysis, AnalysisOptions, Analyzer, SlowCall};

fn analysed(name: &str, options: AnalysisOptions) -> Analysis {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reader = trace::open(file).expect("ftrace's text");
    let mut analyzer = Analyzer::new(options);
    while let Some(event) = reader.next() {
        analyzer.take(&event, reader.names());
    }
    let analysis = analyzer.finish(reader.names(), reader.report());
    assert_eq!((analysis.lost, analysis.gaps, analysis.problems.len()), (0, 0, 0));
    for slow in &analysis.slow {
        let whole: u64 = slow.reasons.iter().map(|reason| reason.ns).sum();
        assert_eq!(whole, slow.ns, "the reasons are not the whole: {slow:#?}");
    }
    for sum in [&analysis.all, &analysis.slowest, &analysis.oneway] {
        assert_eq!(sum.shares.iter().map(|share| share.ns).sum::<u64>(), sum.ns);
    }
    analysis
}

fn all(name: &str) -> Analysis {
    analysed(
        name,
        AnalysisOptions { deadline_ns: Some(2_000_000), worst: 1000, ..AnalysisOptions::default() },
    )
}

/// Calls of the experiment itself: those whose server computed for its millisecond.
fn of_the_experiment(analysis: &Analysis) -> Vec<&SlowCall> {
    let computes = |slow: &&SlowCall| {
        slow.caller.prio == Some(0)
            && slow.reasons.iter().any(|reason| reason.cause == Label::ServerRunning && reason.ns > 900_000)
    };
    analysis.slow.iter().filter(computes).collect()
}

#[test]
fn hogs_in_the_way_of_a_server_that_does_not_inherit_are_named() {
    let analysis = all("inversion.txt");
    let calls = of_the_experiment(&analysis);
    let late: Vec<_> = calls.iter().filter(|call| call.missed).collect();
    assert!(late.len() >= 9, "{analysis}");
    for call in &late {
        let inversion = call.inversion.as_ref().unwrap_or_else(|| panic!("not named: {}", call.verdict));
        let server = call.server.as_ref().expect("it was served");
        assert_eq!(inversion.waiter.tid, server.tid);
        // The hogs of that run.
        let hogs: u64 =
            inversion.behind.iter().filter(|task| (43..=45).contains(&task.tid)).map(|task| task.ns).sum();
        assert!(hogs * 10 >= inversion.ns * 9, "{}", call.verdict);
        assert_eq!(call.reasons[0].cause, Label::Runnable, "{}", call.verdict);
        for words in ["deadline 2.00 ms", "priority inversion", "caller rt 99", "not boosted (nice 0)"] {
            assert!(call.verdict.contains(words), "{words}: {}", call.verdict);
        }
    }
    assert_eq!(analysis.counts.missed, late.len() as u64);
    assert_eq!(analysis.inversions.calls, late.len() as u64);
    // The sum names the worst call and its cost.
    let worst = analysis.inversions.worst.expect("one is the worst");
    let longest = late.iter().filter_map(|call| call.inversion.as_ref()).map(|inversion| inversion.ns).max();
    assert_eq!((Some(worst.ns), analysis.inversions.ns >= worst.ns), (longest, true));
    let told = format!("in call {} of thread {}", worst.debug_id, worst.caller);
    assert!(analysis.to_string().contains(&told), "{analysis}");
}

#[test]
fn a_server_that_is_raised_is_not_accused() {
    let analysis = all("raised.txt");
    let calls = of_the_experiment(&analysis);
    assert!(calls.len() >= 9, "{analysis}");
    for call in calls {
        assert_eq!(call.reasons[0].cause, Label::ServerRunning, "{}", call.verdict);
        assert!(call.inversion.is_none() && !call.missed, "{}", call.verdict);
    }
    assert_eq!((analysis.inversions.calls, analysis.counts.missed), (0, 0));
    assert!(analysis.to_string().contains("priority inversion: none in "), "{analysis}");
}

#[test]
fn a_call_that_waits_for_the_only_looper_is_told_what_that_was_busy_with() {
    let analysis = all("queued.txt");
    let slept = analysis.slow.iter().find(|call| call.debug_id == 852).expect("the call that blocks");
    assert_eq!(slept.reasons[0].cause, Label::Sleeping, "{}", slept.verdict);
    let queued = analysis.slow.iter().find(|call| call.debug_id == 853).expect("the call that waits");
    assert_eq!(queued.reasons[0].cause, Label::NoFreeThread, "{}", queued.verdict);
    assert!(queued.reasons[0].share > 0.95, "{}", queued.verdict);
    assert!(queued.verdict.contains("was busy with call 852"), "{}", queued.verdict);
}

#[test]
fn a_filter_takes_calls_by_either_side() {
    let everybody = all("queued.txt").counts.calls;
    let mut options = AnalysisOptions { worst: 1000, ..AnalysisOptions::default() };
    options.filter.pids = vec![52];
    let some = analysed("queued.txt", options.clone());
    assert!(some.counts.calls > 0 && some.counts.calls < everybody, "{some}");
    assert!(some.slow.iter().all(|call| call.caller.tid == 52 || call.server_process == 52));
    options.filter.pids.clear();
    options.filter.comm = Some("nobody".into());
    assert_eq!(analysed("queued.txt", options).counts.calls, 0);
}

#[test]
fn the_answer_survives_json() {
    let analysis = all("queued.txt");
    let json = serde_json::to_string(&analysis).expect("numbers and texts");
    let back: Analysis = serde_json::from_str(&json).expect("what was written");
    assert_eq!(back.to_string(), analysis.to_string());
    let told = |analysis: &Analysis| {
        let slow = analysis.slow.iter();
        slow.map(|slow| (slow.verdict.clone(), slow.parts.clone(), slow.inversion.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&back), told(&analysis));
}

#[test]
fn the_rust_drivers_calls_are_put_together_and_named() {
    let analysis = all("binder-rust.bptrace");
    // Four calls of each class, and those that set up the test.
    assert_eq!(analysis.slow.len(), 14, "{analysis}");
    assert!(
        analysis.slow.iter().all(|call| call.server.is_some() && call.replied_ns.is_some()),
        "{analysis}"
    );
    let labels: Vec<_> = analysis.slow.iter().filter_map(|call| call.label.as_deref()).collect();
    let of = |class: &str| labels.iter().filter(|label| label.contains(&format!("class={class}"))).count();
    assert_eq!((of("fifo"), of("other")), (4, 4), "{labels:?}");
}
