//! The background: a control group with a twentieth of the CPU time, or a nice value, and moving a thread into it.
//! Not here: who is moved, and when (`super::role`).
//! Facts: `cgroups(7)`; `Documentation/admin-guide/cgroup-v2.rst` ("Weights", "Controlling Controllers"): a weight is
//! 100 by default, and the root needs `+cpu` in `cgroup.subtree_control`. Version 1: `cpu.shares` is 1024 by default.
//! Android's init gives its background group 52 shares; its background priority is nice 10.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ftrace::process::Process;
use serde::{Deserialize, Serialize};

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
    made: Option<PathBuf>,
    /// Where the cpu controller was switched on for it.
    switched: Option<PathBuf>,
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(folder) = &self.made {
            // It stays while a killed process is on its way out; the next experiment removes it then.
            let _ = fs::remove_dir(folder);
        }
        if let Some(switch) = &self.switched {
            // Refused while another program has a group with a weight there: then it is in use.
            let _ = fs::write(switch, "-cpu");
        }
    }
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
            Ok(Ok(Ok(()))) => {
                Ok(Self { ground, words: format!("nice {NICE}{why}"), made: None, switched: None })
            }
            _ => Err(format!(
                "a thread that went to the background may not come back: run it as root, or raise the limit (ulimit -e){why}"
            )),
        }
    }

    fn cgroup() -> Result<Self, String> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let Hierarchy { root, own, is_v2 } =
            hierarchy(&mounts, &own).ok_or("no cpu control groups are mounted")?;
        let failed =
            |what: &Path, error: io::Error| format!("{}: {}", what.display(), sys::errno::describe(&error));
        // A sibling of the own group, so that both share the same parent's time.
        let parent = if own == root { root } else { own.parent().unwrap_or(&root).to_owned() };
        remove_left(&parent);
        let switch = parent.join("cgroup.subtree_control");
        let is_on =
            || fs::read_to_string(&switch).is_ok_and(|on| on.split_whitespace().any(|word| word == "cpu"));
        let switched = (is_v2 && !is_on()).then(|| switch.clone());
        if let Some(switch) = &switched {
            fs::write(switch, "+cpu").map_err(|error| failed(switch, error))?;
        }
        // From here on, dropping it undoes what was done.
        let mut group =
            Self { ground: Ground::Nice { foreground: 0 }, words: String::new(), made: None, switched };
        let folder = parent.join(format!("{PREFIX}{}", Process::own().suffix()));
        fs::create_dir(&folder).map_err(|error| failed(&folder, error))?;
        group.made = Some(folder.clone());
        let (file, weight, words, list) = match is_v2 {
            true => ("cpu.weight", "5", "cgroup v2, cpu.weight 5 (of 100 by default)", "cgroup.procs"),
            false => ("cpu.shares", "52", "cgroup v1, cpu.shares 52 (of 1024 by default)", "tasks"),
        };
        group.ground = Ground::Cgroup { foreground: own.join(list), background: folder.join(list) };
        words.clone_into(&mut group.words);
        let weights = folder.join(file);
        fs::write(&weights, weight).map_err(|error| failed(&weights, error))?;
        let list = own.join(list);
        fs::OpenOptions::new().write(true).open(&list).map_err(|error| failed(&list, error))?;
        Ok(group)
    }
}

/// Removes groups that killed experiments left. A group with processes cannot be removed; that of an experiment that has
/// moved no thread yet is empty.
fn remove_left(parent: &Path) {
    let ended = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| Process::of_suffix(name.strip_prefix(PREFIX)?));
        maker.is_some_and(|maker| maker.has_ended())
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten().filter(ended) {
        let _ = fs::remove_dir(entry.path());
    }
}

/// Where the cpu controller is.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    /// Its mount point.
    root: PathBuf,
    /// The group of this process.
    own: PathBuf,
    is_v2: bool,
}

/// Finds the cpu controller in the texts of `/proc/self/mounts` and `/proc/self/cgroup`: version 1 if it has one there.
fn hierarchy(mounts: &str, own: &str) -> Option<Hierarchy> {
    let mount = |kind: &str, option: Option<&str>| {
        mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find_map(|fields| match fields[..] {
            [_, at, of, options, ..] if of == kind => option
                .is_none_or(|option| options.split(',').any(|word| word == option))
                .then(|| at.to_owned()),
            _ => None,
        })
    };
    let group = |controller: &str| {
        own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            fields
                .next()?
                .split(',')
                .any(|word| word == controller)
                .then(|| fields.next().unwrap_or("/").to_owned())
        })
    };
    let found = |root: String, own: String, is_v2| {
        let root = PathBuf::from(root);
        let below = own.trim_start_matches('/');
        let own = if below.is_empty() { root.clone() } else { root.join(below) };
        Some(Hierarchy { root, own, is_v2 })
    };
    match (mount("cgroup", Some("cpu")), group("cpu")) {
        (Some(root), Some(own)) => found(root, own, false),
        _ => found(mount("cgroup2", None)?, group("")?, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_controller_is_found_in_either_version() {
        let v2 =
            hierarchy("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n", "0::/user.slice/a\n").expect("there");
        assert_eq!(v2.own, Path::new("/sys/fs/cgroup/user.slice/a"));
        assert!(v2.is_v2);
        let mounts = "cgroup /cg/cpuset cgroup rw,cpuset 0 0\ncgroup /cg/cpu cgroup rw,cpu,cpuacct 0 0\n";
        let v1 = hierarchy(mounts, "3:cpuset:/x\n2:cpu,cpuacct:/\n0::/\n").expect("there");
        assert_eq!(v1, Hierarchy { root: "/cg/cpu".into(), own: "/cg/cpu".into(), is_v2: false });
        for (mounts, own) in [("", ""), ("x\n", "0::/\n"), ("c /c cgroup rw,memory 0 0\n", "1:memory:/\n")] {
            assert_eq!(hierarchy(mounts, own), None);
        }
    }

    #[test]
    fn only_groups_of_experiments_that_ended_are_removed() {
        let folder = sys::private_folder::PrivateFolder::new("groups").expect("a folder");
        let ended = format!("{PREFIX}{}-1", std::process::id());
        let stay =
            [format!("{PREFIX}{}", Process::own().suffix()), format!("{PREFIX}x"), "other-1-1".to_owned()];
        for name in stay.iter().chain([&ended]) {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        remove_left(folder.path());
        assert!(!folder.path().join(ended).exists());
        assert!(stay.iter().all(|name| folder.path().join(name).exists()));
    }

    #[test]
    fn a_group_is_gone_after_its_use() {
        // Where none can be made, there is nothing to leave behind.
        let switches = || fs::read_to_string("/sys/fs/cgroup/cgroup.subtree_control").ok();
        let before = switches();
        let Ok(group) = Group::make(GroupKind::Cgroup) else { return };
        let folder = group.made.clone().expect("a folder");
        assert!(folder.is_dir());
        drop(group);
        assert!(!folder.exists());
        assert_eq!(switches(), before, "the controller is off again");
    }
}
