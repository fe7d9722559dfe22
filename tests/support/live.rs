//! A span of `top` against the recording of the same calls.
//! Not here: the drivers that it is asked of (`cli::top`, `guest::inside::top`).

use std::fs::File;
use std::process::Stdio;

use live::top::figures::LATENCY_ERROR;
use needs::{Lack, Need};
use trace::model::{Model, Outcome};

use super::{Called, Folder, command, end, program, wait_until};

/// Calls of each of two pairs; each iteration of the test calls twice.
const ITERATIONS: u64 = 300;

/// Lets `top` watch a latency test for one span, and compares its line with the recording that it saved. Returns the line's
/// sum of calls.
///
/// # Errors
/// Events cannot be read here.
pub(crate) fn top_agrees_with_its_recording(folder: &Folder, driver: &[&str]) -> Result<u64, Lack> {
    let (saved, place) = (folder.path("top.bptrace"), folder.path("user"));
    std::fs::create_dir_all(&place).expect("a folder");
    let words = "top --batch --format json --interval 3600 -n 1 --max-overhead 100 --save".split(' ');
    let words: Vec<&str> = words.chain([saved.as_str()]).chain(driver.iter().copied()).collect();
    let mut top = command(program(), &words);
    let top = top.env("XDG_RUNTIME_DIR", &place).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut top = top.expect("the program starts");
    let mark = format!("binderperf-record-{}-", top.id());
    let instances = "/sys/kernel/tracing/instances";
    let is_there = || {
        let names = std::fs::read_dir(instances).into_iter().flatten().flatten();
        names.map(|entry| entry.path()).find(|path| path.to_string_lossy().contains(&mark))
    };
    // The folder comes before its files.
    let text = |path: std::path::PathBuf| std::fs::read_to_string(path.join("tracing_on"));
    let is_on = || is_there().is_some_and(|path| text(path).is_ok_and(|text| text.trim() == "1"));
    wait_until("top records, or has ended", || top.try_wait().expect("a child").is_some() || is_on());
    Need::Tracefs.met_if(is_there().is_some(), "top has no trace instance")?;
    let count = ITERATIONS.to_string();
    let test = ["latency", "hwbinder", "-i", &count, "-pair", "2", "--no-scenes"];
    let mut test = command(program(), &[&test[..], driver].concat());
    let test = test.env("XDG_RUNTIME_DIR", &place).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let test = end(test.expect("the program starts"));
    assert!(matches!(test.code, Some(0 | 1)), "{test}");
    sys::child::ask_to_end(&mut top).expect("it runs");
    let called = end(top).ended(0);
    assert!(is_there().is_none(), "the instance is gone: {called}");
    Ok(compared(&called, &saved))
}

fn compared(called: &Called, saved: &str) -> u64 {
    let line = called.json();
    assert_eq!(line["lost"], 0, "{called}");
    let mut reader = trace::open(File::open(saved).expect("saved")).expect("a recording");
    let (mut model, mut calls) = (Model::new(), Vec::new());
    while let Some(event) = reader.next() {
        model.take(&event, reader.names(), &mut |call| calls.push(call));
    }
    let (span, own) = (line["span_s"].as_f64().expect("s"), line["own_cpu"].as_f64().expect("a share"));
    let count = line["calls"].as_u64().expect("a count") as f64;
    println!("top took {:.2} us of CPU for each of {:.0} calls/s", own * span / count * 1e6, count / span);
    let replied: Vec<_> = calls.iter().filter(|call| call.outcome == Outcome::Replied).collect();
    let oneway = calls.iter().filter(|call| call.outcome == Outcome::Delivered).count() as u64;
    let counts = super::binderperf(&["trace", "analyze", saved, "--format", "json"]).json();
    assert_eq!(counts["counts"]["calls"], replied.len() as u64, "the analysis counts as the model does");
    assert!(replied.len() as u64 >= 2 * 2 * ITERATIONS, "{} calls", replied.len());
    for kind in ["processes", "threads", "methods", "pairs"] {
        let rows = line[kind].as_array().expect("rows");
        let sum: u64 = rows.iter().filter_map(|row| row["calls"].as_u64()).sum();
        assert_eq!(sum, replied.len() as u64 + oneway, "{kind}");
    }
    for row in line["processes"].as_array().expect("rows") {
        let mut ns: Vec<u64> = replied
            .iter()
            .filter(|call| call.is_sound())
            .copied()
            .filter(|call| row["pid"] == call.to_proc)
            .map(|call| call.ns())
            .collect();
        ns.sort_unstable();
        for (name, percent) in [("p50_ns", 50.0), ("p99_ns", 99.0)] {
            match units::percentile(&ns, percent) {
                Some(want) => {
                    let found = row[name].as_u64().expect("a latency") as f64;
                    let off = (found - want as f64).abs() / want as f64;
                    assert!(off <= LATENCY_ERROR, "{name} of {row}: {want}");
                }
                None => assert!(row[name].is_null(), "{row}"),
            }
        }
    }
    replied.len() as u64 + oneway
}
