//! Room: which driver answers, found by evidence.
//! Not here: what the drivers promise (`contract/`).
//! Facts: contract OPN-02, TP-01, FS-06; `/proc/sys/kernel/osrelease`.

use std::fmt;
use std::fs;
use std::path::Path;

use abi::codes::ioctl;
use driver::embedded::Inherit;
use driver::{OpenError, OpenOptions};

use super::item::errno;
use super::subject::Subject;

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

/// A release of Linux, as far as features depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub u32, pub u32);

impl Release {
    /// Newer than any kernel: the embedded driver has all that came with one.
    pub const NEWEST: Self = Self(u32::MAX, 0);

    /// Reads `6.1.0-38-amd64` and the like; 0.0 when it is no release, so that nothing is assumed.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        Self(numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
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
    /// What it hands on of a caller's priority (contract section SCH).
    pub inherit: Inherit,
    /// What was looked at and what it said, one line each.
    pub findings: Vec<String>,
}

impl Evidence {
    /// Whether the kernel is named as one of Android's.
    #[must_use]
    pub fn is_android(&self) -> bool {
        is_android(&self.release_name)
    }
}

/// Where tracefs may be mounted.
const TRACING: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// What a root file system says about the driver.
fn by_files(root: &Path, findings: &mut Vec<String>) -> Option<Kind> {
    for tracing in TRACING {
        let has = |group: &str| root.join(tracing).join("events").join(group).is_dir();
        let (c, rust) = (has("binder"), has("rust_binder"));
        if c || rust {
            let groups = match (c, rust) {
                (true, true) => "binder and rust_binder",
                (true, false) => "binder",
                (false, _) => "rust_binder",
            };
            findings.push(format!("trace events of the group {groups}"));
        }
        match (c, rust) {
            (true, false) => return Some(Kind::C),
            (false, true) => return Some(Kind::Rust),
            _ => {}
        }
    }
    None
}

/// What a kernel's driver hands on of a caller's priority. Only Android's has the event that tells of
/// changed policies; where events cannot be seen, its release name tells.
fn handed_on(kind: Kind, root: &Path, release_name: &str, findings: &mut Vec<String>) -> Inherit {
    if kind == Kind::Rust {
        return Inherit::None;
    }
    let event = "events/binder/binder_set_priority";
    let seen = TRACING.iter().any(|tracing| root.join(tracing).join(event).is_dir());
    if seen {
        findings.push("a trace event binder_set_priority, which Android's kernels have".to_owned());
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

/// Finds out which driver is behind a context.
///
/// # Errors
/// The context cannot be opened.
pub fn examine(subject: &dyn Subject) -> Result<Evidence, OpenError> {
    let release_name = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
    let release = Release::parse(&release_name);
    let connection = subject.open(OpenOptions { map_size: 0, nonblocking: true })?;
    let Some(device) = connection.device() else {
        let findings = vec![format!("there is no device; the address is {}", subject.address())];
        let (release, inherit) = (Release::NEWEST, subject.inherit().unwrap_or_default());
        return Ok(Evidence { kind: Kind::Embedded, release, release_name, inherit, findings });
    };
    let mut findings = Vec::new();
    let by_files = by_files(Path::new("/"), &mut findings);
    let answer = errno(&device.raw(ioctl::VERSION, None));
    findings.push(format!("BINDER_VERSION with a null pointer gives {answer}"));
    let by_answer = if answer == "EFAULT" { Kind::Rust } else { Kind::C };
    let kind = by_files.unwrap_or(by_answer);
    let inherit = handed_on(kind, Path::new("/"), &release_name, &mut findings);
    Ok(Evidence { kind, release, release_name, inherit, findings })
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let root =
                std::env::temp_dir().join(format!("binderperf-evidence-{name}-{}", std::process::id()));
            for group in groups {
                fs::create_dir_all(root.join("sys/kernel/tracing/events").join(group)).expect("make folder");
            }
            let mut findings = Vec::new();
            assert_eq!(by_files(&root, &mut findings), want, "{name}");
            assert_eq!(findings.is_empty(), groups.is_empty(), "{name}");
            let inherit = if name == "android" { Inherit::Rt } else { Inherit::Nice };
            let mut handed_on = |kind, release| handed_on(kind, &root, release, &mut findings);
            assert_eq!(handed_on(Kind::C, "7.2.13"), inherit, "{name}");
            assert_eq!(handed_on(Kind::C, "6.6.30-android15-8"), Inherit::Rt, "{name}");
            assert_eq!(handed_on(Kind::Rust, "7.2.13"), Inherit::None, "{name}");
            let _ = fs::remove_dir_all(&root);
        }
    }
}
