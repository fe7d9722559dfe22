//! Room: how the kernel's driver is had on each distribution.
//! Not here: why it is missing (`driver::absence`).
//! Facts: `os-release(5)`. Debian: `binder_linux` is in the kernel's own package, not in the cloud kernel's.
//! Ubuntu: `linux-modules-extra-RELEASE`. Arch: built in with binderfs since linux 6.12.7, in Rust in newer
//! kernels (archlinuxarm pull request 2093, Waydroid issue 2157). Fedora: built in with binderfs since 5.15 (the
//! same pull request). openSUSE: not built (openSUSE/kernel-source pull request 21, 2026). NixOS:
//! `boot.kernelPatches`; postmarketOS and Android: the device's kernel must have it.

use driver::absence::{Absence, modprobe};

/// The way to a driver for this kind of absence, on the distribution of this `os-release`.
pub(super) fn advice(absence: &Absence, os_release: &str, release: &str) -> String {
    let kind = Distribution::of(os_release);
    let here = "or let `binderperf vm` boot a kernel that has it, or measure the embedded driver (--driver embedded)";
    match absence {
        Absence::ModuleNotInstalled { .. } | Absence::Unknown { .. } | Absence::NotBuilt { .. } => {
            let module = if let Absence::ModuleNotInstalled { module, .. } = absence { *module } else { "" };
            let way = kind.way(matches!(absence, Absence::NotBuilt { .. }), release, module);
            format!("{way}; {here}")
        }
        Absence::ModuleNotLoaded { module } => {
            let file = module.file_name().unwrap_or_default().to_string_lossy();
            let name = file.split('.').next().unwrap_or_default();
            let keep = match kind {
                Distribution::Nix => format!("boot.kernelModules = [ \"{name}\" ];"),
                _ => format!("a line {name} in /etc/modules-load.d/binder.conf"),
            };
            format!("{} ({keep} keeps it loaded)", modprobe(name))
        }
        // These two need nothing from the distribution; their own words say what to do.
        other => other.to_string(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distribution {
    Ubuntu,
    Debian,
    Fedora,
    Rhel,
    Arch,
    Suse,
    Nix,
    PostmarketOs,
    Android,
    Other,
}

impl Distribution {
    /// By `ID`, else by `ID_LIKE`.
    fn of(os_release: &str) -> Self {
        let value = |name: &str| {
            let line = os_release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or_default().trim_matches(['"', '\'']).to_owned()
        };
        let ids = [value("ID"), value("ID_LIKE")].join(" ");
        let known = ids.split_whitespace().find_map(|id| {
            Some(match id {
                "ubuntu" => Self::Ubuntu,
                "debian" => Self::Debian,
                "rhel" | "centos" | "rocky" | "almalinux" => Self::Rhel,
                "fedora" => Self::Fedora,
                "arch" | "archarm" => Self::Arch,
                "opensuse" | "suse" | "opensuse-tumbleweed" => Self::Suse,
                "nixos" => Self::Nix,
                "postmarketos" => Self::PostmarketOs,
                "android" => Self::Android,
                _ => return None,
            })
        });
        known.unwrap_or(Self::Other)
    }

    /// Where a kernel with the driver, or its missing module, comes from.
    fn way(self, not_built: bool, release: &str, module: &str) -> String {
        const OPTIONS: &str = "CONFIG_ANDROID_BINDER_IPC and CONFIG_ANDROID_BINDERFS";
        match (self, not_built) {
            (Self::Ubuntu, false) => {
                format!("apt install linux-modules-extra-{release} && {}", modprobe(module))
            }
            (Self::Ubuntu, true) => {
                "boot Ubuntu's linux-image-generic, whose linux-modules-extra has it".to_owned()
            }
            (Self::Debian, _) => {
                "boot Debian's linux-image-amd64 (or -arm64), which has binder_linux; its cloud kernels \
                                  have not"
                    .to_owned()
            }
            (Self::Fedora, _) => {
                "boot Fedora's own kernel, which has it built in with binderfs since 5.15".to_owned()
            }
            (Self::Arch, _) => {
                "pacman -S linux, which has it built in with binderfs since 6.12.7 (linux-zen, too)"
                    .to_owned()
            }
            (Self::Suse, _) => format!("openSUSE's kernels are built without: build one with {OPTIONS}"),
            (Self::Rhel, _) => {
                format!("RHEL's kernels, and those made of them, are built without: build one with {OPTIONS}")
            }
            (Self::Nix, _) => "boot.kernelPatches with structuredExtraConfig = { ANDROID_BINDER_IPC = yes; \
                               ANDROID_BINDERFS = yes; }, or boot.kernelPackages = pkgs.linuxPackages_zen"
                .to_owned(),
            (Self::PostmarketOs, _) => {
                format!(
                    "build the device's kernel with {OPTIONS} (pmbootstrap kconfig edit), as its Waydroid page asks"
                )
            }
            (Self::Android, _) => {
                "Android cannot run without it: look whether this is a container that does not see it"
                    .to_owned()
            }
            (Self::Other, _) => format!("boot a kernel with {OPTIONS}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_distribution_has_its_way() {
        let release = "6.8.0-1-generic".to_owned();
        let missing = Absence::ModuleNotInstalled { release, module: "binder_linux" };
        let not_built = Absence::NotBuilt { release: "6.8.0".to_owned() };
        for (os_release, absence, want) in [
            ("NAME=x\nID=ubuntu\n", &missing, "apt install linux-modules-extra-6.8.0-1-generic"),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", &missing, "linux-modules-extra-6.8.0-1-generic"),
            ("ID=ubuntu\n", &not_built, "linux-image-generic"),
            ("ID=debian\n", &not_built, "cloud kernels"),
            ("ID=fedora\n", &not_built, "Fedora's own kernel"),
            (
                "ID=rocky\nID_LIKE=\"rhel centos fedora\"\n",
                &not_built,
                "RHEL's kernels, and those made of them",
            ),
            ("ID=manjaro\nID_LIKE=arch\n", &not_built, "pacman -S linux"),
            ("ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n", &not_built, "built without"),
            ("ID=nixos\n", &not_built, "structuredExtraConfig"),
            ("ID=postmarketos\n", &not_built, "pmbootstrap"),
            ("ID=android\n", &not_built, "container"),
            ("", &not_built, "CONFIG_ANDROID_BINDERFS"),
        ] {
            let said = advice(absence, os_release, "6.8.0-1-generic");
            assert!(said.contains(want), "{os_release}: {said}");
            assert!(said.contains("binderperf vm") && said.contains("embedded"), "{said}");
        }
        let not_loaded = Absence::ModuleNotLoaded { module: "/lib/modules/binder_linux.ko".into() };
        assert!(advice(&not_loaded, "ID=debian", "6").contains("modprobe binder_linux devices="));
        assert!(advice(&not_loaded, "ID=nixos", "6").contains("boot.kernelModules"));
        let rust = Absence::ModuleNotLoaded { module: "/lib/modules/6/rust_binder.ko.zst".into() };
        assert!(advice(&rust, "", "6").starts_with("modprobe rust_binder && "), "{}", advice(&rust, "", "6"));
        assert!(advice(&rust, "", "6").contains("a line rust_binder in"));
        assert!(advice(&Absence::BinderfsNotMounted, "", "6").contains("mount -t binder"));
    }
}
