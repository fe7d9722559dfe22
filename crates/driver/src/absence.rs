//! Diagnosis of a missing binder device from the machine's files, with the remedy.
//! Not here: looking for the device (`locate`).
//! Facts: `/proc/filesystems`, `/proc/misc`, kernel configuration, module folder; contract OPN-12.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::Root;
use crate::kernel_config::KernelConfig;

/// Why there is no binder device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absence {
    /// The driver has binderfs, but no instance is mounted where devices were looked for.
    BinderfsNotMounted,
    /// The driver is there and made its devices elsewhere, or under other names.
    NoDeviceNode {
        /// Names of the devices that `/proc/misc` lists.
        devices: Vec<String>,
    },
    /// The module exists on disk and is not loaded.
    ModuleNotLoaded {
        /// The module file.
        module: PathBuf,
    },
    /// The kernel was configured to have the driver as a module, but the file is not installed.
    ModuleNotInstalled {
        /// The kernel's release.
        release: String,
        /// Which of [`MODULES`].
        module: &'static str,
    },
    /// The kernel was built without the driver.
    NotBuilt {
        /// The kernel's release.
        release: String,
    },
    /// Nothing on this machine tells.
    Unknown {
        /// The kernel's release.
        release: String,
    },
}

impl Absence {
    /// Finds the reason on this machine.
    #[must_use]
    pub fn here() -> Self {
        Self::find(&Root::of_this_machine())
    }

    /// Finds the reason on the machine with these files.
    #[must_use]
    pub fn find(root: &Root) -> Self {
        let read = |path: &str| root.text(path).unwrap_or_default();
        if read("proc/filesystems").lines().any(|line| line.trim_start_matches("nodev").trim() == "binder") {
            return Self::BinderfsNotMounted;
        }
        let devices: Vec<String> = read("proc/misc")
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1))
            .filter(|name| name.ends_with("binder"))
            .map(str::to_owned)
            .collect();
        if !devices.is_empty() {
            return Self::NoDeviceNode { devices };
        }
        let release = read("proc/sys/kernel/osrelease");
        if let Some(module) = find_module(root, &Path::new("lib/modules").join(&release)) {
            return Self::ModuleNotLoaded { module: Path::new("/").join(module) };
        }
        let Some(config) = KernelConfig::find(root) else { return Self::Unknown { release } };
        // One kernel has the driver in C or the one in Rust, either perhaps a module, or neither.
        match (config.value("ANDROID_BINDER_IPC"), config.value("ANDROID_BINDER_IPC_RUST")) {
            (Some("m"), _) => Self::ModuleNotInstalled { release, module: MODULES[0] },
            (_, Some("m")) => Self::ModuleNotInstalled { release, module: MODULES[1] },
            (Some("y"), _) => Self::NoDeviceNode { devices },
            // It makes no devices by itself, whatever is asked for at boot.
            (_, Some("y")) => Self::BinderfsNotMounted,
            _ => Self::NotBuilt { release },
        }
    }
}

/// Modules that have been the driver: the one in C, the one in Rust.
pub const MODULES: [&str; 2] = ["binder_linux", "rust_binder"];

/// The command that loads a module of [`MODULES`].
#[must_use]
pub fn modprobe(module: &str) -> &'static str {
    if module.starts_with(MODULES[1]) {
        "modprobe rust_binder && mkdir -p /dev/binderfs && mount -t binder binder /dev/binderfs"
    } else {
        "modprobe binder_linux devices=binder,hwbinder,vndbinder"
    }
}

/// The binder module below a release's module folder, whatever its compression.
fn find_module(root: &Root, folder: &Path) -> Option<PathBuf> {
    let listed = root.text(folder.join("modules.dep")).unwrap_or_default();
    let relative = listed
        .lines()
        .filter_map(|line| line.split_once(':').map(|(file, _)| file))
        .find(|file| MODULES.iter().any(|module| is_module(Path::new(file), module)))?;
    Some(folder.join(relative)).filter(|path| root.exists(path))
}

fn is_module(file: &Path, module: &str) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix(module).is_some_and(|end| end.starts_with(".ko"))
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BinderfsNotMounted => f.write_str(
                "the driver is there, but no binderfs is mounted: mkdir -p /dev/binderfs && mount -t binder binder \
                 /dev/binderfs",
            ),
            Self::NoDeviceNode { devices } if devices.is_empty() => f.write_str(
                "the driver is built in but made no devices: boot with binder.devices=binder,hwbinder,vndbinder",
            ),
            Self::NoDeviceNode { devices } => write!(
                f,
                "the driver is there with the devices {}: name one of them, or reload it with `modprobe -r \
                 binder_linux && modprobe binder_linux devices=binder,hwbinder,vndbinder`",
                devices.join(", ")
            ),
            Self::ModuleNotLoaded { module } => write!(
                f,
                "the module {} is not loaded: {}",
                module.display(),
                modprobe(&module.file_name().unwrap_or_default().to_string_lossy())
            ),
            Self::ModuleNotInstalled { release, module } => write!(
                f,
                "kernel {release} has binder as a module that is not installed: install the package with this \
                 kernel's extra modules (Ubuntu: linux-modules-extra-{release}), then {}",
                modprobe(module)
            ),
            Self::NotBuilt { release } => write!(
                f,
                "kernel {release} was built without CONFIG_ANDROID_BINDER_IPC: use another kernel, or let `binderperf \
                 vm` boot one"
            ),
            Self::Unknown { release } => write!(
                f,
                "kernel {release} shows no binder driver and its configuration is not to be found: try `modprobe \
                 binder_linux`, use another kernel, or let `binderperf vm` boot one"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Fixture;

    /// Name, files, what they mean, a word that the advice must have.
    type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], Absence, &'c str);

    const RELEASE: (&str, &str) = ("proc/sys/kernel/osrelease", "6.1.0-1-amd64\n");

    #[test]
    fn every_reason_is_told_apart() {
        let release = "6.1.0-1-amd64".to_owned();
        let module = "kernel/drivers/android/binder_linux.ko.xz";
        let dep = format!("kernel/a.ko: kernel/b.ko\n{module}:\n");
        let module_file = format!("lib/modules/{release}/{module}");
        let module_dep = format!("lib/modules/{release}/modules.dep");
        let rust_file = module_file.replace("binder_linux", "rust_binder");
        let config = format!("boot/config-{release}");
        let cases: &[Case<'_>] = &[
            (
                "fs",
                &[("proc/filesystems", "nodev\tbinder\n\text4\n")],
                Absence::BinderfsNotMounted,
                "mount -t binder",
            ),
            (
                "misc",
                &[RELEASE, ("proc/misc", " 58 anbox-binder\n 10 fuse\n")],
                Absence::NoDeviceNode { devices: vec!["anbox-binder".into()] },
                "anbox-binder",
            ),
            (
                "module",
                &[RELEASE, (&module_dep, &dep), (&module_file, "")],
                Absence::ModuleNotLoaded { module: Path::new("/").join(&module_file) },
                "modprobe binder_linux devices=",
            ),
            (
                "extra",
                &[RELEASE, (&config, "CONFIG_ANDROID_BINDER_IPC=m\n")],
                Absence::ModuleNotInstalled { release: release.clone(), module: MODULES[0] },
                "linux-modules-extra-6.1.0-1-amd64",
            ),
            (
                "rust-extra",
                &[RELEASE, (&config, "CONFIG_ANDROID_BINDER_IPC_RUST=m\n")],
                Absence::ModuleNotInstalled { release: release.clone(), module: MODULES[1] },
                "modprobe rust_binder && ",
            ),
            (
                "rust-module",
                &[RELEASE, (&module_dep, &dep.replace("binder_linux", "rust_binder")), (&rust_file, "")],
                Absence::ModuleNotLoaded { module: Path::new("/").join(&rust_file) },
                "modprobe rust_binder && ",
            ),
            (
                "off",
                &[RELEASE, (&config, "# CONFIG_ANDROID_BINDER_IPC is not set\n")],
                Absence::NotBuilt { release: release.clone() },
                "without CONFIG_ANDROID_BINDER_IPC",
            ),
            (
                "rust",
                &[
                    RELEASE,
                    (&config, "# CONFIG_ANDROID_BINDER_IPC is not set\nCONFIG_ANDROID_BINDER_IPC_RUST=y\n"),
                ],
                Absence::BinderfsNotMounted,
                "mount -t binder",
            ),
            (
                "built-in",
                &[RELEASE, (&config, "CONFIG_ANDROID_BINDER_IPC=y\n")],
                Absence::NoDeviceNode { devices: Vec::new() },
                "made no devices",
            ),
            ("none", &[RELEASE], Absence::Unknown { release: release.clone() }, "6.1.0-1-amd64"),
        ];
        for (name, files, want, text) in cases {
            let fixture = Fixture::new(&format!("absence-{name}"), files);
            let found = Absence::find(&fixture.root());
            assert_eq!(&found, want, "{name}");
            assert!(found.to_string().contains(text), "{name}: {found}");
        }
    }
}
