//! Verdicts on a latency test: broken pairs, deadlines, same-CPU placement.
//! Not here: inherited priorities (`crate::experiments::inheritance`), throughput (`crate::render::report`).

use super::from_host::runnable;
use super::judged::{Grade, Verdict, by_severity};
use super::lost::of_lost_broker;
use super::{GOOD_ABOVE, Served, SyncVerdict, calls, numbers};
use crate::experiments::inheritance::verdict::inheritance;
use crate::schema::{Case, Class, DriverKind, HostClass, LatencyTest, Recorder, Run, SavedCall};

/// All verdicts on a latency test, the most severe first. The points of a sweep have deadlines and placements of their
/// own, which its tables show.
pub fn of_latency(run: &Run, test: &LatencyTest) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = of_lost_broker(run).or_else(|| failure(run)).into_iter().collect();
    if test.sweep.is_none() {
        verdicts.push(deadline(run, test));
    }
    if test.pinged.is_none() {
        verdicts.push(inheritance(run, test));
    }
    if test.sweep.is_none() {
        verdicts.extend(sync(run));
    }
    by_severity(verdicts.into_iter().map(|verdict| runnable(verdict, &run.host)).collect())
}

/// The verdict on pairs that broke.
fn failure(run: &Run) -> Option<Verdict> {
    let why = run.cases.iter().find_map(Case::failure)?;
    let failed = run.cases.iter().filter(|case| case.failure().is_some()).count();
    let measured = format!("{failed} of {} callers stopped early", run.cases.len());
    let verdict = Verdict::good("calls", "FAILED").held_against("every call returns", measured);
    let stopped =
        run.latency().and_then(|test| test.recorder.as_ref()).and_then(|recorder| recorder.stopped.as_ref());
    let next = match stopped {
        Some(stopped) => {
            format!("`binderperf explain {}`, which says what the pair waited for", stopped.file)
        }
        None => "binderperf conformance, which tests each promise of the driver".to_owned(),
    };
    Some(verdict.because(Grade::Bad, why).then(next))
}

/// The verdict on missed deadlines. A miss is no failure: the acceptable number depends on the use.
fn deadline(run: &Run, test: &LatencyTest) -> Verdict {
    let latencies = || run.cases.iter().filter_map(|case| case.latency.as_ref());
    let misses = latencies().map(|latency| latency.misses).fold(0, u64::saturating_add);
    let bubbles = latencies().map(|latency| latency.bubbles).fold(0, u64::saturating_add);
    let limit = run.clock.unit.show_round(test.deadline as f64);
    let words = match misses {
        0 => "deadline met".to_owned(),
        1 => "1 deadline missed".to_owned(),
        _ => format!("{misses} deadlines missed"),
    };
    let expected = format!("no call over {limit}");
    let verdict = Verdict::good("deadline", words).held_against(expected, times(run, test, misses));
    if misses == 0 {
        return verdict;
    }
    let ran = "a side computed for most of the time";
    let host = if run.host.class == HostClass::Bare { "" } else { ", or the host took away its CPU" };
    let waited = "neither side ran for most of the time but waited for a CPU, a wake-up or a lock";
    let mut why = match bubbles {
        _ if test.pinged.is_some() => "a trace says whether a side computed or waited".to_owned(),
        0 => format!("{ran}{host}"),
        _ if bubbles == misses => waited.to_owned(),
        _ => format!("in {bubbles} {waited}; in the others {ran}{host}"),
    };
    if run.host.class == HostClass::Tcg {
        why = "this machine is emulated, and its times are not real".to_owned();
    } else if run.overloaded {
        why = format!("there are more pairs than CPUs, so calls queue for a CPU; {why}");
    }
    if let Some(worst) = worst_miss(test) {
        let (class, took) = (worst.call.class.name(), run.clock.unit.show(worst.call.took as f64));
        let apart = test.recorder.as_ref().is_some_and(Recorder::is_apart);
        let other = if apart { ", of the calls with the recorder" } else { "" };
        let why = format!("{class} {took}{other}: {}", worst.cause);
        return verdict
            .because(Grade::Note, why)
            .then(format!("binderperf trace analyze {} --html miss.html", worst.file));
    }
    if let Some(reason) = test.recorder.as_ref().and_then(|recorder| recorder.missing.as_ref()) {
        why = format!("{why}; nothing recorded which: {reason}");
    }
    let record = format!(
        "binderperf trace record --html miss.html -- latency {} --trace -i {} -w {}",
        test.word(),
        test.iterations.max(5000),
        test.pairs
    );
    verdict.because(Grade::Note, why).then(record)
}

/// The worst call over the deadline that a flight recorder saved.
fn worst_miss(test: &LatencyTest) -> Option<&SavedCall> {
    let saved = test.recorder.iter().flat_map(|recorder| &recorder.saved);
    saved.filter(|saved| saved.missed).max_by_key(|saved| saved.call.took)
}

/// The times of both classes, and how many were over the deadline.
fn times(run: &Run, test: &LatencyTest, misses: u64) -> String {
    let show = |time: u64| run.clock.unit.show(time as f64);
    let mut words = Vec::new();
    for class in Class::BOTH {
        let cases = run.cases.iter().filter(|case| case.latency.as_ref().is_some_and(|it| it.class == class));
        let made = cases.filter_map(numbers).filter(|numbers| numbers.iterations > 0);
        let Some(worst) = made.map(|numbers| numbers.samples.max).max() else { continue };
        let p99 = test.all.iter().find(|all| all.class == class && class == Class::Fifo);
        let p99 = p99.map_or(String::new(), |all| format!("p99 {}, ", show(all.percentiles.p99)));
        words.push(format!("{} {p99}worst {}", class.name(), show(worst)));
    }
    let made = run.cases.iter().map(calls).fold(0, u64::saturating_add);
    words.push(format!("{misses} of {made} over {}", run.clock.unit.show_round(test.deadline as f64)));
    match &test.recorder {
        Some(recorder) if recorder.is_in_figures() => words.push("all with the flight recorder".to_owned()),
        Some(recorder) if recorder.is_apart() => words.push("all without the flight recorder".to_owned()),
        _ => {}
    }
    words.join(", ")
}

/// The verdict on placement; `None` without calls whose callers stayed on their CPU.
fn sync(run: &Run) -> Option<Verdict> {
    let served = Served::of(&run.cases);
    let (found, ratio) = (served.sync()?, served.ratio()?);
    let measured = format!("{:.0} % of the calls were served on their caller's CPU", (ratio * 100.0).floor());
    let embedded = run.driver.as_ref().is_some_and(|driver| driver.kind == DriverKind::Embedded);
    let share = GOOD_ABOVE * 100.0;
    let expected = match embedded {
        true => "no promise".to_owned(),
        false => format!("more than {share:.0} %"),
    };
    let verdict = Verdict::good("sync", format!("SYNC {}", found.name())).held_against(expected, measured);
    if found == SyncVerdict::Good {
        return Some(verdict);
    }
    let means = "most calls were served on another CPU than their caller's";
    let one_cpu = "binderperf latency hwbinder --cpus 0,0 shows both sides on one CPU";
    Some(match embedded {
        true => verdict
            .because(
                Grade::Good,
                format!(
                    "{means}; no fault here: the embedded driver's wake-ups carry no sync hint, and two sides that spin \
                     on two CPUs are faster than on one"
                ),
            )
            .then(one_cpu),
        false => verdict
            .because(
                Grade::Note,
                format!("{means}: the scheduler did not follow the driver's sync hint, and waking another CPU costs time"),
            )
            .then(one_cpu),
    })
}

#[cfg(test)]
mod tests;
