//! Room: copying the files of a machine that the probes look at into a folder, so that it can be looked at
//! elsewhere.
//! Not here: reading such a folder (`snapshot`).
//! What names a machine's owner and is of no use is left out: the host's name, mounts of other kinds, lines of
//! the module list that are not binder's.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::facts::{self, Facts};
use super::probes::build::PROPERTIES;
use super::probes::sched::groups;
use super::probes::users::STATS;
use super::snapshot::{LONGEST, Snapshot};

/// Files that are copied; `*` stands for any part of one name.
const FILES: &[&str] = &[
    STATS,
    "dev/binderfs/binder_logs/stats",
    "sys/kernel/debug/binder/stats",
    "etc/os-release",
    "usr/lib/os-release",
    "proc/cmdline",
    "proc/config.gz",
    "proc/cpuinfo",
    "proc/filesystems",
    "proc/interrupts",
    "proc/loadavg",
    "proc/meminfo",
    "proc/misc",
    "proc/pressure/*",
    "proc/self/cgroup",
    "proc/self/limits",
    "proc/self/status",
    "proc/self/uid_map",
    "proc/stat",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/sched_*",
    "proc/sys/kernel/tainted",
    "proc/sys/kernel/version",
    "proc/version",
    "sys/class/dmi/id/sys_vendor",
    "sys/class/dmi/id/product_name",
    "sys/class/thermal/cooling_device*/cur_state",
    "sys/class/thermal/cooling_device*/type",
    "sys/class/thermal/thermal_zone*/temp",
    "sys/class/thermal/thermal_zone*/trip_point_*",
    "sys/class/thermal/thermal_zone*/type",
    "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "sys/devices/system/cpu/cpu*/cpu_capacity",
    "sys/devices/system/cpu/cpu*/cpufreq/*_freq",
    "sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    "sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    "sys/devices/system/cpu/cpu*/cpuidle/state*/latency",
    "sys/devices/system/cpu/cpu*/cpuidle/state*/name",
    "sys/devices/system/cpu/cpufreq/boost",
    "sys/devices/system/cpu/intel_pstate/no_turbo",
    "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/nohz_full",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/present",
    "sys/devices/system/cpu/smt/active",
    "sys/devices/system/cpu/vulnerabilities/*",
    "sys/devices/system/node/online",
    "sys/fs/selinux/enforce",
    "sys/hypervisor/type",
    "sys/kernel/debug/sched/features",
    "sys/kernel/debug/sched/preempt",
    "sys/kernel/realtime",
    "sys/kernel/sched_ext/root/ops",
    "sys/kernel/sched_ext/state",
    "sys/kernel/tracing/current_tracer",
    "sys/kernel/tracing/tracing_on",
    "sys/kernel/tracing/events/enable",
    "sys/kernel/tracing/events/*binder/enable",
    "sys/kernel/debug/tracing/current_tracer",
    "sys/kernel/debug/tracing/tracing_on",
    "sys/kernel/debug/tracing/events/enable",
    "sys/kernel/debug/tracing/events/*binder/enable",
    "sys/module/*binder*/parameters/*",
    "sys/module/*binder*/refcnt",
];

/// Links whose targets are written down.
const LINKS: &[&str] = &["proc/self/ns/pid", "proc/self/ns/user", "proc/self/ns/ipc"];

/// The most files that one pattern stands for.
const MOST: usize = 20_000;

/// Why nothing was saved.
#[derive(Debug)]
pub enum SaveError {
    /// There is something in the folder already.
    NotEmpty(PathBuf),
    /// A folder or file cannot be made.
    Io(PathBuf, io::Error),
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEmpty(path) => {
                write!(f, "{} is not empty: name a folder that is, or that is not there yet", path.display())
            }
            Self::Io(path, error) => {
                write!(f, "writing the snapshot {}: {}", path.display(), sys::errno::describe(error))
            }
        }
    }
}

impl std::error::Error for SaveError {}

/// Copies the files of a machine, and its facts, into an empty or new folder. What cannot be read is noted
/// with its reason. Returns the number of files.
///
/// # Errors
/// [`SaveError`].
pub fn save(snapshot: &Snapshot, folder: &Path) -> Result<usize, SaveError> {
    fs::create_dir_all(folder).map_err(|error| SaveError::Io(folder.to_owned(), error))?;
    let mut entries = fs::read_dir(folder).map_err(|error| SaveError::Io(folder.to_owned(), error))?;
    if entries.next().is_some() {
        return Err(SaveError::NotEmpty(folder.to_owned()));
    }
    let mut facts = Facts { ..snapshot.facts().clone() };
    let mut count = 1;
    for path in wanted(snapshot) {
        match content(snapshot, &path) {
            Ok(bytes) => {
                put(folder, &path, &bytes)?;
                count += 1;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                facts.unreadable.insert(path, sys::errno::describe(&error));
            }
        }
    }
    put(folder, facts::FILE, facts.to_json().as_bytes())?;
    Ok(count)
}

fn put(folder: &Path, path: &str, bytes: &[u8]) -> Result<(), SaveError> {
    let path = folder.join(path);
    let parent = path.parent().unwrap_or(folder);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(&path, bytes))
        .map_err(|error| SaveError::Io(path.clone(), error))
}

/// The files to copy that are there, by their paths without the first slash.
pub(super) fn wanted(snapshot: &Snapshot) -> Vec<String> {
    let release = snapshot.release();
    let own = [
        format!("boot/config-{release}"),
        format!("lib/modules/{release}/config"),
        format!("lib/modules/{release}/modules.dep"),
        "proc/config".to_owned(),
        "proc/self/mounts".to_owned(),
    ];
    let of_groups = groups(snapshot).unwrap_or_default().into_iter().flat_map(|folder| {
        ["cpu.max", "cpu.cfs_quota_us", "cpu.stat", "cpu.uclamp.max"].map(|file| format!("{folder}/{file}"))
    });
    let own = own.into_iter().chain(of_groups).chain(PROPERTIES.map(str::to_owned));
    let mut found: Vec<String> = own.filter(|path| snapshot.root().join(path).exists()).collect();
    found.extend(modules(snapshot, &release));
    // The older place of tracefs is not touched where the newer is there: looking at it mounts it, and newer
    // kernels warn.
    let newer = snapshot.root().join("sys/kernel/tracing/current_tracer").exists();
    let patterns = FILES.iter().filter(|pattern| !newer || !pattern.starts_with("sys/kernel/debug/tracing"));
    found.extend(patterns.flat_map(|pattern| matching(snapshot.root(), pattern)));
    found.extend(
        LINKS
            .iter()
            .filter(|path| snapshot.root().join(path).symlink_metadata().is_ok())
            .map(|path| (*path).to_owned()),
    );
    found.sort_unstable();
    found.dedup();
    found
}

/// The files of binder's module, whose being there is all that counts.
fn modules(snapshot: &Snapshot, release: &str) -> Vec<String> {
    let folder = format!("lib/modules/{release}");
    let list = fs::read_to_string(snapshot.root().join(&folder).join("modules.dep")).unwrap_or_default();
    let files = list.lines().filter_map(|line| line.split_once(':').map(|(file, _)| file));
    files.filter(|file| file.contains("binder")).map(|file| format!("{folder}/{file}")).collect()
}

/// What is kept of a file.
fn content(snapshot: &Snapshot, path: &str) -> io::Result<Vec<u8>> {
    let place = snapshot.root().join(path);
    if LINKS.contains(&path) {
        return match fs::read_link(&place) {
            Ok(target) => Ok(target.display().to_string().into_bytes()),
            Err(_) => fs::read(&place),
        };
    }
    if path.contains(".ko") {
        return Ok(Vec::new());
    }
    let mut bytes = Vec::new();
    File::open(&place)?.take(LONGEST).read_to_end(&mut bytes)?;
    let kept = |is_kept: fn(&str) -> bool| {
        let text = String::from_utf8_lossy(&bytes);
        text.lines()
            .filter(|line| is_kept(line))
            .fold(String::new(), |text, line| text + line + "\n")
            .into_bytes()
    };
    Ok(match path.rsplit('/').next() {
        Some("mounts") => kept(|line| {
            line.split(' ').nth(2).is_some_and(|kind| matches!(kind, "binder" | "debugfs" | "tracefs"))
        }),
        Some("modules.dep") => kept(|line| line.contains("binder")),
        _ => bytes,
    })
}

/// The files below a folder whose paths match a pattern.
fn matching(root: &Path, pattern: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for step in pattern.split('/') {
        let mut next = Vec::new();
        for path in &found {
            let inner = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            match step.contains('*') {
                false => next.extend(Some(inner(step)).filter(|path| root.join(path).exists())),
                true => {
                    let names = fs::read_dir(root.join(path)).into_iter().flatten().flatten();
                    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
                    next.extend(names.filter(|name| fits(name, step)).take(MOST).map(|name| inner(&name)));
                }
            }
        }
        found = next;
    }
    found.retain(|path| root.join(path).is_file());
    found
}

/// Whether a name is this one, in which each `*` stands for anything.
fn fits(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod names {
    use super::fits;

    #[test]
    fn stars_stand_for_anything() {
        for (name, pattern, want) in [
            ("cpu", "cpu", true),
            ("cpus", "cpu", false),
            ("cpu10", "cpu*", true),
            ("xcpu10", "cpu*", false),
            ("binder_linux", "*binder*", true),
            ("rust_binder", "*binder*", true),
            ("bind", "*binder*", false),
            ("scaling_max_freq", "*_freq", true),
            ("freq", "*_freq", false),
        ] {
            assert_eq!(fits(name, pattern), want, "{name} {pattern}");
        }
    }
}
