//! Room: what a doctor's look at one machine had to say, probe by probe; a document of its own.
//! Not here: the probes (`lab::doctor`), how it is shown (`crate::render::checkup`), what a run keeps of
//! it (`crate::schema::Finding`).

use serde::{Deserialize, Serialize};

use crate::schema::{Evidence, Finding, HostClass, Severity, Tool};

/// The value of `Checkup::schema` in every document of ours.
pub const SCHEMA: &str = "binderperf.checkup";
/// The version of the document.
pub const VERSION: u32 = 1;

/// One machine, looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkup {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Always [`VERSION`] when written.
    pub version: u32,
    /// The program that looked.
    pub tool: Tool,
    /// `this machine`, or the snapshot's folder.
    pub looked_at: String,
    /// `uname -r`; empty where it is not known.
    pub release: String,
    /// What kind of machine it is.
    pub class: HostClass,
    /// What each probe had to say, in the order of the catalogue.
    pub checks: Vec<Check>,
}

/// What one probe had to say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The probe's name, e.g. `cpu-governor`.
    pub id: String,
    /// What it looks at.
    pub looks_at: String,
    /// How it turned out.
    pub verdict: Verdict,
    /// What was found, or why nothing could be told.
    pub text: String,
    /// What it does to the numbers.
    #[serde(default)]
    pub effect: Option<String>,
    /// What to do about it.
    #[serde(default)]
    pub fix: Option<String>,
    /// The files and measurements that say so.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
    /// A command that shows it.
    pub proof: String,
}

/// How a probe turned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing to say.
    Ok,
    /// What it looks at could not be read.
    Unknown,
    /// [`Severity::Info`].
    Info,
    /// [`Severity::Warning`].
    Warning,
    /// [`Severity::Error`].
    Error,
}

impl Verdict {
    /// The severity of what was found; `None` if nothing was.
    pub fn severity(self) -> Option<Severity> {
        match self {
            Self::Ok | Self::Unknown => None,
            Self::Info => Some(Severity::Info),
            Self::Warning => Some(Severity::Warning),
            Self::Error => Some(Severity::Error),
        }
    }
}

impl From<Severity> for Verdict {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Info => Self::Info,
            Severity::Warning => Self::Warning,
            Severity::Error => Self::Error,
        }
    }
}

impl Check {
    /// As a finding of a run; `None` if nothing was found.
    pub fn finding(&self) -> Option<Finding> {
        let severity = self.verdict.severity()?;
        Some(Finding {
            effect: self.effect.clone(),
            fix: self.fix.clone(),
            evidence: self.evidence.clone(),
            proof: Some(self.proof.clone()),
            ..Finding::new(&self.id, severity, &self.text)
        })
    }
}

impl Checkup {
    /// The worst of all verdicts; [`Verdict::Ok`] where there is none.
    pub fn worst(&self) -> Verdict {
        self.checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Ok)
    }

    /// The checks that turned out so.
    pub fn of(&self, verdict: Verdict) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |check| check.verdict == verdict)
    }

    /// Parses a document. Fields that this version does not know are passed over.
    ///
    /// # Errors
    /// Why it is none, or one that this version does not know.
    pub fn from_json(bytes: &[u8]) -> Result<Checkup, String> {
        let checkup: Checkup = serde_json::from_slice(bytes).map_err(|error| {
            format!("the checkup is damaged: {}", crate::render::printable(&error.to_string()))
        })?;
        if checkup.schema != SCHEMA || checkup.version != VERSION {
            let (found, version) = (crate::render::printable(&checkup.schema), checkup.version);
            return Err(format!(
                "expected {SCHEMA} of version {VERSION}, found {found:?} of version {version}"
            ));
        }
        Ok(checkup)
    }

    /// The document.
    pub fn to_json(&self) -> String {
        // Strings, numbers and lists only: nothing in it can fail to be JSON.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}
