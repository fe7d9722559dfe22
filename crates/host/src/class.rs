//! The host class of this machine, which decides how its times may be read.
//! Facts: `/proc/cpuinfo` has a flag `hypervisor` on x86 guests; `/sys/hypervisor` exists under Xen;
//! device trees name a hypervisor; DMI names the maker of a virtual board.

use driver::Root;
use record::HostClass;

/// Environment variable with the host class, set for commands in guests of `binderperf vm`.
pub const CLASS_VARIABLE: &str = "BINDERPERF_HOST_CLASS";

/// Environment variable with the kernel of a guest of `binderperf vm`, as given to `--kernel`: a line for each.
pub const KERNEL_VARIABLE: &str = "BINDERPERF_GUEST_KERNEL";

/// Environment variable that tells a copy of this program that it runs for another machine, and how that reaches this one:
/// the value of `--on`.
pub const ON_VARIABLE: &str = "BINDERPERF_ON";

/// The kernel that was given for this guest; empty elsewhere.
pub(crate) fn guest_kernel(class: HostClass) -> Vec<String> {
    let told = std::env::var(KERNEL_VARIABLE).ok().filter(|_| class.is_own_guest());
    told.iter().flat_map(|names| names.lines()).map(str::to_owned).collect()
}

/// The class of this machine.
#[must_use]
pub fn class() -> HostClass {
    class_of(std::env::var(CLASS_VARIABLE).ok().as_deref(), &Root::of_this_machine())
}

/// The class of the machine whose files are in `root`; `told` is the value of [`CLASS_VARIABLE`].
#[must_use]
pub fn class_of(told: Option<&str>, root: &Root) -> HostClass {
    match told {
        Some("kvm") => HostClass::Kvm,
        Some("tcg") => HostClass::Tcg,
        Some("icount") => HostClass::Icount,
        _ if is_virtual(root) => HostClass::Virtual,
        _ => HostClass::Bare,
    }
}

const MAKERS: [&str; 9] = [
    "QEMU",
    "KVM",
    "Bochs",
    "VMware",
    "innotek",
    "Xen",
    "Amazon EC2",
    "Google Compute",
    "Microsoft Corporation Virtual",
];

fn is_virtual(root: &Root) -> bool {
    let flagged =
        |line: &str| line.starts_with("flags") && line.split_whitespace().any(|word| word == "hypervisor");
    if root.text("proc/cpuinfo").is_some_and(|text| text.lines().any(flagged))
        || root.text("sys/hypervisor/type").is_some()
        || root.exists("proc/device-tree/hypervisor")
    {
        return true;
    }
    let name = |file| root.text(format!("sys/class/dmi/id/{file}")).unwrap_or_default();
    let board = format!("{} {}", name("sys_vendor"), name("product_name"));
    MAKERS.iter().any(|maker| board.contains(maker))
}
