//! Categories of events by their `atrace` names, and which of their events this kernel has.
//! Not here: enabling them (`atrace`, `record`).
//! Facts: frameworks/native `cmds/atrace/atrace.cpp` (Android 14) for names, required and optional events. The Rust
//! driver's group is `rust_binder`, with the same event names (contract TP-01, TP-14). Events that `atrace` does not
//! record are marked as ours.

use std::fs;

use super::tracefs::{Buffer, TraceError};

/// A named set of events.
#[derive(Debug, PartialEq, Eq)]
pub struct Category {
    /// Name on the command line.
    pub name: &'static str,
    /// Description.
    pub title: &'static str,
    /// Required `GROUP/EVENT`s or whole `GROUP`s; a missing one is reported.
    required: &'static [&'static str],
    /// Events that not every kernel has.
    optional: &'static [&'static str],
}

/// Declares the table of categories.
macro_rules! categories {
    ($($name:ident $title:literal [$($required:literal)*] [$($optional:literal)*])*) => {
        /// All categories.
        pub static CATEGORIES: &[Category] = &[$(Category {
            name: stringify!($name), title: $title, required: &[$($required),*], optional: &[$($optional),*],
        }),*];
    };
}

// Not in `atrace`: the last three of sched, irq_vectors, lock and binder_detail. They add migrations, first wake-ups,
// the x86 names of timer and reschedule interrupts, and all other driver events.
categories! {
    sched "CPU scheduling"
        ["sched/sched_switch" "sched/sched_wakeup"]
        ["sched/sched_waking" "sched/sched_blocked_reason" "sched/sched_cpu_hotplug" "sched/sched_pi_setprio"
         "sched/sched_process_exit" "cgroup" "oom/oom_score_adj_update" "task/task_rename" "task/task_newtask"
         "sched/sched_wakeup_new" "sched/sched_migrate_task"]
    freq "CPU frequency"
        ["power/cpu_frequency"]
        ["power/clock_set_rate" "power/clock_disable" "power/clock_enable" "clk/clk_set_rate" "clk/clk_disable"
         "clk/clk_enable" "power/cpu_frequency_limits" "power/suspend_resume" "cpuhp/cpuhp_enter"
         "cpuhp/cpuhp_exit" "cpuhp/cpuhp_pause"]
    idle "CPU idle" ["power/cpu_idle"] []
    irq "Interrupts" ["irq"] ["ipi" "irq_vectors"]
    irqoff "Interrupts switched off" ["preemptirq/irq_enable" "preemptirq/irq_disable"] []
    preemptoff "Preemption switched off" ["preemptirq/preempt_enable" "preemptirq/preempt_disable"] []
    workq "Kernel work queues" ["workqueue"] []
    sync "Fences of graphics buffers" [] ["sync" "fence" "dma_fence"]
    binder_driver "Binder driver"
        ["binder/binder_transaction" "binder/binder_transaction_received" "binder/binder_transaction_alloc_buf"]
        ["binder/binder_set_priority"]
    binder_lock "Binder's global lock (before Linux 4.14)"
        ["binder/binder_lock" "binder/binder_locked" "binder/binder_unlock"] []
    binder_detail "Everything the binder driver traces" ["binder"] []
    memreclaim "Memory reclaim"
        ["vmscan/mm_vmscan_direct_reclaim_begin" "vmscan/mm_vmscan_direct_reclaim_end"
         "vmscan/mm_vmscan_kswapd_wake" "vmscan/mm_vmscan_kswapd_sleep"]
        ["lowmemorykiller"]
    lock "Contended locks of the kernel" ["lock/contention_begin" "lock/contention_end"] []
    disk "Disk I/O"
        ["block/block_rq_issue" "block/block_rq_complete"]
        ["f2fs/f2fs_sync_file_enter" "f2fs/f2fs_sync_file_exit" "f2fs/f2fs_write_begin" "f2fs/f2fs_write_end"
         "ext4/ext4_da_write_begin" "ext4/ext4_da_write_end" "ext4/ext4_sync_file_enter" "ext4/ext4_sync_file_exit"]
    mmc "eMMC commands" ["mmc"] []
    pagecache "Page cache" ["filemap"] []
    membus "Memory bus" [] ["memory_bus"]
    memory "Memory use"
        []
        ["kmem/rss_stat" "kmem/ion_heap_grow" "kmem/ion_heap_shrink" "ion/ion_stat" "gpu_mem/gpu_mem_total"]
    i2c "I2C bus"
        ["i2c/i2c_read" "i2c/i2c_write" "i2c/i2c_result" "i2c/i2c_reply"]
        ["i2c/smbus_read" "i2c/smbus_write" "i2c/smbus_result" "i2c/smbus_reply"]
    regulators "Voltage and current regulators" ["regulator"] []
    thermal "Temperatures and cooling" ["thermal/thermal_temperature"] ["thermal/cdev_update"]
}

impl Category {
    /// Whether the category includes the embedded driver's events, which that driver writes itself.
    #[must_use]
    pub fn is_of_binder(&self) -> bool {
        matches!(self.name, "binder_driver" | "binder_detail")
    }

    /// The events as Perfetto's recorder wants them, `GROUP/EVENT` or `GROUP/*`: of any kernel, and of both drivers.
    pub(crate) fn for_perfetto(&self) -> Vec<String> {
        let mut events = Vec::new();
        for event in self.required.iter().chain(self.optional) {
            let (group, name) = event.split_once('/').unwrap_or((event, "*"));
            let groups = if group == DRIVERS[0] { &DRIVERS[..] } else { &[group][..] };
            events.extend(groups.iter().map(|group| format!("{group}/{name}")));
        }
        events
    }
}

/// Categories of Android's frameworks and applications: sections written through `trace_marker` when an Android
/// system property enables them.
pub const OF_USERSPACE: [&str; 26] = [
    "gfx", "input", "view", "webview", "wm", "am", "sm", "audio", "video", "camera", "hal", "res", "dalvik",
    "rs", "bionic", "power", "pm", "ss", "database", "network", "adb", "vibrator", "aidl", "nnapi", "rro",
    "pdx",
];

/// The default categories of a recording.
pub const USUAL: [&str; 8] = ["sched", "freq", "idle", "irq", "workq", "sync", "binder_driver", "memreclaim"];

/// Event groups of the C and the Rust driver.
const DRIVERS: [&str; 2] = ["binder", "rust_binder"];

/// The category with this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Category> {
    CATEGORIES.iter().find(|category| category.name == name)
}

/// Known names, for an error message about an unknown one.
#[must_use]
pub fn names() -> String {
    CATEGORIES.iter().map(|category| category.name).collect::<Vec<_>>().join(" ")
}

/// What this kernel has of some categories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// `GROUP/EVENT`, without duplicates, in the order of the categories.
    pub events: Vec<String>,
    /// One line per incomplete category, and one for all missing optional events.
    pub notes: Vec<String>,
}

/// The events that a name stands for: itself, those of its group, and those of the other driver's group.
fn expand(buffer: &Buffer, event: &str) -> Vec<String> {
    let (group, name) = event.split_once('/').map_or((event, None), |(group, name)| (group, Some(name)));
    let groups = if group == DRIVERS[0] { &DRIVERS[..] } else { &[group][..] };
    let mut found = Vec::new();
    for group in groups {
        let folder = buffer.events_folder().join(group);
        match name {
            Some(name) if folder.join(name).join("enable").exists() => found.push(format!("{group}/{name}")),
            Some(_) => {}
            None => {
                let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
                let events = entries.filter(|entry| entry.path().join("enable").exists());
                let mut names: Vec<String> =
                    events.map(|event| format!("{group}/{}", event.file_name().to_string_lossy())).collect();
                names.sort_unstable();
                found.extend(names);
            }
        }
    }
    found
}

/// One category: events found, required and optional names missing.
struct Parts {
    events: Vec<String>,
    required: Vec<&'static str>,
    optional: Vec<&'static str>,
}

fn parts(buffer: &Buffer, category: &Category) -> Parts {
    let mut events = Vec::new();
    let mut missing = |wanted: &[&'static str]| {
        let mut missing = Vec::new();
        for event in wanted {
            let found = expand(buffer, event);
            if found.is_empty() {
                missing.push(*event);
            }
            events.extend(found);
        }
        missing
    };
    let (required, optional) = (missing(category.required), missing(category.optional));
    Parts { events, required, optional }
}

/// The note about a category that lacks a required event.
fn word(category: &Category, parts: &Parts) -> Option<String> {
    let name = category.name;
    if parts.events.is_empty() {
        return Some(match name {
            _ if category.is_of_binder() => format!(
                "{name}: this kernel has no binder driver; the embedded driver's processes write its events themselves, \
                 through trace_marker"
            ),
            _ => format!("{name}: this kernel has nothing of it"),
        });
    }
    match parts.required.as_slice() {
        [] => None,
        required => Some(format!("{name}: not whole, this kernel has no {}", required.join(" "))),
    }
}

/// Finds the events of these categories.
#[must_use]
pub fn find(buffer: &Buffer, categories: &[&Category]) -> Found {
    let mut found = Found::default();
    let mut lacking = Vec::new();
    for category in categories {
        let parts = parts(buffer, category);
        found.notes.extend(word(category, &parts));
        if !parts.events.is_empty() {
            lacking.extend(parts.optional);
        }
        for event in parts.events {
            if !found.events.contains(&event) {
                found.events.push(event);
            }
        }
    }
    if !lacking.is_empty() {
        found.notes.push(format!("optional, and not in this kernel: {}", lacking.join(" ")));
    }
    found
}

/// The categories that this kernel has at least partly, as `atrace` lists them. Binder's are always listed, because
/// the embedded driver has events of its own.
#[must_use]
pub fn list(buffer: &Buffer) -> String {
    let mut text = String::new();
    for category in CATEGORIES {
        let parts = parts(buffer, category);
        let lacks = match (parts.events.is_empty(), parts.required.as_slice()) {
            (true, _) if category.is_of_binder() => " (the embedded one's events only)".to_owned(),
            (true, _) => continue,
            (false, []) => String::new(),
            (false, required) => format!(" (without {})", required.join(" ")),
        };
        text += &format!("{:>14} - {}{lacks}\n", category.name, category.title);
    }
    text
}

/// Splits names into categories of kernel events and of userspace events.
///
/// # Errors
/// [`TraceError::Usage`] names the unknown one and the valid ones.
pub fn known<N: AsRef<str>>(words: &[N]) -> Result<(Vec<&'static Category>, Vec<&str>), TraceError> {
    let (mut kernel, mut userspace) = (Vec::new(), Vec::new());
    for name in words.iter().map(AsRef::as_ref) {
        match named(name) {
            Some(category) => kernel.push(category),
            None if OF_USERSPACE.contains(&name) => userspace.push(name),
            None => {
                return Err(TraceError::Usage(format!(
                    "unknown tracing category {name:?}; there are: {}",
                    names()
                )));
            }
        }
    }
    Ok((kernel, userspace))
}

/// A remark on categories that need Android's userspace, if there are any.
#[must_use]
pub fn of_userspace(names: &[&str]) -> Option<String> {
    let remark = || {
        format!(
            "{}: sections that Android's own programs write into the trace when a system property tells them to; this \
             program sets none",
            names.join(" ")
        )
    };
    (!names.is_empty()).then(remark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Folder;

    /// A tracefs folder with these events.
    fn kernel(name: &str, events: &[&str]) -> (Folder, Buffer) {
        let files: Vec<_> = events.iter().map(|event| format!("events/{event}/enable")).collect();
        let files: Vec<_> = files.iter().map(|file| (file.as_str(), "0\n")).collect();
        let root = Folder::new(&format!("events-{name}"), &files);
        let buffer = Buffer::at(&root);
        (root, buffer)
    }

    fn found(buffer: &Buffer, names: &[&str]) -> Found {
        let categories: Vec<_> = names.iter().map(|name| named(name).expect("known")).collect();
        find(buffer, &categories)
    }

    #[test]
    fn names_are_unique_and_the_usual_ones_known() {
        let mut names: Vec<&str> = CATEGORIES.iter().map(|category| category.name).collect();
        names.extend(OF_USERSPACE);
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(USUAL.iter().all(|name| named(name).is_some()));
    }

    #[test]
    fn what_is_missing_is_said_and_the_rest_recorded() {
        let (_root, buffer) = kernel("c", &["sched/sched_switch", "irq/one", "irq/two", "power/cpu_idle"]);
        let all = found(&buffer, &["sched", "irq", "idle", "freq", "binder_driver", "idle"]);
        assert_eq!(all.events, ["sched/sched_switch", "irq/one", "irq/two", "power/cpu_idle"]);
        let note = |start: &str| all.notes.iter().find(|note| note.starts_with(start)).expect("said");
        assert!(note("sched:").contains("not whole, this kernel has no sched/sched_wakeup"));
        assert!(note("optional,").contains(" ipi irq_vectors"));
        assert!(note("freq:").contains("nothing of it"));
        assert!(note("binder_driver:").contains("trace_marker"));
        assert_eq!(all.notes.len(), 4, "irq and idle are whole: {:?}", all.notes);
        let listed = list(&buffer);
        assert!(listed.contains("sched - CPU scheduling (without sched/sched_wakeup)\n"), "{listed}");
        assert!(listed.contains("idle - CPU idle\n") && listed.contains("binder_driver - "), "{listed}");
        assert!(!listed.contains("freq"), "{listed}");
    }

    #[test]
    fn the_rust_drivers_events_are_binders() {
        let events =
            ["binder_transaction", "binder_transaction_received"].map(|name| format!("rust_binder/{name}"));
        let (_root, buffer) = kernel("rust", &events.each_ref().map(String::as_str));
        let all = found(&buffer, &["binder_driver"]);
        assert_eq!(all.events, events);
        assert!(all.notes[0].contains("no binder/binder_transaction_alloc_buf"), "{:?}", all.notes);
    }

    #[test]
    fn an_unknown_category_is_said_with_those_there_are() {
        let names = ["sched", "gfx", "skhed"].map(str::to_owned);
        let (kernel, userspace) = known(&names[..2]).expect("known");
        assert_eq!((kernel.len(), userspace), (1, vec!["gfx"]));
        let trouble = known(&names).expect_err("unknown").to_string();
        assert!(trouble.contains("\"skhed\"") && trouble.contains("binder_driver"), "{trouble}");
    }
}
