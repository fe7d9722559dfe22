//! Room: checks of kernel memory, whether they were built in or asked for at boot.
//! Not here: other options of the kernel (`kernel_options`).
//! Facts: help texts of `mm/Kconfig.debug`, `lib/Kconfig.debug` and `security/Kconfig.hardening`; `slab_debug`,
//! `debug_pagealloc`, `page_poison`, `kmemleak`, `init_on_alloc` and `init_on_free` of
//! `Documentation/admin-guide/kernel-parameters.txt`; words that switch are read as `kstrtobool` does.

use driver::kernel_config::KernelConfig;
use record::checkup::Verdict;

use crate::doctor::parse::parameter;
use crate::doctor::probe::{Probe, Said};
use crate::doctor::snapshot::{Snapshot, Unread};

pub(super) const PROBE: Probe = Probe {
    id: "kernel-memory-debug",
    looks_at: "checks of memory: SLUB, page allocation, poisoning, kmemleak, objects, VM; clearing at allocation and release",
    source: "mm/Kconfig.debug, lib/Kconfig.debug, security/Kconfig.hardening, kernel-parameters.txt",
    proof: "zcat /proc/config.gz | grep -E 'SLUB_DEBUG_ON|PAGE_POISONING|DEBUG_(PAGEALLOC|VM|OBJECTS|KMEMLEAK|SG)|INIT_ON'; cat /proc/cmdline",
    look: memory_debug,
};

/// Whether a check that is built in is on without a word at boot.
enum Unasked {
    On,
    Off,
    /// With this option.
    With(&'static str),
    /// Without this option.
    Without(&'static str),
}

struct Check {
    name: &'static str,
    verdict: Verdict,
    built: &'static str,
    unasked: Unasked,
    /// Words of the command line that switch it.
    words: &'static [&'static str],
    effect: &'static str,
}

const CHECKED: &str =
    "each allocation of a transaction is checked: every number is too large, and tails are longer";

const CHECKS: [Check; 9] = [
    Check {
        name: "slab_debug",
        verdict: Verdict::Error,
        built: "SLUB_DEBUG",
        unasked: Unasked::With("SLUB_DEBUG_ON"),
        words: &["slub_debug", "slab_debug"],
        effect: "each allocation of a transaction is filled, checked and traced",
    },
    Check {
        name: "debug_pagealloc",
        verdict: Verdict::Error,
        built: "DEBUG_PAGEALLOC",
        unasked: Unasked::With("DEBUG_PAGEALLOC_ENABLE_DEFAULT"),
        words: &["debug_pagealloc"],
        effect: "each page is unmapped when it is freed and mapped when it is taken: buffers cost a multiple",
    },
    Check {
        name: "page_poison",
        verdict: Verdict::Warning,
        built: "PAGE_POISONING",
        unasked: Unasked::Off,
        words: &["page_poison"],
        effect: "each page is filled when it is freed and checked when it is taken",
    },
    Check {
        name: "kmemleak",
        verdict: Verdict::Warning,
        built: "DEBUG_KMEMLEAK",
        unasked: Unasked::Without("DEBUG_KMEMLEAK_DEFAULT_OFF"),
        words: &["kmemleak"],
        effect: "each allocation of a transaction is recorded, and the scan takes a CPU now and then",
    },
    Check {
        name: "DEBUG_OBJECTS",
        verdict: Verdict::Warning,
        built: "DEBUG_OBJECTS",
        unasked: Unasked::On,
        words: &[],
        effect: CHECKED,
    },
    Check {
        name: "DEBUG_VM",
        verdict: Verdict::Warning,
        built: "DEBUG_VM",
        unasked: Unasked::On,
        words: &[],
        effect: CHECKED,
    },
    Check {
        name: "DEBUG_SG",
        verdict: Verdict::Info,
        built: "DEBUG_SG",
        unasked: Unasked::On,
        words: &[],
        effect: "scatter lists of devices are checked; binder has none",
    },
    Check {
        name: "init_on_alloc",
        verdict: Verdict::Info,
        built: "",
        unasked: Unasked::With("INIT_ON_ALLOC_DEFAULT_ON"),
        words: &["init_on_alloc"],
        effect: "each transaction's kernel memory is written once more, with zeroes, when it is allocated",
    },
    Check {
        name: "init_on_free",
        verdict: Verdict::Info,
        built: "",
        unasked: Unasked::With("INIT_ON_FREE_DEFAULT_ON"),
        words: &["init_on_free"],
        effect: "each transaction's kernel memory is written once more, with zeroes, when it is freed",
    },
];

impl Check {
    /// What shows that it is on: file and text; `None` if it is off.
    fn shown(&self, config: Option<&KernelConfig>, command_line: &str) -> Option<(String, String)> {
        let is_built = config.is_none_or(|config| self.built.is_empty() || config.is_on(self.built));
        if !is_built {
            return None;
        }
        for word in self.words {
            let plain = command_line.split_whitespace().any(|given| given == *word);
            match parameter(command_line, word) {
                Some(value) if is_off(value) => return None,
                Some(value) => return Some(("/proc/cmdline".to_owned(), format!("{word}={value}"))),
                None if plain => return Some(("/proc/cmdline".to_owned(), (*word).to_owned())),
                None => {}
            }
        }
        let config = config?;
        let option = match self.unasked {
            Unasked::On => Some(self.built),
            Unasked::Off => None,
            Unasked::With(option) => Some(option).filter(|option| config.is_on(option)),
            Unasked::Without(option) => Some(self.built).filter(|_| !config.is_on(option)),
        };
        option.map(|option| (config.source.clone(), format!("CONFIG_{option}=y")))
    }
}

/// `slub_debug=-` is off, too.
fn is_off(value: &str) -> bool {
    matches!(value, "-" | "0" | "n" | "N" | "off" | "f" | "F")
}

fn memory_debug(snapshot: &Snapshot) -> Result<Said, Unread> {
    let command_line = snapshot.text("proc/cmdline").unwrap_or_default();
    let config = snapshot.config();
    let found: Vec<(&Check, (String, String))> = CHECKS
        .iter()
        .filter_map(|check| Some((check, check.shown(config.as_ref().ok().copied(), &command_line)?)))
        .collect();
    let Some(worst) = found.iter().map(|(check, _)| check.verdict).max() else {
        // Without a configuration nobody knows what is on unasked.
        return Ok(
            Said::fine("the kernel does not check its memory").because(&config?.source, "none of them is on")
        );
    };
    let names: Vec<&str> = found.iter().map(|(check, _)| check.name).collect();
    let mut effects: Vec<&str> =
        found.iter().filter(|(check, _)| check.verdict == worst).map(|(check, _)| check.effect).collect();
    effects.dedup();
    let boot: Vec<String> = found
        .iter()
        .filter_map(|(check, _)| check.words.last())
        .map(|word| if *word == "slab_debug" { "slab_debug=-".to_owned() } else { format!("{word}=off") })
        .collect();
    let rebuild = "a kernel that was built without";
    let fix = if boot.is_empty() {
        rebuild.to_owned()
    } else {
        format!("boot with {}, or {rebuild}", boot.join(" "))
    };
    let doing = if worst == Verdict::Info {
        "the kernel does more with its memory than it must"
    } else {
        "the kernel checks its memory"
    };
    let said = Said::new(worst, format!("{doing}: {}", names.join(", "))).effect(effects.join("; ")).fix(fix);
    Ok(found.iter().fold(said, |said, (_, (file, says))| said.because(file, says.clone())))
}

#[cfg(test)]
pub(super) use cases::CASES;

#[cfg(test)]
mod cases {
    use crate::doctor::tests::{Case, Verdict::*, case};

    const ID: &str = "kernel-memory-debug";
    const CONFIG: &str = "proc/config";
    const CMDLINE: &str = "proc/cmdline";
    const PLAIN: &str =
        "CONFIG_HZ=250\nCONFIG_SLUB_DEBUG=y\nCONFIG_PAGE_POISONING=y\nCONFIG_DEBUG_PAGEALLOC=y\n";
    const LEAKS: &str = "CONFIG_DEBUG_KMEMLEAK=y\nCONFIG_DEBUG_KMEMLEAK_DEFAULT_OFF=y\n";
    const ON_FREE: &str = "CONFIG_INIT_ON_FREE_DEFAULT_ON=y\n";

    pub(in crate::doctor) const CASES: &[Case] = &[
        case(ID, Error, "slab_debug", &[(CONFIG, "CONFIG_SLUB_DEBUG=y\nCONFIG_SLUB_DEBUG_ON=y\n")]),
        case(ID, Error, "slab_debug", &[(CONFIG, PLAIN), (CMDLINE, "quiet slub_debug=FZ\n")]),
        case(ID, Error, "slab_debug", &[(CMDLINE, "quiet slab_debug\n")]),
        case(ID, Ok, "", &[(CONFIG, PLAIN), (CMDLINE, "quiet slub_debug=-\n")]),
        case(ID, Error, "debug_pagealloc", &[(CONFIG, PLAIN), (CMDLINE, "debug_pagealloc=on\n")]),
        case(ID, Ok, "", &[(CONFIG, PLAIN)]),
        case(ID, Ok, "", &[(CONFIG, "CONFIG_HZ=250\n"), (CMDLINE, "debug_pagealloc=on page_poison=1\n")]),
        case(ID, Warning, "page_poison", &[(CONFIG, PLAIN), (CMDLINE, "page_poison=1\n")]),
        case(ID, Warning, "kmemleak", &[(CONFIG, "CONFIG_DEBUG_KMEMLEAK=y\n")]),
        case(ID, Ok, "", &[(CONFIG, LEAKS)]),
        case(ID, Warning, "kmemleak", &[(CONFIG, LEAKS), (CMDLINE, "kmemleak=on\n")]),
        case(ID, Info, "init_on_free", &[(CONFIG, ON_FREE)]),
        case(ID, Info, "init_on_alloc, init_on_free", &[(CONFIG, ON_FREE), (CMDLINE, "init_on_alloc=1\n")]),
        case(ID, Ok, "", &[(CONFIG, ON_FREE), (CMDLINE, "init_on_free=0")]),
        case(
            ID,
            Warning,
            "DEBUG_VM, init_on_free",
            &[(CONFIG, "CONFIG_DEBUG_VM=y\nCONFIG_INIT_ON_FREE_DEFAULT_ON=y\n")],
        ),
        case(ID, Unknown, "config", &[(CMDLINE, "quiet\n")]),
    ];
}
