//! Threads in reports.
//! Not here: their formatting (`text`).

use serde::{Deserialize, Serialize};

use crate::event::{Name, Names, Prio};

/// Thread in a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadInfo {
    /// Thread ID.
    pub tid: i32,
    /// Name; empty if unknown.
    pub comm: String,
    /// Kernel priority: 0 to 99 real-time, 100 to 139 nice.
    pub prio: Option<i32>,
}

impl ThreadInfo {
    pub(crate) fn of(tid: i32, comm: Name, prio: Option<Prio>, names: &Names) -> Self {
        Self { tid, comm: names.text(comm).to_owned(), prio: prio.map(|prio| prio.0) }
    }
}
