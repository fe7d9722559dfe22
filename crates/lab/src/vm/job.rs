//! Room: what the host asks of a guest: a file in its root filesystem, and its kernel's command line.
//! Not here: the answer (`frame`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::arch;

/// Where the guest finds its [`Job`].
pub(super) const JOB_PATH: &str = "job.json";
/// The kernel parameter that tells this binary, started as process 1, that it is our guest's.
pub const GUEST_MARK: &str = "binderperf.guest=1";
/// The kernel parameter that carries the [`HostClass`].
const CLASS_KEY: &str = "binderperf.class=";
/// The environment variable in which the command finds the [`HostClass`].
pub const CLASS_VARIABLE: &str = "BINDERPERF_HOST_CLASS";
/// Name of the virtio port that frames go through.
pub(super) const PORT: &str = "binderperf.frames";

/// How the guest's CPUs are made, which decides what its clock means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostClass {
    /// Real CPUs under KVM: wall time is real.
    Kvm,
    /// Emulated CPUs: only ratios within one boot mean something.
    Tcg,
    /// One emulated CPU whose clock counts instructions: 1 ns is one guest instruction.
    Icount,
}

impl HostClass {
    /// Its name in results: `kvm`, `tcg`, `icount`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
            Self::Icount => "icount",
        }
    }

    /// Reads it back from a guest's kernel command line.
    pub(super) fn from_cmdline(cmdline: &str) -> Option<Self> {
        let name = cmdline.split_whitespace().find_map(|word| word.strip_prefix(CLASS_KEY))?;
        [Self::Kvm, Self::Tcg, Self::Icount].into_iter().find(|class| class.name() == name)
    }
}

/// The work of one guest.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    /// Program and arguments.
    pub(super) argv: Vec<String>,
    /// The command's environment.
    pub(super) env: BTreeMap<String, String>,
    /// Modules to load, in this order, from `modules/`.
    pub(super) modules: Vec<ModuleLoad>,
    /// Uptime to wait for before the command starts, in milliseconds.
    pub(super) settle_ms: u64,
    /// Whether the host wants the files that the command leaves.
    pub(super) files: bool,
}

/// One module to load.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ModuleLoad {
    /// File name below `modules/`.
    pub(super) file: String,
    /// `name=value` pairs.
    pub(super) parameters: String,
}

/// The guest kernel's command line. `verbose` keeps every message on the console.
pub(super) fn cmdline(class: HostClass, verbose: bool, append: &[String]) -> String {
    let console = format!("console={}", arch::GUEST.console);
    let class_word = format!("{CLASS_KEY}{}", class.name());
    let mut words = vec![console.as_str()];
    if !verbose {
        words.push("quiet");
    }
    // An oops or panic ends the guest at once instead of leaving it half alive until the timeout.
    words.extend(["panic=-1", "oops=panic", "reboot=t", "rdinit=/init"]);
    // The ciphers' self-tests take every CPU for the first seconds, and nobody measures ciphers here.
    words.push("cryptomgr.notests");
    words.extend(arch::GUEST.clock);
    if class == HostClass::Icount {
        // Where the kernel lies must not differ from boot to boot.
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
            cmdline(HostClass::Tcg, false, &["threadirqs".into(), "a=b c".into()]),
            "console=ttyS0 quiet panic=-1 oops=panic reboot=t rdinit=/init cryptomgr.notests tsc=reliable clocksource=tsc \
             no_timer_check binderperf.guest=1 binderperf.class=tcg threadirqs a=b c"
        );
        let counted = cmdline(HostClass::Icount, true, &[]);
        assert!(!counted.contains("quiet") && counted.contains(" nokaslr "), "{counted}");
    }

    #[test]
    fn the_class_comes_back_from_the_command_line() {
        for class in [HostClass::Kvm, HostClass::Tcg, HostClass::Icount] {
            assert_eq!(HostClass::from_cmdline(&cmdline(class, false, &[])), Some(class));
        }
        assert_eq!(HostClass::from_cmdline("quiet"), None);
        assert_eq!(HostClass::from_cmdline("binderperf.class=abacus"), None);
    }
}
