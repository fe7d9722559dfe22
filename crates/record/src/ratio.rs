//! Ratios of a case's cost to the control cases: the same payload by other means of IPC.
//! Not here: measuring the controls.

use crate::schema::{Case, CaseKind};
use std::collections::BTreeMap;

/// Median costs of the control cases seen so far, in clock units. Medians, because one interrupt in a thousand
/// transactions moves a mean.
#[derive(Debug, Default)]
pub(crate) struct Controls {
    /// Payload in bytes → last word of the family → median.
    medians: BTreeMap<u64, BTreeMap<String, f64>>,
}

impl Controls {
    /// The controls of a whole run.
    pub(crate) fn of<'a>(cases: impl IntoIterator<Item = &'a Case>) -> Controls {
        let mut controls = Controls::default();
        cases.into_iter().for_each(|case| controls.know(case));
        controls
    }

    /// Stores a case if it is a control with measurements.
    pub(crate) fn know(&mut self, case: &Case) {
        let Some(median) = case.median_real().filter(|_| case.kind == CaseKind::Control) else { return };
        let same_payload = self.medians.entry(case.payload_bytes).or_default();
        same_payload.insert(last_word(&case.family).to_owned(), median);
    }

    /// The median `cost` of this case divided by that of each known control with the same payload, named `x_pipe`,
    /// `x_unix` and so on.
    pub(crate) fn ratios(&self, case: &Case, cost: f64) -> impl Iterator<Item = (String, f64)> {
        let known = match case.kind {
            // A control has one caller.
            CaseKind::Test if case.threads == 1 => self.medians.get(&case.payload_bytes),
            CaseKind::Test | CaseKind::Control => None,
        };
        let known = known.into_iter().flatten().filter(|&(_, &median)| median > 0.0);
        known.map(move |(word, median)| (counter_name(word), cost / median))
    }
}

/// Name of the counter with the ratio to a control family, e.g. `x_pipe` for `BM_sendVec_pipe`.
pub(crate) fn counter_of(family: &str) -> String {
    counter_name(last_word(family))
}

fn counter_name(word: &str) -> String {
    format!("x_{word}")
}

/// The last word of a family: `pipe` of `BM_sendVec_pipe`.
fn last_word(family: &str) -> &str {
    family.rsplit_once('_').map_or(family, |(_, word)| word)
}
