//! Made-up latency tests with known answers, in every format.

use super::*;
use crate::fixtures::{Pair, latency_run};
use crate::render::summary::summary;
use crate::schema::{
    Driver, DriverKind, Finding, Hop, HostClass, Inheritance, Level, Miss, Repetition, Severity,
};
use serde_json::{Value, json as expected};

const ALL_OF_IT: Options = Options { verbose: true, raw: true, android: false };

fn parsed(run: &Run) -> Value {
    run.check().expect("the run is sound");
    for options in [Options::default(), ALL_OF_IT] {
        serde_json::from_str::<Value>(&json(run, &options)).expect("it is JSON");
    }
    serde_json::from_str(&json(run, &ALL_OF_IT)).expect("it is JSON")
}

fn test_of(run: &mut Run) -> &mut LatencyTest {
    run.measured.latency_mut().expect("a latency test")
}

fn found(run: &mut Run, case: usize) -> &mut crate::Latency {
    run.cases[case].latency.as_mut().expect("a case of a latency test")
}

fn three_pairs() -> Run {
    latency_run(&[Pair::healthy(0), Pair::healthy(1), Pair::healthy(2)])
}

/// The threads that `libhwbinder_latency -i 1 -v` shows for its only iteration.
fn seen_roles() -> Vec<Role> {
    let role = |name: &str, pid, tid, cpu, sched| Role {
        role: name.to_owned(),
        pid,
        tid,
        cpu,
        sched,
        transitional: false,
    };
    let mut roles = vec![
        role("service", 8674, 8674, 1, Sched::other(0)),
        role("main", 8673, 8673, 1, Sched::other(0)),
        role("client", 8677, 8677, 0, Sched::other(0)),
        role("fifo-caller", 8677, 8678, 0, Sched::fifo(99)),
        role("hwbinder", 8674, 8676, 0, Sched::fifo(99)),
        role("other-caller", 8677, 8677, 0, Sched::other(-5)),
        role("hwbinder", 8674, 8676, 0, Sched { policy: 7, priority: 0, nice: 0 }),
    ];
    roles[4].transitional = true;
    roles
}

#[test]
fn three_healthy_pairs_letter_by_letter() {
    let run = three_pairs();
    let android = Options { android: true, ..Options::default() };
    assert_eq!(json(&run, &android), include_str!("golden/healthy.json"));
    assert_eq!(table(&run), include_str!("golden/healthy.txt"));
}

#[test]
fn percentiles_of_all_are_never_those_of_buckets() {
    let mut run = three_pairs();
    test_of(&mut run).all.clear();
    let shown = parsed(&run);
    assert_eq!(shown["ALL"]["fifodis"], Value::Null, "rather nothing than something near it");
    assert_eq!(shown["P1"]["fifodis"]["p50"], 0.051499);
    let mut alone = latency_run(&[Pair::healthy(0)]);
    test_of(&mut alone).all.clear();
    assert_eq!(parsed(&alone)["ALL"]["fifodis"]["p50"], 0.050499, "one pair is all pairs");
}

#[test]
fn sync_that_is_poor_is_said_and_migrations_stand_apart() {
    let mut run = latency_run(&[Pair::healthy(0)]);
    (found(&mut run, 0).same_cpu, found(&mut run, 0).migrated) = (300, 500);
    found(&mut run, 1).same_cpu = 100;
    let shown = parsed(&run);
    let pair = &shown["P0"];
    assert_eq!((&pair["SYNC"], &pair["S"], &pair["M"]), (&"POOR".into(), &400.into(), &500.into()));
    assert_eq!(pair["R"], 0.266_666_667, "400 of 1500, in digits that one reads");
    let fifo = expected!({"SYNC": "POOR", "S": 300, "I": 1000, "R": 0.6, "M": 500});
    assert_eq!(pair["fifosync"], fifo, "0.6 is not above 0.6");
    (found(&mut run, 0).same_cpu, found(&mut run, 0).migrated) = (0, 1000);
    let shown = parsed(&run);
    assert_eq!(
        (&shown["P0"]["fifosync"]["SYNC"], &shown["P0"]["fifosync"]["R"]),
        (&Value::Null, &Value::Null)
    );
    assert!(table(&run).contains("POOR 0.10"), "{}", table(&run));
}

#[test]
fn without_a_real_time_caller_nothing_is_zero_and_nothing_passes() {
    let pairs = [0, 1].map(|pair| Pair::healthy(pair).without(Class::Fifo));
    let mut run = latency_run(&pairs);
    let test = test_of(&mut run);
    test.realtime = None;
    test.realtime_problem = Some("RLIMIT_RTPRIO is 0; raise it or run as root".to_owned());
    let shown = parsed(&run);
    for part in ["ALL", "P0", "P1"] {
        assert_eq!(shown[part]["fifo_ms"], Value::Null);
        assert_eq!(shown[part]["fifodis"], Value::Null);
        assert_eq!(shown[part]["bubble"]["fifo"], Value::Null);
    }
    assert_eq!(shown["ALL"]["I"], 2000);
    assert_eq!(shown["inheritance"], "UNKNOWN");
    assert_eq!(shown["inheritance_detail"]["unknown_reason"], "RLIMIT_RTPRIO is 0; raise it or run as root");
    assert_eq!(shown["realtime"], Value::Null);
    let text = table(&run);
    assert!(text.contains("Real-time    none\n"), "{text}");
    assert!(text.contains("note  inheritance cannot be told: no call of a real-time caller"), "{text}");
    assert_eq!(text.matches("RLIMIT_RTPRIO").count(), 1, "the reason is said once: {text}");
    assert!(!text.contains(" fifo"), "no row for calls that nobody made: {text}");
}

#[test]
fn a_class_that_was_skipped_says_why() {
    let mut run = latency_run(&[Pair::healthy(0)]);
    run.cases[0].repetitions = vec![Repetition {
        index: 0,
        outcome: Outcome::Skipped { reason: "no real-time caller\u{1b}[2J".to_owned() },
    }];
    let latency = found(&mut run, 0);
    (latency.misses, latency.bubbles, latency.same_cpu, latency.percentiles) = (0, 0, 0, None);
    test_of(&mut run).all.retain(|all| all.class == Class::Other);
    let shown = parsed(&run);
    assert_eq!(
        (&shown["P0"]["fifo_ms"], &shown["P0"]["failed"]),
        (&Value::Null, &Value::Null),
        "nothing failed"
    );
    let text = table(&run);
    assert!(text.contains("P0 fifo   no real-time caller"), "{text}");
    assert!(!text.contains('\u{1b}'), "a record cannot steer the terminal");
}

#[test]
fn a_failed_pair_appears_with_its_reason_and_what_it_had() {
    let run = latency_run(&[
        Pair::healthy(0),
        Pair::failed(1, "the server was killed by signal 9"),
        Pair::healthy(2),
    ]);
    let shown = parsed(&run);
    assert_eq!(shown["P0"]["failed"], Value::Null);
    assert_eq!(shown["P1"]["failed"], "the server was killed by signal 9");
    assert_eq!(shown["P1"]["I"], 20);
    assert_eq!(shown["P1"]["fifo_ms"]["bst"], 0.051);
    assert_eq!(shown["ALL"]["I"], 4020, "what it had measured counts");
    assert_eq!(
        shown["failed"][1],
        expected!({"pair": 1, "class": "other", "reason": "the server was killed by signal 9"})
    );
    let text = table(&run);
    assert!(text.contains("\nP1 FAILED after 20 calls: the server was killed by signal 9\n"), "{text}");
    let row = text.lines().find(|line| line.starts_with("P1 fifo")).expect("its row");
    assert!(row.ends_with("INCOMPLETE"), "{row}");
}

#[test]
fn androids_verdict_and_ours_stand_side_by_side() {
    let mut run = latency_run(&[Pair::healthy(0)]);
    let hop = Hop {
        scene: "call".to_owned(),
        caller: Sched::fifo(99),
        idle: Sched::other(0),
        served: Some(Sched::other(0)),
        expected: Some(Sched::other(0)),
        note: String::new(),
    };
    test_of(&mut run).inheritance = Inheritance {
        calls: 2000,
        not_inherited: 1000,
        measured: Some(Level::Nice),
        expected: Some(Level::Nice),
        expected_reason: "the kernel's C driver passes nice only".to_owned(),
        below_android: Some(crate::schema::Limit::Mainline),
        hops: vec![
            hop.clone(),
            Hop { served: Some(Sched::other(5)), ..hop.clone() },
            Hop { served: None, note: "no free thread".to_owned(), ..hop },
        ],
    };
    let real_time = |class: &&mut crate::Latency| class.class == Class::Fifo;
    let mut latencies = run.cases.iter_mut().filter_map(|case| case.latency.as_mut());
    latencies.find(real_time).expect("a case").not_inherited = 1000;
    let shown = parsed(&run);
    assert_eq!(
        (&shown["inheritance"], &shown["inheritance_android"]),
        (&"FAIL".into(), &"FAIL".into()),
        "one hop is not as promised"
    );
    let detail = &shown["inheritance_detail"];
    assert_eq!((&detail["measured"], &detail["as_expected"]), (&"nice".into(), &true.into()));
    assert_eq!(detail["hops"][0]["caller"], expected!({"policy": "SCHED_FIFO", "priority": 99, "nice": 0}));
    assert_eq!(
        (&detail["hops"][1]["as_expected"], &detail["hops"][2]["served"]),
        (&false.into(), &Value::Null)
    );
    let text = table(&run);
    let line = "Promised     inheritance nice: the kernel's C driver passes nice only\n";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("UNEXPECTED") && text.contains("no free thread"), "{text}");
    test_of(&mut run).inheritance.hops.clear();
    let shown = parsed(&run);
    assert_eq!(
        (&shown["inheritance"], &shown["inheritance_android"]),
        (&"AS_EXPECTED".into(), &"FAIL".into())
    );
    assert_eq!(shown["verdicts"][1]["words"], "inheritance nice, as expected");
    assert!(
        table(&run).contains("ok    inheritance nice, as expected: nice: 1000 of 2000"),
        "{}",
        table(&run)
    );
    let android: Value =
        serde_json::from_str(&json(&run, &Options { android: true, ..ALL_OF_IT })).expect("JSON");
    assert_eq!((&android["inheritance"], &android["verdicts"]), (&"FAIL".into(), &Value::Null));
}

/// A change of a healthy run, the values under some pointers into its JSON, and lines of its text.
type Told = (fn(&mut Run), Value, &'static [&'static str]);

#[test]
fn what_is_particular_about_a_test_is_told() {
    let told: [Told; 4] = [
        (
            |run| (run.driver, test_of(run).binderized) = (None, false),
            expected!({"/binderized": false, "/driver": null}),
            &["Deadline     2.5 ms, passthrough: called without IPC\n"],
        ),
        (
            |run| {
                let took = 3_000_000;
                test_of(run).stopped_at = Some(Miss { pair: 0, class: Class::Fifo, iteration: 999, took });
                (run.complete, run.incomplete_reason) =
                    (false, Some("stopped at a deadline missed".to_owned()));
            },
            expected!({
                "/stopped_at": {"pair": 0, "class": "fifo", "iteration": 999, "took_ms": 3},
                "/complete": false,
            }),
            &["pair 0, fifo, iteration 999, 3.00 ms\n", "INCOMPLETE: stopped at a deadline missed\n"],
        ),
        (
            |run| {
                run.overloaded = true;
                test_of(run).injected = vec!["delay=500:0.1".to_owned()];
                for case in 0..2 {
                    (found(run, case).load, found(run, case).rate_hz) = ("cpu:4".to_owned(), Some(1000.0));
                }
            },
            expected!({"/overloaded": true, "/load": "cpu:4", "/rate_hz": 1000, "/injected/0": "delay=500:0.1"}),
            &[
                "WARNING more ran",
                "Load         cpu:4\n",
                "Rate         1000 calls/s",
                "INJECTED delay=500:0.1\n",
            ],
        ),
        (
            |run| {
                run.host.class = HostClass::Tcg;
                let finding = Finding::new("x", Severity::Warning, "the governor is powersave\u{1b}[2J");
                run.findings.push(Finding { fix: Some("set performance".to_owned()), ..finding });
            },
            expected!({"/host_class": "tcg"}),
            &["WARNING emulated machine", "WARNING the governor is powersave\\u001b[2J (set performance)\n"],
        ),
    ];
    for (change, values, lines) in told {
        let mut run = latency_run(&[Pair::healthy(0)]);
        change(&mut run);
        let (shown, text) = (parsed(&run), table(&run));
        for (pointer, want) in values.as_object().expect("an object") {
            assert_eq!(shown.pointer(pointer), Some(want), "{pointer}");
        }
        for line in lines {
            assert!(text.contains(line), "{line:?} is not in {text}");
            assert_eq!(summary(&run, "").matches(line).count(), 1, "a summary says it once: {line}");
        }
    }
}

#[test]
fn instructions_are_not_shown_as_time() {
    let mut run = latency_run(&[Pair::healthy(0)]);
    run.clock.unit = ClockUnit::Instructions;
    assert_eq!(parsed(&run)["clock_unit"], "instructions");
    let text = table(&run);
    assert!(text.contains("50499 insns") && !text.contains(" us") && !text.contains(" ms"), "{text}");
}

#[test]
fn who_took_part_line_by_line() {
    let mut run = latency_run(&[Pair::healthy(0)]);
    test_of(&mut run).roles = seen_roles();
    let expected = "\
service pid: 8674 tid: 8674 cpu: 1 SCHED_OTHER 0
main pid: 8673 tid: 8673 cpu: 1 SCHED_OTHER 0
client pid: 8677 tid: 8677 cpu: 0 SCHED_OTHER 0
fifo-caller pid: 8677 tid: 8678 cpu: 0 SCHED_FIFO 99
hwbinder pid: 8674 tid: 8676 cpu: 0 SCHED_FIFO 99 (transitional)
other-caller pid: 8677 tid: 8677 cpu: 0 SCHED_OTHER 0 nice -5
hwbinder pid: 8674 tid: 8676 cpu: 0 ??? 0
";
    assert_eq!(roles(&run), expected);
    let shown = parsed(&run);
    let served = expected!({"role": "hwbinder", "pid": 8674, "tid": 8676, "cpu": 0,
        "policy": "SCHED_FIFO", "priority": 99, "nice": 0, "transitional": true});
    assert_eq!(shown["verbose"][4], served);
    assert_eq!(
        serde_json::from_str::<Value>(&json(&run, &Options::default())).expect("JSON")["verbose"],
        Value::Null
    );
}

#[test]
fn raw_times_are_there_when_asked_for_and_recorded() {
    let mut run = latency_run(&[Pair::failed(0, "lost reply")]);
    found(&mut run, 0).raw = vec![1, 50_000, 3_600_000_000_001];
    let shown = parsed(&run);
    assert_eq!(shown["P0"]["fiforaw_ms"], expected!([0.000001, 0.05, 3600000.000001]));
    assert_eq!(shown["P0"]["otherraw_ms"], Value::Null, "they were not recorded");
    let text = json(&run, &ALL_OF_IT);
    assert!(text.contains("[0.000001,0.05,3600000.000001]"), "no exponents: {text}");
    assert!(!json(&run, &Options::default()).contains("raw_ms"));
    assert!(run.to_json().contains("\"raw\": [1,50000,3600000000001]"), "one line in the record, too");
}

#[test]
fn the_summary_of_a_latency_test() {
    let mut run = latency_run(&[Pair::healthy(0), Pair::failed(1, "killed")]);
    run.driver = run.driver.map(|driver| Driver { kind: DriverKind::Embedded, ..driver });
    run.findings.push(Finding::new("x", Severity::Warning, "the governor is powersave"));
    let text = summary(&run, "Record: run.json\n");
    for said in [
        "Driver  embedded",
        "P0 fifo",
        "ALL other",
        "inheritance PASS",
        "P1 FAILED",
        "governor",
        "Record: run.json",
    ] {
        assert_eq!(text.matches(said).count(), 1, "{said:?} in {text}");
    }
    assert!(!text.contains("bytes/s") && !text.contains("Benchmark"), "no columns of throughput: {text}");
}

#[test]
fn a_run_of_another_test_has_none_of_it() {
    let run = crate::fixtures::run();
    assert_eq!(json(&run, &ALL_OF_IT), "null\n");
    assert!(table(&run).contains("not a latency test"));
    assert_eq!(roles(&run), "");
}

#[test]
fn androids_tools_byte_by_byte() {
    let mut run = latency_run(&[Pair::healthy(0)]);
    test_of(&mut run).roles = seen_roles();
    test_of(&mut run).roles[4].sched = Sched::other(0);
    for case in 0..2 {
        let apart = [150, 650][case];
        found(&mut run, case).android = Some(crate::AndroidCounts { apart, other_priority: 0 });
    }
    found(&mut run, 0).raw = vec![50_000, 3_000_000];
    let other = "\"avg\":0.073, \"wst\":3   , \"bst\":0.07, \"miss\":1, \"meetR\":0.999";
    let fifo = "\"avg\":0.053, \"wst\":3   , \"bst\":0.05, \"miss\":1, \"meetR\":0.999";
    let dis = "{ \"p50\":0.19531, \"p90\":0.19531, \"p95\":0.19531, \"p99\": 0.19531}";
    let times = format!("  \"other_ms\":{{ {other}}},\n  \"fifo_ms\": {{ {fifo}}}");
    let part = format!(
        "{{\"SYNC\":\"POOR\",\"S\":1200,\"I\":2000,\"R\":0.6,\n{times},\n  \"otherdis\":{dis},\n  \"fifodis\": {dis}\n}},\n"
    );
    let head = "{\n\"cfg\":{\"pair\":1,\"iterations\":1000,\"deadline_us\":2500";
    let end = "\"inheritance\": \"PASS\"\n}\n";
    let newer = format!("{head},\"passthrough\":0}},\n\"ALL\":{part}\"P0\":{part}{end}");
    assert_eq!(aosp::aosp(&run, aosp::Tool::Hwbinder, false, false), newer);
    let raw = aosp::aosp(&run, aosp::Tool::Hwbinder, false, true);
    assert!(raw.contains("\"passthrough\":0},\n\"fifo_0_data\": [50000,3000000],\n\"ALL\""), "{raw}");
    let older = format!("\"P0\":{{\"SYNC\":\"POOR\",\"S\":1200,\"I\":2000,\"R\":0.6,\n{times}\n}},\n");
    assert_eq!(aosp::aosp(&run, aosp::Tool::Hwbinder8, false, true), format!("{head}}},\n{older}{end}"));
    let narrow = older.replace(", \"", ",\"");
    assert_eq!(aosp::aosp(&run, aosp::Tool::Binder, false, true), format!("{head}}},\n{narrow}{end}"));

    let rule = "--------------------------------------------------\n";
    let text = aosp::aosp(&run, aosp::Tool::Hwbinder, true, false);
    let before = format!(
        "{rule}service      pid: 8674 tid: 8674 cpu: 1\nSCHED_OTHER 0\n{rule}main         pid: 8673 tid: 8673 cpu: 1\n\
         SCHED_OTHER 0\n{{\n"
    );
    assert!(text.starts_with(&before), "{text}");
    let served = format!(
        "{rule}fifo-caller  pid: 8677 tid: 8678 cpu: 0\nSCHED_FIFO  99\n{rule}hwbinder     pid: 8674 tid: 8676 cpu: 0\n\
         SCHED_OTHER 0\nerr priority_caller:99, priority:0\n{rule}other-caller pid: 8677 "
    );
    assert!(text.contains(&served), "{text}");
    assert!(text.contains("cpu: 0\n???         0\n\"ALL\""), "a policy that the tool does not know: {text}");
    test_of(&mut run).roles[4].sched = Sched::fifo(99);
    let text = aosp::aosp(&run, aosp::Tool::Hwbinder, true, false);
    assert!(text.contains("???         99\n") && !text.contains("err "), "raised: {text}");
    let text = aosp::aosp(&run, aosp::Tool::Binder, true, false);
    assert!(text.starts_with(&format!("{rule}main ")) && text.contains("},\n----"), "{text}");
    assert!(text.contains("\nserver       pid: 8674"), "{text}");
}

#[test]
fn androids_verdict_is_not_ours_where_it_counts_otherwise() {
    let mut run = latency_run(&[Pair::healthy(0)]);
    let word = |run: &Run| {
        let text = aosp::aosp(run, aosp::Tool::Hwbinder, false, false);
        text.rsplit('"').nth(1).map(str::to_owned).expect("a word")
    };
    test_of(&mut run).inheritance.not_inherited = 5;
    found(&mut run, 1).not_inherited = 5;
    found(&mut run, 1).android = Some(crate::AndroidCounts::default());
    assert_eq!(word(&run), "PASS", "nice values are not seen");
    found(&mut run, 1).android = None;
    assert_eq!(word(&run), "FAIL", "an older record has our count only");
    found(&mut run, 1).android = Some(crate::AndroidCounts { apart: 0, other_priority: 256 });
    assert_eq!(word(&run), "FAIL", "as many as fill an exit status");
    test_of(&mut run).realtime = None;
    assert_eq!(word(&run), "UNKNOWN");
    test_of(&mut run).stopped_at = Some(Miss { pair: 0, class: Class::Fifo, iteration: 1, took: 3_000_000 });
    let text = aosp::aosp(&run, aosp::Tool::Hwbinder, false, false);
    assert!(text.ends_with("\"passthrough\":0},\n"), "the tool exits at its miss: {text}");
}
