//! Depth of a suite: the amount of each part in a quick, an ordinary and a thorough run.
//! Not here: the parts.

use std::time::Duration;

use super::{Experiment, SuitePart};
use crate::plan::{Flavour, Placement};

/// Depth of a suite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// The least that has figures, for tests of what is around it; nothing is repeated.
    Tiny,
    /// Under a minute on a small machine: a first look.
    Quick,
    /// A few minutes.
    #[default]
    Usual,
    /// For results used in comparisons.
    Thorough,
}

/// Amounts of a depth.
pub(super) struct Amounts {
    /// Minimum time of every throughput case, in seconds, where the scheduler places both sides.
    pub(super) min_time_s: f64,
    /// Repetitions of every throughput case there: a comparison needs several.
    pub(super) repetitions: u32,
    /// The same where both sides are placed: short and many, so that a disturbance spoils few of them.
    pub(super) placed: (f64, u32),
    /// Iterations of every pair of a latency test.
    pub(super) iterations: u64,
}

impl Depth {
    pub(super) fn is_quick(self) -> bool {
        matches!(self, Self::Tiny | Self::Quick)
    }

    pub(super) fn amounts(self) -> Amounts {
        let (min_time_s, repetitions, placed, iterations) = match self {
            Self::Tiny => (0.002, 1, (0.001, 3), 500),
            Self::Quick => (0.05, 1, (0.02, 7), 500),
            Self::Usual => (0.1, 3, (0.05, 9), 5_000),
            Self::Thorough => (0.5, 9, (0.2, 25), 50_000),
        };
        Amounts { min_time_s, repetitions, placed, iterations }
    }

    /// Returns the typical time of a part, on a machine of two CPUs with the embedded driver, where the usual
    /// depth (122 s, 0.8 s) and the thorough one (1081 s, 8.5 s) were measured: the estimate until a part has
    /// its own.
    pub(super) fn usual_time(self, part: SuitePart) -> Duration {
        let seconds = match (self, part) {
            (Self::Tiny, SuitePart::Throughput(_)) => 2,
            (Self::Quick, SuitePart::Throughput(Placement::Default)) => 15,
            (Self::Usual, SuitePart::Throughput(Placement::Default)) => 120,
            (Self::Thorough, SuitePart::Throughput(Placement::Default)) => 1080,
            (Self::Quick, SuitePart::Throughput(_)) => 3,
            (Self::Usual, SuitePart::Throughput(_)) => 20,
            (Self::Thorough, SuitePart::Throughput(_)) => 180,
            (Self::Tiny | Self::Quick | Self::Usual, SuitePart::Latency(_)) => 1,
            (Self::Thorough, SuitePart::Latency(_)) => 8,
            (depth, SuitePart::Experiment(experiment)) => return experiment.usual_time(depth.is_quick()),
        };
        Duration::from_secs(seconds)
    }

    /// Returns the typical time of all parts, the experiments included.
    #[must_use]
    pub fn usual_whole(self) -> Duration {
        let latency = SuitePart::Latency(Flavour::Binder);
        let throughput = [Placement::Default, Placement::Same, Placement::Cross].map(SuitePart::Throughput);
        let all =
            throughput.into_iter().chain([latency, latency]).chain(Experiment::ALL.map(SuitePart::from));
        // Plus the time before and after them.
        all.map(|part| self.usual_time(part)).sum::<Duration>() + Duration::from_secs(30)
    }
}
