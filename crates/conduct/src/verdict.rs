//! The exit statuses of verdicts.
//! Not here: judging (`record::verdict`, `bench::latency::verdict`).

use bench::latency::verdict::{Remark, Status, failures};
use console::{CommandResult, Failure, complain, exit, tell};
use record::verdict::{Grade, of_background, of_overload};
use record::{Inheritance, Run, Setting, Severity};

use crate::measure::completeness;

/// Prints a remark on a latency test.
pub(crate) fn print(remark: Remark) {
    match remark {
        Remark::Note(text) => tell(&text),
        Remark::Complaint(text) => complain(text),
    }
}

/// The exit status of a latency test.
pub(crate) fn latency_status(status: Status) -> u8 {
    match status {
        Status::Fine => exit::FINE,
        Status::Failed => exit::FAILED,
        Status::Unable => exit::UNABLE,
        Status::Internal => exit::INTERNAL,
    }
}

/// The exit status of the experiment `inversion`, of which inversion is expected or none; only a verdict that was
/// reached can be as expected.
pub fn inversion_status(run: &Run, is_expected: bool) -> u8 {
    let on = run.inversion().and_then(|experiment| experiment.row(Setting::On));
    let found = on.and_then(|row| row.inverted);
    if completeness(run) == exit::FINE && found == Some(is_expected) { exit::FINE } else { exit::FAILED }
}

/// The exit status of the experiment `background`.
pub fn background_status(run: &Run) -> u8 {
    let verdicts =
        run.background().into_iter().flat_map(|experiment| of_background(experiment, run.clock.unit));
    let fine = verdicts.map(|verdict| verdict.grade).max() == Some(Grade::Good);
    if fine { completeness(run) } else { completeness(run).max(exit::FAILED) }
}

/// The exit status of the experiment `overload`.
pub fn overload_status(run: &Run) -> u8 {
    let Some(experiment) = run.overload() else { return exit::INTERNAL };
    match (completeness(run), of_overload(experiment).grade) {
        (exit::FINE, Grade::Good) => exit::FINE,
        (exit::FINE, _) if experiment.realtime.is_none() => exit::UNABLE,
        _ => exit::FAILED,
    }
}

/// The exit status of a load that was carried out.
pub fn workload_status(run: &Run) -> u8 {
    if run.any_failed() { exit::FAILED } else { completeness(run) }
}

/// The exit status of a test whose cases are measured in rounds; `is_missed`: what makes a whole record a failure.
pub fn rounds_status(run: &Run, is_missed: bool) -> u8 {
    let is_whole = completeness(run) == exit::FINE && run.complete && !run.any_failed();
    if is_whole && !is_missed { exit::FINE } else { exit::FAILED }
}

/// The exit status of a latency sweep, which has no limits, so that only what could not be measured is a failure.
pub fn sweep_status(run: &Run) -> u8 {
    let mut status = latency_status(failures(run, &mut print));
    for finding in run.findings.iter().filter(|finding| finding.severity == Severity::Error) {
        complain(&finding.text);
        status = exit::FAILED;
    }
    status.max(completeness(run))
}

/// The exit status of the test `inheritance`.
///
/// # Errors
/// Something is not as expected, or not known; the error says what.
pub fn inheritance_status(found: &Inheritance) -> CommandResult {
    let wrong: Vec<&str> = found
        .hops
        .iter()
        .filter(|hop| hop.is_broken() || hop.as_expected() == Some(false))
        .map(|hop| hop.scene.as_str())
        .collect();
    if !wrong.is_empty() {
        let why = format!("not as expected of this driver: {}", wrong.join(", "));
        return Err(Failure::new(exit::FAILED, why));
    }
    if let Some(untried) = found.hops.iter().find(|hop| hop.served.is_none()) {
        let why = format!("{} could not be tried: {}", untried.scene, untried.note);
        return Err(Failure::new(exit::UNABLE, why));
    }
    if found.expected.is_none() {
        let why = format!("nothing to compare with: {}", found.expected_reason);
        return Err(Failure::new(exit::UNABLE, why));
    }
    Ok(exit::FINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Hop, Level, Sched};

    fn found(served: Option<Sched>, expected: Option<Sched>) -> Inheritance {
        let (caller, idle) = (Sched::fifo(99), Sched::other(4));
        let hop = Hop { scene: "call".to_owned(), caller, idle, served, expected, note: String::new() };
        let level = expected.map(|_| Level::Nice);
        Inheritance { hops: vec![hop], expected: level, ..Inheritance::default() }
    }

    #[test]
    fn the_status_tells_wrong_from_untried() {
        let (one, other) = (Some(Sched::other(0)), Some(Sched::other(4)));
        for (served, expected, want) in [
            (one, one, exit::FINE),
            (one, other, exit::FAILED),
            (None, one, exit::FAILED),
            (None, None, exit::UNABLE),
            (one, None, exit::UNABLE),
        ] {
            let status =
                inheritance_status(&found(served, expected)).unwrap_or_else(|failure| failure.status);
            assert_eq!(status, want, "{served:?} {expected:?}");
        }
    }
}
