//! The answer: findings, worst first, as data, text and JSON.
//! Not here: how they are found (`find`).

use std::fmt;

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Worth knowing.
    Note,
    /// Something is about to go wrong, or went wrong once.
    Warning,
    /// Calls fail or do not come back.
    Bad,
}

impl Grade {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Bad => "bad",
        }
    }
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The driver refused a transaction.
    Failure,
    /// Threads wait for each other in a circle.
    Deadlock,
    /// Threads wait long, for one another or for one thread.
    Wait,
    /// No thread of a process is free.
    StarvedPool,
    /// A receiver's area is full, or nearly.
    BufferSpace,
    /// Something grew between two dumps.
    Growth,
    /// Oneway calls pile up.
    OnewayBacklog,
    /// Calls to a frozen process.
    Frozen,
    /// Targets that are gone, and work that was dropped with them.
    DeadTarget,
    /// Too many objects, proxies or descriptors.
    Limit,
    /// A program breaks the driver's rules.
    Misuse,
    /// A call took long.
    SlowCall,
}

/// A line of an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The input's name.
    pub file: String,
    /// Line number, from 1; 0 for an input without lines.
    pub line: u32,
    /// The line, if it is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        self.text.as_ref().map_or(Ok(()), |text| write!(f, ": {text}"))
    }
}

/// Something that is wrong, or may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub grade: Grade,
    /// What it is about.
    pub kind: Kind,
    /// What happened, and who to whom.
    pub what: String,
    /// Since when, or how often; empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub when: String,
    /// Processes that it concerns, the one to look at first.
    pub pids: Vec<i32>,
    /// Why, as far as the inputs show it; several where they leave it open.
    pub why: Vec<String>,
    /// What to do next.
    pub next: Vec<String>,
    /// Items of the driver's contract that describe it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contract: Vec<&'static str>,
    /// Where it is written.
    pub evidence: Vec<Evidence>,
    /// Tells it from other findings in a later look at the same system.
    #[serde(skip)]
    pub key: String,
}

impl Finding {
    pub(crate) fn new(grade: Grade, kind: Kind, key: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            grade,
            kind,
            what: what.into(),
            when: String::new(),
            pids: Vec::new(),
            why: Vec::new(),
            next: Vec::new(),
            contract: Vec::new(),
            evidence: Vec::new(),
            key: format!("{kind:?} {}", key.into()),
        }
    }

    pub(crate) fn when(mut self, when: impl Into<String>) -> Self {
        self.when = when.into();
        self
    }

    pub(crate) fn pids(mut self, pids: impl IntoIterator<Item = i32>) -> Self {
        for pid in pids {
            if pid != 0 && !self.pids.contains(&pid) {
                self.pids.push(pid);
            }
        }
        self
    }

    pub(crate) fn why(mut self, why: impl Into<String>) -> Self {
        self.why.push(why.into());
        self
    }

    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.next.push(next.into());
        self
    }

    pub(crate) fn contract(mut self, items: &[&'static str]) -> Self {
        self.contract.extend_from_slice(items);
        self
    }

    pub(crate) fn evidence(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(evidence);
        self
    }
}

impl Finding {
    /// Serializes as one line of JSON, ending in a newline.
    ///
    /// # Errors
    /// None in practice: all fields are numbers and texts.
    pub fn to_json_line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self).map(|json| json + "\n")
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = if self.when.is_empty() { String::new() } else { format!(" ({})", self.when) };
        writeln!(f, "{}: {}{when}", self.grade.word().to_uppercase(), self.what)?;
        let rows = |f: &mut fmt::Formatter<'_>, label: &str, rows: &[String]| {
            rows.iter().try_for_each(|row| {
                let mut lines = row.lines();
                writeln!(f, "   {label:<5} {}", lines.next().unwrap_or_default())?;
                lines.try_for_each(|line| writeln!(f, "         {line}"))
            })
        };
        rows(f, "why", &self.why)?;
        rows(f, "next", &self.next)?;
        if !self.contract.is_empty() {
            writeln!(f, "   item  {}", self.contract.join(", "))?;
        }
        self.evidence.iter().try_for_each(|evidence| writeln!(f, "   see   {evidence}"))
    }
}

/// A thread that waits for the answer to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// It, with its names.
    pub from: String,
    /// The thread that serves the call, or the process of which any free thread may.
    pub to: String,
    /// The call's number.
    pub call: i64,
    /// Its code.
    pub code: u32,
    /// Its age in ms; `None` before Linux 6.4.
    pub age_ms: Option<u64>,
    /// Whether the wait is in a circle or behind one.
    pub in_circle: bool,
}

/// All findings, and what they rest on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Inputs, in order.
    pub inputs: Vec<String>,
    /// What the inputs hold, each with its number.
    pub holds: Vec<String>,
    /// What is partial or could not be told, each with its reason.
    pub notes: Vec<String>,
    /// Findings, worst first.
    pub findings: Vec<Finding>,
    /// Old waits of threads for threads, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
}

impl Report {
    /// The worst grade; `None` without findings.
    #[must_use]
    pub fn worst(&self) -> Option<Grade> {
        self.findings.iter().map(|finding| finding.grade).max()
    }

    /// Serializes as JSON, ending in a newline.
    ///
    /// # Errors
    /// None in practice: all fields are numbers and texts.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.findings.is_empty() {
            writeln!(f, "nothing wrong was found")?;
        }
        for (number, finding) in self.findings.iter().enumerate() {
            writeln!(f, "{}. {finding}", number + 1)?;
        }
        writeln!(f, "read: {}", self.holds.join(", "))?;
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}
