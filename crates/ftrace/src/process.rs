//! A process identified by pid and start time, so that a reused pid is not mistaken for it.
//! Facts: `proc_pid_stat(5)`, field 22.

use std::fs;

use serde::{Deserialize, Serialize};

/// One process, alive or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The pid.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    start: u64,
}

fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name in parentheses may contain any character; field 3 follows the last parenthesis.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    // A zombie counts as ended.
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

impl Process {
    /// The calling process.
    #[must_use]
    pub fn own() -> Self {
        let pid = std::process::id();
        Self { pid, start: start_of(pid).unwrap_or(0) }
    }

    /// Whether the process still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        start_of(self.pid) == Some(self.start)
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
        assert!(own.is_alive());
        assert_eq!(Process::of_suffix(&own.suffix()), Some(own));
        assert!(!Process { start: own.start + 1, ..own }.is_alive());
        let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("sleep starts");
        let other = Process { pid: child.id(), start: start_of(child.id()).expect("it lives") };
        child.kill().expect("killed");
        while other.is_alive() {
            std::thread::yield_now();
        }
        child.wait().expect("ours");
        assert_eq!(Process::of_suffix("x-1"), None);
    }
}
