//! Room: how much of each part a quick, an ordinary and a thorough run have.
//! Not here: which parts there are.

use std::time::Duration;

use super::Part;
use crate::latency::Flavour;
use crate::plan::MinTime;

/// How long all of it may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Under a minute on a small machine: a first look.
    Quick,
    /// A few minutes.
    #[default]
    Usual,
    /// For results that others are compared with.
    Thorough,
}

impl Depth {
    /// Of every throughput case.
    pub(super) fn min_time(self) -> MinTime {
        MinTime::Seconds(match self {
            Self::Quick => 0.05,
            Self::Usual => 0.2,
            Self::Thorough => 0.5,
        })
    }

    /// Of every throughput case: a comparison wants several.
    pub(super) fn repetitions(self) -> u32 {
        match self {
            Self::Quick => 1,
            Self::Usual => 3,
            Self::Thorough => 9,
        }
    }

    /// Of every pair of a latency test.
    pub(super) fn iterations(self) -> u64 {
        match self {
            Self::Quick => 500,
            Self::Usual => 5_000,
            Self::Thorough => 50_000,
        }
    }

    /// The same, recorded.
    pub(super) fn recorded_iterations(self) -> u64 {
        match self {
            Self::Quick => 200,
            Self::Usual => 1_000,
            Self::Thorough => 5_000,
        }
    }

    /// How long a part usually takes, on a machine of two CPUs with the embedded driver, where the usual depth (122 s,
    /// 0.8 s) and the thorough one (1081 s, 8.5 s) were measured: for what is said to be left before a part can tell
    /// for itself.
    pub(super) fn usual_time(self, part: Part) -> Duration {
        let seconds = match (self, part) {
            (Self::Quick, Part::Throughput) => 15,
            (Self::Usual, Part::Throughput) => 120,
            (Self::Thorough, Part::Throughput) => 1080,
            (Self::Quick | Self::Usual, Part::Latency(_)) => 1,
            (Self::Thorough, Part::Latency(_)) => 8,
            (_, Part::Recorded(_)) => 5,
        };
        Duration::from_secs(seconds)
    }

    /// The same for all parts.
    #[must_use]
    pub fn usual_whole(self) -> Duration {
        let latency = Part::Latency(Flavour::Binder);
        let all = [Part::Throughput, latency, latency, Part::Recorded(Flavour::Hwbinder)];
        // And what comes before and after them.
        all.into_iter().map(|part| self.usual_time(part)).sum::<Duration>() + Duration::from_secs(30)
    }
}
