//! One repetition of a case, with what all its pairs measured as one.
//! Not here: repetitions over the runs of a group (`super::group`).

use crate::Distribution;
use crate::schema::{Measurement, Stated};

/// One repetition of a case; in a latency test, that of all pairs together.
pub(crate) struct MergedRepetition {
    pub(crate) samples: Distribution,
    pub(crate) calls: u64,
    pub(crate) real: u64,
    pub(crate) cpu: u64,
    /// Of another program, in place of samples.
    pub(crate) stated: Option<Stated>,
}

impl MergedRepetition {
    /// `None` without samples and stated figures, or if the precisions of samples differ.
    pub(super) fn of(numbers: &[&Measurement]) -> Option<MergedRepetition> {
        let stated = numbers.iter().find_map(|one| one.stated.as_deref().copied());
        let samples = match stated {
            Some(_) => Distribution::default(),
            None => Distribution::merged(numbers.iter().map(|one| &one.samples))?,
        };
        Some(MergedRepetition {
            samples,
            stated,
            calls: numbers.iter().map(|one| one.iterations).sum(),
            real: numbers.iter().map(|one| one.real_total).fold(0, u64::saturating_add),
            cpu: numbers.iter().map(|one| one.cpu_total).fold(0, u64::saturating_add),
        })
    }
}
