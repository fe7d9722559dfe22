//! How to get a kernel with a binder driver, per distribution.
//! Not here: why the driver is missing (`driver::absence`), kernels that no distribution makes (`vendor`).
//! Facts: `os-release(5)`. Debian: `binder_linux` is in the standard kernel package, not in the cloud kernel's.
//! Ubuntu: `linux-modules-extra-RELEASE`. Arch: built in with binderfs since linux 6.12.7, in Rust in newer kernels
//! (archlinuxarm pull request 2093, Waydroid issue 2157). Fedora: built in with binderfs since 5.15 (same pull
//! request). openSUSE: not built (openSUSE/kernel-source pull request 21, 2026). NixOS: `boot.kernelPatches`.
//! postmarketOS and Android: the device's kernel must have it.

use driver::absence::{Absence, MODULES, modprobe};

use super::vendor;

/// Where to get a kernel with the driver, by a value of `ID` or `ID_LIKE`. `OPTIONS` stands for the kernel's options.
/// Ubuntu's advice depends on the absence.
const WAYS: [(&[&str], &str); 9] = [
    (&["ubuntu"], "boot Ubuntu's linux-image-generic, whose linux-modules-extra has it"),
    (
        &["debian"],
        "boot Debian's linux-image-amd64 (or -arm64), which has binder_linux; its cloud kernels have not",
    ),
    (
        &["rhel", "centos", "rocky", "almalinux"],
        "RHEL's kernels, and those made of them, are built without: build one with OPTIONS",
    ),
    (&["fedora"], "boot Fedora's own kernel, which has it built in with binderfs since 5.15"),
    (
        &["arch", "archarm"],
        "pacman -S linux, which has it built in with binderfs since 6.12.7 (linux-zen, too)",
    ),
    (
        &["opensuse", "suse", "opensuse-tumbleweed"],
        "openSUSE's kernels are built without: build one with OPTIONS",
    ),
    (
        &["nixos"],
        "boot.kernelPatches with structuredExtraConfig = { ANDROID_BINDER_IPC = yes; ANDROID_BINDERFS = yes; }, or \
         boot.kernelPackages = pkgs.linuxPackages_zen",
    ),
    (
        &["postmarketos"],
        "build the device's kernel with OPTIONS (pmbootstrap kconfig edit), as its Waydroid page asks",
    ),
    (&["android"], "Android cannot run without it: look whether this is a container that does not see it"),
];

/// Facts about a system besides its kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct System<'s> {
    /// Content of `os-release`.
    pub(super) os_release: &'s str,
    /// `uname -r`.
    pub(super) release: &'s str,
    /// Whether it is a container, whose `os-release` is not that of the kernel.
    pub(super) in_container: bool,
}

/// Advice for this absence on this system.
pub(super) fn advice(absence: &Absence, system: System<'_>) -> String {
    // WSL and Crostini run their Linux in containers, too.
    let in_container = system.in_container && vendor::of(system.release).is_none();
    let os_release = if in_container { "" } else { system.os_release };
    let way = way(absence, os_release, system.release);
    match in_container {
        true => format!(
            "this is a container, whose kernel is its host's; there: {way}; then pass the device into the container, or mount \
             binderfs in it"
        ),
        false => way,
    }
}

/// Advice for this absence on the distribution that this `os-release` names.
fn way(absence: &Absence, os_release: &str, release: &str) -> String {
    let value = |name: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches(['"', '\''])
    };
    let ids = [value("ID"), value("ID_LIKE")].join(" ");
    let way_of =
        |id: &str| WAYS.iter().find(|(ids, _)| ids.contains(&id)).map(|(_, way)| (id.to_owned(), *way));
    let known = ids.split_whitespace().find_map(way_of);
    let (id, way) = known.unwrap_or((String::new(), "boot a kernel with OPTIONS"));
    let packaged = matches!(absence, Absence::ModuleNotInstalled { .. });
    let vendor = vendor::of(release).filter(|vendor| !(packaged && vendor.is_packaged));
    let way =
        vendor.map_or(way.to_owned(), |vendor| format!("this kernel is {}: {}", vendor.whose, vendor.way));
    let way = way.replace("OPTIONS", "CONFIG_ANDROID_BINDER_IPC and CONFIG_ANDROID_BINDERFS");
    let extra = |module| format!("apt install linux-modules-extra-{release} && {}", modprobe(module));
    let way = match absence {
        Absence::ModuleNotInstalled { module, .. } if id == "ubuntu" && vendor.is_none() => extra(module),
        Absence::Unknown { .. } if id == "ubuntu" && vendor.is_none() => extra(MODULES[0]),
        Absence::ModuleNotInstalled { module, .. } if id.is_empty() && vendor.is_none() => {
            format!("install this kernel's module {module}, then {}", modprobe(module))
        }
        Absence::ModuleNotInstalled { .. } | Absence::Unknown { .. } | Absence::NotBuilt { .. } => way,
        Absence::ModuleNotLoaded { module } => {
            let file = module.file_name().unwrap_or_default().to_string_lossy();
            let name = file.split('.').next().unwrap_or_default();
            let keep = match id.as_str() {
                "nixos" => format!("boot.kernelModules = [ \"{name}\" ];"),
                _ => format!("a line {name} in /etc/modules-load.d/binder.conf"),
            };
            return format!("{} ({keep} keeps it loaded)", modprobe(name));
        }
        // The others do not depend on the distribution; their own text says what to do.
        other => return other.to_string(),
    };
    format!(
        "{way}; or let `binderperf vm` boot a kernel that has it, or measure the embedded driver (--driver embedded)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(absence: &Absence, os_release: &str) -> String {
        advice(absence, System { os_release, release: "6.8.0-1-generic", in_container: false })
    }

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
            let said = of(absence, os_release);
            assert!(said.contains(want), "{os_release}: {said}");
            assert!(said.contains("binderperf vm") && said.contains("embedded"), "{said}");
        }
        let not_loaded = Absence::ModuleNotLoaded { module: "/lib/modules/binder_linux.ko".into() };
        assert!(of(&not_loaded, "ID=debian").contains("modprobe binder_linux devices="));
        assert!(of(&not_loaded, "ID=nixos").contains("boot.kernelModules"));
        let rust = Absence::ModuleNotLoaded { module: "/lib/modules/6/rust_binder.ko.zst".into() };
        assert!(of(&rust, "").starts_with("modprobe rust_binder && "), "{}", of(&rust, ""));
        assert!(of(&rust, "").contains("a line rust_binder in"));
        assert!(of(&Absence::BinderfsNotMounted, "").contains("mount -t binder"));
    }

    #[test]
    fn a_vendors_kernel_and_a_container_are_not_the_distributions() {
        let not_built = Absence::NotBuilt { release: "x".to_owned() };
        let (missing, unknown) = (
            Absence::ModuleNotInstalled { release: "x".to_owned(), module: MODULES[0] },
            Absence::Unknown { release: "x".to_owned() },
        );
        let ubuntu = |release| System { os_release: "ID=ubuntu", release, in_container: false };
        for (absence, release, want, not) in [
            (&not_built, "5.15.153.1-microsoft-standard-WSL2", ".wslconfig", "linux-image-generic"),
            (&unknown, "5.15.153.1-microsoft-standard-WSL2", ".wslconfig", "linux-modules-extra"),
            (&not_built, "6.1.43-rockchip-rk3588", "vendor", "linux-image-generic"),
            (&missing, "6.1.43-rockchip-rk3588", "vendor", "linux-modules-extra"),
            (&not_built, "5.19.0-1012-raspi", "Raspberry Pi's", "linux-image-generic"),
            (&missing, "5.19.0-1012-raspi", "linux-modules-extra-5.19.0-1012-raspi", "Raspberry Pi's"),
        ] {
            let said = advice(absence, ubuntu(release));
            assert!(said.contains(want) && !said.contains(not), "{release}: {said}");
            assert!(said.contains("binderperf vm") && said.contains("--driver embedded"), "{said}");
        }
        let inside = advice(&not_built, System { in_container: true, ..ubuntu("6.8.0-1-generic") });
        assert!(inside.contains("its host's") && !inside.contains("Ubuntu"), "{inside}");
        let wsl = System { in_container: true, ..ubuntu("5.15.153.1-microsoft-standard-WSL2") };
        assert!(!advice(&not_built, wsl).contains("its host's"));
    }
}
