//! Paths of devices that an unmodified program opens, and the names of their contexts.
//! Not here: what the program's calls become (crates `preload` and `supervise`), links and folders on the way (`walk`), the files
//! that are looked at in place of devices (`stand_in`).
//! Facts: contract OPN-12, binderfs (`Documentation/admin-guide/binderfs.rst`): any device name there; Waydroid's
//! `tools/helpers/drivers.py`.

mod stand_in;
mod walk;

use std::path::{Path, PathBuf};

use crate::rpc::framing;

pub use stand_in::{add_device, control_file, ensure, open, shown};
pub use walk::{Whose, descriptor};

/// Devices outside of a binderfs, each with its context: the kernel's names, and those by which Waydroid looks for them.
const NAMES: [(&str, &[&str]); 3] = [
    ("binder", &["binder", "anbox-binder", "bonder", "puddlejumper"]),
    ("hwbinder", &["hwbinder", "anbox-hwbinder", "hwbonder", "hwpuddlejumper"]),
    ("vndbinder", &["vndbinder", "anbox-vndbinder", "vndbonder", "vndpuddlejumper"]),
];
/// Mount point of binderfs.
const BINDERFS: &str = "/dev/binderfs";
/// Entry of a binderfs that adds devices.
const CONTROL: &str = "binder-control";
/// Entries of a binderfs that are no devices.
const NO_DEVICES: [&str; 3] = [CONTROL, "features", "binder_logs"];

/// Variable with the rules of [`Paths`], for the library that is preloaded into unmodified programs.
pub const RULES_VARIABLE: &str = "BINDERPERF_DEVICE_PATHS";

/// A file that the driver has in place of the machine's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The device of a context, by this path without links.
    Device {
        /// The path.
        path: String,
        /// The context's name.
        name: String,
    },
    /// `binder-control`.
    Control,
    /// Another entry of binderfs, or its folder: the path below it.
    Entry(String),
}

impl Found {
    /// Its path without links.
    #[must_use]
    pub fn path(&self) -> String {
        match self {
            Self::Device { path, .. } => path.clone(),
            Self::Control => format!("{BINDERFS}/{CONTROL}"),
            Self::Entry(below) if below.is_empty() => BINDERFS.to_owned(),
            Self::Entry(below) => format!("{BINDERFS}/{below}"),
        }
    }
}

/// Paths of the devices in a directory of contexts.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// The folder of what is looked at in place of devices.
    folder: PathBuf,
    /// Paths that the user made devices, with their contexts.
    rules: Vec<(String, String)>,
}

impl Paths {
    /// The paths of a directory of contexts, with the user's rules: `PATH=NAME`, several with a colon between them.
    ///
    /// # Errors
    /// Text for the user: the rule that is none.
    pub fn new(directory: &Path, rules: &str) -> Result<Self, String> {
        let rules = rules.split(':').filter(|rule| !rule.is_empty()).map(rule).collect::<Result<_, _>>()?;
        // One whose parent is not there can have no contexts.
        let directory = stand_in::without_links(directory).unwrap_or_else(|_| directory.to_owned());
        Ok(Self { folder: stand_in::folder(&directory), rules })
    }

    /// True if a path may lead to a device although the machine has a file there: a quick look at its parts.
    #[must_use]
    pub fn is_likely(&self, path: &[u8]) -> bool {
        let mut parts = path.rsplit(|byte| *byte == b'/');
        let last = parts.next().unwrap_or_default();
        let folder = BINDERFS.rsplit('/').next().unwrap_or_default().as_bytes();
        let ruled =
            |(path, _): &(String, String)| path.rsplit('/').next().unwrap_or_default().as_bytes() == last;
        last == folder
            || NAMES.iter().any(|(_, names)| names.iter().any(|name| name.as_bytes() == last))
            || self.rules.iter().any(ruled)
            || parts.any(|part| part == folder)
    }

    /// The file of ours that a path without links and dots names.
    fn at(&self, path: &str) -> Option<Found> {
        let device = |name: &str| Some(Found::Device { path: path.to_owned(), name: name.to_owned() });
        if let Some((_, name)) = self.rules.iter().find(|(ruled, _)| ruled == path) {
            return device(name);
        }
        if let Some(below) = path.strip_prefix(BINDERFS) {
            return match below.strip_prefix('/') {
                None if below.is_empty() => Some(Found::Entry(String::new())),
                None => None,
                Some(CONTROL) => Some(Found::Control),
                Some(name) if is_name(name) => device(name),
                Some(below) => Some(Found::Entry(below.to_owned())),
            };
        }
        let last = path.strip_prefix("/dev/")?;
        let (context, _) = NAMES.iter().find(|(_, names)| names.contains(&last))?;
        device(context)
    }

    /// The file to look at in place of one of ours.
    #[must_use]
    pub fn stand_in(&self, found: &Found) -> PathBuf {
        match found {
            Found::Device { name, .. } => self.folder.join(name),
            Found::Control => self.folder.join(CONTROL),
            Found::Entry(below) => self.folder.join(below),
        }
    }

    /// A path in the folder of stand-ins, as programs see it.
    #[must_use]
    pub fn outward(&self, path: &[u8]) -> Option<String> {
        let path = std::str::from_utf8(path).ok()?;
        if Path::new(path) == stand_in::control_beside(&self.folder) {
            return Some(Found::Control.path());
        }
        let below = path.strip_prefix(self.folder.to_str()?)?;
        (below.is_empty() || below.starts_with('/')).then(|| format!("{BINDERFS}{below}"))
    }
}

/// A rule of the user's.
///
/// # Errors
/// Text for the user.
fn rule(text: &str) -> Result<(String, String), String> {
    let (path, name) = text.rsplit_once('=').ok_or_else(|| format!("no PATH=NAME: {text:?}"))?;
    let is_plain =
        path.starts_with('/') && path.split('/').skip(1).all(|part| !matches!(part, "" | "." | ".."));
    match is_plain && is_name(name) {
        true => Ok((path.to_owned(), name.to_owned())),
        false => Err(format!("{text:?} is no rule: an absolute path without dots, =, the name of a context")),
    }
}

/// True if a device in a binderfs may have this name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    framing::is_name(name) && !NO_DEVICES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> Paths {
        Paths::new(Path::new("/ctx"), "/dev/my=binder:/opt/it=other").expect("rules")
    }

    #[test]
    fn devices_are_known_by_their_paths() {
        for (path, context) in [
            ("/dev/binder", "binder"),
            ("/dev/hwbinder", "hwbinder"),
            ("/dev/vndbinder", "vndbinder"),
            ("/dev/anbox-hwbinder", "hwbinder"),
            ("/dev/puddlejumper", "binder"),
            ("/dev/binderfs/anything", "anything"),
            ("/dev/binderfs/bonder", "bonder"),
            ("/dev/my", "binder"),
            ("/opt/it", "other"),
        ] {
            let found = paths().at(path);
            let wanted = Found::Device { path: path.to_owned(), name: context.to_owned() };
            assert_eq!(found.as_ref(), Some(&wanted));
            assert_eq!(wanted.path(), path);
            assert_eq!(paths().stand_in(&wanted), Path::new("/ctx/binderfs").join(context));
        }
    }

    #[test]
    fn only_names_of_ours_are_looked_at_first() {
        for path in [
            "binder",
            "/dev//binder",
            "/dev/../dev/bonder",
            "//dev/binderfs//x",
            "binderfs",
            "/a/binderfs/../x",
            "/opt/it",
        ] {
            assert!(paths().is_likely(path.as_bytes()), "{path}");
        }
        for path in [
            "/dev/null",
            "/dev/pts/0",
            "/dev/",
            "//dev/zero",
            "/./x",
            "/opt/",
            "/opt/t",
            "",
            "binderfs1",
            "/binder/x",
        ] {
            assert!(!paths().is_likely(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn other_files_are_left_alone() {
        for path in ["binder", "/binder", "/dev/binder1", "/dev/null", "/dev/binderfs1", "/dev", ""] {
            assert_eq!(paths().at(path), None, "{path}");
        }
        let long = format!("/dev/binderfs/{}", "x".repeat(256));
        for path in
            ["/dev/binderfs/features/extended_error", "/dev/binderfs/binder_logs", "/dev/binderfs/a:b", &long]
        {
            assert!(matches!(paths().at(path), Some(Found::Entry(_))), "{path}");
        }
        assert_eq!(paths().at("/dev/binderfs/binder-control"), Some(Found::Control));
        assert!(is_name("binder") && !is_name("") && !is_name(".."));
    }

    #[test]
    fn stand_ins_are_seen_as_what_they_stand_for() {
        let seen = |path: &str| paths().outward(path.as_bytes());
        assert_eq!(seen("/ctx/binderfs/binder").as_deref(), Some("/dev/binderfs/binder"));
        assert_eq!(seen("/ctx/binderfs").as_deref(), Some("/dev/binderfs"));
        assert_eq!(seen("/ctx/binderfs.control").as_deref(), Some("/dev/binderfs/binder-control"));
        assert_eq!((seen("/ctx/binderfs1"), seen("/ctx")), (None, None));
    }

    #[test]
    fn a_directory_behind_a_link_is_the_one_that_the_kernel_names() {
        let private = sys::private_folder::PrivateFolder::new("test").expect("a folder");
        let real = private.path().canonicalize().expect("there");
        std::fs::create_dir(real.join("real")).expect("made");
        std::os::unix::fs::symlink("real", real.join("link")).expect("linked");
        let paths = Paths::new(&private.path().join("link/ctx"), "").expect("no rules");
        let seen = |name: &str| paths.outward(real.join(name).to_str().expect("text").as_bytes());
        assert_eq!(seen("real/ctx/binderfs.control").as_deref(), Some("/dev/binderfs/binder-control"));
        assert_eq!(seen("real/ctx/binderfs/x").as_deref(), Some("/dev/binderfs/x"));
        assert_eq!(paths.stand_in(&Found::Control), real.join("real/ctx/binderfs/binder-control"));
    }

    #[test]
    fn a_rule_names_a_path_and_a_context() {
        for text in ["/dev/x", "dev/x=binder", "/dev/../x=binder", "/dev/x=", "/dev/x=a/b", "=binder"] {
            assert!(Paths::new(Path::new("/"), text).is_err(), "{text}");
        }
    }
}
