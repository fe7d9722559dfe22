//! A report of one or several runs: the verdict of each test first, then the numbers behind it.
//! Not here: measuring, reading files, pictures of single calls (they come as finished fragments).
//!
//! The HTML is self-contained: no script, no font, no network.

mod clusters;
mod environment;
mod html;
mod latency;
mod markdown;
mod reference;
mod throughput;
mod verdicts;

pub(crate) use html::STYLE;
pub use html::html;
pub use markdown::markdown;
pub use verdicts::{json, look_first, summary, verdicts};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::table::Table;
use super::{imported, latency::pairs};
use crate::checkup::{self, Check, Checkup};
use crate::experiments::{background, overload};
use crate::schema::{Finding, Measured, Run, Severity};
use crate::verdict::Grade;

/// The content of a report.
#[derive(Debug, Default)]
pub struct Bundle {
    /// The runs, in the order of the report.
    pub runs: Vec<Entry>,
    /// Problems that concern no record.
    pub troubles: Vec<RunProblem>,
    /// The doctor's report, if it was requested.
    pub checkup: Option<Checkup>,
    /// Pictures and causes of slow calls.
    pub causes: Vec<Fragment>,
}

/// A run and the name of its record.
#[derive(Debug)]
pub struct Entry {
    /// The record's file name, or another name for it.
    pub name: String,
    /// The record.
    pub run: Run,
}

/// A problem beside the records of a run, such as a test without a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProblem {
    /// The test.
    pub test: String,
    /// The grade; [`Grade::Bad`] makes the run a failure.
    pub grade: Grade,
    /// The verdict, e.g. `NOT RUN`.
    pub words: String,
    /// Expected state; empty in older documents.
    #[serde(default)]
    pub expected: String,
    /// The reason.
    pub reason: String,
}

impl RunProblem {
    /// The problem of a test that could not run.
    pub fn not_run(test: impl Into<String>, reason: impl Into<String>) -> RunProblem {
        RunProblem {
            test: test.into(),
            grade: Grade::Bad,
            words: "NOT RUN".to_owned(),
            expected: "it is run".to_owned(),
            reason: reason.into(),
        }
    }

    /// A restriction of this machine that no result depends on.
    pub fn not_here(test: impl Into<String>, reason: impl Into<String>) -> RunProblem {
        RunProblem {
            grade: Grade::Note,
            words: "not possible here".to_owned(),
            ..RunProblem::not_run(test, reason)
        }
    }
}

/// The problems of a run as a document in its output folder.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct RunProblems {
    /// Always [`RunProblems::SCHEMA`].
    pub schema: String,
    /// The problems, in the order in which they occurred.
    pub troubles: Vec<RunProblem>,
}

impl RunProblems {
    /// The value of `schema`.
    pub const SCHEMA: &'static str = "binderperf.troubles";

    /// Writes these problems as a document.
    pub fn to_json(troubles: &[RunProblem]) -> String {
        let all = RunProblems { schema: RunProblems::SCHEMA.to_owned(), troubles: troubles.to_vec() };
        // Cannot fail: strings only.
        serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
    }

    /// Parses a document; `None` if it is of another kind.
    pub fn from_json(bytes: &[u8]) -> Option<Vec<RunProblem>> {
        let read: RunProblems = serde_json::from_slice(bytes).ok()?;
        (read.schema == RunProblems::SCHEMA).then_some(read.troubles)
    }
}

/// A finished piece of a page. Trusted: inserted without escaping.
#[derive(Debug, Serialize)]
pub struct Fragment {
    /// Name of its anchor.
    pub anchor: String,
    /// Its heading, as text.
    pub title: String,
    /// Its CSS rules, inserted once per page.
    pub style: String,
    /// HTML that it refers to, inserted once per page.
    pub definitions: String,
    /// Its HTML.
    pub html: String,
}

impl Bundle {
    /// Findings about machine and build without duplicates, most severe first: the doctor's, and those of the
    /// runs on subjects that the doctor could not check.
    pub fn findings(&self) -> Vec<Finding> {
        let checks = || self.checkup.iter().flat_map(|checkup| checkup.checks.iter());
        // The doctor checked before the tests; a later finding of a run may be the load of the tests themselves.
        let told =
            |id: &str| checks().any(|check| check.id == id && check.verdict != checkup::Verdict::Unknown);
        let from_runs = self.runs.iter().flat_map(|entry| entry.run.findings.iter().cloned());
        let from_runs = from_runs.filter(|finding| !told(&finding.id));
        let mut known: BTreeMap<String, Finding> = BTreeMap::new();
        for finding in checks().filter_map(Check::finding).chain(from_runs) {
            let known = known.entry(finding.id.clone()).or_insert_with(|| finding.clone());
            if finding.severity > known.severity {
                *known = finding;
            }
        }
        let mut findings: Vec<Finding> = known.into_values().collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        findings
    }

    /// Findings that spoil numbers.
    fn grave(&self) -> Vec<Finding> {
        self.findings().into_iter().filter(|finding| finding.severity >= Severity::Warning).collect()
    }
}

/// The numbers of a run; `None` if it has no such table.
fn numbers(run: &Run) -> Option<Table> {
    let table = match &run.measured {
        _ if run.imported.is_some() => imported::table(run),
        Measured::Inversion(_) => return None,
        Measured::Latency(test) if test.sweep.is_some() => return None,
        Measured::Latency(test) => pairs(run, test),
        Measured::Overload(experiment) => overload::text::table(run, experiment),
        Measured::Background(experiment) => background::text::table(run, experiment),
        Measured::Cases => throughput::table(run),
    };
    Some(table).filter(|table| !table.is_empty())
}

/// The driver of a run in words.
fn driver(run: &Run) -> String {
    let none = if run.imported.is_some() { "driver not known" } else { "no driver" };
    run.driver.as_ref().map_or(none.to_owned(), |driver| format!("{} driver", driver.kind.name()))
}

#[cfg(test)]
mod tests;
