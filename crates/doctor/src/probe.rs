//! The probe type and its result.
//! Not here: the probes, one file per area.

use std::fmt;

use record::Evidence;
use record::checkup::{Check, Verdict};

use super::snapshot::{Snapshot, Unavailable, shorten};

/// Longest evidence text, in characters.
const MOST_EVIDENCE: usize = 160;

/// Why a probe is asked: the grounds on which its subject affects measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grounds {
    /// An effect that was measured.
    Measured {
        /// The effect.
        effect: &'static str,
        /// A command that measures it.
        command: &'static str,
    },
    /// A published source that tells of the effect.
    Cited {
        /// The source: a file of the kernel, a manual page, a paper.
        source: &'static str,
        /// Statement of the source, in our words.
        says: &'static str,
    },
}

impl fmt::Display for Grounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured { effect, command } => write!(f, "measured with {command}: {effect}"),
            Self::Cited { source, says } => write!(f, "{source}: {says}"),
        }
    }
}

/// A check of one thing that affects measurements: a pure function of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Stable identifier.
    pub id: &'static str,
    /// Subject.
    pub looks_at: &'static str,
    /// A command that shows the same to a user.
    pub proof: &'static str,
    /// Why it is asked.
    pub grounds: Grounds,
    /// The check.
    pub(super) look: fn(&Snapshot) -> Result<ProbeResult, Unavailable>,
}

/// Result of a probe.
#[derive(Clone, Debug)]
pub(super) struct ProbeResult {
    verdict: Verdict,
    text: String,
    effect: Option<String>,
    fix: Option<String>,
    evidence: Vec<Evidence>,
}

impl ProbeResult {
    /// A result with this verdict.
    pub(super) fn new(verdict: Verdict, text: impl Into<String>) -> Self {
        Self { verdict, text: text.into(), effect: None, fix: None, evidence: Vec::new() }
    }

    /// No problem.
    pub(super) fn fine(text: impl Into<String>) -> Self {
        Self::new(Verdict::Ok, text)
    }

    /// Worth knowing.
    pub(super) fn info(text: impl Into<String>) -> Self {
        Self::new(Verdict::Info, text)
    }

    /// Measurements may be affected.
    pub(super) fn warning(text: impl Into<String>) -> Self {
        Self::new(Verdict::Warning, text)
    }

    /// Measurements are not valid.
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self::new(Verdict::Error, text)
    }

    /// Adds the effect on measurements.
    pub(super) fn effect(self, effect: impl Into<String>) -> Self {
        Self { effect: Some(effect.into()), ..self }
    }

    /// Adds the remedy.
    pub(super) fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }

    /// Adds evidence from a file; the path has no leading slash.
    pub(super) fn seen(self, path: &str, says: impl AsRef<str>) -> Self {
        self.because(&format!("/{path}"), says)
    }

    /// Adds evidence from another source.
    pub(super) fn because(mut self, source: &str, says: impl AsRef<str>) -> Self {
        let says = shorten(says.as_ref(), MOST_EVIDENCE);
        self.evidence.push(Evidence { source: source.to_owned(), says });
        self
    }
}

impl Probe {
    /// Runs the probe on a machine.
    #[must_use]
    pub fn look(&self, snapshot: &Snapshot) -> Check {
        let said =
            (self.look)(snapshot).unwrap_or_else(|why| ProbeResult::new(Verdict::Unknown, format!("{why}")));
        Check {
            id: self.id.to_owned(),
            looks_at: self.looks_at.to_owned(),
            verdict: said.verdict,
            text: said.text,
            effect: said.effect,
            fix: said.fix,
            evidence: said.evidence,
            proof: self.proof.to_owned(),
            grounds: self.grounds.to_string(),
        }
    }
}
