//! Callers of a service manager whose dialect it does not speak: each is reported once.
//! Not here: recognising them (`binder::manager::dialect`, each manager).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Most processes that are remembered.
const MOST: usize = 1024;

/// Receiver of what a manager has to say about its callers, one line at a time.
pub type Report = fn(&str);

/// The callers that were reported, and where to. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Strangers {
    report: Option<Report>,
    reported: Arc<Mutex<BTreeSet<i32>>>,
}

impl Strangers {
    pub(crate) fn reporting(report: Report) -> Self {
        Self { report: Some(report), ..Self::default() }
    }

    /// Reports a process, the first time.
    pub(crate) fn report(&self, pid: i32, line: impl FnOnce() -> String) {
        let Some(report) = self.report else { return };
        let is_new = {
            let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            // Most are dead by then, and their numbers may have others.
            if reported.len() >= MOST {
                reported.clear();
            }
            reported.insert(pid)
        };
        if is_new {
            report(&format!("process {pid} {}", line()));
        }
    }
}
