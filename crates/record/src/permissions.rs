//! Permissions of a machine, found out by trying, and the tests that can therefore run on it: a document of the doctor.
//! Not here: trying (`bench::permission`), deriving it (`doctor`), its rendering (`crate::render::permissions`).

use serde::{Deserialize, Serialize};

/// Permissions of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// Kind of build, user, and SELinux's mode, in words.
    pub machine: Vec<Permission>,
    /// Rights that were tried.
    pub tried: Vec<Permission>,
    /// Abilities of each test here.
    pub tests: Vec<TestPermission>,
    /// Accesses that SELinux denied meanwhile; `None` if the kernel's log cannot be read.
    #[serde(default)]
    pub denials: Option<Vec<String>>,
}

/// One thing, and whether it is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// The thing.
    pub what: String,
    /// The answer.
    pub answer: Answer,
    /// The reason, or what was found.
    pub why: String,
}

/// Whether a test can run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestPermission {
    /// Commands, or a part of a test.
    pub test: String,
    /// Its needs.
    pub needs: String,
    /// The answer.
    pub answer: Answer,
    /// Command to run in its place, where it cannot run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It is allowed.
    Yes,
    /// It is not.
    No,
    /// It cannot be told.
    Unknown,
}

impl Answer {
    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "cannot be told",
        }
    }

    /// Whether one of two ways suffices.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::No, Self::No) => Self::No,
        }
    }

    /// Whether both of two things are given.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Yes, Self::Yes) => Self::Yes,
        }
    }
}

impl Permissions {
    /// The JSON document.
    pub fn to_json(&self) -> String {
        // Cannot fail: strings and lists only.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}
