//! Text that would steer the terminal: of a trace, of a log, of a device, of the command line.
//! Not here: the filter itself (`console::terminal`), records (`record::render`).

use std::os::unix::fs::PermissionsExt;

use crate::support::{BINARY, Called, Folder, binderperf, call, contents, fixture};

/// Clears the screen, sets the title, goes to the begin of the line, turns the text around.
const ORDERS: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}";

/// No output has an order, and `shown` is where one was.
fn is_tame(called: &Called, shown: &str) {
    let steers = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
    for text in [&called.stdout, &called.stderr] {
        assert!(!text.contains(steers), "{text:?}");
    }
    assert!((called.stdout.clone() + &called.stderr).contains(shown), "{called}");
}

#[test]
fn names_of_threads_do_not_steer() {
    let folder = Folder::new("hostile-trace");
    let text = contents(fixture("inversion.txt"));
    // As long as the kernel lets a thread's name be.
    let hostile = text.replace("init-", "\u{1b}[2Jow-").replace("comm=init ", "comm=\u{1b}[2Jow ");
    assert_ne!(text, hostile);
    let trace = folder.write("t.txt", hostile);
    for words in
        [&["trace", "analyze", &trace][..], &["trace", "info", &trace], &["trace", "compare", &trace, &trace]]
    {
        let called = binderperf(words);
        assert!(!called.stdout.contains('\u{1b}') && !called.stderr.contains('\u{1b}'), "{called}");
    }
    is_tame(&binderperf(&["trace", "analyze", &trace]), "\\u001b[2Jow");
}

/// A name in a binary trace may have any byte but 0.
#[test]
fn names_of_threads_begin_no_line() {
    let folder = Folder::new("forged-line");
    let mut bytes = std::fs::read(fixture("binder-c.bptrace")).expect("a fixture");
    let (name, forged) = (b"fifo-caller\0", b"fi\nFORGERY!\0");
    for at in 0..bytes.len() - name.len() {
        if bytes[at..].starts_with(name) {
            bytes[at..at + name.len()].copy_from_slice(forged);
        }
    }
    let trace = folder.write("t.bptrace", bytes);
    for words in
        [&["trace", "analyze", &trace][..], &["trace", "info", &trace], &["trace", "compare", &trace, &trace]]
    {
        let called = binderperf(words);
        let begins = |text: &str| text.lines().any(|line| line.starts_with("FORGERY!"));
        assert!(!begins(&called.stdout) && !begins(&called.stderr), "{called}");
    }
    binderperf(&["trace", "analyze", &trace]).printed("fi FORGERY!");
}

#[test]
fn a_lava_log_does_not_steer() {
    let folder = Folder::new("hostile-log");
    let case = format!("<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={ORDERS}x RESULT=fail>\n");
    let log = folder.write("job.log", case);
    is_tame(&binderperf(&["convert", "--from", "lava-log", &log]).ended(1), "FAIL \\u001b[2J");
    let failed = format!(
        "{{\"lvl\": \"results\", \"msg\": {{\"definition\": \"lava\", \"case\": \"job\", \"result\": \"fail\", \"error_msg\": \"no {ORDERS}\"}}}}\n"
    );
    let log = folder.write("failed.log", failed);
    is_tame(&binderperf(&["convert", "--from", "lava-log", &log]).ended(3), "no \\u001b[2J");
}

#[test]
fn a_device_does_not_steer() {
    let folder = Folder::new("hostile-device");
    let adb =
        folder.write("adb", format!("#!/bin/sh\nprintf '@binderperf\\n! folder no %s\\n' '{ORDERS}'\n"));
    std::fs::set_permissions(&adb, std::fs::Permissions::from_mode(0o755)).expect("set");
    let called = call(BINARY, &["state", "--on", "adb:one"], &[("BINDERPERF_ADB", &adb)]).ended(3);
    is_tame(&called, "no \\u001b[2J");
    let adb = folder.write("adb", format!("#!/bin/sh\nprintf 'error: %s\\n' '{ORDERS}' >&2\nexit 1\n"));
    let called = call(BINARY, &["state", "--on", "adb:one"], &[("BINDERPERF_ADB", &adb)]).ended(3);
    is_tame(&called, "error: \\u001b[2J");
}

#[test]
fn words_of_the_command_line_do_not_steer() {
    let odd = format!("--{ORDERS}");
    is_tame(&binderperf(&["throughput", "binder", &odd]).ended(2), "\\u001b[2J");
    is_tame(&binderperf(&["show", ORDERS]).ended(2), "\\u001b[2J");
    is_tame(&binderperf(&["state", "--on", &format!("ssh:{ORDERS}")]).ended(3), "\\u001b[2J");
}
