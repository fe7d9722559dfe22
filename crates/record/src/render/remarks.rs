//! Remarks without which the figures of a run mislead: failures of its cases, warnings, findings, an early end.
//! Not here: verdicts (`crate::verdict`).

use crate::schema::{Case, HostClass, Outcome, Run, Severity};

/// The failure of a repetition or why it was skipped; `None` if it was measured.
pub(crate) fn trouble(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Measured(_) => None,
        Outcome::Skipped { reason } => Some(format!("SKIPPED: {reason}")),
        Outcome::Failed { reason, partial: Some(numbers) } => {
            Some(format!("FAILED after {} iterations: {reason}", numbers.iterations))
        }
        Outcome::Failed { reason, partial: None } => Some(format!("FAILED: {reason}")),
    }
}

/// The text in place of a case's numbers.
pub(crate) fn without_numbers(case: Option<&Case>) -> String {
    case.and_then(|case| case.outcomes().find_map(trouble)).unwrap_or_else(|| "not run".to_owned())
}

/// Reasons why the times are not reliable.
pub(crate) fn warnings(run: &Run) -> Vec<String> {
    let mut lines = Vec::new();
    if run.host.class == HostClass::Tcg {
        lines.push("WARNING emulated machine: timings are not real; ratios within this run are".into());
    }
    if run.overloaded {
        lines.push("WARNING more ran at once than there are CPUs: times include waiting for a CPU".into());
    }
    if run.tool.debug_assertions {
        lines.push("WARNING built with debug assertions: not for comparing".into());
    }
    lines
}

/// Findings that spoil numbers, each with its remedy.
pub(crate) fn findings(run: &Run) -> Vec<String> {
    let grave = run.findings.iter().filter(|finding| finding.severity >= Severity::Warning);
    grave
        .map(|finding| match &finding.fix {
            Some(fix) => format!("WARNING {} ({fix})", finding.text),
            None => format!("WARNING {}", finding.text),
        })
        .collect()
}
