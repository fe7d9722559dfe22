//! The exact text of each format for made-up runs, and its errors.
//! Not here: whether the target programs accept it (`tests/cli/convert.rs` of the workspace).

use super::*;
use crate::fixtures::{Pair, case, failed, latency_run, measured, run};
use crate::schema::{Outcome, Repetition};

/// An incomplete run with a passed, a failed and a skipped case.
fn troubled() -> Run {
    let mut run = run();
    run.plan.test = "throughput binder".to_owned();
    run.host.kernel.machine = "x86_64".to_owned();
    let failed = failed("BR_DEAD_REPLY <after> 3 & \"more\"\u{1b}\n");
    let skipped = Outcome::Skipped { reason: "no # driver".to_owned() };
    run.cases.push(case("BM_sendVec_binder", 8, 1, vec![failed]));
    run.cases.push(case("BM_sendVec_binder", 16, 2, vec![skipped]));
    run.complete = false;
    run.incomplete_reason = Some("stopped by SIGINT".to_owned());
    run
}

fn converted(run: &Run, target: Target) -> String {
    convert(std::slice::from_ref(run), target).expect("it has all that is needed")
}

#[test]
fn ktap_has_a_line_for_each_check() {
    let want = "\
KTAP version 1
# Subtest: throughput-binder
1..4
# BM_sendVec_binder/4: mean 2500 ns
# BM_sendVec_binder/4: cpu 1000 ns
# BM_sendVec_binder/4: p50 2501 ns
# BM_sendVec_binder/4: p99 2501 ns
# BM_sendVec_binder/4: max 5000 ns
# BM_sendVec_binder/4: iterations 1000
ok 1 BM_sendVec_binder/4
# BM_sendVec_binder/8: BR_DEAD_REPLY <after> 3 & \"more\"\\u001b 
not ok 2 BM_sendVec_binder/8
ok 3 BM_sendVec_binder/16 # SKIP no no. driver
# complete: stopped by SIGINT
not ok 4 complete
";
    assert_eq!(converted(&troubled(), Target::Ktap), want);
}

#[test]
fn junit_escapes_what_xml_has_no_place_for() {
    let text = converted(&troubled(), Target::Junit);
    for want in [
        "<testsuites name=\"throughput-binder\" tests=\"4\" failures=\"2\" errors=\"0\" time=\"2.500\">",
        "skipped=\"1\" time=\"2.500\" timestamp=\"2026-01-31T12:00:00+01:00\" hostname=\"board\">",
        "<failure message=\"BR_DEAD_REPLY &lt;after&gt; 3 &amp; &quot;more&quot;\\u001b \" type=\"failure\">",
        "<skipped message=\"no # driver\"/>",
        "mean=2500 ns\n",
        "iterations=1000\n",
    ] {
        assert!(text.contains(want), "{want}\nis not in\n{text}");
    }
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn lava_signals_have_no_space_within_a_value() {
    let text = converted(&troubled(), Target::Lava);
    let want = "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=BM_sendVec_binder/4/p99 RESULT=pass UNITS=ns MEASUREMENT=2.501e3>";
    assert!(text.lines().any(|line| line == want), "{text}");
    let signals: Vec<&str> = text.lines().filter(|line| line.starts_with('<')).collect();
    assert_eq!(signals.first(), Some(&"<LAVA_SIGNAL_TESTSET START throughput-binder>"));
    assert_eq!(signals.last(), Some(&"<LAVA_SIGNAL_TESTSET STOP>"));
    for signal in &signals[1..signals.len() - 1] {
        let inside = signal.strip_prefix("<LAVA_SIGNAL_TESTCASE ").and_then(|rest| rest.strip_suffix('>'));
        let words: Vec<&str> = inside.expect(signal).split(' ').collect();
        assert!(
            words.iter().all(|word| word.split('=').count() == 2 && !word.contains(['<', '>'])),
            "{signal}"
        );
        assert!(["RESULT=pass", "RESULT=fail", "RESULT=skip"].contains(&words[1]), "{signal}");
    }
    assert!(text.contains("TEST_CASE_ID=throughput-binder/complete RESULT=fail>"));
}

#[test]
fn kcidb_tells_verdicts_and_measures_apart() {
    let text = converted(&troubled(), Target::Kcidb);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let tests = json["tests"].as_array().expect("a list");
    let status = |path: &str| {
        let test =
            tests.iter().find(|test| test["path"] == path).unwrap_or_else(|| panic!("no {path} in {text}"));
        (test["status"].as_str().expect("a word"), &test["number"]["value"], &test["comment"])
    };
    assert_eq!(status("binderperf.throughput-binder.BM_sendVec_binder.4").0, "PASS");
    assert_eq!(status("binderperf.throughput-binder.BM_sendVec_binder.4.p99").0, "DONE");
    assert_eq!(status("binderperf.throughput-binder.BM_sendVec_binder.4.p99").1, &2501.0);
    assert_eq!(status("binderperf.throughput-binder.BM_sendVec_binder.8").0, "FAIL");
    assert_eq!(status("binderperf.throughput-binder.BM_sendVec_binder.16").0, "SKIP");
    assert_eq!(status("binderperf.throughput-binder.complete").2, "stopped by SIGINT");
    let mut ids: Vec<_> = tests.iter().map(|test| test["id"].as_str().expect("an id")).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), tests.len());
}

#[test]
fn csv_has_a_row_for_each_run_and_a_column_for_each_measure() {
    let mut later = troubled();
    later.started = "2026-02-01T12:00:00+01:00".to_owned();
    later.tool.git = Some("abc, def".to_owned());
    later.cases.push(case("BM_sendVec_binder", 32, 3, vec![measured(10, 30_000, 10_000)]));
    let text = convert(&[later, run()], Target::Csv).expect("both have all");
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 3);
    assert!(
        rows[0].starts_with("time,commit,host,kernel,driver,host_class,BM_sendVec_binder/4.mean_ns,"),
        "{text}"
    );
    assert!(rows[1].starts_with("2026-01-31T12:00:00+01:00,0.1.0,board,6.12.9-amd64,"), "{text}");
    assert!(rows[1].ends_with(",,,,,,"), "what that run did not measure is empty: {text}");
    assert!(rows[2].starts_with("2026-02-01T12:00:00+01:00,\"abc, def\",board,"), "{text}");
    assert!(rows[2].contains(",3000,"), "{text}");
}

#[test]
fn a_latency_test_says_whether_priorities_were_inherited() {
    let run = latency_run(&[Pair::healthy(0), Pair::failed(1, "it hung")]);
    let text = converted(&run, Target::Ktap);
    assert!(text.contains(" inheritance\n"), "{text}");
    assert!(text.contains(": misses 1\n") && text.contains(": meetR 0.999\n"), "{text}");
    assert!(text.contains("it hung\nnot ok "), "{text}");
}

#[test]
fn what_a_format_cannot_do_without_is_said() {
    let lacking = |change: fn(&mut Run), target| {
        let mut run = troubled();
        change(&mut run);
        convert(&[run], target).expect_err("something is lacking").to_string()
    };
    let csv = lacking(|run| run.cases.remove(0).repetitions.clear(), Target::Csv);
    assert_eq!(csv, "the record has no measured case, which csv needs");
    let kcidb = lacking(|run| run.host.kernel.machine.clear(), Target::Kcidb);
    assert_eq!(kcidb, "the record has no architecture, which kcidb needs");
    for target in [Target::Gbench, Target::Junit, Target::Ktap, Target::Lava, Target::Kcidb, Target::Csv] {
        let empty = lacking(|run| run.cases.clear(), target);
        assert_eq!(empty, "the record has no case that was planned, which every format needs");
        assert_eq!(convert(&[], target), Err(ConvertError::Nothing));
    }
    let many = convert(&[run(), run()], Target::Junit).expect_err("one place only");
    assert!(many.to_string().starts_with("2 records are too many"), "{many}");
}

#[test]
fn a_case_that_was_never_begun_is_skipped_and_one_that_broke_once_failed() {
    let mut run = run();
    run.cases[0].repetitions.push(Repetition { index: 1, outcome: failed("lost") });
    run.cases.push(case("BM_sendVec_binder", 8, 1, Vec::new()));
    let text = converted(&run, Target::Ktap);
    assert!(text.contains("# BM_sendVec_binder/4: lost\nnot ok 1 BM_sendVec_binder/4\n"), "{text}");
    assert!(text.contains("ok 2 BM_sendVec_binder/8 # SKIP not run\n"), "{text}");
}
