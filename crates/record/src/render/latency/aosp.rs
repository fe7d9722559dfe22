//! A latency test as Android's own tools print it, byte by byte: `libhwbinder_latency` and `schd-dbg`.
//! Not here: our JSON, which has more and exact figures (`json`); exit statuses (the command line).
//! Facts: libhwbinder's `Latency.cpp` and `PerfTest.cpp` (Android 9 to 14), its `Latency.cpp` of Android 8, as on
//! Android's page, and frameworks/native's `schd-dbg.cpp`. `tests/golden/aosp` holds their formats.
//!
//! Three things differ from them on purpose: what was not measured is `null` instead of `nan`, inheritance is `UNKNOWN`
//! without a real-time caller, where they abort, and a failure counts even if 256 of them fill an exit status.

use super::Group;
use crate::figures::Calls;
use crate::number::general_to;
use crate::schema::{AndroidCounts, Case, Class, LatencyTest, Outcome, Percentiles, Role, Run, Sched};
use crate::verdict::{GOOD_ABOVE, calls};

/// Android's tool whose output is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// `libhwbinder_latency` of Android 9 and later.
    Hwbinder,
    /// `libhwbinder_latency` of Android 8, as on Android's page.
    Hwbinder8,
    /// `schd-dbg`.
    Binder,
}

/// Upper limit of the histogram of the newer tool, in ns, and the width of each of its 128 buckets.
pub(crate) const HISTOGRAM_NS: u64 = 50_000_000;
pub(crate) const BUCKET_NS: u64 = HISTOGRAM_NS / 128;

/// The line between two threads of `-v`.
const RULE: &str = "--------------------------------------------------\n";

/// A latency test as this tool prints it: with `verbose` each thread, with `raw` each time of the real-time callers.
/// A test that stopped at a miss has no results, because the tool exits there.
pub fn aosp(run: &Run, tool: Tool, verbose: bool, raw: bool) -> String {
    let Some(test) = run.latency() else { return "null\n".to_owned() };
    // The first thread that is shown after the head is a client's: servers of schd-dbg are started with the clients.
    let head = test.roles.iter().position(|role| role.role == "main").map_or(0, |main| main + 1);
    let (before, after) = test.roles.split_at(head);
    let (servers, main) = before.split_at(head.saturating_sub(1));
    let shown = |roles: &[Role]| if verbose { threads(roles, tool) } else { String::new() };
    let mut text = match tool {
        Tool::Hwbinder | Tool::Hwbinder8 => shown(before) + &settings(test, tool),
        Tool::Binder => shown(main) + &settings(test, tool) + &shown(servers),
    };
    text += &shown(after);
    if test.stopped_at.is_some() {
        return text;
    }
    if raw && tool == Tool::Hwbinder {
        text += &raw_times(run);
    }
    for group in Group::of(run) {
        // The newer tool's stream keeps the precision of the last number of the object before.
        let precision = if group.pair.is_some() && tool == Tool::Hwbinder { 5 } else { 6 };
        if group.pair.is_some() || tool == Tool::Hwbinder {
            text += &format!("\"{}\":{}", group.name(), object(&group, test, tool, precision));
        }
    }
    text + &format!("\"inheritance\": \"{}\"\n}}\n", inheritance(run))
}

/// The words with which the tools say that a miss stopped the trace in this file.
pub fn stopped(log: &str) -> String {
    format!("\ndeadline triggered: halt & stop trace\nlog:{log}\n\n")
}

/// Sums of Android's counts; those of older records are ours.
fn counts<'c>(cases: impl IntoIterator<Item = &'c Case>) -> AndroidCounts {
    let mut sum = AndroidCounts::default();
    for case in cases {
        let Some(latency) = &case.latency else { continue };
        let ours = AndroidCounts {
            apart: calls(case).saturating_sub(latency.same_cpu),
            other_priority: latency.not_inherited,
        };
        let AndroidCounts { apart, other_priority } = latency.android.unwrap_or(ours);
        sum.apart = sum.apart.saturating_add(apart);
        sum.other_priority = sum.other_priority.saturating_add(other_priority);
    }
    sum
}

/// Number of calls that were served at another priority than their caller's, as the tools count them.
pub fn not_inherited(run: &Run) -> u64 {
    counts(&run.cases).other_priority
}

fn inheritance(run: &Run) -> &'static str {
    let realtime = run.latency().and_then(|test| test.realtime);
    let made = run.cases.iter().map(calls).fold(0, u64::saturating_add);
    match (realtime.is_some_and(Sched::is_realtime) && made > 0, not_inherited(run)) {
        (false, _) => "UNKNOWN",
        (true, 0) => "PASS",
        (true, _) => "FAIL",
    }
}

fn settings(test: &LatencyTest, tool: Tool) -> String {
    let (pairs, iterations, deadline_us) = (test.pairs, test.iterations, test.deadline / 1000);
    let passthrough = match tool {
        Tool::Hwbinder => format!(",\"passthrough\":{}", u8::from(!test.binderized)),
        Tool::Hwbinder8 | Tool::Binder => String::new(),
    };
    format!(
        "{{\n\"cfg\":{{\"pair\":{pairs},\"iterations\":{iterations},\"deadline_us\":{deadline_us}{passthrough}}},\n"
    )
}

/// The value of `ALL` or of a pair. `precision`: significant digits of `R`.
fn object(group: &Group<'_>, test: &LatencyTest, tool: Tool, precision: u8) -> String {
    let all: u64 = group.cases.iter().map(|case| calls(case)).sum();
    let apart = counts(group.cases.iter().copied()).apart.min(all);
    let ratio = (all > 0).then(|| 1.0 - apart as f64 / all as f64);
    let verdict = if ratio.is_some_and(|ratio| ratio > GOOD_ABOVE) { "GOOD" } else { "POOR" };
    let shown = ratio.map_or("null".to_owned(), |ratio| general_to(ratio, precision));
    let mut text = format!("{{\"SYNC\":\"{verdict}\",\"S\":{},\"I\":{all},\"R\":{shown},\n", all - apart);
    let [other, fifo] = [Class::Other, Class::Fifo].map(|class| group.calls(class, test));
    text += &format!("  \"other_ms\":{},\n", times(other.as_ref(), tool));
    text += &format!("  \"fifo_ms\": {}", times(fifo.as_ref(), tool));
    if tool == Tool::Hwbinder {
        let spread = |calls: Option<&Calls<'_>>| distribution(calls.and_then(|calls| calls.percentiles));
        text += &format!(",\n  \"otherdis\":{}", spread(other.as_ref()));
        text += &format!(",\n  \"fifodis\": {}", spread(fifo.as_ref()));
    }
    text + "\n},\n"
}

fn times(calls: Option<&Calls<'_>>, tool: Tool) -> String {
    let Some(calls) = calls else { return "null".to_owned() };
    let millis = |ns: f64| format!("{:<4}", general_to(ns / 1e6, 2));
    let misses = calls.total(|latency| latency.misses);
    let meet = general_to(1.0 - misses as f64 / calls.samples.count as f64, 5);
    let (average, worst, best) = (
        millis(calls.samples.mean().unwrap_or_default()),
        millis(calls.samples.max as f64),
        millis(calls.samples.min as f64),
    );
    let comma = if tool == Tool::Binder { "," } else { ", " };
    format!(
        "{{ \"avg\":{average}{comma}\"wst\":{worst}{comma}\"bst\":{best}{comma}\"miss\":{misses}{comma}\"meetR\":{meet}}}"
    )
}

/// The middle of the bucket into which a time falls, in ms; the last bucket holds all that is longer.
pub(in crate::render) fn bucket_ms(time: u64) -> f64 {
    let bucket = time.min(HISTOGRAM_NS - 1) / BUCKET_NS;
    (bucket as f64 + 0.5) * (BUCKET_NS as f64 / 1e6)
}

fn distribution(percentiles: Option<Percentiles>) -> String {
    let Some(Percentiles { p50, p90, p95, p99 }) = percentiles else { return "{ }".to_owned() };
    let [p50, p90, p95, p99] = [p50, p90, p95, p99].map(|time| general_to(bucket_ms(time), 5));
    format!("{{ \"p50\":{p50}, \"p90\":{p90}, \"p95\":{p95}, \"p99\": {p99}}}")
}

/// The times of each pair's real-time caller, in ns.
fn raw_times(run: &Run) -> String {
    let cases = run.cases.iter().filter_map(|case| case.latency.as_ref());
    let fifo = cases.filter(|latency| latency.class == Class::Fifo);
    fifo.map(|latency| {
        let times: Vec<String> = latency.raw.iter().map(u64::to_string).collect();
        format!("\"fifo_{}_data\": [{}],\n", latency.pair, times.join(","))
    })
    .collect()
}

/// Threads as `-v` shows them. After a thread that served at another priority than the caller before it follows a
/// line that says so.
fn threads(roles: &[Role], tool: Tool) -> String {
    let mut text = String::new();
    let mut caller: Option<&Role> = None;
    for role in roles {
        text += &thread(role, tool);
        let serves = role.role == "hwbinder" || role.role == "binder";
        if serves
            && let Some(caller) = caller.map(|caller| caller.sched.priority)
            && caller != role.sched.priority
        {
            text += &format!("err priority_caller:{caller}, priority:{}\n", role.sched.priority);
        }
        caller = Some(role);
    }
    text
}

fn thread(role: &Role, tool: Tool) -> String {
    let Role { role, pid, tid, cpu, sched, transitional } = role;
    let name = if tool == Tool::Binder && role == "service" { "server" } else { role };
    // A raised thread has a flag of the kernel's in its policy, so that the tools do not know it.
    let known = matches!(sched.policy, 0..=2) && !(*transitional && sched.is_realtime());
    let policy = sched.policy_name().filter(|_| known).unwrap_or("???");
    let name = crate::render::printable(name);
    format!("{RULE}{name:<12} pid: {pid} tid: {tid} cpu: {cpu}\n{policy:<12}{}\n", sched.priority)
}

/// Whether a pair failed, or the run did not come to its end.
pub fn is_broken(run: &Run) -> bool {
    let failed = |case: &Case| case.outcomes().any(|outcome| matches!(outcome, Outcome::Failed { .. }));
    !run.complete || run.cases.iter().any(failed)
}
