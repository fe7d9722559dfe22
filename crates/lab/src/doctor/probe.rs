//! Room: what a probe is, and what it may say.
//! Not here: the probes, one file for each area.

use record::Evidence;
use record::checkup::{Check, Verdict};

use super::snapshot::{Snapshot, Unread, shorten};

/// The longest piece of a file that is shown as evidence, in characters.
const MOST_EVIDENCE: usize = 160;

/// One thing that affects the numbers, and how it is looked at: a pure function of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Its stable name.
    pub id: &'static str,
    /// What it looks at.
    pub looks_at: &'static str,
    /// Where it is documented what it goes by.
    pub source: &'static str,
    /// A command that shows the same to a person.
    pub proof: &'static str,
    /// The look itself.
    pub(super) look: fn(&Snapshot) -> Result<Said, Unread>,
}

/// What a probe says.
#[derive(Clone, Debug)]
pub(super) struct Said {
    verdict: Verdict,
    text: String,
    effect: Option<String>,
    fix: Option<String>,
    evidence: Vec<Evidence>,
}

impl Said {
    /// It found this to be so bad.
    pub(super) fn new(verdict: Verdict, text: impl Into<String>) -> Self {
        Self { verdict, text: text.into(), effect: None, fix: None, evidence: Vec::new() }
    }

    /// Nothing is wrong.
    pub(super) fn fine(text: impl Into<String>) -> Self {
        Self::new(Verdict::Ok, text)
    }

    /// Worth knowing.
    pub(super) fn info(text: impl Into<String>) -> Self {
        Self::new(Verdict::Info, text)
    }

    /// The numbers may be off.
    pub(super) fn warning(text: impl Into<String>) -> Self {
        Self::new(Verdict::Warning, text)
    }

    /// The numbers are not to be trusted.
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self::new(Verdict::Error, text)
    }

    /// What it does to the numbers.
    pub(super) fn effect(self, effect: impl Into<String>) -> Self {
        Self { effect: Some(effect.into()), ..self }
    }

    /// What to do about it.
    pub(super) fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }

    /// The file that says so, by its path without the first slash, and what it says.
    pub(super) fn seen(self, path: &str, says: impl AsRef<str>) -> Self {
        self.because(&format!("/{path}"), says)
    }

    /// What else says so.
    pub(super) fn because(mut self, source: &str, says: impl AsRef<str>) -> Self {
        let says = shorten(says.as_ref(), MOST_EVIDENCE);
        self.evidence.push(Evidence { source: source.to_owned(), says });
        self
    }
}

impl Probe {
    /// Looks at a machine.
    #[must_use]
    pub fn look(&self, snapshot: &Snapshot) -> Check {
        let said = (self.look)(snapshot).unwrap_or_else(|why| Said::new(Verdict::Unknown, format!("{why}")));
        Check {
            id: self.id.to_owned(),
            looks_at: self.looks_at.to_owned(),
            verdict: said.verdict,
            text: said.text,
            effect: said.effect,
            fix: said.fix,
            evidence: said.evidence,
            proof: self.proof.to_owned(),
        }
    }
}
