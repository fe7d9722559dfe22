//! Room: one report of one or several runs: what each test says, first what matters, then what it rests on.
//! Not here: measuring, reading files, pictures of single calls (they come as finished fragments).
//!
//! The HTML needs nothing but itself: no script, no font, no network.

mod chart;
mod environment;
mod html;
mod latency;
mod markdown;
mod number;
mod scale;
mod throughput;
mod verdicts;

pub use html::html;
pub use markdown::markdown;
pub use verdicts::{Grade, Verdict, look_first, summary, verdicts};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::checkup::{self, Check, Checkup};
use crate::schema::{Finding, Run, Severity};

/// What a report is made of.
#[derive(Debug, Default)]
pub struct Bundle {
    /// The runs, in the order in which they are told.
    pub runs: Vec<Entry>,
    /// What went wrong beside the tests that have a record.
    pub troubles: Vec<Trouble>,
    /// What the doctor found, if it was asked.
    pub checkup: Option<Checkup>,
    /// What slow calls waited for.
    pub causes: Vec<Fragment>,
}

/// A run and where it is kept.
#[derive(Debug)]
pub struct Entry {
    /// The record's file name, or another word for it.
    pub name: String,
    /// What it says.
    pub run: Run,
}

/// A test without a record, or something else that goes with a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// Which.
    pub test: String,
    /// [`Grade::Bad`] makes the run a failure.
    pub grade: Grade,
    /// The verdict, e.g. `NOT RUN`.
    pub words: String,
    /// Why.
    pub reason: String,
}

impl Trouble {
    /// A test that could not be run.
    pub fn not_run(test: impl Into<String>, reason: impl Into<String>) -> Trouble {
        Trouble { test: test.into(), grade: Grade::Bad, words: "NOT RUN".to_owned(), reason: reason.into() }
    }

    /// Something that this machine does not let be done, and that no result needs.
    pub fn not_here(test: impl Into<String>, reason: impl Into<String>) -> Trouble {
        Trouble {
            grade: Grade::Note,
            words: "not possible here".to_owned(),
            ..Trouble::not_run(test, reason)
        }
    }
}

/// The troubles of a run as a document, for the folder that it leaves.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Troubles {
    /// Always [`Troubles::SCHEMA`].
    pub schema: String,
    /// In the order in which they came.
    pub troubles: Vec<Trouble>,
}

impl Troubles {
    /// What such a document says it is.
    pub const SCHEMA: &'static str = "binderperf.troubles";

    /// These, as a document.
    pub fn to_json(troubles: &[Trouble]) -> String {
        let all = Troubles { schema: Troubles::SCHEMA.to_owned(), troubles: troubles.to_vec() };
        // Strings only: nothing in it can fail to be JSON.
        serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
    }

    /// A document read back; `None` if it is another.
    pub fn from_json(bytes: &[u8]) -> Option<Vec<Trouble>> {
        let read: Troubles = serde_json::from_slice(bytes).ok()?;
        (read.schema == Troubles::SCHEMA).then_some(read.troubles)
    }
}

/// A finished piece of a page: trusted, as it is put in unescaped.
#[derive(Debug)]
pub struct Fragment {
    /// Its heading, as text.
    pub title: String,
    /// Its rules for looks, once per page.
    pub style: String,
    /// Its HTML.
    pub html: String,
}

impl Bundle {
    /// What was found about machine and build: the doctor's words, or else those of the runs, each once, the
    /// gravest first.
    pub fn findings(&self) -> Vec<Finding> {
        let checks = || self.checkup.iter().flat_map(|checkup| checkup.checks.iter());
        // What the doctor looked at before anything ran is not to be told from the load of the tests themselves.
        let told =
            |id: &str| checks().any(|check| check.id == id && check.verdict != checkup::Verdict::Unknown);
        let from_runs = self.runs.iter().flat_map(|entry| entry.run.findings.iter().cloned());
        let from_runs = from_runs.filter(|finding| !told(&finding.id));
        let mut known: BTreeMap<String, Finding> = BTreeMap::new();
        for finding in checks().filter_map(Check::finding).chain(from_runs) {
            known.entry(finding.id.clone()).or_insert(finding);
        }
        let mut findings: Vec<Finding> = known.into_values().collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        findings
    }

    /// Those that spoil numbers.
    fn grave(&self) -> Vec<Finding> {
        self.findings().into_iter().filter(|finding| finding.severity >= Severity::Warning).collect()
    }
}

#[cfg(test)]
mod tests;
