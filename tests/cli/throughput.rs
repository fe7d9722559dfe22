//! `throughput` and `show` as a user or a harness calls them, on any machine: the control
//! cases need no binder driver.
//! Not here: the test itself on a real driver (`guest::throughput`).

use crate::support::{
    BINARY, Called, Folder, binderperf, call, contents, read, recorded, servers_end_with,
    stopped_when_servers_run, throughput, with_full_stderr, with_full_stdout, with_stdout_unread,
};
use record::{Outcome, Run};

/// Cases that are quick and need nothing.
const TWO_CASES: &str = "--benchmark_filter=(pipe|unix)/(4|8)$";
const FEW: &str = "--benchmark_min_time=50x";

fn rows(called: &Called) -> Vec<serde_json::Value> {
    let json: serde_json::Value =
        serde_json::from_str(&called.stdout).expect("stdout is JSON and nothing else");
    json["benchmarks"].as_array().expect("rows").clone()
}

fn outcome<'r>(run: &'r Run, case: &str) -> &'r Outcome {
    &run.case(case).expect(case).repetitions[0].outcome
}

#[test]
fn controls_are_measured_without_a_driver() {
    let called =
        throughput(&["--benchmark_filter=(pipe|unix|futex)/(4|65536)$", FEW, "--benchmark_format=json"]);
    assert_eq!(called.code, Some(0), "{}", called.stderr);
    let rows = rows(&called);
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert_eq!(row["iterations"], 50, "{row}");
        for field in ["real_time", "cpu_time", "bytes_per_second", "p50", "p99", "max"] {
            assert!(row[field].as_f64().is_some_and(|value| value > 0.0), "{field} in {row}");
        }
        assert_eq!(row["time_unit"], "ns");
    }
}

#[test]
fn spinning_is_measured_or_says_why_not() {
    let called =
        throughput(&["--benchmark_filter=spin/64$", "--benchmark_min_time=5x", "--benchmark_format=json"]);
    assert_eq!(called.code, Some(0), "{}", called.stderr);
    let row = &rows(&called)[0];
    let skipped = row["skip_message"].as_str().is_some_and(|why| why.contains("two CPUs"));
    assert!(row["iterations"] == 5 || skipped, "{row}");
}

#[test]
fn a_search_reaches_its_least_time() {
    let (_, run) = recorded(
        0,
        throughput,
        &[
            "--benchmark_filter=pipe/4$",
            "--benchmark_min_time=0.02s",
            "--benchmark_min_warmup_time=0.01",
            "--benchmark_repetitions=2",
        ],
    );
    let measured: Vec<_> = run.cases[0].measurements().collect();
    assert!(measured[0].real_total >= 20_000_000, "{} ns", measured[0].real_total);
    assert_eq!(measured[0].iterations, measured[1].iterations, "later repetitions make as many");
    assert_eq!(measured[0].samples.count, measured[0].iterations, "every round trip is a sample");
    assert!(run.complete && run.clock.read_cost.is_some_and(|cost| cost > 0.0));
    assert!(!run.host.kernel.release.is_empty());
}

#[test]
fn wrong_calls_say_how_to_call() {
    for words in [
        &["--benchmark_nonsense=1"][..],
        &["--benchmark_format=xml"],
        &["--benchmark_filter=BM_("],
        &["--benchmark_min_time=soon"],
        &["--benchmark_repetitions=0"],
        &["--controls=tcp"],
        &["--max=x_raw=1.1"],
        &["--record"],
        &["stray"],
    ] {
        throughput(words).ended(2).printed_nothing().complained("Usage: ");
        throughput(&[words, &["--gbench-compat"]].concat()).ended(1);
    }
    for words in [&["throughput"][..], &["throughput", "nothing"], &["applet", "nothing"], &["nothing"], &[]]
    {
        assert_eq!(binderperf(words).code, Some(2), "{words:?}");
    }
}

#[test]
fn a_filter_that_matches_nothing() {
    for extra in [&[][..], &["--benchmark_list_tests"]] {
        let words = [&["--benchmark_filter=NoSuchCase"][..], extra].concat();
        let called = throughput(&words).ended(2);
        called.printed_nothing();
        assert_eq!(called.stderr, "Failed to match any benchmarks against regex: NoSuchCase\n");
        assert_eq!(throughput(&[&words[..], &["--gbench-compat"]].concat()).code, Some(0));
    }
}

#[test]
fn no_driver_is_told_apart_from_failure() {
    throughput(&["--device=/nonexistent/binder", "--benchmark_filter=binder/4$", FEW])
        .ended(3)
        .complained("/nonexistent/binder");
    let controls_only = throughput(&["--device=/nonexistent/binder", TWO_CASES, FEW]);
    assert_eq!(controls_only.code, Some(0), "controls need none: {}", controls_only.stderr);
}

#[test]
fn names_are_listed_in_every_format_without_a_driver() {
    let listed = throughput(&["--benchmark_list_tests", "--controls=none"]).ended(0);
    let names: Vec<&str> = listed.stdout.lines().collect();
    assert_eq!(names.len(), 15);
    assert_eq!((names[0], names[14]), ("BM_sendVec_binder/4", "BM_sendVec_binder/65536"));
    let csv = throughput(&["--benchmark_list_tests", "--controls=none", "--benchmark_format=csv"]);
    assert_eq!(csv.stdout, format!("name\n{}", listed.stdout));
    let json = throughput(&["--benchmark_list_tests", "--controls=none", "--benchmark_format=json"]);
    assert_eq!(rows(&json).len(), 15);
}

#[test]
fn the_android_name_and_bare_flags_mean_the_applet() {
    let folder = Folder::new("applet");
    let link = folder.path("libbinder_benchmark");
    std::os::unix::fs::symlink(BINARY, &link).expect("symlink");
    let by_name = call(&link, &["--benchmark_list_tests=true"], &[]);
    let by_flags = binderperf(&["--benchmark_list_tests=true"]);
    let by_word = binderperf(&["applet", "libbinder_benchmark", "--benchmark_list_tests=true"]);
    let by_variable =
        call(&link, &[], &[("BENCHMARK_LIST_TESTS", "true"), ("BENCHMARK_FILTER", "binder/(4|8)$")]);
    for called in [&by_name, &by_flags, &by_word] {
        assert_eq!(called.code, Some(0), "{}", called.stderr);
        assert_eq!(called.stdout.lines().count(), 15, "no controls unless asked");
    }
    assert_eq!(by_variable.stdout, "BM_sendVec_binder/4\nBM_sendVec_binder/8\n");
    let with_control =
        call(&link, &["--controls=pipe", "--benchmark_filter=pipe/4$", FEW, "--benchmark_format=json"], &[]);
    assert_eq!(with_control.code, Some(0), "{}", with_control.stderr);
    assert_eq!(rows(&with_control).len(), 1);
}

#[test]
fn repetitions_have_aggregates_and_either_output_can_go_without_rows() {
    let folder = Folder::new("aggregates");
    let out = folder.path("out.csv");
    let called = throughput(&[
        "--benchmark_filter=pipe/4$",
        FEW,
        "--benchmark_repetitions=3",
        "--benchmark_display_aggregates_only",
        "--benchmark_format=json",
        &format!("--benchmark_out={out}"),
        "--benchmark_out_format=csv",
    ]);
    let names: Vec<String> = rows(&called).iter().map(|row| row["name"].to_string()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    let file = contents(&out);
    assert_eq!(file.lines().filter(|line| line.starts_with("\"BM_")).count(), 7, "{file}");
}

#[test]
fn a_seed_makes_an_order_again_and_is_in_the_record() {
    let (called, run) = recorded(
        0,
        throughput,
        &[
            TWO_CASES,
            FEW,
            "--benchmark_repetitions=2",
            "--benchmark_enable_random_interleaving",
            "--seed=42",
            "--benchmark_format=json",
        ],
    );
    assert_eq!((run.plan.random_interleaving, run.plan.seed), (true, Some(42)));
    assert!(run.cases.iter().all(|case| case.measurements().count() == 2));
    assert_eq!(rows(&called).len(), 4 * (2 + 4), "rows come in the plan's order at the end");
}

#[test]
fn a_dying_server_fails_its_case_only() {
    for family in ["pipe", "unix", "futex"] {
        let folder = Folder::new(&format!("dying-{family}"));
        let (record, out) = (folder.path("r.json"), folder.path("out.json"));
        let words = [
            &format!("--benchmark_filter={family}/(4|8|16)$"),
            FEW,
            &format!("--fault=kill-server=BM_sendVec_{family}/8"),
            "--benchmark_format=json",
            &format!("--record={record}"),
            &format!("--benchmark_out={out}"),
        ];
        let called = throughput(&words).ended(1);
        let run = read(&record);
        let Outcome::Failed { reason, partial } = outcome(&run, &format!("BM_sendVec_{family}/8")) else {
            panic!("the case did not fail: {}", called.stdout);
        };
        assert!(reason.contains("SIGABRT"), "{reason}");
        let partial = partial.as_ref().expect("what was measured is kept");
        assert!((1..50).contains(&partial.iterations), "{}", partial.iterations);
        for payload in [4, 16] {
            let measured = outcome(&run, &format!("BM_sendVec_{family}/{payload}")).measured();
            assert_eq!(measured.map(|measured| measured.iterations), Some(50), "the others still run");
        }
        assert!(run.complete, "every case was tried");
        let row = &rows(&called)[1];
        assert!(row["error_message"].as_str().is_some_and(|why| why.contains("SIGABRT")), "{row}");
        assert_eq!(contents(&out), called.stdout);
        assert_eq!(throughput(&[&words[..], &["--gbench-compat"]].concat()).code, Some(0));
    }
}

#[test]
fn a_server_that_hangs_is_given_up() {
    for family in ["pipe", "futex"] {
        let called = throughput(&[
            &format!("--benchmark_filter={family}/(8|16)$"),
            FEW,
            &format!("--fault=hang-server=BM_sendVec_{family}/8"),
            "--patience=1",
            "--benchmark_format=json",
        ])
        .ended(1);
        let rows = rows(&called);
        assert!(rows[0]["error_message"].as_str().is_some_and(|why| why.contains("in 1 s")), "{}", rows[0]);
        assert_eq!(rows[1]["iterations"], 50);
    }
}

#[test]
fn a_wrong_reply_is_noticed() {
    for family in ["pipe", "unix", "futex"] {
        let called = throughput(&[
            &format!("--benchmark_filter={family}/64$"),
            FEW,
            &format!("--fault=corrupt-reply=BM_sendVec_{family}/64"),
            "--benchmark_format=json",
        ])
        .ended(1);
        let row = &rows(&called)[0];
        assert!(row["error_message"].as_str().is_some_and(|why| why.contains("byte 63")), "{row}");
    }
}

#[test]
fn outputs_that_cannot_be_written() {
    for flag in ["--record", "--benchmark_out"] {
        let bad = format!("{flag}=/nonexistent/dir/file");
        let nowhere = throughput(&[TWO_CASES, FEW, "--benchmark_format=json", &bad]).ended(4);
        let told = nowhere.stderr.matches("/nonexistent/dir/file: ENOENT").count();
        assert_eq!(told, 2, "before the run and after it: {}", nowhere.stderr);
        assert_eq!(rows(&nowhere).len(), 4, "the result is still on stdout");
        let compatible = throughput(&[TWO_CASES, FEW, "--gbench-compat", &bad]);
        assert_eq!(compatible.code, Some(1), "Google Benchmark does not begin: {}", compatible.stderr);
        compatible.printed_nothing();
        let full =
            throughput(&[TWO_CASES, FEW, "--benchmark_format=json", &format!("{flag}=/dev/full")]).ended(4);
        full.complained("/dev/full: ENOSPC");
        assert_eq!(rows(&full).len(), 4, "the result is still on stdout");
    }
    let folder = Folder::new("full-stdout");
    let record = folder.path("r.json");
    let code = with_full_stdout(&["throughput", "binder", TWO_CASES, FEW, &format!("--record={record}")]);
    assert_eq!(code, Some(4));
    assert_eq!(read(&record).cases.len(), 4, "the record is still there");
}

#[test]
fn outputs_that_take_nothing_are_no_reason_to_crash() {
    for answer in [
        &["throughput", "--help"][..],
        &["throughput", "binder", "--help"],
        &["throughput", "binder", "--version"],
        &["--benchmark_list_tests"],
        &["applet", "--help"],
        &["conformance", "--list"],
    ] {
        assert_eq!(with_full_stdout(answer), Some(4), "{answer:?}");
        let unread = with_stdout_unread(answer);
        assert_eq!((unread.code, unread.stderr.as_str()), (Some(0), ""), "{answer:?}");
    }
    // JSON begins before the first case, so that none is measured for nobody.
    let words = ["throughput", "binder", TWO_CASES, "--benchmark_format=json", "--benchmark_min_time=60s"];
    with_stdout_unread(&words).ended(0);
    for complaint in
        [&["throughput", "tcp"][..], &["show", "/nonexistent.json"], &["conformance", "--filter=?"]]
    {
        assert_eq!(with_full_stderr(complaint), Some(2), "{complaint:?}");
    }
}

#[test]
fn stored_records_are_shown_and_others_refused() {
    let folder = Folder::new("show");
    let record = folder.path("r.json");
    let measured =
        throughput(&[TWO_CASES, FEW, "--benchmark_format=json", &format!("--record={record}")]).ended(0);
    for (format, has) in [
        ("summary", "BM_sendVec_unix/8"),
        ("console", "Iterations"),
        ("json", "binderperf.run"),
        ("csv", "name,iterations"),
    ] {
        binderperf(&["show", &record, "--format", format]).ended(0).printed(has);
    }
    assert_eq!(binderperf(&["show", &record, "--format", "gbench-json"]).stdout, measured.stdout);
    let whole = contents(&record);
    for (name, text, says) in [
        ("cut", &whole[..whole.len() / 2], "breaks off"),
        ("noise", "\u{1b}[2Jno json", "not JSON"),
        ("empty", "", "empty"),
    ] {
        let path = folder.write(name, text);
        binderperf(&["show", &path]).ended(2).complained(says).printed_nothing();
    }
    assert_eq!(binderperf(&["show", "/nonexistent.json"]).code, Some(2));
    // Without the record in it, our own JSON is Google Benchmark's.
    let foreign = folder.write("foreign", &measured.stdout);
    binderperf(&["show", &foreign]).ended(0).printed("Google Benchmark").printed("BM_sendVec_unix/8");
}

#[test]
fn a_stopped_run_keeps_what_it_has() {
    let folder = Folder::new("stopped");
    let record = folder.path("r.json");
    let words = ["throughput", "binder", TWO_CASES, "--benchmark_min_time=5s", &format!("--record={record}")];
    stopped_when_servers_run(&words, "TERM").ended(1);
    let run = read(&record);
    assert!(!run.complete);
    assert!(run.incomplete_reason.is_some_and(|why| why.contains("SIGTERM")));
    assert!(matches!(run.cases[0].repetitions[0].outcome, Outcome::Failed { partial: Some(_), .. }));
}

#[test]
fn no_server_outlives_a_killed_run() {
    let words = ["throughput", "binder", TWO_CASES, "--benchmark_min_time=20s"];
    servers_end_with(&words, "KILL");
}
