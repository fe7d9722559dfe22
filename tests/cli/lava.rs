//! `fleet lava`, `fleet lava-case` and `convert --from lava-log`: jobs as LAVA's own schemas take them, and results from a
//! command's output to files and an exit status.
//! Not here: a job that LAVA's dispatcher runs (`tests/guest/lava.rs`).

use std::fs;
use std::process::Command;

use needs::need;

use crate::support::{
    BINARY, Folder, binderperf, command, contents, read, refused, signal, tool_lava, wait_until, words,
};

/// The matches of LAVA's monitor in a text, by Python's engine: id, result, units and measurement.
const MONITOR: &str = "import sys, re
pattern = next(eval(line.split(': ', 1)[1]) for line in open(sys.argv[1]) if line.strip().startswith('pattern: '))
for match in re.finditer(pattern, open(sys.argv[2]).read()):
    print(*[match[name] for name in ('test_case_id', 'result', 'units', 'measurement')], sep='|')";

/// A template with the pattern as jobs have it.
fn monitored(folder: &Folder, log: &str) -> Vec<String> {
    let pattern = serde_json::Value::from(record::lava::PATTERN).to_string();
    let job = folder.write("pattern.yaml", format!("pattern: {pattern}\n"));
    let found = Command::new("python3").args(["-c", MONITOR, &job, log]).output().expect("python3");
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    String::from_utf8_lossy(&found.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn a_commands_results_go_through_a_log_and_come_back() {
    let folder = Folder::new("lava-case");
    let case = "fleet lava-case -- throughput binder --driver embedded --benchmark_filter=/4$ --benchmark_min_time=20x";
    let called = binderperf(&words(case)).ended(0);
    let log = folder.write("job.log", &called.stdout);
    let signals = called.stdout.lines().filter(|line| line.starts_with("<LAVA_SIGNAL_TESTCASE ")).count();
    let found = monitored(&folder, &log);
    assert_eq!(found.len(), signals, "{found:?}");
    let has =
        |start: &str, end: &str| found.iter().any(|line| line.starts_with(start) && line.ends_with(end));
    assert!(has("BM_sendVec_binder/4|pass||None", ""), "{found:?}");
    assert!(has("BM_sendVec_binder/4/p50|pass|ns|", "") && !has("BM_sendVec_binder/4/p50|pass|ns|0e0", ""));
    assert!(has("throughput-binder/exit-status|pass|none|0", ""), "{found:?}");

    let back = binderperf(&["convert", "--from", "lava-log", &log]).ended(0);
    let file = folder.path("job/throughput-binder.json");
    back.printed(&file).printed(format!("{signals} test cases: {signals} pass"));
    assert_eq!(read(&file).plan.test, "throughput binder");
    // The same once more is the same file; another record gets a name of its own.
    binderperf(&["convert", "--from", "lava-log", &log]).ended(0).printed(&file);
    fs::write(&file, "mine").expect("written");
    binderperf(&["convert", "--from", "lava-log", &log]).ended(0).printed("throughput-binder.2.json");
    assert_eq!(contents(&file), "mine");
}

#[test]
fn a_verdict_that_failed_is_a_failed_case_and_status() {
    let folder = Folder::new("lava-failed");
    let golden = contents(format!("{}/tests/golden/throughput.json", env!("CARGO_MANIFEST_DIR")));
    let mut json: serde_json::Value = serde_json::from_str(&golden).expect("JSON");
    let hung = serde_json::json!({ "failed": { "reason": "it hung", "partial": null } });
    json["cases"][0]["repetitions"][0]["outcome"] = hung;
    let name = json["cases"][0]["name"].as_str().expect("a name").to_owned();
    let record = folder.write("r.json", json.to_string());
    let log = folder.path("job.log");
    binderperf(&["convert", "--to", "lava", "--attach", &record, "-o", &log]).ended(0);
    let found = monitored(&folder, &log);
    assert!(found.iter().any(|line| line.starts_with(&format!("{name}|fail|"))), "{found:?}");
    let back = binderperf(&["convert", "--from", "lava-log", &log]).ended(1);
    back.printed(format!("FAIL {name}\n"));
    assert_eq!(contents(folder.path("job/r.json")), contents(&record));

    // A command that cannot run at all.
    let case = words("fleet lava-case -- throughput ping --service no.such.service --driver embedded");
    let called = binderperf(&case);
    assert!(called.code.is_some_and(|code| code > 0), "{called}");
    called.printed("TEST_CASE_ID=throughput-ping/exit-status RESULT=fail");
    let log = folder.write("other.log", &called.stdout);
    binderperf(&["convert", "--from", "lava-log", &log]).ended(1).printed("FAIL throughput-ping/exit-status");
}

#[test]
fn a_killed_case_leaves_nothing_for_long() {
    let folder = Folder::new("lava-killed");
    let there = folder.path("");
    let names = || -> Vec<String> {
        let entries = fs::read_dir(&there).expect("a folder").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("binderperf-lava-")).collect()
    };
    let case = |rest: &str| {
        let line = format!("fleet lava-case -- {rest}");
        let mut command = command(BINARY, &words(&line));
        command.current_dir(&there).env("TMPDIR", &there);
        command
    };
    let mut child =
        case("throughput binder --driver embedded --benchmark_min_time=60s").spawn().expect("it starts");
    wait_until("it has made its folder", || !names().is_empty());
    signal(child.id(), "KILL");
    child.wait().expect("it ends");
    let left = names();
    assert!(
        case("throughput binder --driver embedded --benchmark_filter=/4$ --benchmark_min_time=20x")
            .status()
            .expect("it runs")
            .success()
    );
    assert_eq!(names(), Vec::<String>::new(), "{left:?} is removed, and nothing more is left");
}

#[test]
fn a_log_that_lost_something_is_refused() {
    let folder = Folder::new("lava-lost");
    let record = format!("{}/tests/golden/latency.json", env!("CARGO_MANIFEST_DIR"));
    let whole = binderperf(&["convert", "--to", "lava", "--attach", &record]).ended(0).stdout;
    let says = |name: &str, text: &str, code, why: &str| {
        let log = folder.write(name, text);
        binderperf(&["convert", "--from", "lava-log", &log]).ended(code).complained(why);
    };
    let attached: Vec<&str> = whole.lines().filter(|line| line.starts_with("binderperf-record ")).collect();
    says("torn", &whole.replacen(&format!("{}\n", attached[1]), "", 1), 2, "line 2 of");
    says("empty", "", 2, "no line of a test case");
    says("foreign", "Linux version 6.12\n", 2, "no line of a test case");
    let job = "{\"lvl\": \"results\", \"msg\": {\"case\": \"job\", \"definition\": \"lava\", \"error_msg\": \"Connection closed\", \"result\": \"fail\"}}";
    says("job", &format!("{whole}{job}\n"), 3, "the job itself failed: Connection closed");
    let passed = job.replace("\"fail\"", "\"pass\"");
    says("untaken", &format!("{whole}{passed}\n"), 3, "LAVA took down 0 of");
    let other = "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=a RESULT=pass>\nbinderperf-record r.json 1/1 H4sIAAAAAAAC/wMAAAAAAAAAAAA=\n";
    says("foreign-record", other, 2, "the attached r.json");
    binderperf(&["convert", "--from", "lava-log", "/nowhere/log"]).ended(2).complained("ENOENT");
}

#[test]
fn lava_takes_the_jobs() {
    let folder = Folder::new("lava-jobs");
    let (board, phone) = (folder.path("board"), folder.path("phone"));
    let words = ["--url", "http://files.lab/b/", "--", "throughput", "binder", "--benchmark_filter=/(4|64)$"];
    binderperf(
        &[&["fleet", "lava", "--device", "ssh", "--device-type", "rock-5b", "--out", &board], &words[..]]
            .concat(),
    )
    .ended(0)
    .printed(format!("{board}/job.yaml"));
    let job = contents(format!("{board}/job.yaml"));
    assert!(
        job.contains("\"http://files.lab/b/binderperf-tests.tar.gz\"") && job.contains("\"rock-5b\""),
        "{job}"
    );
    let flash = ["--image", "boot=http://files.lab/boot.img", "--docker", "lab/adb"];
    binderperf(&[&["fleet", "lava", "--device", "fastboot", "--out", &phone], &flash[..]].concat()).ended(0);
    let definition = contents(format!("{phone}/tests/binderperf.yaml"));
    assert!(definition.contains("'run' '--quick' '--on' 'adb'"), "{definition}");
    for place in [&board, &phone] {
        let files = [format!("{place}/job.yaml"), format!("{place}/tests/binderperf.yaml")];
        let checked = need!(tool_lava(&["check", &files[0], &files[1]]));
        checked.ended(0);
        // It can say no.
        let wrong = folder.write("wrong.yaml", contents(&files[0]).replace("compression: gz\n", "\n"));
        tool_lava(&["check", &wrong]).expect("as before").ended(1).complained("not a valid value");
    }
    // The definition's step, as a board's shell runs it from the tarball.
    let there = folder.path("there");
    fs::create_dir_all(&there).expect("made");
    let tar = Command::new("tar")
        .args(["-C", &there, "-xzf", &format!("{board}/binderperf-tests.tar.gz")])
        .status();
    assert!(tar.expect("tar").success());
    let definition = contents(format!("{there}/binderperf.yaml"));
    let step = definition.lines().find_map(|line| line.trim().strip_prefix("- ")).expect("a step");
    let step: String = serde_json::from_str(step).expect("a JSON string is a YAML string");
    let few = format!("{step} --driver embedded --benchmark_min_time=20x");
    let ran = Command::new("sh").args(["-c", &few]).current_dir(&there).output().expect("a shell");
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && text.contains("TEST_CASE_ID=BM_sendVec_binder/64 RESULT=pass"), "{text}");
    assert_eq!(fs::read_dir(&there).expect("a folder").count(), 2, "nothing is left behind");
}

#[test]
fn what_cannot_be_a_job_is_refused() {
    let folder = Folder::new("lava-refused");
    let out = folder.path("out");
    let lava = |words: &[&str]| binderperf(&[&["fleet", "lava", "--out", &out], words].concat());
    let cases: [(&[&str], &str); 9] = [
        (&["--device", "fastboot"], "needs --image"),
        (&["--device", "ssh", "--image", "boot=x"], "go with --device fastboot"),
        (&["--device", "ssh", "--kernel", "6.12"], "go with --device qemu"),
        (&["--device", "fastboot", "--docker", "x", "--image", "boot"], "it must be PARTITION=URL"),
        (&["--device", "ssh", "--", "no-such-command"], "no-such-command"),
        (&["--device", "ssh", "--", "throughput", "binder", "--record", "x"], "leave it out"),
        (&["--device", "ssh", "--", "run", "--out=x"], "leave it out"),
        (&["--device", "ssh", "--binary", "/etc/passwd"], "no program for a device's architecture"),
        (&["--kernel", "/no/such/kernel"], "is not a bootable kernel"),
    ];
    refused(lava, &cases);
    let convert = |words: &[&str]| binderperf(&[&["convert"], words].concat());
    let record = format!("{}/tests/golden/latency.json", env!("CARGO_MANIFEST_DIR"));
    let cases: [(&[&str], &str); 4] = [
        (&["--to", "junit", "--attach", &record], "--attach goes with --to lava"),
        (&["--from", "lava-log", &record, &record], "one log"),
        (&["--from", "lava-log", "--to", "csv", &record], "cannot be used with"),
        (&[&record], "--to"),
    ];
    refused(convert, &cases);
}
