//! Trace instances that killed recorders of this program left: every command removes them and says so.
//! Not here: finding and removing them (`ftrace::instances`).

use std::time::Duration;

use ftrace::instances::{Leftover, remove_leftovers};
use ftrace::tracefs::Tracefs;

use super::note;

/// How long to retry removing one: another command may be looking into it, or removing it, too.
const PATIENCE: Duration = Duration::from_millis(300);

/// Removes them, where this user may. Mounts nothing.
pub(crate) fn remove() {
    let Ok(tracefs) = Tracefs::mounted() else { return };
    for leftover in remove_leftovers(&tracefs, PATIENCE) {
        note(format_args!("binderperf: {}\n", told(&leftover)));
    }
}

/// One line about one of them.
pub(super) fn told(leftover: &Leftover) -> String {
    let Leftover { name, pid, stays } = leftover;
    match stays {
        None => format!("removed the trace instance {name}, which a killed recorder (process {pid}) left"),
        Some(why) => format!(
            "stopped the trace instance {name}, which a killed recorder (process {pid}) left; the next command tries to \
             remove it: {why}"
        ),
    }
}
