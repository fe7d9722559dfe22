//! Room: the JSON that users of Android's latency tests parse: their keys in their order, ours behind them.
//! Not here: the record itself as JSON (`crate::render::json`).
//! Facts: AOSP `libhwbinder_latency`, whose output is not always JSON; this one is. Times are in ms, exact
//! to the nanosecond; what does not exist is `null`, never 0.

use super::object::Object;
use super::{Calls, Group, unit_name};
use crate::schema::{Class, Hop, Latency, LatencyTest, Miss, Outcome, Percentiles, Role, Run, Sched};
use crate::verdict::{Inherited, Served, as_expected, met};
use serde::Serialize;

/// What the JSON of a latency test shows beyond its summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Who took part, and how it was scheduled.
    pub verbose: bool,
    /// Every single time, where the record has them.
    pub raw: bool,
}

/// A latency test as JSON; `null` for a run of another test.
pub fn json(run: &Run, options: &Options) -> String {
    let Some(test) = &run.latency else { return "null\n".to_owned() };
    let mut text = Object::outer();
    match &test.sweep {
        Some(sweep) => super::sweep::json(test, sweep, &mut text),
        None => pairs(run, test, options, &mut text),
    }
    let inherited = Inherited::of(test);
    text.line("inheritance", &inherited.name());
    text.object("inheritance_detail", inheritance(test, &inherited));
    ours(run, test, &mut text);
    if options.verbose {
        text.list("verbose", test.roles.iter().map(RoleSeen::of));
    }
    text.close()
}

/// What was asked for, all pairs, and each.
fn pairs(run: &Run, test: &LatencyTest, options: &Options, text: &mut Object) {
    text.line(
        "cfg",
        &Cfg { pair: test.pairs, iterations: test.iterations, deadline_us: test.deadline as f64 / 1e3 },
    );
    for group in Group::of(run) {
        text.object(&group.name(), block(&group, test, options));
    }
}

/// What was asked for.
#[derive(Serialize)]
struct Cfg {
    pair: u32,
    iterations: u64,
    deadline_us: f64,
}

/// One pair, or all.
fn block(group: &Group, test: &LatencyTest, options: &Options) -> Object {
    let mut block = Object::inner();
    let [other, fifo] = [Class::Other, Class::Fifo].map(|class| group.calls(class, test));
    let served = Sync::of(Served::of(group.cases.iter().copied()));
    block.beside("SYNC", &served.sync);
    block.beside("S", &served.s);
    block.beside("I", &served.i);
    block.beside("R", &served.r);
    block.line("other_ms", &other.as_ref().map(Times::of));
    block.line("fifo_ms", &fifo.as_ref().map(Times::of));
    let spread = |calls: &Option<Calls>| calls.as_ref().and_then(|calls| calls.percentiles).map(Spread::of);
    block.line("otherdis", &spread(&other));
    block.line("fifodis", &spread(&fifo));
    block.line("M", &served.m);
    let sync = |calls: &Option<Calls>| calls.as_ref().map(|calls| Sync::of(calls.served));
    block.line("othersync", &sync(&other));
    block.line("fifosync", &sync(&fifo));
    let bubbles = |calls: &Option<Calls>| calls.as_ref().map(|calls| calls.bubbles);
    block.line("bubble", &Bubbles { other: bubbles(&other), fifo: bubbles(&fifo) });
    if group.pair.is_some() {
        let reasons = group.failures();
        block.line("failed", &(!reasons.is_empty()).then(|| reasons.join("; ")));
        let raw = [("otherraw_ms", Class::Other), ("fiforaw_ms", Class::Fifo)]
            .map(|(key, class)| (key, raw(group, class)));
        for (key, times) in raw.iter().filter(|(_, times)| options.raw && !times.is_empty()) {
            block.line(key, times);
        }
    }
    block
}

fn raw(group: &Group, class: Class) -> Vec<f64> {
    let times =
        group.of_class(class).filter_map(|case| case.latency.as_ref()).flat_map(|latency| &latency.raw);
    times.map(|time| millis(*time)).collect()
}

fn millis(time: u64) -> f64 {
    time as f64 / 1e6
}

/// A share in so many digits that one call of as many as a test can have still shows.
fn plain(share: f64) -> f64 {
    (share * 1e9).round() / 1e9
}

/// Where calls were served, by the original's letters.
#[derive(Serialize)]
struct Sync {
    #[serde(rename = "SYNC")]
    sync: Option<&'static str>,
    #[serde(rename = "S")]
    s: u64,
    #[serde(rename = "I")]
    i: u64,
    #[serde(rename = "R")]
    r: Option<f64>,
    #[serde(rename = "M")]
    m: u64,
}

impl Sync {
    fn of(served: Served) -> Sync {
        Sync {
            sync: served.sync().map(crate::verdict::Sync::name),
            s: served.same_cpu,
            i: served.calls,
            r: served.ratio().map(plain),
            m: served.migrated,
        }
    }
}

/// The times of a class.
#[derive(Serialize)]
struct Times {
    avg: Option<f64>,
    wst: f64,
    bst: f64,
    miss: u64,
    #[serde(rename = "meetR")]
    meet: Option<f64>,
}

impl Times {
    fn of(calls: &Calls) -> Times {
        Times {
            avg: calls.samples.mean().map(|mean| mean.round() / 1e6),
            wst: millis(calls.samples.max),
            bst: millis(calls.samples.min),
            miss: calls.misses,
            meet: met(calls.misses, calls.served.calls).map(plain),
        }
    }
}

/// Exact percentiles.
#[derive(Serialize)]
pub(super) struct Spread {
    p50: f64,
    p90: f64,
    p95: f64,
    p99: f64,
}

impl Spread {
    pub(super) fn of(percentiles: Percentiles) -> Spread {
        let Percentiles { p50, p90, p95, p99 } = percentiles;
        Spread { p50: millis(p50), p90: millis(p90), p95: millis(p95), p99: millis(p99) }
    }
}

/// Misses in which, for most of the time, neither side ran.
#[derive(Serialize)]
struct Bubbles {
    other: Option<u64>,
    fifo: Option<u64>,
}

/// The verdict's grounds, with a hop to a line.
fn inheritance(test: &LatencyTest, verdict: &Inherited) -> Object {
    let found = &test.inheritance;
    let unknown = match verdict {
        Inherited::Unknown { reason } => Some(reason),
        Inherited::Pass | Inherited::Fail => None,
    };
    let mut detail = Object::inner();
    detail.beside("calls", &found.calls);
    detail.beside("not_inherited", &found.not_inherited);
    detail.beside("unknown_reason", &unknown);
    detail.beside("measured", &found.measured.map(crate::Level::name));
    detail.beside("expected", &found.expected.map(crate::Level::name));
    detail.beside("expected_reason", &found.expected_reason);
    detail.beside("as_expected", &as_expected(found));
    detail.list("hops", found.hops.iter().map(HopSeen::of));
    detail
}

#[derive(Serialize)]
struct HopSeen<'r> {
    scene: &'r str,
    caller: Scheduled,
    idle: Scheduled,
    served: Option<Scheduled>,
    expected: Option<Scheduled>,
    as_expected: Option<bool>,
    note: &'r str,
}

impl<'r> HopSeen<'r> {
    fn of(hop: &'r Hop) -> HopSeen<'r> {
        HopSeen {
            scene: &hop.scene,
            caller: Scheduled::of(hop.caller),
            idle: Scheduled::of(hop.idle),
            served: hop.served.map(Scheduled::of),
            expected: hop.expected.map(Scheduled::of),
            as_expected: hop.as_expected(),
            note: &hop.note,
        }
    }
}

#[derive(Serialize)]
struct Scheduled {
    policy: &'static str,
    priority: u32,
    nice: i32,
}

impl Scheduled {
    fn of(sched: Sched) -> Scheduled {
        let Sched { priority, nice, .. } = sched;
        Scheduled { policy: sched.policy_name().unwrap_or("???"), priority, nice }
    }
}

/// One line of `-v` as an object.
#[derive(Serialize)]
struct RoleSeen<'r> {
    role: &'r str,
    pid: u32,
    tid: u32,
    cpu: u32,
    policy: &'static str,
    priority: u32,
    nice: i32,
    transitional: bool,
}

impl<'r> RoleSeen<'r> {
    fn of(role: &'r Role) -> RoleSeen<'r> {
        let Role { role: name, pid, tid, cpu, sched, transitional } = role;
        let Scheduled { policy, priority, nice } = Scheduled::of(*sched);
        RoleSeen {
            role: name,
            pid: *pid,
            tid: *tid,
            cpu: *cpu,
            policy,
            priority,
            nice,
            transitional: *transitional,
        }
    }
}

/// A pair that did not come to its end.
#[derive(Serialize)]
struct Failure<'r> {
    pair: u32,
    class: &'static str,
    reason: &'r str,
}

#[derive(Serialize)]
struct Stop {
    pair: u32,
    class: &'static str,
    iteration: u64,
    took_ms: f64,
}

/// What the test as a whole has to say beyond the original's keys.
fn ours(run: &Run, test: &LatencyTest, text: &mut Object) {
    text.line("realtime", &test.realtime.map(Scheduled::of));
    text.beside("realtime_problem", &test.realtime_problem);
    let first = run.cases.iter().find_map(|case| case.latency.as_ref()).filter(|_| test.sweep.is_none());
    text.line("load", &first.map(|latency: &Latency| latency.load.as_str()).filter(|load| !load.is_empty()));
    text.beside("rate_hz", &first.and_then(|latency| latency.rate_hz));
    text.beside("overloaded", &run.overloaded);
    text.beside("overhead_us", &test.overhead.map(|cost| cost / 1e3));
    text.line("flavour", &test.flavour);
    text.beside("binderized", &test.binderized);
    text.beside("driver", &run.driver.as_ref().map(|driver| driver.kind.name()));
    text.beside("clock_unit", &unit_name(run));
    text.beside("host_class", &run.host.class.name());
    text.line("injected", &test.injected);
    text.line(
        "stopped_at",
        &test.stopped_at.map(|Miss { pair, class, iteration, took }| Stop {
            pair,
            class: class.name(),
            iteration,
            took_ms: millis(took),
        }),
    );
    if test.sweep.is_none() {
        text.line("failed", &failures(run));
    }
    text.line("complete", &run.complete);
    text.beside("incomplete_reason", &run.incomplete_reason);
}

fn failures(run: &Run) -> Vec<Failure<'_>> {
    let mut failures = Vec::new();
    for case in &run.cases {
        let Some(latency) = &case.latency else { continue };
        for repetition in &case.repetitions {
            if let Outcome::Failed { reason, .. } = &repetition.outcome {
                failures.push(Failure { pair: latency.pair, class: latency.class.name(), reason });
            }
        }
    }
    failures
}
