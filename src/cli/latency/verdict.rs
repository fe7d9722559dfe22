//! The verdict on a latency test: its exit status, and on stderr the reason if it is not 0.
//! Not here: judging (`record::verdict`).

use record::verdict::{Grade, InheritanceVerdict, as_expected, inheritance};
use record::{Hop, HostClass, Inheritance, LatencyTest, Level, Outcome, Run};

use super::super::{complain, exit, note};
use super::Expected;

/// Reports the pairs that failed; returns the exit status.
pub(super) fn failures(run: &Run) -> u8 {
    let mut told = Vec::new();
    for case in &run.cases {
        // A failure concerns the calls of both classes of a pair, and is reported once.
        let pair = case.name.rsplit_once('/').map_or(case.name.as_str(), |(pair, _class)| pair);
        for repetition in &case.repetitions {
            if let Outcome::Failed { reason, .. } = &repetition.outcome
                && !told.contains(&(pair, reason))
            {
                complain(format_args!("{pair}: {reason}"));
                told.push((pair, reason));
            }
        }
    }
    if told.is_empty() { exit::FINE } else { exit::FAILED }
}

/// Reports failures and an early end, without a verdict; returns the exit status.
pub(super) fn trouble(run: &Run) -> u8 {
    run.latency().map_or(exit::INTERNAL, |test| failures(run).max(stopped(run, test)))
}

/// Reports the verdict on a run with this expected inheritance; returns the exit status.
pub(super) fn tell(run: &Run, expected: Expected) -> u8 {
    remark(run);
    let Some(test) = run.latency() else { return exit::INTERNAL };
    let ended = trouble(run);
    let inherited = match expected {
        Expected::Rt => androids(test),
        Expected::Nice => level(test, Some(Level::Nice)),
        Expected::None => level(test, Some(Level::None)),
        Expected::Driver => promised(run, test),
    };
    if expected != Expected::Driver {
        // Reported, without an effect on the status.
        let _ = hops(test);
    }
    // A failure takes precedence over an inconclusive verdict.
    if ended == exit::FINE { inherited } else { ended }
}

/// Reports what makes the times of this run doubtful.
pub(super) fn remark(run: &Run) {
    if run.overloaded {
        note("More pairs than CPUs: the machine is overloaded, and latency tells of the queue.\n");
    }
    if run.host.class == HostClass::Tcg {
        note("Emulated machine: times and misses are not real; ratios within this run are.\n");
    }
}

/// The verdict by what this driver, node and setting promise.
fn promised(run: &Run, test: &LatencyTest) -> u8 {
    let verdict = inheritance(run, test);
    let why = verdict.explanation().map_or(String::new(), |why| format!(": {why}"));
    match verdict.grade {
        Grade::Good => {
            note(format_args!("{}{why}\n", verdict.words));
            exit::FINE
        }
        Grade::Note => {
            complain(format_args!("{}{why}", verdict.words));
            exit::UNABLE
        }
        Grade::Bad => {
            complain(format_args!("{}{why}", verdict.words));
            exit::FAILED
        }
    }
}

fn stopped(run: &Run, test: &LatencyTest) -> u8 {
    match (&test.stopped_at, &run.incomplete_reason) {
        (Some(miss), _) => {
            let log = bench::latency::trace_log();
            let line = log.as_ref().map_or(String::new(), |log| format!("log:{}\n", log.display()));
            note(format_args!("deadline triggered: halt & stop trace\n{line}"));
            let (pair, class, us) = (miss.pair, miss.class.name(), miss.took / 1000);
            note(format_args!("pair {pair} {class} iteration {}: {us} us\n", miss.iteration));
            if let Some(log) = log {
                note(format_args!("what it waited for: binderperf trace analyze {}\n", log.display()));
            }
            exit::FAILED
        }
        (None, Some(reason)) => {
            complain(format_args!("{reason}; what was measured until then is kept"));
            exit::FAILED
        }
        (None, None) => exit::FINE,
    }
}

/// The verdict of Android's tools.
fn androids(test: &LatencyTest) -> u8 {
    match InheritanceVerdict::of(test) {
        InheritanceVerdict::Pass => exit::FINE,
        InheritanceVerdict::Fail => {
            let Inheritance { calls, not_inherited, measured, .. } = &test.inheritance;
            let known = if as_expected(&test.inheritance) == Some(true) && *measured != Some(Level::Rt) {
                let level = measured.map_or("unknown", Level::name);
                format!(
                    "; {level} is what this driver is known for, which --expect driver takes for a success"
                )
            } else {
                String::new()
            };
            complain(format_args!(
                "inheritance FAIL: {not_inherited} of {calls} calls were served at another priority than their caller's{known}"
            ));
            exit::FAILED
        }
        InheritanceVerdict::Unknown { reason } => {
            complain(format_args!("no verdict on inheritance: {reason}"));
            exit::UNABLE
        }
    }
}

/// The verdict by the measured level; for `rt`, by the test's own calls as well.
fn level(test: &LatencyTest, wanted: Option<Level>) -> u8 {
    let inheritance = &test.inheritance;
    let name = |level: Option<Level>| level.map_or("unknown", Level::name);
    if wanted.is_none() || inheritance.measured != wanted {
        complain(format_args!("inheritance is {}, not {}", name(inheritance.measured), name(wanted)));
        return exit::FAILED;
    }
    let lost = inheritance.not_inherited;
    if wanted == Some(Level::Rt) && lost > 0 {
        complain(format_args!(
            "{lost} of {} calls did not inherit their caller's priority",
            inheritance.calls
        ));
        return exit::FAILED;
    }
    exit::FINE
}

/// Reports single situations that differ from what the driver is known for.
fn hops(test: &LatencyTest) -> u8 {
    let strange = |hop: &&Hop| hop.as_expected() == Some(false) || hop.is_broken();
    let strange: Vec<&str> =
        test.inheritance.hops.iter().filter(strange).map(|hop| hop.scene.as_str()).collect();
    if strange.is_empty() {
        return exit::FINE;
    }
    complain(format_args!("served otherwise than this driver is known for: {}", strange.join(", ")));
    exit::FAILED
}
