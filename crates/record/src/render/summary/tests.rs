//! The lines of the summary.

use super::*;
use crate::fixtures::{self, case, measured};
use crate::schema::{Finding, HostClass, Measurement, Outcome, Severity};

#[test]
fn a_whole_run() {
    let mut run = fixtures::run();
    run.cases = vec![
        case("BM_sendVec_binder", 4, 0, vec![measured(10, 700_000, 320_000), measured(10, 720_000, 340_000)]),
        case("BM_sendVec_binder", 65_536, 1, vec![measured(10, 2_147_960, 1_046_650)]),
        case("BM_sendVec_pipe", 4, 0, vec![measured(10, 355_000, 100_000)]),
        case("BM_sendVec_spin", 4, 0, vec![measured(10, 7_100, 7_100)]),
    ];
    let expected = "\
binderperf 0.1.0, 2026-01-31T12:00:00+01:00
Kernel  6.12.9-amd64
Driver  kernel, C, /dev/binder, protocol 8
Host    bare, 4 CPU
Clock   CLOCK_MONOTONIC, 42.5 ns a pair of readings, within each sample

Benchmark                     Time        CPU  Iterations  bytes/s        p50        p99        max  x pipe  x spin
-------------------------------------------------------------------------------------------------------------------
BM_sendVec_binder/4       71000 ns   33000 ns          20   56.34k   72063 ns  144000 ns  144000 ns    2.03  101.50
BM_sendVec_binder/65536  214796 ns  104665 ns          10   305.1M  214911 ns  429592 ns  429592 ns
";
    assert_eq!(summary(&run, ""), expected);
}

#[test]
fn columns_line_up() {
    let mut run = fixtures::run();
    run.cases.push(case("BM_sendVec_binder", 65_536, 1, vec![measured(7, 7_000_000_000, 7)]));
    let text = summary(&run, "");
    let table: Vec<&str> = text.lines().skip(6).take(4).collect();
    let lengths: Vec<usize> = table.iter().map(|line| line.len()).collect();
    assert!(lengths.iter().all(|&length| length == lengths[0]), "{text}");
    assert!(!text.contains("x pipe"), "no control was measured: {text}");
}

#[test]
fn what_went_wrong_is_said() {
    let mut run = fixtures::run();
    let partial = Some(Measurement { iterations: 17, ..Measurement::default() });
    let died = Outcome::Failed { reason: "service died\u{1b}[2J".to_owned(), partial };
    let skipped = || Outcome::Skipped { reason: "one CPU".to_owned() };
    run.cases.extend([
        case("BM_a_binder", 8, 0, vec![died]),
        case("BM_b_binder", 8, 0, vec![skipped()]),
        case("BM_c_binder", 8, 0, vec![]),
        case("BM_d_binder", 8, 0, vec![measured(10, 100, 100), fixtures::failed("EAGAIN")]),
        case("BM_sendVec_spin", 4, 0, vec![skipped()]),
        case("BM_sendVec_spin", 8, 0, vec![skipped()]),
    ]);
    run.host.class = HostClass::Tcg;
    run.overloaded = true;
    run.complete = false;
    run.incomplete_reason = Some("interrupted".to_owned());
    let found = Finding::new("cpu-governor", Severity::Warning, "the governor is powersave");
    run.findings.push(Finding { fix: Some("set performance".to_owned()), ..found });
    let text = summary(&run, "Record: run.json\nNext: binderperf show run.json\n");
    for said in [
        "WARNING emulated machine: timings are not real; ratios within this run are\n",
        "WARNING more ran at once than there are CPUs",
        "BM_a_binder/8        FAILED after 17 iterations: service died\\u001b[2J\n",
        "BM_b_binder/8        SKIPPED: one CPU\n",
        "BM_c_binder/8        not run\n",
        "BM_d_binder/8 repetition 1: FAILED: EAGAIN\n",
        "BM_sendVec_spin (2 times): SKIPPED: one CPU\n",
        "WARNING the governor is powersave (set performance)\n",
        "INCOMPLETE: interrupted\n",
    ] {
        assert!(text.contains(said), "{said:?} is not in {text}");
    }
    assert!(text.ends_with("\n\nRecord: run.json\nNext: binderperf show run.json\n"), "{text}");
    assert!(!text.contains('\u{1b}'), "a record cannot steer the terminal");
}

#[test]
fn instructions_are_never_shown_as_time() {
    let mut run = fixtures::run();
    run.host.class = HostClass::Icount;
    run.clock = crate::Clock { unit: ClockUnit::Instructions, read_cost: Some(310.0), ..run.clock };
    let text = summary(&run, "");
    assert!(text.contains("Instructions") && text.contains("2500 insns"), "{text}");
    for word in ["Time", " ns", "bytes/s"] {
        let shown = text.lines().skip(6).filter(|line| line.replace("insns", "").contains(word));
        assert_eq!(shown.count(), 0, "{word:?} in {text}");
    }
}

#[test]
fn controls_alone_are_shown_themselves() {
    let mut run = fixtures::run();
    run.cases = vec![case("BM_sendVec_pipe", 4, 0, vec![measured(10, 70_000, 10)])];
    run.driver = None;
    let text = summary(&run, "");
    assert!(text.contains("Driver  none\n") && text.contains("BM_sendVec_pipe/4"), "{text}");
}
