//! Attached files there and back, logs that lost something, and what a log says of its job.

use super::*;

/// Text that does not pack well, so that it takes many lines.
fn content() -> Vec<u8> {
    let mut seed = 1u32;
    let step = |_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as u8
    };
    (0..3000).map(step).collect()
}

fn read(text: &str) -> Result<JobLog, LogError> {
    JobLog::read(text.as_bytes())
}

/// Lines as LAVA writes those of a device.
fn logged(text: &str) -> String {
    let line =
        |line| format!("{{\"dt\": \"2026-01-31T12:00:00\", \"lvl\": \"target\", \"msg\": \"{line}\"}}\r\n");
    text.lines().map(line).collect()
}

#[test]
fn an_attached_file_comes_back_from_a_console_and_from_a_job_log() {
    let lines = attachment("../a b.json", &content());
    assert!(lines.lines().count() > 20 && lines.lines().all(|line| line.len() < 200));
    for text in [lines.clone(), lines.replace('\n', "\r\n"), logged(&lines)] {
        let text = format!("boot\n{text}more\n{}", attachment("x.json", b"{}"));
        let log = read(&text).expect("whole");
        assert_eq!(log.attached.len(), 2);
        assert_eq!((log.attached[0].name.as_str(), &log.attached[0].content), ("_a_b.json", &content()));
        assert_eq!(
            (log.attached[1].name.as_str(), log.attached[1].content.as_slice()),
            ("x.json", &b"{}"[..])
        );
    }
}

#[test]
fn every_line_that_is_missing_torn_or_changed_is_noticed() {
    let lines = attachment("r.json", &content());
    let count = lines.lines().count();
    for at in 0..count {
        let without: Vec<&str> =
            lines.lines().enumerate().filter(|(line, _)| *line != at).map(|(_, line)| line).collect();
        let said = read(&without.join("\n")).expect_err("a line is missing").to_string();
        assert!(said.contains("r.json is missing or torn"), "{said}");
        let torn: Vec<String> = lines
            .lines()
            .enumerate()
            .map(
                |(line, text)| {
                    if line == at { format!("{}[ 12.3] usb: x", &text[..40]) } else { text.to_owned() }
                },
            )
            .collect();
        assert!(read(&torn.join("\n")).is_err(), "line {at}");
    }
    // One character of the content, behind gzip's header.
    let line = lines.lines().nth(5).expect("many");
    let flipped = if line.ends_with('A') { 'B' } else { 'A' };
    let other = lines.replacen(line, &format!("{}{flipped}", &line[..line.len() - 1]), 1);
    assert_ne!(other, lines);
    let said = read(&other).expect_err("another content").to_string();
    assert!(said.contains("r.json is damaged"), "{said}");
    for bad in [
        "binderperf-record ",
        "binderperf-record x 1/1 %",
        "binderperf-record x 2/1 QQ==",
        "binderperf-record x 1/0 QQ==",
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_log_says_what_failed() {
    let device = "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=a/b RESULT=pass UNITS=ns MEASUREMENT=2e3>\n\
                  <LAVA_SIGNAL_TESTCASE TEST_CASE_ID=c RESULT=fail>\n\
                  <LAVA_SIGNAL_TESTCASE TEST_CASE_ID=d RESULT=skip>\n";
    for text in [device.to_owned(), logged(device)] {
        let log = read(&text).expect("readable");
        assert_eq!(log.failed, ["c"]);
        let counts: Vec<_> = log.results.iter().map(|(result, count)| (result.as_str(), *count)).collect();
        assert_eq!(counts, [("fail", 1), ("pass", 1), ("skip", 1)]);
        assert_eq!((log.taken_down, log.job_failure), (None, None));
    }
    let taken = "{\"dt\": \"x\", \"lvl\": \"results\", \"msg\": {\"case\": \"c\", \"definition\": \"binderperf\", \"result\": \"fail\", \"measurement\": ! \"6e1\"}}\n\
                 {\"dt\": \"x\", \"lvl\": \"results\", \"msg\": {\"case\": \"job\", \"definition\": \"lava\", \"error_msg\": \"Connection closed\", \"result\": \"fail\"}}\n";
    let log = read(taken).expect("readable");
    assert_eq!(log.taken_down, Some(1));
    assert_eq!(log.job_failure.as_deref(), Some("Connection closed"));
    let passed = taken.replace("\"result\": \"fail\"}}\n", "\"result\": \"pass\"}}\n");
    assert_eq!(read(&passed).expect("readable").job_failure, None);
}

#[test]
fn attached_files_have_a_limit_together() {
    let half = vec![b' '; (crate::read::MAX_BYTES / 2 + 1) as usize];
    let one = attachment("a.json", &half);
    assert_eq!(read(&one).expect("one is read").attached.len(), 1);
    let why = read(&(one + &attachment("b.json", &half))).expect_err("too large").to_string();
    assert!(why.contains("up to b.json are larger than 128 MiB"), "{why}");
}
