//! Finding the process that manages a context.
//! Not here: becoming the manager (`connection`), calling it (`ipc`).
//! Facts: contract CTX-01, CTX-02, DBG-01, DBG-02 (the manager's node has ptr 0 and cookie 0).

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A process that holds a binder device open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its name (`/proc/PID/comm`).
    pub name: String,
    /// Whether the driver's state file shows it to own the manager's node.
    pub manages: bool,
}

/// Why a process could not become the context manager.
#[derive(Debug)]
pub struct ManagerError {
    /// The device.
    pub path: PathBuf,
    /// `EBUSY`, `EPERM`, ...
    pub source: io::Error,
    /// Processes that hold the device, the manager first.
    pub holders: Vec<Holder>,
}

impl ManagerError {
    /// Looks up who is in the way of becoming the manager of `device`.
    #[must_use]
    pub fn new(device: &Path, source: io::Error) -> Self {
        let mut holders = holders(device);
        // This process holds it, too, and is not what the user looks for.
        holders.retain(|holder| holder.manages || holder.pid != std::process::id());
        Self { path: device.to_owned(), source, holders }
    }
}

impl fmt::Display for ManagerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "could not become the context manager of {}: {}",
            self.path.display(),
            sys::errno::describe(&self.source)
        )?;
        match self.source.kind() {
            io::ErrorKind::ResourceBusy => f.write_str("; it has one already")?,
            io::ErrorKind::PermissionDenied => {
                f.write_str("; its first manager had another uid, or a security module forbids it")?;
            }
            _ => {}
        }
        for holder in &self.holders {
            let what = if holder.manages { "the manager is" } else { "it is held open by" };
            write!(f, "; {what} pid {} ({})", holder.pid, holder.name)?;
        }
        f.write_str("; use a private device (--device private), another context, or stop that process")
    }
}

impl std::error::Error for ManagerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The processes that hold `device` open, the manager first. Needs the right to look at them; those that may not be
/// looked at are missing.
fn holders(device: &Path) -> Vec<Holder> {
    let device = fs::canonicalize(device).unwrap_or_else(|_| device.to_owned());
    let context = device.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let states = ["/sys/kernel/debug/binder/state", "/dev/binderfs/binder_logs/state"];
    let state: String = states.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    let manager = manager_in_state(&state, &context);
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let open = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        if open.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|target| target == device) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default().trim().to_owned();
            found.push(Holder { pid, name, manages: manager == Some(pid) });
        }
    }
    found.sort_by_key(|holder| (!holder.manages, holder.pid));
    found
}

/// The process whose block in a state file has, in this context, the node with ptr 0 and cookie 0.
fn manager_in_state(state: &str, context: &str) -> Option<u32> {
    let (mut pid, mut in_context) = (None, false);
    for line in state.lines() {
        if let Some(number) = line.strip_prefix("proc ") {
            (pid, in_context) = (number.trim().parse().ok(), false);
        } else if let Some(name) = line.strip_prefix("context ") {
            in_context = name.trim() == context;
        } else if in_context && line.trim_start().starts_with("node ") {
            let mut words = line.split_whitespace().skip(2);
            let is_zero = |word: Option<&str>, tag| word == Some(&format!("{tag}{:016x}", 0));
            if is_zero(words.next(), 'u') && is_zero(words.next(), 'c') {
                return pid;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_is_the_owner_of_the_zero_node_in_that_context() {
        let state = "binder state:\n\
            proc 10\ncontext hwbinder\n  node 1: u0000000000000000 c0000000000000000 hs 1\n\
            proc 20\ncontext binder\n  thread 20: l 12\n  node 5: u00007f0000000000 c0000000000000000 hs 1\n\
            proc 30\ncontext binder\n  node 2: u0000000000000000 c0000000000000000 hs 1 hw 1\n";
        assert_eq!(manager_in_state(state, "binder"), Some(30));
        assert_eq!(manager_in_state(state, "hwbinder"), Some(10));
        assert_eq!(manager_in_state(state, "vndbinder"), None);
    }

    #[test]
    fn a_holder_is_found_and_named() {
        let folder = sys::private_folder::PrivateFolder::new("test").expect("a folder");
        let file = folder.path().join("held");
        let _open = fs::File::create(&file).expect("create");
        let found = holders(&file);
        assert_eq!(found.iter().map(|holder| holder.pid).collect::<Vec<_>>(), [std::process::id()]);
        let text = ManagerError { path: file, source: io::ErrorKind::ResourceBusy.into(), holders: found }
            .to_string();
        assert!(text.contains(&format!("pid {}", std::process::id())), "{text}");
    }
}
