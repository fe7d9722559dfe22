//! Which driver answers, identified by evidence.
//! Not here: what the drivers promise (`contract/`), the driver as a record describes it (`driver`).
//! Facts: contract OPN-02, TP-01, FS-06; `/proc/sys/kernel/osrelease`.

use std::fmt;

use abi::codes::ioctl;
use driver::Root;
use embedded::Inherit;
use sys::binder_fd::BinderFd;

use super::Release;
use super::driver::event_groups;

/// A binder driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The kernel's driver in C.
    C,
    /// The kernel's driver in Rust.
    Rust,
    /// The driver in user space.
    Embedded,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::C => "C driver",
            Self::Rust => "Rust driver",
            Self::Embedded => "embedded driver",
        })
    }
}

/// The driver under test and how it was recognised.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Which driver.
    pub kind: Kind,
    /// Which kernel.
    pub release: Release,
    /// The kernel's full release name.
    pub release_name: String,
    /// The part of a caller's priority that it inherits (contract section SCH).
    pub inherit: Inherit,
    /// The evidence, one line each.
    pub findings: Vec<String>,
}

impl Evidence {
    /// Whether the kernel is named as one of Android's.
    #[must_use]
    pub fn is_android(&self) -> bool {
        is_android(&self.release_name)
    }
}

/// The driver that the machine's trace events show; `None` if they show none or both.
fn by_files(root: &Root, findings: &mut Vec<String>) -> Option<Kind> {
    let (groups, kind) = match event_groups(root) {
        (false, false) => return None,
        (true, true) => ("binder and rust_binder", None),
        (true, false) => ("binder", Some(Kind::C)),
        (false, true) => ("rust_binder", Some(Kind::Rust)),
    };
    findings.push(format!("trace events of the group {groups}"));
    kind
}

/// What a kernel's driver hands on of a caller's priority. Only Android's has the event that tells of
/// changed policies; where events cannot be seen, its release name tells.
fn handed_on(kind: Kind, root: &Root, release_name: &str, findings: &mut Vec<String>) -> Inherit {
    if kind == Kind::Rust {
        return Inherit::None;
    }
    let mut tracing = ["sys/kernel/tracing", "sys/kernel/debug/tracing"].iter();
    if tracing.any(|tracing| root.exists(format!("{tracing}/events/binder/binder_set_priority"))) {
        findings.push("a trace event binder_set_priority: Android's kernels have it, and others that pass on real-time policies".to_owned());
    } else if is_android(release_name) {
        findings.push(format!("the release name {release_name} of an Android kernel"));
    } else {
        return Inherit::Nice;
    }
    Inherit::Rt
}

/// Whether a release is named as those of Android's common kernels: `6.6.30-android15-8`.
fn is_android(release_name: &str) -> bool {
    release_name.contains("-android")
}

/// Identifies the driver behind an open device; without a device it is the embedded one, with this address and
/// setting.
#[must_use]
pub fn identify(device: Option<&BinderFd>, address: &str, inherit: Option<Inherit>) -> Evidence {
    let root = Root::of_this_machine();
    let release_name = root.text("proc/sys/kernel/osrelease").unwrap_or_default();
    let release = Release::parse(&release_name);
    let Some(device) = device else {
        let findings = vec![format!("there is no device; the address is {address}")];
        let (release, inherit) = (Release::NEWEST, inherit.unwrap_or_default());
        return Evidence { kind: Kind::Embedded, release, release_name, inherit, findings };
    };
    let mut findings = Vec::new();
    let by_files = by_files(&root, &mut findings);
    let answer = match device.raw(ioctl::VERSION, None) {
        Ok(_) => "OK".to_owned(),
        Err(error) => {
            error.raw_os_error().and_then(sys::errno::name).map_or_else(|| error.to_string(), str::to_owned)
        }
    };
    findings.push(format!("BINDER_VERSION with a null pointer gives {answer}"));
    let by_answer = if answer == "EFAULT" { Kind::Rust } else { Kind::C };
    let kind = by_files.unwrap_or(by_answer);
    let inherit = handed_on(kind, &root, &release_name, &mut findings);
    Evidence { kind, release, release_name, inherit, findings }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::driver::root::Fixture;

    #[test]
    fn releases_are_compared_by_number() {
        assert_eq!(Release::parse("6.1.0-38-amd64"), Release(6, 1));
        assert_eq!(Release::parse("7.2.13"), Release(7, 2));
        assert_eq!(Release::parse("nonsense"), Release(0, 0));
        assert!(Release(6, 12) > Release(6, 2));
    }

    #[test]
    fn trace_groups_tell_the_driver() {
        for (name, groups, want) in [
            ("c", &["binder"][..], Some(Kind::C)),
            ("rust", &["rust_binder"], Some(Kind::Rust)),
            ("both", &["binder", "rust_binder"], None),
            ("none", &[], None),
            ("android", &["binder", "binder/binder_set_priority"], Some(Kind::C)),
        ] {
            let machine = Fixture::new(&format!("evidence-{name}"), &[]);
            for group in groups {
                machine.put(format!("sys/kernel/tracing/events/{group}/enable"), "0");
            }
            let root = machine.root();
            let mut findings = Vec::new();
            assert_eq!(by_files(&root, &mut findings), want, "{name}");
            assert_eq!(findings.is_empty(), groups.is_empty(), "{name}");
            let inherit = if name == "android" { Inherit::Rt } else { Inherit::Nice };
            let mut handed_on = |kind, release| handed_on(kind, &root, release, &mut findings);
            assert_eq!(handed_on(Kind::C, "7.2.13"), inherit, "{name}");
            assert_eq!(handed_on(Kind::C, "6.6.30-android15-8"), Inherit::Rt, "{name}");
            assert_eq!(handed_on(Kind::Rust, "7.2.13"), Inherit::None, "{name}");
        }
    }
}
