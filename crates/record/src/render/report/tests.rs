//! Room: tests of a whole report: verdicts, what is looked at first, what a page may hold.

use super::*;
use crate::sample::{self, Pair, case, latency_run, measured};
use crate::{Level, Outcome};

fn throughput() -> Run {
    let mut run = sample::run();
    run.cases.clear();
    for (index, payload) in [4, 1024, 65_536].into_iter().enumerate() {
        let total = 3_000_000 + payload * 200;
        run.cases.push(case(
            "BM_sendVec_binder",
            payload,
            index as u32,
            vec![measured(1000, total, 1_000_000)],
        ));
        run.cases.push(case(
            "BM_sendVec_pipe",
            payload,
            index as u32,
            vec![measured(1000, total / 2, 1_000_000)],
        ));
    }
    run
}

fn bundle(runs: Vec<Run>) -> Bundle {
    let entry = |(index, run)| Entry { name: format!("record-{index}.json"), run };
    Bundle { runs: runs.into_iter().enumerate().map(entry).collect(), ..Bundle::default() }
}

fn healthy() -> Run {
    let mut run = latency_run(&[Pair::healthy(0)]);
    let test = run.latency.as_mut().expect("of a latency test");
    test.inheritance.measured = Some(Level::Rt);
    test.inheritance.expected = Some(Level::Rt);
    test.inheritance.not_inherited = 0;
    run
}

#[test]
fn each_test_has_a_line_with_its_verdict_and_number() {
    let lines = verdicts(&bundle(vec![throughput(), healthy()]));
    assert_eq!(lines[0].test, "binder throughput");
    assert_eq!((lines[0].grade, lines[0].words.as_str()), (Grade::Good, "measured"));
    assert_eq!(lines[0].number, "4 B 3.00 us (2.00x a pipe), 64 KiB 16.1 us (2.00x a pipe)");
    assert!(lines[1].words.starts_with("inheritance PASS, SYNC"), "{:?}", lines[1]);
    assert!(lines[1].number.contains("2 of 2000 over"), "{:?}", lines[1]);
}

#[test]
fn what_went_wrong_is_graded_and_looked_at_first() {
    let mut broken = throughput();
    broken.cases[0].repetitions[0].outcome =
        Outcome::Failed { reason: "the server died".to_owned(), partial: None };
    let mut less = healthy();
    let test = less.latency.as_mut().expect("of a latency test");
    (test.inheritance.measured, test.inheritance.not_inherited) = (Some(Level::Nice), 7);
    let mut short = throughput();
    (short.complete, short.incomplete_reason) = (false, Some("interrupted".to_owned()));
    for (run, words, look) in [
        (broken, "FAILED in 1 of 3 cases", "the server died"),
        (less, "inheritance FAIL", "nice, expected rt"),
        (short, "INCOMPLETE", "interrupted"),
    ] {
        let bundle = bundle(vec![healthy(), run]);
        let line = verdicts(&bundle).pop().expect("a line for each");
        assert_eq!(line.grade, Grade::Bad, "{line:?}");
        assert!(line.words.contains(words), "{line:?}");
        let first = look_first(&bundle).expect("there is something to look at");
        assert!(first.contains(look), "{first}");
    }
}

#[test]
fn a_shortfall_that_the_driver_is_known_for_is_a_note() {
    let mut run = healthy();
    let test = run.latency.as_mut().expect("of a latency test");
    let found = &mut test.inheritance;
    (found.measured, found.expected, found.not_inherited) = (Some(Level::Nice), Some(Level::Nice), 7);
    run.cases.iter_mut().filter_map(|case| case.latency.as_mut()).for_each(|found| found.misses = 0);
    let line = verdicts(&bundle(vec![run])).pop().expect("one");
    assert_eq!(line.grade, Grade::Note);
    assert!(line.look.expect("a hint").contains("known of this driver"));
}

#[test]
fn a_driver_known_for_more_than_it_did_is_bad() {
    let mut lost = healthy();
    lost.latency.as_mut().expect("of a latency test").inheritance.not_inherited = 40;
    let mut hop = healthy();
    hop.latency.as_mut().expect("of a latency test").inheritance.hops.push(crate::Hop {
        scene: "nested-1".to_owned(),
        caller: crate::Sched::fifo(99),
        idle: crate::Sched::other(0),
        served: Some(crate::Sched::other(0)),
        expected: Some(crate::Sched::fifo(99)),
        note: String::new(),
    });
    for (run, why) in [(lost, "40 of"), (hop, "nested-1 was not as expected")] {
        let line = verdicts(&bundle(vec![run])).pop().expect("one");
        assert_eq!(line.grade, Grade::Bad, "{line:?}");
        assert!(line.look.expect("a reason").contains(why));
    }
}

#[test]
fn nothing_in_a_record_is_markup() {
    let mut run = throughput();
    let hostile = "</script><img src=x onerror=alert(1)>\u{1b}[2J|`*";
    run.host.kernel.release = hostile.to_owned();
    run.host.cpu.model = hostile.to_owned();
    run.cases[0].family = format!("BM_sendVec_{hostile}");
    run.findings.push(Finding::new(hostile, Severity::Warning, hostile));
    let mut bundle = bundle(vec![run]);
    bundle.runs[0].name = hostile.to_owned();
    let page = html(&bundle).expect("a page");
    assert!(!page.contains("<img") && !page.contains("</script") && !page.contains('\u{1b}'));
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"), "it is told all the same");
    let text = markdown(&bundle);
    assert!(!text.contains("<img") || text.contains("\\<img"), "{text}");
    assert!(!text.contains('\u{1b}') && text.contains("\\|\\`\\*"));
    assert!(!summary(&bundle, "").contains('\u{1b}'));
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let page = html(&bundle(vec![throughput(), healthy()])).expect("a page");
    for outside in ["http:", "https:", "<script", "<link", "@import", "url(", "src="] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    assert_eq!(page.matches("<polyline").count(), 2 + 2, "two ways and two classes");
}

#[test]
fn curves_end_at_the_worst_call_and_show_the_deadline() {
    let run = healthy();
    let chart =
        latency::chart(&run, run.latency.as_ref().expect("of a latency test")).expect("there are calls");
    for line in &chart.series {
        let last = line.dots.last().expect("a curve");
        assert!((last.x - 100.0).abs() < 0.01 && last.title.contains("worst: 3.00 ms"), "{last:?}");
        assert!(line.dots.windows(2).all(|two| two[0].x <= two[1].x && two[0].y >= two[1].y), "never down");
    }
    assert_eq!(chart.limits.len(), 1);
    assert!(chart.limits[0].label.starts_with("deadline"));
}

#[test]
fn a_summary_fits_a_screen_and_says_where_the_rest_is() {
    let mut run = throughput();
    for index in 0..30 {
        run.findings.push(Finding::new(format!("probe-{index}"), Severity::Warning, "x".repeat(400)));
    }
    let text = summary(&bundle(vec![run, healthy()]), "out/report.html");
    assert!(text.lines().count() <= 24, "{text}");
    assert!(text.contains("26 more") && text.contains("out/report.html"));
}

#[test]
fn an_empty_bundle_is_a_page_too() {
    let page = html(&Bundle::default()).expect("a page");
    assert!(page.contains("binderperf report"));
    assert_eq!(summary(&Bundle::default(), ""), "");
    assert!(markdown(&Bundle::default()).starts_with("# binderperf report"));
}

#[test]
fn what_was_not_run_fails_the_whole() {
    let mut bundle = bundle(vec![healthy()]);
    bundle.troubles.push(Trouble::not_run("latency-binder", "no such device"));
    let line = verdicts(&bundle).pop().expect("a line for it");
    assert_eq!((line.grade, line.words.as_str()), (Grade::Bad, "NOT RUN"));
    let kept = Troubles::from_json(Troubles::to_json(&bundle.troubles).as_bytes()).expect("a document");
    assert_eq!(kept, bundle.troubles);
    assert_eq!(Troubles::from_json(b"{\"schema\": \"x\", \"troubles\": []}"), None);
    assert_eq!(look_first(&bundle).as_deref(), Some("latency-binder: no such device"));
    assert!(summary(&bundle, "").contains("NOT RUN") && markdown(&bundle).contains("NOT RUN"));
}
