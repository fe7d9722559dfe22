//! The guest's instructions: a file in its root file system, and the kernel command line.
//! Not here: the results (`frame`).

use std::collections::BTreeMap;

use record::HostClass;
use serde::{Deserialize, Serialize};

use super::arch::Arch;

/// Path of this binary in the guest. The kernel names process 1 after it.
pub(super) const BINARY: &str = "binderperf";
/// Path of the [`Job`] in the guest.
pub(super) const JOB_PATH: &str = "job.json";
/// Kernel parameter that marks a guest of `binderperf vm`. Its name has no dot, so the kernel hands it to process 1 as
/// an environment variable (`Documentation/admin-guide/kernel-parameters.rst`).
pub(super) const GUEST_MARK: &str = "binderperf_guest=1";
/// Kernel parameter with the [`HostClass`].
const CLASS_KEY: &str = "binderperf.class=";
/// Name of the virtio port for frames.
pub(super) const PORT: &str = "binderperf.frames";

/// The class of this guest's CPUs, from its kernel command line.
pub(super) fn class_of_guest(cmdline: &str) -> Option<HostClass> {
    let name = cmdline.split_whitespace().find_map(|word| word.strip_prefix(CLASS_KEY))?;
    [HostClass::Kvm, HostClass::Tcg, HostClass::Icount].into_iter().find(|class| class.name() == name)
}

/// Instructions for one guest.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    /// Path of the program.
    pub(super) program: String,
    /// Its arguments, each time that it runs.
    pub(super) commands: Vec<Vec<String>>,
    /// Whether to go on after a command that failed.
    pub(super) keep_going: bool,
    /// The commands' environment.
    pub(super) env: BTreeMap<String, String>,
    /// Modules to load, in this order, from `modules/`.
    pub(super) modules: Vec<ModuleLoad>,
    /// Minimum uptime before the command starts, in milliseconds.
    pub(super) settle_ms: u64,
    /// Whether to return the files that the command leaves.
    pub(super) files: bool,
    /// Whether it has a network card, which it configures.
    pub(super) network: bool,
    /// Whether output goes to the console instead of the port, and the guest powers itself off.
    pub(super) console: bool,
}

/// One module to load.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ModuleLoad {
    /// File name in `modules/`.
    pub(super) file: String,
    /// `name=value` pairs.
    pub(super) parameters: String,
}

/// The guest's kernel command line. `verbose` keeps all messages on the console.
pub(super) fn cmdline(arch: Arch, class: HostClass, verbose: bool, append: &[String]) -> String {
    let console = format!("console={}", arch.facts().console);
    let class_word = format!("{CLASS_KEY}{}", class.name());
    let mut words = vec![console.as_str()];
    if !verbose {
        words.push("quiet");
    }
    // An oops or panic ends the guest at once, not at the timeout.
    let first = format!("rdinit=/{BINARY}");
    words.extend(["panic=-1", "oops=panic", "reboot=t", &first]);
    // Cipher self-tests would use all CPUs for the first seconds.
    words.push("cryptomgr.notests");
    words.extend(arch.facts().clock);
    if class == HostClass::Icount {
        // The kernel's address must be the same in every boot.
        words.push("nokaslr");
    }
    words.extend([GUEST_MARK, class_word.as_str()]);
    words.extend(append.iter().map(String::as_str));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_says_what_the_guest_must_know() {
        assert_eq!(
            cmdline(Arch::X86, HostClass::Tcg, false, &["threadirqs".into(), "a=b c".into()]),
            "console=ttyS0 quiet panic=-1 oops=panic reboot=t rdinit=/binderperf cryptomgr.notests tsc=reliable clocksource=tsc \
             no_timer_check binderperf_guest=1 binderperf.class=tcg threadirqs a=b c"
        );
        let counted = cmdline(Arch::Arm, HostClass::Icount, true, &[]);
        assert!(
            !counted.contains("quiet")
                && counted.contains(" nokaslr ")
                && counted.starts_with("console=ttyAMA0 "),
            "{counted}"
        );
    }

    #[test]
    fn the_class_comes_back_from_the_command_line() {
        for class in [HostClass::Kvm, HostClass::Tcg, HostClass::Icount] {
            assert_eq!(class_of_guest(&cmdline(Arch::X86, class, false, &[])), Some(class));
        }
        assert_eq!(class_of_guest("quiet"), None);
        assert_eq!(class_of_guest("binderperf.class=abacus"), None);
    }
}
