//! The command `trace restore`: puts back what this program left in the kernel's tracing, and names what is not its own.
//! Not here: tracefs (`ftrace`).

use std::time::Duration;

use ftrace::atrace::{Session, use_of};
use ftrace::instances::{Found, Owner, list, remove_leftovers};
use ftrace::tracefs::Tracefs;

use crate::cli::{CommandResult, exit, leftovers, say};

/// How long to retry removing an instance that another process keeps open.
const PATIENCE: Duration = Duration::from_secs(2);

/// Restores; returns the exit status.
pub(super) fn run() -> CommandResult {
    let tracefs = Tracefs::find()?;
    let mut lines = Vec::new();
    let left = remove_leftovers(&tracefs, PATIENCE);
    lines.extend(left.iter().map(leftovers::told));
    if Session::new()?.restore()? {
        lines.push("put back the settings of the shared trace buffer".to_owned());
    }
    if lines.is_empty() {
        lines.push("nothing to put back".to_owned());
    }
    lines.extend(list(&tracefs).iter().filter_map(left_alone));
    say(&(lines.join("\n") + "\n"))?;
    let stays = left.iter().any(|leftover| leftover.stays.is_some());
    Ok(if stays { exit::UNABLE } else { exit::FINE })
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
