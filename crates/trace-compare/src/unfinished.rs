//! Calls without a reply in two traces: those that failed, and those that still waited at the end.
//! Not here: counting them (`trace`).

use std::collections::BTreeSet;

use serde::Serialize;
use trace::verdict::UnfinishedCount;

use crate::Side;

/// A row of calls without a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unfinished {
    /// Its name, as of the rows of calls.
    pub name: String,
    /// Failed calls of A.
    pub a_failed: u64,
    /// Failed calls of B.
    pub b_failed: u64,
    /// Calls of A that waited when the trace ended.
    pub a_unanswered: u64,
    /// Calls of B that waited when the trace ended.
    pub b_unanswered: u64,
}

impl Unfinished {
    /// Rows of either trace: those with the most of them more in B first.
    pub(crate) fn of(a: &Side, b: &Side) -> Vec<Self> {
        let names: BTreeSet<&String> =
            [a, b].into_iter().flat_map(|side| side.sampled.unfinished.keys()).collect();
        let count = |side: &Side, name: &str| -> UnfinishedCount {
            side.sampled.unfinished.get(name).copied().unwrap_or_default()
        };
        let row = |name: &String| {
            let (of_a, of_b) = (count(a, name), count(b, name));
            Self {
                name: name.clone(),
                a_failed: of_a.failed,
                b_failed: of_b.failed,
                a_unanswered: of_a.unanswered,
                b_unanswered: of_b.unanswered,
            }
        };
        let mut rows: Vec<Self> = names.into_iter().map(row).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.more()), row.name.clone()));
        rows
    }

    /// How many more there are in B.
    fn more(&self) -> i128 {
        i128::from(self.b_failed) + i128::from(self.b_unanswered)
            - i128::from(self.a_failed)
            - i128::from(self.a_unanswered)
    }
}
