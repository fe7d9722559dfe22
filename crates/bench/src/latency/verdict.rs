//! The verdict on a latency test: how it ended, and the reasons as remarks.
//! Not here: what a driver promises (`record::verdict`), printing remarks (the command line).

use record::verdict::{Grade, InheritanceVerdict, as_expected, inheritance};
use record::{Hop, HostClass, Inheritance, LatencyTest, Level, Outcome, Run};

/// How a test ended, the better first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Good: as expected.
    Fine,
    /// Its verdict is a failure.
    Failed,
    /// There is no verdict.
    Unable,
    /// It is no record of a latency test.
    Internal,
}

/// Something to be told, without the end of its last line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Remark {
    /// Facts that the user should know.
    Note(String),
    /// The reason of a failure.
    Complaint(String),
}

/// Takes remarks, in their order.
pub type Tell<'t> = &'t mut dyn FnMut(Remark);

/// The inheritance that is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Real-time priorities, as Android's tools do.
    Rt,
    /// Nice values.
    Nice,
    /// No priority.
    None,
    /// Promise of the driver, the node and the setting.
    Driver,
}

fn note(tell: Tell<'_>, text: String) {
    tell(Remark::Note(text));
}

fn complain(tell: Tell<'_>, text: String) {
    tell(Remark::Complaint(text));
}

/// Tells the pairs that failed.
pub fn failures(run: &Run, tell: Tell<'_>) -> Status {
    let mut told = Vec::new();
    for case in &run.cases {
        // A failure concerns the calls of both classes of a pair, and is reported once.
        let pair = case.name.rsplit_once('/').map_or(case.name.as_str(), |(pair, _class)| pair);
        for repetition in &case.repetitions {
            if let Outcome::Failed { reason, .. } = &repetition.outcome
                && !told.contains(&(pair, reason))
            {
                complain(tell, format!("{pair}: {reason}"));
                told.push((pair, reason));
            }
        }
    }
    if told.is_empty() { Status::Fine } else { Status::Failed }
}

/// Tells failures and an early end, without a verdict.
pub fn trouble(run: &Run, tell: Tell<'_>) -> Status {
    let Some(test) = run.latency() else { return Status::Internal };
    failures(run, tell).max(stopped(run, test, tell))
}

/// Tells the verdict on a run with this expected inheritance.
pub fn judge(run: &Run, expected: Expected, tell: Tell<'_>) -> Status {
    remark(run, tell);
    let Some(test) = run.latency() else { return Status::Internal };
    let ended = trouble(run, tell);
    let inherited = match expected {
        Expected::Rt => androids(test, tell),
        Expected::Nice => level(test, Some(Level::Nice), tell),
        Expected::None => level(test, Some(Level::None), tell),
        Expected::Driver => promised(run, test, tell),
    };
    if expected != Expected::Driver {
        // Reported, without an effect on the status.
        hops(test, tell);
    }
    // A failure takes precedence over an inconclusive verdict.
    if ended == Status::Fine { inherited } else { ended }
}

/// Tells what makes the times of this run doubtful.
pub fn remark(run: &Run, tell: Tell<'_>) {
    if run.overloaded {
        note(
            tell,
            "More pairs than CPUs: the machine is overloaded, and latency tells of the queue.".to_owned(),
        );
    }
    if run.host.class == HostClass::Tcg {
        note(tell, "Emulated machine: times and misses are not real; ratios within this run are.".to_owned());
    }
}

/// The verdict by what this driver, node and setting promise.
fn promised(run: &Run, test: &LatencyTest, tell: Tell<'_>) -> Status {
    let verdict = inheritance(run, test);
    let why = verdict.explanation().map_or(String::new(), |why| format!(": {why}"));
    match verdict.grade {
        Grade::Good => {
            note(tell, format!("{}{why}", verdict.words));
            Status::Fine
        }
        Grade::Note => {
            complain(tell, format!("{}{why}", verdict.words));
            Status::Unable
        }
        Grade::Bad => {
            complain(tell, format!("{}{why}", verdict.words));
            Status::Failed
        }
    }
}

fn stopped(run: &Run, test: &LatencyTest, tell: Tell<'_>) -> Status {
    match (&test.stopped_at, &run.incomplete_reason) {
        (Some(miss), _) => {
            let log = super::trace_log();
            let line = log.as_ref().map_or(String::new(), |log| format!("\nlog:{}", log.display()));
            note(tell, format!("deadline triggered: halt & stop trace{line}"));
            let (pair, class, us) = (miss.pair, miss.class.name(), miss.took / 1000);
            note(tell, format!("pair {pair} {class} iteration {}: {us} us", miss.iteration));
            if let Some(log) = log {
                note(tell, format!("what it waited for: binderperf trace analyze {}", log.display()));
            }
            Status::Failed
        }
        (None, Some(reason)) => {
            complain(tell, format!("{reason}; what was measured until then is kept"));
            Status::Failed
        }
        (None, None) => Status::Fine,
    }
}

/// The verdict of Android's tools.
fn androids(test: &LatencyTest, tell: Tell<'_>) -> Status {
    match InheritanceVerdict::of(test) {
        InheritanceVerdict::Pass => Status::Fine,
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
            complain(
                tell,
                format!(
                    "inheritance FAIL: {not_inherited} of {calls} calls were served at another priority than their caller's{known}"
                ),
            );
            Status::Failed
        }
        InheritanceVerdict::Unknown { reason } => {
            complain(tell, format!("no verdict on inheritance: {reason}"));
            Status::Unable
        }
    }
}

/// The verdict by the measured level; for `rt`, by the test's own calls as well.
fn level(test: &LatencyTest, wanted: Option<Level>, tell: Tell<'_>) -> Status {
    let inheritance = &test.inheritance;
    let name = |level: Option<Level>| level.map_or("unknown", Level::name);
    if wanted.is_none() || inheritance.measured != wanted {
        complain(tell, format!("inheritance is {}, not {}", name(inheritance.measured), name(wanted)));
        return Status::Failed;
    }
    let lost = inheritance.not_inherited;
    if wanted == Some(Level::Rt) && lost > 0 {
        complain(
            tell,
            format!("{lost} of {} calls did not inherit their caller's priority", inheritance.calls),
        );
        return Status::Failed;
    }
    Status::Fine
}

/// Tells single situations that differ from what the driver is known for.
fn hops(test: &LatencyTest, tell: Tell<'_>) {
    let strange = |hop: &&Hop| hop.as_expected() == Some(false) || hop.is_broken();
    let strange: Vec<&str> =
        test.inheritance.hops.iter().filter(strange).map(|hop| hop.scene.as_str()).collect();
    if !strange.is_empty() {
        complain(tell, format!("served otherwise than this driver is known for: {}", strange.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stored run, and the text about it.
    fn judged(change: impl FnOnce(&mut Run), expected: Expected) -> (Status, Vec<Remark>) {
        let text = include_bytes!("../../../../tests/golden/latency.json");
        let mut run = Run::from_json(text).expect("a record");
        change(&mut run);
        let mut remarks = Vec::new();
        let status = judge(&run, expected, &mut |remark| remarks.push(remark));
        (status, remarks)
    }

    #[test]
    fn a_pair_that_failed_is_told_once_and_fails_the_test() {
        let fail = |run: &mut Run| {
            for repetition in run.cases.iter_mut().flat_map(|case| &mut case.repetitions) {
                repetition.outcome = Outcome::Failed { reason: "it hangs".to_owned(), partial: None };
            }
        };
        let (status, remarks) = judged(fail, Expected::Driver);
        let told =
            |remark: &&Remark| matches!(remark, Remark::Complaint(text) if text.ends_with(": it hangs"));
        let pairs = remarks.iter().filter(told).collect::<std::collections::HashSet<_>>().len();
        assert_eq!((status, remarks.iter().filter(told).count()), (Status::Failed, pairs), "{remarks:?}");
        assert!(pairs > 0, "{remarks:?}");
    }

    #[test]
    fn a_level_that_was_not_measured_is_a_failure_that_names_both() {
        let (status, remarks) = judged(
            |run| run.measured.latency_mut().expect("one").inheritance.measured = None,
            Expected::Nice,
        );
        assert_eq!(status, Status::Failed);
        assert!(
            remarks.contains(&Remark::Complaint("inheritance is unknown, not nice".to_owned())),
            "{remarks:?}"
        );
    }

    #[test]
    fn an_early_end_and_an_emulated_machine_are_told() {
        let (status, remarks) = judged(
            |run| {
                run.host.class = HostClass::Tcg;
                run.incomplete_reason = Some("stopped by SIGINT".to_owned());
            },
            Expected::Driver,
        );
        let has = |words: &str| {
            remarks.iter().any(|remark| {
                let (Remark::Note(text) | Remark::Complaint(text)) = remark;
                text.contains(words)
            })
        };
        assert!(
            status >= Status::Failed && has("Emulated machine") && has("stopped by SIGINT; what"),
            "{remarks:?}"
        );
    }
}
