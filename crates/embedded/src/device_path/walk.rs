//! Way to a device over links, `..`, and folders that a path is relative to.
//!
//! The kernel does not walk it, because the machine has no file there. Links are read one after another, as `path_resolution(7)`
//! has it; a part that is missing is taken as it is written.

use std::os::fd::RawFd;
use std::path::Path;

use sys::path::{read_link, terminated};

use super::{BINDERFS, Found, Paths};

/// Most links of one path, as in the kernel.
const LINKS: usize = 40;

/// The process whose folders and links a path goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// This process.
    Own,
    /// Another process, by one of its threads.
    Thread(i32),
}

impl Whose {
    fn proc(self) -> String {
        match self {
            Self::Own => "/proc/self".to_owned(),
            Self::Thread(id) => format!("/proc/{id}"),
        }
    }

    /// A path of its, as this process reaches it.
    #[must_use]
    pub fn reached(self, folder: RawFd, path: &str) -> String {
        match self {
            _ if !path.starts_with('/') => format!("{}/{path}", self.folder(folder)),
            Self::Own => path.to_owned(),
            Self::Thread(id) => match below_own_proc(path) {
                Some((true, below)) => format!("/proc/{id}/task/{id}{below}"),
                Some((false, below)) => format!("/proc/{id}{below}"),
                None => format!("{}/root{path}", self.proc()),
            },
        }
    }

    /// The folder that relative paths begin in: that of a descriptor, or the working directory.
    fn folder(self, folder: RawFd) -> String {
        match folder {
            sys::call::AT_FDCWD => format!("{}/cwd", self.proc()),
            number => format!("{}/fd/{number}", self.proc()),
        }
    }
}

/// The rest of a path below `/proc/self`, or below `/proc/thread-self` (true): they are another folder for each reader.
fn below_own_proc(path: &str) -> Option<(bool, &str)> {
    let below = path.strip_prefix("/proc/")?;
    let rest = |name| below.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    rest("self").map(|rest| (false, rest)).or_else(|| rest("thread-self").map(|rest| (true, rest)))
}

fn link(path: &str) -> Option<String> {
    let target = read_link(&terminated(Path::new(path)).ok()?).ok()?;
    String::from_utf8(target).ok()
}

/// The descriptor of a process that a path below its `/proc` names.
#[must_use]
pub fn descriptor(path: &[u8], process: u32) -> Option<RawFd> {
    let path = std::str::from_utf8(path).ok()?;
    let own = format!("/proc/{process}/fd/");
    let begins = ["/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/", &own];
    begins.iter().find_map(|begin| path.strip_prefix(begin))?.parse().ok()
}

impl Paths {
    /// The folder in which a relative path begins, as programs see it; `None` if it is not open.
    fn base(&self, whose: Whose, folder: RawFd) -> Option<String> {
        let path = link(&whose.folder(folder))?;
        Some(self.outward(path.as_bytes()).unwrap_or(path))
    }

    /// True if a relative path begins in a folder of ours, or where a device is named.
    #[must_use]
    pub fn is_likely_in(&self, whose: Whose, folder: RawFd, path: &[u8]) -> bool {
        self.is_likely(path)
            || !path.starts_with(b"/")
                && self.base(whose, folder).is_some_and(|base| base.starts_with(BINDERFS))
    }

    /// The file of ours that a path leads to. `follow`: also over a link at its end.
    #[must_use]
    pub fn find(&self, whose: Whose, folder: RawFd, path: &[u8], follow: bool) -> Option<Found> {
        let path = std::str::from_utf8(path).ok().filter(|path| !path.is_empty())?;
        let mut done = match path.starts_with('/') {
            true => String::new(),
            false => self.base(whose, folder)?.trim_end_matches('/').to_owned(),
        };
        let parts = |path: &str| path.split('/').rev().map(str::to_owned).collect::<Vec<_>>();
        let (mut rest, mut links) = (parts(path), 0);
        while let Some(part) = rest.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    done.truncate(done.rfind('/').unwrap_or(0));
                    continue;
                }
                _ => done = format!("{done}/{part}"),
            }
            if let Some(seen) = self.outward(done.as_bytes()) {
                done = seen;
            }
            let is_last = rest.iter().all(String::is_empty);
            if done == "/dev" || self.at(&done).is_some() || is_last && !follow {
                continue;
            }
            let Some(target) = link(&whose.reached(sys::call::AT_FDCWD, &done)) else { continue };
            links += 1;
            if links > LINKS {
                return None;
            }
            let above = if target.starts_with('/') { 0 } else { done.rfind('/').unwrap_or(0) };
            done.truncate(above);
            rest.extend(parts(&target));
        }
        let found = self.at(&done)?;
        (!path.ends_with('/') || matches!(found, Found::Entry(_))).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_device_is_found_over_links_and_dots() {
        let folder = sys::private_folder::PrivateFolder::new("test").expect("a folder");
        let paths = Paths::new(&folder.path().join("ctx"), "").expect("no rules");
        let at = |name: &str| folder.path().join(name);
        symlink("/dev/binder", at("device")).expect("a link");
        symlink("device", at("again")).expect("a link");
        symlink("/dev", at("dev")).expect("a link");
        symlink("/dev/binderfs", at("fs")).expect("a link");
        symlink("loop", at("loop")).expect("a link");
        let own = |path: &str, follow| {
            let path = path.replace('@', &folder.path().to_string_lossy());
            paths.find(Whose::Own, sys::call::AT_FDCWD, path.as_bytes(), follow).map(|found| found.path())
        };
        for path in [
            "/dev/binder",
            "/dev//./binder",
            "/dev/../dev/binder",
            "@/device",
            "@/again",
            "@/dev/binder",
            "@/../../../../../dev/binder",
            "@/fs/../binder",
        ] {
            assert_eq!(own(path, true).as_deref(), Some("/dev/binder"), "{path}");
        }
        assert_eq!(own("@/fs/x", false).as_deref(), Some("/dev/binderfs/x"));
        assert_eq!(own("@/ctx/binderfs/x", false).as_deref(), Some("/dev/binderfs/x"));
        for path in ["@/device/", "/dev/binder/", "@/loop", "/dev/null", "", "@/none", "/dev/binder/x"] {
            assert_eq!(own(path, true), None, "{path}");
        }
        assert_eq!(own("@/device", false), None, "the link itself");
    }

    #[test]
    fn a_process_reads_its_own_proc() {
        let folder = sys::private_folder::PrivateFolder::new("test").expect("a folder");
        let paths = Paths::new(&folder.path().join("ctx"), "").expect("no rules");
        symlink("/dev/binder", folder.path().join("device")).expect("a link");
        let mut command = std::process::Command::new("sleep");
        let mut child = command.arg("100").current_dir(folder.path()).spawn().expect("sleep");
        let whose = Whose::Thread(child.id() as i32);
        let found = |path: &str| {
            let found = paths.find(whose, sys::call::AT_FDCWD, path.as_bytes(), true);
            found.map(|found| found.path())
        };
        let wanted = Some("/dev/binder".to_owned());
        for path in ["/proc/self/cwd/device", "/proc/thread-self/cwd/device", "/proc/self/../self/cwd/device"]
        {
            assert_eq!(found(path), wanted, "{path}");
        }
        assert_eq!((found("/proc/self/device"), found("/proc/selfish/cwd/device")), (None, None));
        child.kill().and_then(|()| child.wait()).expect("ours");
    }

    #[test]
    fn a_path_of_proc_names_a_descriptor() {
        assert_eq!(descriptor(b"/proc/self/fd/7", 5), Some(7));
        assert_eq!(descriptor(b"/proc/5/fd/7", 5), Some(7));
        assert_eq!(descriptor(b"/dev/fd/7", 5), Some(7));
        assert_eq!((descriptor(b"/proc/6/fd/7", 5), descriptor(b"/proc/self/fd/", 5)), (None, None));
    }
}
