//! A guest whose CPU is taken from it: QEMU is stopped again and again while a test is recorded.
//! Not here: what may be said of which silence (`crates/trace/src/model/tests/silences.rs`).

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::one_guest;
use crate::support::{Folder, binderperf, call, end, start};

/// How long QEMU is stopped, and how long it runs between stops.
const STOPPED: Duration = Duration::from_millis(100);
const BETWEEN: Duration = Duration::from_millis(200);
/// Calls of each class: seconds of calls, many times as long as a stop and the time to the next.
const CALLS: &str = "4000";
/// A guest that hangs is the time limit's.
const PATIENCE: Duration = Duration::from_secs(280);

/// Process of the QEMU that this process started.
fn qemu_of(parent: u32) -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.into_iter().find(|number| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let Some((before, after)) = stat.rsplit_once(')') else { return false };
        before.contains("(qemu") && after.split_whitespace().nth(1) == Some(&parent.to_string())
    })
}

/// Sends a signal to a process that may have ended.
fn send(pid: u32, signal: &str) {
    let _ = call("kill", &[signal, &pid.to_string()], &[]);
}

#[test]
#[ignore = "an accuracy: make alone"]
fn calls_that_lost_their_cpu_to_the_host_say_so() {
    let _guest = one_guest();
    let folder = Folder::new("stolen");
    let out = folder.path("out");
    let guest = ["vm", "--smp", "1", "--accel", "tcg", "--timeout", "240", "--out", &out, "--"];
    let record = ["trace", "record", "-o", "g.trace", "--", "binderperf", "latency", "hwbinder", "-i", CALLS];
    let test = ["--no-scenes", "--cpus", "0,0", "--deadline-us", "60000000"];
    let mut child = start(&[&guest[..], &record, &test].concat());
    let begun = Instant::now();
    while child.try_wait().expect("a child").is_none() && begun.elapsed() < PATIENCE {
        if let Some(qemu) = qemu_of(child.id()) {
            send(qemu, "-STOP");
            sleep(STOPPED);
            send(qemu, "-CONT");
        }
        sleep(BETWEEN);
    }
    let ended = end(child);
    let trace = format!("{out}/g.trace");
    let json = binderperf(&["trace", "analyze", &trace, "--own", "--worst", "20", "--format", "json"]).json();
    let slow = json["slow"].as_array().expect("a list");
    let lost: Vec<u64> = slow
        .iter()
        .filter(|call| call["reasons"][0]["cause"] == "cpu_stolen")
        .filter_map(|call| call["reasons"][0]["ns"].as_u64())
        .collect();
    // The first tick that did not come is due at most 10 ms after the stop.
    let least = u64::try_from((STOPPED / 2).as_nanos()).expect("short");
    assert!(lost.iter().any(|ns| *ns >= least), "{lost:?}\n{ended}");
}
