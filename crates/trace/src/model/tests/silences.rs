//! Streams in which a CPU falls silent, and what may be said of it.
//! Not here: causes that events show (`causes`).

use super::*;

/// Microseconds in a script's time.
const US: u64 = 1000;
/// Client 10 on CPU 0, server 20 on CPU 1. The server works for 5200 us, in which its CPU has one event, its timer's,
/// or none. `TICKS` stands for events of CPU 1 before the call.
fn served(ticks: &str, in_work: &str, end_us: u64) -> Vec<(&'static str, u64)> {
    let (call, served) = (20_000, 20_000 + end_us);
    let script = format!(
        "
        1 0 0 switch R 10
        2 1 0 switch R 20
        {ticks}
        {call} 0 10 send 1 20
        {call} 0 10 switch S 0
        {call} 1 20 recv 1
        {in_work}
        {served} 1 20 reply 2 10 10
        {served} 1 20 waking 10 0
        {served} 0 0 switch R 10
        {served} 0 10 recv 2
        "
    );
    let scaled: Vec<String> =
        script.lines().map(str::trim).filter(|line| !line.is_empty()).map(scale).collect();
    let (found, _) = rebuilt(&[], &scaled.join("\n"));
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for part in &found[0].parts {
        match sums.iter_mut().find(|sum| sum.0 == part.cause.name()) {
            Some(sum) => sum.1 += part.ns() / US,
            None => sums.push((part.cause.name(), part.ns() / US)),
        }
    }
    sums.retain(|(_, us)| *us > 0);
    sums
}

/// Times of these scripts are in microseconds, and their interrupts (`timer`, `resched`) end at once.
fn scale(line: &str) -> String {
    let (ts, rest) = line.split_once(' ').expect("a time");
    let line = format!("{} {rest}", ts.parse::<u64>().expect("a number") * US);
    let interrupts = rest.ends_with(" timer") || rest.ends_with(" resched");
    if interrupts { format!("{line}+\n{line}-") } else { line }
}

const TOLD: &str = "3 1 -1 tick 4000000";
/// Timer interrupts of CPU 1 every 4 ms until 19 ms.
const TICKS: &str = "7000 1 20 timer\n11000 1 20 timer\n15000 1 20 timer\n19000 1 20 timer";

#[test]
fn a_tick_that_does_not_come_tells_of_a_stolen_cpu() {
    let ticks = format!("{TOLD}\n{TICKS}");
    // Due at 23 ms, heard again at 25.2 ms.
    let found = served(&ticks, "25200 1 20 timer", 5210);
    assert_eq!(found, [("cpu_silent", 3000), ("cpu_stolen", 2200), ("server_running", 10)]);
    let found = served(&ticks, "25200 1 20 print x\n25203 1 20 timer", 5210);
    assert_eq!(
        found,
        [("cpu_silent", 3000), ("cpu_stolen", 2200), ("server_running", 10)],
        "something came before"
    );
    let found = served(&ticks, "23200 1 20 timer", 3210);
    assert_eq!(found, [("server_running", 3210)], "a little late is not stolen");
    let found = served(&ticks, "23000 1 20 timer\n27000 1 20 timer", 8000);
    assert_eq!(found, [("server_running", 8000)], "every tick comes");
}

#[test]
fn nobody_is_accused_without_proof() {
    let silent = "25200 1 20 timer";
    for (what, ticks) in [
        ("no tick was recorded", TOLD.to_owned()),
        ("only two were", format!("{TOLD}\n15000 1 20 timer\n19000 1 20 timer")),
        ("nobody told the tick", TICKS.to_owned()),
        ("the CPU came from idle", format!("{TOLD}\n{TICKS}\n19800 1 20 switch S 0\n19900 1 0 switch R 20")),
        (
            "its tick had stopped before",
            format!("{TOLD}\n8000 1 20 timer\n9000 1 20 timer\n10000 1 20 timer\n19000 1 20 print x"),
        ),
        ("events are lost", format!("{TOLD}\n{TICKS}\n19100 1 -1 lost\n19200 1 0 switch R 20")),
    ] {
        let end = if what == "the CPU came from idle" { 4000 } else { 5210 };
        let silent = if end == 4000 { "23900 1 20 timer" } else { silent };
        assert_eq!(served(&ticks, silent, end), [("server_running", end)], "{what}");
    }
    let stopper = format!("{TOLD}\n{TICKS}\n19100 1 20 switch R 30");
    let found = served(&stopper, "25200 1 30 switch S 20", 5210);
    assert!(!found.iter().any(|(cause, _)| *cause == "cpu_stolen"), "{found:?}");
}

#[test]
fn without_the_recorders_word_the_trace_cannot_tell() {
    // No kernel ticks below 100 Hz: due at 29 ms.
    let found = served(TICKS, "33000 1 20 timer", 13_010);
    assert_eq!(found, [("cpu_silent", 13_000), ("server_running", 10)]);
}

#[test]
fn an_interrupt_from_another_cpu_that_does_not_arrive_tells_too() {
    let shown = format!("{TOLD}\n18000 0 10 ipi 1\n18003 1 20 resched");
    let found = served(&shown, "20500 0 0 ipi 1\n21500 1 20 resched", 1510);
    assert_eq!(found, [("cpu_silent", 500), ("cpu_stolen", 1000), ("server_running", 10)]);
    let found = served(&shown, "20500 0 0 ipi 1\n20504 1 20 resched\n21500 1 20 print x", 1510);
    assert_eq!(found, [("server_running", 1510)], "it arrived at once");
    let found = served(TOLD, "20500 0 0 ipi 1\n21500 1 20 resched", 1510);
    assert_eq!(found, [("server_running", 1510)], "arrivals had not been seen in this trace");
    let found = served(&shown, "20500 0 0 ipi 1\n20900 1 20 print x\n21500 1 20 print y", 1510);
    assert_eq!(found, [("server_running", 1510)], "the CPU worked without it");
}
