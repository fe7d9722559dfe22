//! Threads and processes in reports, by the best name that the trace has anywhere.
//! Not here: their formatting (`text`).
//! Facts: the kernel keeps 15 bytes of a thread's name; Android gives a process the last 15 of its own. libbinder calls
//! its threads `Binder:PID_N` (`binder:PID_N` in vendors' processes), libhwbinder `HwBinder:PID_N`.

use serde::{Deserialize, Serialize};

use crate::event::{Name, Names, Prio};
use crate::model::Model;

/// Longest thread name of the kernel, in bytes.
const LONGEST_COMM: usize = 15;

/// Thread in a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadInfo {
    /// Thread ID.
    pub tid: i32,
    /// Name; empty if unknown.
    pub comm: String,
    /// Kernel priority: 0 to 99 real-time, 100 to 139 nice.
    pub prio: Option<i32>,
    /// Its process, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// Name of its process; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub process: String,
}

impl ThreadInfo {
    /// Name of its process, if it says more than that of the thread.
    #[must_use]
    pub fn other_process(&self) -> Option<&str> {
        Some(self.process.as_str()).filter(|process| !process.is_empty() && *process != self.comm)
    }
}

/// Everybody whom the trace names.
#[derive(Clone, Copy)]
pub(crate) struct People<'a> {
    pub(crate) model: &'a Model,
    pub(crate) names: &'a Names,
}

impl<'a> People<'a> {
    /// A thread, with the name that it had at the time in question if that is known.
    pub(crate) fn thread(self, tid: i32, comm: Name, prio: Option<Prio>) -> ThreadInfo {
        let pid = self.pid(tid);
        let process = pid.and_then(|pid| self.process(pid)).unwrap_or_default();
        ThreadInfo { tid, comm: self.comm(tid, comm), prio: prio.map(|prio| prio.0), pid, process }
    }

    /// Name of a thread; empty if the trace has none.
    pub(crate) fn comm(self, tid: i32, comm: Name) -> String {
        let name = self.short(tid, comm);
        // A process's first thread has its number.
        complete(name, tid, self.command(tid)).unwrap_or_else(|| name.to_owned())
    }

    /// Process of a thread.
    pub(crate) fn pid(self, tid: i32) -> Option<i32> {
        let seen = self.model.history().thread(tid).and_then(|thread| thread.tgid);
        let in_table = || self.names.known.thread(tid).pid;
        let is_process = || (!self.names.text(self.names.known.process(tid)).is_empty()).then_some(tid);
        seen.or_else(in_table).or_else(is_process).or_else(|| pid_in(self.short(tid, Name::NONE)))
    }

    /// Name of a process: its command's, or that of its first thread.
    pub(crate) fn process(self, pid: i32) -> Option<String> {
        let command = self.command(pid).map(str::to_owned);
        command.or_else(|| Some(self.comm(pid, Name::NONE)).filter(|name| !name.is_empty()))
    }

    /// Name of a process's command, without its folder.
    fn command(self, pid: i32) -> Option<&'a str> {
        let command = self.names.text(self.names.known.process(pid));
        let name = if command.starts_with('/') { command.rsplit('/').next() } else { Some(command) };
        name.filter(|name| !name.is_empty())
    }

    /// The kernel's name of a thread.
    fn short(self, tid: i32, comm: Name) -> &'a str {
        let names = [comm, self.model.name_of(tid), self.names.known.thread(tid).comm];
        let name = names.into_iter().find(|name| name.is_some());
        name.map(|name| self.names.text(name)).or_else(|| self.model.owner_name(tid)).unwrap_or_default()
    }
}

/// The whole of a name that the kernel cut, as its process's command or its pattern shows it.
fn complete(name: &str, tid: i32, command: Option<&str>) -> Option<String> {
    match command {
        Some(command) if name.is_empty() => return Some(command.to_owned()),
        Some(command)
            if name.len() == LONGEST_COMM && (command.starts_with(name) || command.ends_with(name)) =>
        {
            return Some(command.to_owned());
        }
        Some(command) if name.len() == LONGEST_COMM => {
            // As in `binderperf: hwservicemanager`.
            let rest = command.find(name).and_then(|at| command.get(at..));
            if let Some(word) = rest.and_then(|rest| rest.split_whitespace().next()) {
                return Some(word.to_owned());
            }
        }
        _ => {}
    }
    // Nothing has the number behind it; the thread's own tells it from others.
    (name.len() == LONGEST_COMM && name.ends_with('_') && pid_in(name).is_some())
        .then(|| format!("{name}{tid}"))
}

/// The process in the name of a binder thread.
fn pid_in(name: &str) -> Option<i32> {
    let rest = ["Binder:", "binder:", "HwBinder:"].iter().find_map(|prefix| name.strip_prefix(prefix))?;
    rest.split_once('_')?.0.parse().ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_name_is_completed_where_something_tells_the_rest() {
        let command = Some("android.hardware.power-service");
        for (name, command, want) in [
            ("android.hardwar", command, Some("android.hardware.power-service")),
            ("r.power-service", Some("r.power-service"), Some("r.power-service")),
            ("e.power-service", command, Some("android.hardware.power-service")),
            ("hwservicemanage", Some("binderperf: hwservicemanager --x"), Some("hwservicemanager")),
            ("fifteen_bytes__", command, None),
            ("RenderThread", command, None),
            ("HwBinder:13770_", None, Some("HwBinder:13770_13775")),
            ("Binder:1_2", None, None),
            ("fifteen_bytes__", None, None),
            ("", command, Some("android.hardware.power-service")),
        ] {
            assert_eq!(complete(name, 13775, command).as_deref(), want, "{name}");
        }
        assert_eq!(
            (pid_in("binder:200_1"), pid_in("HwBinder:13770_"), pid_in("Binder")),
            (Some(200), Some(13770), None)
        );
    }
}
