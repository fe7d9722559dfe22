//! The doctor's report on one machine: a document with one entry for each probe.
//! Not here: the probes (`doctor`), its rendering (`crate::render::checkup`), the part that a run keeps
//! (`crate::schema::Finding`).

use serde::{Deserialize, Serialize};

use crate::schema::{Evidence, Finding, HostClass, Severity, Tool};

/// The value of `Checkup::schema` in every checkup document.
pub const SCHEMA: &str = "binderperf.checkup";
/// The version of the document.
pub const VERSION: u32 = 1;

/// The doctor's report on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkup {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Always [`VERSION`] when written.
    pub version: u32,
    /// The program that ran the probes.
    pub tool: Tool,
    /// `this machine`, or the snapshot's folder.
    pub looked_at: String,
    /// `uname -r`; empty where it is not known.
    pub release: String,
    /// The kind of machine.
    pub class: HostClass,
    /// The result of each probe, in the order of the catalogue.
    pub checks: Vec<Check>,
}

/// The result of one probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The probe's name, e.g. `cpu-governor`.
    pub id: String,
    /// The subject of the probe, in words.
    pub looks_at: String,
    /// The severity of the result.
    pub verdict: Verdict,
    /// The finding, or the reason why the probe could not tell.
    pub text: String,
    /// The effect on the numbers.
    #[serde(default)]
    pub effect: Option<String>,
    /// The remedy.
    #[serde(default)]
    pub fix: Option<String>,
    /// The files and measurements that prove the finding.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
    /// A command that reproduces the evidence.
    pub proof: String,
    /// The reason to ask: a measured effect with its command, or a source; empty in older documents.
    #[serde(default)]
    pub grounds: String,
}

/// The severity of a probe's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing found.
    Ok,
    /// The subject could not be read.
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
    /// The result as a finding of a run; `None` if nothing was found.
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
    /// The most severe verdict; [`Verdict::Ok`] without any checks.
    pub fn worst(&self) -> Verdict {
        self.checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Ok)
    }

    /// The checks with this verdict.
    pub fn of(&self, verdict: Verdict) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |check| check.verdict == verdict)
    }

    /// Parses a checkup document. Unknown fields are ignored.
    ///
    /// # Errors
    /// A message if the bytes are not a checkup document, or are one of an unknown version.
    pub fn from_json(bytes: &[u8]) -> Result<Checkup, String> {
        let checkup: Checkup = serde_json::from_slice(bytes).map_err(|error| {
            format!("the checkup is damaged: {}", units::visible::printable(&error.to_string()))
        })?;
        if checkup.schema != SCHEMA || checkup.version != VERSION {
            let (found, version) = (units::visible::printable(&checkup.schema), checkup.version);
            return Err(format!(
                "expected {SCHEMA} of version {VERSION}, found {found:?} of version {version}"
            ));
        }
        Ok(checkup)
    }

    /// The report as a JSON document.
    pub fn to_json(&self) -> String {
        // Cannot fail: strings, numbers and lists only.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}
