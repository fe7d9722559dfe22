//! The background: a control group with a twentieth of the CPU time, or a nice value, and moving a thread into it.
//! Not here: who is moved, and when (`super::role`), making a group (`control_group`).
//! Facts: `Documentation/admin-guide/cgroup-v2.rst` ("Weights"): a weight is 100 by default. Version 1: `cpu.shares` is 1024 by
//! default.
//! Android's init gives its background group 52 shares; its background priority is nice 10.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::control_group::{ControlGroup, Hierarchy, failed};

/// Beginning of the name of each group that this program makes.
const PREFIX: &str = "binderperf-background-";
/// Nice value of Android's background.
const NICE: i32 = 10;

/// The kind of background that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupKind {
    /// A control group if one can be made, else a nice value.
    #[default]
    Auto,
    /// A control group.
    Cgroup,
    /// A nice value.
    Nice,
}

/// How a thread enters and leaves the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ground {
    /// By writing itself into one of two files. Version 1 moves the thread, version 2 its process.
    Cgroup { foreground: PathBuf, background: PathBuf },
    /// By its nice value; the foreground has this one.
    Nice { foreground: i32 },
}

impl Ground {
    /// Moves the calling thread.
    pub(super) fn enter(&self, background: bool) -> io::Result<()> {
        match self {
            Self::Cgroup { foreground, background: behind } => {
                fs::write(if background { behind } else { foreground }, "0")
            }
            Self::Nice { foreground } => sys::sched::set_nice(0, if background { NICE } else { *foreground }),
        }
    }
}

/// A background, whose control group is removed on drop; its processes must have ended.
pub(super) struct Group {
    pub(super) ground: Ground,
    /// The background in words.
    pub(super) words: String,
    _made: Option<ControlGroup>,
}

impl Group {
    /// Makes the background.
    ///
    /// # Errors
    /// A control group cannot be made, or a thread cannot return from its nice value: a message for the user.
    pub(super) fn make(kind: GroupKind) -> Result<Self, String> {
        let why = match kind {
            GroupKind::Nice => String::new(),
            _ => match Self::cgroup() {
                Ok(group) => return Ok(group),
                Err(why) if kind == GroupKind::Cgroup => return Err(why),
                Err(why) => format!(" ({why})"),
            },
        };
        let foreground = sys::sched::nice_of(0).unwrap_or(0);
        if foreground >= NICE {
            return Err(format!(
                "this shell is in the background already, at nice {foreground}: run it at nice 0{why}"
            ));
        }
        let ground = Ground::Nice { foreground };
        let tried = ground.clone();
        let trial =
            sys::title::thread("nice trial", move || tried.enter(true).and_then(|()| tried.enter(false)));
        match trial.map(std::thread::JoinHandle::join) {
            Ok(Ok(Ok(()))) => Ok(Self { ground, words: format!("nice {NICE}{why}"), _made: None }),
            _ => Err(format!(
                "a thread that went to the background may not come back: run it as root, or raise the limit (ulimit -e){why}"
            )),
        }
    }

    fn cgroup() -> Result<Self, String> {
        let at = Hierarchy::of("cpu").ok_or("no cpu control groups are mounted")?;
        let made = ControlGroup::make(&at, "cpu", PREFIX)?;
        let (file, weight, words) = match at.is_v2 {
            true => ("cpu.weight", "5", "cgroup v2, cpu.weight 5 (of 100 by default)"),
            false => ("cpu.shares", "52", "cgroup v1, cpu.shares 52 (of 1024 by default)"),
        };
        made.write(file, weight)?;
        let (foreground, background) = (at.own.join(at.list()), made.folder.join(at.list()));
        fs::OpenOptions::new().write(true).open(&foreground).map_err(|error| failed(&foreground, &error))?;
        Ok(Self {
            ground: Ground::Cgroup { foreground, background },
            words: words.to_owned(),
            _made: Some(made),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::{Need, need};

    #[test]
    fn a_group_is_gone_after_its_use() {
        // Where none can be made, there is nothing to leave behind.
        let switches = || fs::read_to_string("/sys/fs/cgroup/cgroup.subtree_control").ok();
        let before = switches();
        let folders = |at: &str| {
            fs::read_dir(at).map_or(0, |all| all.flatten().filter(|one| one.path().is_dir()).count())
        };
        let others = folders("/sys/fs/cgroup");
        let group = need!(Group::make(GroupKind::Cgroup).map_err(|why| Need::Cgroups.lacks(why)));
        let folder = group._made.as_ref().expect("a group").folder.clone();
        assert!(folder.is_dir());
        drop(group);
        assert!(!folder.exists());
        assert!(others > 0 || switches() == before, "the controller is off again");
    }
}
