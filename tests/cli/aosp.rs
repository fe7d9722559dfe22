//! The output of Android's tools, side by side with the formats of their sources: `tests/golden/aosp` has each line of a
//! whole output as a format of `printf`, which prints it here from the numbers that our line holds.
//! Not here: our own output (`latency`, `workers`), Google Benchmark's (`throughput`).
//! Facts: frameworks/native's `schd-dbg.cpp` and `binderThroughputTest.cpp`, libhwbinder's `Latency.cpp`, `PerfTest.cpp`
//! and `Benchmark_throughput.cpp` (Android 14; `-8` is `Latency.cpp` of Android 8). Their streams are written as formats.

use std::process::Command;

use needs::{Need, need};

use crate::support::{Called, Folder, android, binderperf, contents, read, realtime};
use record::{Class, Latency, Run};
use serde_json::Value;

/// Runs a tool by Android's name; what it printed, and its record.
fn recorded(tool: &str, words: &[&str]) -> (Called, Run) {
    let folder = Folder::new("aosp");
    let path = folder.path("r.json");
    let called = android(tool, &[words, &["--record", &path]].concat());
    (called, read(&path))
}

/// The parts of a format of `printf`: text, then the width of the number behind it, for each number; and the last text.
fn parts(format: &str) -> (Vec<(String, usize)>, String) {
    let (mut parts, mut text) = (Vec::new(), String::new());
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        text += before;
        if let Some(after) = after.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        let end = after.find(|letter: char| letter.is_ascii_alphabetic()).expect("a conversion");
        let width = after[..end].trim_start_matches('-').split('.').next().unwrap_or_default();
        parts.push((std::mem::take(&mut text), width.parse().unwrap_or(0)));
        rest = &after[end + 1..];
    }
    (parts, text + rest)
}

/// The values that a line of this format shows; `None` if its text differs.
fn values(format: &str, line: &str) -> Option<Vec<String>> {
    let (parts, last) = parts(format);
    let mut rest = line;
    let mut values = Vec::new();
    for (at, (text, width)) in parts.iter().enumerate() {
        rest = rest.strip_prefix(text.as_str())?;
        let next = parts.get(at + 1).map_or(&last, |(text, _)| text);
        let end = match next.as_str() {
            "" if at + 1 < parts.len() => (*width).min(rest.len()),
            "" => rest.len(),
            next => rest.get(*width..).and_then(|more| more.find(next)).map(|end| end + width)?,
        };
        values.push(rest[..end].trim_end().to_owned());
        rest = &rest[end..];
    }
    (rest == last).then_some(values)
}

/// Asserts that each line is what C's `printf` makes of it with the tool's format; returns the values of each line.
#[track_caller]
fn as_formatted(golden: &str, printed: &str) -> Vec<Vec<String>> {
    let formats = contents(format!("tests/golden/aosp/{golden}.txt"));
    assert_eq!(printed.lines().count(), formats.lines().count(), "{golden}: {printed}");
    let each = formats.lines().zip(printed.lines()).map(|(format, line)| {
        let values = values(format, line).unwrap_or_else(|| panic!("{golden}: {line:?} is not {format:?}"));
        let mut printf = Command::new("printf");
        let printf = printf.env("LC_ALL", "C").arg("--").arg(format).args(&values).output().expect("printf");
        assert_eq!(String::from_utf8_lossy(&printf.stdout), line, "{golden}: {format} of {values:?}");
        values
    });
    each.collect()
}

/// Asserts that a number is shown with this many significant digits, or one off by the last binary digit.
#[track_caller]
fn shows(shown: &Value, number: f64, digits: i32) {
    let shown = shown.as_f64().expect("a number");
    let half = 0.5 * 10f64.powi(number.abs().max(1e-300).log10().floor() as i32 + 1 - digits);
    assert!((shown - number).abs() <= half * 1.0001 + 1e-12, "{shown} for {number}");
}

fn of_class(run: &Run, pair: u32, class: Class) -> (&Latency, &record::Measurement) {
    let is_it = |latency: &&Latency| (latency.pair, latency.class) == (pair, class);
    let found = run.cases.iter().find_map(|case| Some((case.latency.as_ref().filter(is_it)?, case)));
    let (latency, case) = found.expect("its case");
    (latency, case.measurements().next().expect("measured"))
}

/// Asserts that the object of a pair shows the record's numbers.
fn is_of_record(shown: &Value, run: &Run, pair: u32) {
    let (mut calls, mut apart) = (0, 0);
    for (class, key) in [(Class::Other, "other"), (Class::Fifo, "fifo")] {
        let (latency, numbers) = of_class(run, pair, class);
        let times = &shown[format!("{key}_ms")];
        shows(&times["avg"], numbers.mean_real().expect("calls") / 1e6, 2);
        shows(&times["wst"], numbers.samples.max as f64 / 1e6, 2);
        shows(&times["bst"], numbers.samples.min as f64 / 1e6, 2);
        assert_eq!(times["miss"], latency.misses);
        shows(&times["meetR"], 1.0 - latency.misses as f64 / numbers.iterations as f64, 5);
        calls += numbers.iterations;
        apart += latency.android.expect("Android's counts").apart;
        if let Some(spread) = shown.get(format!("{key}dis")) {
            let p99 = latency.percentiles.expect("calls").p99;
            let middle = (p99.min(49_999_999) / 390_625) as f64 * 0.390625 + 0.1953125;
            shows(&spread["p99"], middle, 5);
        }
    }
    assert_eq!((&shown["I"], &shown["S"]), (&calls.into(), &(calls - apart).into()));
    let ratio = (calls - apart) as f64 / calls as f64;
    shows(&shown["R"], ratio, 5);
    assert_eq!(shown["SYNC"], if ratio > 0.6 { "GOOD" } else { "POOR" });
}

#[test]
fn latency_tests_print_what_their_sources_print_and_the_numbers_of_the_record() {
    need!(realtime());
    // The newer tool keeps its status for failures of inheritance; children's statuses become multiples of 256.
    for (tool, golden, more, inheritance, status) in [
        ("libhwbinder_latency", "libhwbinder_latency", &[][..], "PASS", 0),
        ("libhwbinder_latency", "libhwbinder_latency", &["--inherit=nice"], "FAIL", 256 - 2 * 15),
        ("libhwbinder_latency", "libhwbinder_latency-8", &["--android=8", "--inherit=nice"], "FAIL", 0),
        ("schd-dbg", "schd-dbg", &[], "FAIL", 0),
        ("schd-dbg", "schd-dbg", &["--inherit-rt=on"], "PASS", 0),
    ] {
        let (called, run) = recorded(tool, &[&["-i", "15", "-pair", "2"], more].concat());
        let called = called.ended(status);
        as_formatted(golden, &called.stdout);
        let json = called.json();
        let cfg = &json["cfg"];
        assert_eq!(
            (&cfg["pair"], &cfg["iterations"], &cfg["deadline_us"]),
            (&2.into(), &15.into(), &2500.into())
        );
        assert_eq!(json["inheritance"], inheritance, "{called}");
        for pair in [0, 1] {
            is_of_record(&json[format!("P{pair}")], &run, pair);
        }
        let all = json.get("ALL").map(|all| all["I"].clone());
        assert_eq!(all, (golden == "libhwbinder_latency").then(|| 60.into()));
    }
}

#[test]
fn verbose_prints_each_thread_where_the_call_found_it() {
    need!(realtime());
    let nicer = sys::sched::nice_of(0).expect("one's own") > 0;
    // Name, policy and priority of each thread, in order.
    let hwbinder = ["service", "main", "client", "fifo-caller", "hwbinder", "other-caller", "hwbinder"];
    let binder = ["main", "server", "client", "fifo-caller", "binder", "other-caller", "binder"];
    for (tool, golden, names, raised) in [
        ("libhwbinder_latency", "libhwbinder_latency-v", hwbinder, ["???", "99"]),
        ("schd-dbg", "schd-dbg-v", binder, ["SCHED_OTHER", "0"]),
    ] {
        let (called, run) = recorded(tool, &["-i", "1", "-v", "--cpus=0,0"]);
        let lines = as_formatted(golden, &called.stdout);
        let shown: Vec<&Vec<String>> =
            lines.iter().filter(|values| values.len() == 4 && names.contains(&values[0].as_str())).collect();
        assert_eq!(shown.iter().map(|values| values[0].as_str()).collect::<Vec<_>>(), names);
        let scheds: Vec<[&str; 2]> = lines
            .iter()
            .filter(|values| values.len() == 2 && (values[0].starts_with("SCHED") || values[0] == "???"))
            .map(|values| [values[0].as_str(), values[1].as_str()])
            .collect();
        let other = ["SCHED_OTHER", "0"];
        let want = [other, other, other, ["SCHED_FIFO", "99"], raised, other, other];
        // A nicer service is lent nice 0, which is no policy that the tools do not know.
        assert_eq!(scheds, want, "nicer: {nicer}: {called}");
        assert_eq!((shown[3][3].as_str(), shown[4][3].as_str()), ("0", "0"), "pinned to one CPU");
        assert_eq!(run.latency().expect("a latency test").roles.len(), 7);
        let errors: Vec<&Vec<String>> =
            lines.iter().filter(|values| values.len() == 2 && values[0] == "99").collect();
        assert_eq!(errors.len(), usize::from(tool == "schd-dbg"), "priority_caller: 99, priority: 0");
    }
    let called = android("libhwbinder_latency", &["-i", "3", "-pair", "2", "-v"]);
    assert_eq!(called.stdout.matches("fifo-caller ").count(), 6, "each call of each pair: {called}");
    let called = android("libhwbinder_latency", &["-i", "3", "-raw_data"]).ended(0);
    assert_eq!(called.json()["fifo_0_data"].as_array().map(Vec::len), Some(3));
}

#[test]
fn schd_dbg_looks_at_cpus_only_where_its_server_is_raised() {
    need!(realtime());
    need!(Need::Cpus.met_if(sys::sched::usable_cpus() >= 2, "the wrong CPU needs two"));
    let synced = |tool, words: &[&str]| {
        let called = android(tool, &[&["-i", "20", "--inject=wrong-cpu"], words].concat());
        called.json()["P0"]["S"].as_u64().expect("a number")
    };
    assert_eq!(synced("libhwbinder_latency", &[]), 0, "each call is served elsewhere");
    assert_eq!(synced("schd-dbg", &["--inherit-rt=on"]), 20, "and so is each real-time call");
    assert_eq!(synced("schd-dbg", &[]), 40, "no server is raised, so that nothing is counted");
}

#[test]
fn throughput_tests_print_what_their_sources_print_and_the_numbers_of_the_record() {
    let binder = |words: &[&str]| recorded("binderThroughputTest", words);
    let hwbinder = |words: &[&str]| recorded("hwbinderThroughputTest", words);
    let cases = [
        ("binderThroughputTest", binder(&["-i", "300", "-m", "1"]), 1.0),
        ("binderThroughputTest", binder(&["-i", "300", "-m", "1", "-p"]), 2.0),
        ("binderThroughputTest-t", binder(&["-i", "200", "-t", "-m", "60000000"]), 1.0),
        ("hwbinderThroughputTest", hwbinder(&["-w", "3", "-s", "2", "-i", "100"]), 1.0),
        ("hwbinderThroughputTest", hwbinder(&["-m", "passthrough", "-i", "100"]), 1.0),
        ("hwbinderThroughputTest-passthrough", hwbinder(&["-m", "PASSTHROUGH", "-i", "100"]), 1.0),
    ];
    for (golden, (called, run), workers) in cases {
        let called = called.ended(0);
        // The second round may have a call more than twice as long as the first one's longest.
        let longer = golden.ends_with("-t") && called.stdout.contains("took longer");
        let printed: String = called
            .stdout
            .lines()
            .filter(|line| !longer || !line.contains("took longer"))
            .map(|line| line.to_owned() + "\n")
            .collect();
        let lines = as_formatted(golden, &printed);
        let numbers = run.cases[0].measurements().next().expect("measured");
        let counter = |name: &str| numbers.counters.find(name).unwrap_or_else(|| panic!("no {name}")).value;
        let number = |text: &str| Value::from(text.parse::<f64>().expect("a number"));
        let times = lines.iter().rfind(|values| values.len() == 3).expect("average, worst and best");
        shows(&number(&times[0]), numbers.mean_real().expect("calls") / 1e6, 6);
        shows(&number(&times[1]), numbers.samples.max as f64 / 1e6, 6);
        shows(&number(&times[2]), numbers.samples.min as f64 / 1e6, 6);
        let rate = printed.lines().rfind(|line| line.starts_with("iterations per sec: ")).expect("a rate");
        shows(&number(&rate["iterations per sec: ".len()..]), counter("calls_per_second") * workers, 6);
        let percentiles = lines.iter().rfind(|values| values.len() == 4).expect("percentiles");
        for (shown, percent) in percentiles.iter().zip([50, 90, 95, 99]) {
            if golden.starts_with("binder") {
                shows(&number(shown), counter(&format!("android_p{percent}")) / 1e6, 6);
            } else {
                let time = (counter(&format!("exact_p{percent}")) as u64).min(49_999_999);
                shows(&number(shown), (time / 390_625) as f64 * 0.390625 + 0.1953125, 6);
            }
        }
        if golden == "binderThroughputTest" {
            let longer = lines.iter().find(|values| values.len() == 2).expect("calls longer than 1 us");
            shows(&number(&longer[0]), counter("longer") / numbers.samples.count as f64, 6);
            assert_eq!(longer[1], (numbers.samples.max / 1000).to_string());
        }
    }
}

#[test]
fn what_is_ours_is_a_flag_away_and_androids_output_is_one_for_the_commands() {
    let ours = android("libhwbinder_latency", &["-i", "3", "--aosp-compat=off", "--no-scenes"]);
    assert!(ours.json()["ALL"]["bubble"].is_object(), "{ours}");
    let ours = android("libhwbinder_latency", &["-i", "3", "--format=json", "--no-scenes"]);
    assert!(ours.json()["complete"] == true, "a format was chosen: {ours}");
    let embedded = ["latency", "hwbinder", "--driver=embedded", "-i", "3"];
    let exact = binderperf(&[&embedded[..], &["--aosp-compat"]].concat());
    assert!(exact.json()["cfg"]["passthrough"] == 0 && exact.json().get("complete").is_none(), "{exact}");
    let workers = ["throughput", "workers", "--driver=embedded", "-i", "20", "--aosp-compat"];
    binderperf(&workers).ended(0).printed("Created BinderWorker1\nwaiting");
    let both = [&embedded[..], &["--aosp-compat", "--format=table"]].concat();
    binderperf(&both).ended(2).complained("--format has no effect on Android's output");
    // A word that Android's tools take for BINDERIZE is said, and ours refuse it.
    let called = android("libhwbinder_latency", &["-i", "2", "-m", "passthrough"]);
    assert_eq!(called.json()["cfg"]["passthrough"], 0, "{called}");
    called.complained("any word but PASSTHROUGH means BINDERIZE");
    let called = android("libhwbinder_latency", &["-i", "2", "-m", "PASSTHROUGH"]);
    assert_eq!(called.json()["cfg"]["passthrough"], 1, "{called}");
}

#[test]
fn a_pair_that_breaks_and_a_caller_without_the_right_are_no_success() {
    let called = android("schd-dbg", &["-i", "60", "--inject=kill-server"]).ended(1);
    called.complained("the server died");
    if realtime().is_ok() {
        let called =
            android("libhwbinder_latency", &["-i", "3", "-v", "--inject=wrong-cpu", "--priority=50"]);
        called.printed("SCHED_FIFO  50\n").printed("???         50\n");
    }
}
