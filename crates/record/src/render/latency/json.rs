//! The JSON of Android's latency tests: their keys in their order, then our own.
//! Not here: the record as JSON (`crate::render::json`).
//! Facts: AOSP `libhwbinder_latency`, whose output is not always valid JSON; this one is. Times are in ms, exact to
//! the nanosecond; undefined values are `null`, never 0.

use super::{Group, unit_name};
use crate::experiments::sweep;
use crate::figures::{Calls, FIGURES};
use crate::render::object::{Object, millis, spread};
use crate::schema::{Class, Hop, LatencyTest, Miss, Outcome, Role, Run, Sched};
use crate::verdict::{self, Grade, InheritanceVerdict, Served, SyncVerdict, as_expected, met, of_latency};

/// Optional parts of the JSON of a latency test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// The threads and their scheduling.
    pub verbose: bool,
    /// Every single time, if the record contains them.
    pub raw: bool,
    /// Android's verdict on inheritance, in place of ours and the other verdicts.
    pub android: bool,
}

/// A latency test as JSON; `null` for a run of another test.
pub fn json(run: &Run, options: &Options) -> String {
    let Some(test) = run.latency() else { return "null\n".to_owned() };
    let mut text = match &test.sweep {
        Some(sweep) => sweep::text::json(test, sweep),
        None => pairs(run, test, options),
    };
    let android = InheritanceVerdict::of(test);
    let word = if options.android { android.name() } else { inherited(run, test, &android) };
    text = text.line("inheritance", &word);
    if !options.android {
        text = text.beside("inheritance_android", &android.name()).list("verdicts", of_latency(run, test));
    }
    text = text.line("inheritance_detail", &inheritance(test, &android));
    text = ours(run, test, text);
    if options.verbose {
        text = text.list("verbose", test.roles.iter().map(role));
    }
    text.close()
}

/// The settings, then all pairs together, then each pair.
fn pairs(run: &Run, test: &LatencyTest, options: &Options) -> Object {
    let settings = Object::inner()
        .beside("pair", &test.pairs)
        .beside("iterations", &test.iterations)
        .beside("deadline_us", &(test.deadline as f64 / 1e3));
    Group::of(run).into_iter().fold(Object::outer().line("cfg", &settings), |text, group| {
        text.line(&group.name(), &block(&group, test, options))
    })
}

/// The object of a group.
fn block(group: &Group, test: &LatencyTest, options: &Options) -> Object {
    let [other, fifo] = [Class::Other, Class::Fifo].map(|class| group.calls(class, test));
    let (other, fifo) = (other.as_ref(), fifo.as_ref());
    let exact = |calls: &Calls<'_>| calls.percentiles.map(spread);
    let sync = |calls: &Calls<'_>| sync(calls.served()).beside("M", &calls.served().migrated);
    let served = Served::of(group.cases.iter().copied());
    let mut block = self::sync(served)
        .line("other_ms", &other.map(times))
        .line("fifo_ms", &fifo.map(times))
        .line("otherdis", &other.and_then(exact))
        .line("fifodis", &fifo.and_then(exact))
        .line("M", &served.migrated)
        .line("othersync", &other.map(sync))
        .line("fifosync", &fifo.map(sync));
    for (figure, key) in FIGURES.iter().filter_map(|figure| Some((figure, figure.json?))) {
        let number = |calls: &Calls<'_>| figure.number(calls);
        let of_both =
            Object::inner().beside("other", &other.and_then(number)).beside("fifo", &fifo.and_then(number));
        block = block.line(key, &of_both);
    }
    if group.pair.is_some() {
        let reasons = group.failures();
        block = block.line("failed", &(!reasons.is_empty()).then(|| reasons.join("; ")));
        for (key, class) in [("otherraw_ms", Class::Other), ("fiforaw_ms", Class::Fifo)] {
            let times = raw(group, class);
            if options.raw && !times.is_empty() {
                block = block.line(key, &times);
            }
        }
    }
    block
}

fn raw(group: &Group, class: Class) -> Vec<f64> {
    let times =
        group.of_class(class).filter_map(|case| case.latency.as_ref()).flat_map(|latency| &latency.raw);
    times.map(|time| millis(*time)).collect()
}

/// A share with enough digits to show one call out of the most that a test can have.
fn plain(share: f64) -> f64 {
    (share * 1e9).round() / 1e9
}

/// The CPUs on which calls were served, under Android's one-letter keys.
fn sync(served: Served) -> Object {
    Object::inner()
        .beside("SYNC", &served.sync().map(SyncVerdict::name))
        .beside("S", &(served.untold == 0).then_some(served.same_cpu))
        .beside("I", &served.calls)
        .beside("R", &served.ratio().map(plain))
}

/// The times of a class.
fn times(calls: &Calls<'_>) -> Object {
    let misses = calls.total(|latency| latency.misses);
    Object::inner()
        .beside("avg", &calls.samples.mean().map(|mean| mean.round() / 1e6))
        .beside("wst", &millis(calls.samples.max))
        .beside("bst", &millis(calls.samples.min))
        .beside("miss", &misses)
        .beside("meetR", &met(misses, calls.served().calls).map(plain))
}

/// Our verdict on inheritance: `AS_EXPECTED` is less than Android requires, and as much as is promised here.
fn inherited(run: &Run, test: &LatencyTest, android: &InheritanceVerdict) -> &'static str {
    match (verdict::inheritance(run, test).grade, android) {
        (Grade::Bad, _) => "FAIL",
        (Grade::Note, _) => "UNKNOWN",
        (Grade::Good, InheritanceVerdict::Pass) => "PASS",
        (Grade::Good, _) => "AS_EXPECTED",
    }
}

/// The measured and expected inheritance, with one hop on each line.
fn inheritance(test: &LatencyTest, verdict: &InheritanceVerdict) -> Object {
    let found = &test.inheritance;
    let unknown = match verdict {
        InheritanceVerdict::Unknown { reason } => Some(reason),
        InheritanceVerdict::Pass | InheritanceVerdict::Fail => None,
    };
    Object::inner()
        .beside("calls", &found.calls)
        .beside("not_inherited", &test.pinged.is_none().then_some(found.not_inherited))
        .beside("unknown_reason", &unknown)
        .beside("measured", &found.measured.map(crate::Level::name))
        .beside("expected", &found.expected.map(crate::Level::name))
        .beside("expected_reason", &found.expected_reason)
        .beside("as_expected", &as_expected(found))
        .list("hops", found.hops.iter().map(hop))
}

fn hop(hop: &Hop) -> Object {
    let sched = |sched| sched_keys(Object::inner(), sched);
    Object::inner()
        .beside("scene", &hop.scene)
        .beside("caller", &sched(hop.caller))
        .beside("idle", &sched(hop.idle))
        .beside("served", &hop.served.map(sched))
        .beside("expected", &hop.expected.map(sched))
        .beside("as_expected", &hop.as_expected())
        .beside("note", &hop.note)
}

fn sched_keys(object: Object, sched: Sched) -> Object {
    object
        .beside("policy", &sched.policy_name().unwrap_or("???"))
        .beside("priority", &sched.priority)
        .beside("nice", &sched.nice)
}

/// One line of `-v` as an object.
fn role(role: &Role) -> Object {
    let Role { role, pid, tid, cpu, sched, transitional } = role;
    let thread =
        Object::inner().beside("role", role).beside("pid", pid).beside("tid", tid).beside("cpu", cpu);
    sched_keys(thread, *sched).beside("transitional", transitional)
}

/// Adds our keys for the test as a whole, beyond Android's.
fn ours(run: &Run, test: &LatencyTest, text: Object) -> Object {
    let first = run.cases.iter().find_map(|case| case.latency.as_ref()).filter(|_| test.sweep.is_none());
    let stop = |Miss { pair, class, iteration, took }| {
        Object::inner()
            .beside("pair", &pair)
            .beside("class", &Class::name(class))
            .beside("iteration", &iteration)
            .beside("took_ms", &millis(took))
    };
    let text = match &test.pinged {
        Some(name) => text.line("pinged", name),
        None => text,
    };
    let mut text = text
        .line("realtime", &test.realtime.map(|sched| sched_keys(Object::inner(), sched)))
        .beside("realtime_problem", &test.realtime_problem)
        .line("load", &first.map(|latency| latency.load.as_str()).filter(|load| !load.is_empty()))
        .beside("rate_hz", &first.and_then(|latency| latency.rate_hz))
        .beside("overloaded", &run.overloaded)
        .beside("overhead_us", &test.overhead.map(|cost| cost / 1e3))
        .line("flavour", &test.flavour)
        .beside("binderized", &test.binderized)
        .beside("driver", &run.driver.as_ref().map(|driver| driver.kind.name()))
        .beside("clock_unit", &unit_name(run))
        .beside("host_class", &run.host.class.name())
        .line("injected", &test.injected)
        .line("stopped_at", &test.stopped_at.map(stop));
    if test.sweep.is_none() {
        text = text.line("failed", &failures(run));
    }
    text.line("complete", &run.complete).beside("incomplete_reason", &run.incomplete_reason)
}

fn failures(run: &Run) -> Vec<Object> {
    let latency_cases = run.cases.iter().filter_map(|case| Some((case, case.latency.as_ref()?)));
    let of_cases = latency_cases.flat_map(|(case, latency)| {
        case.outcomes().filter_map(Outcome::failure).map(|reason| {
            Object::inner()
                .beside("pair", &latency.pair)
                .beside("class", &latency.class.name())
                .beside("reason", &reason)
        })
    });
    of_cases.collect()
}
