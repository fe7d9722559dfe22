//! Paths of devices that an unmodified program opens, and the names of their contexts.
//! Not here: what the program's calls become (crates `preload` and `supervise`).
//! Facts: contract OPN-12, binderfs (`Documentation/admin-guide/binderfs.rst`): any device name there.

use crate::rpc::framing;

/// Devices outside of a binderfs.
const NAMES: [&str; 3] = ["binder", "hwbinder", "vndbinder"];
/// Mount point of binderfs.
const BINDERFS: &str = "/dev/binderfs/";
/// Entries of a binderfs that are no devices.
const NO_DEVICES: [&str; 3] = ["binder-control", "features", "binder_logs"];

/// Whether a path may name a device: a quick look at its beginning.
#[must_use]
pub fn may_be_device(path: &[u8]) -> bool {
    path.starts_with(b"/dev/") || path.starts_with(b"//") || path.starts_with(b"/.")
}

/// Name of the context whose device a path names; `None` for any other file.
#[must_use]
pub fn device(path: &[u8]) -> Option<String> {
    let path = std::str::from_utf8(path).ok().filter(|path| path.starts_with('/') && !path.ends_with('/'))?;
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return None;
    }
    let plain = format!("/{}", parts.join("/"));
    if let Some(name) = plain.strip_prefix(BINDERFS) {
        return is_name(name).then(|| name.to_owned());
    }
    let name = plain.strip_prefix("/dev/")?;
    NAMES.contains(&name).then(|| name.to_owned())
}

/// Whether a device in a binderfs may have this name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    framing::is_name(name) && !NO_DEVICES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_known_by_their_paths() {
        for (path, name) in [
            ("/dev/binder", "binder"),
            ("/dev/hwbinder", "hwbinder"),
            ("/dev/vndbinder", "vndbinder"),
            ("/dev/binderfs/anything", "anything"),
            ("/dev//binder", "binder"),
            ("//dev/./binderfs//x", "x"),
        ] {
            assert!(may_be_device(path.as_bytes()), "{path}");
            assert_eq!(device(path.as_bytes()).as_deref(), Some(name), "{path}");
        }
    }

    #[test]
    fn other_files_are_left_alone() {
        let long = format!("/dev/binderfs/{}", "x".repeat(256));
        for path in [
            "binder",
            "/binder",
            "/dev/binder1",
            "/dev/binder/",
            "/dev/null",
            "/dev/binderfs",
            "/dev/binderfs/",
            "/dev/binderfs/binder-control",
            "/dev/binderfs/features/extended_error",
            "/dev/binderfs/binder_logs",
            "/dev/binderfs/a:b",
            "/dev/../dev/binder",
            "",
            &long,
        ] {
            assert_eq!(device(path.as_bytes()), None, "{path}");
        }
        assert_eq!(device(b"/dev/binderfs/\xff"), None);
        assert!(is_name("binder") && !is_name("") && !is_name(".."));
    }
}
