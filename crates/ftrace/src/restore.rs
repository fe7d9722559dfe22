//! Puts back what this program left in the kernel's tracing, and names what is not its own.

use std::time::Duration;

use crate::atrace::{Session, use_of};
use crate::instances::{Found, Owner, list, remove_leftovers};
use crate::tracefs::{TraceError, Tracefs};

/// How long to retry removing an instance that another process keeps open.
const PATIENCE: Duration = Duration::from_secs(2);

/// Result of restoring.
#[derive(Debug)]
pub struct Restored {
    /// A line about each.
    pub lines: Vec<String>,
    /// Whether an instance of a killed recorder stays.
    pub is_partial: bool,
}

/// Restores.
///
/// # Errors
/// The kernel's tracing cannot be used, or is in use.
pub fn restore() -> Result<Restored, TraceError> {
    let tracefs = Tracefs::find()?;
    let left = remove_leftovers(&tracefs, PATIENCE);
    let mut lines: Vec<String> = left.iter().map(ToString::to_string).collect();
    if Session::new()?.restore()? {
        lines.push("put back the settings of the shared trace buffer".to_owned());
    }
    if lines.is_empty() {
        lines.push("nothing to put back".to_owned());
    }
    lines.extend(list(&tracefs).iter().filter_map(left_alone));
    Ok(Restored { lines, is_partial: left.iter().any(|leftover| leftover.stays.is_some()) })
}

/// One line about an instance that is in use or somebody else's.
fn left_alone(found: &Found) -> Option<String> {
    let Found { name, owner, buffer } = found;
    let folder = buffer.folder().display();
    match owner {
        Owner::Running { pid } => Some(format!(
            "left alone: the trace instance {name}; a recorder of binderperf is running (process {pid})"
        )),
        Owner::Killed { .. } => None,
        Owner::Other => Some(format!(
            "left alone: the trace instance {name}, which binderperf did not make: {}; if nobody needs it: rmdir {folder}",
            state(found)
        )),
    }
}

/// What an instance records, and whether it does now.
fn state(found: &Found) -> String {
    let on = found.buffer.read("tracing_on").is_ok_and(|on| on == "1");
    match use_of(&found.buffer) {
        Ok(Some(sign)) if on => format!("it records ({sign})"),
        Ok(Some(sign)) => format!("its tracing is off ({sign})"),
        Ok(None) => "no tracer and no event is on".to_owned(),
        Err(why) => format!("what it records cannot be told: {why}"),
    }
}
