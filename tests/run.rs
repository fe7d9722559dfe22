//! Room: `run` on the embedded driver and `report`, as their users meet them: what is left in the folder, what a signal
//! keeps, and which records make no report.
//! Not here: the same in a guest (`throughput_in_guest`), what a report says (`record::render::report`).

mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use record::DriverKind;
use support::{Called, Folder, binderperf, command, read};

/// Patient enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

fn quick(out: &str) -> Child {
    let words = ["run", "--quick", "--driver=embedded", "--out", out];
    let mut command = command(env!("CARGO_BIN_EXE_binderperf"), &words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

fn ended(child: Child) -> Called {
    let output = child.wait_with_output().expect("it ends");
    Called {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn one_command_leaves_records_a_report_and_one_screen() {
    let folder = Folder::new("run-whole");
    let out = folder.path("out");
    let called = ended(quick(&out));
    // The embedded driver is known for all that it does here.
    assert_eq!(called.code, Some(0), "{}{}", called.stdout, called.stderr);
    assert!(called.stdout.lines().count() <= 24, "one screen: {}", called.stdout);
    for line in
        ["binder throughput", "hwbinder throughput", "binder latency", "hwbinder latency", "report.html"]
    {
        assert!(called.stdout.contains(line), "{line}: {}", called.stdout);
    }
    for name in ["throughput", "latency-binder", "latency-hwbinder"] {
        let run = read(&format!("{out}/{name}.json"));
        assert_eq!(run.driver.expect("a driver served").kind, DriverKind::Embedded, "{name}");
        assert!(run.complete, "{name}");
    }
    let page = fs::read_to_string(format!("{out}/report.html")).expect("a report");
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    let recorded = Path::new(&out).join("slow-calls.bptrace").exists();
    assert!(
        recorded || called.stdout.contains("slow-calls"),
        "either recorded or told why not: {}",
        called.stdout
    );
    assert_eq!(page.contains("what they waited for"), recorded);
    again(&out, &folder);
    let second = ended(quick(&out));
    assert_eq!(second.code, Some(2), "{}", second.stderr);
    assert!(second.stderr.contains("earlier run"), "{}", second.stderr);
}

/// The folder alone makes the same report.
fn again(out: &str, folder: &Folder) {
    let page = folder.path("again.html");
    let called = binderperf(&["report", out, "-o", &page]);
    assert_eq!((called.code, called.stdout.trim()), (Some(0), page.as_str()), "{}", called.stderr);
    let (first, second) = (fs::read_to_string(format!("{out}/report.html")), fs::read_to_string(&page));
    assert!(first.expect("a page") == second.expect("a page"), "another page than the run's");
    let text = binderperf(&["report", out, "--format=markdown"]);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    assert!(text.stdout.contains("| binder throughput |"), "{}", text.stdout);
}

#[test]
fn a_signal_keeps_what_was_measured_and_says_what_was_not() {
    let folder = Folder::new("run-signal");
    let out = folder.path("out");
    let child = quick(&out);
    // While the second part is under way, or about to be.
    let first = Path::new(&out).join("throughput.json");
    let start = Instant::now();
    while !first.exists() {
        assert!(start.elapsed() < PATIENCE, "no first result");
        std::thread::sleep(Duration::from_millis(20));
    }
    let killed = support::call("kill", &["-INT", &child.id().to_string()], &[]);
    assert_eq!(killed.code, Some(0), "{}", killed.stderr);
    let called = ended(child);
    assert_eq!(called.code, Some(1), "{}{}", called.stdout, called.stderr);
    assert!(read(&first.display().to_string()).complete);
    assert!(called.stdout.contains("binder throughput"), "{}", called.stdout);
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
    fs::write(folder.path("cut.json"), "{\"schema\": \"binderperf.run\", \"ver").expect("a file");
    fs::write(folder.path("empty.bptrace"), "").expect("a file");
    let called = binderperf(&["report", &out, "--format=markdown"]);
    assert_eq!(called.code, Some(0), "{}", called.stderr);
    for line in ["binder throughput", "| cut.json | UNREADABLE", "| empty.bptrace | UNREADABLE"] {
        assert!(called.stdout.contains(line), "{line}: {}", called.stdout);
    }
}

#[test]
fn results_that_can_be_written_no_more_leave_the_summary() {
    let folder = Folder::new("run-vanished");
    let out = folder.path("out");
    let words = ["run", "--quick", "--no-trace", "--driver=embedded", "--out", &out];
    let mut command = command(env!("CARGO_BIN_EXE_binderperf"), &words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let start = Instant::now();
    while !Path::new(&out).exists() {
        assert!(start.elapsed() < PATIENCE, "no folder was made");
        std::thread::sleep(Duration::from_millis(5));
    }
    // What is in it by now is what the doctor found.
    while fs::remove_dir_all(&out).is_err() {
        assert!(start.elapsed() < PATIENCE, "the folder does not go");
    }
    let called = ended(child);
    assert_eq!(called.code, Some(4), "{}", called.stderr);
    assert!(called.stderr.contains("/throughput.json"), "it says which file: {}", called.stderr);
    for line in ["binder throughput", "hwbinder throughput", "binder latency", "hwbinder latency"] {
        assert!(called.stdout.contains(line), "{line}: {}", called.stdout);
    }
    assert!(!called.stdout.contains("report.html"), "there is none: {}", called.stdout);
}

#[test]
fn a_folder_that_takes_no_files_is_known_before_anything_is_measured() {
    let folder = Folder::new("run-unwritable");
    let file = folder.path("file");
    fs::write(&file, "").expect("a file");
    for out in ["/proc", "/proc/nothing", &file] {
        let called = binderperf(&["run", "--quick", "--driver=embedded", "--out", out]);
        assert_eq!((called.code, called.stdout.as_str()), (Some(4), ""), "{out}: {}", called.stderr);
        assert!(called.stderr.contains("cannot write to"), "{out}: {}", called.stderr);
    }
}

#[test]
fn no_driver_leaves_no_folder() {
    let folder = Folder::new("run-nodriver");
    let out = folder.path("out");
    let called = binderperf(&["run", "--quick", "--driver=kernel", "--device=/dev/nosuch", "--out", &out]);
    assert_eq!(called.code, Some(3), "{}", called.stderr);
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
        let called = binderperf(&["report", &path, "-o", &folder.path("x.html")]);
        assert_eq!(called.code, Some(2), "{path}: {}", called.stderr);
        assert!(called.stderr.contains(why), "{path}: {}", called.stderr);
    }
    assert!(!Path::new(&folder.path("x.html")).exists());
}
