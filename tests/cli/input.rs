//! Files to read that are no files: FIFOs, devices, folders, and names that denote none.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::support::{BINARY, Folder, binderperf, call, command, contents, end, signal};

/// A stored record.
fn golden(name: &str) -> String {
    format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn fifo(folder: &Folder) -> String {
    let path = folder.path("fifo");
    call("mkfifo", &[&path], &[]).ended(0);
    path
}

#[test]
fn a_reader_of_a_fifo_says_that_it_waits() {
    let folder = Folder::new("input-fifo");
    let fifo = fifo(&folder);
    let lava = ["convert", "--from", "lava-log", &fifo];
    for words in [
        &["show", &fifo][..],
        &["compare", &fifo, &fifo],
        &["report", &fifo],
        &lava,
        &["doctor", "--from", &fifo],
    ] {
        let mut command = command(BINARY, words);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut told = String::new();
        BufReader::new(child.stderr.as_mut().expect("piped")).read_line(&mut told).expect("text");
        assert!(told.contains("waiting for") && told.contains("a FIFO"), "{words:?}: {told}");
        signal(child.id(), "TERM");
        child.wait().expect("it ends");
    }
}

#[test]
fn a_fifo_with_a_writer_is_read() {
    let folder = Folder::new("input-writer");
    let fifo = fifo(&folder);
    let record = golden("throughput.json");
    let mut writer = Command::new("cp").args([&record, &fifo]).spawn().expect("cp");
    let mut command = command(BINARY, &["show", &fifo]);
    let shown =
        end(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")).ended(0);
    assert_eq!(shown.stdout, binderperf(&["show", &record]).ended(0).stdout);
    writer.wait().expect("it ends");
}

#[test]
fn what_never_ends_or_is_no_file_is_refused() {
    let folder = Folder::new("input-odd");
    let fifo = fifo(&folder);
    let place = folder.path("");
    for (words, why) in [
        (&["show", "/dev/zero"][..], "larger than 128 MiB"),
        (&["compare", "/dev/zero", "/dev/zero"], "larger than 128 MiB"),
        (&["report", "/dev/zero"], "larger than 128 MiB"),
        (&["convert", "--from", "lava-log", "/dev/zero"], "larger than 128 MiB"),
        (&["vm", "--script", "/dev/zero"], "larger than 16 MiB"),
        (&["vm", "--kernel", "/dev/zero", "state"], "is a device"),
        (&["trace", "analyze", "/dev/zero"], "is a device"),
        (&["trace", "analyze", &fifo], "is a FIFO"),
        (&["trace", "info", &fifo], "is a FIFO"),
        (&["trace", "compare", &fifo, &fifo], "is a FIFO"),
        (&["history", "--file", &fifo], "is a FIFO"),
        (&["vm", "--kernel", &fifo, "state"], "is a FIFO"),
        (&["state", "--on", "ssh:none", "--binary", &fifo], "is a FIFO"),
        (&["show", &place], "irectory"),
        (&["trace", "analyze", &place], "irectory"),
        (&["convert", "--from", "lava-log", &place], "irectory"),
    ] {
        binderperf(words).ended(2).complained(why);
    }
}

#[test]
fn a_record_without_a_name_is_bad_input() {
    let folder = Folder::new("input-name");
    let record = golden("throughput.json");
    let text = binderperf(&["convert", "--to", "lava", "--attach", &record]).ended(0).stdout;
    for name in ["..", ".", "..."] {
        let log = folder.write("job.log", text.replace(" throughput.json ", &format!(" {name} ")));
        assert!(contents(&log).contains(&format!("binderperf-record {name} ")));
        binderperf(&["convert", "--from", "lava-log", &log]).ended(2).complained("name cannot be taken");
    }
    // A link there is neither followed nor replaced.
    let log = folder.write("job.log", &text);
    let kept = folder.write("kept", "kept");
    std::fs::create_dir_all(folder.path("job")).expect("made");
    std::os::unix::fs::symlink(&kept, folder.path("job/throughput.json")).expect("a link");
    binderperf(&["convert", "--from", "lava-log", &log]).printed("throughput.2.json");
    assert_eq!(contents(&kept), "kept");
}

#[test]
fn an_input_that_ends_early_is_told() {
    let mut child = command(BINARY, &["show", "/dev/stdin"]);
    let mut child = child.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdin.take());
    let mut told = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut told).expect("text");
    assert!(told.contains("is empty"), "{told}");
    assert_eq!(child.wait().expect("it ends").code(), Some(2));
}
