//! A control group of this program's own: where it can be, making it, removing it.
//! Not here: what it limits (`background::group`, `constraints::memory`).
//! Facts: `cgroups(7)`; `Documentation/admin-guide/cgroup-v2.rst` ("Controlling Controllers"): a group has a controller's files
//! if its parent has `+CONTROLLER` in `cgroup.subtree_control`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ftrace::process::Process;

/// Where a controller is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    /// Its mount point.
    pub(crate) root: PathBuf,
    /// The group of this process.
    pub(crate) own: PathBuf,
    pub(crate) is_v2: bool,
}

impl Hierarchy {
    /// Finds a controller on this machine: version 1 if it has it there.
    pub(crate) fn of(controller: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        hierarchy(&mounts, &own, controller)
    }

    /// The file of the own group to which a process writes itself to return. Version 1 moves the thread, version 2 its process.
    pub(crate) fn list(&self) -> &'static str {
        if self.is_v2 { "cgroup.procs" } else { "tasks" }
    }
}

/// Finds a controller in the texts of `/proc/self/mounts` and `/proc/self/cgroup`.
fn hierarchy(mounts: &str, own: &str, controller: &str) -> Option<Hierarchy> {
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
        // A group outside of the namespace of control groups is not below the mount.
        if below.split('/').any(|part| part == "..") {
            return None;
        }
        let own = if below.is_empty() { root.clone() } else { root.join(below) };
        Some(Hierarchy { root, own, is_v2 })
    };
    match (mount("cgroup", Some(controller)), group(controller)) {
        (Some(root), Some(own)) => found(root, own, false),
        _ => found(mount("cgroup2", None)?, group("")?, true),
    }
}

/// A control group, removed on drop; its processes must have ended or left it.
pub(crate) struct ControlGroup {
    pub(crate) folder: PathBuf,
    /// Where a controller was switched on for it, and the word that switches it off.
    switched: Option<(PathBuf, String)>,
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // It stays while a killed process is on its way out; the next test removes it then.
        let _ = fs::remove_dir(&self.folder);
        if let Some((switch, off)) = self.switched.as_ref().filter(|_| !self.has_neighbours()) {
            let _ = put(switch, off);
        }
    }
}

impl ControlGroup {
    /// Makes one beside the group of this process, so that both share the same parent, and removes groups that killed tests left,
    /// whose names begin with `prefix`.
    ///
    /// # Errors
    /// It cannot be made: a message for the user.
    pub(crate) fn make(at: &Hierarchy, controller: &str, prefix: &str) -> Result<Self, String> {
        let parent = if at.own == at.root { &at.root } else { at.own.parent().unwrap_or(&at.root) };
        remove_left(parent, prefix);
        let switch = parent.join("cgroup.subtree_control");
        let is_on = || {
            fs::read_to_string(&switch).is_ok_and(|on| on.split_whitespace().any(|word| word == controller))
        };
        let switched = (at.is_v2 && !is_on()).then(|| (switch.clone(), format!("-{controller}")));
        if switched.is_some() {
            put(&switch, &format!("+{controller}")).map_err(|error| failed(&switch, &error))?;
        }
        // From here on, dropping it undoes what was done.
        let group = Self { folder: parent.join(format!("{prefix}{}", Process::own().suffix())), switched };
        fs::create_dir(&group.folder).map_err(|error| failed(&group.folder, &error))?;
        Ok(group)
    }

    /// Whether its parent has other groups: the kernel would take their limits away with the controller.
    fn has_neighbours(&self) -> bool {
        let beside = self.folder.parent().map(fs::read_dir).and_then(Result::ok);
        beside.is_none_or(|beside| beside.flatten().any(|entry| entry.path().is_dir()))
    }

    /// Writes one of its files.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let file = self.folder.join(file);
        put(&file, text).map_err(|error| failed(&file, &error))
    }
}

/// Writes a file that is there.
fn put(file: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes())
}

/// A message on a file of a control group.
pub(crate) fn failed(what: &Path, error: &io::Error) -> String {
    format!("{}: {}", what.display(), sys::errno::describe(error))
}

/// Removes groups that killed tests left. A group with processes cannot be removed; that of a test that has moved no thread
/// yet is empty.
fn remove_left(parent: &Path, prefix: &str) {
    let ended = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| Process::of_suffix(name.strip_prefix(prefix)?));
        maker.is_some_and(|maker| maker.has_ended())
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten().filter(ended) {
        let _ = fs::remove_dir(entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_found_in_either_version() {
        let v2 = hierarchy("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n", "0::/user.slice/a\n", "cpu");
        let v2 = v2.expect("there");
        assert_eq!(v2.own, Path::new("/sys/fs/cgroup/user.slice/a"));
        assert!(v2.is_v2);
        let mounts = "cgroup /cg/cpuset cgroup rw,cpuset 0 0\ncgroup /cg/cpu cgroup rw,cpu,cpuacct 0 0\n";
        let v1 = hierarchy(mounts, "3:cpuset:/x\n2:cpu,cpuacct:/\n0::/\n", "cpu").expect("there");
        assert_eq!(v1, Hierarchy { root: "/cg/cpu".into(), own: "/cg/cpu".into(), is_v2: false });
        for (mounts, own) in [
            ("", ""),
            ("x\n", "0::/\n"),
            ("c /c cgroup rw,memory 0 0\n", "1:memory:/\n"),
            ("c /c cgroup2 rw 0 0\n", "0::/../x\n"),
        ] {
            assert_eq!(hierarchy(mounts, own, "cpu"), None);
        }
    }

    #[test]
    fn a_controller_stays_on_while_its_parent_has_other_groups() {
        let folder = sys::private_folder::PrivateFolder::new("groups").expect("a folder");
        let switch = folder.path().join("cgroup.subtree_control");
        let leave = |beside: bool| {
            fs::write(&switch, "memory").expect("written");
            fs::create_dir(folder.path().join("own")).expect("made");
            if beside {
                fs::create_dir(folder.path().join("other")).expect("made");
            }
            let switched = Some((switch.clone(), "-memory".to_owned()));
            drop(ControlGroup { folder: folder.path().join("own"), switched });
            fs::read_to_string(&switch).expect("there")
        };
        assert_eq!(leave(false), "-memory");
        assert_eq!(leave(true), "memory");
    }

    #[test]
    fn only_groups_of_tests_that_ended_are_removed() {
        const PREFIX: &str = "binderperf-some-";
        let folder = sys::private_folder::PrivateFolder::new("groups").expect("a folder");
        let ended = format!("{PREFIX}{}-1", std::process::id());
        let stay =
            [format!("{PREFIX}{}", Process::own().suffix()), format!("{PREFIX}x"), "other-1-1".to_owned()];
        for name in stay.iter().chain([&ended]) {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        remove_left(folder.path(), PREFIX);
        assert!(!folder.path().join(ended).exists());
        assert!(stay.iter().all(|name| folder.path().join(name).exists()));
    }
}
