//! Whether KVM is usable on this machine.
//! Not here: the fallback to emulation when KVM fails later (`session`).

use std::fmt;
use std::fs::OpenOptions;
use std::path::Path;

use record::HostClass;

use super::arch::Arch;

/// The accelerator to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accel {
    /// KVM if it works, else emulation.
    #[default]
    Auto,
    /// KVM, or an error.
    Kvm,
    /// Emulation.
    Tcg,
}

impl fmt::Display for Accel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        })
    }
}

impl Accel {
    /// The class to try first. Instruction counting and another architecture need emulation.
    pub(super) fn first_class(self, icount: bool, arch: Arch) -> HostClass {
        match self {
            _ if icount => HostClass::Icount,
            Self::Kvm => HostClass::Kvm,
            Self::Auto if arch.runs_this_program() && kvm_usable(Path::new("/")) => HostClass::Kvm,
            Self::Auto | Self::Tcg => HostClass::Tcg,
        }
    }
}

/// Whether `/dev/kvm` opens and is not provided by `kvm_pvm`, which some nested hosts have: with it QEMU starts and
/// then fails with internal errors.
fn kvm_usable(root: &Path) -> bool {
    let opens = OpenOptions::new().read(true).write(true).open(root.join("dev/kvm")).is_ok();
    opens && !root.join("sys/module/kvm_pvm").exists()
}

/// Whether QEMU's message blames KVM rather than the guest.
pub(super) fn blames_kvm(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    ["kvm internal error", "failed to initialize kvm", "could not access kvm", "kvm: entry failed", "kvm_"]
        .iter()
        .any(|sign| said.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    #[test]
    fn pvm_and_a_missing_device_both_mean_emulation() {
        let root = Fixture::new("accel", &[]);
        assert!(!kvm_usable(root.path()), "no /dev/kvm");
        root.put("dev/kvm", "");
        assert!(kvm_usable(root.path()));
        root.put("sys/module/kvm_pvm/refcnt", "0");
        assert!(!kvm_usable(root.path()), "kvm_pvm");
        assert_eq!(Accel::Kvm.first_class(true, Arch::X86), HostClass::Icount);
    }

    #[test]
    fn only_kvms_own_complaints_are_blamed_on_it() {
        assert!(blames_kvm("KVM internal error. Suberror: 1"));
        assert!(blames_kvm("qemu-system-x86_64: failed to initialize kvm: Permission denied"));
        assert!(!blames_kvm("qemu-system-x86_64: -smp 9999: Invalid SMP CPUs 9999"));
    }
}
