//! One verdict: what was expected, what was measured, the reason and the next command. Screens, JSON and reports show
//! verdicts of this type only.
//! Not here: what is judged (`super::latency`, `crate::render::report`), layouts (`crate::render::verdicts`).

use serde::{Deserialize, Serialize};

/// The grade of a verdict, in the order of severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// As expected.
    Good,
    /// Worth a look, and no failure.
    Note,
    /// Something failed, or differs from what was promised.
    Bad,
}

impl Grade {
    /// The word on a screen.
    pub fn name(self) -> &'static str {
        match self {
            Grade::Good => "ok",
            Grade::Note => "note",
            Grade::Bad => "FAIL",
        }
    }
}

/// A verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The subject: `calls`, `deadline`, `inheritance`, `sync`, `completeness`, `throughput`, `inversion`,
    /// `overload`, `background`, `move`.
    pub about: &'static str,
    /// The grade.
    pub grade: Grade,
    /// The verdict in a few words, e.g. `inheritance nice, as expected`.
    pub words: String,
    /// The promise of this driver, node and setting; empty without one.
    pub expected: String,
    /// The measured value, in words.
    pub measured: String,
    /// The reason, if the words need one.
    pub why: Option<String>,
    /// The next step: a command, or a setting.
    pub next: Option<String>,
}

impl Verdict {
    /// A verdict as expected, without a reason and a next step.
    pub fn good(about: &'static str, words: impl Into<String>) -> Verdict {
        Verdict {
            about,
            grade: Grade::Good,
            words: words.into(),
            expected: String::new(),
            measured: String::new(),
            why: None,
            next: None,
        }
    }

    /// The verdict with these numbers.
    #[must_use]
    pub fn held_against(self, expected: impl Into<String>, measured: impl Into<String>) -> Verdict {
        Verdict { expected: expected.into(), measured: measured.into(), ..self }
    }

    /// The verdict with another grade, and the reason for it.
    #[must_use]
    pub fn because(self, grade: Grade, why: impl Into<String>) -> Verdict {
        Verdict { grade, why: Some(why.into()), ..self }
    }

    /// The verdict with a next step.
    #[must_use]
    pub fn then(self, next: impl Into<String>) -> Verdict {
        Verdict { next: Some(next.into()), ..self }
    }

    /// Reason and next step as one sentence each; `None` if the verdict has neither.
    pub fn explanation(&self) -> Option<String> {
        let next = self.next.as_ref().map(|next| format!("Next: {next}"));
        let parts: Vec<&str> = [self.why.as_deref(), next.as_deref()].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(". "))
    }
}

/// The verdicts on one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TestVerdicts {
    /// The test, e.g. `hwbinder latency`.
    pub test: String,
    /// Its verdicts, at least one, the most severe first.
    pub verdicts: Vec<Verdict>,
}

impl TestVerdicts {
    /// Whether these are verdicts on a throughput test.
    pub(crate) fn is_throughput(&self) -> bool {
        self.verdicts.iter().all(|verdict| matches!(verdict.about, "throughput" | "completeness"))
    }
}

/// Sorts by severity; verdicts of one grade stay in their order.
pub(crate) fn by_severity(mut verdicts: Vec<Verdict>) -> Vec<Verdict> {
    verdicts.sort_by_key(|verdict| std::cmp::Reverse(verdict.grade));
    verdicts
}
