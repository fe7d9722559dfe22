//! Where the processes of a test run, as the user chose it: in a cpuset, on the CPUs of a cluster for each side.
//! Not here: one CPU or two (`plan::Placement`), what clusters a machine has (`host::clusters`).
//! Facts: `cpuset(7)`, `cgroups(7)`: a process moves by a write to `cgroup.procs` (or `tasks`) of the group; its children begin
//! there. Android mounts version 1's cpuset at `/dev/cpuset`, without prefixes.

use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use driver::Root;
use record::{Cluster, ClusterKind};

/// Clusters of client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clusters {
    /// Cluster of the client.
    pub client: ClusterKind,
    /// Cluster of the server.
    pub server: ClusterKind,
}

/// CPUs of client and server.
pub type Sides = [Vec<u32>; 2];

const KINDS: [ClusterKind; 3] = [ClusterKind::Big, ClusterKind::Mid, ClusterKind::Little];

impl FromStr for Clusters {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind = |word: &str| {
            let found = KINDS.into_iter().find(|kind| kind.name() == word);
            found.ok_or_else(|| {
                format!("no cluster {word:?}; use big, mid or little, or two as in big,little")
            })
        };
        let (client, server) = text.split_once(',').unwrap_or((text, text));
        Ok(Self { client: kind(client)?, server: kind(server)? })
    }
}

impl fmt::Display for Clusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.client == self.server {
            true => f.write_str(self.client.name()),
            false => write!(f, "{},{}", self.client.name(), self.server.name()),
        }
    }
}

/// Moves this process, and so all that it starts, into the cpuset and onto the CPUs of the clusters; returns the CPUs of either side.
///
/// # Errors
/// There is no such cpuset, or no right to enter it; this machine has no such cluster, or its CPUs may not be used.
pub fn enter(clusters: Option<Clusters>, cpuset: Option<&str>) -> Result<Option<Sides>, String> {
    let root = Root::of_this_machine();
    if let Some(name) = cpuset {
        let file = cpuset_file(&root, name)?;
        fs::write(&file, std::process::id().to_string()).map_err(|error| {
            format!("entering the cpuset {name} by {}: {}", file.display(), sys::errno::describe(&error))
        })?;
    }
    let Some(clusters) = clusters else { return Ok(None) };
    let usable = usable()?;
    let sides = sides(clusters, &host::clusters(&root), &usable)?;
    confine_to(&sides)?;
    Ok(Some(sides))
}

/// Confines this process, and so all that it starts, to the CPUs of either side.
fn confine_to(sides: &Sides) -> Result<(), String> {
    let mut both = sides.concat();
    both.sort_unstable();
    both.dedup();
    sys::sched::set_affinity(&both)
        .map_err(|error| format!("choosing the CPUs {both:?}: {}", sys::errno::describe(&error)))
}

/// Confines this process, and so all that it starts, to these CPUs of client and server; one that is not named may use all.
///
/// # Errors
/// This process may not use such a CPU.
pub fn enter_cpus(client: Option<u32>, server: Option<u32>) -> Result<Option<Sides>, String> {
    if client.or(server).is_none() {
        return Ok(None);
    }
    let usable = usable()?;
    let side = |cpu: Option<u32>| match cpu {
        Some(cpu) if !usable.contains(&cpu) => {
            Err(format!("CPU {cpu} may not be used here; those that may: {usable:?}"))
        }
        Some(cpu) => Ok(vec![cpu]),
        None => Ok(usable.clone()),
    };
    let sides = [side(client)?, side(server)?];
    confine_to(&sides)?;
    Ok(Some(sides))
}

fn usable() -> Result<Vec<u32>, String> {
    sys::sched::affinity()
        .map_err(|error| format!("asking for the usable CPUs: {}", sys::errno::describe(&error)))
}

/// The usable CPUs of both sides' clusters.
fn sides(wanted: Clusters, clusters: &[Cluster], usable: &[u32]) -> Result<Sides, String> {
    if clusters.is_empty() {
        return Err(format!(
            "--cluster {wanted}: all CPUs of this machine are alike, by cpu_capacity and cpuinfo_max_freq in /sys/devices/system/cpu"
        ));
    }
    let of = |kind: ClusterKind| {
        let found = clusters.iter().find(|cluster| cluster.kind == kind).ok_or_else(|| {
            let names: Vec<&str> = clusters.iter().map(|cluster| cluster.kind.name()).collect();
            format!("this machine has no cluster {}; it has {}", kind.name(), names.join(", "))
        })?;
        let cpus: Vec<u32> = found.cpus.iter().copied().filter(|cpu| usable.contains(cpu)).collect();
        match cpus.is_empty() {
            true => Err(format!("no CPU of the cluster {} may be used here", kind.name())),
            false => Ok(cpus),
        }
    };
    Ok([of(wanted.client)?, of(wanted.server)?])
}

/// The file by which a process enters the cpuset of this name.
fn cpuset_file(root: &Root, name: &str) -> Result<PathBuf, String> {
    let relative = Path::new(name.trim_matches('/'));
    if relative.components().any(|part| !matches!(part, Component::Normal(_))) {
        return Err(format!("{name:?} is no name of a cpuset"));
    }
    let mounts = root.text("proc/self/mounts").unwrap_or_default();
    let mut without = None;
    let mut tried = Vec::new();
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(1);
        let (Some(place), Some(kind), Some(options)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let is_v2 = match kind {
            "cgroup" if options.split(',').any(|option| option == "cpuset") => false,
            "cpuset" => false,
            "cgroup2" => true,
            _ => continue,
        };
        tried.push(place.to_owned());
        let folder = Path::new(place.trim_start_matches('/')).join(relative);
        if !root.exists(&folder) {
            continue;
        }
        let controllers = root.text(folder.join("cgroup.controllers")).unwrap_or_default();
        if is_v2 && !controllers.split_whitespace().any(|controller| controller == "cpuset") {
            without = Some(folder);
            continue;
        }
        let file = ["cgroup.procs", "tasks"]
            .map(|file| folder.join(file))
            .into_iter()
            .find(|file| root.exists(file));
        if let Some(file) = file {
            return Ok(root.path(file));
        }
    }
    Err(match without {
        Some(folder) => {
            format!(
                "the group /{} has no controller cpuset: echo +cpuset > cgroup.subtree_control above it",
                folder.display()
            )
        }
        None if tried.is_empty() => format!("no cpuset {name}: no control groups with cpusets are mounted"),
        None => format!("no cpuset {name} in {}", tried.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    fn cluster(kind: ClusterKind, cpus: &[u32]) -> Cluster {
        Cluster { kind, cpus: cpus.to_vec(), capacity: None, max_khz: None }
    }

    #[test]
    fn clusters_are_read_as_they_are_shown() {
        for word in ["big", "little", "mid", "big,little"] {
            assert_eq!(word.parse::<Clusters>().expect(word).to_string(), word);
        }
        assert_eq!("mid,mid".parse::<Clusters>().expect("two").to_string(), "mid");
        for bad in ["", "huge", "big,", "big,little,mid"] {
            assert!(bad.parse::<Clusters>().is_err(), "{bad}");
        }
    }

    #[test]
    fn each_side_gets_the_usable_cpus_of_its_cluster() {
        let all = [cluster(ClusterKind::Little, &[0, 1, 2, 3]), cluster(ClusterKind::Big, &[4, 5])];
        let of = |words: &str, usable: &[u32]| sides(words.parse().expect(words), &all, usable);
        assert_eq!(of("big,little", &[0, 1, 5]), Ok([vec![5], vec![0, 1]]));
        assert_eq!(of("little", &[0, 1]), Ok([vec![0, 1], vec![0, 1]]));
        assert!(of("big", &[0]).expect_err("not usable").contains("may be used"));
        assert!(of("mid", &[0]).expect_err("none").contains("it has little, big"));
        let alike = sides("big".parse().expect("a cluster"), &[], &[0]).expect_err("one cluster");
        assert!(alike.contains("are alike"), "{alike}");
    }

    #[test]
    fn a_cpuset_is_found_in_either_version() {
        let phone = Fixture::new(
            "cpuset-phone",
            &[
                (
                    "proc/self/mounts",
                    "none /dev/cpuset cgroup rw,cpuset,noprefix 0 0\nnone /sys/fs/cgroup cgroup2 rw 0 0\n",
                ),
                ("dev/cpuset/top-app/cgroup.procs", ""),
                ("dev/cpuset/tasks", ""),
                ("sys/fs/cgroup/plain/cgroup.procs", ""),
                ("sys/fs/cgroup/fast/cgroup.procs", ""),
                ("sys/fs/cgroup/fast/cgroup.controllers", "cpuset cpu\n"),
            ],
        );
        let file = |name: &str| cpuset_file(&phone.root(), name);
        assert_eq!(file("/top-app"), Ok(phone.path().join("dev/cpuset/top-app/cgroup.procs")));
        assert_eq!(file("fast"), Ok(phone.path().join("sys/fs/cgroup/fast/cgroup.procs")));
        assert_eq!(file("/"), Ok(phone.path().join("dev/cpuset/tasks")));
        assert!(file("plain").expect_err("not on").contains("+cpuset"));
        assert!(file("slow").expect_err("none").contains("no cpuset slow in /dev/cpuset"));
        assert!(file("../x").is_err() && file("a/../b").is_err());
        let bare = Fixture::new("cpuset-none", &[("proc/self/mounts", "proc /proc proc rw 0 0\n")]);
        assert!(cpuset_file(&bare.root(), "x").expect_err("none").contains("mounted"));
    }
}
