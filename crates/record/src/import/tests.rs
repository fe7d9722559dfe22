//! Outputs of other programs: what is read, and what is refused with its line.

use super::any;
use crate::compare::{Basis, Group, Member, Metric, Options, Undecided, Verdict, compare};
use crate::read::ReadError;
use crate::schema::{HostClass, Measurement, Outcome, Run, Stated};

const CHANGED: &str = "2026-01-31T12:00:00Z";
const KCALLOC: &str = include_str!("tests/gb_kcalloc.json");
const KVCALLOC: &str = include_str!("tests/gb_kvcalloc.json");
const BASE: &str = include_str!("tests/btt_base.txt");
const PATCHED: &str = include_str!("tests/btt_patched.txt");
const SCHD_DBG: &str = include_str!("tests/schd-dbg.txt");
const LATENCY: &str = include_str!("tests/libhwbinder_latency.txt");

fn read(text: &str) -> Vec<Run> {
    any(text.as_bytes(), CHANGED).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    match any(text.as_bytes(), CHANGED) {
        Err(error @ ReadError::Import(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn group(name: &str, texts: &[&str]) -> Group {
    let runs = texts.iter().flat_map(|text| read(text));
    let members = (0..).zip(runs).map(|(number, run): (u32, Run)| {
        // Each was measured at a time of its own.
        let run = Run { started: format!("2026-01-31T12:{number:02}:00Z"), ..run };
        Member { file: format!("{name}{number}"), run }
    });
    Group { name: name.to_owned(), members: members.collect() }
}

fn stated<'r>(run: &'r Run, case: &str) -> &'r Stated {
    match run.case(case).and_then(|case| case.outcomes().next()) {
        Some(Outcome::Measured(Measurement { stated: Some(stated), .. })) => stated,
        other => {
            panic!("{case}: {other:?} of {:?}", run.cases.iter().map(|case| &case.name).collect::<Vec<_>>())
        }
    }
}

fn ns(figure: Option<crate::schema::Figure>) -> f64 {
    figure.expect("it is stated").value.round()
}

#[test]
fn google_benchmarks_json_is_read_and_what_it_lacks_is_unknown() {
    let run = &read(KCALLOC)[0];
    assert_eq!((run.started.as_str(), run.host.host_name.as_str()), ("2024-06-01T10:00:00+08:00", "phone"));
    assert_eq!((run.host.cpu.count, run.host.class, run.driver.is_none()), (8, HostClass::Unknown, true));
    assert_eq!(run.cases.len(), 6);
    let case = run.case("BM_sendVec_binder/1024").expect("it is there");
    assert_eq!((case.payload_bytes, case.threads), (1024, 1));
    let of = stated(run, "BM_sendVec_binder/4");
    assert_eq!((of.calls, ns(of.mean), ns(of.cpu), of.p99), (Some(38_894), 39_126.0, 18_550.0, None));
    // It can be stored and read as a record.
    assert_eq!(&Run::from_json(run.to_json().as_bytes()).expect("a record"), run);
}

#[test]
fn one_run_each_says_nothing_but_the_size_of_the_difference() {
    for (a, b, case, metric) in [
        (KCALLOC, KVCALLOC, "BM_sendVec_binder/4", Metric::Mean),
        (BASE, PATCHED, "binderThroughputTest/rate", Metric::Mean),
        (SCHD_DBG, SCHD_DBG, "schd-dbg/other", Metric::Max),
    ] {
        let options = Options { metric, ..Options::default() };
        let found = compare(&group("a", &[a]), &group("b", &[b]), &options).expect("comparable");
        let one = found.cases.iter().find(|one| one.name == case).expect("compared");
        assert_eq!(one.verdict, Verdict::CannotTell(Undecided::OneRun), "{case}");
        assert_eq!((one.estimate.basis, one.estimate.interval), (Basis::Stated, None), "{case}");
        let text = crate::render::compare::text(&found);
        assert!(text.contains("nothing but the size of the difference"), "{text}");
        assert!(!text.contains("within run"), "{text}");
    }
    let found = compare(
        &group("a", &[KCALLOC]),
        &group("b", &[KVCALLOC]),
        &Options { metric: Metric::Mean, ..Options::default() },
    );
    let ratios: Vec<String> =
        found.expect("comparable").cases.iter().map(|case| format!("{:.4}", case.estimate.ratio)).collect();
    assert_eq!(ratios, ["1.0119", "1.0071", "1.0149", "1.0169", "1.0104", "1.0127"]);
}

#[test]
fn several_files_are_a_group_with_a_verdict() {
    let with = |mean: u32| KCALLOC.replace("39126", &mean.to_string());
    let side = |first: u32| -> Vec<String> { (0..8).map(|at| with(first + 10 * at)).collect() };
    let (a, b) = (side(39_000), side(42_000));
    let texts =
        |side: &'_ [String]| -> Group { group("side", &side.iter().map(String::as_str).collect::<Vec<_>>()) };
    let found = compare(&texts(&a), &texts(&b), &Options { metric: Metric::Mean, ..Options::default() });
    let found = found.expect("comparable");
    assert_eq!(found.cases[0].verdict, Verdict::Slower, "{:?}", found.cases[0]);
    assert_eq!(found.cases[0].estimate.basis, Basis::Runs(8, 8));
}

#[test]
fn what_is_printed_coarsely_proves_no_equality() {
    // Eight runs of each side, all printed as 0.16 ms: true means may differ by 6 %.
    let many = |avg: &str| -> Group {
        let texts: Vec<String> = (0..8)
            .map(|at| SCHD_DBG.replacen("0.16", avg, 1).replacen("0.2", &format!("0.{}", 20 + at), 1))
            .collect();
        group("many", &texts.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let options = Options { metric: Metric::Mean, ..Options::default() };
    let found = compare(&many("0.16"), &many("0.16"), &options).expect("comparable");
    let fifo = found.cases.iter().find(|case| case.name == "schd-dbg/fifo").expect("compared");
    assert_eq!(fifo.verdict, Verdict::CannotTell(Undecided::Printed), "{fifo:?}");
    let found = compare(&many("0.16"), &many("0.24"), &options).expect("comparable");
    let fifo = found.cases.iter().find(|case| case.name == "schd-dbg/fifo").expect("compared");
    assert_eq!(fifo.verdict, Verdict::Slower, "{fifo:?}");
}

#[test]
fn repetitions_aggregates_and_old_versions_are_told_apart() {
    let document = |rows: &str| {
        format!(
            "{{\"context\":{{\"date\":\"2017-05-24 14:21:13\",\"num_cpus\":8}},\n\"benchmarks\":[{rows}]}}"
        )
    };
    let row = |name: &str, more: &str, time: f64| {
        format!(
            "{{\"name\":\"{name}\",{more}\"iterations\":10,\"real_time\":{time},\"cpu_time\":1.5,\"time_unit\":\"us\"}}"
        )
    };
    // Before 1.5: equal names are repetitions, ends of names tell aggregates.
    let old =
        document(&[row("BM_x/8", "", 10.0), row("BM_x/8", "", 12.0), row("BM_x/8_mean", "", 11.0)].join(","));
    let run = &read(&old)[0];
    assert_eq!(
        (run.started.as_str(), run.cases.len(), run.cases[0].repetitions.len()),
        ("2017-05-24T14:21:13Z", 1, 2)
    );
    assert_eq!(run.cases[0].mean_real(), Some(11_000.0));
    let new = |index: u32| {
        format!("\"run_name\":\"BM_x/8\",\"run_type\":\"iteration\",\"repetition_index\":{index},")
    };
    let mean = "\"run_name\":\"BM_x/8\",\"run_type\":\"aggregate\",\"aggregate_name\":\"mean\",";
    let all = document(
        &[row("BM_x/8", &new(0), 10.0), row("BM_x/8", &new(1), 12.0), row("BM_x/8_mean", mean, 11.0)]
            .join(","),
    );
    assert_eq!(read(&all)[0].cases[0].repetitions.len(), 2);
    let only = read(&document(&row("BM_x/8_mean", mean, 11.0)));
    assert_eq!(ns(stated(&only[0], "BM_x/8").mean), 11_000.0);
    assert!(
        only[0]
            .imported
            .as_ref()
            .is_some_and(|one| one.notes.iter().any(|note| note.contains("only aggregates")))
    );
    // The page's names of sizes, and characters that our names do not have.
    let names = document(&[row("BM_sendVec_binderize/2k", "", 1.0), row("BM_f<int>/8", "", 1.0)].join(","));
    let cases: Vec<(String, u64)> =
        read(&names)[0].cases.iter().map(|case| (case.name.clone(), case.payload_bytes)).collect();
    assert_eq!(cases, [("BM_sendVec_binderize/2k".to_owned(), 2048), ("BM_f_int_/8".to_owned(), 0)]);
    let newer = names.replace("/2k", "/2048");
    let options = Options { metric: Metric::Mean, ..Options::default() };
    let found = compare(&group("a", &[&names]), &group("b", &[&newer]), &options).expect("comparable");
    assert!(found.cases.iter().any(|case| case.name == "BM_sendVec_binderize/2048"), "{:?}", found.unmatched);
    let failed = row("BM_y", "\"error_occurred\":true,\"error_message\":\"no service\",", 0.0);
    let run = &read(&document(&[row("BM_x", "", 1.0), failed].join(",")))[0];
    assert_eq!(run.case("BM_y").and_then(|case| case.failure()), Some("no service"));
}

#[test]
fn throughput_tests_are_read_block_by_block() {
    let run = &read(BASE)[0];
    let call = stated(run, "binderThroughputTest/call");
    assert_eq!(
        [call.mean, call.max, call.min, call.p50, call.p99].map(ns),
        [2_833_750.0, 572_205_000.0, 54_219.0, 2_148_440.0, 12_304_700.0]
    );
    // The middle of a 128th of 50 ms.
    assert_eq!(call.p50.map(|figure| figure.within), Some(195_312.5));
    assert_eq!(ns(stated(run, "binderThroughputTest/rate").mean), 31_331.0);
    let trained = "Start training round\nCreated BinderWorker0\niterations per sec: 5\naverage:1ms worst:2ms best:1ms\n50%: 1 90%: 1 95%: 1 \
                   99%: 1\nMax latency during training: 2ms\nCompleted training round\n\n";
    let workers = "Created BinderWorker0\nCreated BinderWorker1\n";
    let runs = read(&format!("{trained}{workers}{BASE}killing workers\n{PATCHED}"));
    assert_eq!(runs.len(), 2, "a training is no result");
    assert_eq!(runs[0].context, [("workers".to_owned(), "2".to_owned())]);
    let hwbinder = format!("creating service: hwbinderService0\n{BASE}");
    assert!(read(&hwbinder)[0].case("hwbinderThroughputTest/call").is_some());
    let blank = BASE.trim_end().to_owned() + " \n";
    assert!(read(&blank)[0].case("hwbinderThroughputTest/call").is_some());
}

#[test]
fn latency_tests_are_read_with_and_without_their_threads() {
    let run = &read(SCHD_DBG)[0];
    let (other, fifo) = (stated(run, "schd-dbg/other"), stated(run, "schd-dbg/fifo"));
    assert_eq!((other.calls, ns(other.mean), ns(other.max)), (Some(10_000), 210_000.0, 2_900_000.0));
    assert_eq!((ns(fifo.mean), ns(fifo.min), fifo.p50), (165_000.0, 60_000.0, None));
    assert_eq!(run.context.last(), Some(&("inheritance".to_owned(), "PASS".to_owned())));
    let misses = run
        .case("schd-dbg/other")
        .and_then(|case| case.measurements().next())
        .map(|one| one.counters.clone());
    assert_eq!(misses.and_then(|counters| counters.find("misses")).map(|misses| misses.value), Some(5.0));
    let run = &read(LATENCY)[0];
    let other = stated(run, "libhwbinder_latency/other");
    assert_eq!((ns(other.p50), other.p50.map(|figure| figure.within)), (195_310.0, Some(195_312.5)));
    assert_eq!(read(&format!("{SCHD_DBG}{SCHD_DBG}")).len(), 2);
    // Our own writer of that format.
    let ours = crate::render::latency::aosp::aosp(
        &crate::fixtures::latency_run(&[
            crate::fixtures::Pair::healthy(0),
            crate::fixtures::Pair::healthy(1),
        ]),
        crate::render::latency::aosp::Tool::Hwbinder,
        true,
        true,
    );
    assert!(!read(&ours)[0].cases.is_empty(), "{ours}");
}

#[test]
fn what_is_damaged_is_refused_with_its_line() {
    for (text, want) in [
        (KCALLOC.replace("\"real_time\": 38924", "\"real_time\": \"fast\""), "line 38"),
        (KCALLOC.replace("   \"real_time\": 38924,\n", ""), "BM_sendVec_binder/8: no real_time"),
        (KCALLOC.replace("\"time_unit\": \"ns\"", "\"time_unit\": \"fortnights\""), "fortnights"),
        (KCALLOC.replace("\"iterations\": 38894", "\"iterations\": 0"), "no iterations"),
        (KCALLOC[..KCALLOC.len() / 2].to_owned(), "line"),
        ("{\"context\":{},\"benchmarks\":[]}".to_owned(), "no benchmark"),
        (BASE.replace("2.83375ms", "2.83375s"), "line 3"),
        (BASE.replace("90%: 5.27344", "90%: 0.1"), "do not ascend"),
        (BASE.replace("31917.7", "nan"), "line 1"),
        (BASE.lines().take(2).fold(String::new(), |text, line| text + line + "\n"), "line 2"),
        (SCHD_DBG.replace("\"avg\":0.2 ", "\"avg\":two"), "line 4"),
        (SCHD_DBG.replace("\"P0\"", "\"Q0\"").replace("\"P1\"", "\"Q1\""), "no pair"),
        (SCHD_DBG.lines().take(4).fold(String::new(), |text, line| text + line + "\n"), "line"),
    ] {
        let said = refused(&text);
        assert!(said.contains(want), "{want}: {said}");
    }
    // Text of no known program gets the same error as before.
    assert!(matches!(any(b"nothing of the kind", CHANGED), Err(ReadError::NotJson { .. })));
}

#[test]
fn damage_anywhere_is_survived() {
    for text in [KCALLOC, BASE, PATCHED, SCHD_DBG, LATENCY] {
        for at in 0..text.len() {
            // A few bytes that mean something to a reader.
            let byte = b"\0\n-9e\"}\xff"[at % 8];
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = byte;
            for run in any(&bytes, CHANGED).into_iter().flatten() {
                assert_eq!(run.check().map_err(|error| error.to_string()), Ok(()));
                let _ = (crate::render::summary::summary(&run, ""), crate::history::entries(&run));
            }
            let _ = any(&text.as_bytes()[..at], CHANGED);
        }
    }
}

#[test]
fn figures_are_the_same_after_writing_and_reading() {
    // 0.054219 ms is stated to 0.05 ns, which a reader that rounds twice takes for 0.049999999999999996.
    let text = b"iterations per sec: 31917.7\ncollecting results\naverage:2.83375ms worst:572.205ms best:0.054219ms\n\
        50%: 2.14844 90%: 5.27344 95%: 6.83594 99%: 12.3047\n";
    let runs = any(text, "2026-01-31T12:00:00Z").expect("an output");
    assert!(!runs.is_empty());
    for run in runs {
        assert_eq!(crate::Run::from_json(run.to_json().as_bytes()).expect("a record"), run);
    }
}
