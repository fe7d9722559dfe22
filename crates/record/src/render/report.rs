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

use crate::checkup::{Check, Checkup};
use crate::schema::{Finding, Run, Severity};

/// What a report is made of.
#[derive(Debug, Default)]
pub struct Bundle {
    /// The runs, in the order in which they are told.
    pub runs: Vec<Entry>,
    /// Tests that could not be run.
    pub missing: Vec<Missing>,
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

/// A test that could not be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Which.
    pub test: String,
    /// Why.
    pub reason: String,
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
        let from_doctor =
            self.checkup.iter().flat_map(|checkup| checkup.checks.iter().filter_map(Check::finding));
        let from_runs = self.runs.iter().flat_map(|entry| entry.run.findings.iter().cloned());
        let mut known: BTreeMap<String, Finding> = BTreeMap::new();
        for finding in from_doctor.chain(from_runs) {
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
