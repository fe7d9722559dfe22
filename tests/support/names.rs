//! Names of a running program's processes and threads, as `ps` and traces show them.

use std::collections::BTreeSet;
use std::process::Child;
use std::time::{Duration, Instant};

fn text(path: &str) -> String {
    std::fs::read(path).map(|text| String::from_utf8_lossy(&text).trim_end().to_owned()).unwrap_or_default()
}

/// Whether a process keeps this folder open, as one does with its private directory.
pub(crate) fn keeps_open(pid: u32, folder: &str) -> bool {
    let mut open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.any(|entry| std::fs::read_link(entry.path()).is_ok_and(|path| path == std::path::Path::new(folder)))
}

/// All processes below this one, and a private broker of its, which is nobody's child.
pub(crate) fn family(root: u32) -> Vec<u32> {
    let numbers = std::fs::read_dir("/proc").expect("/proc").flatten();
    let all: Vec<u32> = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let parent = |pid: u32| {
        let stat = text(&format!("/proc/{pid}/stat"));
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
    };
    let tree: Vec<(u32, u32)> = all.iter().map(|&pid| (pid, parent(pid))).collect();
    let mut family = vec![root];
    let mut next = 0;
    while let Some(&pid) = family.get(next) {
        family.extend(tree.iter().filter(|(_, parent)| *parent == pid).map(|(child, _)| child));
        next += 1;
    }
    family.extend(super::broker(|folder| keeps_open(root, folder)));
    family.retain(|pid| *pid != root);
    family
}

/// Finds faults in the names of a process and its threads; adds the right ones to `seen`.
///
/// A process is called as its command line begins, and each further thread has another name: one that nobody named has
/// its creator's.
fn faults(pid: u32, seen: &mut BTreeSet<String>) -> Vec<String> {
    let name = text(&format!("/proc/{pid}/comm"));
    let cmdline = text(&format!("/proc/{pid}/cmdline"));
    let title = cmdline.split('\0').next().unwrap_or_default();
    // It has ended.
    if title.is_empty() {
        return Vec::new();
    }
    let mut faults = Vec::new();
    let wanted: String = title.strip_prefix("binderperf: ").unwrap_or_default().chars().take(15).collect();
    if name.is_empty() || name != wanted.trim_end() {
        faults.push(format!("process {pid} is {name:?} and {title:?}"));
    }
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let tid = thread.file_name().to_string_lossy().into_owned();
        let thread = text(&format!("/proc/{pid}/task/{tid}/comm"));
        if tid != pid.to_string() && thread == name {
            faults.push(format!("thread {tid} of {name:?} has no name of its own"));
        }
        seen.insert(thread);
    }
    faults
}

/// Asserts that a running program and all below it get names, and among them these, each of which is one or begins one;
/// then stops it.
#[track_caller]
pub(crate) fn all_named(mut child: Child, wanted: &[&str]) {
    let (start, root) = (Instant::now(), child.id());
    let mut seen = BTreeSet::new();
    let (faults, ended) = loop {
        let mut faults: Vec<String> =
            family(root).into_iter().flat_map(|pid| faults(pid, &mut seen)).collect();
        let own = text(&format!("/proc/{root}/comm"));
        if own != "binderperf" {
            faults.push(format!("the program itself is {own:?}"));
        }
        let missing = wanted.iter().filter(|name| !seen.iter().any(|seen| seen.starts_with(*name)));
        faults.extend(missing.map(|name| format!("nobody is called {name:?}")));
        // A process has its parent's name until it runs its program.
        let ended = child.try_wait().expect("a child").is_some();
        if faults.is_empty() || ended || sys::patience::is_over(start, Duration::from_secs(60)) {
            break (faults, ended);
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    if !ended {
        sys::child::ask_to_end(&mut child).and_then(|()| child.wait()).expect("a child");
    }
    assert!(faults.is_empty(), "{faults:?}, ended: {ended}; seen: {seen:?}");
}
