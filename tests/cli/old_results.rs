//! Results that are there already, and commands that fail: refused, killed, interrupted, on a full disk. What was there stays as it
//! was, and nothing else is left.
//! Not here: how a file is replaced (`sys::draft`), folders (`folder`, `ab`).

use std::os::unix::fs::MetadataExt;
use std::process::{Child, Stdio};

use needs::need;

use super::support::{
    BINARY, Folder, SmallDisk, binderperf, command, contents, end, read, signal, start, wait_until,
    with_servers,
};

/// A test that lasts until it is stopped.
const ENDLESS: [&str; 6] = [
    "throughput",
    "binder",
    "--driver=embedded",
    "--benchmark_filter=binder/4$",
    "--benchmark_min_time=1s",
    "--benchmark_repetitions=500",
];

/// The names in a folder, sorted.
fn names(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path("")).expect("there").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_refused_command_leaves_the_old_result() {
    let folder = Folder::new("refused");
    let old = folder.write("old", "an old result");
    let link = folder.path("link");
    std::os::unix::fs::symlink("old", &link).expect("made");
    let missing = "/nonexistent";
    for words in [
        // No driver, a mistyped filter, a test that is called wrongly.
        &["throughput", "binder", "--driver=kernel", "--device=none-of-this-name", "--record", &old][..],
        &["throughput", "binder", "--driver=kernel", "--device=none-of-this-name", "--record", &link],
        &["throughput", "binder", "--driver=embedded", "--benchmark_filter=nosuch", "--record", &old],
        &["throughput", "binder", "--benchmark_filter=nosuch", &format!("--benchmark_out={old}")],
        &["throughput", "workers", "--driver=kernel", "--device=none-of-this-name", "--record", &old],
        &["latency", "binder", "--driver=kernel", "--device=none-of-this-name", "--record", &old],
        &["latency", "sweep", "--driver=kernel", "--device=none-of-this-name", "--record", &old],
        &["inversion", "--driver=kernel", "--device=none-of-this-name", "--record", &old],
        &["overload", "--driver=kernel", "--device=none-of-this-name", "--record", &old],
        &[
            "ab",
            "--a",
            "",
            "--b",
            "",
            "--out",
            &old,
            "--records",
            &folder.path("ab"),
            "--",
            "latency",
            "nosuch",
        ],
        &["compare", "--out", &old, missing, missing],
        &["report", missing, "-o", &old],
        &["convert", missing, "--to", "csv", "-o", &old],
        &["history", "--file", missing, "--out", &old],
        &["trace", "record", "-o", &old, "--", missing],
        &["trace", "record", "-o", &old, "nosuchcategory", "-t", "1"],
        &["trace", "analyze", missing, "--html", &old],
        &["trace", "analyze", missing, "--perfetto", &old],
        &["trace", "compare", missing, missing, "--out", &old],
        &["atrace", "-o", &old, "-t", "1", "nosuchcategory"],
        &["atrace", "-o", &old, "--async_stop"],
        &["vm", "--kernel", missing, "--klog", &old, "--", "guest-probe"],
        &["vm", "--kernel", missing, "--icount", "--profile", &old, "--", "throughput", "binder"],
        &["vm", "build-kernel", "--source", missing, "--out", &old],
    ] {
        let called = binderperf(words);
        assert_ne!(called.code, Some(0), "{called}");
        assert_eq!(contents(&old), "an old result", "{called}");
        let there: Vec<String> = names(&folder).into_iter().filter(|name| name != "ab").collect();
        assert_eq!(there, ["link", "old"], "{called}");
    }
}

/// Starts an endless test with both outputs, and returns once its first rows are written.
fn endless(folder: &Folder) -> Child {
    let (record, out, rows) = (folder.path("r.json"), folder.path("out.csv"), folder.path("out.csv.partial"));
    let older = std::fs::metadata(&rows).map(|file| file.ino()).ok();
    let out = [format!("--benchmark_out={out}"), "--benchmark_out_format=csv".to_owned()];
    let (child, _servers) = with_servers(&[&ENDLESS[..], &["--record", &record, &out[0], &out[1]]].concat());
    let has_rows = || std::fs::metadata(&rows).is_ok_and(|file| file.len() > 0 && Some(file.ino()) != older);
    wait_until("its first rows are written", has_rows);
    child
}

#[test]
fn a_killed_run_leaves_the_old_results() {
    let folder = Folder::new("killed");
    let (record, out) = (folder.write("r.json", "an old record"), folder.write("out.csv", "old rows"));
    for _ in 0..2 {
        let child = endless(&folder);
        signal(child.id(), "KILL");
        assert_eq!(end(child).code, None, "killed");
        assert_eq!((contents(&record).as_str(), contents(&out).as_str()), ("an old record", "old rows"));
        // Its rows are kept, by a name that says what they are; nothing else is left.
        assert_eq!(names(&folder), ["out.csv", "out.csv.partial", "r.json"]);
        assert_ne!(contents(folder.path("out.csv.partial")), "");
    }
}

#[test]
fn a_part_of_a_run_does_not_replace_a_whole_one() {
    let folder = Folder::new("part");
    let stopped = |how: &str| {
        let child = endless(&folder);
        signal(child.id(), "INT");
        end(child).ended(1).complained("what was measured until then is kept").complained(how);
    };
    // Without an older one the part has the name that it was given.
    stopped("stopped by SIGINT");
    assert!(!read(&folder.path("r.json")).complete);
    assert_eq!(names(&folder), ["out.csv", "r.json"]);
    // It is replaced by another part. Rows do not say what they are a part of.
    let first = contents(folder.path("r.json"));
    stopped("out.csv stays as it was: this result is a part, in ");
    assert_ne!(contents(folder.path("r.json")), first);
    assert_eq!(names(&folder), ["out.csv", "out.csv.partial", "r.json"]);
    // A whole one is not.
    let whole = [
        "throughput",
        "binder",
        "--controls=memcpy",
        "--benchmark_filter=memcpy/4$",
        "--record",
        &folder.path("r.json"),
    ];
    binderperf(&whole).ended(0);
    let whole = contents(folder.path("r.json"));
    stopped("r.json stays as it was: this result is a part, in ");
    assert_eq!(contents(folder.path("r.json")), whole);
    assert!(!read(&folder.path("r.json.partial")).complete);
}

#[test]
fn the_standard_output_and_devices_take_a_record() {
    let folder = Folder::new("stdout");
    let test = ["throughput", "binder", "--controls=memcpy", "--benchmark_filter=memcpy/4$", "--record"];
    let words = [&test[..], &["/dev/stdout"]].concat();
    let file = folder.path("both");
    let to = std::fs::File::create(&file).expect("made");
    let status = command(BINARY, &words).stdout(to).stderr(Stdio::null()).status().expect("it starts");
    assert_eq!(status.code(), Some(0));
    // Both are there, one behind the other, and the file is the one that the shell opened.
    let both = contents(&file);
    let record = both.find("{").expect("a record");
    assert!(both[..record].contains("BM_sendVec_memcpy/4"), "{both}");
    assert!(record::Run::from_json(&both.as_bytes()[record..]).is_ok(), "{both}");
    let piped = end(start(&words)).ended(0);
    assert!(piped.stdout.contains("BM_sendVec_memcpy/4") && piped.stdout.contains("\"checksum\""), "{piped}");
    binderperf(&[&test[..], &["/dev/null"]].concat()).ended(0);
    binderperf(&[&test[..], &["/dev/full"]].concat()).ended(4).complained("ENOSPC");
}

#[test]
fn on_a_full_disk_the_old_result_stays() {
    let folder = Folder::new("full");
    let disk = need!(SmallDisk::new(folder.path("disk"), "size=16k"));
    let old = folder.write("disk/r.json", "an old result");
    folder.write("disk/filling", vec![b'x'; 11_000]);
    let called = binderperf(&[
        "throughput",
        "binder",
        "--controls=memcpy",
        "--benchmark_filter=memcpy",
        "--record",
        &old,
    ]);
    let (left, there) = (contents(&old), std::fs::read_dir(&disk.0).expect("there").count());
    called
        .ended(4)
        .complained("could not write all of the result to")
        .complained("ENOSPC")
        .printed("BM_sendVec_memcpy");
    assert_eq!((left.as_str(), there), ("an old result", 2));
}

#[test]
fn a_history_on_a_full_disk_is_as_it_was() {
    let folder = Folder::new("history-full");
    let _disk = need!(SmallDisk::new(folder.path("disk"), "size=8k"));
    let old = folder.write("disk/history.jsonl", "");
    folder.write("disk/filling", vec![b'x'; 4096]);
    let golden = |name: &str| format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let records = format!("{},{}", golden("throughput"), golden("latency"));
    let called = binderperf(&["history", "--file", &old, "--add", &records]);
    let left = contents(&old);
    assert!(called.code == Some(4) && called.stderr.contains("ENOSPC"), "{called}");
    assert_eq!(left, "", "no part of a run");
}
