//! Flight recorder of a latency test: its cost, and the slowest calls with their recordings and causes.
//! Not here: the recordings (crate `trace`).

use serde::{Deserialize, Serialize};

use super::calls::{Class, ClassTotals, Miss};

/// The flight recorder of a latency test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorder {
    /// The reason why there was none, and every time was taken without it.
    #[serde(default)]
    pub missing: Option<String>,
    /// Percentiles of a short pass of the same test without it, just before; no part of the test's times.
    #[serde(default)]
    pub without: Vec<ClassTotals>,
    /// Calls of that pass.
    #[serde(default)]
    pub calls_without: u64,
    /// The slowest calls, slowest first: the worst call of each class, and its two worst misses.
    #[serde(default)]
    pub saved: Vec<SavedCall>,
    /// The error that kept a slow call from being saved.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// A slow call with its recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedCall {
    /// The call and its time, as in the test's times.
    #[serde(flatten)]
    pub call: Miss,
    /// Whether it missed the deadline.
    pub missed: bool,
    /// Name of the recording, a file beside the record.
    pub file: String,
    /// The cause in a sentence, or why it cannot be told.
    pub cause: String,
}

impl SavedCall {
    /// The words of the mark that names the call in a trace.
    pub fn label(&self) -> String {
        let Miss { pair, class, iteration, .. } = self.call;
        format!("pair={pair} class={} number={iteration}", class.name())
    }

    /// Name of its picture in a report.
    pub fn anchor(&self) -> String {
        let Miss { pair, class, iteration, .. } = self.call;
        let stem = self.file.strip_suffix(".bptrace").unwrap_or(&self.file);
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        format!("call-{}-{}-{pair}-{iteration}", stem.chars().map(plain).collect::<String>(), class.name())
    }
}

impl Recorder {
    /// The slowest call of a class, if it was saved.
    pub fn worst(&self, class: Class) -> Option<&SavedCall> {
        self.saved.iter().filter(|saved| saved.call.class == class).max_by_key(|saved| saved.call.took)
    }

    /// The totals of a class with the recorder, which are the test's own, and without it.
    pub fn both<'t>(
        &'t self,
        class: Class,
        with: &'t [ClassTotals],
    ) -> Option<(&'t ClassTotals, &'t ClassTotals)> {
        let of = |all: &'t [ClassTotals]| all.iter().find(|totals| totals.class == class);
        of(with).zip(of(&self.without))
    }
}
