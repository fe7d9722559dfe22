//! The latency tests as a user or a script calls them, on the embedded driver: outputs, every verdict
//! both ways, and what happens when a pair breaks.
//! Not here: single situations of inheritance (`inheritance`), grids (`sweep`).

use std::os::unix::fs::FileExt;

use needs::{Lack, Need, need};

use crate::support::{
    self, BINARY, Called, Folder, binderperf, call, contents, read, realtime, stopped_when_servers_run,
    tracing_switch,
};
use record::verdict::Served;
use record::{Class, Outcome, Run};
use serde_json::Value;

/// Calls an Android program by its name, for our output, which no terminal reads here.
fn android(name: &str, words: &[&str]) -> Called {
    support::android(name, &[&["--aosp-compat=off"], words].concat())
}

/// No call takes so long.
const NO_DEADLINE: [&str; 2] = ["-deadline_us", "3600000000"];

/// Runs `latency hwbinder` without a look at single situations; what it said, and its record.
fn recorded(words: &[&str]) -> (Called, Run) {
    let folder = Folder::new("latency");
    let path = folder.path("r.json");
    let fixed = ["latency", "hwbinder", "--driver=embedded", "--no-scenes", "--record", &path];
    let called = binderperf(&[&fixed[..], words].concat());
    (called, read(&path))
}

fn served(run: &Run, class: Class) -> Served {
    Served::of(run.cases.iter().filter(|case| case.latency.as_ref().is_some_and(|l| l.class == class)))
}

/// Misses, and those of them that were bubbles.
fn misses(run: &Run, class: Class) -> (u64, u64) {
    let of =
        run.cases.iter().filter_map(|case| case.latency.as_ref()).filter(|latency| latency.class == class);
    of.fold((0, 0), |(misses, bubbles), latency| (misses + latency.misses, bubbles + latency.bubbles))
}

fn reason(run: &Run, pair: u32, class: Class) -> &str {
    let name = format!("latency_hwbinder/pair:{pair}/{}", class.name());
    match &run.case(&name).expect("the case").repetitions[0].outcome {
        Outcome::Failed { reason, .. } => reason,
        other => panic!("{name} did not fail: {other:?}"),
    }
}

#[test]
fn the_pages_command_prints_the_pages_json_and_passes() {
    need!(realtime());
    let called = android("libhwbinder_latency", &["-i", "50", "-pair", "3"]).ended(0);
    let json = called.json();
    assert_eq!(json["cfg"], serde_json::json!({"pair": 3, "iterations": 50, "deadline_us": 2500}));
    for (name, calls) in [("ALL", 300), ("P0", 100), ("P1", 100), ("P2", 100)] {
        let part = &json[name];
        assert_eq!(part["I"], calls, "{name}");
        assert!(part["S"].as_u64().is_some_and(|synced| synced <= calls), "{part}");
        assert!(["GOOD", "POOR"].contains(&part["SYNC"].as_str().expect("a word")), "{part}");
        for class in ["other", "fifo"] {
            let times = &part[format!("{class}_ms")];
            let number = |key: &str| times[key].as_f64().unwrap_or_else(|| panic!("{key}: {times}"));
            assert!(number("bst") > 0.0 && number("bst") <= number("avg"), "{times}");
            assert!(number("avg") <= number("wst") && number("meetR") <= 1.0, "{times}");
            let percentiles = &part[format!("{class}dis")];
            let all = ["p50", "p90", "p95", "p99"].map(|key| percentiles[key].as_f64().expect("a number"));
            assert!(all.is_sorted() && all[0] >= number("bst") && all[3] <= number("wst"), "{percentiles}");
        }
    }
    assert_eq!(json["inheritance"], "PASS");
    assert_eq!(json["inheritance_detail"]["measured"], "rt");
    assert_eq!(json["inheritance_detail"]["expected"], "rt");
}

#[test]
fn verbose_and_raw_data_leave_the_json_valid() {
    need!(realtime());
    let called = android("libhwbinder_latency", &["-i", "1", "-v", "-raw_data"]).ended(0);
    let json = called.json();
    assert_eq!(json["P0"]["fiforaw_ms"].as_array().map(Vec::len), Some(1), "{}", called.stdout);
    let roles: Vec<&str> =
        json["verbose"].as_array().expect("roles").iter().filter_map(|role| role["role"].as_str()).collect();
    assert_eq!(roles, ["service", "main", "client", "fifo-caller", "hwbinder", "other-caller", "hwbinder"]);
    let role = |at: usize| &json["verbose"][at];
    assert_eq!((&role(3)["policy"], &role(3)["priority"]), (&"SCHED_FIFO".into(), &99.into()));
    assert_eq!((&role(4)["priority"], &role(4)["transitional"]), (&99.into(), &true.into()), "it was lent");
    // What remains for an ordinary caller is the node's nice 0, which is lent to a service that is nicer.
    let nicer = sys::sched::nice_of(0).expect("one's own") > 0;
    assert_eq!(
        (&role(6)["priority"], &role(6)["transitional"]),
        (&0.into(), &nicer.into()),
        "and taken back"
    );
    assert_eq!(role(4)["tid"], role(6)["tid"], "one thread serves both");
    called.complained("fifo-caller pid: ").complained("SCHED_FIFO 99");
}

#[test]
fn binder_passes_real_time_on_only_where_a_node_asks_for_it() {
    need!(realtime());
    let called = android("schd-dbg", &["-i", "30", "-pair", "1"]).ended(1);
    let detail = &called.json()["inheritance_detail"];
    assert_eq!((&detail["not_inherited"], &detail["expected"]), (&30.into(), &"nice".into()));
    assert_eq!(called.json()["inheritance"], "FAIL");
    assert!(called.stderr.contains("inheritance FAIL: 30 of 60 calls"), "it says why: {}", called.stderr);
    let called = android("schd-dbg", &["-i", "30", "--expect=driver"]);
    assert_eq!(called.code, Some(0), "as this driver is known: {}", called.stderr);
    let called = android("schd-dbg", &["-i", "30", "--inherit-rt=on"]);
    assert_eq!((called.code, &called.json()["inheritance"]), (Some(0), &"PASS".into()));
}

#[test]
fn inheritance_fails_without_it_and_passes_with_it() {
    need!(realtime());
    let (called, run) = recorded(&["-i", "40"]);
    let test = run.latency().expect("a latency test");
    assert_eq!((called.code, test.inheritance.calls, test.inheritance.not_inherited), (Some(0), 80, 0));
    // A broken promise fails; as much as was promised does not.
    for (words, status, word) in [
        (["--inject", "drop-inheritance"], 1, "FAIL"),
        (["--inherit", "nice"], 0, "AS_EXPECTED"),
        (["--inherit-rt", "off"], 0, "AS_EXPECTED"),
    ] {
        let (called, run) = recorded(&[&["-i", "40"], &words[..]].concat());
        let test = run.latency().expect("a latency test");
        assert_eq!((called.code, test.inheritance.not_inherited), (Some(status), 40), "{words:?}");
        let json = called.json();
        assert_eq!((&json["inheritance"], &json["inheritance_android"]), (&word.into(), &"FAIL".into()));
    }
}

#[test]
fn sync_is_good_on_one_cpu_and_poor_on_the_wrong_one() {
    let one = sys_affinity_of_one();
    let words = ["latency", "hwbinder", "--driver=embedded", "--no-scenes", "-i", "40"];
    let called = call("taskset", &[&["-c", &one, BINARY], &words[..]].concat(), &[]);
    let all = &called.json()["ALL"];
    assert_eq!(
        (&all["SYNC"], &all["R"], &all["M"]),
        (&"GOOD".into(), &1.into(), &0.into()),
        "{}",
        called.stderr
    );
    need!(Need::Cpus.met_if(sys::sched::usable_cpus() >= 2, "the wrong CPU needs two"));
    let (_, run) = recorded(&["-i", "40", "--inject=wrong-cpu"]);
    for class in Class::BOTH {
        let served = served(&run, class);
        assert_eq!((served.same_cpu, served.ratio()), (0, (served.calls > 0).then_some(0.0)), "{class:?}");
    }
}

/// The last CPU that may be used.
fn sys_affinity_of_one() -> String {
    let status = contents("/proc/self/status");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list");
    list.trim().rsplit([',', '-']).next().expect("a CPU").to_owned()
}

#[test]
fn a_deadline_is_missed_by_every_delayed_call_and_by_no_other() {
    let (_, run) = recorded(&["-i", "15", "-deadline_us", "30000", "--inject=delay=31000:1"]);
    let calls = served(&run, Class::Other).calls;
    assert_eq!((calls, misses(&run, Class::Other).0), (15, 15));
    let (_, run) = recorded(&[&NO_DEADLINE[..], &["-i", "15", "--inject=delay=100:1"]].concat());
    assert_eq!((served(&run, Class::Other).calls, misses(&run, Class::Other)), (15, (0, 0)));
}

#[test]
fn a_miss_in_which_nobody_ran_is_a_bubble_and_one_in_which_the_server_computed_is_none() {
    need!(realtime());
    // Real-time calls: load beside this test does not keep their server from running.
    let words = ["-i", "15", "-deadline_us", "9000"];
    let (_, run) = recorded(&[&words[..], &["--inject=stall-server=10000"]].concat());
    let (missed, bubbles) = misses(&run, Class::Fifo);
    assert!(missed == 15 && bubbles >= 12, "{bubbles} bubbles of {missed} misses");
    let (_, run) = recorded(&[&words[..], &["--inject=delay=10000:1"]].concat());
    let (missed, bubbles) = misses(&run, Class::Fifo);
    assert!(missed == 15 && bubbles <= 3, "{bubbles} bubbles of {missed} misses");
}

#[test]
fn a_pair_that_breaks_leaves_the_others_alone_and_its_own_calls_in_the_record() {
    let lost = ("lose-reply", "the client waits for the server (call 1");
    for (fault, want) in [lost, ("kill-server", "the server died (signal: 6 (SIGABRT)")] {
        let (called, run) = recorded(&["-i", "60", "-pair", "2", "--patience=2", "--inject", fault]);
        assert_eq!(called.code, Some(1), "{fault}: {}", called.stderr);
        assert!(reason(&run, 0, Class::Other).contains(want), "{fault}: {}", reason(&run, 0, Class::Other));
        assert!(run.complete, "the other pair came to its end");
        let kept = run.cases.iter().filter_map(record::verdict::numbers).map(|numbers| numbers.iterations);
        let kept: Vec<u64> = kept.collect();
        let classes = kept.len() as u64 / 2;
        assert_eq!(
            kept.iter().sum::<u64>() - 60 * classes,
            kept[..kept.len() / 2].iter().sum::<u64>(),
            "{kept:?}"
        );
        assert!(kept[0] > 0 && kept[0] < 60, "{fault}: {kept:?}");
        assert_eq!(called.stderr.matches(want).count(), 1, "told once, not by class: {}", called.stderr);
        assert_ne!(called.json()["P0"]["failed"], Value::Null);
    }
}

#[test]
fn a_real_time_thread_that_spins_is_ended_and_does_not_take_the_machine() {
    need!(realtime());
    let (called, run) = recorded(&["-i", "30", "-pair", "2", "--inject=spin-caller"]);
    assert_eq!(called.code, Some(1), "{}", called.stderr);
    assert!(reason(&run, 0, Class::Fifo).contains("without sleeping"), "{}", reason(&run, 0, Class::Fifo));
    assert_eq!(served(&run, Class::Other).calls, 30, "of the other pair");
    // Of one pair nothing is left to be measured, and that is a result, too.
    let (called, run) = recorded(&["-i", "30", "--inject=spin-caller"]);
    assert_eq!(called.code, Some(1), "{}", called.stderr);
    assert!(reason(&run, 0, Class::Fifo).contains("without sleeping"), "{}", reason(&run, 0, Class::Fifo));
    assert_eq!((&called.json()["ALL"]["I"], &called.json()["inheritance"]), (&0.into(), &"UNKNOWN".into()));
}

#[test]
fn with_a_rate_a_stall_counts_for_the_calls_that_it_delays() {
    // Calls of 5 ms, of each class intended every 2 ms: the last of 20 waits for about 60 ms, however fast each one is.
    let stall = ["-i", "20", "--inject=stall-server=5000", "--raw-data"];
    let worst = |run: &Run| {
        let numbers = run.cases.iter().filter_map(record::verdict::numbers);
        numbers.map(|numbers| numbers.samples.max).max().expect("calls")
    };
    let (_, paced) = recorded(&[&stall[..], &["--rate=1000"]].concat());
    assert!(worst(&paced) > 50_000_000, "{} ns", worst(&paced));
    let raw = paced.cases.iter().filter_map(|case| case.latency.as_ref()).find(|it| it.class == Class::Other);
    let raw = &raw.expect("its facets").raw;
    let (first, last) = (raw[..3].iter().min(), raw.last());
    assert!(last.zip(first).is_some_and(|(last, first)| *last > 3 * first), "lateness adds up: {raw:?}");
}

#[test]
fn what_computes_all_the_time_is_no_bubble_however_late_it_is() {
    need!(realtime());
    let (_, run) = recorded(&["-i", "20", "--rate=400", "--inject=delay=5000:1"]);
    let (missed, bubbles) = misses(&run, Class::Fifo);
    assert!(missed == 20 && bubbles <= 4, "{bubbles} bubbles of {missed} misses");
}

#[test]
fn a_rate_slower_than_the_patience_loses_no_reply() {
    let (called, run) = recorded(&["-i", "2", "--rate=0.7", "--patience=1"]);
    assert!(run.complete && !run.any_failed(), "{}", called.stderr);
}

#[test]
fn what_was_expected_and_not_found_is_status_1() {
    need!(realtime());
    for words in [["--inject=drop-inheritance", "--expect=driver"], ["--inherit=rt", "--expect=nice"]] {
        let called = android("libhwbinder_latency", &[&["-i", "5"], &words[..]].concat()).ended(1);
        assert!(called.stderr.contains("binderperf: "), "{words:?} says why");
    }
    for words in [["--inherit=nice", "--expect=driver"], ["--inherit=none", "--expect=none"]] {
        android("libhwbinder_latency", &[&["-i", "5"], &words[..]].concat()).ended(0);
    }
}

#[test]
fn without_the_right_to_be_real_time_the_test_says_so_and_measures_the_rest() {
    let words = ["latency", "hwbinder", "--driver=embedded", "-i", "20"];
    let dropped = ["--bounding-set=-sys_nice", "--inh-caps=-sys_nice", BINARY];
    let may = realtime().is_ok();
    let called =
        if may { call("setpriv", &[&dropped[..], &words].concat(), &[]) } else { binderperf(&words) };
    let allowed = may && called.code == Some(0);
    need!(Need::Realtime.met_if(!allowed, "RLIMIT_RTPRIO allows it without the capability"));
    assert_eq!(called.code, Some(3), "{}", called.stderr);
    let json = called.json();
    assert_eq!((&json["inheritance"], &json["P0"]["fifo_ms"]), (&"UNKNOWN".into(), &Value::Null));
    assert_eq!((&json["P0"]["I"], &json["realtime"]), (&20.into(), &Value::Null));
    assert!(json["realtime_problem"].as_str().is_some_and(|why| why.contains("RLIMIT_RTPRIO")), "{json}");
}

#[test]
fn passthrough_is_the_interface_without_ipc() {
    let called = android("libhwbinder_latency", &["-m", "PASSTHROUGH", "-i", "25"]);
    let json = called.json();
    assert_eq!((&json["binderized"], &json["P0"]["R"]), (&false.into(), &1.into()), "{}", called.stderr);
    if realtime().is_ok() {
        assert_eq!((called.code, &json["inheritance"]), (Some(0), &"PASS".into()));
    }
}

/// The kernel's tracing switch, put back as it was.
struct Tracing(std::fs::File, u8);

impl Tracing {
    fn found() -> Result<Self, Lack> {
        let file = tracing_switch()?;
        // All that switch the shared buffer take turns, whichever test program they are in.
        file.lock().expect("a lock");
        let mut state = [0];
        file.read_at(&mut state, 0).expect("the switch");
        Ok(Self(file, state[0]))
    }

    fn set(&self, state: u8) {
        self.0.write_at(&[state], 0).expect("the switch");
    }

    fn is_on(&self) -> bool {
        let mut state = [0];
        self.0.read_at(&mut state, 0).expect("the switch");
        state == *b"1"
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.set(self.1);
    }
}

#[test]
fn a_miss_stops_tracing_and_the_test_unless_there_is_nothing_to_stop() {
    let tracing = need!(Tracing::found());
    tracing.set(b'1');
    let words = ["latency", "hwbinder", "--driver=embedded", "-i", "2000", "-trace", "-deadline_us", "1"];
    let called = binderperf(&words);
    assert!(!tracing.is_on(), "stopped");
    assert_eq!(called.code, Some(1), "{}", called.stderr);
    called.complained("deadline triggered: halt & stop trace\nlog:");
    let json = called.json();
    assert_eq!(json["stopped_at"]["iteration"], 0);
    assert!(json["ALL"]["I"].as_u64().is_some_and(|calls| calls < 10), "it ended at once");

    let called = binderperf(&words);
    assert_eq!((called.code, called.stdout.as_str()), (Some(3), ""), "it is off now");
    called.complained("tracing_on");

    tracing.set(b'1');
    let called = binderperf(&[&words[..5], &["-trace"], &NO_DEADLINE[..]].concat());
    assert!(tracing.is_on() && called.json()["complete"] == true, "no miss, no stop: {}", called.stderr);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_starts() {
    let bad: [&[&str]; 10] = [
        &["-i", "0"],
        &["-i", "many"],
        &["-pair", "0"],
        &["-pair", "100000"],
        &["-deadline_us", "0"],
        &["-m", "SOMETIMES"],
        &["--rate", "-1"],
        &["--load", "noise"],
        &["--inject", "gremlins"],
        &["--payload", "99999999"],
    ];
    for words in bad {
        let called = android("libhwbinder_latency", words);
        assert_eq!((called.code, called.stdout.as_str()), (Some(2), ""), "{words:?}: {}", called.stderr);
        assert!(!called.stderr.is_empty(), "{words:?}");
    }
    android("schd-dbg", &["-m", "PASSTHROUGH"]).ended(2);
}

#[test]
fn a_signal_ends_the_test_and_keeps_what_was_measured() {
    let folder = Folder::new("latency-signal");
    let record = folder.path("r.json");
    let written = format!("--record={record}");
    let words = ["latency", "hwbinder", "--driver=embedded", "-i", "5000000", "--rate=1000", &written];
    let called = stopped_when_servers_run(&words, "INT").ended(1);
    let run = read(&record);
    assert_eq!(run.incomplete_reason.as_deref(), Some("stopped by SIGINT"));
    assert!(serde_json::from_str::<Value>(&called.stdout).is_ok(), "{}", called.stdout);
}

#[test]
fn overload_is_said_and_recorded() {
    let pairs = (sys::sched::usable_cpus() + 1).to_string();
    let (called, run) = recorded(&["-i", "5", "-pair", &pairs]);
    assert!(run.overloaded && called.stderr.contains("overloaded"), "{}", called.stderr);
    let (called, run) = recorded(&["-i", "5"]);
    assert!(!run.overloaded && !called.stderr.contains("overloaded"), "{}", called.stderr);
    android("libhwbinder_latency", &["-h"]).ended(0).printed("up to one less than the CPUs");
}

#[test]
fn load_beside_the_test_is_recorded_with_it() {
    let (called, run) = recorded(&["-i", "10", "--load=cpu:2", "--load=irq:1"]);
    assert!(run.cases.iter().all(|case| case.latency.as_ref().is_some_and(|it| it.load == "cpu:2,irq:1")));
    assert!(called.json()["load"].as_str().is_some_and(|load| load.contains("cpu:2")), "{}", called.stdout);
}
