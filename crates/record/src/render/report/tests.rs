//! Tests of whole reports: verdicts, what to look at first, the permitted content of a page.

use super::*;
use crate::Level;
use crate::fixtures::{self, Pair, background, case, experiment_run, latency_run, measured, overload};
use crate::render::chart;

fn throughput() -> Run {
    let mut run = fixtures::run();
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
    latency_run(&[Pair::healthy(0)])
}

fn inherited(run: &mut Run) -> &mut crate::Inheritance {
    &mut run.measured.latency_mut().expect("of a latency test").inheritance
}

#[test]
fn each_test_has_a_line_with_its_verdict_and_number() {
    let bundle = bundle(vec![throughput(), healthy()]);
    let tests = verdicts(&bundle);
    let line = &tests[0].verdicts[0];
    assert_eq!(tests[0].test, "binder throughput");
    assert_eq!((line.grade, line.words.as_str()), (Grade::Good, "measured"));
    assert_eq!(line.measured, "4 B 3.00 us, 64 KiB 16.1 us");
    let words: Vec<&str> = tests[1].verdicts.iter().map(|verdict| verdict.words.as_str()).collect();
    assert_eq!(words, ["2 deadlines missed", "inheritance PASS", "SYNC GOOD"]);
    assert!(tests[1].verdicts[0].measured.contains("2 of 2000 over"), "{tests:?}");
    // The same verdicts in every form.
    let read: serde_json::Value = serde_json::from_str(&json(&bundle)).expect("JSON");
    assert_eq!(read[1]["verdicts"][0]["expected"], "no call over 2.5 ms");
    let page = html(&bundle).expect("a page");
    for form in [summary(&bundle, ""), markdown(&bundle), page] {
        for words in words.iter().chain(&["no call over 2.5 ms", "neither side ran", "trace record"]) {
            assert!(form.contains(words), "{words}: {form}");
        }
    }
}

#[test]
fn a_lost_broker_is_the_reason_instead_of_what_it_broke() {
    let lose = |run: &mut Run| {
        let text = "the embedded driver's broker (pid 7) ended";
        let finding = crate::Finding::new(crate::Finding::BROKER_LOST, crate::Severity::Error, text);
        run.findings.push(crate::Finding { fix: Some("find what ended it".to_owned()), ..finding });
        (run.complete, run.incomplete_reason) = (false, Some(text.to_owned()));
        run.cases[0].repetitions[0].outcome = fixtures::failed("the call was not answered");
    };
    for mut run in [throughput(), healthy()] {
        lose(&mut run);
        let bundle = bundle(vec![run]);
        let tests = verdicts(&bundle);
        assert_eq!(
            (tests[0].verdicts[0].words.as_str(), tests[0].verdicts[0].grade),
            ("BROKER LOST", Grade::Bad)
        );
        let text = summary(&bundle, "");
        let reason = "BROKER LOST: the embedded driver's broker (pid 7) ended. Next: find what ended it";
        assert!(text.contains(reason), "{text}");
        assert_eq!(text.matches("(pid 7)").count(), 1, "it is said once: {text}");
        for follows in ["FAILED in", "FAILED:", "conformance", "not answered", "INCOMPLETE"] {
            assert!(!text.contains(follows), "{follows}: {text}");
        }
    }
    // What was measured until then stays.
    let mut run = throughput();
    lose(&mut run);
    let tests = verdicts(&bundle(vec![run]));
    assert!(tests[0].verdicts[0].measured.starts_with("a part of it: "), "{tests:?}");
}

#[test]
fn next_steps_after_a_guest_boot_it_again() {
    let mut run = throughput();
    run.cases[0].repetitions[0].outcome = fixtures::failed("the server died");
    run.host.class = crate::HostClass::Tcg;
    run.host.guest_kernel = vec!["6.12".to_owned()];
    let text = summary(&bundle(vec![run]), "");
    assert!(text.contains("Next: binderperf vm --kernel 6.12 -- conformance"), "{text}");
}

#[test]
fn what_went_wrong_is_graded_and_looked_at_first() {
    /// A run, its change, its grade, and parts of the verdict and of the hint.
    type Graded = (fn() -> Run, fn(&mut Run), Grade, &'static str, &'static str);
    let table: [Graded; 6] = [
        (
            throughput,
            |run| run.cases[0].repetitions[0].outcome = fixtures::failed("the server died"),
            Grade::Bad,
            "FAILED in 1 of 3 cases",
            "the server died",
        ),
        (
            throughput,
            |run| (run.complete, run.incomplete_reason) = (false, Some("interrupted".to_owned())),
            Grade::Bad,
            "INCOMPLETE",
            "interrupted",
        ),
        (
            healthy,
            |run| (inherited(run).measured, inherited(run).not_inherited) = (Some(Level::Nice), 7),
            Grade::Bad,
            "inheritance FAIL",
            "nice was inherited, and rt is promised",
        ),
        (healthy, |run| inherited(run).not_inherited = 40, Grade::Bad, "inheritance FAIL", "40 of"),
        (
            healthy,
            |run| {
                let hop = inherited(run).hops[0].clone();
                let served = Some(crate::Sched::other(0));
                inherited(run).hops.push(crate::Hop { scene: "nested-1".to_owned(), served, ..hop });
            },
            Grade::Bad,
            "inheritance FAIL",
            "nested-1 was not as expected",
        ),
        // A shortfall that the driver is known for.
        (
            healthy,
            |run| {
                let found = inherited(run);
                (found.measured, found.expected, found.not_inherited) =
                    (Some(Level::Nice), Some(Level::Nice), 7);
                run.cases
                    .iter_mut()
                    .filter_map(|case| case.latency.as_mut())
                    .for_each(|found| found.misses = 0);
            },
            Grade::Good,
            "inheritance nice, as expected",
            "",
        ),
    ];
    for (run, change, grade, words, look) in table {
        let mut run = run();
        change(&mut run);
        let bundle = bundle(vec![run]);
        let tests = verdicts(&bundle);
        let line = tests[0].verdicts.iter().find(|line| line.words.contains(words)).expect("the verdict");
        assert_eq!(line.grade, grade, "{line:?}");
        let first = look_first(&bundle);
        assert!(first.as_deref().unwrap_or_default().contains(look), "{first:?}");
        assert_eq!(first.is_none(), grade == Grade::Good, "{first:?}");
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
fn one_pair_is_not_repeated_as_all() {
    let rows = |pairs: &[Pair]| {
        let run = latency_run(pairs);
        let table = numbers(&run).expect("it has numbers").markdown();
        let names =
            table.lines().filter_map(|line| Some(line.strip_prefix("| ")?.split_once(" |")?.0.to_owned()));
        names.skip(1).collect::<Vec<_>>()
    };
    assert_eq!(rows(&[Pair::healthy(0)]), ["P0 fifo", "P0 other"]);
    let two = rows(&[Pair::healthy(0), Pair::healthy(1)]);
    assert_eq!(two[4..], ["ALL fifo", "ALL other"], "{two:?}");
}

#[test]
fn rates_and_the_sample_of_androids_page_stand_beside_the_times() {
    let page = html(&bundle(vec![throughput(), healthy()])).expect("a page");
    for said in [
        // 3000.8 ns a call of 4 bytes; the phone's 70302 ns.
        "333244 calls/s, 1.33 MB/s",
        "70.3 us: 14224 calls/s, 56.9 kB/s",
        "phone of 2016 305 MB/s at 64 KiB, 14344 calls/s at 1 KiB",
        "<b>pipe</b> two pipes",
        "phone of 2016 fifo",
        "the share of the calls that met the deadline",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    let mut counted = throughput();
    counted.clock.unit = crate::schema::ClockUnit::Instructions;
    let page = html(&bundle(vec![counted])).expect("a page");
    assert!(!page.contains("calls/s") && !page.contains("phone"), "instructions are no time");
}

#[test]
fn what_all_runs_warn_of_is_told_once() {
    let overloaded = |mut run: Run| {
        run.overloaded = true;
        run
    };
    let warnings = |runs| html(&bundle(runs)).expect("a page").matches("more ran at once").count();
    assert_eq!(warnings(vec![overloaded(throughput()), overloaded(healthy())]), 1);
    assert_eq!(warnings(vec![throughput(), overloaded(healthy())]), 1, "in its own part");
}

#[test]
fn names_beside_curves_keep_apart_and_in_order() {
    let at = |y: f64| chart::Dot { x: 100.0, y, title: String::new() };
    let line = |y: f64| chart::Series {
        name: String::new(),
        meaning: "",
        label_at: 0.0,
        look: String::new(),
        dots: vec![at(y)],
        dotted: true,
    };
    let mut lines: Vec<chart::Series> = [99.0, 10.0, 98.0, 97.0, 50.0].map(line).into();
    chart::label(&mut lines);
    let places: Vec<f64> = lines.iter().map(|line| line.label_at).collect();
    assert!(places[1] == 10.0 && places[4] == 50.0, "what has room stays: {places:?}");
    assert!(places[0] - places[2] > 5.0 && places[2] - places[3] > 5.0 && places[0] <= 100.0, "{places:?}");
}

#[test]
fn curves_end_at_the_worst_call_and_show_the_deadline() {
    let run = healthy();
    let chart = latency::chart(&run, run.latency().expect("of a latency test")).expect("there are calls");
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
    assert!(text.contains("27 more") && text.contains("out/report.html"));
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
    bundle.troubles.push(RunProblem::not_run("latency-binder", "no such device"));
    let test = verdicts(&bundle).pop().expect("a line for it");
    assert_eq!((test.verdicts[0].grade, test.verdicts[0].words.as_str()), (Grade::Bad, "NOT RUN"));
    let kept = RunProblems::from_json(RunProblems::to_json(&bundle.troubles).as_bytes()).expect("a document");
    assert_eq!(kept, bundle.troubles);
    assert_eq!(RunProblems::from_json(b"{\"schema\": \"x\", \"troubles\": []}"), None);
    assert_eq!(look_first(&bundle).as_deref(), Some("latency-binder, NOT RUN: no such device"));
    assert!(summary(&bundle, "").contains("NOT RUN") && markdown(&bundle).contains("NOT RUN"));
}

#[test]
fn a_report_has_the_pictures_of_the_experiments_and_their_verdicts() {
    let overload = Measured::Overload(overload([0, 2, 33, 50]));
    let background = Measured::Background(background(true));
    let bundle = bundle([overload, background].map(experiment_run).into());
    let page = html(&bundle).expect("a page");
    for says in [
        "aria-label=\"Calls that missed the deadline, by the number of pairs",
        "aria-label=\"Time of a call by who is in the background",
        "confirmed: 2 real-time pairs",
        "a background server waits",
        "href=\"#run-2\"",
    ] {
        assert!(page.contains(says), "{says}");
    }
    let tests: Vec<String> = verdicts(&bundle).into_iter().map(|of| of.test).collect();
    assert_eq!(tests, ["real-time overload", "foreground and background"]);
}
