//! Flight recorder of a latency test: its cost, which calls the figures come from, and the slowest calls with their
//! recordings and causes.
//! Not here: the recordings (crate `trace`), the cost in words (`crate::render`).

use serde::{Deserialize, Serialize};

use super::calls::{Class, ClassTotals, Miss};
use super::placed::Side;

/// The flight recorder of a latency test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorder {
    /// The reason why there was none, and every time was taken without it.
    #[serde(default)]
    pub missing: Option<String>,
    /// The pass that the test's figures come from.
    #[serde(default)]
    pub figures: Pass,
    /// Percentiles of a short pass of the same test without it, just before; no part of the test's times. Empty where the
    /// figures come from calls without it.
    #[serde(default)]
    pub without: Vec<ClassTotals>,
    /// Calls of that pass.
    #[serde(default)]
    pub calls_without: u64,
    /// Percentiles of the pass with it, where the figures come from calls without it.
    #[serde(default)]
    pub with: Vec<ClassTotals>,
    /// Calls of that pass.
    #[serde(default)]
    pub calls_with: u64,
    /// The slowest calls of the pass with it, slowest first: the worst call of each class, and its two worst misses.
    #[serde(default)]
    pub saved: Vec<SavedCall>,
    /// The first pair that stopped, and the recording up to there; no slow call after it was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<StoppedPair>,
    /// The error that kept a slow call from being saved.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// A pass of a test that has a flight recorder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pass {
    /// With the recorder.
    #[default]
    With,
    /// Without it.
    Without,
}

/// Cost of the recorder for one class. The two passes are compared by their calls of one placement: a call between two CPUs
/// may take several times as long as one on a single CPU, recorded or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecorderCost {
    /// Medians of calls of this placement, in clock units.
    Medians {
        /// The placement.
        side: Side,
        /// With the recorder.
        with: u64,
        /// Without it.
        without: u64,
    },
    /// The passes were placed differently, or now one way, now the other.
    Placement,
    /// An older record does not say how the calls were placed.
    Unknown,
}

impl RecorderCost {
    /// Time of a call with the recorder as a multiple of that without; `None` where it cannot be told.
    pub fn ratio(self) -> Option<f64> {
        match self {
            RecorderCost::Medians { with, without, .. } => Some(with as f64 / without.max(1) as f64),
            RecorderCost::Placement | RecorderCost::Unknown => None,
        }
    }
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

/// A pair that got no reply for a second or lost a process, with the recording that ends there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoppedPair {
    /// Number of the pair, from 0.
    pub pair: u32,
    /// Name of the recording, a file in the record's folder.
    pub file: String,
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

/// Place of a recording's part in a report.
pub fn anchor_of_recording(file: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    format!("recording-{}", file.chars().map(plain).collect::<String>())
}

impl Recorder {
    /// Highest cost, as a ratio, at which the test's figures may come from calls with the recorder.
    pub const MOST: f64 = 1.10;

    /// Whether the test's figures include its cost.
    pub fn is_in_figures(&self) -> bool {
        self.missing.is_none() && self.figures == Pass::With
    }

    /// Whether its recordings are of other calls than the test's figures.
    pub fn is_apart(&self) -> bool {
        self.missing.is_none() && self.figures == Pass::Without
    }

    /// The files of its recordings.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let saved = self.saved.iter().map(|saved| saved.file.as_str());
        saved.chain(self.stopped.iter().map(|stopped| stopped.file.as_str()))
    }

    /// The slowest call of a class, if it was saved.
    pub fn worst(&self, class: Class) -> Option<&SavedCall> {
        self.saved.iter().filter(|saved| saved.call.class == class).max_by_key(|saved| saved.call.took)
    }

    /// The totals of a class with the recorder and without it; `all` are those of the test.
    pub fn both<'t>(
        &'t self,
        class: Class,
        all: &'t [ClassTotals],
    ) -> Option<(&'t ClassTotals, &'t ClassTotals)> {
        let of = |all: &'t [ClassTotals]| all.iter().find(|totals| totals.class == class);
        match self.figures {
            Pass::With => of(all).zip(of(&self.without)),
            Pass::Without => of(&self.with).zip(of(all)),
        }
    }

    /// Its cost for a class with calls in both passes; `all` are the totals of the test.
    pub fn cost(&self, class: Class, all: &[ClassTotals]) -> Option<RecorderCost> {
        let (with, without) = self.both(class, all)?;
        let (Some(with), Some(without)) = (with.placed, without.placed) else {
            return Some(RecorderCost::Unknown);
        };
        Some(match (with.usual(), without.usual()) {
            (Some((side, with)), Some((same, without))) if side == same => {
                RecorderCost::Medians { side, with, without }
            }
            _ => RecorderCost::Placement,
        })
    }

    /// Whether figures with it are too far from those without it, for any class, or may be: by more than [`Self::MOST`],
    /// or by an unknown factor.
    pub fn is_too_dear(&self, all: &[ClassTotals]) -> bool {
        let dear = |class: Class| {
            all.iter().any(|totals| totals.class == class)
                && self.cost(class, all).and_then(RecorderCost::ratio).is_none_or(|ratio| ratio > Self::MOST)
        };
        Class::BOTH.into_iter().any(dear)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::PlacedMedians;

    /// Totals of a class whose 100 calls took this long, of which so many were on one CPU.
    fn totals(class: Class, p50: u64, same_cpu: u64) -> ClassTotals {
        let placed = PlacedMedians { calls: 100, same_cpu, p50_same: Some(p50), p50_apart: Some(p50) };
        let percentiles = crate::Percentiles::of(&mut [p50]).expect("a time");
        ClassTotals { class, percentiles, placed: Some(placed) }
    }

    #[test]
    fn figures_may_include_a_tenth_and_no_unknown_cost() {
        let dear = |without: u64, same_cpu: u64, with: u64| {
            let recorder =
                Recorder { without: vec![totals(Class::Fifo, without, same_cpu)], ..Recorder::default() };
            recorder.is_too_dear(&[totals(Class::Fifo, with, 100)])
        };
        assert!(!dear(1000, 100, 1100) && !dear(1000, 100, 900), "a tenth, and none");
        assert!(dear(1000, 100, 1101), "more");
        assert!(dear(1000, 0, 1000), "placed differently, so it is not known");
        let recorder = Recorder::default();
        assert!(recorder.is_too_dear(&[totals(Class::Other, 9, 9)]), "no pass without it");
        assert!(!recorder.is_too_dear(&[]), "no call");
    }

    #[test]
    fn each_class_counts() {
        let fifo = totals(Class::Fifo, 1000, 100);
        let of = |other: u64| vec![fifo, totals(Class::Other, other, 100)];
        let recorder = Recorder { without: of(1000), ..Recorder::default() };
        assert!(!recorder.is_too_dear(&of(1000)) && recorder.is_too_dear(&of(2000)));
    }

    #[test]
    fn the_cost_is_the_same_whichever_pass_has_the_figures() {
        let [with, without] = [2000, 1000].map(|p50| vec![totals(Class::Fifo, p50, 100)]);
        let want = Some(RecorderCost::Medians { side: Side::Same, with: 2000, without: 1000 });
        let figures_with = Recorder { without: without.clone(), ..Recorder::default() };
        assert_eq!(figures_with.cost(Class::Fifo, &with), want);
        let figures_without = Recorder { figures: Pass::Without, with, ..Recorder::default() };
        assert_eq!(figures_without.cost(Class::Fifo, &without), want);
        assert!(figures_with.is_in_figures() && !figures_without.is_in_figures());
    }
}
