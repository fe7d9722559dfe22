//! A process identified by pid and start time, so that a reused pid is not mistaken for it.
//! Facts: `proc_pid_stat(5)`, field 22.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};
use sys::errno::{ENOENT, ESRCH};

/// One process, alive or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The pid.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    start: u64,
}

/// Start time of the process with this pid; `None`: there is none, or only what is left of one until its parent looks.
///
/// # Errors
/// The question could not be answered, as by `EMFILE` or without a `/proc`.
fn start_of(pid: u32) -> io::Result<Option<u64>> {
    let stat = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        // It ended, before or after the file was opened; but without a `/proc` nobody has such a file.
        Err(error) if matches!(error.raw_os_error(), Some(ENOENT | ESRCH)) => {
            return fs::metadata("/proc/self/stat").map(|_| None);
        }
        Err(error) => return Err(error),
    };
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    // The command name in parentheses may contain any character; field 3 follows the last parenthesis.
    let (_, rest) = stat.rsplit_once(')').ok_or_else(malformed)?;
    let mut fields = rest.split_whitespace();
    // A zombie counts as ended.
    if fields.next() == Some("Z") {
        return Ok(None);
    }
    fields.nth(18).and_then(|field| field.parse().ok()).map(Some).ok_or_else(malformed)
}

impl Process {
    /// The calling process.
    #[must_use]
    pub fn own() -> Self {
        let pid = std::process::id();
        Self { pid, start: start_of(pid).ok().flatten().unwrap_or(0) }
    }

    /// True only if the process has certainly ended; false if that is unknown, so that nobody touches what it may still use.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        start_of(self.pid).is_ok_and(|start| start != Some(self.start))
    }

    /// Text form for file names: `PID-START`.
    #[must_use]
    pub fn suffix(&self) -> String {
        format!("{}-{}", self.pid, self.start)
    }

    /// Parses [`Self::suffix`].
    #[must_use]
    pub fn of_suffix(suffix: &str) -> Option<Self> {
        let (pid, start) = suffix.split_once('-')?;
        Some(Self { pid: pid.parse().ok()?, start: start.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_until_it_ends_and_its_number_alone_is_nobody() {
        let own = Process::own();
        assert!(!own.has_ended());
        assert_eq!(Process::of_suffix(&own.suffix()), Some(own));
        assert!(Process { start: own.start + 1, ..own }.has_ended());
        let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("sleep starts");
        let other =
            Process { pid: child.id(), start: start_of(child.id()).expect("a /proc").expect("it lives") };
        child.kill().expect("killed");
        while !other.has_ended() {
            std::thread::yield_now();
        }
        child.wait().expect("ours");
        assert_eq!(Process::of_suffix("x-1"), None);
    }
}
