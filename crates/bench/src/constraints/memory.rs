//! Little memory: a control group with a limit around this process and all that it starts, and pressure on what the group's
//! limit does not reach, the kernel driver's buffers.
//! Not here: making a group (`control_group`), what is kept of it (`record::LimitedMemory`).
//! Facts: both drivers of Linux 7.2 allocate a buffer's pages by `alloc_page` without `__GFP_ACCOUNT`, so no group is charged
//! (`binder_page_alloc`, `page_range.rs`), and register their shrinkers without `SHRINKER_MEMCG_AWARE`, so a group's reclaim never
//! calls them (`shrink_slab`). `drop_caches` 2 calls every shrinker. The pages are in `/proc/PID/smaps`, in the mapping with
//! `VM_MIXEDMAP`; they stay there when a buffer is freed, until a shrinker takes them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use record::LimitedMemory;

use crate::control_group::{ControlGroup, Hierarchy, failed};

/// Beginning of the name of each group that this program makes.
const PREFIX: &str = "binderperf-memory-";
/// Interval of the looks at the buffers.
const LOOK: Duration = Duration::from_millis(50);
/// Time limit for the last processes to end.
const GRACE: Duration = Duration::from_secs(5);
/// The file by which the kernel is made to call all shrinkers.
const SHRINK: &str = "/proc/sys/vm/drop_caches";

/// The group with this process in it, which leaves it on drop.
pub(super) struct Enclosed {
    group: ControlGroup,
    limit_bytes: u64,
    /// Where this process came from.
    home: PathBuf,
    over: Arc<AtomicBool>,
    watch: Option<JoinHandle<Buffers>>,
}

impl Enclosed {
    /// Makes the group and moves this process into it; what it starts from now on begins there.
    ///
    /// # Errors
    /// This machine cannot, or does not permit it: a message for the user.
    pub(super) fn enter(limit_bytes: u64) -> Result<Self, String> {
        let lacks = "the memory controller of cgroup version 2 is needed";
        let at = Hierarchy::of("memory")
            .ok_or_else(|| format!("{lacks}, and no control group of this process is found"))?;
        if !at.is_v2 {
            return Err(format!("{lacks}, and here it is one of version 1 ({})", at.root.display()));
        }
        let known = at.root.join("cgroup.controllers");
        let has = |text: String| text.split_whitespace().any(|word| word == "memory");
        if !fs::read_to_string(&known).map_err(|error| failed(&known, &error)).map(has)? {
            return Err(format!("{lacks}, which {} does not have (CONFIG_MEMCG)", known.display()));
        }
        fs::OpenOptions::new()
            .write(true)
            .open(SHRINK)
            .map_err(|error| format!("root is needed: {}", failed(Path::new(SHRINK), &error)))?;
        procgroup::sacrifice_workers();
        let group = ControlGroup::make(&at, "memory", PREFIX)?;
        group.write("memory.max", &limit_bytes.to_string())?;
        let (over, home) = (Arc::new(AtomicBool::new(false)), at.own.join(at.list()));
        group.write("cgroup.procs", "0")?;
        let mut enclosed = Self { group, limit_bytes, home, over: over.clone(), watch: None };
        let folder = enclosed.group.folder.clone();
        let watch = move || Buffers::watch(&folder, limit_bytes, &over);
        let started = sys::title::thread("memory", watch);
        enclosed.watch = Some(started.map_err(|error| sys::errno::describe(&error))?);
        Ok(enclosed)
    }

    /// Leaves the group; returns what happened in it, and why that is not the whole test, if it is not.
    pub(super) fn leave(mut self) -> (LimitedMemory, Option<&'static str>) {
        let buffers = self.end_watch();
        let is_watched = buffers.as_ref().is_some_and(|buffers| !buffers.is_lost);
        let buffers = buffers.unwrap_or_default();
        let number = |file: &str, key: &str| number(&self.group.folder, file, key);
        let page = sys::page::size() as u64;
        // The kernel rounds it down to whole pages.
        let limit = read_number(&self.group.folder.join("memory.max")).map(|limit| limit / page);
        let is_limited = limit == Some(self.limit_bytes / page);
        let refaulted =
            ["workingset_refault_anon", "workingset_refault_file"].map(|key| number("memory.stat", key));
        let memory = LimitedMemory {
            limit_bytes: self.limit_bytes,
            peak_bytes: read_number(&self.group.folder.join("memory.peak")),
            pages_reclaimed: number("memory.stat", "pgsteal"),
            pages_refaulted: refaulted.into_iter().sum(),
            buffers_peak_bytes: buffers.peak,
            buffer_pages_reclaimed: buffers.reclaimed / page,
            buffer_pages_refaulted: buffers.refaulted / page,
            killed: number("memory.events", "oom_kill"),
        };
        let lost = "the control group lost its limit of memory during the test: did somebody switch the controller off?";
        (memory, (!is_watched || !is_limited).then_some(lost))
    }

    fn end_watch(&mut self) -> Option<Buffers> {
        self.over.store(true, Relaxed);
        self.watch.take()?.join().ok()
    }
}

impl Drop for Enclosed {
    fn drop(&mut self) {
        self.end_watch();
        // If this process cannot move back, the group stays until the next test.
        let _ = fs::write(&self.home, "0");
        let _ = sys::patience::until(GRACE, || members(&self.group.folder).is_empty());
    }
}

/// The processes of a group.
fn members(folder: &Path) -> Vec<u32> {
    let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    list.lines().filter_map(|line| line.parse().ok()).collect()
}

fn read_number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The value of a key in a file of a group.
fn number(folder: &Path, file: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(folder.join(file)).ok()?;
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Bytes of the kernel driver's buffers that a process has, by the text of its `smaps`.
fn buffers_of(smaps: &str) -> u64 {
    let (mut sum, mut present, mut is_named) = (0_u64, 0, false);
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        match words.next().unwrap_or_default() {
            "Rss:" => present = words.next().and_then(|kib| kib.parse().ok()).unwrap_or(0_u64) << 10,
            // The kernel's own mappings, as `[vvar]`, can have the flag, too.
            "VmFlags:" if is_named && words.any(|flag| flag == "mm") => sum = sum.saturating_add(present),
            first if !first.ends_with(':') => {
                is_named = words.nth(4).is_some_and(|name| !name.starts_with('['));
            }
            _ => {}
        }
    }
    sum
}

/// Bytes of one process's buffers: those that are there, and those that were taken.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    present: u64,
    taken: u64,
}

/// The buffers of all processes of a group, in bytes.
#[derive(Debug, Default)]
struct Buffers {
    shares: HashMap<u32, Share>,
    peak: u64,
    reclaimed: u64,
    refaulted: u64,
    /// Whether the group's memory could not be read any more.
    is_lost: bool,
}

impl Buffers {
    /// Looks at the buffers of a group until it is over, and has unused ones reclaimed whenever they and what is charged to the
    /// group are more than its limit.
    fn watch(folder: &Path, limit_bytes: u64, over: &AtomicBool) -> Self {
        let mut all = Self::default();
        while !over.load(Relaxed) {
            let now = all.see(&present(folder), false);
            // Pages of files that nobody uses go by themselves when the group is full.
            let idle = number(folder, "memory.stat", "inactive_file").unwrap_or(0);
            let Some(charged) =
                read_number(&folder.join("memory.current")).map(|all| all.saturating_sub(idle))
            else {
                all.is_lost = true;
                break;
            };
            if now > 0 && charged.saturating_add(now) > limit_bytes && fs::write(SHRINK, "2").is_ok() {
                all.see(&present(folder), true);
            }
            std::thread::sleep(LOOK);
        }
        all
    }

    /// Takes over what each process has now, right after a request to reclaim or not; returns the sum. What went without a
    /// request was unmapped.
    fn see(&mut self, now: &[(u32, u64)], requested: bool) -> u64 {
        let last = std::mem::take(&mut self.shares);
        for (pid, present) in now.iter().copied() {
            let mut share = last.get(&pid).copied().unwrap_or_default();
            let (gone, come) = (share.present.saturating_sub(present), present.saturating_sub(share.present));
            let refaulted = come.min(share.taken);
            share.taken -= refaulted;
            self.refaulted += refaulted;
            if requested {
                share.taken += gone;
                self.reclaimed += gone;
            } else if gone > 0 {
                share.taken = 0;
            }
            self.shares.insert(pid, Share { present, ..share });
        }
        let sum = now.iter().map(|(_, present)| present).sum();
        self.peak = self.peak.max(sum);
        sum
    }
}

/// Bytes of buffers of each process of a group.
fn present(folder: &Path) -> Vec<(u32, u64)> {
    let of = |pid: u32| {
        // It may have ended.
        let smaps = fs::read_to_string(format!("/proc/{pid}/smaps")).ok()?;
        Some((pid, buffers_of(&smaps)))
    };
    members(folder).into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "7f00-7f01 r--p 00000000 00:07 104    /dev/binder\nSize: 1016 kB\nRss: 980 kB\nPss: 980 kB\n\
                         VmFlags: rd mr me dc nr sd mm \n7f02-7f03 r--p 00000000 00:00 0    [vvar]\nRss: 4 kB\nVmFlags: rd mm\n\
                         7f04-7f05 rw-p 00000000 00:00 0\nRss: 64 kB\nVmFlags: rd wr mm\n\
                         7f06-7f07 r--p 00000000 00:08 9    /usr/lib/x\nRss: 8 kB\nVmFlags: rd mr mw me\n";

    #[test]
    fn only_the_drivers_mapping_counts() {
        assert_eq!(buffers_of(SMAPS), 980 << 10);
        assert_eq!(buffers_of(""), 0);
        assert_eq!(buffers_of("Rss: x kB\nVmFlags: mm"), 0);
    }

    #[test]
    fn pages_that_come_back_are_counted_once_and_unmapped_ones_not_at_all() {
        let mut all = Buffers::default();
        assert_eq!(all.see(&[(1, 100), (2, 50)], false), 150);
        assert_eq!(all.see(&[(1, 40), (2, 50)], true), 90);
        assert_eq!((all.reclaimed, all.refaulted), (60, 0));
        all.see(&[(1, 130), (2, 60)], false);
        assert_eq!((all.reclaimed, all.refaulted), (60, 60), "30 of the 90 are new, and so are those of 2");
        // 1 unmapped all and 2 ended; 3 began.
        all.see(&[(1, 0), (3, 10)], false);
        all.see(&[(1, 100), (3, 20)], false);
        assert_eq!((all.reclaimed, all.refaulted, all.peak), (60, 60, 190));
    }

    #[test]
    fn a_value_of_a_group_is_found_by_its_whole_key() {
        let folder = sys::private_folder::PrivateFolder::new("group").expect("a folder");
        fs::write(folder.path().join("memory.events"), "oom 3\noom_kill 2\noom_group_kill 0\n")
            .expect("written");
        assert_eq!(number(folder.path(), "memory.events", "oom_kill"), Some(2));
        assert_eq!(number(folder.path(), "memory.events", "kill"), None);
        assert_eq!(number(folder.path(), "memory.stat", "pgsteal"), None);
    }
}
