//! `run` on the embedded driver and `report`, as their users meet them: what is left in the folder, what a signal
//! keeps, and which records make no report.
//! Not here: the same in a guest (`guest::throughput`), what a report says (`record::render::report`).

use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use crate::support::{
    Folder, binderperf, contents, end, read, realtime, signal, start, tracing_switch, wait_until,
};
use needs::need;
use record::{DriverKind, Run};

const QUICK: [&str; 3] = ["run", "--quick", "--driver=embedded"];

/// The same with the least that has figures.
const TINY: [&str; 3] = ["run", "--tiny", "--driver=embedded"];

/// What the summary has a line about.
const PARTS: [&str; 4] = ["binder throughput", "hwbinder throughput", "binder latency", "hwbinder latency"];

#[test]
fn one_command_leaves_records_a_report_and_one_screen() {
    let folder = Folder::new("run-whole");
    let out = folder.path("out");
    // The embedded driver is known for all that it does here.
    let called = end(start(&[&QUICK[..], &["--inject=delay=20000:0.03", "--out", &out]].concat())).ended(0);
    assert!(called.stdout.lines().count() <= 36, "one screen: {}", called.stdout);
    assert!(!called.stdout.contains("inheritance FAIL"), "binder's nodes ask for no more: {}", called.stdout);
    if realtime().is_ok() {
        called.printed("inheritance nice, as expected").printed("--inherit-rt on");
    }
    for line in [&PARTS[..], &["report.html"]].concat() {
        called.printed(line);
    }
    for name in ["throughput", "throughput-one-cpu", "latency-binder", "latency-hwbinder"] {
        let run = read(&format!("{out}/{name}.json"));
        assert_eq!(run.driver.expect("a driver served").kind, DriverKind::Embedded, "{name}");
        assert!(run.complete, "{name}");
    }
    let page = contents(format!("{out}/report.html"));
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
    for flavour in ["binder", "hwbinder"] {
        the_reported_miss_is_the_shown_one(&read(&format!("{out}/latency-{flavour}.json")), &page);
    }
    again(&out, &folder);
    end(start(&[&QUICK[..], &["--out", &out]].concat())).ended(2).complained("earlier run");
}

/// Programs that compute for as long as this lives, one per CPU.
struct Hogs(Vec<Child>);

impl Hogs {
    fn new() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let hog = |_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
        Self((0..cpus).map(hog).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

#[test]
fn a_disturbed_part_is_measured_once_more_and_no_more_after_a_signal() {
    let folder = Folder::new("run-disturbed");
    let out = folder.path("out");
    let hogs = Hogs::new();
    let child = start(&[&QUICK[..], &["--no-trace", "--out", &out]].concat());
    let first = format!("{out}/throughput-one-cpu.first.json");
    wait_until("the first part is measured twice", || Path::new(&first).exists());
    signal(child.id(), "INT");
    drop(hogs);
    let called = end(child);
    let told = "throughput-one-cpu was disturbed and is measured once more";
    assert_eq!(called.stderr.matches(told).count(), 1, "{}", called.stderr);
    called
        .printed("measured twice")
        .printed("throughput-one-cpu.first.json")
        .complained("Stopped by a signal");
    for name in ["throughput-one-cpu.first", "throughput-one-cpu"] {
        let run = read(&format!("{out}/{name}.json"));
        let found = run.findings.iter().find(|finding| finding.id == "disturbance").expect("a finding");
        assert!(found.text.contains("other programs took"), "{found:?}");
        let spoiled = found.severity == record::Severity::Warning;
        assert!(run.complete && spoiled, "{name}: {found:?}");
    }
    // It stays out of a report of the folder.
    let tests = binderperf(&["report", &out, "--format=json"]).json();
    let verdicts = tests[0]["verdicts"].as_array().expect("verdicts on binder throughput");
    let on_one = |verdict: &&serde_json::Value| verdict["words"].to_string().contains("on one CPU");
    assert_eq!(verdicts.iter().filter(on_one).count(), 1, "{tests}");
}

/// The worst call of each class with the recorder has its own picture, linked from the figure, and the injected cause is
/// named. Where the recorder changes calls by more than a tenth, the figures are of others.
fn the_reported_miss_is_the_shown_one(run: &Run, page: &str) {
    let test = run.latency().expect("a latency test");
    let recorder = test.recorder.as_ref().expect("it was asked for");
    if let Some(why) = &recorder.missing {
        assert!(tracing_switch().is_err() && page.contains("no slow call has a picture"), "{why}");
        return;
    }
    assert_eq!(recorder.trouble, None);
    let too_dear = recorder.is_too_dear(&test.all);
    if recorder.is_in_figures() {
        assert!(!too_dear && page.contains("Flight recorder on: all times here include its cost"));
    } else {
        assert!(page.contains("Flight recorder off: all times here are of calls without it"));
        assert!(
            page.contains("all without the flight recorder") && page.contains(" with the recorder, missed")
        );
    }
    for totals in &test.all {
        let class = totals.class;
        let of_class =
            run.cases.iter().filter(|case| case.latency.as_ref().is_some_and(|l| l.class == class));
        let worst = of_class.filter_map(|case| case.samples()).map(|samples| samples.max).max();
        let saved = recorder.worst(class).expect("the worst call is saved");
        let own = Some(saved.call.took) == worst;
        assert!(own || recorder.is_apart(), "the figure's own call: {saved:?}");
        assert!(saved.missed, "20 ms of 2.5 ms: {saved:?}");
        assert!(recorder.both(class, &test.all).is_some(), "the recorder's cost is known");
        let anchor = saved.anchor();
        for part in [format!("href=\"#{anchor}\""), format!("id=\"{anchor}\"")] {
            assert!(page.contains(&part), "{part}");
        }
    }
    // On a busy machine a call may be still slower for another reason.
    let named = recorder.saved.iter().filter(|saved| {
        let (_, cause) = saved.cause.split_once("deadline 2.50 ms): ").unwrap_or_default();
        cause.starts_with("server ") && cause.contains(" ran for ")
    });
    assert!(named.count() > 0, "{:?}", recorder.saved);
}

#[test]
fn a_call_that_nobody_answers_is_recorded_and_explained() {
    let folder = Folder::new("run-unanswered");
    let out = folder.path("out");
    end(start(&[&TINY[..], &["--inject=lose-reply", "--patience=2", "--out", &out]].concat())).ended(1);
    let page = contents(format!("{out}/report.html"));
    for flavour in ["binder", "hwbinder"] {
        let run = read(&format!("{out}/latency-{flavour}.json"));
        let recorder = run.latency().and_then(|test| test.recorder.clone()).expect("it was asked for");
        if let Some(why) = recorder.missing {
            need!(tracing_switch());
            panic!("tracefs is there: {why}");
        }
        let stopped = recorder.stopped.expect("a pair stopped");
        let recording = format!("{out}/{}", stopped.file);
        let seen = binderperf(&["trace", "analyze", &recording]);
        // Those of other pairs that were under way, too.
        seen.printed("without an answer at the trace's end");
        // On a busy machine other events may have driven out some of the call's time: then nothing is claimed.
        if seen.stdout.contains("events lost") {
            continue;
        }
        binderperf(&["explain", &recording, "--fail-on=warning"])
            .ended(1)
            .printed("is unanswered")
            .printed("server 0");
        assert!(page.contains(&format!("Calls that failed or were not answered ({})", stopped.file)));
        let anchor = format!("id=\"explained-recording-{}", stopped.file.replace('.', "-"));
        assert!(page.contains(&anchor), "{flavour}");
    }
    again(&out, &folder);
}

/// The folder alone makes the same report.
fn again(out: &str, folder: &Folder) {
    let page = folder.path("again.html");
    let called = binderperf(&["report", out, "-o", &page]);
    assert_eq!((called.code, called.stdout.trim()), (Some(0), page.as_str()), "{}", called.stderr);
    let (first, second) = (fs::read_to_string(format!("{out}/report.html")), fs::read_to_string(&page));
    assert!(first.expect("a page") == second.expect("a page"), "another page than the run's");
    binderperf(&["report", out, "--format=markdown"]).ended(0).printed("| binder throughput |");
}

#[test]
fn a_signal_keeps_what_was_measured_and_says_what_was_not() {
    let folder = Folder::new("run-signal");
    let out = folder.path("out");
    let child = start(&[&TINY[..], &["--out", &out]].concat());
    // While the second part is under way, or about to be.
    let first = Path::new(&out).join("throughput.json");
    wait_until("the first result is there", || first.exists());
    signal(child.id(), "INT");
    let number = child.id();
    let called = end(child).ended(1);
    let instances = fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
    let own = format!("binderperf-record-{number}-");
    let left = instances.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own));
    assert_eq!(left.count(), 0, "the recorder is gone");
    assert!(read(&first.display().to_string()).complete);
    called.printed("binder throughput");
    let told = called.stdout.contains("INCOMPLETE") || called.stdout.contains("NOT RUN");
    assert!(told, "what is missing is said: {}", called.stdout);
    assert!(Path::new(&out).join("report.html").exists());
}

#[test]
fn one_bad_file_does_not_take_the_others_with_it() {
    let folder = Folder::new("report-partly");
    let out = folder.path("");
    let words =
        ["throughput", "binder", "--driver=embedded", "--benchmark_filter=/4$", "--benchmark_min_time=10x"];
    let record = format!("--record={}", folder.path("good.json"));
    assert_eq!(binderperf(&[&words[..], &[&record]].concat()).code, Some(0));
    folder.write("cut.json", "{\"schema\": \"binderperf.run\", \"ver");
    folder.write("empty.bptrace", "");
    let called = binderperf(&["report", &out, "--format=markdown"]).ended(0);
    for line in ["binder throughput", "| cut.json | UNREADABLE", "| empty.bptrace | UNREADABLE"] {
        called.printed(line);
    }
}

#[test]
fn results_that_can_be_written_no_more_leave_the_summary() {
    let folder = Folder::new("run-vanished");
    let out = folder.path("out");
    let child = start(&[&TINY[..], &["--out", &out]].concat());
    // What is in it by then is what the doctor found. Before that, the command tries whether the folder takes files.
    let has_results = |folder: fs::ReadDir| {
        folder.flatten().any(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
    };
    wait_until("a first result", || fs::read_dir(&out).is_ok_and(has_results));
    wait_until("the folder goes", || fs::remove_dir_all(&out).is_ok());
    let called = end(child).ended(4);
    assert!(called.stderr.contains("/throughput.json"), "it says which file: {}", called.stderr);
    for line in PARTS {
        called.printed(line);
    }
    assert!(!called.stdout.contains("report.html"), "there is none: {}", called.stdout);
}

#[test]
fn a_folder_that_takes_no_files_is_known_before_anything_is_measured() {
    let folder = Folder::new("run-unwritable");
    let file = folder.write("file", "");
    for out in ["/proc", "/proc/nothing", &file] {
        let called = binderperf(&["run", "--quick", "--driver=embedded", "--out", out]);
        assert_eq!((called.code, called.stdout.as_str()), (Some(4), ""), "{out}: {}", called.stderr);
        called.complained("cannot write to");
    }
}

#[test]
fn no_driver_leaves_no_folder() {
    let folder = Folder::new("run-nodriver");
    let out = folder.path("out");
    let called =
        binderperf(&["run", "--quick", "--driver=kernel", "--device=/dev/nosuch", "--out", &out]).ended(3);
    assert!(called.stderr.contains("run --vm"), "it says what would do: {}", called.stderr);
    assert!(!Path::new(&out).exists());
}

#[test]
fn what_is_no_record_makes_no_report() {
    let folder = Folder::new("report-bad");
    let (empty, other, newer, cut) =
        (folder.path("empty"), folder.path("other.json"), folder.path("newer.json"), folder.path("cut.json"));
    fs::create_dir(&empty).expect("a folder");
    fs::write(&other, "{\"context\": {}, \"benchmarks\": []}").expect("a file");
    fs::write(&newer, "{\"schema\": \"binderperf.run\", \"version\": 999}").expect("a file");
    fs::write(&cut, "{\"schema\": \"binderperf.run\", \"ver").expect("a file");
    for (path, why) in [
        (folder.path("nosuch"), "cannot read"),
        (empty, "no record in"),
        (other, "Google Benchmark"),
        (newer, "version 999"),
        (cut, "breaks off"),
    ] {
        binderperf(&["report", &path, "-o", &folder.path("x.html")]).ended(2).complained(why);
    }
    assert!(!Path::new(&folder.path("x.html")).exists());
}
