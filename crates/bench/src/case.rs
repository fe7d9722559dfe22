//! Cases of a run as they grow.
//! Not here: what is measured (`run`, `latency`, `workers` and the experiments).

use record::{Case, CaseKind, Outcome, Repetition};

/// Creates a case of a test without results, the `index`th of the first family.
pub(crate) fn new_case(name: String, family: String, index: u32) -> Case {
    Case {
        name,
        family,
        family_index: 0,
        per_family_instance_index: index,
        kind: CaseKind::Test,
        payload_bytes: 0,
        threads: 1,
        crowd: None,
        latency: None,
        label: None,
        repetitions: Vec::new(),
    }
}

/// Adds the next repetition of a case.
pub(crate) fn add_repetition(case: &mut Case, outcome: Outcome) {
    case.repetitions.push(Repetition { index: case.repetitions.len() as u32, outcome });
}
