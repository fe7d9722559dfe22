//! `binderperf history`: a file that grows with every run, and what is read from it.
//! Not here: finding changes (`record::history`).

use crate::support::{BINARY, Called, Folder, binderperf, call, command, contents, without_checksum};

/// A record, and copies of it from later days that take longer from some day on.
fn days(folder: &Folder, count: usize, slower_from: usize) -> Vec<String> {
    let first = folder.path("first.json");
    let words = ["throughput", "binder", "--driver=embedded", "--controls=none", "--benchmark_min_time=200x"];
    binderperf(&[&words[..], &["--benchmark_filter=/4$", "--record", &first]].concat()).ended(0);
    let record = without_checksum(first);
    let day = |at: usize| {
        let mut run = record.clone();
        run["started"] = format!("2026-01-{:02}T12:00:00+00:00", at + 1).into();
        let level = if at < slower_from { 20_000 } else { 22_000 };
        let samples =
            record::Distribution::of((0..1000).map(|call| level + (at as u64 * 37) % 100 + call % 10));
        let numbers = &mut run["cases"][0]["repetitions"][0]["outcome"]["measured"];
        numbers["iterations"] = 1000.into();
        numbers["real_total"] = samples.sum.into();
        numbers["samples"] = serde_json::to_value(&samples).expect("JSON");
        folder.write(&format!("day-{at:02}.json"), run.to_string())
    };
    (0..count).map(day).collect()
}

fn history(folder: &Folder, words: &[&str]) -> Called {
    let state = folder.path("state");
    call(BINARY, &[&["history"], words].concat(), &[("XDG_STATE_HOME", &state)])
}

#[test]
fn runs_are_kept_once_and_their_change_is_found() {
    let folder = Folder::new("history");
    let days = days(&folder, 28, 14);
    for day in &days {
        history(&folder, &["--add", day]).ended(0).complained("3 numbers added");
    }
    let again = history(&folder, &["--add", &days[3]]);
    again.complained("0 numbers added").complained("3 were there");
    let shown = history(&folder, &["--metric=median"]).ended(0);
    let change = shown.stdout.lines().find(|line| line.contains("BM_sendVec_binder/4 median: +"));
    assert!(change.is_some_and(|line| line.contains("from 2026-01-15")), "{}", shown.stdout);
    let json = history(&folder, &["--format=json", "--case=binder/4"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["series"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_line_that_was_cut_short_is_passed_over_and_what_is_added_behind_it_is_not() {
    let folder = Folder::new("history-cut");
    let days = days(&folder, 2, 9);
    assert_eq!(history(&folder, &["--add", &days[0]]).code, Some(0));
    let file = folder.path("state/binderperf/history.jsonl");
    let text = contents(&file);
    std::fs::write(&file, &text[..text.len() - 20]).expect("cut");
    assert_eq!(history(&folder, &["--add", &days[1]]).code, Some(0));
    let shown = history(&folder, &["--csv"]);
    shown.complained("line 3: no number of a run");
    let rows: Vec<&str> = shown.stdout.lines().collect();
    assert!(
        rows.len() == 3 && rows[0].starts_with("time,kernel,tool,BM_sendVec_binder_4.median,"),
        "{}",
        shown.stdout
    );
    let cells: Vec<usize> = rows.iter().map(|row| row.split(',').count()).collect();
    assert_eq!(cells, [6, 6, 6]);
}

#[test]
fn what_cannot_be_kept_or_shown_is_said() {
    let folder = Folder::new("history-bad");
    history(&folder, &[]).ended(2).complained("--add");
    assert_eq!(history(&folder, &["--add", "/no/such/record.json"]).code, Some(2));
    let day = days(&folder, 1, 9).remove(0);
    let unwritable = folder.path("first.json/history.jsonl");
    assert_eq!(history(&folder, &["--add", &day, "--file", &unwritable]).code, Some(4));
    // Neither ends, nor is it a file of ours.
    assert_eq!(history(&folder, &["--add", &day, "--file", "/dev/full"]).code, Some(4));
    assert_eq!(history(&folder, &["--file", "/dev/zero"]).code, Some(2));
    assert_eq!(history(&folder, &["--add", &day]).code, Some(0));
    assert_eq!(history(&folder, &["--case=nothing"]).code, Some(2));
    // Numbers of two machines are no table.
    let text = contents(&day).replace("\"model\":\"", "\"model\":\"another ");
    std::fs::write(&day, text.replace("2026-01-01", "2026-01-05")).expect("written");
    assert_eq!(history(&folder, &["--add", &day]).code, Some(0));
    history(&folder, &["--csv"]).ended(2).complained("another ");
    assert_eq!(history(&folder, &["--csv", "--environment=another"]).code, Some(0));
    let mut homeless = command(BINARY, &["history"]);
    let status = homeless.env_remove("XDG_STATE_HOME").env_remove("HOME").output().expect("it starts").status;
    assert_eq!(status.code(), Some(2));
}
